//! The arrival of every packet of a transport, reported for the sender's bandwidth estimation (transport-wide
//! congestion control). Memory is bounded; a packet costs one store.

use weir_metrics::Moment;

use crate::rtcp::{TICK_MICROS, append_transport_feedback};

/// How many packets are remembered.
const WINDOW: usize = 2048;

/// The recorder of one transport.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// Ticks of 250 µs by number, around; empty until the first packet.
    arrivals: Vec<Option<i64>>,
    /// The first number that was not reported, and one above the highest.
    next: u64,
    end: u64,
    number: u8,
}

impl Recorder {
    /// Nothing came.
    pub fn new() -> Self {
        Self { arrivals: Vec::new(), next: 0, end: 0, number: 0 }
    }

    /// The packet with this transport sequence number came. The first arrival of a number counts.
    pub fn arrive(&mut self, now: Moment, sequence_number: u16) {
        if self.arrivals.is_empty() {
            self.arrivals = vec![None; WINDOW];
            self.next = (1 << 16) + u64::from(sequence_number);
            self.end = self.next;
        }
        let ahead = sequence_number.wrapping_sub(self.end as u16) as i16;
        let Some(number) = self.end.checked_add_signed(ahead.into()) else { return };
        if number >= self.end {
            // What is skipped, and what leaves the window, did not come.
            for skipped in self.end.max((number + 1).saturating_sub(WINDOW as u64))..=number {
                self.arrivals[skipped as usize % WINDOW] = None;
            }
            self.end = number + 1;
            self.next = self.next.max(self.end.saturating_sub(WINDOW as u64));
        } else if number + WINDOW as u64 <= self.end {
            return;
        }
        let arrival = &mut self.arrivals[number as usize % WINDOW];
        if arrival.is_none() {
            *arrival = Some(ticks(now));
            // What was reported as missing is reported again.
            self.next = self.next.min(number);
        }
    }

    /// Appends the feedback packets on all that came since the last time, by this moment. Nothing when nothing came.
    pub fn append(&mut self, by: Moment, sender: u32, media: u32, out: &mut Vec<u8>) {
        let (mut row, by) = (Vec::new(), ticks(by));
        while self.next < self.end {
            row.clear();
            let arrivals = (self.next..self.end).map(|number| self.arrivals[number as usize % WINDOW]);
            row.extend(arrivals.take_while(|arrival| arrival.is_none_or(|ticks| ticks <= by)));
            let base = self.next as u16;
            let reported = append_transport_feedback((sender, media), self.number, base, &row, out);
            if reported == 0 {
                return;
            }
            self.number = self.number.wrapping_add(1);
            self.next += reported as u64;
        }
    }

    /// Whether packets are left to report: those that come later than the last report says, out of the queue of a modelled link.
    pub fn has_more(&self) -> bool {
        self.next < self.end
    }
}

/// A moment in ticks of the reports.
fn ticks(moment: Moment) -> i64 {
    moment.as_nanos() as i64 / 1000 / TICK_MICROS
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Compound, Packet};
    use proptest::prelude::*;

    fn at(micros: i64) -> Moment {
        Moment::from_nanos(micros as u64 * 1000)
    }

    /// What the feedback says: number and ticks of what arrived.
    fn reported(recorder: &mut Recorder) -> Vec<(u16, i64)> {
        reported_by(recorder, Moment::from_nanos(i64::MAX as u64))
    }

    fn reported_by(recorder: &mut Recorder, by: Moment) -> Vec<(u16, i64)> {
        let mut bytes = Vec::new();
        recorder.append(by, 1, 2, &mut bytes);
        let mut arrivals = Vec::new();
        for packet in Compound::new(&bytes) {
            let Ok(Packet::TransportFeedback(feedback)) = packet else { panic!("{packet:?}") };
            let absolute = |ticks| feedback.reference_ticks + ticks;
            arrivals.extend(
                feedback
                    .statuses()
                    .filter_map(|status| Some((status.sequence_number, absolute(status.ticks?)))),
            );
        }
        arrivals
    }

    #[test]
    fn every_arrival_is_reported_once_and_late_ones_later() {
        let mut recorder = Recorder::new();
        recorder.arrive(at(1_000_000), 65_534);
        recorder.arrive(at(1_010_000), 0);
        recorder.arrive(at(1_010_000), 0);
        assert_eq!(reported(&mut recorder), [(65_534, 4000), (0, 4040)]);
        assert_eq!(reported(&mut recorder), []);
        recorder.arrive(at(1_020_000), 65_535);
        // What came in between is reported again, which senders ignore.
        assert_eq!(reported(&mut recorder), [(65_535, 4080), (0, 4040)]);
    }

    #[test]
    fn what_is_still_in_a_queue_is_reported_when_it_has_come() {
        let mut recorder = Recorder::new();
        for (micros, number) in [(1_000_000, 7), (1_040_000, 8), (1_080_000, 10)] {
            recorder.arrive(at(micros), number);
        }
        assert_eq!(reported_by(&mut recorder, at(1_050_000)), [(7, 4000), (8, 4160)]);
        assert!(recorder.has_more());
        assert_eq!(reported_by(&mut recorder, at(1_060_000)), []);
        assert_eq!(reported_by(&mut recorder, at(1_080_000)), [(10, 4320)]);
        assert!(!recorder.has_more());
    }

    proptest! {
        #[test]
        fn all_that_comes_within_the_window_is_told(
            start: u16, steps in prop::collection::vec((1u16..40, 0i64..30_000), 1..200), often in 1usize..50,
        ) {
            let mut recorder = Recorder::new();
            let (mut number, mut now) = (start, 5_000_000);
            let (mut came, mut told) = (Vec::new(), Vec::new());
            for (at_step, (step, wait)) in steps.into_iter().enumerate() {
                number = number.wrapping_add(step);
                now += wait;
                recorder.arrive(at(now), number);
                came.push((number, now / TICK_MICROS));
                if at_step % often == 0 {
                    told.extend(reported(&mut recorder));
                }
            }
            told.extend(reported(&mut recorder));
            prop_assert_eq!(told, came);
        }

        #[test]
        fn any_numbers_are_taken_without_harm(numbers in prop::collection::vec(any::<u16>(), 0..100)) {
            let mut recorder = Recorder::new();
            for (at_step, number) in numbers.into_iter().enumerate() {
                recorder.arrive(at(at_step as i64 * 1000), number);
                let mut bytes = Vec::new();
                recorder.append(at(at_step as i64 * 1000), 1, 2, &mut bytes);
                prop_assert!(Compound::new(&bytes).all(|packet| packet.is_ok()));
            }
        }
    }
}
