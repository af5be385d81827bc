//! The peer of a scenario's background load, if the scenario names none.

use crate::error::{ErrorKind, RunError};
use weir_engine::scenario::Scenario;
use weir_origin::{ANY_PORT, BULK, Origin, OriginConfig};

/// Starts a peer on 127.0.0.1 for a background that names none. It ends when it is dropped.
pub fn far_end(scenario: &mut Scenario) -> Result<Option<Origin>, RunError> {
    let Some(background) = scenario.background.as_mut().filter(|it| it.to.is_none()) else { return Ok(None) };
    let config = OriginConfig::default().listening(&BULK, ANY_PORT);
    let origin = Origin::start(&config).map_err(RunError::with(ErrorKind::Internal))?;
    background.to = origin.address("bulk").map(|address| address.to_string());
    Ok(Some(origin))
}
