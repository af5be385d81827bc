//! The same records in several encodings: published, received, decoded and saved, by turns, each one accounted for.
//!
//! A repetition publishes through the client of [`weir_clients`] and takes in with the service of [`weir_ingest`], each on
//! threads of its own, in this process; or somebody else's consumer takes in, and a [`Probe`] asks what came of it. What
//! it came to is a [`Repetition`](weir_engine::experiment::Repetition). Nothing here prints or writes a file.

mod bench;
mod consumer;
mod gateway;
mod ingester;
mod probe;
mod publisher;
mod setup;
mod streams;
mod watched;

pub use bench::{Bench, Progress, Trouble};
pub use probe::{Probe, ProbeError};
pub use setup::{Encoding, Saving, Setup, Taking, TopicError};
pub use streams::Background;
