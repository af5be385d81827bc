#![doc = include_str!("../README.md")]

mod batched_reads;
pub mod clock;
mod datagrams;
mod endpoint;
mod entry;
mod guard;
mod lag;
mod link;
mod link_error;
mod links;
mod listeners;
mod rig;
mod session;
mod shard;
mod shared;
mod sys;
mod timer;
pub mod tls;
mod transmit;

pub use datagrams::{Datagrams, Incoming};
pub use endpoint::{Endpoint, Sharing, Transport};
pub use guard::Deadlines;
pub use lag::Lag;
pub use link_error::OpenError;
pub use listeners::listeners;
pub use rig::Rig;
pub use session::{Context, Edge, Event, Outgoing, Session, SessionId, Side, World};
pub use shard::{MessageSender, Shard, UNSENT_LIMIT};
pub use sys::dropped as dropped_datagrams;
pub use timer::TICK;
