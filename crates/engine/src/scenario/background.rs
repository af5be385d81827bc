//! The key `background`: bulk TCP streams beside the load.

use super::error::ScenarioError;
use super::written::SizeText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TCP streams that fill the way between two machines, as `iperf3 -P` does. The peer is `weir origin --bulk`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BackgroundSpec {
    /// The peer, `HOST:PORT`; one of weir's own on 127.0.0.1 if absent, which loads this machine only.
    pub to: Option<String>,
    /// Streams each way.
    #[schemars(range(min = 1))]
    pub tcp_streams: u32,
    /// Whether the peer sends, too.
    pub both_ways: bool,
    /// Bytes that are sent at a time, up to 1MiB: `512KiB`.
    #[schemars(with = "String")]
    pub block: SizeText,
}

impl Default for BackgroundSpec {
    /// 128 streams of blocks of 128 KiB, one way.
    fn default() -> Self {
        Self { to: None, tcp_streams: 128, both_ways: false, block: SizeText::from_bytes(128 << 10) }
    }
}

impl BackgroundSpec {
    /// Where its peer is, and how many bytes a block has.
    ///
    /// # Errors
    /// A background of nothing or without a peer.
    pub fn check(&self) -> Result<(String, u32), ScenarioError> {
        let largest = weir_clients::BulkOptions::LARGEST_BLOCK;
        let block = u32::try_from(self.block.get()).ok().filter(|block| (1..=largest).contains(block));
        match (&self.to, block) {
            (Some(to), Some(block)) if self.tcp_streams > 0 => Ok((to.clone(), block)),
            (None, _) => Err(ScenarioError::Background("say `to`, HOST:PORT of a `weir origin --bulk`")),
            _ => Err(ScenarioError::Background("give one stream at least, and a block of 1B to 1MiB")),
        }
    }
}
