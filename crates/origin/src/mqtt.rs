//! A small MQTT broker, 3.1.1 and 5: QoS 0 to 2, wildcards, shared subscriptions, retained messages, wills, sessions that
//! outlive their connections.
//!
//! It runs in a thread of its own beside the workers. Nothing is stored on a disk.

mod broker;
mod delivery;
mod flight;
mod inbox;
mod inbox_key;
mod publication;
mod retained;
mod role;
mod session;
mod subscriptions;
mod thread;
mod wills;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) use broker::Broker;
pub use broker::MessageCounts;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use session::MqttSession;
pub(crate) use thread::START;
