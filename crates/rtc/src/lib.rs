#![doc = include_str!("../README.md")]

pub mod aac;
pub mod account;
pub mod av1;
pub mod estimate;
pub mod feedback;
pub mod h264;
pub mod h265;
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

mod assembly;
mod bundle;
mod codec;
mod datagram;
mod packetiser;
mod piece;
mod random;
mod time;
mod vp8;
mod vp9;

pub use assembly::{AccessUnit, Assembler};
pub use bundle::Bundle;
pub use codec::{UNIT_HEAD, VideoCodec};
pub use datagram::Datagram;
pub use packetiser::Packetiser;
pub use random::random_number;
pub use time::NtpTime;
