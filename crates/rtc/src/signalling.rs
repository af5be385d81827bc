//! How descriptions are exchanged: OvenMediaEngine's WebSocket dialogue, and WHIP and WHEP over HTTP.
//!
//! Messages and answers are values here. Who carries them is the caller's matter.

pub mod http;
pub mod oven;
pub mod websocket;
