//! What the report of a search for a capacity says, in each format.

use crate::fixture;
use weir_answers::capacity::{
    Answer, Bounds, CapacitySummary, CapacityTrial, Cost, CostOf, Evidence, FailedThreshold, LAYOUT,
    LoadOutcome, NetworkLoad, Purpose, Sought, Stopped, TrialVerdict, VoidCause,
};
use weir_answers::series::Ending;
use weir_engine::scenario::LoadKind;
use weir_engine::summary::units::FigureUnit;
use weir_engine::summary::{FailureCount, LinkLoad, OtherLoad, ProcessLoad, ThreadLoad};
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
        verdict: if is_carried { TrialVerdict::Pass } else { TrialVerdict::Fail },
        good_seconds: if is_carried { seconds } else { 0 },
        bad_seconds: if is_carried { 0 } else { seconds },
        failed: if is_carried { Vec::new() } else { vec![failed] },
        failure: (!is_carried).then_some(failure),
        void: None,
        void_cause: None,
        admitted: None,
        is_empty: false,
        playing: f64::from(carried),
        actual_bps: f64::from(carried) * 235e3,
        units_per_second: f64::from(carried) * 70.0,
        targets: vec![process("name=nginx")],
        generator: Some(process("weir")),
        host_cpu_percent: Some(cpu * 2.0),
        others: Vec::new(),
        network: Some(NetworkLoad {
            rx_bps: 2e6,
            tx_bps: f64::from(carried) * 240e3,
            link: Some(LinkLoad {
                interface: "eth0".to_owned(),
                bps: f64::from(carried) * 240e3,
                speed_bps: 1e9,
            }),
        }),
        drift_slope: None,
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
            at_least: None,
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
            lower_is_sure: true,
            upper_is_sure: true,
            recovers: Some(true),
            trials: 8,
            stopped: None,
            admits: None,
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

/// A thread that had no core for half of the time is not the bottleneck: who had it is said.
#[test]
fn a_server_without_a_core_is_not_called_slow() {
    let mut starved = summary();
    for load in starved.trials.iter_mut().flat_map(|trial| &mut trial.loads) {
        let thread = &mut load.targets[0].threads[0];
        (thread.cpu_percent_busiest, thread.waited_percent_busiest) = (48.0, Some(50.0));
        load.others = vec![OtherLoad { name: "rustc".to_owned(), pid: 7, processes: 2, cpu_percent: 140.0 }];
    }
    for format in ["text", "html"] {
        let text = written(&starved, format, &Text::default()).replace('\u{a0}', " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "thread nginx ran 48% and waited 50% for one; rustc used 140% of a core";
        assert!(text.contains(said), "{format}: {text}");
        assert!(!text.contains("thread nginx at 98%"), "{format}: {text}");
    }
    assert!(written(&starved, "html", &Text::default()).contains("Cores for the server to run on"));
}

#[test]
fn the_first_line_says_how_sure_it_is() {
    let with = |evidence, lower, upper| {
        let mut summary = summary();
        summary.answer = Answer { evidence, bounds: Bounds { lower, upper }, ..summary.answer };
        capacity_line(&summary).replace('\u{a0}', " ")
    };
    for (evidence, lower, upper, expected) in [
        (Evidence::Found, Some(3_420), Some(3_590), "carries 3,420 viewers, not 3,590"),
        (Evidence::AtLeast, Some(3_420), None, "carries at least 3,420 viewers; more was not tried (`most`)"),
        (Evidence::AtMost, None, Some(3_590), "does not carry 3,590 viewers"),
        (Evidence::AtMost, None, Some(1), "does not carry a single one of its viewers"),
        (
            Evidence::Undecided,
            Some(3_420),
            Some(3_590),
            "undecided: carried 3,420 viewers, not 3,590; it ran out of time before it was sure",
        ),
        (Evidence::Void, None, None, "no result: no trial came to its end"),
    ] {
        assert_eq!(with(evidence, lower, upper), expected);
    }
    let mut interrupted = summary();
    let known = Bounds { lower: Some(40), upper: None };
    interrupted.answer = Answer { evidence: Evidence::Undecided, bounds: known, ..interrupted.answer };
    interrupted.ending = Ending::Interrupted;
    let line = capacity_shortfall(&interrupted).unwrap();
    assert!(line.starts_with("interrupted after "), "{line}");
    assert!(line.ends_with("; undecided: carried 40 viewers; it was interrupted"), "{line}");
    interrupted.answer.bounds.lower = None;
    let line = capacity_shortfall(&interrupted).unwrap();
    assert!(line.starts_with("interrupted after ") && !line.contains(';'), "{line}");
    let mut void = summary();
    void.answer = Answer {
        evidence: Evidence::AtLeast,
        bounds: Bounds { lower: Some(2_000), upper: None },
        ..void.answer
    };
    void.trials.truncate(1);
    void.trials[0].loads[2].void = Some("generator_thread: weir's thread was at its limit".to_owned());
    assert_eq!(capacity_line(&void), "carries at least 2,000 viewers; the load generator was the bottleneck");
    let text = written(&void, "text", &Text::default());
    assert!(text.contains("Void         generator_thread: weir's thread was at its limit"), "{text}");
}

/// The first line of a search that was over before its end, whose last trial met this.
fn stopped(stopped: Stopped, last: Option<Failure>) -> String {
    let mut summary = summary();
    let bounds = Bounds { lower: Some(160), upper: Some(320) };
    let answer = Answer { evidence: Evidence::Undecided, bounds, ..summary.answer };
    summary.answer = Answer { stopped: Some(stopped), ..answer };
    let load = &mut summary.trials.last_mut().unwrap().loads[0];
    load.failure =
        last.map(|kind| FailureCount { kind, side: Side::Remote, clients: 160, words: String::new() });
    capacity_line(&summary).replace('\u{a0}', " ")
}

#[test]
fn what_ended_a_search_before_its_end_is_said_with_what_was_known() {
    let refused = stopped(Stopped::Broken, Some(Failure::ConnectionRefused));
    let restart = "restart it with `prepare`";
    assert_eq!(
        refused,
        format!("carried 160 viewers, not 320; it has accepted no connection since (refused): {restart}")
    );
    assert!(stopped(Stopped::Broken, Some(Failure::HandshakeTimeout)).contains("since (silent): "));
    assert_eq!(
        stopped(Stopped::NotRecovered, None),
        format!("carried 160 viewers, not 320; after that overload it did not carry 160 again: {restart}")
    );
    assert!(
        stopped(Stopped::NoSource, None)
            .ends_with("not 320; then its source had ended: see to it that it goes on")
    );
    // A publisher that the server drops is the limit.
    let mut summary = summary();
    for load in summary.trials.iter_mut().flat_map(|trial| &mut trial.loads).filter(|it| it.load >= 3_590) {
        (load.verdict, load.void_cause) = (TrialVerdict::Void, Some(VoidCause::Publisher));
        load.void = Some("the server dropped the publisher (closed_by_peer)".to_owned());
    }
    let line = capacity_line(&summary);
    assert_eq!(line, "carries 3,420 viewers, not 3,590, where it dropped the publisher");
    let text = written(&summary, "text", &Text::default());
    assert!(text.contains("Not 3,590    the server dropped the publisher (closed_by_peer)"), "{text}");
}

#[test]
fn one_load_that_was_asked_for_has_a_sentence_of_its_own() {
    let with = |evidence, lower, upper| {
        let mut summary = summary();
        summary.sought.at_least = Some(300);
        summary.answer = Answer { evidence, bounds: Bounds { lower, upper }, ..summary.answer };
        (capacity_line(&summary), summary.carries_at_least())
    };
    let line = |words: &str| words.to_owned();
    assert_eq!(with(Evidence::AtLeast, Some(300), None), (line("carries at least 300 viewers"), Some(true)));
    assert_eq!(with(Evidence::AtMost, None, Some(300)), (line("does not carry 300 viewers"), Some(false)));
    let open = with(Evidence::Undecided, None, Some(300));
    assert_eq!(
        open,
        (line("undecided: did not carry 300 viewers; it ran out of time before it was sure"), None)
    );
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
    assert!(messages.contains("carries 239,400 messages a second, not 3,590"), "{messages}");
    assert!(messages.contains("239,400 messages a second of 3,420 publishers, 804 Mbps"), "{messages}");
    let arrivals = with(LoadKind::Arrivals, "viewers a second");
    assert!(arrivals.contains("3,420 that came at 3,420 a second"), "{arrivals}");
    let streams = with(LoadKind::Streams, "streams");
    assert!(streams.contains("3,420 clients of 3,420 streams"), "{streams}");
}

/// The page's cards once said of a bound that was confirmed: `3,590 failed in 0 of 2 trials`.
#[test]
fn the_first_card_on_how_sure_it_is_says_what_the_table_says() {
    let card = |summary: &CapacitySummary| {
        let page = written(summary, "html", &Text::default()).replace('\u{a0}', " ");
        let (_, card) = page.split_once("Can it be believed?").unwrap();
        card.split_once("What was the limit?").unwrap().0.to_owned()
    };
    let mut summary = summary();
    let shown = card(&summary);
    for words in ["3,420 was carried in 3 of 3 trials of 1 min", "3,590 was not in 2 of 2 trials of 1 min"] {
        assert!(shown.contains(words), "{shown}");
    }
    summary.answer.admits = Some(3_420);
    summary.trials[0].loads[2].admitted = Some(3_420);
    let shown = card(&summary);
    assert!(shown.contains("it admitted 3,420 of 4,000, and carried them"), "{shown}");
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
    fixture::schema::follows("capacity", written(&summary, "json", &Text::default()).as_bytes());
}
