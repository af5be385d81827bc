//! The way to a broker.

use super::carrier::Carrier;
use super::outage::Outages;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_shard::Endpoint;

/// The way to a broker.
pub(super) struct BrokerPath {
    /// What all clients of one name have in common: messages go between its addresses.
    pub(super) broker: SocketAddr,
    /// Of a client that is to connect again.
    pub(super) again: Option<Endpoint>,
    pub(super) carrier: Carrier,
    /// When its link breaks on purpose, if it does.
    pub(super) outages: Option<Arc<Outages>>,
}
