//! What comes from an agent while its part of a run goes on.

use super::end::AgentEnd;
use super::second::SecondLines;

/// What came from an agent.
#[derive(Debug)]
pub enum AgentReport {
    /// It has begun.
    Begun {
        /// How long after the common moment its first client could begin.
        late_seconds: f64,
        /// How far its clock may be from what it was taken for.
        clock_bound_seconds: f64,
    },
    /// A second.
    Second(SecondLines),
    /// Its run is over.
    Ended(AgentEnd),
    /// It is not there any more, and nothing will come.
    Lost(String),
    /// Something is wrong that a person should know.
    Trouble(String),
}
