//! What a run comes to, from intervals that were made up.

#[path = "../facts/mod.rs"]
mod facts;
mod lengths;
mod lost;
mod published;
mod waits;
mod watched;

use facts::facts_of;
use weir_engine::EventLine;
use weir_engine::WorkloadFacts;
use weir_engine::aggregator::Aggregator;

use weir_engine::scenario::Scenario;
use weir_engine::summary::{Outcome, Role, RunFacts, Summary, VerdictState, WorkloadSummary};
use weir_engine::threshold::Threshold;
use weir_metrics::common::{
    AHEAD, COUNT_END, FRAMES, FRAMES_AHEAD, LATENCY, LOST, MEDIA, NEGATIVE_LATENCIES, NUMBERED, ON_TIME,
    PLANNED, PLAYED, PLAYING, SOURCE, SOURCE_FRAME_TIME, SOURCE_FRAMES, SOURCE_TIME, STALLED_VIEWERS,
    STARVED, STARVING, UNITS, UNITS_SHORT,
};
use weir_metrics::{Failure, Interval, IntervalKey, Recorder, Schema};
use weir_observe::{HostSample, ProcessSample, Sample};

/// Two streams of different rates, and viewers of the second.
const TWO_STREAMS: &str = "
warmup: 0s
workloads:
  - {name: thin, publish: rtmp://h/live/a}
  - {name: thick, publish: rtmp://h/live/b}
  - {name: viewers, play: rtmp://h/live/b, clients: 4, stages: [], duration: 5s, arrival: 1000/s}
";

const SCHEMA: Schema = Schema::new(&[]);

fn aggregator_of(text: &str) -> Aggregator {
    let scenario = Scenario::parse(text).unwrap();
    let facts = scenario.workloads.iter().map(|spec| (facts_of(spec), SCHEMA));
    Aggregator::new(scenario.plan().unwrap(), facts.collect(), 0)
}

/// A second of a workload with this number of clients that play, and of media bytes.
fn second(aggregator: &mut Aggregator, second: u32, workload: u16, playing: u64, media: u64) {
    let mut figures = Recorder::new(SCHEMA);
    figures.set(PLAYING, playing);
    figures.count(MEDIA, media);
    aggregator.interval(&Interval::new(IntervalKey { second, workload, server: None }, figures));
}

fn finish(aggregator: &Aggregator) -> Summary {
    finish_as(aggregator, &Scenario::default())
}

/// Summed up as a run of `scenario`, completed.
fn finish_as(aggregator: &Aggregator, scenario: &Scenario) -> Summary {
    let run = RunFacts { duration_seconds: 5.0, ..RunFacts::default() };
    aggregator.finish(run, Outcome::Completed, scenario)
}

#[test]
fn the_expected_rate_is_that_of_the_publisher_of_the_same_targets() {
    let mut aggregator = aggregator_of(TWO_STREAMS);
    for at in 0..5 {
        second(&mut aggregator, at, 0, 1, 1_000);
        second(&mut aggregator, at, 1, 1, 50_000);
        second(&mut aggregator, at, 2, 4, 190_000);
    }
    let summary = finish(&aggregator);
    let row = &summary.workloads[2].stages[0];
    assert_eq!(row.expected_bps, Some(4.0 * 50_000.0 * 8.0));
    assert_eq!(row.actual_bps, 190_000.0 * 8.0);
}

#[test]
fn a_threshold_is_judged_alike_while_the_run_goes_on_and_at_its_end() {
    let mut aggregator = aggregator_of(TWO_STREAMS);
    for at in 0..5 {
        second(&mut aggregator, at, 1, 1, 50_000);
        second(&mut aggregator, at, 2, 4, 190_000);
    }
    let mut figures = Recorder::new(SCHEMA);
    figures.fail(Failure::Reset);
    aggregator.interval(&Interval::new(IntervalKey { second: 5, workload: 2, server: None }, figures));
    let asked: Vec<Threshold> =
        ["slots_failed < 1", "bitrate.ratio > 0.9", "playing.mean > 3", "startup.p99 < 1s"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
    let summary = finish(&aggregator);
    let at_the_end: Vec<_> = asked.iter().map(|threshold| threshold.judge(&summary.workloads)).collect();
    let judged = aggregator.judge(&asked);
    assert_eq!(judged, at_the_end);
    let passed: Vec<_> = judged.iter().map(|result| result.passed).collect();
    assert_eq!(passed, [false, true, false, false], "{judged:?}");
}

/// Viewers of somebody else's stream, whose rate they read off it.
const VIEWERS: &str = "
warmup: 0s
workloads: [{play: rtmp://h/live/b, clients: 20, duration: 30s, arrival: 1000/s}]
";

/// A run of 30 s in which the source stops before second `until`. Viewers notice after their timeout of 10 s.
fn stopped(until: u32) -> Aggregator {
    let mut aggregator = aggregator_of(VIEWERS);
    for at in 0..30 {
        let mut figures = Recorder::new(SCHEMA);
        let starve = at >= until + 10;
        figures.set(PLAYING, if starve { 0 } else { 20 });
        figures.set(STARVING, if starve { 20 } else { 0 });
        figures.count(STARVED, if at == until + 10 { 20 } else { 0 });
        if at == 0 {
            figures.count(PLANNED, 20);
            figures.count(PLAYED, 20);
        }
        if at < until {
            // A crowd reads in batches: much in one second, little in the next.
            let bytes = if at % 2 == 0 { 1_200_000 } else { 800_000 };
            figures.count(MEDIA, bytes);
            figures.count(SOURCE, 1_000_000);
            figures.count(SOURCE_TIME, 20_000_000);
        }
        aggregator.interval(&Interval::new(IntervalKey { second: at, workload: 0, server: None }, figures));
    }
    aggregator
}

#[test]
fn a_source_that_stops_fails_the_run_and_is_named_with_its_second() {
    let asked = |summary: &Summary| {
        let failed = summary.thresholds.iter().filter(|it| !it.passed).map(|it| it.expression.clone());
        failed.collect::<Vec<_>>()
    };
    let steady = judged(&stopped(40));
    assert!(asked(&steady).is_empty() && steady.warnings.is_empty(), "{:?}", steady.warnings);
    let summary = judged(&stopped(14));
    let line = "play: no media since second 14: the source or the server stopped";
    assert!(summary.warnings[0].starts_with(line), "{:?}", summary.warnings);
    assert!(summary.warnings[1].contains("its rates do not describe the target"), "{:?}", summary.warnings);
    assert!(summary.workloads[0].stages[0].window_is_void);
    // Even a rate that half of the stream fulfils.
    assert_eq!(
        asked(&summary),
        ["media.rate > 1kB", "bitrate.ratio >= 90%", "starved.ratio <= 1%"],
        "{:?}",
        summary.thresholds
    );
    // It stops in the second half: there is a window, and it is not steady.
    let summary = judged(&stopped(19));
    assert!(summary.warnings.iter().any(|it| it.contains("no steady state")), "{:?}", summary.warnings);
    assert_eq!(asked(&summary), ["bitrate.ratio >= 90%", "starved.ratio <= 1%"]);
}

/// Summed up, and asked what a scenario with a threshold on a rate asks.
fn judged(aggregator: &Aggregator) -> Summary {
    let scenario = Scenario::parse(&format!("{VIEWERS}thresholds: [media.rate > 1kB]")).unwrap();
    finish_as(aggregator, &scenario)
}

#[test]
fn what_is_expected_of_a_window_is_what_was_published_in_its_seconds() {
    let mut aggregator = aggregator_of(TWO_STREAMS);
    for at in 0..5 {
        // A keyframe every other second; the viewers' window begins a second later than the publisher's.
        let media = if at % 2 == 0 { 70_000 } else { 30_000 };
        second(&mut aggregator, at, 1, 1, media);
        second(&mut aggregator, at, 2, 4, if at == 0 { 0 } else { 4 * media });
    }
    let summary = finish(&aggregator);
    let (publisher, viewers) = (&summary.workloads[1].stages[0], &summary.workloads[2].stages[0]);
    assert_ne!(publisher.window_begin_seconds, viewers.window_begin_seconds);
    assert_eq!(viewers.expected_bps, Some(viewers.actual_bps));
}

/// A default that is left out must not look like one that passed.
#[test]
fn a_default_that_short_windows_leave_out_is_said() {
    let scenario = Scenario::parse(TWO_STREAMS).unwrap();
    let mut aggregator = aggregator_of(TWO_STREAMS);
    for at in 0..5 {
        second(&mut aggregator, at, 1, 1, 50_000);
        second(&mut aggregator, at, 2, 4, 100);
    }
    let summary = finish_as(&aggregator, &scenario);
    assert!(!summary.thresholds.iter().any(|it| it.expression.starts_with("bitrate")));
    let line =
        "viewers: `bitrate.ratio >= 90%` is not asked by default of windows under 10 s: hold each stage";
    assert!(summary.warnings.iter().any(|it| it.starts_with(line)), "{:?}", summary.warnings);
    // A person who asks for it is answered, and needs no warning.
    let asked = Scenario { thresholds: vec!["bitrate.ratio >= 90%".parse().unwrap()], ..scenario };
    let summary = finish_as(&aggregator, &asked);
    assert!(summary.thresholds.iter().any(|it| it.expression.starts_with("bitrate") && !it.passed));
    assert!(!summary.warnings.iter().any(|it| it.contains("by default")), "{:?}", summary.warnings);
}

#[test]
fn a_window_without_media_fails_rates_of_its_own_figures_only() {
    let aggregator = stopped(14);
    let mut workloads = finish(&aggregator).workloads;
    // Beside it a workload of another protocol, with a figure of its own and a window of its own.
    let mut other = workloads[0].clone();
    other.stages[0].window_is_void = false;
    let reads = workloads[0].stages[0].figures.0.remove("reads").unwrap();
    assert_eq!(other.stages[0].figures.0.get("reads"), Some(&reads));
    workloads.push(other);
    let passed = |text: &str| text.parse::<Threshold>().unwrap().judge(&workloads).passed;
    assert!(passed("reads.rate >= 0"), "only the second workload has this figure");
    assert!(!passed("media.rate >= 0") && !passed("bitrate.ratio >= 0"));
    assert!(passed("stalls == 0") && passed("failed.ratio == 0"), "no rates");
}

#[test]
fn what_tracks_are_stands_in_the_summary_once_pictures_first_and_of_sixteen_at_the_most() {
    let scenario = Scenario::parse("workloads: [{play: rtmp://h/a/b, duration: 10s}]").unwrap();
    let facts = facts_of(&scenario.workloads[0]);
    let mut aggregator = Aggregator::new(scenario.plan().unwrap(), vec![(facts, SCHEMA)], 0);
    let mut take = |kind: &str, codec: &str| {
        let track = format!(r#"{{"kind":"{kind}","codec":"{codec}"}}"#);
        let line = format!(r#"{{"event":"track","at_seconds":1.0,"workload":0,"track":{track}}}"#);
        aggregator.event(&serde_json::from_str(&line).unwrap());
    };
    for (kind, codec) in [("audio", "AAC"), ("video", "H.264"), ("audio", "AAC")] {
        take(kind, codec);
    }
    (0..40).for_each(|number| take("video", &format!("x{number}")));
    let tracks = finish(&aggregator).workloads.remove(0).tracks;
    let named: Vec<_> = tracks.iter().map(ToString::to_string).collect();
    assert_eq!((named.len(), &*named[0], &*named[15]), (16, "H.264", "AAC"));
}

#[test]
fn in_the_last_second_of_the_plan_its_clients_are_still_wanted() {
    let mut aggregator = aggregator_of(
        "workloads: [{name: viewers, play: rtmp://h/live/b, clients: 4, arrival: 4/s, duration: 4s}]",
    );
    let end = aggregator.length().as_secs() as usize;
    assert_eq!(aggregator.length().subsec_nanos(), 0, "the plan ends with a second");
    let wanted: Vec<u32> = (0..end as u32 + 2)
        .map(|at| {
            second(&mut aggregator, at, 0, 4, 190_000);
            aggregator.latest().unwrap().1[0].planned
        })
        .collect();
    assert_eq!(wanted[end - 1..], [4, 0, 0], "{wanted:?}");
}

/// Ten viewers of 30 frames a second for 12 s, which together get `frames` frames and `numbered` packets a second and lose
/// `lost`.
fn viewers(frames: u64, numbered: u64, lost: u64) -> Summary {
    let mut aggregator = aggregator_of(
        "{warmup: 0s, workloads: [{play: ws://h/app/a, clients: 10, duration: 12s, arrival: 1000/s}]}",
    );
    for second in 0..12 {
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 10);
        figures.count(FRAMES, frames);
        figures.count(NUMBERED, numbered);
        figures.count(LOST, lost);
        // A queue: what comes is of less media time than has passed.
        figures.count(SOURCE_FRAMES, frames);
        figures.count(SOURCE_TIME, frames * 1_000_000 / 30);
        figures.count(SOURCE_FRAME_TIME, frames * 1_000_000 / 30);
        aggregator.interval(&Interval::new(IntervalKey { second, workload: 0, server: None }, figures));
    }
    finish(&aggregator)
}

#[test]
fn a_server_that_queues_fails_by_its_frame_rate_and_one_that_drops_by_its_losses() {
    let judged = |summary: &Summary| {
        ["frames.ratio >= 90%", "lost.ratio <= 1%"].map(|text| {
            let result = text.parse::<Threshold>().unwrap().judge(&summary.workloads);
            ((result.value.unwrap() * 1_000.0).round(), result.passed)
        })
    };
    assert_eq!(judged(&viewers(300, 9_000, 0)), [(1_000.0, true), (0.0, true)]);
    // OvenMediaEngine at 200 viewers: 18.4 frames a second, and nothing lost.
    let queued = viewers(184, 5_520, 0);
    assert_eq!(judged(&queued), [(613.0, false), (0.0, true)]);
    let row = &queued.workloads[0].stages[0];
    assert_eq!(row.source_fps.map(f64::round), Some(30.0));
    assert_eq!(row.fps().map(|fps| (fps * 10.0).round()), Some(184.0));
    assert_eq!(judged(&viewers(300, 7_380, 1_620)), [(1_000.0, true), (180.0, false)]);
}

#[test]
fn units_without_numbers_and_streams_without_pictures_have_no_such_ratio() {
    let mut aggregator = aggregator_of("{warmup: 0s, workloads: [{play: ws://h/app/a, duration: 12s}]}");
    (0..12).for_each(|at| second(&mut aggregator, at, 0, 1, 1_000));
    let summary = finish(&aggregator);
    for text in ["frames.ratio >= 90%", "lost.ratio <= 1%"] {
        assert_eq!(text.parse::<Threshold>().unwrap().judge(&summary.workloads).value, None, "{text}");
    }
}

#[test]
fn the_share_of_viewers_without_a_stall_is_of_those_that_played_in_the_whole_run() {
    let threshold: Threshold = "stall_free.ratio >= 80%".parse().unwrap();
    let judged = |played, stalled: [u64; 2], source_time| {
        let mut aggregator =
            aggregator_of("{warmup: 2s, workloads: [{play: rtmp://h/live/a, duration: 12s}]}");
        for (at, stalled) in [(0, stalled[0]), (9, stalled[1])] {
            let mut figures = Recorder::new(SCHEMA);
            figures.count(PLAYED, if at == 0 { played } else { 0 });
            figures.count(STALLED_VIEWERS, stalled);
            figures.count(SOURCE_TIME, source_time);
            aggregator
                .interval(&Interval::new(IntervalKey { second: at, workload: 0, server: None }, figures));
        }
        let summary = finish(&aggregator);
        let result = threshold.judge(&summary.workloads);
        assert_eq!(result.value, summary.workloads[0].stall_free_ratio);
        (result.value, result.passed)
    };
    assert_eq!(judged(8, [0, 0], 1), (Some(1.0), true));
    // One in the ramp, one in the window.
    assert_eq!(judged(8, [1, 1], 1), (Some(0.75), false));
    assert_eq!(judged(8, [8, 0], 1), (Some(0.0), false));
    // Nobody played; messages.
    assert_eq!(judged(0, [0, 0], 1), (None, false));
    assert_eq!(judged(8, [0, 0], 0), (None, false));
}

#[test]
fn what_a_server_sends_at_once_to_each_new_viewer_is_expected_of_viewers_that_follow_each_other() {
    // Ten places at 100 bytes a second, each client for 2 s: five begin in each second, and each gets 2 s of media at once.
    let ratios = |life: &str| {
        let text = format!(
            "{{warmup: 0s, workloads: [{{play: rtmp://h/a/b, clients: 10, arrival: 1000/s, duration: 10s{life}}}]}}"
        );
        let mut aggregator = aggregator_of(&text);
        for second in 0..10 {
            let mut figures = Recorder::new(SCHEMA);
            figures.set(PLAYING, 10);
            figures.count(PLAYED, 5);
            figures.count(MEDIA, 1_000 + 5 * 200);
            figures.count(AHEAD, 5 * 200);
            figures.count(SOURCE, 2_000);
            figures.count(SOURCE_TIME, 20_000_000);
            // 25 frames a second.
            figures.count(FRAMES, 250 + 5 * 50);
            figures.count(FRAMES_AHEAD, 5 * 50);
            figures.count(SOURCE_FRAMES, 500);
            figures.count(SOURCE_FRAME_TIME, 20_000_000);
            aggregator.interval(&Interval::new(IntervalKey { second, workload: 0, server: None }, figures));
        }
        let workloads = finish(&aggregator).workloads;
        let frames = "frames.ratio >= 90%".parse::<Threshold>().unwrap().judge(&workloads).value.unwrap();
        let stage = &workloads[0].stages[0];
        [stage.actual_bps / stage.expected_bps.unwrap(), frames, stage.fps().unwrap() / 25.0]
    };
    assert_eq!(ratios(", life: 2s"), [1.0; 3]);
    assert_eq!(ratios(""), [2.0; 3], "nobody new is expected of viewers that stay");
}

/// A sample at this time of the run, of a machine with two cores of which weir has used so much.
fn sample(at_seconds: f64, cpu_seconds: f64) -> Sample {
    let generator = ProcessSample { processes: 1, cpu_seconds, ..ProcessSample::default() };
    Sample {
        at_ns: (at_seconds * 1e9) as u64,
        targets: Vec::new(),
        generator,
        host: HostSample::default(),
        machines: Vec::new(),
        others: Vec::new(),
    }
}

#[test]
fn the_last_point_of_a_plot_is_no_tick_over_three_milliseconds() {
    let mut aggregator = aggregator_of(TWO_STREAMS);
    for at in 0..5 {
        second(&mut aggregator, at, 2, 4, 190_000);
        aggregator.sample(sample(f64::from(at), 0.3 * f64::from(at)));
    }
    // The last but one comes at its time, the last when the run is over, and a tick of 10 ms lies between them.
    aggregator.sample(sample(5.0, 1.5));
    aggregator.sample(sample(5.003, 1.51));
    let points = finish(&aggregator).series;
    let drawn: Vec<f64> = points.iter().map(|point| point.generator_cpu_percent.unwrap()).collect();
    assert_eq!(drawn.len(), 5);
    assert!(drawn.iter().all(|percent| (29.0..32.0).contains(percent)), "{drawn:?}");
}

#[test]
fn latencies_below_zero_are_told_with_what_they_mean() {
    let mut aggregator = aggregator_of(TWO_STREAMS);
    let mut figures = Recorder::new(SCHEMA);
    figures.record_signed(LATENCY, -40_000);
    figures.count(NEGATIVE_LATENCIES, 1);
    aggregator.interval(&Interval::new(IntervalKey { second: 2, workload: 2, server: None }, figures));
    let summary = finish(&aggregator);
    let said = summary.warnings.iter().find(|text| text.contains("below zero")).expect("a warning");
    assert!(said.starts_with("viewers: 1 of 1 latencies are below zero, down to -40.0 ms"), "{said}");
    let latency = summary.workloads[2].total.spread("latency").unwrap();
    assert!((latency.min + 0.04).abs() < 1e-4, "{latency:?}");
}

/// Eleven days, by a clock that is made up.
#[test]
fn messages_are_told_a_second_beside_those_that_were_planned() {
    let scenario = Scenario::parse(
        "{warmup: 0s, workloads: [{publish: mqtt://h/a, clients: 2, arrival: 1000/s, duration: 4s, rate: 50/s}]}",
    )
    .unwrap();
    let facts = WorkloadFacts {
        background: false,
        servers: Vec::new(),
        warnings: Vec::new(),
        name: "publish".to_owned(),
        role: Role::Publish,
        protocol: "mqtt".to_owned(),
        targets: vec!["mqtt://h/a".to_owned()],
        expect: None,
        frame_time_seconds: None,
        messages_per_second: Some(50.0),
        timeout_seconds: 10.0,
    };
    let mut aggregator = Aggregator::new(scenario.plan().unwrap(), vec![(facts, SCHEMA)], 0);
    for (second, units) in (0..).zip([100, 90, 110, 80]) {
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 2);
        figures.count(UNITS, units);
        aggregator.interval(&Interval::new(IntervalKey { second, workload: 0, server: None }, figures));
    }
    let live = aggregator.latest_calmed().unwrap()[0].messages.unwrap();
    assert_eq!((live.offered_per_second, live.actual_per_second), (Some(100.0), 95.0));
    let summary = finish(&aggregator);
    let stage = summary.workloads[0].stages[0].messages.unwrap();
    let seconds = summary.workloads[0].stages[0].window_seconds();
    assert_eq!(stage.offered_per_second, Some(100.0));
    let sent = summary.workloads[0].stages[0].figures.total("units");
    assert!((stage.actual_per_second * seconds - sent).abs() < 1e-9, "{stage:?}");
    assert_eq!(summary.series[3].workloads[0].messages.map(|it| it.actual_per_second), Some(80.0));
}

/// A publisher of 250 messages, 100 a second, and who receives them; the run takes three seconds and a bit to end.
fn counted(short: u64) -> Vec<WorkloadSummary> {
    let scenario = Scenario::parse(
        "{warmup: 0s, workloads: [{publish: mqtt://h/a, rate: 100/s, count: 250}, {play: mqtt://h/a, duration: 9s}]}",
    )
    .unwrap();
    let facts = |role, rate| WorkloadFacts {
        background: false,
        servers: Vec::new(),
        warnings: Vec::new(),
        name: "mqtt".to_owned(),
        role,
        protocol: "mqtt".to_owned(),
        targets: vec!["mqtt://h/a".to_owned()],
        expect: None,
        frame_time_seconds: None,
        messages_per_second: rate,
        timeout_seconds: 10.0,
    };
    let workloads = vec![(facts(Role::Publish, Some(100.0)), SCHEMA), (facts(Role::Play, None), SCHEMA)];
    let mut aggregator = Aggregator::new(scenario.plan().unwrap(), workloads, 0);
    for (second, units) in (0..).zip([100, 100, 50]) {
        for workload in 0..2 {
            let mut figures = Recorder::new(SCHEMA);
            figures.count(UNITS, units);
            if second == 2 {
                figures.set(COUNT_END, if workload == 0 { 2_500_000 } else { 0 });
                figures.count(PLANNED, 1);
                figures.count(ON_TIME, 1);
                figures.count(UNITS_SHORT, if workload == 0 { short } else { 0 });
            }
            aggregator.interval(&Interval::new(IntervalKey { second, workload, server: None }, figures));
        }
    }
    finish(&aggregator).workloads
}

#[test]
fn the_rate_of_messages_with_a_count_is_that_of_the_time_in_which_they_were_sent() {
    let workloads = counted(0);
    let rates = |it: &WorkloadSummary| it.stages[0].messages.unwrap();
    assert_eq!(rates(&workloads[0]).offered_per_second, Some(100.0));
    // Who receives them has no count: how long that took is what its window says.
    assert_eq!([0, 1].map(|number| rates(&workloads[number]).actual_per_second), [100.0, 75.0]);
    let asked: Threshold = "messages.rate >= 100/s".parse().unwrap();
    assert!(asked.judge(&workloads[..1]).passed);
    // A count that was not reached says nothing of the time.
    let workloads = counted(1);
    assert!((rates(&workloads[0]).actual_per_second - 250.0 / 3.0).abs() < 1e-9);
    assert!(!asked.judge(&workloads).passed);
}

#[test]
fn a_threshold_names_the_stage_and_the_second_of_its_worst_value() {
    let scenario = Scenario::parse(
        "{warmup: 0s, workloads: [{play: rtmp://h/a/b, arrival: 1000/s, stages: [{clients: 4, hold: 5s}, {clients: 8, hold: 5s}]}], thresholds: ['latency.p99 < 1s', 'stalls == 0']}",
    )
    .unwrap();
    let mut aggregator = aggregator_of(
        "{warmup: 0s, workloads: [{play: rtmp://h/a/b, arrival: 1000/s, stages: [{clients: 4, hold: 5s}, {clients: 8, hold: 5s}]}]}",
    );
    for second in 0..10 {
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 4);
        figures.count(PLAYED, 4);
        figures.count(MEDIA, 1_000);
        figures.record_signed(LATENCY, if second == 8 { 2_000_000 } else { 1_000 });
        aggregator.interval(&Interval::new(IntervalKey { second, workload: 0, server: None }, figures));
    }
    let summary = finish_as(&aggregator, &scenario);
    let judged = |text: &str| summary.thresholds.iter().find(|it| it.expression == text).unwrap();
    let place = judged("latency.p99 < 1s").place.unwrap();
    assert_eq!((place.workload, place.stage, place.second), (0, 1, Some(8)));
    assert_eq!(judged("stalls == 0").place, None, "of the whole run");
}

#[test]
fn a_run_that_lost_a_generator_thread_is_invalid() {
    let mut aggregator = aggregator_of(TWO_STREAMS);
    (0..5).for_each(|at| second(&mut aggregator, at, 2, 4, 190_000));
    let words = "no memory".to_owned();
    aggregator.event(&EventLine::ThreadLost { at_seconds: 2.5, thread: 1, words });
    let verdict = finish(&aggregator).verdict;
    assert_eq!(verdict.state, VerdictState::Invalid);
    let reason = verdict.reasons.iter().find(|it| it.check == "generator_lost").unwrap();
    assert!(
        reason.text.contains("thread 1 was lost") && reason.text.contains("no memory"),
        "{}",
        reason.text
    );
}
