//! Times of a shard as a client's session of MQTT takes them, which has no clock: since the start.

use std::time::Duration;
use weir_metrics::Moment;

/// A moment as the protocol's machine takes it.
pub(super) fn since_start(now: Moment) -> Duration {
    Duration::from_nanos(now.as_nanos())
}

/// And back.
pub(super) fn moment(time: Duration) -> Moment {
    Moment::default() + time
}
