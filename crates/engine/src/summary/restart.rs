//! What a restart of the server by the scenario did to the run's clients.

use super::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestartSummary {
    /// The program that was ended and started again.
    pub server: String,
    /// When it was told to end, since the run's beginning.
    pub at_seconds: f64,
    /// From then until it was started again; `None` if that was not done.
    pub down_seconds: Option<f64>,
    /// How often clients lost their links, up to the next restart or the run's end.
    pub cut_off: u64,
    /// Of these, clients that were not back then.
    pub away: u64,
    /// From the moment at which the server was told to end until all clients that lost their links were connected again; `None` if
    /// some did not come back, or if no client lost its link.
    pub reconnected_seconds: Option<f64>,
}

impl RestartSummary {
    /// One of which nothing more is known.
    pub(crate) fn new(server: String, at_seconds: f64) -> Self {
        Self { server, at_seconds, down_seconds: None, cut_off: 0, away: 0, reconnected_seconds: None }
    }
}

impl Summary {
    /// The longest time until all clients were connected again after a restart; `None` if some never were, or without a restart.
    pub fn reconnected_seconds(&self) -> Option<f64> {
        let times: Option<Vec<f64>> = self.restarts.iter().map(|it| it.reconnected_seconds).collect();
        times?.into_iter().reduce(f64::max)
    }
}
