//! The far end of a scenario's background load, if the scenario names none.

use crate::exit::{Exit, Failure};
use std::net::{Ipv4Addr, SocketAddr};
use weir_engine::scenario::Scenario;
use weir_origin::{Origin, OriginConfig};

/// Starts a far end on 127.0.0.1 for a background that names none. It ends when it is dropped.
pub(crate) fn far_end(scenario: &mut Scenario) -> Result<Option<Origin>, Failure> {
    let Some(background) = scenario.background.as_mut().filter(|it| it.to.is_none()) else { return Ok(None) };
    let bulk = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let origin = Origin::start(&OriginConfig { bulk, ..OriginConfig::default() })
        .map_err(Failure::with(Exit::Internal))?;
    background.to = origin.addresses().bulk.map(|address| address.to_string());
    Ok(Some(origin))
}
