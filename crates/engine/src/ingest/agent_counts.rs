//! What agents have counted of a run's messages, second by second: read by the consumer at the coordinator, which decides when
//! all is accounted for and takes over the sessions of ingesters that were lost.

use super::consumer::{Both, SaveCounts};
use super::figures::{COMMITS, DEAD_LETTERED, DECODE_TIME, SAVE_TIME, SAVED};
use super::ingested::{FirstAndLast, Ingested};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_metrics::common::{DUPLICATE, MEDIA, UNITS};
use weir_metrics::{Counter, Interval, Moment};

/// An agent that has counted nothing yet.
const NOTHING: SaveCounts =
    SaveCounts { delivered: Some(0), bytes: 0, settled: 0, saved: 0, dead_lettered: 0, duplicate: 0 };

/// The sums of all agents of a run.
#[derive(Debug, Default)]
pub struct AgentCounts {
    /// Position of the workload that saves.
    workload: u16,
    /// Positions of those that publish what is saved.
    publishers: Vec<u16>,
    /// Their figure of messages that the broker has acknowledged.
    acknowledged: Option<&'static str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    published: u64,
    acknowledged: u64,
    bytes: u64,
    /// Of each agent.
    counted: Vec<SaveCounts>,
    work: AgentWork,
    /// Ingesters whose agents were lost since this was last asked, by their numbers in the plan.
    lost: Vec<u32>,
    wants_end: bool,
    has_ended: bool,
}

/// What agents' ingesters did, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AgentWork {
    /// Transactions.
    pub commits: u64,
    /// Time spent decoding.
    pub decode: Duration,
    /// Time spent in transactions.
    pub save: Duration,
    /// When messages came, were decoded, and transactions committed, after second 0.
    pub spans: [Option<FirstAndLast>; 3],
    /// Agents with ingesters that were lost.
    pub losses: u64,
}

impl AgentWork {
    /// When the ingesters did what, on this machine's clock, of a run whose second 0 began then.
    pub fn spans_since(&self, origin: Moment) -> [Both; 3] {
        let at = |seconds: f64| origin + Duration::try_from_secs_f64(seconds).unwrap_or_default();
        self.spans.map(|span| span.map(|span| (at(span.first_seconds), at(span.last_seconds))))
    }
}

impl AgentCounts {
    /// Nothing yet, of a run whose workload at this position saves what those at `publishers` publish.
    pub fn new(workload: u16, publishers: Vec<u16>, acknowledged: Option<&'static str>) -> Self {
        Self { workload, publishers, acknowledged, state: Mutex::default() }
    }

    /// Position of the workload that saves.
    pub(crate) fn workload(&self) -> u16 {
        self.workload
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent's second of one workload.
    pub(crate) fn add(&self, agent: u16, interval: &Interval) {
        let Interval { key, figures, .. } = interval;
        let count = |counter: Counter| figures.counter(counter);
        let mut state = self.lock();
        if self.publishers.contains(&key.workload) {
            state.published += count(UNITS);
            state.bytes += count(MEDIA);
            let place = self.acknowledged.and_then(|name| figures.schema().position(name));
            state.acknowledged += place.map_or(0, |place| figures.number(place));
        }
        if key.workload != self.workload {
            return;
        }
        let place = usize::from(agent);
        if state.counted.len() <= place {
            state.counted.resize(place + 1, NOTHING);
        }
        let own = &mut state.counted[place];
        own.saved += count(SAVED);
        own.dead_lettered += count(DEAD_LETTERED);
        own.duplicate += count(DUPLICATE);
        own.bytes += count(MEDIA);
        own.settled = own.saved + own.dead_lettered + own.duplicate;
        own.delivered = Some(own.delivered.unwrap_or_default() + count(UNITS));
        state.work.commits += count(COMMITS);
        state.work.decode += Duration::from_micros(count(DECODE_TIME));
        state.work.save += Duration::from_micros(count(SAVE_TIME));
    }

    /// An agent's ingesters have ended, and this is what they say.
    pub(crate) fn end_of_part(&self, ingested: &Ingested) {
        let mut state = self.lock();
        for (sum, more) in
            state.work.spans.iter_mut().zip([ingested.receive, ingested.decode, ingested.commit])
        {
            *sum = match (*sum, more) {
                (Some(a), Some(b)) => Some(FirstAndLast {
                    first_seconds: a.first_seconds.min(b.first_seconds),
                    last_seconds: a.last_seconds.max(b.last_seconds),
                }),
                (sum, more) => sum.or(more),
            };
        }
    }

    /// An agent was lost, and with it these ingesters. What came to them and was not settled is sent again to who takes over
    /// their sessions.
    pub(crate) fn lose(&self, agent: u16, ingesters: Vec<u32>) {
        let mut state = self.lock();
        if let Some(own) = state.counted.get_mut(usize::from(agent)) {
            own.delivered = Some(own.settled);
        }
        state.work.losses += u64::from(!ingesters.is_empty());
        state.lost.extend(ingesters);
    }

    /// No agent is left that could count more.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
    }

    /// Whether the consumer has seen all that it waited for.
    pub(crate) fn wants_end(&self) -> bool {
        self.lock().wants_end
    }

    /// What publishers sent, what of it was acknowledged, and its bytes.
    pub(crate) fn published(&self) -> (u64, u64, u64) {
        let state = self.lock();
        (state.published, state.acknowledged, state.bytes)
    }

    /// What the ingesters of all agents have counted.
    pub fn counted(&self) -> SaveCounts {
        let state = self.lock();
        state.counted.iter().fold(NOTHING, SaveCounts::plus)
    }

    /// What they did.
    pub fn work(&self) -> AgentWork {
        self.lock().work
    }

    /// The ingesters whose agents were lost since this was last asked.
    pub fn take_lost(&self) -> Vec<u32> {
        std::mem::take(&mut self.lock().lost)
    }

    /// Has the agents end their parts.
    pub fn ask_for_end(&self) {
        self.lock().wants_end = true;
    }

    /// Whether all of them have ended or are lost.
    pub fn have_ended(&self) -> bool {
        self.lock().has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::SCHEMA;
    use super::*;
    use weir_metrics::{IntervalKey, Recorder};

    fn second(workload: u16, units: u64, saved: u64) -> Interval {
        let mut figures = Recorder::new(SCHEMA);
        figures.count(UNITS, units);
        figures.count(SAVED, saved);
        Interval::new(IntervalKey { second: 0, workload, server: None }, figures)
    }

    #[test]
    fn agents_add_up_and_what_a_lost_one_had_not_saved_is_not_waited_for() {
        let counts = AgentCounts::new(1, vec![0], None);
        counts.add(0, &second(0, 100, 0));
        counts.add(1, &second(1, 50, 50));
        counts.add(2, &second(1, 40, 10));
        assert_eq!(counts.published(), (100, 0, 0));
        let counted = counts.counted();
        assert_eq!((counted.delivered, counted.settled, counted.saved), (Some(90), 60, 60));
        counts.lose(2, vec![7]);
        assert_eq!((counts.counted().delivered, counts.counted().settled), (Some(60), 60));
        assert_eq!((counts.take_lost(), counts.take_lost(), counts.work().losses), (vec![7], vec![], 1));
    }

    #[test]
    fn the_times_of_all_are_from_the_first_of_any_to_the_last_of_any() {
        let counts = AgentCounts::default();
        let span = |first_seconds, last_seconds| Some(FirstAndLast { first_seconds, last_seconds });
        for commit in [None, span(2.0, 5.0), span(1.0, 3.0)] {
            counts.end_of_part(&Ingested { commit, ..Ingested::default() });
        }
        assert_eq!(counts.work().spans, [None, None, span(1.0, 5.0)]);
    }
}
