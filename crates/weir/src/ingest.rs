//! `weir ingest`: messages into a table, as a service that one runs.

use crate::args::{Ingest, Tls};
use crate::clear_text::note_of_endpoint;
use crate::exit::{Exit, Failure};
use crate::ingest_live::IngestLive;
use crate::ingest_progress::{IngestProgress, Subject};
use crate::interrupt::interrupt_flag;
use crate::load::span_or;
use crate::machine::trust;
use crate::outlets::Outlets;
use crate::print::{note, written};
use crate::records::{destination, schema};
use crate::schema_registry::writer_schemas;
use crate::tls::TlsOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_clients::mqtt::{MqttSource, MqttVersion, Qos, is_random};
use weir_clients::{GivenFields, WorkloadError};
use weir_engine::scenario::{IntoSpec, Span};
use weir_ingest::{
    ClientOptions, Counts, Decode, Destination, Durability, Ended, IngestError, IngestSettings, Outcome,
    Source, UnknownDurability,
};
use weir_observe::HttpTrust;
use weir_protocols::mqtt::{Connection, Delivery, Dialogue};
use weir_record::{Format, Framing, UnknownFraming};

/// The table of payloads that no schema gives a name to.
const RAW_TABLE: &str = "messages";

/// Bytes that may wait to be saved.
const QUEUE: usize = 16 << 20;

/// The largest message that an ingester of a scenario takes.
const MAX_MESSAGE: usize = 64 << 20;

/// Takes messages and saves them until their number is reached or a signal stops it.
pub(crate) fn ingest(args: &Ingest) -> Result<Exit, Failure> {
    if let Some(path) = json_file(args) {
        // What cannot be written is better known before.
        let file = std::fs::File::options().append(true).create(true).open(path);
        file.map_err(|error| Failure::of_file(path, &error))?;
    }
    let (settings, mut decode) = service(args)?;
    let counts = Arc::new(Counts::default());
    let interrupt = interrupt_flag()?;
    let live = Outlets::open(&args.live(), &settings.source.name)?
        .map(|outlets| IngestLive::start(outlets, counts.clone(), settings.source.name.clone()))
        .transpose()
        .map_err(|error| Failure::new(Exit::Internal, format!("--live: {error}")))?;
    if let Some(span) = &args.duration {
        stop_after(span.get(), interrupt.clone());
    }
    let length = args.duration.as_ref().map(Span::get);
    let progress =
        (!args.quiet).then(|| IngestProgress::start(counts.clone(), length, Subject::of(&settings)));
    let say = |line: &str| match &progress {
        Some(progress) => progress.say(line),
        None => print_note(line),
    };
    let drain = args.drain.get();
    let outcome = weir_ingest::run_with_drain(&settings, drain, &mut decode, &counts, &interrupt, &say);
    drop(progress);
    let outcome = outcome.map_err(|error| {
        let exit = match &error {
            IngestError::Store(error) => Exit::of_store(&settings.destination, error, Exit::Usage),
            IngestError::Options(_) | IngestError::System(_) => Exit::Internal,
        };
        Failure::new(exit, error.to_string())
    })?;
    if let Some(live) = live {
        live.end(match &outcome.ended {
            Ok(Ended::Enough) => "weir has what it was to ingest, and this page stays as it is",
            Ok(Ended::Stopped) => "weir was told to stop, and this page stays as it is",
            Err(_) => "weir could not go on: its terminal says why",
        });
    }
    print(&outcome, &settings.source.name, args)?;
    match &outcome.ended {
        Ok(_) => Ok(Exit::Passed),
        Err(words) => {
            let exit = if outcome.is_unanswered { Exit::TargetDied } else { Exit::Internal };
            Err(Failure::new(exit, words.clone()))
        }
    }
}

impl Subject {
    fn of(settings: &IngestSettings) -> Self {
        let (source, table) = (&settings.source, &settings.table);
        let subscribed = format!(
            "subscribed to {} at QoS {}; rows go to {}, table {table}, what is not a record to {table}_dead; Ctrl-C ends it",
            source.name, source.qos as u8, settings.destination
        );
        let at_most_once = source.qos == Qos::AtMostOnce;
        Self { subscribed, broker: source.name.clone(), at_most_once }
    }
}

/// The flags in the form of a scenario's keys.
fn specs(args: &Ingest) -> (IntoSpec, Dialogue) {
    let into = IntoSpec {
        save: Some(args.save.clone()),
        save_password_file: args.save_password_file.clone(),
        schema: args.schema.clone(),
        format: Some(args.format.clone()),
        avro_encoding: Some(args.avro_encoding.clone()),
        schema_registry: args.schema_registry.clone(),
        table: args.table.clone(),
        partition: args.partition.clone(),
        durability: Some(args.durability.clone()),
        batch: args.batch,
        linger: args.linger.clone(),
        statement_timeout: args.statement_timeout.clone(),
        ..IntoSpec::default()
    };
    let connection = Connection {
        mqtt_version: args.mqtt_version,
        user: args.user.clone(),
        password_file: args.password_file.clone(),
        keep_alive: args.keep_alive.get(),
        client_id: args.client_id.clone(),
        session: Some(args.session.get()),
        no_reconnect: false,
        retry_connect: false,
        topic_alias_maximum: args.topic_alias_maximum,
        will: None,
        will_qos: None,
        will_retain: false,
        will_delay: None,
    };
    let delivery = Delivery { qos: Some(args.qos), window: args.window };
    (
        into,
        Dialogue {
            connection,
            path: args.path.clone(),
            fields: GivenFields::default(),
            users: args.users.clone(),
            delivery,
        },
    )
}

fn service(args: &Ingest) -> Result<(IngestSettings, Decode), Failure> {
    let usage = |line: String| Failure::new(Exit::Usage, line);
    let Tls { insecure, cacert, cert, key } = &args.tls;
    let tls = TlsOptions { insecure: *insecure, cacert, cert, key }.client_tls().map_err(usage)?;
    let source = MqttSource::find(&args.url, &tls).map_err(Failure::with(Exit::Usage))?;
    let (into, mut mqtt) = specs(args);
    if is_nameless(&mqtt) {
        mqtt.connection.session = None;
        if !args.quiet {
            print_note(
                "--client-id has {random:N}: a broker would keep its session of MQTT 3.1.1 for ever, so it is a clean one, and what \
                 comes while weir is away is not saved",
            );
        }
    }
    // A registry may be asked with a password, and is no target: `insecure` does not hold for it.
    let trust = trust(false, cacert.as_deref());
    let (mut settings, decode) =
        settings(&source, None, &into, &mqtt, &trust).map_err(|error| usage(error.of_command_line()))?;
    (settings.source.name, settings.waits) = (source.target.to_string(), true);
    (settings.count, settings.max_message) = (args.count, args.max_message);
    Ok((settings, decode))
}

/// Whether an ingester of MQTT 3.1.1 has another name each time that it is started.
fn is_nameless(mqtt: &Dialogue) -> bool {
    let connection = &mqtt.connection;
    connection.mqtt_version == MqttVersion::V311 && connection.client_id.as_deref().is_some_and(is_random)
}

/// Why there is no ingester.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
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
    fn of_command_line(&self) -> String {
        match self {
            Self::Option(key, words) => format!("--{}: {words}", key.replace('_', "-")),
            Self::File(words) | Self::Subscription(words) => words.clone(),
        }
    }
}

/// What ingester `number` of several does, or the only one, and how it reads payloads. Its session ends with it unless `mqtt` says for how
/// long it is kept.
pub(crate) fn settings(
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
        linger: span_or(into.linger.as_ref(), Duration::from_millis(linger)),
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
                    "{framing} records carry the id of their schema; say where schemas are found with --schema-registry \
                     (`schema_registry`): a URL, or a file of JSON such as {{\"7\": \"old.avsc\"}}"
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

fn stop_after(span: Duration, stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
    });
}

/// Prints a line on stderr, beside what is printed at the end.
fn print_note(line: &str) {
    note(format_args!("weir: {line}"));
}

fn json_file(args: &Ingest) -> Option<&Path> {
    args.json.as_deref().filter(|path| path.as_os_str() != "-")
}

fn print(outcome: &Outcome, broker: &str, args: &Ingest) -> Result<(), Failure> {
    let json = outcome.json();
    if let Some(path) = json_file(args) {
        std::fs::write(path, format!("{json:#}\n")).map_err(|error| Failure::of_file(path, &error))?;
    }
    let text = if args.json.as_deref() == Some(Path::new("-")) {
        format!("{json:#}\n")
    } else if args.quiet {
        String::new()
    } else {
        outcome.lines(broker)
    };
    written(std::io::stdout().lock().write_all(text.as_bytes()))
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
