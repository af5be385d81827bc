//! What the clients of a workload do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a workload's clients did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Viewers, subscribers.
    Play,
    /// Publishers.
    Publish,
    /// A consumer that saves messages: weir's ingester, or another's that is asked.
    Ingest,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Play => "play",
            Self::Publish => "publish",
            Self::Ingest => "ingest",
        }
    }
}
