//! What an ingester takes in: SimpleClass records, QoS 1, through mosquitto on the same machine, into SQLite and into
//! PostgreSQL.
//!
//! `cargo bench -p weir --bench ingest -- [rounds] [records] [PLACE…]`, where a place is as `--save` takes it, or
//! `sqlite`, or `postgres`: a cluster of Debian's that is made for it, as initdb leaves it. First 5,000 records, from the
//! first commit to the last, as the original measurement has it; then as many as are asked for. Avro and JSON are
//! interleaved, and so is another build of weir that `WEIR_BEFORE` names. Records a second are those behind the first
//! commit. CPU is that of whole processes, by `/proc`, a record; of the database only where this bench has started it.

mod support;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, geteuid, kill_process, waitid};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::{fs::chown, process::CommandExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::{Failure, KilledOnDrop, arguments};
use tempfile::TempDir;
use weir_record::{Encoder, Format, Framing, Generator, Schema};
use weir_testing::free_port;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Clock ticks of `/proc/PID/stat` a second (`proc(5)`): 100 on every Linux that weir runs on.
const TICKS: f64 = 100.0;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");

fn main() -> Result<(), Failure> {
    let arguments = arguments();
    let rounds: u32 = arguments.first().map_or(Ok(3), |text| text.parse())?;
    let records: u64 = arguments.get(1).map_or(Ok(100_000), |text| text.parse())?;
    let before = std::env::var("WEIR_BEFORE").ok();
    let builds: Vec<_> = before.iter().map(|path| ("before", &**path)).chain([("now", WEIR)]).collect();
    let directory = tempfile::tempdir()?;
    let schema = Schema::parse(&std::fs::read_to_string(SCHEMA)?)?;
    let formats = [("avro", Format::Avro(Framing::Schemaless)), ("json", Format::Json)];
    for (name, format) in formats {
        let mut encoder = Encoder::new(&schema, format);
        encoder.push(Generator::new(&schema, 1).record(0)?)?;
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        println!("{name}: {} bytes a record", payload.len());
        std::fs::write(directory.path().join(name), payload)?;
    }
    let mut places: Vec<String> = arguments.iter().skip(2).cloned().collect();
    if places.is_empty() {
        places.push("sqlite".to_owned());
    }
    println!(
        "                                        first to last               a record, µs        CPU a record, µs"
    );
    println!(
        "build   place       records  format     commit, ms   records/s   decode    save   ingest  broker  publisher  database   commits"
    );
    for place in &places {
        let database = if place == "postgres" { Some(Database::start()?) } else { None };
        for count in [5_000, records] {
            for round in 0..rounds {
                for (format, _) in formats {
                    for (build, weir) in &builds {
                        let case =
                            Case { build, weir, place, database: database.as_ref(), format, count, round };
                        case.measure(directory.path())?;
                    }
                }
            }
        }
    }
    Ok(())
}

struct Case<'a> {
    build: &'a str,
    weir: &'a str,
    place: &'a str,
    database: Option<&'a Database>,
    format: &'a str,
    count: u64,
    round: u32,
}

impl Case<'_> {
    fn measure(&self, directory: &Path) -> Result<(), Failure> {
        let Self { build, weir, place, database, format, count, round } = *self;
        let port = free_port();
        // By default mosquitto lets a publisher with MQTT 5 have 20 messages in flight, and the publisher then sleeps and wakes
        // for each few of them.
        let configuration = directory.join("mosquitto.conf");
        let lines = "allow_anonymous true\nuser root\npersistence false\nmax_queued_messages 0\nmax_inflight_messages 1000\nlog_dest none\n";
        std::fs::write(&configuration, format!("listener {port} 127.0.0.1\n{lines}"))?;
        let mut command = Command::new("/usr/sbin/mosquitto");
        let broker = KilledOnDrop(quiet(command.arg("-c").arg(&configuration)).spawn()?);
        wait_for("mosquitto", || TcpStream::connect(("127.0.0.1", port)).is_ok())?;

        let name = format!("{build}-{format}-{count}-{round}");
        let file = directory.join(format!("{name}.db"));
        let save = match database {
            Some(database) => database.url(),
            None if place == "sqlite" => format!("sqlite:{}", file.display()),
            None => place.to_owned(),
        };
        let table = format!("bench_{}_{}", std::process::id(), name.replace('-', "_"));
        let summary = directory.join("summary.json");
        let _ = std::fs::remove_file(&summary);
        let metrics = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut command = Command::new(weir);
        command.args(["ingest", &format!("mqtt://127.0.0.1:{port}/b/#"), "--save", &save, "--table", &table]);
        command.args(["--schema", SCHEMA, "--format", format, "--count", &count.to_string(), "--quiet"]);
        command.args(["--live", &metrics.to_string(), "--json"]).arg(&summary);
        if place.starts_with("clickhouse") {
            // Debian's has no setting for anything else.
            command.args(["--durability", "normal"]);
        }
        let mut ingester = KilledOnDrop(quiet(&mut command).stderr(Stdio::null()).spawn()?);
        wait_for("the subscription", || {
            use std::io::{Read, Write};
            let mut page = String::new();
            let asked = TcpStream::connect(metrics).and_then(|mut link| {
                link.write_all(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")?;
                link.read_to_string(&mut page)
            });
            asked.is_ok() && page.contains("weir_ingest_subscribed 1\n")
        })?;
        let stored = database.map_or(0.0, Database::cpu);
        let payload = format!("file:{}", directory.join(format).display());
        let mut command = Command::new(weir);
        command.args([
            "publish",
            &format!("mqtt://127.0.0.1:{port}/b/{{seq}}"),
            "-q",
            "1",
            "--rate",
            "1000000/s",
        ]);
        command.args([
            "--count",
            &count.to_string(),
            "--payload",
            &payload,
            "--window",
            "1000",
            "-d",
            "120s",
        ]);
        command
            .args(["--no-tui", "--quiet", "-o"])
            .arg(directory.join(format!("run-{name}-{}", place.len())));
        let publisher = KilledOnDrop(quiet(&mut command).spawn()?);
        // What it used is known until it is waited for.
        let pid = Pid::from_child(&ingester.0);
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
        let [ingest, broker, publish] = [&ingester, &broker, &publisher].map(|process| cpu(process.0.id()));
        let stored = database.map_or(0.0, Database::cpu) - stored;
        let status = ingester.0.wait()?;
        if !status.success() {
            return Err(format!("weir ingest: {status}").into());
        }
        let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary)?)?;
        let number = |key: &str| summary[key].as_f64().unwrap_or(f64::NAN);
        let (took, commits) = (number("first_to_last_commit_seconds"), number("commits"));
        let each = |seconds: f64| seconds * 1e6 / count as f64;
        println!(
            "{build:<7} {:<11} {count:>7}  {format:<6} {:>14.0} {:>11.0} {:>8.2} {:>7.2} {:>8.1} {:>7.1} {:>10.1} {:>9.1} {commits:>9}",
            place.split(':').next().unwrap_or_default(),
            took * 1e3,
            count as f64 * (1.0 - 1.0 / commits) / took,
            each(number("decode_seconds")),
            each(number("save_seconds")),
            each(ingest),
            each(broker),
            each(publish),
            each(stored),
        );
        let _ = std::fs::remove_file(file);
        Ok(())
    }
}

/// PostgreSQL, with a cluster of its own that is as careful as any: `fsync` and all else as initdb leaves it.
struct Database {
    server: KilledOnDrop,
    port: u16,
    _directory: TempDir,
}

impl Database {
    fn start() -> Result<Self, Failure> {
        let directory = tempfile::tempdir()?;
        let versions = std::fs::read_dir("/usr/lib/postgresql")?.flatten().map(|it| it.path().join("bin"));
        let binaries = versions.max().ok_or("PostgreSQL is missing; apt-get install postgresql")?;
        // The server refuses to be run by root.
        let user = if geteuid().is_root() { Some(user_of("postgres")?) } else { None };
        chown(directory.path(), user, None)?;
        let data = directory.path().join("data");
        let run = |program: &str| {
            let mut command = Command::new(binaries.join(program));
            command.arg("-D").arg(&data).current_dir("/");
            if let Some(user) = user {
                command.uid(user);
            }
            command
        };
        let made = quiet(&mut run("initdb"))
            .args(["--no-sync", "--locale=C", "-E", "UTF8", "-U", "weir", "-A", "trust"])
            .status()?;
        if !made.success() {
            return Err(format!("initdb: {made}").into());
        }
        let port = free_port();
        let mut server = run("postgres");
        server.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        server.args(["-c", "unix_socket_directories="]).stderr(Stdio::null());
        let server = KilledOnDrop(quiet(&mut server).spawn()?);
        wait_for("PostgreSQL", || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(Self { server, port, _directory: directory })
    }

    fn url(&self) -> String {
        format!("postgres://weir@127.0.0.1:{}/postgres", self.port)
    }

    /// What its processes have used, those that have ended included.
    fn cpu(&self) -> f64 {
        let server = self.server.0.id();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children = ids.filter(|id| stat(*id, 1..2) == f64::from(server)).map(cpu);
        children.sum::<f64>() + stat(server, 11..15) / TICKS
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // KILL would orphan its processes.
        let _ = kill_process(Pid::from_child(&self.server.0), Signal::INT);
        let _ = self.server.0.wait();
    }
}

fn user_of(name: &str) -> Result<u32, Failure> {
    let users = std::fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.split(':').next() == Some(name));
    Ok(line.and_then(|line| line.split(':').nth(2)).ok_or("Debian makes the user postgres")?.parse()?)
}

/// Seconds that a process has used, in user and in system mode.
fn cpu(process: u32) -> f64 {
    stat(process, 11..13) / TICKS
}

/// The sum of fields of `/proc/PID/stat`, counted from the one behind the name.
fn stat(process: u32, fields: std::ops::Range<usize>) -> f64 {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let numbers = line.rsplit_once(')').map_or("", |(_, numbers)| numbers).split_ascii_whitespace();
    numbers.skip(fields.start).take(fields.len()).filter_map(|number| number.parse::<f64>().ok()).sum()
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), Failure> {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > Duration::from_secs(20) {
            return Err(format!("{what}: not within 20 s").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
