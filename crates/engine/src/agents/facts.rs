//! Who an agent is, as a run directory and a summary name it.

use crate::record::kernel_clock::KernelClock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An agent, as a run directory names it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFacts {
    /// Its name.
    pub name: String,
    /// The machine that it runs on.
    pub hostname: String,
    /// Cores that it may use.
    pub cores: u32,
    /// `--label` pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What its kernel said of its clock before the run, where it may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<KernelClock>,
}
