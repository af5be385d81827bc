//! The headers of keyframes of VP8 and VP9.

use super::PictureFormat;
use crate::bits::BitReader;

/// A frame of VP8 (RFC 6386 section 9.1).
pub(super) fn vp8(frame: &[u8]) -> Option<PictureFormat> {
    // "A 1-bit frame type (0 for key frames, 1 for interframes)", "A 3-bit version number"; three bytes in all, then the start code.
    let &[tag, _, _, 0x9D, 0x01, 0x2A, ref sizes @ ..] = frame else { return None };
    let [width, height] =
        [sizes.first_chunk()?, sizes.get(2..)?.first_chunk()?].map(|it| u16::from_le_bytes(*it));
    // 14 bits, below two of a scale that no decoder must follow.
    let side = |value: u16| u32::from(value & 0x3FFF);
    let profile = format!("profile {}", tag >> 1 & 7);
    (tag & 1 == 0).then(|| PictureFormat { profile, size: (side(width), side(height)) })
}

/// How many frames of VP9 are shown of a frame, or of a superframe (the bitstream specification, annex B).
pub(super) fn shown(frame: &[u8]) -> u64 {
    let Some(&marker) = frame.last() else { return 0 };
    let (count, size_length) = (usize::from(marker & 7) + 1, usize::from(marker >> 3 & 3) + 1);
    let index_length = 2 + count * size_length;
    let index = frame.len().checked_sub(index_length).map(|at| &frame[at..]);
    // superframe_marker is 0b110, in the first and the last byte of the index.
    let Some(index) = index.filter(|index| marker >> 5 == 6 && index[0] == marker) else {
        return is_shown(frame).into();
    };
    let mut rest = &frame[..frame.len() - index_length];
    let mut all = 0;
    for size in index[1..=count * size_length].chunks_exact(size_length) {
        let size = size.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte));
        let one;
        (one, rest) = rest.split_at(size.min(rest.len()));
        all += u64::from(is_shown(one));
    }
    all
}

/// show_existing_frame, or show_frame (section 6.2).
fn is_shown(frame: &[u8]) -> bool {
    let Some(first) = frame.first().filter(|first| *first >> 6 == 2) else { return false };
    // Of profile 3 a bit is reserved in front of them.
    let flags = if first >> 4 & 3 == 3 { first << 1 } else { *first };
    flags & 0x08 != 0 || flags & 0x02 != 0
}

/// What the header of a keyframe of VP9 says (the bitstream specification, section 6.2).
pub(crate) struct Vp9Header {
    pub(crate) profile: u8,
    pub(crate) bit_depth: u8,
    /// subsampling_x and subsampling_y.
    pub(crate) subsampling: (bool, bool),
    pub(crate) is_full_range: bool,
    pub(crate) size: (u32, u32),
}

/// A keyframe of VP9.
pub(crate) fn vp9_header(frame: &[u8]) -> Option<Vp9Header> {
    const SYNC_CODE: u32 = 0x49_83_42;
    const CS_RGB: u32 = 7;
    let mut bits = BitReader::new(frame);
    if bits.bits(2)? != 2 {
        return None;
    }
    let profile = bits.bits(1)? | bits.bits(1)? << 1;
    if profile == 3 {
        bits.skip(1)?; // reserved_zero
    }
    // show_existing_frame, and frame_type, which is 0 of a keyframe.
    if bits.flag()? || bits.flag()? {
        return None;
    }
    bits.skip(2)?; // show_frame, error_resilient_mode
    if bits.bits(24)? != SYNC_CODE {
        return None;
    }
    // color_config(), section 6.2.2.
    let has_more_bits = profile >= 2;
    let bit_depth = if !has_more_bits {
        8
    } else if bits.flag()? {
        12
    } else {
        10
    };
    let has_subsampling = profile & 1 == 1;
    let (mut subsampling, mut is_full_range) = ((true, true), true);
    if bits.bits(3)? == CS_RGB {
        subsampling = (false, false);
        bits.skip(u32::from(has_subsampling))?; // reserved_zero
    } else {
        is_full_range = bits.flag()?; // color_range
        if has_subsampling {
            subsampling = (bits.flag()?, bits.flag()?);
            bits.skip(1)?; // reserved_zero
        }
    }
    let size = (bits.bits(16)? + 1, bits.bits(16)? + 1);
    Some(Vp9Header { profile: profile as u8, bit_depth, subsampling, is_full_range, size })
}

/// A frame of VP9.
pub(super) fn vp9(frame: &[u8]) -> Option<PictureFormat> {
    let Vp9Header { profile, size, .. } = vp9_header(frame)?;
    Some(PictureFormat { profile: format!("profile {profile}"), size })
}

#[cfg(test)]
mod tests {
    use super::super::PictureCodec;
    use super::shown;

    /// The first bytes of keyframes that ffmpeg made of pictures of 320x180: `-c:v libvpx`, `-c:v libvpx-vp9`.
    const VP8: &[u8] = &[0x10, 0x62, 0x00, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xB4, 0x00];
    const VP9: &[u8] = &[0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xF0, 0x0B, 0x36, 0x00];

    fn read(codec: PictureCodec, frame: &[u8]) -> Option<(String, (u32, u32))> {
        codec.format(frame).map(|format| (format.profile, format.size))
    }

    #[test]
    fn keyframes_say_their_profile_and_size() {
        assert_eq!(read(PictureCodec::Vp8, VP8), Some(("profile 0".to_owned(), (320, 180))));
        assert_eq!(read(PictureCodec::Vp9, VP9), Some(("profile 0".to_owned(), (320, 180))));
    }

    #[test]
    fn what_is_shown_is_known() {
        let [key, inter, hidden, again] = [[0x82u8, 1], [0x86, 1], [0x84, 1], [0x88, 1]];
        assert_eq!([&key[..], &inter, &hidden, &again, &[]].map(shown), [1, 1, 0, 1, 0]);
        assert_eq!([shown(&[0xB1]), shown(&[0xB2])], [1, 0], "profile 3");
        let index = [0xC9, 2, 0, 2, 0, 0xC9];
        assert_eq!(shown(&[&hidden[..], &inter, &index].concat()), 1);
        assert_eq!(shown(&[&key[..], &inter, &index].concat()), 2);
        assert_eq!(shown(&[&key[..], &index].concat()), 1, "cut short");
        assert_eq!(shown(&[0xDF; 4]), 0, "an index that is longer than the frame");
    }

    #[test]
    fn other_frames_and_what_is_cut_short_say_nothing() {
        for (codec, frame) in [(PictureCodec::Vp8, VP8), (PictureCodec::Vp9, VP9)] {
            let needed = if codec == PictureCodec::Vp8 { 10 } else { 9 };
            for length in 0..needed {
                assert_eq!(read(codec, &frame[..length]), None, "{length}");
            }
        }
        assert_eq!(read(PictureCodec::Vp8, &[&[0x11], &VP8[1..]].concat()), None);
        assert_eq!(read(PictureCodec::Vp9, &[&[0x86], &VP9[1..]].concat()), None);
    }
}
