//! Puts packets on a link, many in one write, and remembers the one that was cut.

use super::cursor::Cursor;
use super::joined::JoinedPackets;
use super::log::Log;
use super::packet::{Packet, View};
use super::written::{BATCH, WriteOutcome};
use crate::counts::UnitCounts;
use std::io::IoSlice;

/// A link's sending end: whole packets, whatever the link takes at a time.
#[derive(Debug, Default)]
pub(crate) struct Outlet {
    /// What of each packet the link wants.
    view: View,
    /// A packet that the link has taken a part of, and how much.
    cut: Option<(Packet, usize)>,
}

impl Outlet {
    pub(crate) fn new(view: View) -> Self {
        Self { view, cut: None }
    }

    /// Writes what comes next for a viewer of a log, at most [`BATCH`] packets, and says how many those were.
    pub(crate) fn write_next(
        &mut self,
        log: &Log,
        cursor: &mut Cursor,
        joined: &mut JoinedPackets,
        sink: &mut dyn FnMut(&[IoSlice<'_>]) -> usize,
    ) -> (WriteOutcome, usize) {
        let mut next = [None; BATCH];
        let from = cursor.number().filter(|_| self.cut.is_none());
        let (written, offered) = match from.and_then(|from| joined.of(log, from, self.view)) {
            Some((piece, whole)) => match sink(&[IoSlice::new(piece)]) {
                bytes if bytes == piece.len() => (whole, whole.packets),
                bytes => {
                    let gathered = cursor.gather(log, &mut next);
                    (self.account(&next[..gathered], bytes, false), gathered)
                }
            },
            None => {
                let gathered = cursor.gather(log, &mut next);
                (self.write(&next[..gathered], sink), gathered)
            }
        };
        cursor.advance(log, written.packets);
        (written, offered)
    }

    /// Writes what is left of a cut packet and then `packets`, at most [`BATCH`].
    pub(crate) fn write(
        &mut self,
        packets: &[Option<&Packet>],
        sink: &mut dyn FnMut(&[IoSlice<'_>]) -> usize,
    ) -> WriteOutcome {
        let mut slices = [IoSlice::new(&[]); BATCH + 1];
        let rest = self.rest();
        slices[0] = IoSlice::new(rest);
        let mut asked = rest.len();
        let mut count = 0;
        for (slice, packet) in slices[1..].iter_mut().zip(packets.iter().flatten()) {
            let bytes = packet.view(self.view);
            *slice = IoSlice::new(bytes);
            asked += bytes.len();
            count += 1;
        }
        let bytes = if asked == 0 { 0 } else { sink(&slices[usize::from(rest.is_empty())..=count]) };
        self.account(packets, bytes, bytes == asked)
    }

    /// The bytes that are left of a cut packet.
    fn rest(&self) -> &[u8] {
        self.cut.as_ref().map_or(&[], |(packet, sent)| &packet.view(self.view)[*sent..])
    }

    /// Notes that the link took `bytes`.
    fn account(&mut self, packets: &[Option<&Packet>], bytes: usize, whole: bool) -> WriteOutcome {
        let mut written = WriteOutcome { packets: 0, bytes, sent: UnitCounts::default(), whole };
        let mut left = bytes;
        if let Some((packet, sent)) = &mut self.cut {
            let length = packet.view(self.view).len();
            let taken = left.min(length - *sent);
            written.sent.count_part(packet, *sent..*sent + taken, length);
            *sent += taken;
            left -= taken;
            if *sent < length {
                return written;
            }
            self.cut = None;
        }
        for packet in packets.iter().flatten() {
            let length = packet.view(self.view).len();
            if left == 0 && length > 0 {
                break;
            }
            written.packets += 1;
            written.sent.count_part(packet, 0..left.min(length), length);
            if left < length {
                self.cut = Some(((*packet).clone(), left));
                break;
            }
            left -= length;
        }
        written
    }

    /// Hands the rest of a cut packet to `send`, for what else has to be sent on the link. Says what that was.
    pub(crate) fn send_rest(&mut self, send: impl FnOnce(&[u8])) -> (usize, UnitCounts) {
        let mut counts = UnitCounts::default();
        let Some((packet, sent)) = self.cut.take() else { return (0, counts) };
        let bytes = packet.view(self.view);
        send(&bytes[sent..]);
        counts.count_part(&packet, sent..bytes.len(), bytes.len());
        (bytes.len() - sent, counts)
    }

    /// The packet that is half sent.
    pub(crate) fn cut(&self) -> Option<&Packet> {
        self.cut.as_ref().map(|(packet, _)| packet)
    }
}
