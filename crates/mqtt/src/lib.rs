#![doc = include_str!("../README.md")]

mod alias;
pub mod client;
pub mod delivery;
pub mod error;
pub mod mark;
pub mod packet;
pub mod property;
pub mod reason;
pub mod topic;

mod field;
mod packet_kind;
mod qos;
mod reader;
mod version;

pub use alias::Aliases;
pub use client::{Client, ClientEvent, ClientOptions};
pub use error::{EncodeError, Error, Violation};
pub use mark::Mark;
pub use packet::{Packet, PacketId, PacketKind, Publish};
pub use property::{Properties, Property, PropertyBuffer};
pub use qos::Qos;
pub use reader::{Event, Limits, Reader};
pub use reason::ReasonCode;
pub use version::Version;

/// The largest Remaining Length that four bytes can say (MQTT 5 section 2.1.4).
pub const MAX_REMAINING_LENGTH: usize = 268_435_455;

/// The largest packet there can be: that, and a fixed header of five bytes.
pub const MAX_PACKET_SIZE: u32 = MAX_REMAINING_LENGTH as u32 + 5;

/// The longest string or binary field (MQTT 5 sections 1.5.4 and 1.5.6).
pub const MAX_FIELD_LENGTH: usize = 65_535;
