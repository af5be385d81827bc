//! A stream: what one publisher sends, as packets that all viewers share.
//!
//! Packets are framed once, by the protocol that took them in, and never change. A [`Log`] keeps the
//! latest of them; a [`Cursor`] is one viewer's position in it; an [`Outlet`] puts packets on a link
//! and remembers the one that was cut; what several viewers are sent at once is [`JoinedPackets`] for them. No sockets, no
//! threads, no protocol.

mod cursor;
mod joined;
mod log;
mod outlet;
mod packet;
mod written;

pub(crate) use cursor::Cursor;
pub(crate) use joined::JoinedPackets;
pub use log::History;
pub(crate) use log::{Log, Terms};
pub(crate) use outlet::Outlet;
pub use packet::Kind;
pub(crate) use packet::{DecoderSettings, Opening, Packet, Remake, View};
pub(crate) use written::{BATCH, WriteOutcome};

#[cfg(test)]
mod laws;
