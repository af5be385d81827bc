#![doc = include_str!("../README.md")]

pub mod aac;
pub mod account;
pub mod feedback;
pub mod h264;
pub mod nack;
pub mod opus;
pub mod picture;
pub mod reorder;
pub mod rtcp;
pub mod rtp;
pub mod rtx;
pub mod sdp;
pub mod sender;
pub mod signalling;
pub mod srtp;
pub mod transport;
pub mod turn;

mod bundle;
mod datagram;
mod random;
mod time;

pub use bundle::Bundle;
pub use datagram::Datagram;
pub use random::random_number;
pub use time::NtpTime;
