//! What the report of a search for a capacity says, in each format.

use crate::fixture;
use weir_engine::capacity::{
    Answer, Bounds, CapacitySummary, CapacityTrial, Cost, CostOf, Evidence, FailedThreshold, LAYOUT,
    LoadKind, LoadOutcome, NetworkLoad, Purpose, Sought, Verdict,
};
use weir_engine::series::{Ending, FigureUnit};
use weir_engine::summary::{FailureCount, LinkLoad, ProcessLoad, ThreadLoad};
use weir_metrics::{Failure, Side};
use weir_report::{FORMATS, Report, Text, capacity_line, capacity_shortfall, load_line};

/// A load that a server with one busy thread was given, which carries 3,500.
fn outcome(load: u32, seconds: u32) -> LoadOutcome {
    let carried = load.min(3_500);
    let is_carried = carried == load;
    let ratio = f64::from(carried) / f64::from(load);
    let cpu = f64::from(carried) / 35.0;
    let failed = FailedThreshold {
        expression: "bitrate.ratio >= 98%".to_owned(),
        value: Some(ratio),
        unit: FigureUnit::Ratio,
        seconds,
    };
    let failure = FailureCount {
        kind: Failure::ClosedByPeer,
        side: Side::Remote,
        clients: u64::from(load - carried),
        words: String::new(),
    };
    let thread = ThreadLoad {
        name: "nginx".to_owned(),
        threads: 1,
        cpu_percent: cpu,
        cpu_percent_busiest: cpu,
        waited_percent_busiest: None,
    };
    let process = |label: &str| ProcessLoad {
        label: label.to_owned(),
        cpu_percent: cpu,
        threads: vec![thread.clone()],
        ..ProcessLoad::default()
    };
    LoadOutcome {
        load,
        verdict: if is_carried { Verdict::Pass } else { Verdict::Fail },
        good_seconds: if is_carried { seconds } else { 0 },
        bad_seconds: if is_carried { 0 } else { seconds },
        failed: if is_carried { Vec::new() } else { vec![failed] },
        failure: (!is_carried).then_some(failure),
        void: None,
        playing: f64::from(carried),
        actual_bps: f64::from(carried) * 235e3,
        units_per_second: f64::from(carried) * 70.0,
        targets: vec![process("name=nginx")],
        generator: Some(process("weir")),
        host_cpu_percent: Some(cpu * 2.0),
        network: Some(NetworkLoad {
            rx_bps: 2e6,
            tx_bps: f64::from(carried) * 240e3,
            link: Some(LinkLoad {
                interface: "eth0".to_owned(),
                bps: f64::from(carried) * 240e3,
                speed_bps: 1e9,
            }),
        }),
        cost: Some(Cost { of: CostOf::ClientSecond, cpu_seconds: cpu / 100.0 / f64::from(carried) }),
    }
}

fn summary() -> CapacitySummary {
    let trial = |number: u32, purpose: Option<Purpose>, loads: &[u32], seconds: u32| CapacityTrial {
        purpose,
        loads: loads.iter().map(|load| outcome(*load, seconds)).collect(),
        directory: format!("{number:03}-trial"),
    };
    let confirm = |number, load| trial(number, Some(Purpose::Confirm), &[load], 60);
    CapacitySummary {
        layout: LAYOUT.to_owned(),
        run: fixture::steps().run,
        ending: Ending::Completed,
        sought: Sought {
            kind: LoadKind::Clients,
            of: "viewers".to_owned(),
            target: "rtmp://192.0.2.7/live/…1".to_owned(),
            thresholds: vec!["failed.ratio <= 0.1%".to_owned(), "bitrate.ratio >= 98%".to_owned()],
            precision: 0.05,
            arrivals_per_second: 100.0,
            slice_seconds: 5,
            short_seconds: 15,
            long_seconds: 60,
            budget_seconds: 1_200.0,
        },
        answer: Answer {
            evidence: Evidence::Found,
            bounds: Bounds { lower: Some(3_420), upper: Some(3_590) },
            lower_trials: (3, 0),
            upper_trials: (0, 2),
            recovers: Some(true),
            trials: 8,
        },
        trials: vec![
            trial(1, None, &[1_000, 2_000, 4_000], 15),
            trial(2, Some(Purpose::Recovery), &[2_000], 15),
            trial(3, Some(Purpose::Narrow), &[3_420], 15),
            confirm(4, 3_420),
            confirm(5, 3_420),
            confirm(6, 3_420),
            confirm(7, 3_590),
            confirm(8, 3_590),
        ],
    }
}

fn written(summary: &CapacitySummary, format: &str, text: &Text) -> String {
    let mut bytes = Vec::new();
    summary.write(format, text, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_search_as_text_on_terminals_of_any_width() {
    for width in [100, 40] {
        let text = written(&summary(), "text", &Text { width, ..Text::default() });
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        insta::assert_snapshot!(format!("capacity_{width}"), text);
    }
}

#[test]
fn the_first_line_says_how_sure_it_is() {
    let with = |evidence, lower, upper| {
        let mut summary = summary();
        summary.answer = Answer { evidence, bounds: Bounds { lower, upper }, ..summary.answer };
        capacity_line(&summary).replace('\u{a0}', " ")
    };
    let host = "rtmp://192.0.2.7/live/…1";
    let failed = "bitrate.ratio 97.5%, 90 closed_by_peer";
    let thread = "its busiest thread, nginx, was at 100% of a core";
    for (evidence, lower, upper, expected) in [
        (
            Evidence::Found,
            Some(3_420),
            Some(3_590),
            format!(
                "{host} carries 3,420 viewers (3 of 3 trials of 1 min), not 3,590 ({failed}; 2 of 2); {thread}"
            ),
        ),
        (
            Evidence::AtLeast,
            Some(3_420),
            None,
            format!("{host} carries at least 3,420 viewers; more was not to be tried (--most)"),
        ),
        (Evidence::AtMost, None, Some(3_590), format!("{host} does not carry 3,590 viewers ({failed})")),
        (
            Evidence::Undecided,
            Some(3_420),
            Some(3_590),
            format!(
                "undecided: {host} carried 3,420 viewers and not 3,590 ({failed}), but not both are confirmed: ran out of time before trying more; {thread}"
            ),
        ),
        (Evidence::Void, None, None, "no result: no trial came to its end".to_owned()),
    ] {
        assert_eq!(with(evidence, lower, upper), expected);
    }
    let mut interrupted = summary();
    let known = Bounds { lower: Some(40), upper: None };
    interrupted.answer = Answer { evidence: Evidence::Undecided, bounds: known, ..interrupted.answer };
    interrupted.ending = Ending::Interrupted;
    let line = capacity_shortfall(&interrupted).unwrap();
    assert!(line.starts_with("interrupted after ") && line.contains("; undecided: "), "{line}");
    assert!(line.ends_with("carried 40 viewers; interrupted before trying more"), "{line}");
    interrupted.answer.bounds.lower = None;
    let line = capacity_shortfall(&interrupted).unwrap();
    assert!(line.starts_with("interrupted after ") && !line.contains(';'), "{line}");
    let mut stuck = summary();
    stuck.answer.recovers = Some(false);
    assert!(capacity_line(&stuck).ends_with("; it does not recover from overload"));
    let mut void = summary();
    void.answer = Answer {
        evidence: Evidence::AtLeast,
        bounds: Bounds { lower: Some(2_000), upper: None },
        ..void.answer
    };
    void.trials[0].loads[2].void = Some("generator_thread: weir's thread was at its limit".to_owned());
    assert!(capacity_line(&void).contains(
        "at least 2,000 viewers; the generator's limit, not the server's: generator_thread: weir's"
    ));
}

#[test]
fn what_is_counted_stands_behind_its_number_and_what_came_beside_it() {
    let with = |kind, of: &str| {
        let mut summary = summary();
        (summary.sought.kind, summary.sought.of) = (kind, of.to_owned());
        let text = written(&summary, "text", &Text::default()).replace('\u{a0}', " ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let messages = with(LoadKind::Messages, "messages a second");
    assert!(messages.contains("carries 3,420 messages a second (3 of 3"), "{messages}");
    assert!(messages.contains("239,400 messages a second of 3,420 publishers, 804 Mbps"), "{messages}");
    let arrivals = with(LoadKind::Arrivals, "viewers a second");
    assert!(arrivals.contains("3,420 that came at 3,420 a second"), "{arrivals}");
    let streams = with(LoadKind::Streams, "streams");
    assert!(streams.contains("3,420 clients of 3,420 streams"), "{streams}");
}

#[test]
fn a_line_a_load_says_what_did_not_hold() {
    let line = load_line(LoadKind::Clients, &outcome(3_590, 60));
    assert_eq!(line, "3,590: not carried, bitrate.ratio 97.5%, 90 closed_by_peer; 3,500 play, 822 Mbps");
    assert_eq!(load_line(LoadKind::Clients, &outcome(100, 15)), "100: carried; 100 play, 23.5 Mbps");
    let messages = load_line(LoadKind::Messages, &outcome(100, 15));
    assert_eq!(messages, "100: carried; 7,000 messages a second, 23.5 Mbps");
    let publishers = load_line(LoadKind::Publishers, &outcome(100, 15));
    assert_eq!(publishers, "100: carried; 100 publish, 23.5 Mbps");
}

#[test]
fn every_format_has_it_and_json_follows_the_published_schema() {
    let summary = summary();
    for format in FORMATS.iter().filter(|format| **format != "clients") {
        assert!(written(&summary, format, &Text::default()).len() > 500, "{format}");
    }
    assert!(summary.write("clients", &Text::default(), &mut Vec::new()).is_err());
    assert_eq!(written(&summary, "html", &Text::default()).matches("<svg").count(), 5);
    fixture::follows("capacity", written(&summary, "json", &Text::default()).as_bytes());
}
