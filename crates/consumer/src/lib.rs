//! What takes the messages of a run that saves them: weir's own ingesters, the service of [`weir_ingest`] on threads of its own,
//! here or at agents, or somebody else's consumer, which a [`Probe`] asks what became of them. Nothing here prints or writes a file.

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
