//! From what is asked of an ingester to its settings: subscription, encoding, store.

use crate::clear_text::note_of_endpoint;
use crate::records::{destination, schema};
use crate::schema_registry::writer_schemas;
use std::time::Duration;
use weir_clients::WorkloadError;
use weir_clients::mqtt::{MqttSource, MqttVersion, Qos};
use weir_engine::scenario::{IntoSpec, Span};
use weir_http::HttpTrust;
use weir_ingest::{
    ClientOptions, Decode, Destination, Durability, IngestSettings, Source, UnknownDurability,
};
use weir_protocols::mqtt::Dialogue;
use weir_record::{Format, Framing, UnknownFraming};
use weir_setting::SCHEMA_REGISTRY;

/// The table of payloads that no schema gives a name to.
const RAW_TABLE: &str = "messages";

/// Bytes that may wait to be saved.
const QUEUE: usize = 16 << 20;

/// The largest message that an ingester of a scenario takes.
const MAX_MESSAGE: usize = 64 << 20;

/// Why there is no ingester.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An option, by its key in a scenario, asks for what cannot be.
    #[error("{0}: {1}")]
    Option(&'static str, String),
    /// A file that an option names cannot be used.
    #[error("{0}")]
    File(String),
    /// The subscription is one that cannot be asked for.
    #[error("{0}")]
    Subscription(String),
}

impl SettingsError {
    /// The same where options are flags.
    pub fn of_command_line(&self) -> String {
        match self {
            Self::Option(key, words) => format!("--{}: {words}", key.replace('_', "-")),
            Self::File(words) | Self::Subscription(words) => words.clone(),
        }
    }
}

/// What ingester `number` of several does, or the only one, and how it reads payloads. Its session ends with it unless `mqtt` says for how
/// long it is kept.
pub fn settings(
    source: &MqttSource,
    number: Option<u32>,
    into: &IntoSpec,
    mqtt: &Dialogue,
    trust: &HttpTrust,
) -> Result<(IngestSettings, Decode), SettingsError> {
    let of = |key: &'static str| move |words: String| SettingsError::Option(key, words);
    let schema = into.schema.as_deref().map(schema).transpose();
    let schema = schema.map_err(|failure| SettingsError::File(failure.to_string()))?;
    let decode = match &schema {
        Some(schema) => Decode::records(schema, format(into)?),
        None => Decode::raw(),
    };
    let decode = match &into.schema_registry {
        Some(place) => decode.with_writers(writer_schemas(place, trust).map_err(of("schema_registry"))?),
        None => decode,
    };
    let nowhere = || SettingsError::Option("into", "say where rows go: `save: sqlite:FILE`".to_owned());
    let save = into.save.as_deref().ok_or_else(nowhere)?;
    let mut destination = destination(save, into.save_password_file.as_deref(), trust).map_err(of("save"))?;
    match (into.partition.as_deref(), &mut destination) {
        (None, _) => {}
        (Some("day"), Destination::Postgres(database)) => database.partition_by_day(),
        (Some("day"), _) => {
            return Err(of("partition")("only tables of PostgreSQL are partitioned".to_owned()));
        }
        (Some(other), _) => return Err(of("partition")(format!("'{other}' is not a partition; write day"))),
    }
    if let Some(timeout) = into.statement_timeout.as_ref().map(Span::get) {
        if timeout < Duration::from_secs(1) {
            return Err(of("statement_timeout")("write 1s or more".to_owned()));
        }
        if !destination.set_statement_timeout(timeout) {
            return Err(of("statement_timeout")(
                "only PostgreSQL and ClickHouse have one; leave it out".to_owned(),
            ));
        }
    }
    let is_parquet = matches!(destination, Destination::Parquet(_));
    let topic = match &destination {
        Destination::Kafka(cluster) => cluster.topic(),
        _ => None,
    };
    let durability = into.durability.as_deref().map_or(Ok(Durability::Full), str::parse);
    let durability = durability.map_err(|error: UnknownDurability| of("durability")(error.to_string()))?;
    if is_parquet && durability != Durability::Full {
        let words = "a file of Parquet is on the disk when it has its name; leave it out";
        return Err(of("durability")(words.to_owned()));
    }
    if matches!(destination, Destination::Kafka(_)) && durability != Durability::Full {
        let words = "a record counts when all replicas in sync have it (acks=all); leave it out";
        return Err(of("durability")(words.to_owned()));
    }
    if let (Some(topic), Some(_)) = (topic, &into.table) {
        return Err(of("table")(format!(
            "the URL names the topic already, {topic}; leave one of the two out"
        )));
    }
    let topic = topic.map(str::to_owned);
    // A batch of Parquet is a file.
    let (batch, linger) = if is_parquet { (50_000, 1_000) } else { (1_000, 50) };
    let batch = into.batch.map_or(batch, |batch| batch as usize).max(1);
    let named =
        schema.as_ref().map(|schema| table_name(schema.name().rsplit('.').next().unwrap_or_default()));
    let table = into.table.clone().or(topic).or(named).unwrap_or_else(|| RAW_TABLE.to_owned());
    let window = (batch * 4).clamp(100, usize::from(u16::MAX)) as u16;
    let refused = |error: WorkloadError| SettingsError::Subscription(error.to_string());
    let mut options = mqtt.options(Qos::AtLeastOnce, window).map_err(refused)?;
    options
        .client_id
        .get_or_insert_with(|| client_id(&[&source.target.to_string(), &destination.to_string(), &table]));
    let subscriber = source.subscriber(number, &options).map_err(refused)?;
    let client = ClientOptions {
        // MQTT 5 ends a session with its connection; 3.1.1 has only the clean session for that.
        clean_start: options.session.is_none() && options.version == MqttVersion::V311,
        ..subscriber.options
    };
    if client.password.is_some() {
        note_of_endpoint(&source.endpoint);
    }
    let settings = IngestSettings {
        source: Source {
            endpoint: source.endpoint.clone(),
            socket: subscriber.socket,
            filter: subscriber.filter,
            name: source.target.base(),
            options: client,
            qos: options.qos,
            ends_session: false,
        },
        destination,
        durability,
        table,
        batch,
        linger: into.linger.as_ref().map_or(Duration::from_millis(linger), Span::get),
        count: None,
        max_message: MAX_MESSAGE,
        queue: QUEUE,
        // A run cannot measure a broker that is not there.
        waits: false,
    };
    Ok((settings, decode))
}

/// How records are encoded.
fn format(into: &IntoSpec) -> Result<Format, SettingsError> {
    match into.format.as_deref().unwrap_or("avro") {
        "json" => Ok(Format::Json),
        "avro-json" => Ok(Format::AvroJson),
        "avro" => {
            let framing: Framing =
                into.avro_encoding.as_deref().map_or(Ok(Framing::Schemaless), str::parse).map_err(
                    |error: UnknownFraming| SettingsError::Option("avro_encoding", error.to_string()),
                )?;
            if framing.is_registered() && into.schema_registry.is_none() {
                let words = format!(
                    "{framing} records carry the id of their schema; say where schemas are found with {}: \
                     a URL, or a file of JSON such as {{\"7\": \"old.avsc\"}}",
                    SCHEMA_REGISTRY.beside_flag(" (`schema_registry`)")
                );
                return Err(SettingsError::Option("avro_encoding", words));
            }
            Ok(Format::Avro(framing))
        }
        other => {
            let words = format!("'{other}' is not an encoding; write avro, json or avro-json");
            Err(SettingsError::Option("format", words))
        }
    }
}

/// The name of a table for records of this name, which SQL takes without quotes: `SimpleClass` is `simple_class`.
fn table_name(record: &str) -> String {
    let mut name = String::new();
    let mut before = '_';
    for letter in record.chars() {
        if letter.is_ascii_uppercase() && !before.is_ascii_uppercase() && before != '_' {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
        before = letter;
    }
    name
}

/// A name that the same command gets again, so that it goes on with the session of the one before it (FNV-1a).
fn client_id(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("weir-ingest-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_named_after_its_records_needs_no_quotes() {
        for (record, table) in [
            ("SimpleClass", "simple_class"),
            ("Reading2", "reading2"),
            ("HTTPLog", "httplog"),
            ("a_B", "a_b"),
        ] {
            assert_eq!(table_name(record), table);
        }
    }
}
