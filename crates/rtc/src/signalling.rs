//! How descriptions are exchanged: OvenMediaEngine's WebSocket dialogue, and WHIP and WHEP over HTTP.
//!
//! Messages and answers are values here. The caller carries them.

pub mod http;
pub mod oven;

pub use weir_web::websocket;
