//! `weir ingest`: messages into a table, as a service that one runs.

use crate::args::Ingest;
use crate::codec::schema;
use crate::conduct::{interrupt_flag, refused, written};
use crate::exit::{Exit, Failure};
use crate::mqtt::{credentials_of, first_line};
use crate::tls::Asked;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_clients::{MqttSource, MqttVersion, Qos};
use weir_engine::scenario::Span;
use weir_ingest::{
    Counts, Decode, Destination, DestinationError, Durability, IngestError, Metrics, Outcome, Settings,
    Source,
};
use weir_record::{Format, Framing};

/// The table of payloads that no schema gives a name to.
const RAW_TABLE: &str = "messages";

/// Bytes that may wait to be saved.
const QUEUE: usize = 16 << 20;

/// Takes messages and saves them until there are enough, or it is told to stop.
pub(crate) fn ingest(args: &Ingest) -> Result<Exit, Failure> {
    if let Some(path) = json_file(args) {
        // What cannot be written is better known before.
        let file = std::fs::File::options().append(true).create(true).open(path);
        file.map_err(|error| refused(path, &error))?;
    }
    let schema = args.schema.as_deref().map(schema).transpose()?;
    let mut decode = match &schema {
        Some(schema) => Decode::records(schema, format(args)?),
        None => Decode::raw(),
    };
    let named = schema.as_ref().map(|schema| schema.name().rsplit('.').next().unwrap_or_default());
    let table = args.table.as_deref().or(named).unwrap_or(RAW_TABLE).to_owned();
    let settings = settings(args, table)?;
    let counts = Arc::new(Counts::default());
    let interrupt = interrupt_flag()?;
    if let Some(address) = args.metrics {
        let metrics = Metrics::listen(address, &counts)
            .map_err(|error| Failure::new(Exit::Usage, format!("--metrics {address}: {error}")))?;
        say(&format!("metrics at http://{}/metrics", metrics.address()));
    }
    if let Some(span) = &args.duration {
        stop_after(span.get(), interrupt.clone());
    }
    let outcome = weir_ingest::run(&settings, &mut decode, &counts, &interrupt, &say).map_err(|error| {
        let exit = match &error {
            IngestError::Store(error) => Exit::of_store(&settings.destination, error, Exit::Usage),
            IngestError::Options(_) | IngestError::System(_) => Exit::Internal,
        };
        Failure::new(exit, error.to_string())
    })?;
    print(&outcome, &settings.source.name, args)?;
    match &outcome.ended {
        Ok(_) => Ok(Exit::Passed),
        Err(words) => {
            let exit = if outcome.is_unanswered { Exit::TargetDied } else { Exit::Internal };
            Err(Failure::new(exit, words.clone()))
        }
    }
}

fn format(args: &Ingest) -> Result<Format, Failure> {
    if args.format == "json" {
        return Ok(Format::Json);
    }
    let framing: Framing = args.avro_encoding.parse().map_err(Failure::with(Exit::Usage))?;
    Ok(Format::Avro(framing))
}

fn settings(args: &Ingest, table: String) -> Result<Settings, Failure> {
    let usage = |line: String| Failure::new(Exit::Usage, line);
    let Ingest { insecure, cacert, cert, key, .. } = args;
    let tls = Asked { insecure: *insecure, cacert, cert, key }.client_tls().map_err(usage)?;
    let source = MqttSource::find(&args.url, &tls).map_err(Failure::with(Exit::Usage))?;
    let elsewhere = credentials_of(args.user.as_deref(), args.password_file.as_deref()).map_err(usage)?;
    let credentials = source.credentials.or(elsewhere);
    let version = if args.mqtt_version == "5" { MqttVersion::V5 } else { MqttVersion::V311 };
    let name = source.target.to_string();
    let destination = destination(args)?;
    let client_id =
        args.client_id.clone().unwrap_or_else(|| client_id(&[&name, &destination.to_string(), &table]));
    // A batch of Parquet is a file.
    let (batch, linger) = match destination {
        Destination::Parquet(_) => (50_000, Duration::from_secs(1)),
        _ => (1_000, Duration::from_millis(50)),
    };
    let batch = args.batch.map_or(batch, |batch| batch as usize);
    let linger = args.linger.as_ref().map_or(linger, Span::get);
    let window = args.window.unwrap_or_else(|| (batch * 4).clamp(100, usize::from(u16::MAX)) as u16);
    let mut options = weir_ingest::ClientOptions::new(version, client_id);
    options.clean_start = false;
    options.session_expiry = args.session.get().as_secs().min(u32::MAX.into()) as u32;
    options.keep_alive = args.keep_alive.get().as_secs().min(u16::MAX.into()) as u16;
    options.receive_maximum = window;
    if let Some(credentials) = credentials {
        options.password = Some(credentials.password.into_bytes()).filter(|password| !password.is_empty());
        options.user_name = Some(credentials.user);
    }
    // The argument parser lets 0, 1 and 2 through.
    let qos = Qos::from_bits(args.qos).unwrap_or(Qos::AtLeastOnce);
    Ok(Settings {
        source: Source { door: source.door, filter: source.filter, name, options, qos },
        destination,
        durability: Durability::Full,
        table,
        batch,
        linger,
        count: args.count,
        max_message: args.max_message,
        queue: QUEUE,
        waits: true,
    })
}

/// Where rows go, with a password that no list of processes shows.
fn destination(args: &Ingest) -> Result<Destination, Failure> {
    place(&args.save, args.save_password_file.as_deref())
        .map_err(|line| Failure::new(Exit::Usage, format!("--save: {line}")))
}

/// A place to save to, with the password of a file or of the environment.
pub(crate) fn place(text: &str, password_file: Option<&Path>) -> Result<Destination, String> {
    // Not parsed as an argument: what is wrong there is shown, and this may hold a password.
    let mut destination: Destination = text.parse().map_err(|error: DestinationError| error.to_string())?;
    if let Destination::Postgres(database) = &mut destination {
        let password = match password_file {
            Some(path) => Some(first_line(path)?),
            None if database.has_password() => None,
            None => std::env::var("PGPASSWORD").ok(),
        };
        if let Some(password) = password {
            database.set_password(&password);
        }
    }
    Ok(destination)
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

/// One line for a person, beside what is printed at the end.
fn say(line: &str) {
    // A closed terminal cannot be told.
    let _ = writeln!(std::io::stderr(), "weir: {line}");
}

fn json_file(args: &Ingest) -> Option<&Path> {
    args.json.as_deref().filter(|path| path.as_os_str() != "-")
}

fn print(outcome: &Outcome, broker: &str, args: &Ingest) -> Result<(), Failure> {
    let json = outcome.json();
    if let Some(path) = json_file(args) {
        std::fs::write(path, format!("{json:#}\n")).map_err(|error| refused(path, &error))?;
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
