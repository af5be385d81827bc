//! Messages through mosquitto, to the last one.

use crate::support::{Mosquitto, measure, says, shared};
use serde_json::Value;

fn total(workload: &Value, figure: &str) -> u64 {
    let value = &workload["total"][figure];
    value["total"].as_f64().or_else(|| value["count"].as_f64()).unwrap_or_else(|| panic!("{figure}: {value}"))
        as u64
}

#[test]
fn a_count_of_messages_is_published_on_schedule_and_all_are_acknowledged() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let judge = broker.subscriber(&["-t", "a/#", "-q", "1", "-C", "1000", "-W", "20", "-F", "%t %l"]);
    let url = broker.url("a/{client}/{seq}");
    let run = measure(
        ["publish", &url, "-q", "1", "-c", "2", "--rate", "500/s", "--count", "500", "--payload", "size:955"]
            .iter(),
    );
    let mut heard = judge.lines();
    assert_eq!((heard.len(), heard.iter().all(|line| line.ends_with(" 955"))), (1_000, true));
    heard.sort();
    heard.dedup();
    assert_eq!(heard.len(), 1_000, "each topic once");
    let workload = &run.workloads()[0];
    assert_eq!((total(workload, "units"), total(workload, "media")), (1_000, 955_000));
    assert_eq!(total(workload, "mqtt.acknowledged"), 1_000);
    assert_eq!(total(workload, "mqtt.unsent") + total(workload, "mqtt.unacknowledged"), 0);
    for times in ["send_lag", "mqtt.publish_lag", "mqtt.acknowledge_time", "mqtt.response_time"] {
        assert_eq!(total(workload, times), 1_000, "{times}");
    }
    assert_eq!((run.slots("planned"), run.slots("failed")), (2, 0));
}

#[test]
fn a_scenario_publishes_and_subscribes_and_loses_nothing() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("messages.yaml");
    let scenario = format!(
        "workloads:
  - play: {}
    clients: 3
    duration: 4s
    mqtt: {{qos: 1}}
  - play: {}
    name: sharers
    clients: 2
    duration: 4s
    mqtt: {{qos: 1, client_id: sharer}}
  - publish: {}
    clients: 2
    delay: 1s
    duration: 3s
    mqtt: {{qos: 1, rate: 400/s, count: 400, version: '5'}}
warmup: 0s
thresholds: [lost == 0, duplicate == 0, latency.p99 < 5s, mqtt.acknowledge_time.p50 < 1s]
",
        broker.url("b/#"),
        broker.url("$share/g/b/#"),
        broker.url("b/{seq}")
    );
    std::fs::write(&file, scenario).unwrap();
    let run = measure(["run".as_ref(), file.as_os_str()]);
    let [all, shared, sent] = run.workloads() else { panic!("{:#}", run.summary) };
    assert_eq!((total(sent, "units"), total(sent, "mqtt.acknowledged")), (800, 800));
    assert_eq!((total(all, "units"), total(all, "stamped"), total(all, "latency")), (2_400, 2_400, 2_400));
    assert_eq!((total(shared, "units"), total(shared, "lost"), total(shared, "duplicate")), (800, 0, 0));
    assert_eq!((total(all, "lost"), total(all, "reordered"), total(all, "duplicate")), (0, 0, 0));
    let thresholds = run.summary["thresholds"].as_array().unwrap();
    assert!(thresholds.iter().all(|threshold| threshold["passed"] == true), "{thresholds:?}");
}

#[test]
fn what_is_no_topic_no_broker_or_no_payload_is_one_clear_line() {
    for (arguments, words) in [
        (&["play", "mqtt://127.0.0.1:9"][..], "no topic in the path; write mqtt://host/topic"),
        (&["play", "mqtt://127.0.0.1:9/a#"], "# must be the last level"),
        (&["publish", "mqtt://127.0.0.1:9/a/#"], "a topic to publish to has no + or # in it"),
        (&["publish", "mqtt://127.0.0.1:9/a", "--payload", "7"], "size:BYTES or file:PATH"),
        (&["publish", "mqtt://127.0.0.1:9/a", "--payload", "file:/no/such/file"], "/no/such/file"),
        (&["publish", "mqtt://127.0.0.1:9/a", "-q", "3"], "3"),
        (&["play", "mqtt://127.0.0.1:9/a", "rtmp://127.0.0.1:9/a/b"], "in one workload; give each its own"),
    ] {
        let said = says(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_password_is_in_nothing_that_is_written() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let url = format!("mqtt://someone:s3cr3t@{}/x/{{seq}}", broker.address());
    let run = measure(["publish", &url, "--count", "5", "--rate", "100/s"].iter());
    assert_eq!(run.total("units") as u64, 5);
    for entry in std::fs::read_dir(run.directory()).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("s3cr3t"));
    }
    assert!(!run.summary.to_string().contains("s3cr3t") && !run.err.contains("s3cr3t"));
}
