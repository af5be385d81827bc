//! What waits for one client of a broker.

use super::publication::Publication;
use super::retained::Search;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_mqtt::Qos;
use weir_mqtt::property::SubscriptionIdentifier;
use weir_shard::SessionId;

/// A message for one subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) publication: Arc<Publication>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) identifier: Option<SubscriptionIdentifier>,
}

/// Names what waits for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InboxKey(pub(super) usize);

/// What waits for one client.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) session: SessionId,
    pub(super) client_id: String,
    pub(super) queue: VecDeque<Delivery>,
    pub(super) queue_bytes: usize,
    /// Its ways through what is kept, of new subscriptions.
    pub(super) searches: VecDeque<Search>,
    pub(super) taken_over: bool,
}
