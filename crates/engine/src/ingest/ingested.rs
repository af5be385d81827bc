//! What a run came to whose messages were saved.

use super::account::{Imbalance, IngestStage, MessageBalance};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[code, rows, milliseconds]` of the original measurement: 0 for well and 1 for not, or the SQLCODE of a gateway that said
/// one; rows; last insert − first insert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Classic(pub i64, pub u64, pub u64);

/// When something happened first and last, in seconds since the first message was published.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstAndLast {
    /// First.
    pub first_seconds: f64,
    /// Last.
    pub last_seconds: f64,
}

/// What became of a run's messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ingested {
    /// The line of the original measurement.
    pub classic: Classic,
    /// What became of each message.
    pub account: MessageBalance,
    /// Sums of it that do not come out even.
    pub imbalances: Vec<Imbalance>,
    /// Messages handed to the link to the broker.
    pub publish: Option<FirstAndLast>,
    /// Acknowledgements from the broker; none at QoS 0.
    pub acknowledge: Option<FirstAndLast>,
    /// Messages from the broker.
    pub receive: Option<FirstAndLast>,
    /// Messages decoded.
    pub decode: Option<FirstAndLast>,
    /// Transactions committed.
    pub commit: Option<FirstAndLast>,
    /// Time spent decoding; absent for another program's consumer.
    pub decode_seconds: Option<f64>,
    /// Time spent in transactions.
    pub save_seconds: Option<f64>,
    /// Transactions; 0 for another program's consumer.
    pub commits: u64,
    /// Bytes of payload that were published.
    pub payload_bytes: u64,
    /// Bytes that the table takes at the end, its index included; 0 if unknown.
    pub table_bytes: u64,
    /// What a commit was worth when it was counted; absent for another program's consumer.
    pub durability: Option<String>,
    /// What the ingester said meanwhile, or was said of a consumer.
    pub remarks: Vec<String>,
}

impl FirstAndLast {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.last_seconds - self.first_seconds
    }
}

impl Ingested {
    /// Whether each message that was planned is a row, and no other is: then its times are those of the whole.
    pub fn is_whole(&self) -> bool {
        let others = self.imbalances.iter().any(|it| it.stage == IngestStage::Broker);
        self.account.counted == self.account.planned && self.account.saved == self.account.planned && !others
    }
}

impl std::fmt::Display for Classic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(code, rows, milliseconds) = self;
        write!(f, "[{code}, {rows}, {milliseconds}]")
    }
}
