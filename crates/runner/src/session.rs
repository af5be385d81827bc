//! What all runs of a call have in common.

use crate::agents::AgentSettings;
use crate::generators::Generators;
use crate::observer::Observer;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What all runs of a call have in common.
pub struct Session<'a> {
    /// The agents that make the load, if it is not this machine.
    pub agents: Option<AgentSettings>,
    /// Who looks on.
    pub watcher: &'a mut dyn Observer,
    /// Ends what goes on, once it is set.
    pub interrupt: &'a Arc<AtomicBool>,
}

impl Session<'_> {
    /// Which generators make the load.
    pub fn generators(&self) -> Generators {
        if self.agents.is_some() { Generators::Elsewhere } else { Generators::Here }
    }
}
