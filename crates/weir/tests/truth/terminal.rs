//! What weir says without being asked: on the terminal that it was started from, of servers that do not answer, of
//! streams that nobody sees.

use crate::support::{
    KilledOnDrop, Mosquitto, Publishing, air, config, free_port, measure, program, says, shared, soon, weir,
};
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroU16;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use weir_origin::Origin;

/// Makes a terminal, and in its background what it is told to run; prints what comes out of the terminal.
const IN_THE_BACKGROUND: &str = r#"
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.execv(sys.argv[1], sys.argv[1:])
    os.setpgid(child, child)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status))
while True:
    try:
        said = os.read(master, 4096)
    except OSError:
        break
    if not said:
        break
    sys.stdout.buffer.write(said)
    sys.stdout.flush()
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

#[test]
fn in_the_background_of_a_terminal_weir_draws_nothing() {
    let _machine = shared();
    let mut command = program("python3", "python3");
    let exe = env!("CARGO_BIN_EXE_weir");
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path().join("run");
    // Nobody answers: the clients fail one after the other, and there is something to say every second.
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let load = ["-c", "20", "--arrival", "5/s", "-d", "1s", "--warmup", "0s", "--drain", "0s", "-o"];
    command.args(["-c", IN_THE_BACKGROUND, exe, "play", &url]).args(load).arg(&run);
    let said = command.output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(run.join("summary.json").exists() && said.contains("connection refused"), "{said}");
    // A bar is drawn over itself: with a carriage return, or by moving up (ECMA-48, CUU and EL).
    let drawn = said.replace("\r\n", "\n");
    assert!(
        !drawn.contains('\r') && !drawn.contains("\u{1b}[2K") && !drawn.contains("\u{1b}[1A"),
        "{drawn:?}"
    );
}

#[test]
fn on_a_terminal_that_knows_no_escape_sequences_weir_draws_nothing() {
    let _machine = shared();
    let directory = tempfile::tempdir().unwrap();
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let out = directory.path().join("run").display().to_string();
    let load = ["-c", "8", "--arrival", "5/s", "-d", "1s", "--warmup", "0s", "--drain", "0s", "-o", &out];
    let words = [env!("CARGO_BIN_EXE_weir"), "play", &url].into_iter().chain(load);
    let line = format!("TERM=dumb exec {}", shlex::try_join(words).unwrap());
    let mut command = program("script", "bsdutils");
    command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
    let said = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("nothing answered"), "{said}");
    let drawn = said.replace("\r\n", "\n");
    assert!(!drawn.contains(['\r', '\u{1b}']), "{drawn:?}");
}

/// weir on a terminal of its own, of 24 rows and this many columns.
struct Terminal {
    process: KilledOnDrop,
    columns: u16,
    /// All that was written to it.
    written: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Terminal {
    fn start(columns: u16, arguments: &[&str]) -> Self {
        let line = shlex::try_join([env!("CARGO_BIN_EXE_weir")].iter().chain(arguments).copied()).unwrap();
        let line = format!("stty rows 24 cols {columns}; exec {line}");
        let mut command = program("script", "bsdutils");
        command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
        let mut process = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut out, all) = (process.0.stdout.take().unwrap(), written.clone());
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut buffer) {
                all.lock().unwrap().extend(&buffer[..length]);
            }
        });
        Self { process, columns, written, reader }
    }

    /// All lines as a person sees them who scrolls back.
    fn seen(&self) -> Vec<String> {
        let [rows, columns] = [2_000, self.columns].map(|it| NonZeroU16::new(it).unwrap());
        let mut screen = vt100::Parser::new(rows, columns, 0);
        screen.process(&self.written.lock().unwrap());
        screen.screen().rows(0, self.columns).map(|row| row.trim_end().to_owned()).collect()
    }

    /// A key.
    fn press(&mut self, key: u8) {
        self.process.0.stdin.as_mut().unwrap().write_all(&[key]).unwrap();
    }

    /// Its exit code, and what is left on the terminal.
    fn end(mut self) -> (Option<i32>, Vec<String>) {
        let code = self.process.ended().code();
        while !self.reader.is_finished() {
            std::thread::yield_now();
        }
        (code, self.seen())
    }
}

const CTRL_C: u8 = 3;

fn shows(words: &str, lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains(words))
}

#[test]
fn a_run_on_a_terminal_is_a_table_that_leaves_nothing_behind() {
    let _machine = shared();
    let air = air(&config(&[]));
    let watched = format!("pid={}", std::process::id());
    for columns in [40, 100] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("run").display().to_string();
        let load =
            ["-c", "4", "-d", "1m", "--warmup", "0s", "--drain", "0s", "--watch", &watched, "-o", &out];
        let arguments: Vec<&str> = ["play", &air.url].into_iter().chain(load).collect();
        let mut terminal = Terminal::start(columns, &arguments);
        let table = ["of 1:00,", "4 of 4 play", watched.as_str(), "% CPU"];
        soon("the table is there", || {
            let seen = terminal.seen();
            table.iter().all(|words| shows(words, &seen))
        });
        // What was read last may be half of a drawing. Were it not drawn over itself, more and more would stand there.
        soon("it is drawn over itself", || {
            terminal.seen().iter().filter(|line| line.contains("of 1:00,")).count() == 1
        });
        terminal.press(CTRL_C);
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(105), "{seen:#?}");
        assert!(!shows("of 1:00,", &seen) && !shows("\u{2501}\u{2501}", &seen), "{seen:#?}");
        assert!(shows("interrupted", &seen), "the report follows: {seen:#?}");
    }
}

#[test]
fn an_ingester_on_a_terminal_is_a_table_that_leaves_nothing_behind() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let folder = tempfile::tempdir().unwrap();
    let (url, place) = (broker.url("t/#"), format!("sqlite:{}", folder.path().join("rows.db").display()));
    let mut terminal = Terminal::start(60, &["ingest", &url, "--save", &place]);
    soon("it is subscribed", || shows("weir: subscribed to ", &terminal.seen()));
    let sent = measure(["publish", &broker.url("t/{seq}"), "-q", "1", "--rate", "50/s", "--count", "20"]);
    assert_eq!(sent.code, 0, "{}", sent.err);
    let table = ["rows/s · 20 rows · ", "none waiting", ", until Ctrl-C"];
    soon("the table has all rows", || {
        let seen = terminal.seen();
        table.iter().all(|words| shows(words, &seen))
    });
    terminal.press(CTRL_C);
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen:#?}");
    assert!(!shows("rows/s · ", &seen) && !shows(", until Ctrl-C", &seen), "{seen:#?}");
    assert!(shows("weir: subscribed to ", &seen) && shows("20", &seen), "what it came to follows: {seen:#?}");
    // No line of the table, and none with the `^C` that the terminal has written.
    assert!(!seen.iter().any(|line| line.trim() == "^C"), "{seen:#?}");
}

#[test]
fn a_server_that_cannot_be_forwarded_to_is_named_without_its_key() {
    let _machine = shared();
    let port = free_port();
    let mut command = weir();
    command.args(["origin", "--rtmp", ":0", "--forward", &format!("rtmp://127.0.0.1:{port}/app/s3cr3tw0rd")]);
    let mut origin = KilledOnDrop::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(origin.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = format!("{}/live/an0therkey", line.trim().strip_prefix("listening on ").unwrap());
    let _publishing = Publishing::start(&url, &["--gop", "1s"]);
    let mut said = BufReader::new(origin.0.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let expected = format!("live/…1 is not forwarded to rtmp://127.0.0.1:{port}: ");
    assert!(line.starts_with(&expected) && line.contains("refused"), "{line}");
    origin.interrupt();
    soon("the origin ends", || origin.0.try_wait().unwrap().is_some());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("s3cr3tw0rd") && !rest.contains("an0therkey"), "{rest}");
}

/// A machine that is busy with other tests is no matter here.
const ON_ANY_MACHINE: &str = "send-lag,missed-slots,steal,host-busy,run-queue,softirq,generator-pause,generator-thread,generator-cores";

#[test]
fn streams_that_are_shown_pass_when_they_are_verified_however_many_there_are_and_however_they_begin() {
    let _machine = shared();
    for (load, publishers, viewers) in [
        (&["--streams", "100"][..], 100, 100),
        (&["--streams", "12", "--arrival", "6/s"], 12, 12),
        (&["--streams", "12", "-c", "3"], 3, 3),
    ] {
        let origin = Origin::start(&config(&[])).unwrap();
        let url = format!("rtmp://{}/live/s{{i}}", origin.address("rtmp").unwrap());
        let small = ["--bitrate", "100kbps", "--audio-bitrate", "16kbps", "--gop", "500ms"];
        let short = ["-d", "5s", "--warmup", "0s", "--drain", "1s", "--verify", "--accept", ON_ANY_MACHINE];
        // Nor is a stall that it makes: what is asked is that pictures and sound come.
        let stalls = ["--threshold", "stalled.ratio <= 100%"];
        let run = measure(["publish", &url].iter().chain(load).chain(&small).chain(&short).chain(&stalls));
        let failed: Vec<_> = run.workloads().iter().map(|it| it["failures"].clone()).collect();
        assert_eq!(run.code, 0, "{load:?}: {failed:?} {}", run.summary["thresholds"]);
        let planned = [0, 1].map(|number: usize| run.workloads()[number]["slots"]["planned"].clone());
        assert_eq!(planned, [publishers.into(), serde_json::Value::from(viewers)], "{load:?}");
        let [end, viewers_end] =
            [0, 1].map(|number: usize| run.workloads()[number]["stages"][0]["end_seconds"].clone());
        assert_eq!(end, viewers_end, "{load:?}: viewers stay beyond their publishers");
    }
}

/// A server that takes every codec and hands on none of the sound, as real ones do with Opus.
#[test]
fn a_stream_whose_sound_is_never_shown_fails_when_it_is_verified() {
    let _machine = shared();
    for (faults, passes) in [(&[][..], true), (&["drop unit=1.. kind=audio stream=live/a"][..], false)] {
        let origin = Origin::start(&config(faults)).unwrap();
        let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
        let run = measure([
            "publish", &url, "--gop", "500ms", "-d", "5s", "--warmup", "0s", "--drain", "500ms", "--verify",
        ]);
        let thresholds = run.summary["thresholds"].as_array().unwrap();
        let of =
            |text: &str| thresholds.iter().find(|it| it["expression"] == text).unwrap()["passed"].clone();
        assert_eq!((of("keyframes > 0"), of("rtmp.audio_frames > 0")), (true.into(), passes.into()));
        assert_eq!(run.workloads()[1]["name"], "verify");
    }
    let said = says(["publish", "mqtt://127.0.0.1:9/t", "--verify"]);
    assert!(said.code == Some(2) && said.err.contains("rtmp:// and rtmps:// alone"), "{}", said.err);
}
