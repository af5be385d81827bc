#![doc = include_str!("../README.md")]

pub mod handshake;
pub mod loss_report;
pub mod packet;
pub mod rejection;
pub mod stream_id;

mod agreement;
mod connection;
mod departures;
mod encryption;
mod listener;
mod outbox;
mod pacer;
mod receiver;
mod round_trip;
mod sender;
mod sequence;
mod statistics;

pub use agreement::{Agreement, ConnectionEvent, ConnectionOptions, Disconnect};
pub use connection::Connection;
pub use encryption::{Encryption, KeyLength, Passphrase, PassphraseError};
pub use listener::{ConnectionRequest, Listener, ListenerAnswer};
pub use rejection::Rejection;
pub use round_trip::RoundTrip;
pub use sequence::SequenceNumber;
pub use statistics::Statistics;
