//! Messages through mosquitto: what is written of a password, and another program that answers.

use crate::support::{Mosquitto, measure, paho_responder, shared};
use serde_json::Value;

fn total(workload: &Value, figure: &str) -> u64 {
    let value = &workload["total"][figure];
    value["total"].as_f64().or_else(|| value["count"].as_f64()).unwrap_or_else(|| panic!("{figure}: {value}"))
        as u64
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

#[test]
fn answers_of_another_program_are_known_by_their_correlation_data() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let _responder = paho_responder(broker.address().parse().unwrap(), "slow/#");
    let url = broker.url("slow/{seq}");
    let run = measure(
        [
            "publish",
            &*url,
            "--rate",
            "2/s",
            "--count",
            "10",
            "--response-topic",
            "slow-answers",
            "--timeout",
            "3s",
        ]
        .iter(),
    );
    let asking = &run.workloads()[0];
    let of = |figure: &str| total(asking, figure);
    // Of ten, one is answered twice, one as if it were another's, one not at all.
    assert_eq!((of("mqtt.answers"), of("mqtt.no_answer"), of("mqtt.strange_answers")), (8, 2, 2));
    let fastest = asking["total"]["mqtt.round_trip"]["p50"].as_f64().unwrap();
    assert!(fastest >= 0.2, "each answer was held back for 200 ms: {fastest}");
}
