//! An experiment that is ready to run.

use crate::probe::Probe;
use crate::streams::Background;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{Credentials, MqttVersion, Qos};
use weir_ingest::{Destination, Durability};
use weir_record::{Format, Framing, Schema};
use weir_shard::tls::ClientTls;

/// What stands for an encoding in a URL, small and large.
const PLACES: [&str; 2] = ["{encoding}", "{ENCODING}"];

/// One of those that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Avro, with this around a record.
    Avro(Framing),
    /// JSON.
    Json,
}

/// All that the repetitions have in common.
#[derive(Debug)]
pub struct Setup {
    /// The URL that messages go to, with places for the encoding and the message's number.
    pub publish: String,
    /// The file of the schema.
    pub schema_file: PathBuf,
    /// The schema of the records.
    pub schema: Schema,
    /// What is compared, in this order.
    pub encodings: Vec<Encoding>,
    /// How often each is measured.
    pub repetitions: u32,
    /// Messages of a repetition.
    pub count: u64,
    /// Messages a second; `None` for as fast as the broker takes them.
    pub rate: Option<f64>,
    /// Version of MQTT of publisher and ingester.
    pub version: MqttVersion,
    /// Quality of service of publisher and ingester.
    pub qos: Qos,
    /// Messages of the publisher that may be unacknowledged.
    pub window: u16,
    /// Who takes the messages.
    pub taking: Taking,
    /// How long nothing may come before what is missing is lost.
    pub settle: Duration,
    /// How long nothing may move.
    pub timeout: Duration,
    /// User and password at the broker, for a URL that names none.
    pub credentials: Option<Credentials>,
    /// How to secure links to the broker.
    pub tls: ClientTls,
    /// Seed of the records.
    pub seed: u64,
    /// Bulk TCP beside every second measurement of each encoding.
    pub background: Option<Background>,
}

/// Who takes the messages.
#[derive(Debug)]
pub enum Taking {
    /// An ingester of weir's own.
    Ingest(Saving),
    /// Somebody else's consumer, who is asked what came of them.
    Probe(Box<Probe>),
}

/// What an ingester does with records.
#[derive(Clone, Debug)]
pub struct Saving {
    /// Where rows go.
    pub destination: Destination,
    /// What of a commit is on the disk when it counts.
    pub durability: Durability,
    /// What tables' names begin with.
    pub table: String,
    /// Records of a transaction.
    pub batch: usize,
    /// How long the first of them waits for others.
    pub linger: Duration,
    /// Messages that may be unacknowledged.
    pub receive_window: u16,
}

/// A URL to which nothing can be published so that it can be told what it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "publish: {0} has no {{encoding}} in its topic, so that encodings would mix; write mqtt://HOST/TOPIC/{{encoding}}/{{seq}}"
)]
pub struct TopicError(pub String);

impl Encoding {
    /// `avro` or `json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avro(_) => "avro",
            Self::Json => "json",
        }
    }

    /// A text with its name in the places for it.
    pub(crate) fn into_text(self, text: &str) -> String {
        let name = self.name();
        text.replace(PLACES[0], name).replace(PLACES[1], &name.to_uppercase())
    }

    pub(crate) fn format(self) -> Format {
        match self {
            Self::Avro(framing) => Format::Avro(framing),
            Self::Json => Format::Json,
        }
    }
}

impl Setup {
    /// Checks that each encoding has a topic of its own, and that messages can be made for it.
    ///
    /// # Errors
    /// What is wrong, in one line.
    pub fn check(&self) -> Result<(), String> {
        self.check_topics().map_err(|error| error.to_string())?;
        self.encodings.iter().try_for_each(|encoding| {
            let made = crate::publisher::workload(self, *encoding, &Arc::default());
            made.map(|_| ()).map_err(|error| format!("publish: {error}"))
        })
    }

    fn check_topics(&self) -> Result<(), TopicError> {
        let topic = self.publish.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
        let told_apart = topic.is_some_and(|(_, topic)| PLACES.iter().any(|place| topic.contains(place)));
        if told_apart || self.encodings.len() < 2 {
            Ok(())
        } else {
            Err(TopicError(weir_clients::shown(&self.publish)))
        }
    }

    /// The URL that messages of an encoding go to.
    pub(crate) fn url(&self, encoding: Encoding) -> String {
        encoding.into_text(&self.publish)
    }

    /// The URL of all of them: levels that change from message to message are wildcards.
    pub(crate) fn filter(&self, encoding: Encoding) -> String {
        let url = self.url(encoding);
        let Some((front, rest)) = url.split_once("://") else { return url };
        let (host, topic) = rest.split_once('/').unwrap_or((rest, ""));
        let levels: Vec<_> = topic
            .split('/')
            .map(|level| if level.contains("{seq}") || level.contains("{client}") { "+" } else { level })
            .collect();
        format!("{front}://{host}/{}", levels.join("/"))
    }

    /// The broker as it is called in messages: without user and password.
    pub(crate) fn broker(&self, encoding: Encoding) -> String {
        let url = weir_clients::shown(&self.url(encoding));
        let path = url.find("://").and_then(|at| url[at + 3..].find('/').map(|slash| at + 3 + slash));
        url[..path.unwrap_or(url.len())].to_owned()
    }
}

impl Saving {
    /// The table of an encoding.
    pub(crate) fn table(&self, encoding: Encoding) -> String {
        format!("{}_{}", self.table, encoding.name())
    }

    /// The destination of an encoding: files of Parquet are in a directory of each one's own.
    pub(crate) fn destination(&self, encoding: Encoding) -> Destination {
        match &self.destination {
            Destination::Parquet(directory) => Destination::Parquet(directory.join(self.table(encoding))),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saving() -> Saving {
        Saving {
            destination: Destination::Parquet("d".into()),
            durability: Durability::Full,
            table: "t".to_owned(),
            batch: 1,
            linger: Duration::ZERO,
            receive_window: 1,
        }
    }

    fn setup(publish: &str) -> Setup {
        let schema = r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}"#;
        Setup {
            publish: publish.to_owned(),
            schema_file: PathBuf::new(),
            schema: Schema::parse(schema).unwrap(),
            encodings: vec![Encoding::Avro(Framing::Schemaless), Encoding::Json],
            repetitions: 1,
            count: 1,
            rate: None,
            version: MqttVersion::V5,
            qos: Qos::AtLeastOnce,
            window: 1,
            taking: Taking::Ingest(saving()),
            settle: Duration::ZERO,
            timeout: Duration::ZERO,
            credentials: None,
            tls: ClientTls::default(),
            seed: 0,
            background: None,
        }
    }

    #[test]
    fn each_encoding_has_its_own_topics_and_its_own_table() {
        let setup = setup("mqtt://u:p@h:1//XGH/PY{ENCODING}/{seq}");
        setup.check_topics().unwrap();
        assert_eq!(setup.url(Encoding::Json), "mqtt://u:p@h:1//XGH/PYJSON/{seq}");
        assert_eq!(setup.filter(Encoding::Json), "mqtt://u:p@h:1//XGH/PYJSON/+");
        assert_eq!(setup.broker(Encoding::Json), "mqtt://h:1");
        assert_eq!(saving().table(Encoding::Json), "t_json");
        assert_eq!(saving().destination(Encoding::Json).to_string(), "parquet:d/t_json");
    }

    #[test]
    fn topics_that_mix_encodings_are_refused_without_showing_a_password() {
        let error = setup("mqtt://u:p@h/{seq}").check_topics().unwrap_err().to_string();
        assert!(error.contains("mqtt://h/{seq} has no {encoding}") && !error.contains("u:p"), "{error}");
        assert!(Setup { encodings: vec![Encoding::Json], ..setup("mqtt://h/{seq}") }.check_topics().is_ok());
    }
}
