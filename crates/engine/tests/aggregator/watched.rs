//! What the machines of the generator and of the server were seen to do, and what is made of that.

use crate::{SCHEMA, TWO_STREAMS, aggregator_of, finish, finish_as, sample};
use weir_engine::EventLine;
use weir_engine::WorkloadFacts;
use weir_engine::aggregator::Aggregator;
use weir_engine::scenario::Scenario;
use weir_engine::summary::{GapSources, Role};
use weir_metrics::common::{PLAYED, TURN_LAG};
use weir_metrics::{Interval, IntervalKey, Recorder};
use weir_observe::{Elsewhere, NetworkCounters, ProcessSample, Sample, TargetSample, TargetState, Watch};

/// Three readers of a channel; the second of them meets a gap at 20 s.
fn gap_of_one(host: impl Fn(u32) -> NetworkCounters, turn_lag_micros: u64) -> GapSources {
    let scenario =
        Scenario::parse("{warmup: 0s, workloads: [{play: http://h/a, clients: 3, duration: 60s}]}").unwrap();
    let facts = WorkloadFacts {
        background: false,
        servers: Vec::new(),
        warnings: Vec::new(),
        name: "play".to_owned(),
        role: Role::Play,
        protocol: "http".to_owned(),
        targets: vec!["http://h/a".to_owned()],
        expect: None,
        frame_time_seconds: None,
        messages_per_second: None,
        timeout_seconds: 10.0,
    };
    let mut aggregator = Aggregator::new(scenario.plan().unwrap(), vec![(facts, SCHEMA)], 0);
    for client in 0..3 {
        aggregator.event(&EventLine::Account {
            at_seconds: 60.0,
            workload: 0,
            client,
            channel: 0,
            since_seconds: Some(0.0),
            failure: None,
            numbers: vec![Some(0.0); 10],
            place: None,
        });
    }
    let (at_seconds, workload, client, channel, mark, place_seconds) = (20.0, 0, 1, 0, 7, 100.0);
    aggregator.event(&EventLine::Gap { at_seconds, workload, client, channel, mark, place_seconds });
    for at in 0..60 {
        let mut figures = Recorder::new(SCHEMA);
        figures.set(TURN_LAG, if at == 19 { turn_lag_micros } else { 300 });
        aggregator.interval(&Interval::new(IntervalKey { second: at, workload: 0, server: None }, figures));
        let mut sample = sample(f64::from(at), 0.0);
        sample.host.network = Some(host(at));
        aggregator.sample(sample);
    }
    finish(&aggregator).workloads[0].channels[0].gaps
}

#[test]
fn a_gap_is_the_generators_where_it_did_not_read_and_not_where_anybody_closed_a_window() {
    let none = |_: u32| NetworkCounters::default();
    let of_connection = GapSources { of_connection: 1, ..GapSources::default() };
    let of_generator = GapSources { of_generator: 1, ..GapSources::default() };
    assert_eq!(gap_of_one(none, 40_000), of_connection);
    assert_eq!(gap_of_one(none, 1_200_000), of_generator);
    let from_second_20 = |at: u32| u64::from(at >= 20);
    let windows = |at| NetworkCounters { tcp_zero_windows: from_second_20(at), ..NetworkCounters::default() };
    assert_eq!(gap_of_one(windows, 40_000), of_connection, "of any program on this machine");
    let drops = |at| NetworkCounters { tcp_backlog_drops: from_second_20(at), ..NetworkCounters::default() };
    assert_eq!(gap_of_one(drops, 40_000), of_generator);
}

/// A target on another machine that uses a tenth of a core, as it was read there at a second.
fn elsewhere(pid: u32, read_at: u32) -> TargetSample {
    TargetSample {
        watch: Watch::Pid(pid),
        state: TargetState::Running,
        process: ProcessSample {
            processes: 1,
            cpu_seconds: 0.1 * f64::from(read_at),
            ..ProcessSample::default()
        },
        ports: Vec::new(),
        connections: None,
        elsewhere: Some(Elsewhere { at_ns: u64::from(read_at) * 1_000_000_000, uptime_seconds: 1_000.0 }),
    }
}

#[test]
fn of_two_watched_machines_one_that_is_heard_of_does_not_answer_for_one_that_is_not() {
    let scenario = Scenario::parse(&format!("{TWO_STREAMS}thresholds: [server.cpu < 80%]")).unwrap();
    let judged = |heard_until: u32| {
        let mut aggregator = aggregator_of(TWO_STREAMS);
        for at in 0..=5 {
            if at < 5 {
                let mut figures = Recorder::new(SCHEMA);
                figures.count(PLAYED, 1);
                aggregator
                    .interval(&Interval::new(IntervalKey { second: at, workload: 2, server: None }, figures));
            }
            let targets = vec![elsewhere(7, at.min(heard_until)), elsewhere(8, at)];
            aggregator.sample(Sample { targets, ..sample(f64::from(at), 0.1 * f64::from(at)) });
        }
        let summary = finish_as(&aggregator, &scenario);
        let (stage, threshold) = (&summary.workloads[2].stages[0], &summary.thresholds[0]);
        let labels: Vec<_> = stage.targets.iter().map(|it| it.label.clone()).collect();
        (labels, stage.unheard.clone(), threshold.value.is_some(), threshold.passed)
    };
    let [lost, heard] = ["pid=7", "pid=8"].map(str::to_owned);
    assert_eq!(judged(5), (vec![lost.clone(), heard.clone()], vec![], true, true));
    assert_eq!(judged(1), (vec![heard], vec![lost], false, false));
}
