#![doc = include_str!("../README.md")]

mod board;
mod buckets;
mod connection;
mod encode;
mod family;
mod listener;
mod page;
pub mod process_metrics;
mod protobuf;
mod pusher;
mod remote_write;
mod site;

pub use board::{Board, Origin, Reading};
pub use family::{Label, PREFIX, metric_name};
pub use listener::{ListenError, Listener};
pub use page::Part;
pub use pusher::{Push, Pusher};
pub use site::Look;
