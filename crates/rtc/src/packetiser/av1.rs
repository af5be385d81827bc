//! OBUs of AV1 ("RTP Payload Format For AV1"): whole, or in fragments, as many in a payload as there is room for.

use crate::av1::{CONTINUES, IS_CONTINUED, STARTS_SEQUENCE, is_ignored, is_sequence_header, obu_payload};

/// Bytes of the aggregation header.
const HEADER: usize = 1;

/// Bytes of an element's length: two hold 16,383, which no payload of a datagram reaches that fits the paths of the field.
const LENGTH: usize = 3;

/// The most elements of a payload whose last one need not say its length ("W: two bit field").
const MOST_COUNTED: usize = 3;

/// The least room in which an OBU is begun.
const LEAST_PART: usize = LENGTH + 4;

/// Cuts temporal units.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    limit: usize,
    /// OBUs without their sizes, one behind the other, and where each ends.
    obus: Vec<u8>,
    ends: Vec<usize>,
    /// Where the elements of the payload under way begin and end.
    elements: Vec<(usize, usize)>,
    payload: Vec<u8>,
}

impl Writer {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            obus: Vec::new(),
            ends: Vec::new(),
            elements: Vec::new(),
            payload: Vec::with_capacity(limit),
        }
    }

    pub(super) fn packetise<'a>(
        &mut self,
        units: impl IntoIterator<Item = &'a [u8]>,
        is_keyframe: bool,
        emit: &mut impl FnMut(&[u8], bool),
    ) -> usize {
        self.take(units);
        let has_sequence = self.ends.first().is_some_and(|end| is_sequence_header(&self.obus[..*end]));
        // "N: MUST be set to 1 if the packet is the first packet of a coded video sequence, and MUST be set to 0 otherwise."
        let mut flags = if is_keyframe && has_sequence { STARTS_SEQUENCE } else { 0 };
        let mut room = self.limit - HEADER;
        let mut begin = 0;
        for at in 0..self.ends.len() {
            let end = self.ends[at];
            while begin < end {
                let most = room.saturating_sub(LENGTH);
                let is_whole = end - begin <= most;
                if !is_whole && room < LEAST_PART {
                    // The OBU is begun in the next payload.
                    self.write(flags, false, emit);
                    (flags, room) = (0, self.limit - HEADER);
                    continue;
                }
                let part_end = if is_whole { end } else { begin + most };
                self.elements.push((begin, part_end));
                room -= LENGTH + part_end - begin;
                begin = part_end;
                if !is_whole {
                    // "Y: MUST be set to 1 if the last OBU element is an OBU fragment that will continue in the next packet"; Z of that one
                    // likewise.
                    self.write(flags | IS_CONTINUED, false, emit);
                    (flags, room) = (CONTINUES, self.limit - HEADER);
                }
            }
        }
        self.write(flags, true, emit);
        self.obus.len() + 4 * self.ends.len()
    }

    /// Takes the OBUs that are sent, without their sizes (section 5: elements have lengths of their own).
    fn take<'a>(&mut self, units: impl IntoIterator<Item = &'a [u8]>) {
        self.obus.clear();
        self.ends.clear();
        for obu in units {
            let (Some(&first), Some(payload)) = (obu.first(), obu_payload(obu)) else { continue };
            if is_ignored(first) {
                continue;
            }
            self.obus.push(first & !0x02);
            if first & 0x04 != 0 {
                self.obus.extend(obu.get(1));
            }
            self.obus.extend_from_slice(payload);
            self.ends.push(self.obus.len());
        }
    }

    fn write(&mut self, flags: u8, last: bool, emit: &mut impl FnMut(&[u8], bool)) {
        let Some((&final_element, others)) = self.elements.split_last() else { return };
        let count = self.elements.len();
        let is_counted = count <= MOST_COUNTED;
        self.payload.clear();
        self.payload.push(flags | if is_counted { (count as u8) << 4 } else { 0 });
        for (begin, end) in others {
            append_leb128(end - begin, &mut self.payload);
            self.payload.extend_from_slice(&self.obus[*begin..*end]);
        }
        let (begin, end) = final_element;
        if !is_counted {
            append_leb128(end - begin, &mut self.payload);
        }
        self.payload.extend_from_slice(&self.obus[begin..end]);
        self.elements.clear();
        emit(&self.payload, last);
    }
}

/// A number of the variable length of AV1 section 4.10.5.
pub(super) fn append_leb128(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
