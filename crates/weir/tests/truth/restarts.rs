//! A broker that the scenario itself restarts while the load goes on.

use crate::support::{Run, free_port, measure, report, shared};

/// A run of subscribers and publishers on a mosquitto of the scenario's own, with these restarts, more lines, and words of the
/// command line.
pub(crate) fn restarted(during: &str, options: &str, thresholds: &str, words: &[String]) -> Run {
    let (port, directory) = (free_port(), tempfile::tempdir().unwrap());
    let (file, broker) = (directory.path().join("restart.yaml"), directory.path().join("broker.conf"));
    std::fs::write(&broker, format!("listener {port} 127.0.0.1\nuser root\nallow_anonymous true\n")).unwrap();
    let url = format!("mqtt://127.0.0.1:{port}");
    let scenario = format!(
        "before: [start: exec /usr/sbin/mosquitto -c broker.conf, wait: '127.0.0.1:{port}']
during: {during}
watch: [port={port}]
workloads:
  - {{play: '{url}/b/#', clients: 20, duration: 14s, qos: 1{options}}}
  - {{publish: '{url}/b/{{client}}/{{seq}}', clients: 3, rate: 20/s, qos: 1{options}}}
warmup: 0s
thresholds: [lost <= 100000, {thresholds}]
"
    );
    std::fs::write(&file, scenario).unwrap();
    let words = words.iter().map(AsRef::as_ref);
    measure(["run".as_ref(), file.as_os_str()].into_iter().chain(words))
}

#[test]
fn all_clients_come_back_after_a_restart_at_a_set_time_and_the_time_until_then_is_told() {
    let _machine = shared();
    let run = restarted(
        "[{at: 3s, restart: mosquitto, down: 1500ms}]",
        "",
        "restart.reconnected < 11s, restart.reconnected >= 1500ms, failed.ratio == 0",
        &[],
    );
    assert_eq!((run.code, &run.summary["outcome"]), (0, &"completed".into()), "{}", run.err);
    let [restart] = &run.summary["restarts"].as_array().unwrap()[..] else {
        panic!("{}", run.summary["restarts"])
    };
    let seconds = |key: &str| restart[key].as_f64().unwrap_or_else(|| panic!("{key}: {restart}"));
    assert!(seconds("at_seconds") >= 3.0 && seconds("down_seconds") >= 1.5, "{restart}");
    assert!(
        seconds("reconnected_seconds") > seconds("down_seconds")
            && seconds("at_seconds") + seconds("reconnected_seconds") < 15.0,
        "{restart}"
    );
    assert_eq!((&restart["server"], &restart["away"]), (&"mosquitto".into(), &0.into()));
    assert!(restart["cut_off"].as_u64() >= Some(23), "{restart}");
    assert!(run.summary["verdict"]["state"].is_string());
    for (workload, clients) in run.workloads().iter().zip([20.0, 3.0]) {
        let total = |figure: &str| workload["total"][figure]["total"].as_f64().unwrap();
        assert!(total("returned") >= clients && total("returned") == total("cut_off"), "{workload}");
    }
    let text = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
    assert!(text.contains("Restarts") && text.contains("all clients were"), "{text}");
    let again = report(run.directory()).summary["restarts"][0].clone();
    assert_eq!((&again["cut_off"], &again["away"]), (&restart["cut_off"], &0.into()), "what is read back");
    assert!((again["reconnected_seconds"].as_f64().unwrap() - seconds("reconnected_seconds")).abs() < 1e-5);
}

#[test]
fn clients_that_do_not_connect_again_leave_the_time_open_and_the_threshold_fails() {
    let _machine = shared();
    let during = "[{at: 3s, restart: mosquitto, kill: true}]";
    let run = restarted(during, ", no_reconnect: true", "restart.reconnected < 11s", &[]);
    let restart = &run.summary["restarts"][0];
    assert!(restart["reconnected_seconds"].is_null() && restart["cut_off"] == 0, "{restart}");
    assert_eq!((run.code, &run.summary["outcome"]), (99, &"nobody_left".into()), "{}", run.err);
    assert_eq!(run.slots("failed"), 20);
}

/// An origin of weir under viewers and publishers of streams, each of a protocol.
const STREAMS: &str = "before:
  - start: exec WEIR origin --rtmp :RTMP --http-flv :FLV --http :TS --rtc :RTC --services 1 --bitrate 2mbps
  - wait: 127.0.0.1:RTMP
during: [{at: 4s, restart: weir, down: 1s, kill: true}]
warmup: 1s
workloads:
  - {play: 'rtmp://127.0.0.1:RTMP/live/a', clients: 20, duration: 12s, buffer: 500ms, witness_every: 4, reconnect: true}
  - {publish: 'rtmp://127.0.0.1:RTMP/live/a', bitrate: 500kbps, gop: 1s, audio_codec: opus, reconnect: true}
  - {play: 'http+flv://127.0.0.1:FLV/live/a.flv', clients: 3, duration: 12s, buffer: 500ms, reconnect: true}
  - {play: 'ws://127.0.0.1:RTC/live/a', clients: 3, duration: 12s, buffer: 500ms, reconnect: true}
  - {play: 'http://127.0.0.1:TS/1.ts', clients: 2, duration: 12s, buffer: 500ms, reconnect: true}
";

#[test]
fn viewers_and_publishers_of_streams_come_back_to_a_server_that_was_killed() {
    let _machine = shared();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("restart.yaml");
    let ports = ["RTMP", "FLV", "TS", "RTC"];
    let text = STREAMS.replace("WEIR", env!("CARGO_BIN_EXE_weir"));
    let text = ports.iter().fold(text, |text, port| text.replace(port, &free_port().to_string()));
    std::fs::write(&file, text).unwrap();
    let run = measure(["run".as_ref(), file.as_os_str()]);
    assert_eq!((run.code, &run.summary["outcome"]), (0, &"completed".into()), "{}", run.err);
    let restart = &run.summary["restarts"][0];
    assert_eq!(restart["away"], 0, "{restart}");
    assert!(restart["reconnected_seconds"].as_f64() > Some(1.0), "{restart}");
    for (workload, clients) in run.workloads().iter().zip([20.0, 1.0, 3.0, 3.0, 2.0]) {
        let total = |figure: &str| workload["total"][figure]["total"].as_f64().unwrap();
        assert_eq!((total("started"), total("played")), (clients, clients), "one each: {workload:#}");
        assert!(total("cut_off") >= clients && total("returned") == total("cut_off"), "{workload:#}");
        assert!(workload["total"]["away_time"]["max"].as_f64() > Some(1.0), "{workload:#}");
        if workload["role"] == "play" {
            assert!(total("stalls") >= clients, "{workload:#}");
            let [pictures, sound] = [0, 1].map(|track| &workload["tracks"][track]);
            assert_eq!(
                (&pictures["kind"], &pictures["codec"]),
                (&"video".into(), &"H.264".into()),
                "{workload:#}"
            );
            assert!(pictures["size"][0].as_u64() >= Some(128), "{pictures}");
            assert_eq!(sound["kind"], "audio", "{workload:#}");
            assert_eq!((total("lost"), total("timestamp_jumps")), (0.0, 0.0), "{workload:#}");
        }
    }
    assert!(run.spread("recovery")["count"].as_u64() >= Some(4), "{}", run.spread("recovery"));
    let mut outages = run.workloads()[0]["outages"].as_array().into_iter().flatten();
    assert!(outages.all(|outage| outage["made_by_run"] == true), "{}", run.workloads()[0]["outages"]);
    let text = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
    assert!(text.contains("made again after"), "{text}");
}
