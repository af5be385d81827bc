//! What viewers that are sent to together are sent, in one piece.

use super::log::Log;
use super::packet::View;
use super::written::{BATCH, WriteOutcome};
use crate::counts::UnitCounts;

/// Packets that are longer than this on the average are not worth a copy.
const SHORT: u64 = 2_048;

/// Successive packets of a log, side by side. Viewers whose turn it is are usually at the same place: the first is
/// sent packet by packet, and for the others the piece is made. The kernel takes one slice at half the cost of
/// twenty-five.
#[derive(Debug, Default)]
pub(crate) struct JoinedPackets {
    /// What was asked for last.
    from: u64,
    to: u64,
    view: View,
    bytes: Vec<u8>,
    sent: UnitCounts,
}

impl JoinedPackets {
    /// The packets from `from` on, as many as one write takes; `None` if they had better go one by one. Says as well
    /// what it comes to if the link takes all of it.
    pub(crate) fn of(&mut self, log: &Log, from: u64, view: View) -> Option<(&[u8], WriteOutcome)> {
        let to = log.end().min(from + BATCH as u64);
        if to < from + 2 || log.before(to).bytes - log.before(from).bytes > (to - from) * SHORT {
            return None;
        }
        // A packet's number never stands for another one.
        if (self.from, self.to, self.view) != (from, to, view) {
            (self.from, self.to, self.view) = (from, to, view);
            self.bytes.clear();
            return None;
        }
        let packets = (to - from) as usize;
        if self.bytes.is_empty() {
            self.sent = UnitCounts::default();
            for entry in log.from(from).take(packets) {
                let bytes = entry.packet.view(view);
                self.sent.count_part(&entry.packet, 0..bytes.len(), bytes.len());
                self.bytes.extend_from_slice(bytes);
            }
        }
        let written = WriteOutcome { packets, bytes: self.bytes.len(), sent: self.sent, whole: true };
        (!self.bytes.is_empty()).then_some((&self.bytes, written))
    }
}
