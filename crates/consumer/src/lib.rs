//! What takes the messages of a run that saves them: weir's own ingester, the service of [`weir_ingest`] on threads of its own,
//! or somebody else's consumer, which a [`Probe`] asks what became of them. Nothing here prints or writes a file.

mod error;
mod gateway;
mod ingester;
mod probe;
mod table;

pub use error::ProbeError;
pub use ingester::ingester;
pub use probe::Probe;
