//! Agents and their coordinator: who is there, what each is to do, and its seconds on the way back.
//!
//! The dialogue is made of state machines without sockets and clocks: [`Agent`], [`Coordinator`], and what both stand on
//! ([`machine`], [`frame`], [`offset`], [`outbox`], [`inbox`], [`parts`]). `nats` is the one shell around them: it carries their frames over NATS, on
//! a thread of its own. What a scenario means is not known here.

pub mod agent;
pub mod coordinator;
#[cfg(feature = "nats")]
pub mod fingerprint;
pub mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod harness;
pub mod inbox;
pub mod machine;
#[cfg(feature = "nats")]
pub mod nats;
pub mod offset;
pub mod outbox;
pub mod parts;
#[cfg(feature = "nats")]
pub mod spawn;

pub use agent::{Agent, AgentCommand, AgentEvent};
pub use coordinator::{Coordinator, CoordinatorCommand, CoordinatorEvent};
#[cfg(feature = "nats")]
pub use nats::{NatsError, NatsServer, connect};
