//! What weir says without being asked: on the terminal that it was started from, of servers that do not answer, of
//! streams that nobody sees.

use crate::support::{Kept, Publishing, config, free_port, measure, program, says, shared, soon, weir};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
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
fn a_server_that_cannot_be_forwarded_to_is_named_without_its_key() {
    let _machine = shared();
    let port = free_port();
    let mut command = weir();
    command.args(["origin", "--rtmp", ":0", "--forward", &format!("rtmp://127.0.0.1:{port}/app/s3cr3tw0rd")]);
    let mut origin = Kept::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
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
        let run = measure(["publish", &url].iter().chain(load).chain(&small).chain(&short));
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
