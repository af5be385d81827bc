//! Puts packets on a link, many in one write, and remembers the one that was cut.

use super::packet::Packet;
use crate::counts::Tally;
use std::io::IoSlice;

/// A link's sending end: whole packets, whatever the link takes at a time.
#[derive(Debug, Default)]
pub(crate) struct Outlet {
    /// A packet that the link has taken a part of, and how much.
    cut: Option<(Packet, usize)>,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// How many of the packets are under way, the one that was cut included.
    pub(crate) packets: usize,
    /// Bytes that the link took.
    pub(crate) bytes: usize,
    /// The packets whose last byte the link took now.
    pub(crate) sent: Tally,
    /// Whether the link took everything.
    pub(crate) whole: bool,
}

impl Outlet {
    /// Packets that one write takes at most. The kernel's own limit is 1,024.
    pub(crate) const BATCH: usize = 128;

    /// Writes what is left of a cut packet and then `packets`, at most [`Self::BATCH`].
    pub(crate) fn write(
        &mut self,
        packets: &[Option<&Packet>],
        sink: &mut dyn FnMut(&[IoSlice<'_>]) -> usize,
    ) -> Written {
        let mut slices = [IoSlice::new(&[]); Self::BATCH + 1];
        let rest = self.rest();
        slices[0] = IoSlice::new(rest);
        let mut asked = rest.len();
        let mut count = 0;
        for (slice, packet) in slices[1..].iter_mut().zip(packets.iter().flatten()) {
            *slice = IoSlice::new(&packet.bytes);
            asked += packet.len();
            count += 1;
        }
        let bytes = if asked == 0 { 0 } else { sink(&slices[usize::from(rest.is_empty())..=count]) };
        self.account(packets, bytes, bytes == asked)
    }

    /// The bytes that are left of a cut packet.
    fn rest(&self) -> &[u8] {
        self.cut.as_ref().map_or(&[], |(packet, sent)| &packet.bytes[*sent..])
    }

    /// Notes that the link took so many bytes.
    fn account(&mut self, packets: &[Option<&Packet>], bytes: usize, whole: bool) -> Written {
        let mut written = Written { packets: 0, bytes, sent: Tally::default(), whole };
        let mut left = bytes;
        if let Some((packet, sent)) = &mut self.cut {
            let taken = left.min(packet.len() - *sent);
            *sent += taken;
            left -= taken;
            if *sent < packet.len() {
                return written;
            }
            written.sent.count(packet);
            self.cut = None;
        }
        for packet in packets.iter().flatten() {
            if left == 0 && packet.len() > 0 {
                break;
            }
            written.packets += 1;
            if left < packet.len() {
                self.cut = Some(((*packet).clone(), left));
                break;
            }
            left -= packet.len();
            written.sent.count(packet);
        }
        written
    }

    /// Hands out the rest of a cut packet, for what else has to be sent on the link.
    pub(crate) fn take_rest(&mut self) -> Option<(Packet, usize)> {
        self.cut.take()
    }

    /// The packet that is half sent.
    pub(crate) fn cut(&self) -> Option<&Packet> {
        self.cut.as_ref().map(|(packet, _)| packet)
    }
}
