//! Typical mistakes: each is answered by one line that says what to do, and by the exit code of its kind.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// What somebody types, in a shell's words; the exit code; words of the one line that answers.
struct Mistake(&'static str, i32, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    // The command line.
    Mistake("plya rtmp://h/a/b", 2, &["unrecognized subcommand 'plya'", "'play'"]),
    Mistake("play", 2, &["<URL>", "required"]),
    Mistake("play rtmp://h/a/b --cleints 5", 2, &["'--cleints'", "'--clients'"]),
    Mistake("play rtmp://h/a/b -c 0", 2, &["0", "--clients"]),
    Mistake("play rtmp://h/a/b -c many", 2, &["many", "--clients"]),
    Mistake("play rtmp://h/a/b -d soon", 2, &["'soon'", "--duration"]),
    Mistake("play rtmp://h/a/b --stage 500", 2, &["500@15s"]),
    Mistake("play rtmp://h/a/b --stage 5@5s -c 3", 2, &["--stage", "cannot be used with", "--clients"]),
    Mistake("play rtmp://h/a/b --insecure --cacert ca.pem", 2, &["--insecure", "cannot be used with"]),
    Mistake("play rtmp://h/a/b --cert me.pem", 2, &["--key"]),
    Mistake("play rtmp://h/a/b --arrival fast", 2, &["fast"]),
    Mistake("play rtmp://h/a/b --format xml", 2, &["xml", "junit"]),
    Mistake("play rtmp://h/a/b --tag lab", 2, &["'lab' is not a tag; write key=value"]),
    Mistake(
        "play rtmp://127.0.0.1/a/b --push-metrics 127.0.0.1:9090 -d 1s",
        2,
        &["--push-metrics '127.0.0.1:9090' is no URL of a server", "http://127.0.0.1:9090/api/v1/write"],
    ),
    Mistake("play rtmp://h/a/b --accept stael", 2, &["there is no check 'stael'"]),
    Mistake("play rtmp://127.0.0.1/a/b --json - --format csv -d 1s", 2, &["give --json a file"]),
    Mistake("origin --rtmp host", 2, &["'host' is not an address", ":1935"]),
    Mistake("play rtmp://h/a/b --live 99453", 2, &["'99453' is not an address", ":1935", "--live"]),
    Mistake("play --live somehost:9100 rtmp://h/a/b", 2, &["'somehost:9100' is not an address", "--live"]),
    Mistake("help threshold", 2, &["did you mean 'thresholds'?"]),
    Mistake("figures startupp", 2, &["did you mean 'startup'?"]),
    // URLs.
    Mistake("play 127.0.0.1/live/a", 2, &["no scheme", "rtmp://"]),
    Mistake("play rtpm://127.0.0.1/live/a", 2, &["rtpm"]),
    Mistake("play rtmp://127.0.0.1:99999/live/a -d 1s", 2, &["99999"]),
    Mistake(
        "play rtmp://nosuch.invalid/live/a -d 1s",
        2,
        &["nosuch.invalid has no address", "check the name"],
    ),
    Mistake("publish http://127.0.0.1/x.ts -d 1s", 2, &["http://"]),
    Mistake(
        "publish mqtt://127.0.0.1/t/{clinet} -d 1s",
        2,
        &["{clinet} stands for nothing; known here: {i}, {client}, {user}, {id}, {random:N}, {seq} ("],
    ),
    Mistake("play mqtt://127.0.0.1 -d 1s", 2, &["no topic in the path; write mqtt://host/topic"]),
    Mistake("play mqtt://127.0.0.1 --connect-only --filter a -d 1s", 2, &["--filter", "cannot be used with"]),
    Mistake(
        "play mqtt://127.0.0.1/t --mqtt-version 3.1.1 --session 1h -d 1s",
        2,
        &["keeps a session of MQTT 3.1.1 for ever", "say --client-id"],
    ),
    Mistake("init ftp://h/x", 2, &["weir help urls"]),
    // Thresholds.
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startup.p99'", 2, &["no comparison", "startup.p99 < 1s"]),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startupp.p99 < 1s'", 2, &["did you mean 'startup'?"]),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startup < 1s'", 2, &["p99"]),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startup.p99 < 1mbps'", 2, &["is a time"]),
    Mistake(
        "play mqtt://127.0.0.1/t -d 1s --threshold 'stalls == 0'",
        2,
        &["no workload here can have 'stalls'", "messages.rate"],
    ),
    Mistake(
        "publish mqtt://127.0.0.1/t -d 1s --threshold 'latency.p99 < 1s'",
        2,
        &["no workload here can have 'latency'", "`weir play`"],
    ),
    Mistake(
        "play rtmp://127.0.0.1/a/b --threshold 'server.cpu < 80%'",
        2,
        &["no process is watched", "--watch"],
    ),
    // Options that ask for one another.
    Mistake("ingest mqtt://127.0.0.1/t", 2, &["--save"]),
    Mistake("ingest mqtt://127.0.0.1/t --save rows.db", 2, &["--save: ", "write sqlite:FILE"]),
    Mistake(
        "ingest mqtt://127.0.0.1/t --save sqlite:rows.db --schema a.avsc --avro-encoding confluent",
        2,
        &["--avro-encoding: confluent records carry", "--schema-registry"],
    ),
    Mistake(
        "publish mqtt://127.0.0.1/t --payload avro:a.avsc --avro-encoding confluent -d 1s",
        2,
        &["give it by --schema-id"],
    ),
    // Files.
    Mistake("run nosuch.yaml", 2, &["nosuch.yaml", "No such file"]),
    Mistake("run tabs.yaml", 104, &["tabs.yaml:2"]),
    Mistake("run unknown.yaml", 104, &["unknown.yaml", "clinets"]),
    Mistake("run threshold.yaml --check", 104, &["threshold.yaml:5:", "did you mean 'startup'?"]),
    Mistake("run lacking.yaml --check", 104, &["lacking.yaml:5:", "no workload here can have 'lost.ratio'"]),
    Mistake("run lacking.yaml", 104, &["lacking.yaml:5:", "mqtt.connects.rate"]),
    Mistake("run empty.yaml", 104, &["empty.yaml"]),
    Mistake("report nosuch", 2, &["nosuch is no run directory", "weir-runs/NAME-TIME"]),
    Mistake("compare nosuch other", 2, &["nosuch is no run directory", "weir-runs/NAME-TIME"]),
    Mistake("check nosuch.ts", 2, &["nosuch.ts"]),
    Mistake("check full", 2, &["full: is a directory", "give a file"]),
    Mistake("codec nosuch.avsc", 2, &["nosuch.avsc"]),
    Mistake("publish rtmp://127.0.0.1/a/b --file nosuch.mp4 -d 1s", 2, &["nosuch.mp4"]),
    Mistake("play rtmps://127.0.0.1/a/b --cacert nosuch.pem -d 1s", 2, &["nosuch.pem"]),
    Mistake("play rtmp://127.0.0.1/a/b -o full -d 1s", 2, &["is not empty", "choose a new directory"]),
    Mistake("play rtmp://127.0.0.1/a/b --json /nosuch/x.json -d 1s", 2, &["/nosuch/x.json"]),
    Mistake("init rtmp://127.0.0.1/a/b -o tabs.yaml", 2, &["is there already"]),
    Mistake("sweep nobody.yaml --by startupp.p99", 2, &["--by startupp.p99", "did you mean 'startup'?"]),
    Mistake("sweep nobody.yaml --by restart.reconnected", 2, &["nothing is restarted", "under `during`"]),
    Mistake("sweep nobody.yaml --by restart.reconected", 2, &["did you mean 'restart.reconnected'?"]),
    Mistake(
        "run nobody.yaml -q",
        97,
        &["2 of 2 runs are not in the figures", "nothing answered at rtmp://127.0.0.1:1"],
    ),
    // The machine and its servers.
    Mistake("origin --rtmp 127.0.0.1:BUSY", 2, &["127.0.0.1:BUSY is in use", "choose another port"]),
    Mistake(
        "play rtmp://127.0.0.1:1/live/a -c 2 -d 5s",
        97,
        &["nothing answered at rtmp://127.0.0.1:1", "2 of 2"],
    ),
    Mistake("play ws://127.0.0.1:1/live/a -q -d 5s", 97, &["connection refused, 1 of 1", "start the server"]),
    Mistake("capacity rtmp://127.0.0.1:1/live/a -q", 97, &["nothing answered at rtmp://127.0.0.1:1"]),
    Mistake("play rtmp://127.0.0.1/a/b --watch name=nosuchprogram -d 1s", 2, &["nosuchprogram"]),
    Mistake("play rtmp://127.0.0.1/a/b --bind-addr 192.0.2.1 -d 1s", 2, &["--bind-addr 192.0.2.1"]),
];

fn write_files(folder: &Path) {
    let files = [
        ("tabs.yaml", "workloads:\n\t- play: rtmp://h/a/b\n"),
        ("unknown.yaml", "workloads:\n  - play: rtmp://h/a/b\n    clinets: 5\n"),
        (
            "threshold.yaml",
            "workloads:\n  - play: rtmp://h/a/b\n    duration: 5s\nthresholds:\n  - startupp.p99 < 1s\n",
        ),
        (
            "lacking.yaml",
            "workloads:\n  - {play: 'mqtt://127.0.0.1:1', connect_only: true,\n     duration: 5s}\nthresholds:\n  - lost.ratio <= 1%\n",
        ),
        ("empty.yaml", ""),
        (
            "nobody.yaml",
            "variants: {a: {n: 1}, b: {n: 2}}\nworkloads: [{play: 'rtmp://127.0.0.1:1/a/b', clients: {n}, duration: 1s}]\n",
        ),
        ("a.avsc", r#"{"type": "record", "name": "A", "fields": [{"name": "n", "type": "long"}]}"#),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::create_dir(folder.join("full")).unwrap();
    fs::write(folder.join("full/file"), "").unwrap();
}

#[test]
fn each_of_the_typical_mistakes_gets_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    let mut wrong = Vec::new();
    for Mistake(typed, code, words) in MISTAKES {
        let typed = typed.replace("BUSY", &port);
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        weir.args(shlex::split(&typed).unwrap()).current_dir(folder.path()).env_remove("WEIR_LOG");
        let output = weir.stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        let said: Vec<_> = err.lines().filter(|line| !line.trim().is_empty()).collect();
        // clap adds how a command is used; a search announces its trial.
        let answers: Vec<_> =
            said.iter().filter(|line| line.starts_with("weir: ") || line.starts_with("error: ")).collect();
        let lacking: Vec<_> =
            words.iter().map(|word| word.replace("BUSY", &port)).filter(|word| !err.contains(word)).collect();
        let is_usage = said.iter().any(|line| line.starts_with("error: "));
        if output.status.code() != Some(*code)
            || !lacking.is_empty()
            || answers.len() != 1
            || (!is_usage && said.len() != 1)
            || err.contains("panicked")
        {
            wrong.push(format!(
                "weir {typed}\n  ends with {:?}, lacks {lacking:?}, says: {err}",
                output.status.code()
            ));
        }
    }
    assert!(MISTAKES.len() >= 30);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), MISTAKES.len(), wrong.join("\n"));
}

#[test]
fn a_full_disk_is_said_and_is_no_panic() {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = weir.args(["figures"]).stdout(full).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), err.lines().count()), (Some(1), 1), "{err}");
    assert!(err.contains("No space left on device"), "{err}");
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    let (folder, url) = (tempfile::tempdir().unwrap(), "rtmp://127.0.0.1:1/a/b");
    weir.args(["play", url, "-q", "-d", "1s", "--json", "/dev/full"]).current_dir(folder.path());
    let output = weir.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), err.lines().count()), (Some(1), 1), "{err}");
    assert!(err.contains("/dev/full: No space left on device") && err.contains("make room there"), "{err}");
}
