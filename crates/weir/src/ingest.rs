//! `weir ingest`: messages into a table, as a service that one runs.

use crate::args::{Ingest, Tls};
use crate::exit::Exit;
use crate::ingest_live::IngestLive;
use crate::ingest_progress::{IngestProgress, Subject};
use crate::interrupt::interrupt_flag;
use crate::outlets::Outlets;
use crate::print::{note, written};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_clients::GivenFields;
use weir_clients::mqtt::{MqttSource, MqttVersion, Qos, is_random};
use weir_engine::scenario::{IntoSpec, Span};
use weir_ingest::{Counts, Decode, Ended, IngestError, IngestSettings, Outcome};
use weir_protocols::mqtt::{ConnectOptions, Connection, Dialogue};
use weir_runner::ingester::settings;
use weir_runner::machine::trust;
use weir_runner::tls::TlsOptions;
use weir_runner::{ErrorKind, RunError};

/// How long the broker keeps the session of an ingester that is gone, unless something else is said.
const SESSION: Duration = Duration::from_secs(24 * 60 * 60);

/// Takes messages and saves them until their number is reached or a signal stops it.
pub(crate) fn ingest(args: &Ingest) -> Result<Exit, RunError> {
    if let Some(path) = json_file(args) {
        // What cannot be written is better known before.
        let file = std::fs::File::options().append(true).create(true).open(path);
        file.map_err(|error| RunError::of_file(path, &error))?;
    }
    let (settings, mut decode) = service(args)?;
    let counts = Arc::new(Counts::default());
    let interrupt = interrupt_flag()?;
    let live = Outlets::open(&args.live, &settings.source.name)?
        .map(|outlets| IngestLive::start(outlets, counts.clone(), settings.source.name.clone()))
        .transpose()
        .map_err(|error| RunError::new(ErrorKind::Internal, format!("--live: {error}")))?;
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
            IngestError::Store(error) => ErrorKind::of_store(&settings.destination, error, ErrorKind::Usage),
            IngestError::Options(_) | IngestError::System(_) => ErrorKind::Internal,
        };
        RunError::new(exit, error.to_string())
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
            let exit = if outcome.is_unanswered { ErrorKind::TargetDied } else { ErrorKind::Internal };
            Err(RunError::new(exit, words.clone()))
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
    let session = Some(args.connect.session.unwrap_or(SESSION));
    let connection = Connection::from(ConnectOptions { session, ..args.connect.clone() });
    (
        into,
        Dialogue {
            connection,
            path: args.path.clone(),
            fields: GivenFields::default(),
            users: args.users.clone(),
            delivery: args.delivery,
        },
    )
}

fn service(args: &Ingest) -> Result<(IngestSettings, Decode), RunError> {
    let usage = |line: String| RunError::new(ErrorKind::Usage, line);
    let Tls { insecure, cacert, cert, key } = &args.tls;
    let tls = TlsOptions { insecure: *insecure, cacert, cert, key }.client_tls().map_err(usage)?;
    let source = MqttSource::find(&args.url, &tls).map_err(RunError::with(ErrorKind::Usage))?;
    let (into, mut mqtt) = specs(args);
    if is_nameless(&mqtt) {
        mqtt.connection.connect.session = None;
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
    let connect = &mqtt.connection.connect;
    connect.mqtt_version == MqttVersion::V311 && connect.client_id.as_deref().is_some_and(is_random)
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

fn print(outcome: &Outcome, broker: &str, args: &Ingest) -> Result<(), RunError> {
    let json = outcome.json();
    if let Some(path) = json_file(args) {
        std::fs::write(path, format!("{json:#}\n")).map_err(|error| RunError::of_file(path, &error))?;
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
