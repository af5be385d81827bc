//! In the place of the consumer of a scenario's messages, where the library was built without databases.

use crate::generators::Generators;
use std::sync::Arc;
use weir_clients::Workload;
use weir_clients::mqtt::PublishTimes;
use weir_engine::WorkloadFacts;
use weir_engine::ingest::Consuming;
use weir_engine::plan::Plan;
use weir_engine::scenario::{Scenario, WorkloadSpec};

/// Refuses a workload that saves.
///
/// # Errors
/// Always: what it would be saved by is not there.
pub(crate) fn workload(spec: &WorkloadSpec) -> Result<(WorkloadFacts, Workload), String> {
    Err(format!(
        "workload '{}' saves messages, and weir-runner was built without databases; build it with its feature `databases`",
        spec.label()
    ))
}

/// Gives no consumer: a scenario that has a workload for one was refused before.
///
/// # Errors
/// None.
pub(crate) fn consuming(
    _: &Scenario,
    _: &Plan,
    _: Arc<PublishTimes>,
    _: &Generators,
) -> Result<Option<Consuming>, String> {
    Ok(None)
}
