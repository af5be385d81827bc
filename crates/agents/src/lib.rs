#![doc = include_str!("../README.md")]

pub mod agent;
pub mod coordinator;
#[cfg(feature = "nats")]
mod credentials;
#[cfg(feature = "nats")]
pub mod fingerprint;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod harness;
pub mod inbox;
#[cfg(feature = "nats")]
pub mod nats;
pub mod offset;
pub mod outbox;
pub mod parts;
pub mod roster;
#[cfg(feature = "nats")]
pub mod spawn;
pub mod state_machine;

pub use agent::{Agent, AgentCommand, AgentEvent};
pub use coordinator::{Coordinator, CoordinatorCommand, CoordinatorEvent};
#[cfg(feature = "nats")]
pub use nats::{NatsError, NatsServer, connect};
