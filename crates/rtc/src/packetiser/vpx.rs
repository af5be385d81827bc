//! Frames of VP8 (RFC 7741) and VP9 (RFC 9628) behind their descriptors.

use super::parts;

/// Bytes of the longer descriptor.
const DESCRIPTOR: usize = 4;

/// What a descriptor says of a part of a frame.
pub(super) struct Part {
    is_keyframe: bool,
    /// The frame begins, and ends, with it.
    starts: bool,
    ends: bool,
    /// Of the picture, 15 bits.
    number: u16,
}

/// Cuts frames.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    limit: usize,
    number: u16,
    payload: Vec<u8>,
}

impl Writer {
    pub(super) fn new(limit: usize, number: u16) -> Self {
        Self { limit, number, payload: Vec::with_capacity(limit) }
    }

    pub(super) fn packetise(
        &mut self,
        frame: &[u8],
        descriptor: impl Fn(&Part, &mut Vec<u8>),
        is_keyframe: bool,
        emit: &mut impl FnMut(&[u8], bool),
    ) {
        let mut parts = parts(frame, self.limit - DESCRIPTOR).peekable();
        let mut starts = true;
        while let Some(bytes) = parts.next() {
            let ends = parts.peek().is_none();
            self.payload.clear();
            descriptor(&Part { is_keyframe, starts, ends, number: self.number & 0x7FFF }, &mut self.payload);
            self.payload.extend_from_slice(bytes);
            emit(&self.payload, ends);
            starts = false;
        }
        self.number = self.number.wrapping_add(1);
    }
}

/// RFC 7741 section 4.2: X, S of the first part, one partition; I, and the number of the picture in 15 bits (M).
pub(super) fn vp8_descriptor(part: &Part, out: &mut Vec<u8>) {
    let [high, low] = part.number.to_be_bytes();
    out.extend([0x80 | if part.starts { 0x10 } else { 0 }, 0x80, 0x80 | high, low]);
}

/// RFC 9628 section 4.2: I, P, B, E, in the non-flexible mode without layers; the number of the picture in 15 bits (M).
pub(super) fn vp9_descriptor(part: &Part, out: &mut Vec<u8>) {
    let flag = |set: bool, mask: u8| if set { mask } else { 0 };
    let flags = flag(!part.is_keyframe, 0x40) | flag(part.starts, 0x08) | flag(part.ends, 0x04);
    let [high, low] = part.number.to_be_bytes();
    out.extend([0x80 | flags, 0x80 | high, low]);
}
