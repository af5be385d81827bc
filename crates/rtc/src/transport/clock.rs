//! Moments as the libraries below want them.

use std::time::Instant;

use weir_metrics::Moment;

/// A moment and the instant that it was.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    moment: Moment,
    instant: Instant,
}

impl Clock {
    /// `moment` is `instant`: both read one after the other, or both made up.
    pub fn new(moment: Moment, instant: Instant) -> Self {
        Self { moment, instant }
    }

    pub(super) fn instant(self, moment: Moment) -> Instant {
        if moment >= self.moment {
            self.instant + moment.since(self.moment)
        } else {
            self.instant.checked_sub(self.moment.since(moment)).unwrap_or(self.instant)
        }
    }

    pub(super) fn moment(self, instant: Instant) -> Moment {
        if instant >= self.instant {
            self.moment + instant.duration_since(self.instant)
        } else {
            self.moment - self.instant.duration_since(instant)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_and_instants_go_along_in_both_directions() {
        let clock = Clock::new(Moment::from_nanos(50), Instant::now());
        for moment in [20, 50, 90].map(Moment::from_nanos) {
            assert_eq!(clock.moment(clock.instant(moment)), moment);
        }
        let later = clock.instant(Moment::from_nanos(1_000_000_050));
        assert_eq!(later - clock.instant, Duration::from_secs(1));
    }
}
