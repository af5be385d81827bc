//! What all publishers of a workload share.

use super::super::draw::mixed;
use super::super::pace::{Arrivals, Pace};
use super::super::payloads::Payloads;
use super::super::published::Published;
use super::super::start_gate::StartGate;
use super::super::times::PublishTimes;
use crate::client_state::Timeouts;
use crate::host_clock::HostClock;
use crate::shard_recorder::PlannedStart;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_mqtt::{PropertyBuffer, Qos, Version};

/// What all publishers of a workload share.
#[derive(Debug)]
pub(in crate::mqtt) struct SharedOptions {
    pub(in crate::mqtt) timeouts: Timeouts,
    /// How long a broker may take nothing.
    pub(in crate::mqtt) send_timeout: Duration,
    pub(in crate::mqtt) version: Version,
    pub(in crate::mqtt) qos: Qos,
    pub(in crate::mqtt) retain: bool,
    pub(in crate::mqtt) rate: f64,
    pub(in crate::mqtt) arrivals: Arrivals,
    pub(in crate::mqtt) seed: u64,
    pub(in crate::mqtt) count: Option<u64>,
    /// Bytes of the longest payload.
    pub(in crate::mqtt) longest: usize,
    /// Whether the broker is to keep the sessions of publishers that are gone.
    pub(in crate::mqtt) keeps_session: bool,
    /// How long a publisher that has to stop waits for acknowledgements.
    pub(in crate::mqtt) linger: Duration,
    /// Whether each message carries a mark.
    pub(in crate::mqtt) mark: bool,
    pub(in crate::mqtt) payloads: Payloads,
    /// What MQTT 5 says of each message.
    pub(in crate::mqtt) properties: PropertyBuffer,
    /// Whether a topic goes out once a connection, and its number from then on.
    pub(in crate::mqtt) topic_alias: bool,
    pub(in crate::mqtt) clock: HostClock,
    pub(in crate::mqtt) times: Option<Arc<PublishTimes>>,
    pub(in crate::mqtt) published: Option<Arc<Published>>,
    /// Where the clients of the run wait for each other, and whether publishers do.
    pub(in crate::mqtt) start_gate: Option<Arc<StartGate>>,
    pub(in crate::mqtt) waits: bool,
    /// Whether the first connection is tried again.
    pub(in crate::mqtt) retry_connect: bool,
}

impl SharedOptions {
    /// The schedule of a publisher that begins now.
    pub(super) fn pace(&self, planned: PlannedStart, now: Moment) -> Pace {
        let seed = mixed(self.seed, planned.number().into());
        Pace::new(now, self.rate, self.count).arriving(self.arrivals, seed)
    }
}
