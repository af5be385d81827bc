//! Messages on their way into a table: what a scenario says of them, who takes them, and what became of each. Which consumers
//! there are is not known here: weir's own ingester and others that are asked are behind one trait.

mod account;
mod consumer;
mod ingested;
pub(crate) mod intake;

pub use account::{Account, Imbalance, Stage};
pub use consumer::{Both, Consumed, Consumer, Counted, Place, Trouble};
pub use ingested::{Classic, Ingested, Span};
pub use intake::{Consuming, MakeConsumer, Messages};

use crate::scenario;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use weir_metrics::Schema;

/// What the protocol of a workload that saves is called where figures are looked up.
pub const PROTOCOL: &str = "ingest";

/// The figures of a workload that saves.
pub const SCHEMA: Schema = Schema::new(FIGURES);

weir_metrics::figures! {
    base = weir_metrics::common::FIGURES.len() as u16;
    pub(crate) FIGURES;
    SAVED: Counter = "saved", Count, "records committed to the table";
    DEAD_LETTERED: Counter = "dead_lettered", Count, "messages committed to the table of dead letters";
    COUNTED: Counter = "counted", Count, "rows that the table had more at the end than at the start";
    COMMITS: Counter = "commits", Count, "transactions";
    UNPUBLISHED: Counter = "unpublished", Count, "messages that were planned and not sent";
    UNACKNOWLEDGED: Counter = "unacknowledged", Count, "messages sent and not acknowledged";
    UNSETTLED: Counter = "unsettled", Count, "messages received that are neither saved nor dead-lettered nor duplicate";
    IMBALANCES: Counter = "imbalances", Count, "sums of the account that do not come out even";
    DECODE_TIME: Counter = "decode_time", Micros, "time spent decoding";
    SAVE_TIME: Counter = "save_time", Micros, "time spent in transactions";
    PUBLISH_TIME: Counter = "publish_time", Micros, "from the first message published to the last";
    RECEIVE_TIME: Counter = "receive_time", Micros, "from the first message received to the last";
    INSERT_TIME: Counter = "insert_time", Micros, "from the first commit to the last";
    TOTAL_TIME: Counter = "total_time", Micros, "from the first message published to the last commit";
    FIRST_INSERT: Counter = "first_insert", Micros, "from the first message published to the first commit";
}

/// The figures of a protocol, those of a workload that saves included.
pub fn schema_of(protocol: &str) -> Option<Schema> {
    if protocol == PROTOCOL { Some(SCHEMA) } else { weir_protocols::schema_of(protocol) }
}

/// The key `into` of a workload: what records are, and where they go. A password is never in it: it comes from a file or
/// from the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IntoSpec {
    /// Where rows go: `sqlite:FILE`, `postgres://user@host/database` or `parquet:DIR`.
    pub save: Option<String>,
    /// File whose first line is the password of the database.
    pub save_password_file: Option<PathBuf>,
    /// The Avro schema of the records (.avsc); payloads are saved as they come if absent.
    pub schema: Option<PathBuf>,
    /// How records are encoded, `avro` or `json`; Avro if absent.
    pub format: Option<String>,
    /// What is around a record in Avro: `schemaless`, `single-object` or `container`.
    pub avro_encoding: Option<String>,
    /// The table; the schema's name if absent.
    pub table: Option<String>,
    /// Empty the table before each run: what was in it is gone.
    pub empty: bool,
    /// What of a commit is on the disk when it counts: `full`, `normal` (a crash of the machine may take the last commits) or
    /// `off` (it may damage a file of SQLite); `full` if absent.
    pub durability: Option<String>,
    /// Records of a transaction, at most; 1,000 if absent, of Parquet 50,000.
    #[schemars(range(min = 1))]
    pub batch: Option<u32>,
    /// How long the first record of a transaction waits for others; 50 ms if absent, of Parquet 1 s.
    #[schemars(with = "Option<String>")]
    pub linger: Option<scenario::Span>,
    /// How long nothing may come, with messages missing, before they are lost; 1 s if absent, beside a background 5 s.
    #[schemars(with = "Option<String>")]
    pub settle: Option<scenario::Span>,
}
