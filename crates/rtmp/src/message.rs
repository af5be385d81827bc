//! What messages say: their kinds, and the contents of those that are not audio or video.
//!
//! A message here is a payload that is complete in memory; how it was cut into chunks is
//! [`chunk`](crate::chunk)'s affair, and the order of messages that of the dialogues.

pub mod aggregate;
pub mod command;
pub mod control;
pub mod data;
mod kind;
mod media_kind;
pub mod status;
pub mod user_control;

pub use command::Command;
pub use control::Control;
pub use kind::MessageKind;
pub use media_kind::MediaKind;
pub use status::{Level, Status};
pub use user_control::UserControl;
