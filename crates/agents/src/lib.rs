//! Agents and their coordinator: which agents there are, what each of them runs, and the seconds of its run on their way back.
//!
//! Both sides of the dialogue are state machines without sockets and clocks: [`Agent`] and [`Coordinator`], and what both are made of
//! ([`state_machine`], [`frame`], [`offset`], [`outbox`], [`inbox`], [`parts`]). `nats` is the only shell around them: it carries their
//! frames over NATS, on a thread of its own. This crate does not know what a scenario means.

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
