//! Many machines: `weir agent` waits for work, `weir agents` lists those that wait, and `--agents N` has them make the load of a run.

mod list;
mod load;
mod offer;
mod permits;
mod placement;
mod serve;
mod spawn;

pub(crate) use list::list;
pub(crate) use load::gather;
pub(crate) use serve::serve;
pub(crate) use spawn::spawn;

use weir_agents::NatsError;
use weir_runner::{ErrorKind, RunError};

/// What cannot be used of NATS: a server that is not there is as one under test that is not there.
fn of_nats(error: &NatsError) -> RunError {
    let exit = match error {
        NatsError::Unreachable { .. } | NatsError::Flood(_) => ErrorKind::TargetDied,
        NatsError::Refused(_) | NatsError::File { .. } => ErrorKind::Usage,
        NatsError::Thread(_) => ErrorKind::Internal,
    };
    RunError::new(exit, error.to_string())
}
