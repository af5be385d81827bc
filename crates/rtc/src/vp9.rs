//! VP9 in RTP (RFC 9628): a descriptor in front of a part of a frame. Frames of several layers, which have one time stamp, are one picture.

use crate::piece::{Header, Piece, Unreadable};

/// The most reference indices of a picture (section 4.2).
const MOST_REFERENCES: usize = 3;

/// What the descriptor says (section 4.2), and the part behind it.
struct Payload<'a> {
    /// P: the frame is predicted from other pictures.
    is_predicted: bool,
    /// B: a frame of a layer begins with the first byte behind the descriptor.
    starts_frame: bool,
    /// SID: the spatial layer; 0 where none is said.
    layer: u8,
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self, Unreadable> {
        let (&first, mut rest) = payload.split_first().ok_or(Unreadable)?;
        let flag = |mask: u8| first & mask != 0;
        let (has_picture, is_predicted, has_layers, is_flexible) =
            (flag(0x80), flag(0x40), flag(0x20), flag(0x10));
        let (starts_frame, has_structure) = (flag(0x08), flag(0x02));
        if has_picture {
            // The number of the picture has 7 bits, or 15 where the first bit (M) is set.
            let long = rest.first().ok_or(Unreadable)? & 0x80 != 0;
            rest = rest.get(if long { 2 } else { 1 }..).ok_or(Unreadable)?;
        }
        let mut layer = 0;
        if has_layers {
            // TID (3 bits), U, SID (3 bits), D.
            layer = rest.first().ok_or(Unreadable)? >> 1 & 0x07;
            // TL0PICIDX is there in the non-flexible mode (F = 0).
            rest = rest.get(if is_flexible { 1 } else { 2 }..).ok_or(Unreadable)?;
        }
        if is_flexible && is_predicted {
            for at in 1.. {
                let (&reference, behind) = rest.split_first().ok_or(Unreadable)?;
                rest = behind;
                // N: another P_DIFF is behind this one.
                if reference & 1 == 0 {
                    break;
                }
                if at == MOST_REFERENCES {
                    return Err(Unreadable);
                }
            }
        }
        if has_structure {
            rest = after_structure(rest)?;
        }
        Ok(Self { is_predicted, starts_frame, layer, bytes: rest })
    }

    /// Whether a picture begins: a frame of the lowest layer does. Of another one's nothing is known, because servers leave layers away.
    fn starts_picture(&self) -> Option<bool> {
        match (self.starts_frame, self.layer) {
            (false, _) => Some(false),
            (true, 0) => Some(true),
            (true, _) => None,
        }
    }

    /// Whether a keyframe begins: the lowest layer's frame, which is not predicted by the descriptor, and a KEY_FRAME by its own header.
    /// Some senders say of each frame that it is not predicted; where the header is encrypted, the descriptor is all that is known.
    fn is_keyframe(&self) -> bool {
        self.starts_frame
            && self.layer == 0
            && !self.is_predicted
            && match self.bytes.first().map(|first| first >> 6) {
                // frame_marker is always 2 (VP9 bitstream specification section 7.2).
                Some(2) => is_key_header(self.bytes[0]),
                Some(_) => true,
                None => false,
            }
    }
}

/// Whether the first byte of an uncompressed header is of a keyframe (VP9 bitstream specification section 6.2).
fn is_key_header(first: u8) -> bool {
    let bit = |at: u8| first >> (7 - at) & 1;
    // profile_low_bit and profile_high_bit; profile 3 has a reserved bit behind them.
    let behind = if bit(2) == 1 && bit(3) == 1 { 5 } else { 4 };
    // show_existing_frame, and frame_type, which is 0 of a KEY_FRAME.
    bit(behind) == 0 && bit(behind + 1) == 0
}

/// What is behind the scalability structure (section 4.2.1).
fn after_structure(bytes: &[u8]) -> Result<&[u8], Unreadable> {
    let (&first, mut rest) = bytes.split_first().ok_or(Unreadable)?;
    // N_S: the number of spatial layers less one.
    let layers = usize::from(first >> 5) + 1;
    // Y: width and height of each layer, two bytes each.
    if first & 0x10 != 0 {
        rest = rest.get(4 * layers..).ok_or(Unreadable)?;
    }
    // G: the pictures of a group are described.
    if first & 0x08 != 0 {
        let (&pictures, behind) = rest.split_first().ok_or(Unreadable)?;
        rest = behind;
        for _ in 0..pictures {
            // TID (3 bits), U, R (2 bits): the number of P_DIFFs behind it, a byte each.
            let references = usize::from(rest.first().ok_or(Unreadable)? >> 2 & 0x03);
            rest = rest.get(1 + references..).ok_or(Unreadable)?;
        }
    }
    Ok(rest)
}

/// Whether a picture begins here, as far as that is known, and whether a keyframe does.
pub(crate) fn marks(payload: &[u8]) -> (Option<bool>, Option<bool>) {
    match Payload::parse(payload) {
        Ok(payload) => (payload.starts_picture(), Some(payload.is_keyframe())),
        Err(Unreadable) => (None, None),
    }
}

/// The part of a frame.
pub(crate) fn pieces<'a>(payload: &'a [u8], take: &mut impl FnMut(Piece<'a>)) -> Result<(), Unreadable> {
    let payload = Payload::parse(payload)?;
    take(Piece { start: payload.starts_frame, end: false, header: Header::NONE, bytes: payload.bytes });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// frame_marker 2, profile 0, no existing frame; a keyframe, and another.
    const KEY: u8 = 0b1000_0000;
    const INTER: u8 = 0b1000_0100;

    fn read(descriptor: &[u8], first: u8) -> (Option<bool>, Option<bool>) {
        marks(&[descriptor, &[first, 0]].concat())
    }

    #[test]
    fn descriptors_of_every_form_are_read() {
        for descriptor in [
            &[0x08][..],
            // A picture's number of 7 and of 15 bits.
            &[0x88, 0x05],
            &[0x88, 0x85, 0x05],
            // Layers, in the non-flexible mode with TL0PICIDX, and in the flexible one.
            &[0xA8, 0x05, 0x00, 0x07],
            &[0xB8, 0x05, 0x20],
            // A structure of two layers with their sizes and a group of two pictures.
            &[0x8A, 0x05, 0x38, 1, 64, 0, 180, 2, 128, 1, 104, 2, 0x00, 0x08, 0x04, 1, 2][..14],
        ] {
            if descriptor[0] != 0x8A {
                assert_eq!(read(descriptor, KEY), (Some(true), Some(true)), "{descriptor:?}");
                assert_eq!(read(descriptor, INTER), (Some(true), Some(false)), "{descriptor:?}");
            }
            for length in 0..descriptor.len() {
                let (_, keyframe) = marks(&descriptor[..length]);
                assert_ne!(keyframe, Some(true), "{descriptor:?} cut at {length}");
            }
        }
        let structure = [0x8A, 0x05, 0x38, 1, 64, 0, 180, 2, 128, 1, 104, 2, 0x00, 0x08, 1, 2];
        assert_eq!(read(&structure, KEY), (Some(true), Some(true)));
        // References of the flexible mode.
        for descriptor in [&[0xD8, 0x05, 0x02][..], &[0xD8, 0x05, 0x03, 0x05, 0x02]] {
            assert_eq!(read(descriptor, INTER), (Some(true), Some(false)), "{descriptor:?}");
        }
        assert_eq!(read(&[0xD8, 0x05, 3, 3, 3, 2], KEY), (None, None), "four references");
    }

    #[test]
    fn a_picture_begins_with_its_lowest_layer_and_of_others_nothing_is_known() {
        assert_eq!(read(&[0xB8, 0x05, 0x02], KEY), (None, Some(false)));
        assert_eq!(read(&[0xB0, 0x05, 0x00], KEY), (Some(false), Some(false)), "the middle of a frame");
    }

    #[test]
    fn a_keyframe_is_one_by_the_descriptor_and_by_its_header() {
        assert_eq!(read(&[0x88, 0x05], KEY), (Some(true), Some(true)));
        assert_eq!(read(&[0xC8, 0x05], KEY), (Some(true), Some(false)), "predicted");
        // P says "not predicted" of each frame of some senders in the flexible mode.
        assert_eq!(read(&[0x98, 0x05], INTER), (Some(true), Some(false)));
        // Encrypted from end to end.
        assert_eq!(read(&[0x88, 0x05], 0x31), (Some(true), Some(true)));
        assert_eq!(read(&[0xC8, 0x05], 0x31), (Some(true), Some(false)));
        // Profile 3 has a bit more; a frame that is shown again is none.
        assert_eq!(read(&[0x08], 0b1011_0000), (Some(true), Some(true)));
        assert_eq!(read(&[0x08], 0b1011_0010), (Some(true), Some(false)));
        assert_eq!(read(&[0x08], 0b1000_1000), (Some(true), Some(false)));
    }
}
