//! RTMP and FLV, sans-IO: bytes in, events out.
//!
//! Nothing here knows a socket, a clock, a runtime or a log. A caller reads bytes from wherever they come,
//! hands them over in pieces of any size, and sends what [`Client::output`] or [`Server::output`] has gathered.
//!
//! | module | what it speaks | where it is written down |
//! |---|---|---|
//! | [`handshake`] | C0 … S2, plain and with digests | RTMP 1.0 section 5.2; the digests are Adobe's, unpublished |
//! | [`chunk`] | the chunk stream, read without copying | RTMP 1.0 section 5.3 |
//! | [`amf0`] | the values in commands and metadata | AMF 0 |
//! | [`message`] | control messages, user control events, commands, aggregates | RTMP 1.0 sections 5.4, 6, 7 |
//! | [`flv`] | video and audio tags, and the file around them | FLV 10.1 annex E; enhanced RTMP v1 and v2 (E-FLV) |
//! | [`client`], [`server`] | the dialogue of one connection | RTMP 1.0 section 7.2 and what servers really do |
//!
//! `client` and `server` stand on the rest; the rest can be used alone.

pub mod amf0;
pub mod chunk;
pub mod client;
pub mod flv;
pub mod handshake;
pub mod message;
pub mod server;

mod acknowledgement;
mod assembly;
mod error;

pub use assembly::AssemblyError;

pub use client::{Client, ClientEvent, ClientOptions};
pub use server::{Server, ServerEvent, ServerOptions};
