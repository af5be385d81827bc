//! A small MQTT broker, 3.1.1 and 5: QoS 0 and 1, wildcards, shared subscriptions, retained messages, wills.
//!
//! It runs in a thread of its own beside the workers. Sessions end with their connections; nothing is stored.

mod broker;
mod session;
mod thread;

pub use broker::MessageCounts;
pub(crate) use broker::{Message, Report};
pub(crate) use thread::start;
