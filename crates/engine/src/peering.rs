//! What a scenario says of WebRTC: the key `rtc` of a workload. Read here, understood by who makes the clients.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What only WebRTC has. A token is never in it: it comes from a file or from the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RtcSpec {
    /// File whose first line is WHEP's bearer token.
    pub token_file: Option<std::path::PathBuf>,
    /// What viewers do not say to the server, to be like other testers.
    pub off: Vec<Feedback>,
}

/// What a viewer says to the server while it plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feedback {
    /// Requests for lost packets.
    Nack,
    /// Requests for keyframes.
    Pli,
    /// Receiver reports.
    Reports,
    /// What bandwidth there is: transport-wide congestion control, REMB.
    Bandwidth,
}
