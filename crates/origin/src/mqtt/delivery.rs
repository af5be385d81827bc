//! A message on its way to one client.

use super::publication::Publication;
use std::sync::Arc;
use weir_mqtt::Qos;
use weir_mqtt::property::SubscriptionIdentifier;

/// A message for one subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) publication: Arc<Publication>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) identifier: Option<SubscriptionIdentifier>,
}
