//! What single elements of a header extension say. Which identifier means which is agreed in SDP (`a=extmap`).

/// Frame marking (RFC 9626; `urn:ietf:params:rtp-hdrext:framemarking`): what a server may know of a frame that it
/// cannot decrypt, and so may we.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameMarking {
    /// The first packet of a frame.
    pub start: bool,
    /// The last packet of a frame.
    pub end: bool,
    /// The frame can be decoded with no other: a keyframe.
    pub independent: bool,
    /// No other frame needs this one.
    pub discardable: bool,
}

impl FrameMarking {
    /// Reads the element (sections 3.1 and 3.2).
    #[inline]
    pub fn parse(element: &[u8]) -> Option<Self> {
        let flags = *element.first()?;
        Some(Self {
            start: flags & 0x80 != 0,
            end: flags & 0x40 != 0,
            independent: flags & 0x20 != 0,
            discardable: flags & 0x10 != 0,
        })
    }

    /// The element for streams without layers (section 3.2).
    pub fn write(self) -> [u8; 1] {
        let bit = |set, mask| if set { mask } else { 0u8 };
        [bit(self.start, 0x80)
            | bit(self.end, 0x40)
            | bit(self.independent, 0x20)
            | bit(self.discardable, 0x10)]
    }
}

/// The packet's number among all of its transport (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2.2).
#[inline]
pub fn transport_sequence_number(element: &[u8]) -> Option<u16> {
    element.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_marking_is_read_as_it_is_written() {
        for flags in 0..16 {
            let bit = |at: u8| flags >> at & 1 == 1;
            let marking =
                FrameMarking { start: bit(3), end: bit(2), independent: bit(1), discardable: bit(0) };
            assert_eq!(marking.write(), [flags << 4]);
            assert_eq!(FrameMarking::parse(&marking.write()), Some(marking));
        }
        assert_eq!(FrameMarking::parse(&[]), None);
    }

    #[test]
    fn elements_that_are_too_short_say_nothing() {
        assert_eq!(transport_sequence_number(&[1]), None);
        assert_eq!(transport_sequence_number(&[1, 2]), Some(0x0102));
    }
}
