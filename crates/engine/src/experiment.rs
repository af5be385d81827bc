//! Experiments with encodings of records: what a scenario says of one, and what its repetitions come to. Values only; who
//! runs it is `weir-experiment`.

mod account;
mod repetition;
mod summary;

pub use account::{Account, Imbalance, Stage};
pub use repetition::{Carried, Classic, Repetition, Stretch, title};
pub use summary::{
    Beside, Comparison, Difference, EncodingSummary, Ending, ExperimentSummary, Facts, LAYOUT, MEASURES,
    Measured, Measurement, check_threshold,
};

use crate::scenario::{Scenario, ScenarioError, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The key `experiment`: the same records published, received, decoded and saved in each encoding, by turns. A password is never in it: it
/// comes from a file or from the environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// Where messages go: `mqtt://host/topic/{encoding}/{seq}`. `{encoding}` stands for `avro` and `json`, `{ENCODING}`
    /// for `AVRO` and `JSON`, `{seq}` for the message's number.
    pub publish: String,
    /// The Avro schema of the records (.avsc).
    pub schema: PathBuf,
    /// Where rows go: `sqlite:FILE`, `postgres://user@host/database` or `parquet:DIR`.
    #[serde(default)]
    pub save: Option<String>,
    /// Instead of it, somebody else's consumer, who is asked: `http://host:port/csp/mqtt/rest` of the gateway of the original
    /// measurement, or `sql:postgres://user@host/database#TABLE` for a table that it fills.
    #[serde(default)]
    pub probe: Option<String>,
    /// The encodings to compare; `[avro, json]` if absent.
    #[serde(default)]
    pub encodings: Vec<String>,
    /// What is around a record in Avro: `schemaless`, `single-object` or `container`.
    #[serde(default)]
    pub avro_encoding: Option<String>,
    /// How often each encoding is measured, by turns; 30 if absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = 10_000))]
    pub repetitions: Option<u32>,
    /// Messages of a repetition, one record each; 5,000 if absent.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub count: Option<u64>,
    /// Messages a second: `2000/s`; as fast as the broker takes them if absent.
    #[serde(default)]
    pub rate: Option<String>,
    /// Version of MQTT that publisher and ingester speak, `5` or `3.1.1`; 5 if absent.
    #[serde(default)]
    pub mqtt_version: Option<String>,
    /// Quality of service, 0 to 2, of publisher and ingester; 1 if absent.
    #[serde(default)]
    #[schemars(range(max = 2))]
    pub qos: Option<u8>,
    /// How many messages of the publisher may be unacknowledged; 1,000 if absent.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub window: Option<u16>,
    /// How many messages the ingester may have unacknowledged; four batches if absent.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub receive_window: Option<u16>,
    /// What the tables' names begin with; `weir_experiment` if absent. They are made anew in each repetition, and what was
    /// in them is gone.
    #[serde(default)]
    pub table: Option<String>,
    /// What of a commit is on the disk when it counts: `full`, `normal` (a crash of the machine may take the last commits) or
    /// `off` (it may damage a file of SQLite); `full` if absent.
    #[serde(default)]
    pub durability: Option<String>,
    /// Records of a transaction, at most; 1,000 if absent, of Parquet 50,000.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub batch: Option<u32>,
    /// How long the first record of a transaction waits for others; 50 ms if absent, of Parquet 1 s.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub linger: Option<Span>,
    /// How long nothing may come, with messages missing, before they are lost; 1 s if absent, with a background 5 s.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub settle: Option<Span>,
    /// How long nothing may move before the experiment ends as failed; 30 s if absent.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub timeout: Option<Span>,
    /// User name at the broker.
    #[serde(default)]
    pub user: Option<String>,
    /// File whose first line is the password at the broker.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
    /// File whose first line is the password of the database.
    #[serde(default)]
    pub save_password_file: Option<PathBuf>,
}

impl ExperimentSpec {
    /// Leaves in its URLs what may be shown.
    pub(crate) fn forget_secrets(&mut self) {
        self.publish = weir_clients::shown(&self.publish);
        let places = self.save.iter_mut().chain(&mut self.probe);
        for place in places.filter(|place| place.contains("://")) {
            *place = weir_clients::shown(place);
        }
    }
}

impl Scenario {
    /// Checks that a scenario of an experiment says nothing that only workloads have.
    ///
    /// # Errors
    /// Names the key.
    pub fn check_experiment(&self) -> Result<(), ScenarioError> {
        let of_workloads = [
            ("workloads", !self.workloads.is_empty()),
            ("watch", !self.watch.is_empty()),
            ("prometheus", self.prometheus.is_some()),
            ("node_exporter", self.node_exporter.is_some()),
            ("base", self.base.is_some()),
            ("warmup", self.warmup.is_some()),
            ("drain", self.drain.is_some()),
            ("abort", !self.abort.is_empty()),
            ("bind_addr", !self.bind_addr.is_empty()),
            ("shards", self.shards.is_some()),
        ];
        match of_workloads.iter().find(|(_, said)| *said) {
            Some((key, _)) => Err(ScenarioError::NotOfExperiments(key)),
            None => Ok(()),
        }
    }
}
