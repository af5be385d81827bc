//! What waits for one client of a broker.

use super::delivery::Delivery;
use super::flight::Flight;
use super::retained::Search;
use super::wills::WillKey;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;
use weir_metrics::Moment;
use weir_mqtt::PacketId;
use weir_shard::SessionId;

/// What waits for one client, and what else of its session may outlive its connection (MQTT 5 section 4.1).
#[derive(Debug)]
pub(super) struct Inbox {
    /// Its connection; none while it is away.
    pub(super) session: Option<SessionId>,
    pub(super) client_id: String,
    /// How many clients had been let in when it began: no other session has this number.
    pub(super) number: u64,
    pub(super) queue: VecDeque<Delivery>,
    /// Bytes of the queue, and of what is kept of the messages in flight.
    pub(super) queue_bytes: usize,
    /// Its ways through what is kept, of new subscriptions.
    pub(super) searches: VecDeque<Search>,
    pub(super) flight: Flight,
    /// Messages of QoS 2 that it has sent and not released.
    pub(super) received: HashSet<PacketId>,
    /// For how long the session outlives a connection.
    pub(super) kept_for: Duration,
    /// Until when the client is waited for, and the bytes that this takes beside messages.
    pub(super) away: Option<(Moment, usize)>,
    /// A will that waits meanwhile.
    pub(super) will: Option<WillKey>,
}
