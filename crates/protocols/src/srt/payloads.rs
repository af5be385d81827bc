//! How packets of a transport stream are put together into payloads of datagrams.

use std::time::Duration;
use weir_metrics::Moment;

/// How long packets of sound wait for others with which they fill a payload: less than the lead that frames have before their decoding
/// time, and the way from picture to picture at 25 a second, with which they leave in one system call.
const REST_WAITS: Duration = Duration::from_millis(40);

/// Packets that are due, up to the payload that they fill.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    packets: Vec<u8>,
    /// Bytes of a payload.
    length: usize,
    /// When what fills no payload leaves all the same.
    rest_leaves: Option<Moment>,
}

impl Payloads {
    /// Of this length at the most.
    pub(super) fn new(length: usize) -> Self {
        Self { packets: Vec::new(), length, rest_leaves: None }
    }

    /// Where packets are appended.
    pub(super) fn packets(&mut self) -> &mut Vec<u8> {
        &mut self.packets
    }

    /// Hands out the payloads that leave after packets were appended. A picture waits for nothing, and takes with it what waits.
    pub(super) fn leave(&mut self, with_picture: bool, now: Moment, send: &mut impl FnMut(&[u8])) {
        let whole = self.packets.len() - self.packets.len() % self.length.max(1);
        let leaving = if with_picture { self.packets.len() } else { whole };
        self.send(leaving, send);
        self.rest_leaves = match self.rest_leaves {
            _ if self.packets.is_empty() => None,
            Some(at) if leaving == 0 => Some(at),
            _ => Some(now + REST_WAITS),
        };
    }

    /// Hands out what has waited as long as it may.
    pub(super) fn leave_late(&mut self, now: Moment, send: &mut impl FnMut(&[u8])) {
        if self.rest_leaves.is_some_and(|at| at <= now) {
            self.send(self.packets.len(), send);
            self.rest_leaves = None;
        }
    }

    /// When [`Payloads::leave_late`] has something to do.
    pub(super) fn due(&self) -> Option<Moment> {
        self.rest_leaves
    }

    fn send(&mut self, bytes: usize, send: &mut impl FnMut(&[u8])) {
        self.packets[..bytes].chunks(self.length.max(1)).for_each(send);
        self.packets.drain(..bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000);

    fn at(millis: u64) -> Moment {
        START + Duration::from_millis(millis)
    }

    /// Lengths of the payloads that leave, in packets.
    fn left(payloads: &mut Payloads, packets: usize, with_picture: bool, now: Moment) -> Vec<usize> {
        let mut lengths = Vec::new();
        payloads.packets().extend(vec![0; packets * 188]);
        payloads.leave(with_picture, now, &mut |payload| lengths.push(payload.len() / 188));
        payloads.leave_late(now, &mut |payload| lengths.push(payload.len() / 188));
        lengths
    }

    #[test]
    fn sound_waits_for_a_picture_for_a_full_payload_or_until_it_is_time() {
        let mut payloads = Payloads::new(7 * 188);
        assert!(left(&mut payloads, 3, false, at(0)).is_empty());
        assert_eq!(payloads.due(), Some(at(40)));
        assert_eq!(left(&mut payloads, 9, true, at(21)), [7, 5], "the picture takes it along");
        assert_eq!(payloads.due(), None);
        // What fills a payload leaves, and the rest has a time of its own.
        assert!(left(&mut payloads, 3, false, at(40)).is_empty());
        assert!(left(&mut payloads, 3, false, at(61)).is_empty());
        assert_eq!(left(&mut payloads, 3, false, at(70)), [7]);
        assert_eq!(payloads.due(), Some(at(110)));
        assert_eq!(left(&mut payloads, 0, false, at(109)), [0; 0]);
        assert_eq!(left(&mut payloads, 0, false, at(110)), [2]);
        assert_eq!(payloads.due(), None);
    }

    #[test]
    fn whole_payloads_leave_no_rest() {
        let mut payloads = Payloads::new(7 * 188);
        assert_eq!(left(&mut payloads, 14, false, at(0)), [7, 7]);
        assert_eq!((payloads.due(), left(&mut payloads, 0, true, at(1)).len()), (None, 0));
    }
}
