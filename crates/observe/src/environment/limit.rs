//! A limit that the kernel sets a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A soft and a hard limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// The one in force.
    pub soft: Option<u64>,
    /// The one up to which it can be raised.
    pub hard: Option<u64>,
}
