//! How often a costly reading may be repeated: so that it never takes more than its share of one core.

use std::time::Duration;

/// A reading that cost `c` seconds of CPU is repeated after `c / share` seconds at the earliest.
#[derive(Clone, Debug)]
pub(crate) struct Ration {
    share: f64,
    next_ns: u64,
}

impl Ration {
    /// `share` is of one core: 0.01 is one percent.
    pub(crate) const fn of_core(share: f64) -> Self {
        Self { share, next_ns: 0 }
    }

    /// Whether the reading may be taken now.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns
    }

    /// The reading was taken at `now_ns` and cost this much CPU time.
    pub(crate) fn spend(&mut self, now_ns: u64, cost: Duration) {
        let pause = cost.div_f64(self.share).as_nanos();
        self.next_ns = now_ns.saturating_add(u64::try_from(pause).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_ten_milliseconds_at_one_percent_is_repeated_every_second() {
        let mut ration = Ration::of_core(0.01);
        assert!(ration.is_due(0));
        ration.spend(5_000_000_000, Duration::from_millis(10));
        assert!(!ration.is_due(5_999_999_999));
        assert!(ration.is_due(6_000_000_000));
    }

    #[test]
    fn a_free_reading_is_always_due() {
        let mut ration = Ration::of_core(0.01);
        ration.spend(7, Duration::ZERO);
        assert!(ration.is_due(7));
    }
}
