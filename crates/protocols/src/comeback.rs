//! Whether clients of streams come back: when their link is lost, and when their stream has ended.

use crate::given::Given;
use clap::Args;
use std::time::Duration;
use weir_clients::{Return, WorkloadError};
use weir_metrics::parse_duration;

/// Whether clients come back when their links are lost.
#[derive(Args)]
#[command(next_help_heading = "Clients that come back")]
pub(crate) struct Reconnect {
    /// Connect again when the link is lost or the stream has ended: after 0.1 s, then twice as long each time, up to 5 s, for up to
    /// a minute
    #[arg(long)]
    reconnect: bool,
}

/// How long viewers wait for a stream that has ended.
#[derive(Args)]
#[command(next_help_heading = "Clients that come back")]
pub(crate) struct EndGrace {
    /// How long a viewer waits for its stream to come again when the server has said that it ended; over WebRTC, where that ends
    /// the session, it asks again meanwhile, and only if this is given
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    end_grace: Duration,
}

/// Whether clients come back when their links are lost.
pub(crate) fn returns(given: &Given) -> Result<Return, WorkloadError> {
    let Reconnect { reconnect } = given.read()?;
    Ok(if reconnect { Return::USUAL } else { Return::default() })
}

/// How long a viewer waits for a stream that has ended.
pub(crate) fn end_grace(given: &Given) -> Result<Duration, WorkloadError> {
    Ok(given.read::<EndGrace>()?.end_grace)
}

/// The same of viewers that have to ask again, where it was given.
pub(crate) fn returns_after_end(given: &Given) -> Result<Return, WorkloadError> {
    let after_end = given.0.contains_key("end_grace").then(|| end_grace(given)).transpose()?;
    Ok(Return { after_end: after_end.filter(|grace| !grace.is_zero()), ..returns(given)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_back_if_they_are_asked_to_and_after_an_end_for_as_long_as_is_said() {
        let given = Given::default();
        assert_eq!(returns_after_end(&given).unwrap(), Return::default());
        assert_eq!(end_grace(&given).unwrap(), Duration::from_secs(2));
        let given = given.with("end_grace", "20s");
        let after_end = Some(Duration::from_secs(20));
        assert_eq!(returns_after_end(&given).unwrap(), Return { after_end, ..Return::default() });
        assert_eq!(returns(&given.with("reconnect", "true")).unwrap(), Return::USUAL);
    }
}
