//! Clients of an agent that have begun and not ended, so that a lost agent's are accounted for.

use serde::{Deserialize, Serialize};
use weir_metrics::common::{FAILED, LATE, MISSED, ON_TIME, PLANNED, PLAYED, WAITING};
use weir_metrics::{Counter, Recorder};

/// Clients of one workload that were there when their agent was lost: what became of them is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenClients {
    /// Those that had begun.
    pub begun: u64,
    /// Those of them that had played.
    pub played: u64,
    /// Those of them that waited for a keyframe.
    #[serde(default)]
    pub waiting: u64,
}

/// What one agent has counted of the clients of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountedClients {
    planned: u64,
    played: u64,
    ended_well: u64,
    ended_otherwise: u64,
    /// The level at the end of the last second.
    waiting: u64,
}

impl CountedClients {
    pub(crate) fn add(&mut self, figures: &Recorder) {
        let sum =
            |counters: &[Counter]| counters.iter().map(|counter| figures.counter(*counter)).sum::<u64>();
        self.planned += sum(&[PLANNED]);
        self.played += sum(&[PLAYED]);
        self.ended_well += sum(&[ON_TIME, LATE]);
        self.ended_otherwise += sum(&[MISSED, FAILED]);
        self.waiting = figures.gauge(WAITING);
    }

    /// Those that have not ended.
    pub(crate) fn open(&self) -> OpenClients {
        let begun = self.planned.saturating_sub(self.ended_well + self.ended_otherwise);
        // A client that has ended well had played, or had too little time to.
        let played = self.played.saturating_sub(self.ended_well).min(begun);
        OpenClients { begun, played, waiting: self.waiting.min(begun) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Schema;

    #[test]
    fn clients_that_are_open_wait_as_the_last_second_says() {
        let mut counted = CountedClients::default();
        for (planned, played, failed, waiting) in [(10, 2, 0, 6), (0, 3, 1, 4)] {
            let mut figures = Recorder::new(Schema::new(&[]));
            for (counter, count) in [(PLANNED, planned), (PLAYED, played), (FAILED, failed)] {
                figures.count(counter, count);
            }
            figures.set(WAITING, waiting);
            counted.add(&figures);
        }
        assert_eq!(counted.open(), OpenClients { begun: 9, played: 5, waiting: 4 });
    }
}
