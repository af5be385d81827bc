//! MQTT 3.1.1 and MQTT 5, sans-IO: bytes in, packets and events out.
//!
//! Nothing here knows a socket, a clock, a runtime or a log. A caller reads bytes from wherever they come, hands
//! them over in pieces of any size, and sends what has been written into a buffer of its own or into
//! [`Client::output`]. Time is passed in, as a [`Duration`](std::time::Duration) since an epoch of the caller's choice.
//!
//! | module | what it speaks | where it is written down |
//! |---|---|---|
//! | [`packet`] | all control packets, read without copying, written into the caller's buffer | chapter 3 of both standards |
//! | [`property`] | the properties of MQTT 5 | MQTT 5 section 2.2.2 |
//! | [`reason`] | reason codes and return codes, with their names | MQTT 5 section 2.4; MQTT 3.1.1 sections 3.2.2.3, 3.9.3 |
//! | [`Reader`] | packets out of a byte stream in any split, with bounded memory | section 2 of both |
//! | [`topic`] | topic names and filters, `$share` included, and filters in a tree | section 4.7 of both; MQTT 5 section 4.8.2 |
//! | [`mark`] | weir's own mark of a message: publisher, sequence number, clocks | nowhere but here |
//! | [`delivery`] | which messages have come, by their marks | nowhere but here |
//! | [`client`] | the dialogue of one client: identifiers, window, acknowledgements, keep-alive, resumption | section 4 of both |
//!
//! The standards are *MQTT Version 3.1.1* (OASIS, 29 October 2014) and *MQTT Version 5.0* (OASIS, 7 March 2019).
//! What breaks one of their rules is an [`Error`] that names the rule.

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
