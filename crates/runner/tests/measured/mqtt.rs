//! Messages through mosquitto, to the last one.

use crate::support::{Run, count as total, measure, refusal, start};
use weir_record::{Decoder, Format, Framing, Generator, Schema};
use weir_runner::ErrorKind::{Scenario, Thresholds};
use weir_testing::{Mosquitto, free_port, soon};

#[test]
fn a_count_of_messages_is_published_on_schedule_and_all_are_acknowledged() {
    let broker = Mosquitto::start();
    let judge = broker.subscriber(&["-t", "a/#", "-q", "1", "-C", "1000", "-W", "60", "-F", "%t %l"]);
    let url = broker.url("a/{client}/{seq}");
    let run = publish(&url, "qos: 1, clients: 2, rate: 500/s, count: 500, payload: 'size:955'");
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
fn records_of_a_seed_reach_another_program_bit_for_bit() {
    let broker = Mosquitto::start();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");
    let schema = Schema::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (payload, encoding, version, format) in [
        ("avro", Some("container"), "5", Format::Avro(Framing::Container)),
        ("json", None, "3.1.1", Format::Json),
    ] {
        let judge = broker.subscriber(&["-t", "r/#", "-q", "1", "-C", "100", "-W", "60", "-F", "%t %x"]);
        let (url, payload) = (broker.url("r/{seq}"), format!("{payload}:{path}"));
        let encoding = encoding.map_or(String::new(), |encoding| format!(", avro_encoding: {encoding}"));
        measure(&format!(
            "seed: 5\nworkloads: [{{publish: '{url}', qos: 1, rate: 200/s, count: 100, payload: '{payload}', records: 2, \
             no_stamp: true, mqtt_version: '{version}'{encoding}}}]"
        ));
        let mut generator = Generator::new(&schema, 5);
        let mut decoder = Decoder::new(&schema, format);
        let lines = judge.lines();
        assert_eq!(lines.len(), 100);
        for line in lines {
            let (topic, hex) = line.split_once(' ').unwrap();
            let message: u64 = topic.strip_prefix("r/").unwrap().parse().unwrap();
            let bytes: Vec<u8> =
                (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..][..2], 16).unwrap()).collect();
            let mut records = decoder.records(&bytes);
            for number in 2 * message..2 * message + 2 {
                let record = format!("{:?}", records.next().unwrap().unwrap());
                assert_eq!(record, format!("{:?}", generator.record(number).unwrap()));
            }
            assert!(records.next().is_none());
        }
    }
}

#[test]
fn a_scenario_publishes_and_subscribes_and_loses_nothing() {
    let broker = Mosquitto::start();
    let scenario = format!(
        "workloads:
  - play: {}
    clients: 3
    duration: 4s
    qos: 1
  - play: {}
    name: sharers
    clients: 2
    duration: 4s
    qos: 1
    client_id: sharer
  - publish: {}
    clients: 2
    delay: 1s
    duration: 3s
    qos: 1
    rate: 400/s
    count: 400
    mqtt_version: 5
warmup: 0s
thresholds: [lost == 0, lost.ratio == 0, duplicate == 0, latency.p99 < 5s, mqtt.acknowledge_time.p50 < 1s]
",
        broker.url("b/#"),
        broker.url("$share/g/b/#"),
        broker.url("b/{seq}")
    );
    let run = measure(&scenario);
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
    for (workload, words) in [
        ("play: 'mqtt://127.0.0.1:9'", "no topic in the path; write mqtt://host/topic"),
        ("play: 'mqtt://127.0.0.1:9/a#'", "# must be the last level"),
        ("publish: 'mqtt://127.0.0.1:9/a/#'", "a topic to publish to has no + or # in it"),
        (
            "publish: 'mqtt://127.0.0.1:9/a', payload: '7'",
            "size:BYTES, size:LEAST-MOST, file:PATH, dir:PATH, template:PATH, avro:FILE.avsc, json:FILE.avsc or avro-json:FILE.avsc",
        ),
        ("publish: 'mqtt://127.0.0.1:9/a', payload: 'avro:/no/such/schema'", "/no/such/schema"),
        ("publish: 'mqtt://127.0.0.1:9/a', records: 2", "name a schema, or leave records out"),
        ("publish: 'mqtt://127.0.0.1:9/a', payload: 'file:/no/such/file'", "/no/such/file"),
        ("publish: 'mqtt://127.0.0.1:9/a', qos: 3", "3"),
        ("play: ['mqtt://127.0.0.1:9/a', 'rtmp://127.0.0.1:9/a/b']", "in one workload; give each its own"),
    ] {
        let error = refusal(&format!("workloads: [{{{workload}, duration: 1s}}]"));
        assert_eq!(error.kind(), Scenario, "{workload}: {error}");
        let words_of_it = error.to_string();
        assert!(words_of_it.contains(words) && words_of_it.lines().count() == 1, "{workload}: {error}");
    }
}

/// Publishers with these keys, whose acknowledgements have time.
fn publish(url: &str, keys: &str) -> Run {
    measure(&format!("workloads: [{{publish: '{url}', {keys}}}]"))
}

/// 205 messages from one publisher to this many subscribers, through an origin with these faults.
fn through_origin(faults: &[&str], subscribers: u32, version: &str) -> (Run, weir_origin::Origin) {
    let faults = faults.iter().map(|line| line.parse().unwrap()).collect();
    let config = weir_origin::OriginConfig { faults, ..weir_origin::OriginConfig::default() };
    let config = config.listening(&weir_origin::MQTT, weir_origin::ANY_PORT);
    let origin = weir_origin::Origin::start(&config).unwrap();
    let address = origin.address("mqtt").unwrap();
    let scenario = format!(
        "workloads:
  - {{play: 'mqtt://{address}/t/#', clients: {subscribers}, duration: 4s, qos: 1, mqtt_version: '{version}', no_reconnect: true}}
  - publish: mqtt://{address}/t/{{seq}}
    delay: 1s
    duration: 2500ms
    qos: 1
    rate: 200/s
    count: 205
    mqtt_version: '{version}'
warmup: 0s
"
    );
    (measure(&scenario), origin)
}

#[test]
fn every_message_that_the_origin_dropped_or_doubled_is_reported_and_no_other() {
    for version in ["3.1.1", "5"] {
        let (run, origin) = through_origin(&["drop unit=every:10 stream=t/#"], 2, version);
        let [received, sent] = run.workloads() else { panic!() };
        assert_eq!((total(sent, "units"), total(sent, "mqtt.acknowledged")), (205, 205));
        assert_eq!((total(received, "units"), total(received, "lost")), (2 * 185, 2 * 20));
        assert_eq!((total(received, "duplicate"), total(received, "reordered")), (0, 0));
        let counts = origin.messages();
        assert_eq!((counts.received, counts.dropped, counts.sent), (205, 20, 2 * 185));

        let (run, origin) =
            through_origin(&["duplicate unit=every:10 viewer=1", "swap unit=7 viewer=1"], 2, version);
        let [received, _] = run.workloads() else { panic!() };
        assert_eq!((total(received, "units"), total(received, "lost")), (410 + 20, 0));
        assert_eq!((total(received, "duplicate"), total(received, "reordered")), (20, 1));
        assert_eq!(origin.messages().sent, 430);
    }
}

#[test]
fn what_is_dropped_behind_the_last_message_that_came_is_lost_as_well() {
    for version in ["3.1.1", "5"] {
        let (run, origin) = through_origin(&["drop unit=101..205 stream=t/#"], 2, version);
        let [received, sent] = run.workloads() else { panic!() };
        assert_eq!((total(sent, "mqtt.acknowledged"), origin.messages().dropped), (205, 105));
        assert_eq!((total(received, "units"), total(received, "lost")), (2 * 100, 2 * 105));
        assert_eq!(
            (total(received, "open_ends"), run.missed),
            (0, Some(Thresholds)),
            "what was acknowledged is to arrive"
        );
    }
}

#[test]
fn a_count_ends_when_it_is_reached_and_one_that_a_duration_ends_has_failed() {
    let broker = Mosquitto::start();
    let url = broker.url("c/{seq}");
    // A window of one message a broker's answer: far behind the schedule of 5 ms.
    let run = publish(&url, "qos: 1, window: 1, rate: 1000000/s, count: 5000");
    assert_eq!((&run.summary["outcome"], run.total("units") as u64), (&"completed".into(), 5_000));
    assert_eq!((run.total("units_short") as u64, run.total("mqtt.acknowledged") as u64), (0, 5_000));
    assert!(run.stage(0)["end_seconds"].as_f64().unwrap() < 1_000.0, "{:#}", run.stage(0));

    let run = publish(&url, "rate: 100/s, count: 1000, duration: 1s");
    let short = run.total("units_short") as u64;
    assert_eq!((run.total("units") as u64 + short, run.missed), (1_000, Some(Thresholds)));
    assert!(short > 500, "{short}");
    let warnings = run.summary["warnings"].to_string();
    assert!(warnings.contains(" of 1,000 sent: the count was not reached"), "{warnings}");
}

/// A run of ten seconds in which mosquitto is ended after a while and started again.
fn through_a_restart(persistence: &str, session: &str) -> Run {
    let mut broker = Mosquitto::with(persistence);
    let scenario = format!(
        "workloads:
  - {{play: '{0}', clients: 2, duration: 10s, qos: 1{session}}}
  - {{publish: '{1}', delay: 1s, duration: 8s, qos: 1, rate: 100/s, count: 600{session}}}
warmup: 0s
thresholds: [lost <= 100000]
",
        broker.url("b/#"),
        broker.url("b/{seq}")
    );
    let run = start(&scenario);
    let lines = || std::fs::read_to_string(run.directory().join("intervals.ndjson")).unwrap_or_default();
    soon("messages go by", || lines().lines().count() >= 6);
    broker.stop();
    std::thread::sleep(std::time::Duration::from_millis(300));
    broker.go_on();
    run.finish()
}

#[test]
fn a_broker_that_restarts_ends_no_client_and_loses_nothing_that_it_keeps() {
    let keeps = "persistence true\npersistence_location {directory}\nmax_queued_messages 0";
    let run = through_a_restart(keeps, ", session: 60s");
    let [received, sent] = run.workloads() else { panic!() };
    assert_eq!(
        (total(sent, "mqtt.reconnects"), total(received, "mqtt.reconnects")),
        (1, 2),
        "{:#}",
        run.summary["warnings"]
    );
    assert_eq!((total(sent, "slots_failed"), total(received, "slots_failed")), (0, 0));
    assert_eq!((total(sent, "units"), total(sent, "mqtt.acknowledged")), (600, 600));
    assert_eq!(
        (total(received, "units") - total(received, "duplicate"), total(received, "lost")),
        (1_200, 0)
    );
    assert_eq!(total(sent, "mqtt.sessions_lost") + total(received, "mqtt.sessions_lost"), 0);
}

#[test]
fn what_goes_with_a_broker_that_restarts_is_counted() {
    let run = through_a_restart("persistence false", "");
    let [received, sent] = run.workloads() else { panic!() };
    assert_eq!(
        (total(sent, "mqtt.reconnects"), total(received, "mqtt.reconnects")),
        (1, 2),
        "{:#}",
        run.summary["warnings"]
    );
    assert_eq!((total(sent, "slots_failed"), total(received, "slots_failed")), (0, 0));
    let (acknowledged, unacknowledged) =
        (total(sent, "mqtt.acknowledged"), total(sent, "mqtt.unacknowledged"));
    assert_eq!((total(sent, "units"), acknowledged + unacknowledged), (600, 600));
    // What came and what is lost is all that was acknowledged, and perhaps some of what was not.
    let accounted = total(received, "units") - total(received, "duplicate") + total(received, "lost");
    assert!(
        (2 * acknowledged..=1_200).contains(&accounted),
        "{accounted} of {acknowledged} acknowledged, twice"
    );
    assert_eq!((total(received, "open_ends"), total(sent, "units_short")), (0, 0));
}

#[test]
fn acknowledgements_that_the_origin_withheld_are_counted() {
    let (run, origin) = through_origin(&["withhold unit=every:10"], 1, "5");
    let [received, sent] = run.workloads() else { panic!() };
    assert_eq!((total(sent, "mqtt.acknowledged"), total(sent, "mqtt.unacknowledged")), (185, 20));
    assert_eq!((total(received, "units"), origin.messages().withheld), (205, 20));
    assert_eq!(origin.effects().len(), 20);
}

#[test]
fn a_subscriber_that_the_origin_sends_away_failed_with_the_origins_reason() {
    for (version, kind, expected) in [
        ("5", "disconnected", "DISCONNECT 0x8b Server shutting down"),
        ("3.1.1", "closed_by_peer", "the broker closed the link"),
    ] {
        let (run, _origin) = through_origin(&["close unit=50 viewer=2"], 3, version);
        let (found, clients, side, words) = run.failure();
        // An acknowledgement that the origin has not read when it closes the link of 3.1.1 resets it.
        let was_reset = version == "3.1.1" && found == "reset";
        let (kind, expected) = if was_reset { ("reset", &*words) } else { (kind, expected) };
        assert_eq!((&*found, clients, &*side, &*words), (kind, 1, "remote", expected));
        // What came before the end is counted, and nothing behind it is called lost.
        let [received, _] = run.workloads() else { panic!() };
        assert_eq!((total(received, "units"), total(received, "lost")), (2 * 205 + 49, 0));
    }
    let (run, _origin) = through_origin(&["unauthorized phase=play"], 2, "5");
    let (kind, clients, _, words) = run.failure();
    assert_eq!((&*kind, clients, &*words), ("unauthorized", 2, "SUBACK 0x87 Not authorized"));
}

#[test]
fn publishers_that_wait_for_each_other_begin_together() {
    let broker = Mosquitto::start();
    let judge = broker.subscriber(&["-t", "together/#", "-C", "160", "-W", "60", "-F", "%t"]);
    let url = broker.url("together/{client}/{seq}");
    // Four seconds until all are connected; each then publishes for two.
    let run = publish(&url, "clients: 16, arrival: 4/s, rate: 5/s, count: 10, wait_before_publishing: true");
    let lines = judge.lines();
    let of = |number: &str| {
        let end = format!("/{number}");
        lines.iter().enumerate().filter(move |(_, line)| line.ends_with(&end)).map(|(at, _)| at)
    };
    let (last_begins, first_ends) = (of("0").max().unwrap(), of("9").min().unwrap());
    assert!(last_begins < first_ends, "all have begun before one has ended: {last_begins} {first_ends}");
    assert_eq!(
        (total(&run.workloads()[0], "units"), total(&run.workloads()[0], "mqtt.began_alone")),
        (160, 0)
    );
}

#[test]
fn publishers_wait_for_no_one_who_does_not_come_in_time() {
    let broker = Mosquitto::start();
    let (url, nowhere) = (broker.url("alone/a"), format!("mqtt://127.0.0.1:{}/alone/a", free_port()));
    let text = format!(
        "workloads: [{{publish: '{url}', wait_before_publishing: true, rate: 50/s, count: 50, timeout: 1s}},
          {{play: '{nowhere}', duration: 4s, timeout: 1s}}]"
    );
    let run = measure(&text);
    let publishing = &run.workloads()[0];
    assert_eq!((total(publishing, "units"), total(publishing, "mqtt.began_alone")), (50, 1));
}

#[test]
fn a_request_is_answered_by_a_subscriber_and_its_round_trip_is_measured() {
    let broker = Mosquitto::start();
    let (requests, all) = (broker.url("requests/{client}"), broker.url("requests/#"));
    let text = format!(
        "workloads: [{{publish: '{requests}', clients: 3, rate: 50/s, count: 100, delay: 1s, response_topic: 'answers/{{client}}'}},
          {{play: '{all}', respond: true, duration: 6s}}]"
    );
    let run = measure(&text);
    let [asking, answering] = [0, 1].map(|number| &run.workloads()[number]);
    let of = |figure: &str| total(asking, figure);
    assert_eq!((of("mqtt.answers"), of("mqtt.round_trip"), of("mqtt.no_answer")), (300, 300, 0));
    assert_eq!(of("mqtt.strange_answers"), 0);
    assert_eq!((total(answering, "mqtt.responses"), total(answering, "mqtt.unanswerable")), (300, 0));
}
