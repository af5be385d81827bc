//! Access units into payloads.

use super::{FRAGMENT_END, FRAGMENT_START, REFERENCE, kind};

/// The least payload that makes sense: an FU-A of one byte.
const LEAST: usize = 3;

/// Cuts access units into payloads of a bounded length. Keeps its buffer.
#[derive(Clone, Debug)]
pub struct Packetiser {
    limit: usize,
    payload: Vec<u8>,
}

impl Packetiser {
    /// Payloads of up to `limit` bytes; at least 3, and no more than 65,535.
    pub fn new(limit: usize) -> Self {
        let limit = limit.clamp(LEAST, usize::from(u16::MAX));
        Self { limit, payload: Vec::with_capacity(limit) }
    }

    /// Cuts one access unit, given as its NAL units without start codes and lengths. `emit` gets each payload, and
    /// whether it is the last: the one that has the marker. Small units that follow each other share a payload.
    pub fn packetise<'a>(
        &mut self,
        units: impl IntoIterator<Item = &'a [u8]>,
        mut emit: impl FnMut(&[u8], bool),
    ) {
        let mut units = units.into_iter().filter(|unit| !unit.is_empty()).peekable();
        while let Some(unit) = units.next() {
            let room = self.limit.saturating_sub(1 + 2 + unit.len() + 2);
            if units.peek().is_some_and(|next| next.len() <= room) {
                self.payload.clear();
                self.payload.push(kind::STAP_A);
                self.aggregate(unit);
                while let Some(next) = units.next_if(|next| self.payload.len() + 2 + next.len() <= self.limit)
                {
                    self.aggregate(next);
                }
                emit(&self.payload, units.peek().is_none());
            } else if unit.len() <= self.limit {
                emit(unit, units.peek().is_none());
            } else {
                self.fragment(unit, units.peek().is_none(), &mut emit);
            }
        }
    }

    fn aggregate(&mut self, unit: &[u8]) {
        // nal_ref_idc of the whole is the highest of its parts, and so its forbidden bit (section 5.7).
        self.payload[0] = self.payload[0] & kind::MASK
            | (self.payload[0] & 0x80 | unit[0] & 0x80)
            | (self.payload[0] & 0x60).max(unit[0] & 0x60);
        self.payload.extend((unit.len() as u16).to_be_bytes());
        self.payload.extend_from_slice(unit);
    }

    fn fragment(&mut self, unit: &[u8], last: bool, emit: &mut impl FnMut(&[u8], bool)) {
        let (header, body) = (unit[0], &unit[1..]);
        // Parts of about the same length: the last one is not a stub.
        let parts = body.len().div_ceil(self.limit - 2);
        let length = body.len().div_ceil(parts);
        let mut rest = body;
        while !rest.is_empty() {
            let part;
            (part, rest) = rest.split_at(length.min(rest.len()));
            let start = if part.as_ptr() == body.as_ptr() { FRAGMENT_START } else { 0 };
            let end = if rest.is_empty() { FRAGMENT_END } else { 0 };
            self.payload.clear();
            self.payload.extend([header & REFERENCE | kind::FU_A, start | end | header & kind::MASK]);
            self.payload.extend_from_slice(part);
            emit(&self.payload, last && rest.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Payload;
    use super::*;
    use proptest::prelude::*;

    fn packetise(units: &[&[u8]], limit: usize) -> Vec<(Vec<u8>, bool)> {
        let mut payloads = Vec::new();
        Packetiser::new(limit).packetise(units.iter().copied(), |payload, last| {
            payloads.push((payload.to_vec(), last));
        });
        payloads
    }

    #[test]
    fn small_units_share_a_payload_and_a_large_one_is_cut() {
        let (delimiter, parameters, slice) = (&[9u8, 0x10][..], &[0x67u8; 6][..], &[0x65u8; 45][..]);
        let payloads = packetise(&[delimiter, parameters, slice], 20);
        let first = [&[0x78, 0, 2][..], delimiter, &[0, 6], parameters].concat();
        assert_eq!(payloads[0], (first, false));
        let lengths: Vec<_> = payloads[1..].iter().map(|(payload, last)| (payload.len(), *last)).collect();
        assert_eq!(lengths, [(17, false), (17, false), (16, true)]);
        let headers: Vec<_> = payloads[1..].iter().map(|(payload, _)| (payload[0], payload[1])).collect();
        assert_eq!(headers, [(0x7C, 0x85), (0x7C, 0x05), (0x7C, 0x45)]);
    }

    proptest! {
        #[test]
        fn units_come_out_as_they_went_in_and_no_payload_is_too_long(
            units in prop::collection::vec((1u8..24, prop::collection::vec(any::<u8>(), 0..120)), 1..8),
            limit in 3usize..150,
        ) {
            let units: Vec<Vec<u8>> = units.into_iter().map(|(kind, rest)| [&[0x60 | kind][..], &rest].concat()).collect();
            let slices: Vec<&[u8]> = units.iter().map(Vec::as_slice).collect();
            let payloads = packetise(&slices, limit);
            let mut read: Vec<Vec<u8>> = Vec::new();
            for (at, (payload, last)) in payloads.iter().enumerate() {
                prop_assert!(payload.len() <= limit);
                prop_assert_eq!(*last, at + 1 == payloads.len());
                match Payload::parse(payload).unwrap() {
                    Payload::Single(unit) => read.push(unit.to_vec()),
                    Payload::Aggregate(parts) => read.extend(parts.map(<[u8]>::to_vec)),
                    Payload::Fragment { header, start, bytes, .. } => {
                        if start {
                            read.push(vec![header]);
                        }
                        read.last_mut().unwrap().extend(bytes);
                    }
                }
            }
            prop_assert_eq!(read, units);
        }
    }
}
