//! What MQTT subscribers are asked by default, of a mosquitto that does as the standard says, and of one that says nothing.

use crate::support::{Run, count as total, measure};
use weir_runner::ErrorKind::Thresholds;
use weir_testing::Mosquitto;

/// Whether a default is asked of a run, and holds.
fn asked(run: &Run, expression: &str) -> Option<bool> {
    let thresholds = run.summary["thresholds"].as_array().unwrap();
    thresholds.iter().find(|it| it["expression"] == expression).map(|it| it["passed"] == true)
}

/// Two workloads at one broker, with the keys of each.
fn run(broker: &Mosquitto, publish: (&str, &str), play: (&str, &str)) -> Run {
    let (topic, filter) = (broker.url(publish.0), broker.url(play.0));
    let workloads = format!("[{{play: '{filter}', {}}}, {{publish: '{topic}', {}}}]", play.1, publish.1);
    measure(&format!("workloads: {workloads}"))
}

#[test]
fn a_broker_that_denies_reading_or_publishing_without_a_word_fails_the_run() {
    for (version, access, passes) in
        [("5", "write", false), ("3.1.1", "read", false), ("3.1.1", "readwrite", true)]
    {
        let rules = format!("topic {access} a/#\n");
        let broker = Mosquitto::with_files("acl_file {directory}/acl", |directory| {
            std::fs::write(directory.join("acl"), rules).unwrap();
        });
        let of_both = format!("mqtt_version: '{version}'");
        let play = format!("{of_both}, duration: 5s");
        let run = run(&broker, ("a/{client}/{seq}", &format!("{of_both}, rate: 20/s")), ("a/#", &play));
        assert_eq!(
            asked(&run, "units > 0"),
            Some(passes),
            "{version} {access}: {:#}",
            run.summary["thresholds"]
        );
        assert_eq!(run.missed, (!passes).then_some(Thresholds), "{version} {access}");
        assert_eq!(run.slots("failed"), 0, "{version} {access}: nothing else says it");
    }
}

#[test]
fn links_that_the_run_cuts_are_not_held_against_the_broker() {
    let broker = Mosquitto::start();
    let cut = "qos: 1, break_every: 1500ms";
    let run = run(
        &broker,
        ("b/{client}", &format!("{cut}, clients: 2, rate: 200/s")),
        ("b/#", &format!("{cut}, clients: 3, duration: 7s")),
    );
    let [received, sent] = run.workloads() else { panic!() };
    assert!(total(received, "mqtt.reconnects") >= 9 && total(sent, "mqtt.reconnects") >= 6);
    assert!(total(received, "units") < 3 * total(sent, "mqtt.acknowledged"), "the cuts have cost something");
    assert_eq!((total(received, "lost"), asked(&run, "lost == 0")), (0, Some(true)));
    assert_eq!(run.missed, None, "{:#}", run.summary["thresholds"]);
}

#[test]
fn members_of_a_shared_subscription_that_are_replaced_all_the_time_miss_nothing() {
    let broker = Mosquitto::start();
    for clients in [1, 4] {
        let keys = format!("qos: 1, clients: {clients}, life: 'exp:700ms', duration: 6s");
        let run = run(&broker, ("c/{client}", "qos: 1, clients: 2, rate: 300/s"), ("$share/g/c/#", &keys));
        let [received, _] = run.workloads() else { panic!() };
        assert!(total(received, "mqtt.connects") > 4, "{clients}");
        // What is on its way to one that leaves is unknown, so that the default is not asked.
        assert_eq!((total(received, "lost"), asked(&run, "lost == 0")), (0, None), "{clients}");
    }
}

#[test]
fn workloads_that_share_a_subscription_are_counted_together() {
    let broker = Mosquitto::start();
    let (topic, filter) = (broker.url("d/{client}"), broker.url("$share/g/d/#"));
    let play = format!("play: '{filter}', qos: 1, duration: 4s");
    let run = measure(&format!(
        "workloads: [{{{play}}}, {{{play}, name: second}}, {{publish: '{topic}', qos: 1, rate: 100/s, delay: 1s, count: 200}}]"
    ));
    let [first, second, _] = run.workloads() else { panic!() };
    assert!(total(first, "units") > 0 && total(second, "units") > 0);
    assert_eq!(total(first, "units") + total(second, "units"), 200);
    assert_eq!((total(first, "lost") + total(second, "lost"), run.missed), (0, None));
}
