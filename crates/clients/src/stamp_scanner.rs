//! Clock stamps in bytes of any container: their pattern is long enough to be found without reading what is around it.

use crate::host_clock::{HostClock, UNKNOWN_OFFSET, record_latency};
use weir_media::{STAMP_LEN, STAMP_UUID, Stamp};
use weir_metrics::{Moment, Recorder};

/// What stands in a stamp's NAL unit before the UUID: its header, the type and the length of the payload.
const BEFORE_UUID: usize = 3;

/// Looks for stamps in what comes, piece by piece. One that a container cuts in two (a packet of a transport stream may) is not found.
#[derive(Debug, Default)]
pub struct StampScanner {
    /// The last bytes, which may be the beginning of one.
    rest: Vec<u8>,
}

impl StampScanner {
    /// Takes the next bytes, which were read at `now`, and records the latency of each stamp that ends in them.
    pub fn take(&mut self, bytes: &[u8], now: Moment, clock: &HostClock, recorder: &mut Recorder) {
        self.scan(bytes, |stamp| {
            record_latency(recorder, stamp.latency(&clock.at(now), UNKNOWN_OFFSET));
        });
    }

    /// What comes next has nothing to do with what came.
    pub fn reset(&mut self) {
        self.rest.clear();
    }

    fn scan(&mut self, bytes: &[u8], mut each: impl FnMut(&Stamp)) {
        // A stamp that began in the bytes before ends within the first ones of these.
        let joint = self.rest.len();
        self.rest.extend_from_slice(&bytes[..bytes.len().min(STAMP_LEN - 1)]);
        find(&self.rest, &mut |end, stamp| {
            if end > joint {
                each(stamp);
            }
        });
        if bytes.len() >= STAMP_LEN {
            find(bytes, &mut |end, stamp| {
                // Those that end there were found above.
                if end >= STAMP_LEN {
                    each(stamp);
                }
            });
            self.rest.clear();
            self.rest.extend_from_slice(&bytes[bytes.len() - (STAMP_LEN - 1)..]);
        } else {
            let surplus = self.rest.len().saturating_sub(STAMP_LEN - 1);
            self.rest.drain(..surplus);
        }
    }
}

/// Calls `each` with each stamp, and where it ends.
fn find(bytes: &[u8], each: &mut impl FnMut(usize, &Stamp)) {
    let last = (bytes.len() + BEFORE_UUID).saturating_sub(STAMP_LEN);
    let mut at = BEFORE_UUID;
    while at <= last {
        let Some(found) = bytes[at..].iter().position(|byte| *byte == STAMP_UUID[0]) else { return };
        at += found;
        let begin = at - BEFORE_UUID;
        if bytes[at..].starts_with(&STAMP_UUID)
            && let Some(unit) = bytes.get(begin..begin + STAMP_LEN)
            && let Some(stamp) = Stamp::from_nal(unit)
        {
            each(begin + STAMP_LEN, &stamp);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_media::ClockReading;

    fn stamp(sequence_number: u32) -> Stamp {
        let captured = ClockReading { boot_id: [7; 16], monotonic_nanos: 5, wall_nanos: 6 };
        Stamp { captured, sequence_number }
    }

    proptest! {
        #[test]
        fn each_stamp_is_found_once_however_its_bytes_come(
            gaps in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![0, 1, 5, 6, b'w', b'e', b'i']), 0..90), 1..6),
            cuts in prop::collection::vec(1_usize..150, 0..12),
        ) {
            let mut bytes = Vec::new();
            for (number, gap) in (0..).zip(&gaps) {
                bytes.extend_from_slice(gap);
                bytes.extend_from_slice(&stamp(number).to_nal());
            }
            bytes.extend_from_slice(&gaps[0]);
            let (mut scanner, mut found, mut rest) = (StampScanner::default(), Vec::new(), &bytes[..]);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                scanner.scan(piece, |stamp| found.push(stamp.sequence_number));
                rest = behind;
            }
            prop_assert_eq!(found, (0..gaps.len() as u32).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_before_has_nothing_to_do_with_another_segment() {
        let nal = stamp(1).to_nal();
        let (mut scanner, mut found) = (StampScanner::default(), 0);
        scanner.scan(&nal[..30], |_| found += 1);
        scanner.reset();
        scanner.scan(&nal[30..], |_| found += 1);
        assert_eq!(found, 0);
    }
}
