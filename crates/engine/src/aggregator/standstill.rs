//! For how long weir stood still, over the whole run: what windows leave out counts as well.

use crate::verdict::PAUSE_SECONDS;
use weir_metrics::common::TURN_LAG;
use weir_metrics::{Interval, Unit};

/// The shortest pause that counts: from there on what came meanwhile is called late.
const SHORTEST_SECONDS: f64 = 0.1;

/// Long pauses that are kept, at the least; of a run with more, the longest.
const MOST_PAUSES: usize = 10_000;

/// The pauses of weir's generator threads.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// The latest second, and its longest pause: each workload has those of all threads.
    latest: (u32, f64),
    /// The longest pauses of the seconds before it, together.
    before: f64,
    /// Where those lay, in seconds of the run, after which a stall would be weir's own.
    pauses: Vec<(f64, f64)>,
}

impl Standstill {
    /// Adds a workload's second. Of several seconds that are one interval the longest pause alone is known.
    pub(super) fn add(&mut self, interval: &Interval) {
        let pause = interval.level_of(TURN_LAG).max as f64 * Unit::Micros.scale();
        if pause < SHORTEST_SECONDS {
            return;
        }
        let (second, longest) = &mut self.latest;
        if *second == interval.key.second {
            *longest = longest.max(pause);
        } else {
            self.before += *longest;
            self.latest = (interval.key.second, pause);
        }
        if pause >= PAUSE_SECONDS {
            self.pauses.push((f64::from(interval.key.second) - pause, interval.end().into()));
            self.keep_longest();
        }
    }

    /// Forgets the shortest of more than twice as many.
    fn keep_longest(&mut self) {
        if self.pauses.len() > 2 * MOST_PAUSES {
            let length = |(begin, end): &(f64, f64)| end - begin;
            self.pauses.sort_by(|a, b| length(b).total_cmp(&length(a)));
            self.pauses.truncate(MOST_PAUSES);
        }
    }

    /// All pauses together, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.before + self.latest.1
    }

    /// The stretches, in seconds of the run, in which a generator thread did not read what came.
    pub(super) fn pauses(&self) -> impl Iterator<Item = (f64, f64)> {
        self.pauses.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::{IntervalKey, Recorder, Schema};

    #[test]
    fn each_second_counts_once_by_its_longest_pause() {
        let mut standstill = Standstill::default();
        let pauses = [(0, 0, 90), (1, 0, 300), (1, 1, 1_200), (2, 0, 150), (5, 1, 4_000), (5, 0, 4_000)];
        for (second, workload, millis) in pauses {
            let mut figures = Recorder::new(Schema::new(&[]));
            figures.set(TURN_LAG, millis * 1_000);
            standstill.add(&Interval::new(IntervalKey { second, workload, server: None }, figures));
        }
        assert!((standstill.seconds() - 5.35).abs() < 1e-9);
    }
}
