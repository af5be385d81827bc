//! Tuners: services that play in real time while anyone watches, whether the watchers keep up or not.
//!
//! A tuner opens with its first reader and closes behind its last. It plays on the worker of the reader that
//! opened it, as the publisher of a stream, so that it is made once and shared by all. No protocol is known here.

mod catalogue;
mod material;
mod programme;
mod service;
mod tuning;

pub(crate) use catalogue::{Catalogue, Station};
pub use material::{Material, MaterialError};
pub use service::{ChannelType, Service, Tuners};
pub(crate) use tuning::{attend, leave, play_due, remake};
