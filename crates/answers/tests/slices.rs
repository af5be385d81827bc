//! A trial from intervals that were made up: what each slice of it is judged by, and what becomes of its loads.

use std::time::Duration;
use weir_answers::capacity::{
    LoadOutcome, SourceClock, TrialPlan, TrialSlices, TrialVerdict, VoidCause, criteria,
};
use weir_engine::aggregator::Aggregator;
use weir_engine::scenario::{LoadKind, Scenario, StageSpec};
use weir_engine::summary::{Outcome, Role, RunFacts};
use weir_engine::{EventLine, WorkloadFacts};
use weir_metrics::common::{
    DRIFT, FRAMES, MEDIA, MISSED, PLANNED, PLAYED, PLAYING, TURN_LAG, UNITS, WAITED_TIME,
};
use weir_metrics::{BitRate, Failure, Interval, IntervalKey, Recorder, Schema};
use weir_protocols::asked::OF_VIEWERS;

const SCHEMA: Schema = Schema::new(&[]);

/// Slices of 2 s, three a load; each viewer is sent 1,000 bytes a second.
const SLICE: u32 = 2;
const SLICES: u32 = 3;
const LOAD_SECONDS: u32 = SLICE * SLICES;

struct Trial {
    aggregator: Aggregator,
    slices: TrialSlices,
    second: u32,
}

/// What a second of a trial is like.
#[derive(Clone, Copy)]
struct Second {
    playing: u64,
    /// Viewers that wait for a keyframe.
    waiting: u64,
    failed: u64,
    media: u64,
    drift_micros: i64,
    /// Clients that weir itself does not start in this second.
    missed: u64,
    /// Clients that are lost in it.
    lost: (Failure, u64),
}

impl Trial {
    fn of(loads: &[u32], thresholds: &[&str]) -> Self {
        Self::with_sources(loads, thresholds, &[])
    }

    fn with_sources(loads: &[u32], thresholds: &[&str], sources: &[usize]) -> Self {
        Self::playing("rtmp://h/live/a", loads, thresholds, sources)
    }

    /// One of viewers of this URL.
    fn playing(url: &str, loads: &[u32], thresholds: &[&str], sources: &[usize]) -> Self {
        Self::held(url, loads, thresholds, sources, LOAD_SECONDS)
    }

    /// The same whose loads are held for as long.
    fn held(url: &str, loads: &[u32], thresholds: &[&str], sources: &[usize], seconds: u32) -> Self {
        let mut scenario = Scenario::parse(
            "{warmup: 0s, workloads: [{play: 'rtmp://h/live/a'}, {publish: 'rtmp://h/live/b'}]}",
        )
        .unwrap();
        let hold = Duration::from_secs(seconds.into());
        let stage =
            |load: &u32| StageSpec { clients: *load, hold: hold.into(), ramp: Some(Duration::ZERO.into()) };
        scenario.workloads[0].stages = loads.iter().map(stage).collect();
        let facts = |role: Role| WorkloadFacts {
            background: false,
            servers: Vec::new(),
            warnings: Vec::new(),
            name: format!("{role:?}"),
            role,
            protocol: "rtmp".to_owned(),
            targets: vec![url.to_owned()],
            expect: Some(BitRate::from_bps(8_000.0)),
            frame_time_seconds: None,
            messages_per_second: None,
            timeout_seconds: 10.0,
        };
        let mut aggregator = Aggregator::new(
            scenario.plan().unwrap(),
            vec![(facts(Role::Play), SCHEMA), (facts(Role::Publish), SCHEMA)],
            0,
        );
        aggregator.cut_into_slices(SLICE);
        let thresholds: Vec<_> = thresholds.iter().map(|text| text.parse().unwrap()).collect();
        let plan = TrialPlan {
            criteria: criteria(&thresholds, LoadKind::Clients, &OF_VIEWERS),
            loads: loads.to_vec(),
            slice_seconds: SLICE,
            slices: seconds / SLICE,
            kind: LoadKind::Clients,
            judged: vec![0],
            sources: sources.to_vec(),
            clock: None,
        };
        Self { aggregator, slices: TrialSlices::new(plan), second: 0 }
    }

    /// Adds a second.
    fn second(&mut self, second: Second) {
        let mut figures = Recorder::new(SCHEMA);
        if self.second == 0 {
            figures.count(PLANNED, second.playing + second.failed);
            figures.count(PLAYED, second.playing);
            (0..second.failed).for_each(|_| figures.fail(Failure::Rejected));
        }
        figures.count(MISSED, second.missed);
        (0..second.lost.1).for_each(|_| figures.fail(second.lost.0));
        figures.set(PLAYING, second.playing);
        figures.count(WAITED_TIME, 1_000_000 * second.waiting);
        figures.count(MEDIA, second.media);
        figures.count(FRAMES, 25 * second.playing);
        // Of HLS, segments of a second.
        figures.count(UNITS, second.playing);
        (0..100).for_each(|_| figures.record_signed(DRIFT, second.drift_micros));
        let key = IntervalKey { second: self.second, workload: 0, server: None };
        self.aggregator.interval(&Interval::new(key, figures));
        if let Some(slice) = self.aggregator.judge_slice(0, self.second, &self.slices.thresholds()) {
            self.slices.add(&slice);
        }
        self.second += 1;
    }

    /// The publisher of what is played, which is of this run then, fails in the second that is next.
    fn publisher_fails(&mut self, kind: Failure) {
        let mut figures = Recorder::new(SCHEMA);
        figures.fail(kind);
        let key = IntervalKey { second: self.second, workload: 1, server: None };
        self.aggregator.interval(&Interval::new(key, figures));
    }

    /// Adds seconds that are all the same.
    fn seconds(&mut self, seconds: u32, second: Second) {
        (0..seconds).for_each(|_| self.second(second));
    }

    fn outcomes(&self, outcome: Outcome) -> Vec<LoadOutcome> {
        let run = RunFacts { duration_seconds: 5.0, ..RunFacts::default() };
        self.slices.outcomes(&self.aggregator.finish(run, outcome, &Scenario::default()))
    }
}

/// All that was asked for comes.
fn good(clients: u64) -> Second {
    let lost = (Failure::Rejected, 0);
    Second {
        playing: clients,
        waiting: 0,
        failed: 0,
        media: clients * 1_000,
        drift_micros: 0,
        missed: 0,
        lost,
    }
}

fn seconds_of(outcome: &LoadOutcome) -> (TrialVerdict, u32, u32) {
    (outcome.verdict, outcome.good_seconds, outcome.bad_seconds)
}

#[test]
fn each_load_of_a_climb_has_slices_of_its_own() {
    let mut trial = Trial::of(&[10, 20, 40], &[]);
    trial.seconds(LOAD_SECONDS, good(10));
    trial.seconds(LOAD_SECONDS, good(20));
    assert!(!trial.slices.is_lost());
    // Of 40 as many bytes come as of 20.
    let half = Second { playing: 40, ..good(20) };
    trial.seconds(SLICE, half);
    assert!(!trial.slices.is_lost(), "two good slices could still be more than one bad one");
    trial.seconds(SLICE, half);
    assert!(trial.slices.is_lost());
    let outcomes = trial.outcomes(Outcome::Completed);
    let found: Vec<_> = outcomes.iter().map(seconds_of).collect();
    assert_eq!(found, [(TrialVerdict::Pass, 6, 0), (TrialVerdict::Pass, 6, 0), (TrialVerdict::Fail, 0, 4)]);
    assert_eq!((outcomes[1].load, outcomes[1].playing, outcomes[1].actual_bps), (20, 20.0, 160_000.0));
    let failed = &outcomes[2].failed[0];
    assert_eq!((failed.expression.as_str(), failed.seconds), ("bitrate.ratio >= 98%", 4));
    // Half of what was asked for, with nothing allowed for what may be on its way.
    assert!((failed.value.unwrap() - 0.5).abs() < 1e-9, "{failed:?}");
}

#[test]
fn a_load_whose_trial_is_cut_short_is_not_carried_and_one_that_a_threshold_ended_has_failed() {
    let mut trial = Trial::of(&[10], &[]);
    trial.seconds(SLICE, good(10));
    assert_eq!(trial.outcomes(Outcome::Completed), [], "one good slice of three may be the only one");
    let ended = trial.outcomes(Outcome::Aborted("latency.p99 > 1s".to_owned()));
    assert_eq!(ended[0].verdict, TrialVerdict::Fail);
    assert_eq!(ended[0].failed[0].expression, "latency.p99 > 1s ended the trial");
    trial.seconds(SLICE, good(10));
    let found: Vec<_> = trial.outcomes(Outcome::Completed).iter().map(seconds_of).collect();
    assert_eq!(found, [(TrialVerdict::Pass, 4, 0)], "a third bad one would change nothing");
}

#[test]
fn slices_in_which_clients_wait_for_a_keyframe_say_nothing_of_the_load() {
    // Four play, and get what they should; after two seconds of that all do.
    let waits = Second { waiting: 6, ..good(4) };
    let mut trial = Trial::of(&[10], &[]);
    trial.seconds(SLICE, waits);
    trial.seconds(LOAD_SECONDS - SLICE, good(10));
    let outcomes = trial.outcomes(Outcome::Completed);
    assert_eq!(seconds_of(&outcomes[0]), (TrialVerdict::Pass, 4, 0));
    // One in ten may wait on.
    let mut trial = Trial::of(&[10], &[]);
    trial.seconds(LOAD_SECONDS, Second { waiting: 1, ..good(9) });
    assert_eq!(seconds_of(&trial.outcomes(Outcome::Completed)[0]), (TrialVerdict::Pass, 6, 0));
    // Where they wait until the end, the load is not known to be carried, however well the others are served.
    let mut trial = Trial::of(&[10, 20], &[]);
    trial.seconds(LOAD_SECONDS, waits);
    trial.seconds(LOAD_SECONDS, good(20));
    let outcomes = trial.outcomes(Outcome::Completed);
    let found: Vec<_> = outcomes.iter().map(|it| (it.verdict, it.void_cause)).collect();
    assert_eq!(found, [(TrialVerdict::Void, Some(VoidCause::Keyframes)), (TrialVerdict::Pass, None)]);
    let words = outcomes[0].void.as_deref().unwrap();
    assert!(words.starts_with("clients waited for the stream's next keyframe in 3 of 3 slices"), "{words}");
}

#[test]
fn who_has_failed_does_not_come_back_and_what_was_said_is_kept() {
    let mut trial = Trial::of(&[100], &["failed.ratio <= 0.1%"]);
    trial.seconds(LOAD_SECONDS, Second { playing: 99, failed: 1, ..good(99) });
    let outcomes = trial.outcomes(Outcome::Completed);
    assert_eq!(seconds_of(&outcomes[0]), (TrialVerdict::Fail, 0, 6));
    let failure = outcomes[0].failure.as_ref().unwrap();
    assert_eq!((failure.kind, failure.clients), (Failure::Rejected, 1));
}

#[test]
fn one_bad_slice_of_three_is_carried_and_two_are_not() {
    let with = |bad: u32| {
        let mut trial = Trial::of(&[10], &["media.rate >= 9kB"]);
        for slice in 0..SLICES {
            let media = if slice < bad { 5_000 } else { 10_000 };
            trial.seconds(SLICE, Second { media, ..good(10) });
        }
        seconds_of(&trial.outcomes(Outcome::Completed)[0])
    };
    assert_eq!(
        (with(0), with(1), with(2)),
        ((TrialVerdict::Pass, 6, 0), (TrialVerdict::Pass, 4, 2), (TrialVerdict::Fail, 2, 4))
    );
}

#[test]
fn a_delay_that_grows_is_not_carried_however_much_comes() {
    let grows = |micros_a_second: i64| {
        let mut trial = Trial::with_sources(&[10], &["failed.ratio <= 0.1%"], &[1]);
        for second in 0..i64::from(LOAD_SECONDS) {
            // Noise of 1 ms to and fro.
            trial.second(Second { drift_micros: second * micros_a_second + second % 2 * 1_000, ..good(10) });
        }
        trial.outcomes(Outcome::Completed).remove(0)
    };
    assert_eq!(seconds_of(&grows(15_000)), (TrialVerdict::Pass, 6, 0), "90 ms in all");
    let outcome = grows(40_000);
    assert_eq!(seconds_of(&outcome), (TrialVerdict::Fail, 0, 6));
    assert_eq!(outcome.failed[0].expression, "rise of drift.p50 <= 100 ms");
    assert!((outcome.failed[0].value.unwrap() - 0.24).abs() < 0.01, "{outcome:?}");
}

/// A load's viewers fall behind by this much a second, alone or after a lighter load whose viewers did by that much.
fn falling_behind(sources: &[usize], lighter: Option<i64>, micros_a_second: i64) -> LoadOutcome {
    let loads = if lighter.is_some() { vec![5, 10] } else { vec![10] };
    let mut trial = Trial::held("rtmp://h/live/a", &loads, &["failed.ratio <= 0.1%"], sources, 60);
    for (clients, micros) in lighter.map(|it| (5, it)).into_iter().chain([(10, micros_a_second)]) {
        for second in 0..60 {
            trial.second(Second { drift_micros: second * micros + second % 2 * 1_000, ..good(clients) });
        }
    }
    trial.outcomes(Outcome::Completed).pop().unwrap()
}

#[test]
fn a_source_whose_clock_is_slow_is_no_server_that_falls_behind() {
    let verdict = |sources: &[usize], lighter, micros| falling_behind(sources, lighter, micros).verdict;
    // By 0.8 %, which is 480 ms in a minute.
    assert_eq!(verdict(&[], None, 8_000), TrialVerdict::Pass);
    assert_eq!(verdict(&[], Some(8_000), 8_000), TrialVerdict::Pass);
    // It is the server where a lighter load was served in time, or less slowly, and where weir publishes.
    let loaded = falling_behind(&[], Some(0), 8_000);
    assert_eq!(loaded.verdict, TrialVerdict::Fail);
    assert!(loaded.failed[0].expression.starts_with("rise of drift.p50 <= 10"), "{loaded:?}");
    assert_eq!(verdict(&[], Some(4_000), 8_000), TrialVerdict::Fail);
    assert_eq!(verdict(&[1], None, 5_000), TrialVerdict::Fail);
    // No source is so slow.
    assert_eq!(verdict(&[], None, 13_000), TrialVerdict::Fail);
}

#[test]
fn an_earlier_trial_of_a_lighter_load_says_how_slow_the_source_is() {
    let clock = |load, slope| SourceClock { load, slope };
    let outcome = |load, drift_slope| LoadOutcome { load, drift_slope, ..LoadOutcome::default() };
    let of = SourceClock::of(&[outcome(8, Some(0.1)), outcome(4, None), outcome(5, Some(0.2))]);
    assert_eq!(of, Some(clock(5, 0.2)));
    assert_eq!(clock(5, 0.2).lighter(Some(clock(4, 0.1))), clock(4, 0.1));
    assert_eq!(clock(5, 0.2).lighter(Some(clock(6, 0.1))), clock(5, 0.2));
    assert_eq!(clock(5, 0.2).lighter(None), clock(5, 0.2));
}

/// When each viewer reloads its playlist drifts against when segments are there, by a whole segment before it begins anew.
#[test]
fn viewers_of_hls_wait_up_to_a_segment_longer_and_no_more() {
    let grows = |micros_a_second: i64| {
        let mut trial = Trial::playing("http+hls://h/live/a.m3u8", &[10], &["failed.ratio <= 0.1%"], &[1]);
        for second in 0..i64::from(LOAD_SECONDS) {
            trial.second(Second { drift_micros: second * micros_a_second + second % 2 * 1_000, ..good(10) });
        }
        trial.outcomes(Outcome::Completed).remove(0)
    };
    assert_eq!(seconds_of(&grows(170_000)), (TrialVerdict::Pass, 6, 0), "1,020 ms in all");
    let outcome = grows(190_000);
    assert_eq!(seconds_of(&outcome), (TrialVerdict::Fail, 0, 6), "1,140 ms in all");
    assert_eq!(outcome.failed[0].expression, "rise of drift.p50 <= 1100 ms");
}

#[test]
fn clients_that_still_wait_are_not_carried_whatever_else_is_asked() {
    let texts = |own: &[&str]| {
        let own: Vec<_> = own.iter().map(|text| text.parse().unwrap()).collect();
        let criteria = criteria(&own, LoadKind::Clients, &OF_VIEWERS);
        criteria.iter().map(|it| it.threshold.text().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&["startup.p99 < 1s"]), ["startup.p99 < 1s", "played.ratio >= 99.9%"]);
    assert_eq!(texts(&["played.ratio >= 50%"]), ["played.ratio >= 50%"]);
}

#[test]
fn what_a_person_asks_for_and_nothing_measures_is_bad_and_a_default_is_not_asked() {
    let with = |thresholds: &[&str]| {
        let mut trial = Trial::of(&[10], thresholds);
        trial.seconds(LOAD_SECONDS, good(10));
        seconds_of(&trial.outcomes(Outcome::Completed)[0])
    };
    // Nothing is stamped, and nothing has a rate of frames of its own.
    assert_eq!(with(&["latency.p99 < 1s"]), (TrialVerdict::Fail, 0, 6));
    assert_eq!(with(&[]), (TrialVerdict::Pass, 6, 0));
}

#[test]
fn what_weir_could_not_do_says_nothing_of_the_target() {
    let mut trial = Trial::of(&[10], &["bitrate.ratio >= 98%"]);
    for second in 0..LOAD_SECONDS {
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 10);
        // The generator did not read for two seconds.
        figures.set(TURN_LAG, 2_000_000);
        let key = IntervalKey { second, workload: 0, server: None };
        trial.aggregator.interval(&Interval::new(key, figures));
        let slice = trial.aggregator.judge_slice(0, second, &trial.slices.thresholds());
        slice.into_iter().for_each(|slice| trial.slices.add(&slice));
    }
    let outcome = trial.outcomes(Outcome::Completed).remove(0);
    assert_eq!(outcome.verdict, TrialVerdict::Void, "{outcome:?}");
    assert!(outcome.void.as_ref().unwrap().starts_with("generator_pause: "), "{outcome:?}");
    assert_eq!(outcome.trial().void, Some(VoidCause::Generator));
}

#[test]
fn a_target_that_dies_does_not_carry_the_load_that_it_dies_of() {
    let mut trial = Trial::of(&[10, 20], &["failed.ratio <= 0.1%"]);
    trial.seconds(LOAD_SECONDS, good(10));
    trial.aggregator.event(&EventLine::Stopped { at_seconds: f64::from(LOAD_SECONDS) + 0.5 });
    trial.second(good(0));
    let outcomes = trial.outcomes(Outcome::TargetDied);
    let found: Vec<_> = outcomes.iter().map(|it| (it.load, it.verdict)).collect();
    assert_eq!(found, [(10, TrialVerdict::Pass), (20, TrialVerdict::Fail)]);
    assert_eq!(outcomes[1].failed[0].expression, "the watched process was gone");
}

#[test]
fn a_load_that_nobody_was_left_of_is_not_carried() {
    let expression = |outcome: &LoadOutcome| outcome.failed[0].expression.clone();
    // Refused at once, before a slice was over.
    let mut trial = Trial::of(&[1], &[]);
    trial.second(Second { failed: 1, ..good(0) });
    let outcomes = trial.outcomes(Outcome::NobodyLeft);
    assert_eq!((outcomes.len(), seconds_of(&outcomes[0])), (1, (TrialVerdict::Fail, 0, 1)));
    assert_eq!(expression(&outcomes[0]), "every client had failed");
    assert_eq!(outcomes[0].failure.as_ref().unwrap().kind, Failure::Rejected);
    // In the middle of the second load.
    let mut trial = Trial::of(&[10, 20, 40], &["failed.ratio <= 0.1%"]);
    trial.seconds(LOAD_SECONDS + SLICE, good(10));
    let outcomes = trial.outcomes(Outcome::NobodyLeft);
    let found: Vec<_> = outcomes.iter().map(|it| (it.load, it.verdict)).collect();
    assert_eq!(found, [(10, TrialVerdict::Pass), (20, TrialVerdict::Fail)]);
    // All that was to be held was held.
    let mut trial = Trial::of(&[10], &["failed.ratio <= 0.1%"]);
    trial.seconds(LOAD_SECONDS + 1, good(10));
    assert_eq!(trial.outcomes(Outcome::NobodyLeft)[0].verdict, TrialVerdict::Pass);
}

#[test]
fn a_client_that_weir_did_not_start_voids_the_loads_from_then_on_and_none_before() {
    let mut trial = Trial::of(&[10, 20, 40], &["failed.ratio <= 0.1%"]);
    trial.seconds(LOAD_SECONDS, good(10));
    trial.second(Second { missed: 1, ..good(20) });
    trial.seconds(LOAD_SECONDS - 1, good(20));
    trial.seconds(LOAD_SECONDS, good(40));
    let found: Vec<_> = trial.outcomes(Outcome::Completed).iter().map(|it| (it.load, it.verdict)).collect();
    assert_eq!(found, [(10, TrialVerdict::Pass), (20, TrialVerdict::Void), (40, TrialVerdict::Void)]);
}

#[test]
fn a_server_that_plays_to_some_and_refuses_all_others_says_its_limit() {
    let admitted = |playing: [u64; 2], failed: u64| {
        let mut trial = Trial::of(&[40], &["failed.ratio <= 0.1%"]);
        trial.seconds(SLICE, Second { failed, ..good(playing[0]) });
        trial.seconds(SLICE, good(playing[1]));
        trial.outcomes(Outcome::Completed)[0].admitted
    };
    assert_eq!(admitted([30, 30], 10), Some(30));
    assert_eq!(admitted([30, 28], 10), None, "two were lost later");
    assert_eq!(admitted([30, 30], 9), None, "one still waits for an answer");
    assert_eq!(admitted([0, 0], 40), None, "nobody plays");
}

#[test]
fn a_source_that_ends_says_nothing_of_the_target() {
    let of = |kind: Failure, playing: u64| {
        let mut trial = Trial::of(&[10], &[]);
        trial.seconds(SLICE, good(playing));
        trial.second(Second { lost: (kind, 10), ..good(0) });
        trial.outcomes(Outcome::NobodyLeft).remove(0)
    };
    let ended = of(Failure::StreamEnded, 10);
    assert_eq!((ended.verdict, ended.void_cause), (TrialVerdict::Void, Some(VoidCause::Source)), "{ended:?}");
    // Nobody published it when they came.
    let missing = of(Failure::StreamNotFound, 0);
    assert_eq!(
        (missing.verdict, missing.void_cause),
        (TrialVerdict::Void, Some(VoidCause::Source)),
        "{missing:?}"
    );
    // The server cut them off, or lets nobody in.
    let cut = of(Failure::Reset, 10);
    assert_eq!((cut.verdict, cut.is_empty), (TrialVerdict::Fail, false), "{cut:?}");
    let closed = of(Failure::ConnectionRefused, 0);
    assert_eq!((closed.verdict, closed.is_empty), (TrialVerdict::Fail, true), "{closed:?}");
}

#[test]
fn a_publisher_that_the_server_drops_is_told_apart_from_one_that_fails_by_itself() {
    let of = |kind: Failure| {
        let mut trial = Trial::with_sources(&[10, 20], &["failed.ratio <= 0.1%"], &[1]);
        trial.seconds(LOAD_SECONDS, good(10));
        trial.publisher_fails(kind);
        trial.second(good(20));
        trial.second(Second { lost: (Failure::StreamEnded, 20), ..good(0) });
        let outcomes = trial.outcomes(Outcome::NobodyLeft);
        assert_eq!(outcomes[0].verdict, TrialVerdict::Pass);
        outcomes[1].void_cause
    };
    assert_eq!(of(Failure::ClosedByPeer), Some(VoidCause::Publisher));
    assert_eq!(of(Failure::SourceFailed), Some(VoidCause::Source));
}
