//! VP8 in RTP (RFC 7741): a descriptor in front of a part of a frame.

use crate::piece::{Header, Piece, Unreadable};

/// What the descriptor says (section 4.2), and the part behind it.
struct Payload<'a> {
    /// S: a partition begins with the first byte behind the descriptor.
    starts_partition: bool,
    /// PID: which partition it is of.
    partition: u8,
    bytes: &'a [u8],
}

impl<'a> Payload<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self, Unreadable> {
        let (&first, mut rest) = payload.split_first().ok_or(Unreadable)?;
        // X: a byte of extended control bits is behind the first.
        if first & 0x80 != 0 {
            let (&extension, behind) = rest.split_first().ok_or(Unreadable)?;
            rest = behind;
            // I: the number of the picture.
            if extension & 0x80 != 0 {
                // M: it has 15 bits, otherwise 7.
                let long = rest.first().ok_or(Unreadable)? & 0x80 != 0;
                rest = rest.get(if long { 2 } else { 1 }..).ok_or(Unreadable)?;
            }
            // L: TL0PICIDX.
            if extension & 0x40 != 0 {
                rest = rest.get(1..).ok_or(Unreadable)?;
            }
            // T and K: TID and KEYIDX share a byte.
            if extension & 0x30 != 0 {
                rest = rest.get(1..).ok_or(Unreadable)?;
            }
        }
        Ok(Self { starts_partition: first & 0x10 != 0, partition: first & 0x07, bytes: rest })
    }

    /// The first packet of a frame has S = 1, and its first partition, that of modes and motion vectors, the index 0.
    fn starts_frame(&self) -> bool {
        self.starts_partition && self.partition == 0
    }
}

/// Whether a frame begins here, and whether a keyframe does.
pub(crate) fn marks(payload: &[u8]) -> (Option<bool>, Option<bool>) {
    let Ok(payload) = Payload::parse(payload) else { return (None, None) };
    let start = payload.starts_frame();
    // P, the lowest bit of the frame's first byte, is 0 of a keyframe (section 4.3, RFC 6386 section 9.1).
    let keyframe = payload.bytes.first().map(|first| start && first & 1 == 0);
    (Some(start), keyframe)
}

/// The part of a frame.
pub(crate) fn pieces<'a>(payload: &'a [u8], take: &mut impl FnMut(Piece<'a>)) -> Result<(), Unreadable> {
    let payload = Payload::parse(payload)?;
    take(Piece { start: payload.starts_frame(), end: false, header: Header::NONE, bytes: payload.bytes });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u8 = 0x10;
    const INTER: u8 = 0x11;

    #[test]
    fn descriptors_of_every_length_are_read() {
        let keyframe = (Some(true), Some(true));
        for descriptor in [
            &[0x10][..],
            &[0x90, 0x80, 0x05],
            &[0x90, 0x80, 0x85, 0x05],
            &[0x90, 0x40, 0x05],
            &[0x90, 0x20, 0x05],
            &[0x90, 0x10, 0x05],
            &[0x90, 0xF0, 0x85, 0x05, 0x07, 0x21],
            // The reserved bits and N say nothing.
            &[0x70],
        ] {
            let read = |first: u8| marks(&[descriptor, &[first, 0, 0]].concat());
            assert_eq!(read(KEY), keyframe, "{descriptor:?}");
            assert_eq!(read(INTER), (Some(true), Some(false)), "{descriptor:?}");
            for length in 0..descriptor.len() {
                assert_eq!(marks(&descriptor[..length]), (None, None), "{descriptor:?} cut at {length}");
            }
        }
    }

    #[test]
    fn only_the_first_partition_begins_a_frame() {
        assert_eq!(marks(&[0x00, KEY]), (Some(false), Some(false)), "a later part of the first partition");
        assert_eq!(marks(&[0x11, KEY]), (Some(false), Some(false)), "the second partition");
        let mut found = Vec::new();
        pieces(&[0x90, 0x80, 0x05, 1, 2], &mut |piece| found.push((piece.start, piece.bytes.to_vec())))
            .unwrap();
        assert_eq!(found, [(true, vec![1, 2])]);
    }
}
