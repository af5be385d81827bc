//! When what failed is tried again: a broker, a store, a registry of schemas that is away.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// First and longest wait before another attempt; each is twice the one before.
pub(crate) const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How often the wish to stop is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits before another attempt; `false` if there is to be none.
pub(crate) fn pause(wait: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + wait;
    while Instant::now() < until {
        if stop.load(Relaxed) {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL.min(wait));
    }
    true
}
