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

/// The dependency descriptor ("RTP Payload Format For AV1" appendix A.4), as much of it as every packet has, and whether a coded video
/// sequence begins; it is not for AV1 alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DependencyDescriptor {
    /// The first packet of a frame: of one layer, not always of all.
    pub start: bool,
    /// The last packet of a frame.
    pub end: bool,
    /// The first packet of a coded video sequence, which begins with a keyframe.
    pub begins_sequence: bool,
}

impl DependencyDescriptor {
    /// Reads the element: three bytes at the least.
    #[inline]
    pub fn parse(element: &[u8]) -> Option<Self> {
        let &[flags, _, _, ref extended @ ..] = element else { return None };
        Some(Self {
            start: flags & 0x80 != 0,
            end: flags & 0x40 != 0,
            // "template_dependency_structure_present_flag MUST be set to 1 for the first packet of a coded video sequence, and MUST be set to
            // 0 otherwise."
            begins_sequence: extended.first().is_some_and(|flags| flags & 0x80 != 0),
        })
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
    fn a_dependency_descriptor_says_where_frames_and_sequences_begin() {
        let read = |element: &[u8]| {
            DependencyDescriptor::parse(element).map(|it| (it.start, it.end, it.begins_sequence))
        };
        assert_eq!(read(&[0x80, 0, 1, 0x80, 0]), Some((true, false, true)));
        assert_eq!(read(&[0xC1, 0, 1, 0x00]), Some((true, true, false)));
        assert_eq!(read(&[0x41, 0, 1]), Some((false, true, false)));
        assert_eq!(read(&[0x80, 0]), None);
    }

    #[test]
    fn elements_that_are_too_short_say_nothing() {
        assert_eq!(transport_sequence_number(&[1]), None);
        assert_eq!(transport_sequence_number(&[1, 2]), Some(0x0102));
    }
}
