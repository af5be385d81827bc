//! Agents on machines of their own, network namespaces, against servers of others: what all of them count is what the server
//! has counted, and percentiles are those of all that they have kept.

use super::{assert_is, histogram, reason};
use crate::support::{
    Air, CHECKS_OF_THE_MACHINE, Crew, FIRST, Machines, Measuring, Mosquitto, Nginx, Publishing, Run, config,
    measure, program, shared, soon, start_measuring, weir,
};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use weir_origin::{Origin, OriginConfig, RTC, RTMP};
use weir_testing::number_in;

/// Tests something with one, two and four machines that make the load, beside each other: they share nothing.
fn with_each_number(test: impl Fn(usize) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for others in [1, 2, 4] {
            scope.spawn(move || test(others));
        }
    });
}

/// The run directories that the agents have kept.
fn kept(crew: &Crew, machines: &Machines) -> Vec<PathBuf> {
    let names = (0..machines.others()).map(|number| char::from(b'a' + number as u8).to_string());
    let kept: Vec<_> = names.flat_map(|name| crew.directories(&name)).collect();
    assert_eq!(kept.len(), machines.others());
    kept
}

/// Holds the figures of a workload to all that the agents have kept.
fn assert_adds_up(run: &Run, workload: usize, kept: &[PathBuf], counters: &[(&str, &str)], spreads: &[&str]) {
    let total = &run.workloads()[workload]["total"];
    for (figure, key) in counters {
        let lines = kept.iter().map(|directory| {
            let text = std::fs::read_to_string(directory.join("intervals.ndjson")).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines.filter(|it| it["workload"] == workload).map(|it| it[key].as_f64().unwrap()).sum::<f64>()
        });
        assert_eq!(total[figure]["total"].as_f64(), Some(lines.sum()), "{figure}");
    }
    for figure in spreads {
        let mut sum = histogram(&kept[0], workload, figure);
        kept[1..].iter().for_each(|directory| sum.add(histogram(directory, workload, figure)).unwrap());
        assert!(!sum.is_empty(), "{figure}");
        assert_is(&total[figure], &sum);
    }
}

/// Viewers of a stream on all machines.
fn viewers(crew: &Crew, machines: &Machines, url: &str, flags: &[&str]) -> Measuring {
    let mut command = weir();
    command.args(["play", url, "-c", "6", "--warmup", "0s", "--drain", "500ms"]).args(flags);
    command.args(crew.words(machines.others())).args(["--accept", CHECKS_OF_THE_MACHINE]);
    start_measuring(&mut command)
}

#[test]
fn what_viewers_on_several_machines_got_of_nginx_is_what_nginx_has_sent() {
    let _machine = shared();
    with_each_number(|others| {
        let machines = Machines::start(others);
        machines.at(0, || {
            let (crew, nginx) = (Crew::on(&machines), Nginx::at(FIRST, 256));
            let url = nginx.url("a");
            // They wait for the publisher, so they get all that it sends; then they see its end.
            let watching = viewers(&crew, &machines, &url, &["-d", "30s"]);
            soon("six wait", || number_in(&nginx.statistics(), "nclients") == Some(6.0));
            let sent = measure(["publish", &url, "-d", "3s", "--warmup", "0s", "--drain", "500ms"]);
            let run = watching.finish();
            let (kind, clients, _, words) = run.failure();
            assert_eq!((kind.as_str(), clients), ("stream_ended", 6), "{words}");
            for figure in ["frames", "keyframes", "rtmp.audio_frames"] {
                assert_eq!(run.total(figure), 6.0 * sent.total(figure), "{figure} of {others}");
            }
            // nginx counts messages only, without the handshake; the publisher left before its goodbye.
            let received = run.total("received") + sent.total("received") - 7.0 * 3_073.0;
            let of_server = number_in(&nginx.statistics(), "bytes_out").unwrap();
            assert!((0.0..=300.0).contains(&(of_server - received)), "{received} of {of_server} bytes");
            let counters = [("media", "media_bytes"), ("frames", "frames"), ("received", "received_bytes")];
            let spreads = ["startup", "connect", "handshake", "latency"];
            assert_adds_up(&run, 0, &kept(&crew, &machines), &counters, &spreads);
        });
    });
}

#[test]
fn what_viewers_on_several_machines_got_by_webrtc_is_what_the_origin_has_sent() {
    let _machine = shared();
    with_each_number(|others| {
        let machines = Machines::start(others);
        machines.at(0, || {
            let crew = Crew::on(&machines);
            let origin = Origin::start(&config(&[]).listening(&RTC, (FIRST, 0).into())).unwrap();
            let publishing = Publishing::start(
                &format!("rtmp://{}/live/a", origin.address("rtmp").unwrap()),
                &["--gop", "1s"],
            );
            let url = format!("whep+http://{}/live/a", origin.address("rtc").unwrap());
            let watching = viewers(&crew, &machines, &url, &["-d", "60s", "--witness-every", "2"]);
            soon("all play", || origin.counts().viewers.len() == 6);
            std::thread::sleep(Duration::from_secs(2));
            // Nothing is sent after the stream's end, and what was sent has come before they are told to leave.
            publishing.finish();
            std::thread::sleep(Duration::from_millis(500));
            watching.process.interrupt();
            let run = watching.finish();
            assert_eq!(run.code, 105, "{}", run.err);
            let sent = origin.counts().sent().units();
            assert!(sent > 6 * 100, "{sent}");
            assert_eq!(run.total("units") as u64, sent);
            assert_eq!((run.total("lost"), run.total("reordered"), run.total("duplicate")), (0.0, 0.0, 0.0));
            let counters = [("media", "media_bytes"), ("frames", "frames"), ("units", "units")];
            let spreads = ["startup", "connect", "latency"];
            assert_adds_up(&run, 0, &kept(&crew, &machines), &counters, &spreads);
        });
    });
}

/// What mosquitto says of itself under this topic of `$SYS/broker`, when it says it next.
fn said_by(broker: &Mosquitto, topic: &str) -> u64 {
    let (host, port) = broker.address().split_once(':').map(|(h, p)| (h.to_owned(), p.to_owned())).unwrap();
    let output = program("mosquitto_sub", "mosquitto-clients")
        .args(["-h", &host, "-p", &port, "-C", "1", "-W", "60", "-t", &format!("$SYS/broker/{topic}")])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

#[test]
fn what_machines_publish_and_receive_is_what_mosquitto_has_counted() {
    let _machine = shared();
    with_each_number(|others| {
        let machines = Machines::start(others);
        machines.at(0, || {
            let lines = format!(
                "listener 1884 {FIRST}\nsys_interval 1\npersistence false\nlog_dest file {{directory}}/log\nlog_type subscribe"
            );
            let (crew, broker) = (Crew::on(&machines), Mosquitto::with(&lines));
            let judge = broker.subscriber(&["-t", "a/#", "-q", "1", "-C", "800", "-W", "60", "-F", "%l"]);
            let folder = tempfile::tempdir().unwrap();
            let (file, url) = (folder.path().join("s.yaml"), format!("mqtt://{FIRST}:1884"));
            let text = format!(
                "warmup: 0s\nworkloads:\n  - {{play: '{url}/a/#', clients: 4, duration: 5s, qos: 1}}\n  \
                 - {{publish: '{url}/a/{{client}}', clients: 4, delay: 2s, duration: 3s, qos: 1, rate: 400/s, count: 200}}\n"
            );
            std::fs::write(&file, text).unwrap();
            let mut words = vec!["run".to_owned(), file.to_str().unwrap().to_owned()];
            words.extend(crew.words(others));
            let run = measure(words);
            let heard = judge.lines();
            let bytes: u64 = heard.iter().map(|length| length.parse::<u64>().unwrap()).sum();
            let of = |workload: usize, figure: &str| {
                run.workloads()[workload]["total"][figure]["total"].as_f64().unwrap() as u64
            };
            assert_eq!((of(1, "units"), of(1, "mqtt.acknowledged"), of(1, "media")), (800, 800, bytes));
            assert_eq!((of(0, "units"), of(0, "media"), of(0, "duplicate")), (4 * 800, 4 * bytes, 0));
            soon("mosquitto counts all", || said_by(&broker, "publish/messages/received") == 800);
            assert_eq!(said_by(&broker, "publish/messages/dropped"), 0);
            let kept = kept(&crew, &machines);
            let counters = [("units", "units"), ("media", "media_bytes")];
            assert_adds_up(&run, 0, &kept, &counters, &["startup", "latency"]);
            let spreads = ["send_lag", "mqtt.acknowledge_time", "mqtt.response_time"];
            assert_adds_up(&run, 1, &kept, &counters, &spreads);
        });
    });
}

/// Viewers on two machines of a stream of the first, and what becomes of them.
fn on_two_machines(flags: &[&str], then: impl FnOnce(&Machines, &Crew, &Air, Measuring) + Send) {
    let machines = Machines::start(2);
    machines.at(0, || {
        let crew = Crew::on(&machines);
        let origin = Origin::start(&OriginConfig {
            merge: Duration::ZERO,
            ..OriginConfig::default().listening(&RTMP, (FIRST, 0).into())
        })
        .unwrap();
        let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
        let publishing = Publishing::start(&url, &["--gop", "1s"]);
        let air = Air::of(origin, url, publishing);
        let watching = viewers(&crew, &machines, &air.url, flags);
        soon("all play", || air.origin.counts().viewers.len() == 6);
        std::thread::sleep(Duration::from_secs(1));
        then(&machines, &crew, &air, watching);
    });
}

#[test]
fn a_wire_that_is_pulled_for_half_a_second_costs_nothing_and_counts_nothing_twice() {
    let _machine = shared();
    let any_end = [
        "failed.ratio <= 100%",
        "played.ratio >= 0%",
        "starved.ratio <= 100%",
        "stalled.ratio <= 100%",
        "blackouts >= 0",
    ];
    let mut flags = vec!["-d", "60s"];
    any_end.iter().for_each(|threshold| flags.extend(["--threshold", threshold]));
    on_two_machines(&flags, |machines, crew, air, watching| {
        machines.set_wire(2, false);
        // TCP sends again within twice that: it is there long before an agent counts as lost (3 s).
        std::thread::sleep(Duration::from_millis(500));
        machines.set_wire(2, true);
        std::thread::sleep(Duration::from_secs(3));
        air.end_publisher();
        let run = watching.finish();
        let sent = air.origin.counts().sent();
        assert_eq!((run.code, run.failures()["stream_ended"]), (0, 6), "{:#}", run.summary["verdict"]);
        assert_eq!((run.total("frames") as u64, run.total("units") as u64), (sent.video, sent.packets()));
        assert_adds_up(&run, 0, &kept(crew, machines), &[("media", "media_bytes")], &["startup", "connect"]);
    });
}

#[test]
fn an_agent_whose_wire_stays_pulled_is_lost_and_is_free_again_when_it_is_back() {
    let _machine = shared();
    on_two_machines(&["-d", "60s"], |machines, crew, air, watching| {
        machines.set_wire(2, false);
        let run = watching.finish();
        assert_eq!((run.code, &run.summary["outcome"]), (98, &"agent_lost".into()));
        let text = reason(&run, "agent_lost")["text"].as_str().unwrap();
        assert!(text.starts_with("agent b was lost after ") && text.contains("silent for 3 s"), "{text}");
        machines.set_wire(2, true);
        soon("it ends its clients", || crew.log("b").contains("it ends its clients"));
        crew.wait(2);
        assert_eq!(air.origin.counts().viewers.len(), 6, "nobody has come again");
    });
}
