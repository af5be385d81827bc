//! Where the clients of a run wait for each other before the first message is published.

use crate::shard_recorder::PlannedStart;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_metrics::Moment;

/// Time between two looks at the gate. Publishers that were connected at different times begin as far apart.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Counts publishers that are connected and subscribers whose subscriptions are granted, each once.
#[derive(Debug, Default)]
pub struct StartGate {
    expected: AtomicU64,
    /// Nanoseconds.
    wait_limit: AtomicU64,
    arrived: AtomicU64,
}

impl StartGate {
    /// This many more clients will come, the last of them this long after the first, timeouts included.
    pub fn expect(&self, clients: u64, within: Duration) {
        self.expected.fetch_add(clients, Relaxed);
        self.wait_limit.fetch_max(within.as_nanos() as u64, Relaxed);
    }

    /// A client is ready. Those that come in the place of others are not waited for.
    pub(super) fn arrive(&self, client: PlannedStart) {
        self.arrived.fetch_add(u64::from(client.turn.number == 0), Relaxed);
    }

    fn is_open(&self) -> bool {
        self.arrived.load(Relaxed) >= self.expected.load(Relaxed)
    }

    /// The wait of a publisher that is ready now.
    pub(super) fn wait(&self, now: Moment) -> GateWait {
        GateWait { next_poll: now, until: now + Duration::from_nanos(self.wait_limit.load(Relaxed)) }
    }
}

/// A publisher that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateWait {
    next_poll: Moment,
    until: Moment,
}

/// What became of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateState {
    Closed,
    /// All are there.
    Open,
    /// Some are not, and the time for them is over.
    TimedOut,
}

impl GateWait {
    /// Looks at the gate, if it is time to.
    pub(super) fn poll(&mut self, gate: &StartGate, now: Moment) -> GateState {
        if now < self.next_poll {
            return GateState::Closed;
        }
        self.next_poll =
            if now < self.until { self.until.min(now + POLL_INTERVAL) } else { now + POLL_INTERVAL };
        match (gate.is_open(), now >= self.until) {
            (true, _) => GateState::Open,
            (false, true) => GateState::TimedOut,
            (false, false) => GateState::Closed,
        }
    }

    /// When to look again.
    pub(super) fn deadline(&self) -> Moment {
        self.next_poll
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard_recorder::Turn;

    fn client() -> PlannedStart {
        PlannedStart { client: 0, workload: 0, cell: 0, at: Moment::default(), turn: Turn::default() }
    }

    #[test]
    fn a_publisher_waits_for_all_and_not_for_ever() {
        let gate = StartGate::default();
        gate.expect(1, Duration::from_secs(3));
        gate.expect(2, Duration::from_secs(12));
        let start = Moment::default() + Duration::from_secs(5);
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        gate.arrive(client());
        let (mut first, mut second) = (gate.wait(start), gate.wait(start));
        assert_eq!(first.poll(&gate, start), GateState::Closed);
        assert_eq!(first.deadline(), at(0.1));
        gate.arrive(client());
        gate.arrive(client());
        assert_eq!(first.poll(&gate, at(0.05)), GateState::Closed, "it looks ten times a second");
        assert_eq!(first.poll(&gate, at(0.1)), GateState::Open);
        gate.expect(1, Duration::ZERO);
        assert_eq!(second.poll(&gate, at(11.9)), GateState::Closed);
        assert_eq!(second.deadline(), at(12.0));
        assert_eq!(second.poll(&gate, at(12.0)), GateState::TimedOut);
    }
}
