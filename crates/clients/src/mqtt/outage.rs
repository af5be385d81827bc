//! Links that all clients of a workload lose at the same moments: what they then ask of their broker is what they would ask after
//! its restart.

use std::sync::OnceLock;
use std::time::Duration;
use weir_metrics::Moment;
use weir_setting::BREAK_EVERY;

/// How a client fails that does not come back from one.
pub(super) fn broken() -> String {
    format!("the link was broken on purpose ({BREAK_EVERY})")
}

/// When links break. Shared by all clients of a workload in this process.
#[derive(Debug)]
pub(super) struct Outages {
    every: Duration,
    /// When the first client began.
    begin: OnceLock<Moment>,
}

impl Outages {
    pub(super) fn new(every: Duration) -> Self {
        Self { every: every.max(Duration::from_millis(1)), begin: OnceLock::new() }
    }

    /// The first moment behind `now`, for a client that begins then or comes back.
    pub(super) fn next(&self, now: Moment) -> Moment {
        let begin = *self.begin.get_or_init(|| now);
        let passed = now.since(begin).as_nanos() / self.every.as_nanos();
        begin + self.every.saturating_mul(u32::try_from(passed).unwrap_or(u32::MAX).saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clients_lose_their_links_at_the_same_moments() {
        let outages = Outages::new(Duration::from_secs(10));
        let second = |n: u64| Moment::from_nanos(n * 1_000_000_000);
        for (now, next) in [(7, 17), (8, 17), (16, 17), (17, 27), (38, 47)] {
            assert_eq!(outages.next(second(now)), second(next));
        }
    }
}
