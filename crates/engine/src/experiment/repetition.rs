//! What one repetition of one encoding came to.

use super::account::{Account, Imbalance, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[code, rows, milliseconds]` of the original measurement: 0 for well and 1 for not, or the SQLCODE of a gateway that said
/// one; rows; last insert − first insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Classic(pub i64, pub u64, pub u64);

/// When something happened first and last, in seconds since the first message was published.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stretch {
    /// First.
    pub first_seconds: f64,
    /// Last.
    pub last_seconds: f64,
}

/// What bulk streams have carried beside a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// Bits a second that came to the far end, all streams together.
    pub sent_bps: f64,
    /// Bits a second that came from it.
    pub received_bps: f64,
}

impl Carried {
    /// The mean of several; 0 of none.
    pub(crate) fn mean(all: impl Iterator<Item = Self>) -> Self {
        let (mut sum, mut number) = (Self::default(), 0.0);
        for one in all {
            sum.sent_bps += one.sent_bps;
            sum.received_bps += one.received_bps;
            number += 1.0;
        }
        let by = f64::max(number, 1.0);
        Self { sent_bps: sum.sent_bps / by, received_bps: sum.received_bps / by }
    }
}

/// One repetition of one encoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repetition {
    /// Its number, from 1.
    pub repetition: u32,
    /// The encoding's name: `avro` or `json`.
    pub encoding: String,
    /// What bulk streams carried beside it; none if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Carried>,
    /// The line of the original measurement.
    pub classic: Classic,
    /// What became of each message.
    pub account: Account,
    /// Sums of it that do not come out even.
    pub imbalances: Vec<Imbalance>,
    /// Messages handed to the link to the broker.
    pub publish: Option<Stretch>,
    /// Acknowledgements from the broker; none at QoS 0.
    pub acknowledge: Option<Stretch>,
    /// Messages from the broker.
    pub receive: Option<Stretch>,
    /// Messages decoded.
    pub decode: Option<Stretch>,
    /// Transactions committed.
    pub commit: Option<Stretch>,
    /// Time spent decoding; none of somebody else's consumer.
    pub decode_seconds: Option<f64>,
    /// Time spent in transactions.
    pub save_seconds: Option<f64>,
    /// Transactions; 0 of somebody else's consumer.
    pub commits: u64,
    /// Bytes of payload that were published.
    pub payload_bytes: u64,
    /// Bytes that the table takes at the end, its index included; 0 if nobody says.
    pub table_bytes: u64,
    /// What the ingester said meanwhile, or was said of a consumer.
    pub remarks: Vec<String>,
}

impl Stretch {
    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.last_seconds - self.first_seconds
    }
}

impl Repetition {
    /// Whether each message that was planned is a row, and no other is: then its times are those of the whole.
    pub fn is_whole(&self) -> bool {
        let others = self.imbalances.iter().any(|it| it.stage == Stage::Broker);
        self.account.counted == self.account.planned && self.account.saved == self.account.planned && !others
    }

    /// The line of the original measurement as it was printed.
    pub fn classic_line(&self) -> String {
        let Classic(code, rows, milliseconds) = self.classic;
        format!("[{code}, {rows}, {milliseconds}]")
    }
}

/// How an encoding of this name is called in tables.
pub fn title(encoding: &str) -> &str {
    match encoding {
        "avro" => "Avro",
        "json" => "JSON",
        other => other,
    }
}
