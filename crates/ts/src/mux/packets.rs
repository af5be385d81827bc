//! Cuts sections and PES packets into packets of one PID, with its continuity counter.

use crate::packet::{PACKET_LENGTH, Pcr, SYNC_BYTE};

/// What the adaptation field of the next packet says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) pcr: Option<Pcr>,
    pub(super) random_access: bool,
}

impl Field {
    /// Length of the field with its length byte.
    fn len(self) -> usize {
        match self {
            Self { pcr: Some(_), .. } => 8,
            Self { random_access: true, .. } => 2,
            _ => 0,
        }
    }
}

/// The packets of one PID.
#[derive(Clone, Debug)]
pub struct Packetiser {
    pid: u16,
    counter: u8,
}

impl Packetiser {
    /// Packets of this PID; the first has the continuity counter 0.
    pub fn new(pid: u16) -> Self {
        Self { pid, counter: 15 }
    }

    /// Appends a section, behind a pointer of zero, stuffed to whole packets (section 2.4.4.1).
    pub fn section(&mut self, section: &[u8], out: &mut Vec<u8>) {
        let mut rest = section;
        let mut start = true;
        while !rest.is_empty() {
            let room = 184 - usize::from(start);
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.counter = (self.counter + 1) & 15;
            let [high, low] = self.pid.to_be_bytes();
            let begin = out.len();
            out.extend([SYNC_BYTE, high | u8::from(start) << 6, low, 0x10 | self.counter]);
            if start {
                out.push(0);
            }
            out.extend(now);
            out.resize(begin + PACKET_LENGTH, 0xFF);
            rest = later;
            start = false;
        }
    }

    /// Appends one packet with as much of `payload` as fits, which is taken off its front.
    pub(super) fn packet(&mut self, start: bool, field: Field, payload: &mut Pieces<'_>, out: &mut Vec<u8>) {
        let room = 184 - field.len();
        let taken = payload.len().min(room);
        let filled = field.len() + room - taken;
        if taken > 0 {
            self.counter = (self.counter + 1) & 15;
        }
        let [high, low] = self.pid.to_be_bytes();
        let control = u8::from(filled > 0) << 5 | u8::from(taken > 0) << 4;
        out.extend([SYNC_BYTE, high | u8::from(start) << 6, low, control | self.counter]);
        if let Some(length) = filled.checked_sub(1) {
            out.push(length as u8);
            let end = out.len() + length;
            if length > 0 {
                out.push(u8::from(field.random_access) << 6 | u8::from(field.pcr.is_some()) << 4);
            }
            if let Some(pcr) = field.pcr {
                out.extend(pcr.write());
            }
            out.resize(end, 0xFF);
        }
        payload.take(taken, out);
    }
}

/// A payload that lies in several places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces<'a>(pub(super) [&'a [u8]; 3]);

impl Pieces<'_> {
    pub(super) const NONE: Pieces<'static> = Pieces([&[]; 3]);

    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|piece| piece.len()).sum()
    }

    fn take(&mut self, mut count: usize, out: &mut Vec<u8>) {
        for piece in &mut self.0 {
            let (now, later) = piece.split_at(count.min(piece.len()));
            out.extend(now);
            *piece = later;
            count -= now.len();
        }
    }
}
