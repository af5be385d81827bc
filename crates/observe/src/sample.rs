//! One line of `observe.ndjson`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostSample, MachineSample, ProcessSample, TargetSample};

/// Everything that was observed at one moment. Counters are running totals:
/// [`Usage::between`](crate::Usage::between) two samples makes rates of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When, in nanoseconds on the caller's monotonic clock.
    pub at_ns: u64,
    /// The watched servers, in the order in which they were asked for.
    pub targets: Vec<TargetSample>,
    /// weir itself, from `/proc/self`.
    pub generator: ProcessSample,
    /// The machine that weir runs on.
    pub host: HostSample,
    /// What was heard of other machines, in the order in which they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineSample>,
}
