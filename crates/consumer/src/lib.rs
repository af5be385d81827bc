//! Who takes the messages of a run that saves them: weir's own ingester, the service of [`weir_ingest`] on threads of its own,
//! or somebody else's consumer, whom a [`Probe`] asks what came of them. Nothing here prints or writes a file.

mod gateway;
mod ingester;
mod probe;
mod watched;

pub use ingester::ingester;
pub use probe::{Probe, ProbeError};

use weir_engine::ingest::{Stage, Trouble};
use weir_ingest::StoreError;

/// A store that cannot be had.
fn of_store(stage: Stage, error: &StoreError) -> Trouble {
    Trouble {
        is_of_scenario: matches!(error, StoreError::Locked(_)),
        ..Trouble::new(stage, error.to_string())
    }
}
