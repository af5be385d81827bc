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
    Mistake("run", 2, &["<FILE>", "required"]),
    Mistake("play rtmp://h/a/b --stage 5x5s", 2, &["'5x5s' is not a stage; write clients@time"]),
    Mistake("play rtmp://h/a/b --watch nginx", 2, &["cannot watch `nginx`: write name=nginx"]),
    Mistake("play rtmp://h/a/b --watch pid=x", 2, &["cannot watch pid `x`: give a process id"]),
    Mistake("publish rtmp://h/a/b --bitrate fast", 2, &["'fast' is not a bit rate such as 500kbps"]),
    Mistake("publish rtmp://h/a/b --fps 0", 2, &["`0` is not a frame rate; write 25"]),
    Mistake("play mqtt://h/t --qos 3", 2, &["3 is not in 0..=2", "--qos"]),
    Mistake("play mqtt://h/t -q 3", 2, &["3 is not in 0..=2", "--qos"]),
    Mistake(
        "play rtmp://127.0.0.1/a/b --qos 1 -d 1s",
        2,
        &["--qos", "is an option of mqtt://", "leave it out"],
    ),
    Mistake("publish mqtt://h/t --payload a.json", 2, &["write size:BYTES, size:LEAST-MOST, file:PATH"]),
    Mistake("publish mqtt://h/t --payload size:big", 2, &["'big' is not a number of bytes", "size:955"]),
    Mistake("sweep nobody.yaml --by", 2, &["a value is required for '--by <FIGURE>'"]),
    Mistake(
        "capacity rtmp://h/a/b --budget soon",
        2,
        &["'soon' is not a duration such as 250ms", "--budget"],
    ),
    Mistake("capacity rtmp://127.0.0.1:1/a/b --from 100 --most 10", 2, &["--from 100 is more than 10"]),
    Mistake(
        "capacity rtmp://127.0.0.1:1/a/b --at-least 100 --most 10",
        2,
        &["--at-least 100 is more than 10"],
    ),
    Mistake("capacity rtmp://h/a/b --set a=b", 2, &["--set a is of a scenario file"]),
    Mistake("origin --rtmp 127.0.0.1:99999", 2, &["'127.0.0.1:99999' is not an address", ":1935"]),
    Mistake("origin --fault close", 2, &["'close' needs at=TIME or unit=NUMBER"]),
    Mistake("schema scenaro", 2, &["'scenaro'", "possible values: scenario"]),
    Mistake("codec a.avsc --decoder avro", 2, &["'avro'", "possible values: weir, apache-avro"]),
    Mistake(
        "doctor --for rtmp://h/a/b",
        2,
        &["--for: not of the form 'URL CLIENTS at BITRATE'", "50000 at 2mbps"],
    ),
    Mistake("doctor --for 'rtmp://h/a/b 0 at 2mbps'", 2, &["0 clients need no machine"]),
    Mistake("doctor --for 'rtmp://h/a/b 5 at fast'", 2, &["'fast' is not a bit rate such as 500kbps"]),
    Mistake("doctor --for 'rtpm://h/a/b 5 at 2mbps'", 2, &["rtpm://", "did you mean rtmp://?"]),
    Mistake("doctor --for 'mqtt://h/t 5 at 2mbps'", 2, &["clients of mqtt:// cost is not measured here"]),
    Mistake("help nosuch", 2, &["no topic 'nosuch'", "`weir help` lists the topics"]),
    Mistake("watch", 2, &["say what to watch", "--name nginx"]),
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
        &[
            "{clinet} stands for nothing; known here: {i}, {client}, {user}, {id}, {random:N}, {number:1..9}, {choice:a|b}, {seq} (",
        ],
    ),
    Mistake("play mqtt://127.0.0.1 -d 1s", 2, &["no topic in the path; write mqtt://host/topic"]),
    Mistake("play mqtt://127.0.0.1 --connect-only --filter a -d 1s", 2, &["--filter", "cannot be used with"]),
    Mistake(
        "play mqtt://127.0.0.1/t --mqtt-version 3.1.1 --session 1h -d 1s",
        2,
        &["keeps a session of MQTT 3.1.1 for ever", "say --client-id"],
    ),
    Mistake("init ftp://h/x", 2, &["weir help urls"]),
    Mistake("init 127.0.0.1/live/a", 2, &["has no scheme that weir knows", "weir help urls"]),
    Mistake("play rtmp:/127.0.0.1/live/a", 2, &["no scheme; write for example rtmp://"]),
    Mistake("play rtmp://", 2, &["no host between :// and the path"]),
    Mistake("play rtmp://127.0.0.1/live", 2, &["no stream in the path; write rtmp://host/app/stream"]),
    Mistake("play rtmp://127.0.0.1:port/live/a", 2, &["'port' is not a port", "1 to 65535"]),
    Mistake("play rtmp://me:pa/ss@127.0.0.1/live/a", 2, &["in a password as %2F, %3F and %23"]),
    Mistake("play rtmp://127.0.0.1/live/a{i}", 2, &["say how many with --streams N"]),
    Mistake("play rtmp://127.0.0.1/live/a --streams 4", 2, &["no {i} in a URL", "write for example"]),
    Mistake("publish mqtt://127.0.0.1/t/#", 2, &["a topic to publish to has no + or #"]),
    Mistake("ingest rtmp://127.0.0.1/a/b --save sqlite:r.db", 2, &["cannot ingest rtmp://; known: mqtt://"]),
    Mistake(
        "play rtmp://127.0.0.1/a/b --node-exporter h:9100",
        2,
        &["'h:9100' is no URL of a server; write http://"],
    ),
    Mistake("watch --prometheus h:9090", 2, &["'h:9090' is no URL of a server; write http://HOST:9090"]),
    Mistake("run rtmp://h/a/secret", 2, &["rtmp://h/a/…: a URL is not a scenario file", "`weir play URL`"]),
    Mistake("check http://h/x.ts", 2, &["a URL is not a file", "curl -s URL | weir check -"]),
    // Thresholds.
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startup.p99'", 2, &["no comparison", "startup.p99 < 1s"]),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startupp.p99 < 1s'", 2, &["did you mean 'startup'?"]),
    Mistake("play rtmp://127.0.0.1/a/b --abort 'startupp.p99 < 1s'", 2, &["did you mean 'startup'?"]),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startup < 1s'", 2, &["p99"]),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'startup.p99 < 1mbps'", 2, &["is a time"]),
    Mistake(
        "play mqtt://127.0.0.1/t -d 1s --threshold 'stalls == 0'",
        2,
        &["no workload here can have this figure", "messages.rate"],
    ),
    Mistake(
        "publish mqtt://127.0.0.1/t -d 1s --threshold 'latency.p99 < 1s'",
        2,
        &["no workload here can have this figure", "`weir play`"],
    ),
    Mistake(
        "play rtmp://127.0.0.1/a/b --threshold 'server.cpu < 80%'",
        2,
        &["no process is watched", "--watch"],
    ),
    Mistake(
        "play rtmp://127.0.0.1/a/b --threshold 'startup.p98 < 1s'",
        2,
        &["'startup' has no 'p98'", "p99"],
    ),
    Mistake(
        "play rtmp://h/a/b --threshold 'startup.p99 < 1 sec'",
        2,
        &["' 1 sec' is not a quantity such as"],
    ),
    Mistake("play rtmp://h/a/b --threshold 'startup.p99 <'", 2, &["is not a quantity such as"]),
    Mistake(
        "play rtmp://127.0.0.1/a/b --threshold 'stalls < 5ms'",
        2,
        &["'stalls' is a number", "without a unit"],
    ),
    Mistake("play rtmp://127.0.0.1/a/b --threshold 'restart.reconnected < 5s'", 2, &["nothing is restarted"]),
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
    Mistake(
        "ingest mqtt://127.0.0.1/t --save mysql://h/d",
        2,
        &["this is no place to save to; write sqlite:FILE"],
    ),
    Mistake("codec a.avsc --save rows.db", 2, &["--save: this is no place to save to; write sqlite:FILE"]),
    // Agents.
    Mistake("agent", 2, &["--join <URL>", "required"]),
    Mistake("agents", 2, &["--nats <URL>", "required"]),
    Mistake("play rtmp://h/a/b --agents 2", 2, &["--nats <URL>", "required"]),
    Mistake("play rtmp://h/a/b --nats nats://127.0.0.1:1", 2, &["--agents <N>", "required"]),
    Mistake(
        "agents --nats nats://127.0.0.1:1",
        97,
        &["NATS at nats://127.0.0.1:1", "is a nats-server there?"],
    ),
    Mistake("agent --join nats://h --only lab", 2, &["'lab' is not a network; write one such as 10.0.0.0/8"]),
    Mistake("agent --join nats://h --token s3cret", 2, &["'--token'"]),
    Mistake("agent --join nats://h --nats-token-file nosuch", 2, &["nosuch: No such file"]),
    // Files.
    Mistake("run nosuch.yaml", 2, &["nosuch.yaml", "No such file"]),
    Mistake("run tabs.yaml", 104, &["tabs.yaml:2"]),
    Mistake("run unknown.yaml", 104, &["unknown.yaml", "clinets"]),
    Mistake("run threshold.yaml --check", 104, &["threshold.yaml:5:", "did you mean 'startup'?"]),
    Mistake("run lacking.yaml --check", 104, &["lacking.yaml:5:", "no workload here can have this figure"]),
    Mistake("run lacking.yaml", 104, &["lacking.yaml:5:", "mqtt.connects.rate"]),
    Mistake("run empty.yaml", 104, &["empty.yaml"]),
    Mistake("run full", 2, &["full: is a directory; give a scenario file"]),
    Mistake("capacity nosuch.yaml", 2, &["nosuch.yaml: No such file", "give a URL such as"]),
    Mistake("sweep plain.yaml", 104, &["nothing to sweep", "`variants`"]),
    Mistake("capacity nobody.yaml", 104, &["`weir sweep --find capacity`"]),
    Mistake("run plain.yaml --set clients", 2, &["'clients' has no value; write KEY=VALUE"]),
    Mistake(
        "run plain.yaml --set workloads.0.cleints=5",
        2,
        &["unknown key `cleints`; did you mean `clients`?"],
    ),
    Mistake("run plain.yaml --set workloads.3.clients=5", 2, &["there is no '3' in the list"]),
    Mistake("run plain.yaml --set n=3", 2, &["unknown key `n`; `weir schema scenario` has all"]),
    Mistake("run plain.yaml --set workloads.0.duration=soon", 2, &["'soon' is not a duration such as 250ms"]),
    Mistake(
        "run plain.yaml --target rtmp://h:1/a",
        2,
        &["--target takes the place of host and port", "HOST:PORT"],
    ),
    Mistake("run nobody.yaml --format clients", 2, &["weir report DIR/RUN --format clients"]),
    Mistake("report full/file", 2, &["full/file is not a run directory", "weir-runs/NAME-TIME"]),
    Mistake("report full", 2, &["full is not a run directory"]),
    Mistake("report runs", 2, &["runs holds several runs: name one; the newest is runs/one"]),
    Mistake("report cut", 2, &["cut/run.json:2: damaged: "]),
    Mistake("report series", 2, &["series/summary.json:3: damaged: ", "what its runs measured is in"]),
    Mistake("compare series other", 2, &["series/summary.json:3: damaged: "]),
    Mistake("history nosuch", 2, &["nosuch is not a folder; give one with run directories"]),
    Mistake("history full", 2, &["there is no run in full"]),
    Mistake("codec full", 2, &["full: is a directory; give a file"]),
    Mistake("codec wrong.avsc", 2, &["wrong.avsc: schema: n: 'lnog' is not a type"]),
    Mistake(
        "publish rtmp://127.0.0.1/a/b --file plain.yaml -d 1s",
        2,
        &["neither MP4, Matroska, FLV nor IVF", "ffmpeg"],
    ),
    Mistake("publish mqtt://127.0.0.1/t --payload file:nosuch -d 1s", 2, &["nosuch: No such file"]),
    Mistake(
        "play rtmp://127.0.0.1/a/b -o plain.yaml -d 1s",
        2,
        &["plain.yaml: is there already", "is not a directory"],
    ),
    Mistake("play rtmp://127.0.0.1/a/b --json full -d 1s", 2, &["full: is a directory; give a file"]),
    Mistake("check plain.yaml", 1, &["plain.yaml: no transport stream"]),
    Mistake("report nosuch", 2, &["nosuch is not a run directory", "weir-runs/NAME-TIME"]),
    Mistake("compare nosuch other", 2, &["nosuch is not a run directory", "weir-runs/NAME-TIME"]),
    Mistake("check nosuch.ts", 2, &["nosuch.ts"]),
    Mistake("check full", 2, &["full: is a directory", "give a file"]),
    Mistake("codec nosuch.avsc", 2, &["nosuch.avsc"]),
    Mistake("publish rtmp://127.0.0.1/a/b --file nosuch.mp4 -d 1s", 2, &["nosuch.mp4"]),
    Mistake(
        "publish whip+http://127.0.0.1:1/a/b/whip --file sound.flv -d 1s",
        2,
        &["has no pictures", "RTMP"],
    ),
    Mistake(
        "publish http://127.0.0.1:1/a/whip -d 1s",
        2,
        &["is of whip+http://: write that in place of http://"],
    ),
    Mistake(
        "play https://127.0.0.1:1/rtc/v1/whep/?app=a -d 1s",
        2,
        &["is of whep+https://: write that in place of"],
    ),
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
    Mistake("watch --port 1", 2, &["nothing to watch at `port=1`: start the server first"]),
    Mistake("origin --rtmp 192.0.2.1:1935", 2, &["choose an address of this machine"]),
    Mistake("play rtmp://127.0.0.1/a/b --bind-addr 192.0.2.1 -d 1s", 2, &["--bind-addr 192.0.2.1"]),
];

/// What somebody writes into a scenario, as YAML in one line, and words of the one line that answers; it ends with 104.
const WRITTEN: &[(&str, &[&str])] = &[
    ("name: x", &["no workloads; add one under `workloads:`"]),
    (
        "workload: [{play: 'rtmp://h/a/b'}]",
        &["s.yaml:1:1: unknown key `workload`; did you mean `workloads`?"],
    ),
    ("workloads: rtmp://h/a/b", &["s.yaml:1:12: a list belongs here"]),
    ("workloads: [{clients: 5, duration: 5s}]", &["give one of `play`, `publish`"]),
    ("workloads: [{play: 'rtmp://h/a/b', publish: 'rtmp://h/a/b', duration: 5s}]", &["give one of `play`"]),
    ("workloads: [{play: 'rtmp://h/a/b'}]", &["say for how long: `duration: 30s`"]),
    ("workloads: [{play: 'rtmp://h/a/b', duration: 5sec}]", &["'5sec' is not a duration such as 250ms"]),
    (
        "workloads: [{play: 'rtmp://h/a/b', duration: 5s, clients: many}]",
        &["s.yaml:1:59: a whole number belongs here"],
    ),
    ("workloads: [{play: 'rtpm://h/a/b', duration: 5s}]", &["cannot play rtpm://; did you mean rtmp://?"]),
    ("workloads: [{play: 'rtmp://h/a/b', stages: [{client: 5, hold: 5s}]}]", &["did you mean `clients`?"]),
    ("workloads: [{play: 'rtmp://h/a/b', stages: [{clients: 5}]}]", &["missing field `hold`"]),
    (
        "workloads: [{ingest: 'mqtt://127.0.0.1/t', duration: 5s}]",
        &["say where rows go: `save: sqlite:FILE`"],
    ),
    ("{before: [{strat: x}], workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}", &["`strat`", "start"]),
    ("{before: [{wait: '1935'}], workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}", &["write HOST:PORT"]),
    (
        "{before: [{fill: {from: no.in, to: x}}], workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}",
        &["no.in: No such"],
    ),
    ("{watch: [nginx], workloads: [{play: 'rtmp://127.0.0.1:1/a/b', duration: 5s}]}", &["write name=nginx"]),
    ("{repeat: 0, workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}", &["0 is not a number of repetitions"]),
    (
        "{abort: ['failed.ratio > ten'], workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}",
        &["' ten' is not a quantity"],
    ),
    (
        "{variants: {a: {n: 1}, b: {m: 2}}, workloads: [{play: 'rtmp://h/a/b', clients: {n}, duration: 1s}]}",
        &["'b' says nothing of {n}"],
    ),
    (
        "{during: [{at: 1s, restart: x}], workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}",
        &["starts a program 'x'"],
    ),
    (
        "{before: [start: x], during: [{at: 9s, restart: x}], workloads: [{play: 'rtmp://h/a/b', duration: 5s}]}",
        &["the run is over after 5 s", "hold the clients for longer"],
    ),
];

/// FLV of nothing but AAC (FLV 10.1, annex E): its configuration, and two frames 23 ms apart.
fn sound_alone() -> Vec<u8> {
    let mut flv = b"FLV\x01\x04\0\0\0\x09\0\0\0\0".to_vec();
    for (time, body) in [(0, [0xAF, 0, 0x12, 0x10]), (0, [0xAF, 1, 0x21, 0]), (23, [0xAF, 1, 0x21, 0])] {
        flv.extend([8, 0, 0, 4, 0, 0, time, 0, 0, 0, 0]);
        flv.extend(body);
        flv.extend([0, 0, 0, 15]);
    }
    flv
}

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
        ("plain.yaml", "workloads: [{play: 'rtmp://127.0.0.1:1/a/b', duration: 5s}]\n"),
        ("wrong.avsc", r#"{"type": "record", "name": "A", "fields": [{"name": "n", "type": "lnog"}]}"#),
        ("runs/one/run.json", "{}"),
        ("cut/run.json", "{\n\"run\": "),
        ("series/summary.json", "{\"layout\": \"weir.series/1\",\n\"run\": {\n"),
        ("series/001-a/run.json", "{}"),
        ("a.avsc", r#"{"type": "record", "name": "A", "fields": [{"name": "n", "type": "long"}]}"#),
    ];
    fs::write(folder.join("sound.flv"), sound_alone()).unwrap();
    for (name, text) in files.into_iter().chain([("full/file", "")]) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn each_of_the_typical_mistakes_gets_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    let words_of = |words: &[&str]| words.iter().map(|word| word.replace("BUSY", &port)).collect::<Vec<_>>();
    let mistakes = MISTAKES.iter().filter_map(|Mistake(typed, code, words)| {
        complaint(folder.path(), &typed.replace("BUSY", &port), *code, &words_of(words))
    });
    let wrong: Vec<_> = mistakes.collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), MISTAKES.len(), wrong.join("\n"));
}

#[test]
fn each_of_the_typical_mistakes_in_a_scenario_gets_one_line_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let written = WRITTEN.iter().filter_map(|(text, words)| {
        fs::write(folder.path().join("s.yaml"), text).unwrap();
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        Some(format!("{text}\n  {}", complaint(folder.path(), "run s.yaml", 104, &words)?))
    });
    let wrong: Vec<_> = written.collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), WRITTEN.len(), wrong.join("\n"));
    assert!(MISTAKES.len() + WRITTEN.len() >= 150);
}

/// Runs weir in a folder, and says what its answer lacks, if it lacks anything.
fn complaint(folder: &Path, typed: &str, code: i32, words: &[String]) -> Option<String> {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.args(shlex::split(typed).unwrap()).current_dir(folder).env_remove("WEIR_LOG");
    let output = weir.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let said: Vec<_> = err.lines().filter(|line| !line.trim().is_empty()).collect();
    // clap adds how a command is used; a search announces its trial.
    let answers =
        said.iter().filter(|line| line.starts_with("weir: ") || line.starts_with("error: ")).count();
    let lacking: Vec<_> = words.iter().filter(|word| !err.contains(&***word)).collect();
    let is_usage = said.iter().any(|line| line.starts_with("error: "));
    let is_fine = output.status.code() == Some(code)
        && lacking.is_empty()
        && answers == 1
        && (is_usage || said.len() == 1)
        && !err.contains("panicked");
    let ended = output.status.code();
    (!is_fine).then(|| format!("weir {typed}\n  ends with {ended:?}, lacks {lacking:?}, says: {err}"))
}

#[test]
fn a_full_disk_is_said_and_is_no_panic() {
    let own = std::process::id().to_string();
    for words in [
        &["figures"][..],
        &["schema", "summary"],
        &["doctor", "--no-load"],
        &["watch", "--pid", &own, "-d", "1s"],
        &["watch", "--pid", &own, "-d", "1s", "--json"],
    ] {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = weir.args(words).stdout(full).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.lines().count()), (Some(1), 1), "{words:?}: {err}");
        assert!(err.contains("No space left on device"), "{words:?}: {err}");
    }
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    let (folder, url) = (tempfile::tempdir().unwrap(), "rtmp://127.0.0.1:1/a/b");
    weir.args(["play", url, "-q", "-d", "1s", "--json", "/dev/full"]).current_dir(folder.path());
    let output = weir.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), err.lines().count()), (Some(1), 1), "{err}");
    assert!(err.contains("/dev/full: No space left on device") && err.contains("make room there"), "{err}");
}

/// A scenario that is searched belongs to `weir sweep`; both say what is wrong with it, or what would be done, and ask no server.
#[test]
fn every_scenario_of_the_repository_is_checked_by_run_and_those_with_variants_by_sweep() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut searched = 0;
    for entry in folder.read_dir().unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let has_variants =
            text.lines().any(|line| line.starts_with("variants:") || line.starts_with("matrix:"));
        let is_searched = text.lines().any(|line| line.starts_with("find:"));
        searched += usize::from(is_searched);
        for verb in ["run", "sweep"].into_iter().take(if has_variants { 2 } else { 1 }) {
            let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
            let output = weir.arg(verb).arg(&file).arg("--check").stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "weir {verb} {} --check: {said}", file.display());
            let words = match (verb, is_searched) {
                ("run", true) => ": fine\n\nfind: `weir sweep` searches each variant",
                ("run", false) => ": fine\n",
                (_, true) => "searches for how many ",
                (_, false) => ": fine\n\nsweep: ",
            };
            assert!(said.contains(words), "weir {verb} {} --check: {said}", file.display());
        }
    }
    assert!(searched >= 3, "{searched} scenarios are searched");
}
