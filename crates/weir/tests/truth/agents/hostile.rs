//! An agent that is let in and sends what no run is: it is lost, and the run says why.

use super::reason;
use crate::support::{Crew, measure, shared};
use serde_json::{Value, json};
use weir_testing::RawClient;

/// Who an agent of this weir is, as it says itself.
fn hello(crew: &Crew) -> Value {
    let mut nats = crew.nats.client();
    nats.subscribe("weir.up.a");
    nats.flush();
    nats.publish(
        "weir.call",
        json!({"from": 9, "to": null, "run": "", "message": "call"}).to_string().as_bytes(),
    );
    loop {
        let said: Value = serde_json::from_slice(&nats.message().unwrap()).unwrap();
        if said["message"]["hello"].is_object() {
            return said["message"].clone();
        }
    }
}

/// Answers as agent h in a process of this number until the connection ends: it accepts whatever it is offered, and sends these
/// items when it is to begin.
fn pretend(mut nats: RawClient, number: u64, hello: &Value, items: &[Value]) {
    let send = |nats: &mut RawClient, run: &Value, message: &Value| {
        let frame = json!({"from": number, "run": run, "message": message});
        nats.publish("weir.up.h", frame.to_string().as_bytes());
    };
    let mut has_begun = false;
    while let Some(message) = nats.message() {
        let said: Value = serde_json::from_slice(&message).unwrap();
        if said["message"] == "call" {
            send(&mut nats, &"".into(), hello);
        } else if said["to"] != number {
            continue;
        } else if said["message"]["offer"].is_object() {
            send(&mut nats, &said["run"], &"accepted".into());
        } else if said["message"]["begin"].is_object() && !std::mem::replace(&mut has_begun, true) {
            for (position, item) in (1..).zip(items) {
                send(
                    &mut nats,
                    &said["run"],
                    &json!({"item": {"number": position, "oldest": 1, "item": item}}),
                );
            }
        } else if said["message"] == "done" {
            return;
        }
    }
}

fn second(second: u32, intervals: &[&str], histograms: &str) -> Value {
    json!({"second": {
        "second": second, "intervals": intervals, "histograms": histograms, "events": [], "is_whole": true
    }})
}

#[test]
fn an_agent_that_sends_what_is_no_second_is_lost_and_its_words_are_not_counted() {
    let _machine = shared();
    let mut crew = Crew::start(1);
    let hello = hello(&crew);
    crew.agents[0].kill();
    let begun = json!({"begun": {"late_seconds": 0.0, "clock_bound_seconds": 0.0}});
    let reset = json!({"event": "failure", "at_seconds": 0.0, "workload": 7, "client": 1, "failure": "reset", "words": ""});
    let mut nowhere = second(0, &[], "");
    nowhere["second"]["events"] = json!([reset]);
    let why = json!({"state": "degraded", "check": "x", "stage": null, "measured": 1.0, "limit": 0.0, "text": "", "remedy": ""});
    let endless =
        json!({"cut_short": null, "clock_bound_seconds": 0.0, "loads": [], "reasons": vec![why; 10_000]});
    let whole = r#"{"second":0,"workload":0,"failures":{},"started":1,"planned":1}"#;
    for (number, (items, words)) in (1..).zip([
        (vec![second(1_000_000, &[], "")], "second 1000000 is long after the plan's end"),
        (vec![second(0, &[], ""), second(0, &[], "")], "second 0, which it has sent before"),
        (vec![second(0, &[r#"{"second":0,"workload":7,"failures":{}}"#], "")], "it sent a malformed second"),
        (vec![second(0, &[r#"{"second":0,"workload":0,"failures":{},"agent":3}"#], "")], "of another agent"),
        (vec![nowhere], "a workload or a channel that is not there"),
        (vec![json!({"ended": endless})], "it sent a malformed end of the run"),
        (vec![second(0, &[whole], "Tag=0/startup,0.000,1.000,0.0,@@@@\n")], "it sent a malformed second"),
        (
            vec![second(
                0,
                &[whole],
                "Tag=0/startup,0.000,1.000,0.0,HISTFAAAABt42pNpmSz8HwgYIIAZSjP+hwL7DxABACc6Dm4=\n",
            )],
            "a distribution that announces 4294967295 bytes of counts",
        ),
        (vec![second(0, &[whole, whole], "")], "two intervals of the same clients"),
    ]) {
        let mut nats = crew.nats.client();
        nats.subscribe("weir.call");
        nats.subscribe("weir.down.h");
        nats.flush();
        let run = std::thread::scope(|scope| {
            let items: Vec<_> = [begun.clone()].into_iter().chain(items).collect();
            let hello = &hello;
            scope.spawn(move || pretend(nats, number, hello, &items));
            let mut words = vec!["play", "rtmp://127.0.0.1:9/live/a", "-d", "30s", "--warmup", "0s"];
            let agents = crew.words(1);
            words.extend(agents.iter().map(String::as_str));
            measure(words)
        });
        assert_eq!((run.code, &run.summary["outcome"]), (98, &"agent_lost".into()), "{}", run.err);
        let text = reason(&run, "agent_lost")["text"].as_str().unwrap();
        assert!(text.starts_with("agent h was lost after ") && text.contains(words), "{text}");
        assert_eq!(run.total("started"), 0.0, "{words}");
    }
}
