//! NAL units of H.265 (RFC 7798): alone, several in an aggregation packet, or in fragments.

use super::parts;
use crate::h265::{FRAGMENT_END, FRAGMENT_START, kind, unit_type, with_type};

/// Bytes of a NAL unit's header, and of a payload's.
pub(super) const HEADER: usize = 2;

/// Cuts access units.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    limit: usize,
    payload: Vec<u8>,
}

impl Writer {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, payload: Vec::with_capacity(limit) }
    }

    /// Units are `HEADER` bytes long at the least.
    pub(super) fn packetise<'a>(
        &mut self,
        units: impl Iterator<Item = &'a [u8]>,
        emit: &mut impl FnMut(&[u8], bool),
    ) {
        let mut units = units.peekable();
        while let Some(unit) = units.next() {
            let room = self.limit.saturating_sub(HEADER + 2 + unit.len() + 2);
            if units.peek().is_some_and(|next| next.len() <= room) {
                self.payload.clear();
                self.payload.extend([with_type(unit[0], kind::AGGREGATION), unit[1]]);
                self.aggregate(unit);
                while let Some(next) = units.next_if(|next| self.payload.len() + 2 + next.len() <= self.limit)
                {
                    self.aggregate(next);
                }
                emit(&self.payload, units.peek().is_none());
            } else if unit.len() <= self.limit {
                emit(unit, units.peek().is_none());
            } else {
                self.fragment(unit, units.peek().is_none(), emit);
            }
        }
    }

    /// Section 4.4.2: the forbidden bit is set where that of any is; layer and TID are the lowest of all.
    fn aggregate(&mut self, unit: &[u8]) {
        let layer_and_time = |header: &[u8]| (header[0] & 1, header[1] >> 3, header[1] & 0x07);
        let (whole, this) = (layer_and_time(&self.payload), layer_and_time(unit));
        let (high, low) = (whole.0, whole.1).min((this.0, this.1));
        self.payload[0] = with_type((self.payload[0] | unit[0]) & 0x80 | high, kind::AGGREGATION);
        self.payload[1] = low << 3 | whole.2.min(this.2);
        self.payload.extend((unit.len() as u16).to_be_bytes());
        self.payload.extend_from_slice(unit);
    }

    /// Section 4.4.3.
    fn fragment(&mut self, unit: &[u8], last: bool, emit: &mut impl FnMut(&[u8], bool)) {
        let (header, body) = unit.split_at(HEADER);
        let mut parts = parts(body, self.limit - HEADER - 1).peekable();
        let mut start = FRAGMENT_START;
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let end = if is_last { FRAGMENT_END } else { 0 };
            self.payload.clear();
            let flags = start | end | unit_type(header[0]);
            self.payload.extend([with_type(header[0], kind::FRAGMENT), header[1], flags]);
            self.payload.extend_from_slice(part);
            emit(&self.payload, last && is_last);
            start = 0;
        }
    }
}
