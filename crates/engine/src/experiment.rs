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
            *place = without_user(place);
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

/// The URL of a database or a gateway without all that stands before its host, whatever it holds.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let (place, table) = place.split_once('#').map_or((place, ""), |(place, table)| (place, table));
    let place = place.split('?').next().unwrap_or_default();
    if table.is_empty() { format!("{scheme}://{place}") } else { format!("{scheme}://{place}#{table}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_password_holds_it_is_not_shown() {
        for (url, shows) in [
            ("postgres://me:s3/cr3t@h:5/d?sslmode=disable", "postgres://h:5/d"),
            ("sql:postgres://me:33#c@3t@h/d#simple_{encoding}", "sql:postgres://h/d#simple_{encoding}"),
            ("http://me:s?3@h:8882/csp/mqtt/rest", "http://h:8882/csp/mqtt/rest"),
            ("http://h:8882", "http://h:8882"),
        ] {
            assert_eq!(without_user(url), shows);
        }
    }
}
