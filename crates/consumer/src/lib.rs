#![doc = include_str!("../README.md")]

mod agent_ingesters;
mod attendant;
mod error;
mod gateway;
mod ingester;
mod ingesters;
mod probe;
mod table;

pub use agent_ingesters::agent_ingesters;
pub use attendant::Say;
pub use error::ProbeError;
pub use ingester::MakeIngester;
pub use ingesters::{Tables, ingesters};
pub use probe::Probe;
