//! The far end of a scenario's background load, if the scenario names none.

use crate::exit::{Exit, Failure};
use weir_engine::scenario::Scenario;
use weir_origin::{ANY_PORT, BULK, Origin, OriginConfig};

/// Starts a far end on 127.0.0.1 for a background that names none. It ends when it is dropped.
pub(crate) fn far_end(scenario: &mut Scenario) -> Result<Option<Origin>, Failure> {
    let Some(background) = scenario.background.as_mut().filter(|it| it.to.is_none()) else { return Ok(None) };
    let config = OriginConfig::default().listening(&BULK, ANY_PORT);
    let origin = Origin::start(&config).map_err(Failure::with(Exit::Internal))?;
    background.to = origin.address("bulk").map(|address| address.to_string());
    Ok(Some(origin))
}
