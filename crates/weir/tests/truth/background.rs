//! Bulk TCP beside a load, over a wire that carries so much and no more.

use crate::support::{
    KilledOnDrop, WebServer, Wire, free_port, measure, shared, start_measuring, undisturbed, weir,
};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use weir_origin::{ANY_PORT, BULK, Origin, OriginConfig};

/// Starts `weir origin` at the other end of the wire, for bulk streams and what `flags` say; returns when it listens.
fn far_end(wire: &Wire, flags: [&str; 2]) -> (KilledOnDrop, BufReader<std::process::ChildStdout>) {
    let mut command = weir();
    command.args(["origin", "--bulk", "10.231.0.2:5201", "--merge", "0s"]).args(flags);
    let mut origin = KilledOnDrop::start(wire.at(1, &command).stdout(Stdio::piped()));
    let mut lines = BufReader::new(origin.0.stdout.take().unwrap());
    for _ in 0..2 {
        lines.read_line(&mut String::new()).unwrap();
    }
    (origin, lines)
}

fn bps(stage: &Value) -> f64 {
    stage["actual_bps"].as_f64().unwrap()
}

/// The wire has 20 Mbit/s each way; TCP's and IP's headers take a few percent of it, and 16 streams fill the rest.
#[test]
fn a_load_is_measured_without_and_with_streams_that_fill_the_wire() {
    let _machine = shared();
    undisturbed(|| {
        let wire = Wire::limited(20);
        let (origin, lines) = far_end(&wire, ["--rtmp", "10.231.0.2:1935"]);
        let scenario = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        let text = "
warmup: 1s
background: {to: '10.231.0.2:5201', tcp_streams: 8, both_ways: true, block: 64KiB}
workloads:
  - publish: rtmp://10.231.0.2/live/x
    bitrate: 500kbps
  - play: rtmp://10.231.0.2/live/x
    clients: 2
    duration: 5s
thresholds: [slots_failed == 0, startup.p99 < 1s]
";
        std::fs::write(scenario.path(), text).unwrap();
        let mut command = weir();
        command.arg("run").arg(scenario.path());
        let run = start_measuring(&mut wire.at(0, &command)).finish();
        let wire_bytes = [0, 1].map(|end| wire.received(end) as f64);
        origin.interrupt();
        let [_, play, sent, received] = run.workloads() else { panic!("{}", run.err) };
        assert_eq!((&play["background"], &sent["background"]), (&Value::Null, &true.into()));
        for streams in [sent, received] {
            // No more than the wire has: that is judged below by its own counts, because what stood in the kernel's buffers when the
            // window began is in the rate as well.
            let rate = bps(&streams["stages"][0]);
            assert!(rate > 14e6, "{} carried {rate} bit/s", streams["name"]);
            assert_eq!((&streams["slots"]["planned"], &streams["slots"]["failed"]), (&8.into(), &0.into()));
        }
        // What was booked as sent has come to the other end, and no more of it than the wire has seen.
        let line = lines.lines().map(Result::unwrap).find(|line| line.contains("bulk streams")).unwrap();
        let word = |at: usize| line.split([' ', ';', ',']).filter(|word| !word.is_empty()).nth(at).unwrap();
        assert_eq!(word(0), "16", "{line}");
        let [booked, came] = [sent, received].map(|it| it["total"]["media"]["total"].as_f64().unwrap());
        let far: f64 = word(4).parse().unwrap();
        assert!(
            booked <= far && far < wire_bytes[1] && came < wire_bytes[0],
            "{booked} booked, {far} at the peer, {came} came, {wire_bytes:?} on the wire"
        );
        // At most 100 ms of 20 Mbit/s were not reported.
        assert!(far - booked < 400e3, "{booked} booked, {far} at the peer");
        // Viewers wait for what stands before them in the queues of the wire.
        let [without, with] = &play["stages"].as_array().unwrap()[..] else { panic!("two stages") };
        let latency = |stage: &Value| stage["figures"]["latency"]["p50"].as_f64().unwrap();
        assert!(latency(with) > latency(without) + 0.003, "{} and {} s", latency(without), latency(with));
        // The second stage begins when the streams do.
        assert_eq!(with["begin_seconds"], sent["stages"][0]["begin_seconds"]);
        let report = std::fs::read_to_string(run.directory().join("report.md")).unwrap();
        assert!(report.contains("| Background |") && report.contains("| none |"), "{report}");
        // No threshold is about the streams: all of them hold without a value of theirs.
        assert!(run.summary["thresholds"].as_array().unwrap().iter().all(|it| it["passed"] == true));
    });
}

#[test]
fn a_far_end_that_is_none_and_one_that_goes_are_told_apart() {
    let _machine = shared();
    let web = WebServer::start();
    let run = measure(["publish", &web.url("").replace("http:", "bulk:"), "-c", "2", "-d", "1s"]);
    let (kind, clients, _, words) = run.failure();
    assert_eq!((&*kind, clients), ("malformed_input", 2));
    assert!(words.contains("HTTP/1.1 400") && words.contains("`weir origin --bulk`"), "{words}");

    let run = measure(["play", &format!("bulk://127.0.0.1:{}", free_port()), "-c", "1", "-d", "1s"]);
    assert_eq!(run.failures()["connection_refused"], 1);

    let config = OriginConfig::default().listening(&BULK, ANY_PORT);
    let origin = Origin::start(&config).unwrap();
    let url = format!("bulk://{}", origin.address("bulk").unwrap());
    let mut command = weir();
    let run = start_measuring(command.args(["play", &url, "-c", "3", "-d", "20s"]));
    crate::support::soon("bytes", || origin.bulk().sent > 10_000_000);
    origin.stop();
    let run = run.finish();
    assert_eq!(run.slots("failed"), 3);
    assert!(run.total("media") > 10_000_000.0);
}

/// Avro and JSON over the wire, in an empty one and in a full one, interleaved.
#[test]
fn encodings_are_compared_without_and_with_streams_that_fill_the_wire() {
    let _machine = shared();
    undisturbed(|| {
        let wire = Wire::limited(20);
        let (_origin, _lines) = far_end(&wire, ["--mqtt", "10.231.0.2:1883"]);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("scenario.yaml");
        let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");
        let text = format!(
        "
variants:
  avro: {{encoding: avro, streams: 0}}
  json: {{encoding: json, streams: 0}}
  avro-beside: {{encoding: avro, streams: 8}}
  json-beside: {{encoding: json, streams: 8}}
repeat: 2
workloads:
  - ingest: 'mqtt://10.231.0.2/e/{{encoding}}/+'
    into: {{schema: {schema}, format: '{{encoding}}', table: 'rows_{{encoding}}', empty: true, save: 'sqlite:{}'}}
  - publish: 'mqtt://10.231.0.2/e/{{encoding}}/{{seq}}'
    delay: 2s
    payload: '{{encoding}}:{schema}'
    count: 200
    rate: 1000000000/s
    qos: 1
  - {{name: sent, publish: 'bulk://10.231.0.2:5201', clients: {{streams}}, block: 64KiB, background: true}}
  - {{name: received, play: 'bulk://10.231.0.2:5201', clients: {{streams}}, block: 64KiB, background: true}}
thresholds: [total_time < 60s]
",
        directory.path().join("rows.db").display(),
    );
        std::fs::write(&file, text).unwrap();
        let mut command = weir();
        command.arg("run").arg(&file).args(["--json", "-", "-o"]).arg(directory.path().join("run"));
        let output = wire.at(0, &command).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words}");
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let runs = summary["runs"].as_array().unwrap();
        let order: Vec<_> = runs.iter().map(|it| it["variant"].as_str().unwrap()).collect();
        let once = ["avro", "json", "avro-beside", "json-beside"];
        assert_eq!(order, [once, [once[3], once[2], once[1], once[0]]].concat());
        for run in runs {
            let path =
                directory.path().join("run").join(run["directory"].as_str().unwrap()).join("summary.json");
            let of_run: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let [ingest, _, sent, received] = &of_run["workloads"].as_array().unwrap()[..] else {
                panic!("{of_run:#}")
            };
            let account = &ingest["ingested"]["account"];
            assert_eq!((&account["counted"], &account["lost"]), (&200.into(), &0.into()), "{account:#}");
            for way in [sent, received] {
                let bytes = way["total"]["media"]["total"].as_f64().unwrap();
                let beside = run["variant"].as_str().unwrap().ends_with("beside");
                assert_eq!(bytes > 1e6, beside, "{bytes} bytes of background: {}", run["variant"]);
            }
        }
        let total = |at: usize| summary["variants"][at]["figures"]["total_time"]["mean"].as_f64().unwrap();
        for encoding in [0, 1] {
            let (alone, beside) = (total(encoding), total(encoding + 2));
            assert!(beside > alone, "{alone} s alone, {beside} s beside");
        }
        assert_eq!(summary["comparisons"][1]["pairs"], 2);
    });
}
