//! Many machines: calls agents that wait at a NATS server, has them make the load of a run, or is one of them.

mod gather;
mod offer;
mod permits;
mod placement;
mod serve;

pub(crate) use gather::gather;
pub use serve::{AgentService, serve};

use crate::{ErrorKind, RunError};
use weir_agents::{NatsError, NatsServer};

/// The agents that are to make the load of a run.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// How many.
    pub count: u16,
    /// The NATS server at which they wait.
    pub server: NatsServer,
    /// How many may be lost without an end to the run.
    pub losses_allowed: u16,
}

/// What cannot be used of NATS: a server that is not there is as one under test that is not there.
pub fn of_nats(error: &NatsError) -> RunError {
    let kind = match error {
        NatsError::Unreachable { .. } | NatsError::Flood(_) => ErrorKind::TargetDied,
        NatsError::Refused(_) | NatsError::File { .. } => ErrorKind::Usage,
        NatsError::Thread(_) => ErrorKind::Internal,
    };
    RunError::new(kind, error.to_string())
}
