//! How long messages wait for their commit: from the receipt of a batch's first message to the commit of the batch.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_shard::clock;

/// Batches whose lags are kept until they are read: those of a second in which each commit takes 15 µs.
const KEPT: usize = 65_536;

/// The lags that the saving thread measures and others read.
#[derive(Debug, Default)]
pub struct Lag(Mutex<Lags>);

#[derive(Debug, Default)]
struct Lags {
    /// When the first message of the batch that is being saved came, in microseconds since the Unix epoch.
    waiting_since: Option<i64>,
    last: Duration,
    longest: Duration,
    unread: VecDeque<Duration>,
}

/// Microseconds since the Unix epoch.
fn now() -> i64 {
    (clock::wall_nanos() / 1_000) as i64
}

fn since(received: i64) -> Duration {
    // A wall clock that was set back makes no lag.
    Duration::from_micros(now().saturating_sub(received).max(0) as u64)
}

impl Lag {
    fn lock(&self) -> MutexGuard<'_, Lags> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A batch is being saved, whose first message came then.
    pub(crate) fn begin(&self, received: Option<i64>) {
        self.lock().waiting_since = received;
    }

    /// It is committed.
    pub(crate) fn end(&self) {
        let mut lags = self.lock();
        let Some(received) = lags.waiting_since.take() else { return };
        let lag = since(received);
        (lags.last, lags.longest) = (lag, lags.longest.max(lag));
        if lags.unread.len() >= KEPT {
            lags.unread.pop_front();
        }
        lags.unread.push_back(lag);
    }

    /// That of the last batch; while the next one waits for longer, how long that has waited.
    pub fn latest(&self) -> Duration {
        let lags = self.lock();
        lags.waiting_since.map_or(Duration::ZERO, since).max(lags.last)
    }

    /// The longest of all batches that were committed.
    pub fn longest(&self) -> Duration {
        self.lock().longest
    }

    /// Those of the batches that were committed since they were last taken, 65,536 at the most.
    pub fn take(&self) -> impl Iterator<Item = Duration> + use<> {
        std::mem::take(&mut self.lock().unread).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_waits_is_behind_before_it_is_committed() {
        let lag = Lag::default();
        assert_eq!((lag.latest(), lag.take().count()), (Duration::ZERO, 0));
        lag.begin(Some(now() - 5_000_000));
        assert!(lag.latest() >= Duration::from_secs(5) && lag.longest().is_zero());
        lag.end();
        let last = lag.latest();
        assert!(last >= Duration::from_secs(5));
        lag.begin(Some(now() + 60_000_000));
        lag.end();
        assert_eq!((lag.latest(), lag.longest()), (Duration::ZERO, last));
        assert_eq!(lag.take().collect::<Vec<_>>(), [last, Duration::ZERO]);
    }
}
