//! In the place of agents, where the library was built without them: this machine makes the load of each run.

use crate::RunError;
use crate::session::Session;
use weir_engine::run::Prepared;

/// The agents of a run, which there are none of.
#[derive(Clone, Debug)]
pub enum AgentSettings {}

/// Leaves what is prepared as it is.
///
/// # Errors
/// None.
pub(crate) fn gather(prepared: Prepared, _: &mut Session<'_>) -> Result<Prepared, RunError> {
    Ok(prepared)
}
