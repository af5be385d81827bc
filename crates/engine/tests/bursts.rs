//! Servers that send in bursts, to viewers on a made-up clock: each slice of a trial, and each window, has as many bytes and frames as
//! the stream had in it, whatever the period of the bursts.

use std::collections::BTreeMap;
use std::time::Duration;
use weir_clients::{PlaybackModel, Playout, Reading, ReceivedFrame, Timeline, Track};
use weir_engine::WorkloadFacts;
use weir_engine::aggregator::Aggregator;
use weir_engine::scenario::{Scenario, StageSpec};
use weir_engine::summary::{Outcome, Role, RunFacts, Summary};
use weir_metrics::common::{FRAMES, MEDIA, PLANNED, PLAYED, PLAYED_TIME, PLAYING};
use weir_metrics::{Interval, IntervalKey, Moment, Recorder, Schema};

const SCHEMA: Schema = Schema::new(&[]);
const SLICE: u32 = 5;
const SLICES: u32 = 3;
/// Viewers begin within the first second, and wait for a keyframe and a burst.
const WARMUP: u32 = 7;
const SECONDS: u32 = WARMUP + SLICE * SLICES;
const VIEWERS: u32 = 8;
const KEYFRAME_EVERY: f64 = 2.0;

/// A stream and the server that it comes from.
#[derive(Clone, Copy, Debug)]
struct Case {
    bits_per_second: f64,
    frames_per_second: f64,
    has_sound: bool,
    /// Period of the server's bursts, in seconds; 0 if it sends each frame at once.
    burst: f64,
    /// Whether all viewers get their bursts at the same time.
    together: bool,
    /// How much of the stream the server sends in a second of time.
    pace: f64,
    /// One frame in this many is left out by the server; 0 for none.
    leaves_out: u64,
    /// One viewer in this many is a witness.
    witness_every: u32,
    /// How late the thread closes its seconds, at the most, in seconds.
    late: f64,
    /// Whether the stream is published by the run itself.
    publishes: bool,
}

const QUIET: Case = Case {
    bits_per_second: 235e3,
    frames_per_second: 25.0,
    has_sound: true,
    burst: 0.0,
    together: true,
    pace: 1.0,
    leaves_out: 0,
    witness_every: 8,
    late: 0.0,
    publishes: false,
};

/// A frame of the source: when it was made, and what it is.
type Made = (f64, ReceivedFrame);

impl Case {
    /// What the source makes, in order.
    fn source(&self) -> Vec<Made> {
        let pictures = (f64::from(SECONDS + 2) * self.frames_per_second) as u64;
        let group = (KEYFRAME_EVERY * self.frames_per_second).round() as u64;
        // A keyframe is as much as eight other frames.
        let each = self.bits_per_second / 8.0 * KEYFRAME_EVERY / (group as f64 + 7.0);
        let picture = |number: u64| {
            let (at, keyframe) = (number as f64 / self.frames_per_second, number.is_multiple_of(group));
            let bytes = (each * if keyframe { 8.0 } else { 1.0 }).round() as u32;
            let timestamp = (at * 1e3).round() as u64;
            (at, ReceivedFrame { track: Track::Video, timestamp, bytes, keyframe })
        };
        let mut made: Vec<Made> = (0..pictures).map(picture).collect();
        if self.has_sound {
            let sounds = (f64::from(SECONDS + 2) * 44_100.0 / 1_024.0) as u64;
            made.extend((0..sounds).map(|number| {
                let at = number as f64 * 1_024.0 / 44_100.0;
                let timestamp = (at * 1e3).round() as u64;
                (at, ReceivedFrame { track: Track::Audio, timestamp, bytes: 87, keyframe: false })
            }));
            made.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        }
        made
    }

    /// How far a ratio may be from 1: 1 %, and where a burst has several pictures and nothing else, one of them.
    fn tolerance(&self, what: &str) -> f64 {
        let slices = if what.starts_with("slice 1") { 1 } else { SLICES - 1 };
        let is_coarse = self.burst > 0.0 && !self.has_sound;
        0.01 + if is_coarse { 1.0 / self.frames_per_second / f64::from(SLICE * slices) } else { 0.0 }
    }

    /// When a viewer gets what, from the first keyframe behind its start on.
    fn arrivals(&self, source: &[Made], number: u32) -> Vec<(Moment, ReceivedFrame)> {
        let start = 0.9 * f64::from(number) / f64::from(VIEWERS);
        let own = f64::from(number) * 0.618;
        let phase = if self.together { 0.3 } else { own - own.floor() } * self.burst;
        let begins = source.iter().position(|(at, frame)| *at >= start && frame.keyframe).unwrap();
        let mut pictures = 0;
        let mut arrivals = Vec::new();
        for (at, frame) in &source[begins..] {
            pictures += u64::from(frame.track == Track::Video && !frame.keyframe);
            let is_left_out = self.leaves_out > 0
                && frame.track == Track::Video
                && !frame.keyframe
                && pictures.is_multiple_of(self.leaves_out);
            if is_left_out {
                continue;
            }
            let sent = at / self.pace;
            let sent = if self.burst > 0.0 {
                ((sent - phase) / self.burst).ceil() * self.burst + phase
            } else {
                sent + 0.002
            };
            arrivals.push((moment(sent), *frame));
        }
        arrivals
    }
}

fn moment(seconds: f64) -> Moment {
    Moment::from_nanos(((1_000.0 + seconds) * 1e9) as u64)
}

/// The seconds of a thread: until when each of them is kept open, and what was recorded in it.
struct Seconds {
    closed: Vec<Moment>,
    figures: Vec<Recorder>,
}

impl Seconds {
    fn at(&mut self, now: Moment) -> &mut Recorder {
        let second = self.closed.partition_point(|closed| *closed < now).min(self.figures.len() - 1);
        &mut self.figures[second]
    }
}

struct Viewer {
    playback: PlaybackModel,
    waiting: Vec<ReceivedFrame>,
    came: Option<Moment>,
}

impl Viewer {
    fn watch(case: &Case, arrivals: &[(Moment, ReceivedFrame)], number: u32, seconds: &mut Seconds) {
        let reading =
            if number.is_multiple_of(case.witness_every) { Reading::Witness } else { Reading::Crowd };
        let playout = Playout::new(Duration::from_secs(1), Duration::from_millis(500));
        let timeline = Timeline::new(1_000, 32);
        let playback = PlaybackModel::new(reading, number, timeline, playout, arrivals[0].0);
        let mut viewer = Self { playback, waiting: Vec::new(), came: None };
        let closed = seconds.closed.clone();
        let edges = (0..=SLICES).map(|slice| WARMUP + slice * SLICE);
        let mut edges = edges.map(|edge| (edge, closed[edge as usize - 1])).peekable();
        for (now, frame) in arrivals {
            while let Some((edge, closed)) = edges.next_if(|(_, closed)| closed < now) {
                viewer.pass_until(closed, seconds);
                viewer.read(closed, seconds);
                viewer.playback.edge(moment(f64::from(edge)), viewer.came, seconds.at(closed));
            }
            if edges.peek().is_none() {
                return;
            }
            viewer.pass_until(*now, seconds);
            viewer.waiting.push(*frame);
            viewer.came = Some(*now);
            seconds.at(*now).count(MEDIA, u64::from(frame.bytes));
            if viewer.unread() >= viewer.playback.batch() {
                viewer.read(*now, seconds);
            }
        }
    }

    /// All deadlines before `now`.
    fn pass_until(&mut self, now: Moment, seconds: &mut Seconds) {
        while let Some(next) = self.playback.poll_timeout().filter(|next| *next < now) {
            if self.playback.handle_timeout(next, self.unread(), seconds.at(next)) {
                self.read(next, seconds);
            }
        }
    }

    fn unread(&self) -> usize {
        self.waiting.iter().map(|frame| frame.bytes as usize).sum()
    }

    fn read(&mut self, now: Moment, seconds: &mut Seconds) {
        let (waiting, recorder) = (std::mem::take(&mut self.waiting), seconds.at(now));
        for frame in &waiting {
            recorder.count(FRAMES, u64::from(frame.track == Track::Video));
            self.playback.frame(now, *frame, recorder);
        }
        self.playback.end_of_read(now, waiting.is_empty(), recorder);
    }
}

fn facts(role: Role) -> WorkloadFacts {
    WorkloadFacts {
        background: false,
        servers: Vec::new(),
        warnings: Vec::new(),
        name: format!("{role:?}"),
        role,
        protocol: "rtmp".to_owned(),
        targets: vec!["rtmp://h/live/a".to_owned()],
        expect: None,
        frame_time_seconds: None,
        messages_per_second: None,
        timeout_seconds: 10.0,
    }
}

/// Values of both ratios in each slice, and the summary.
fn run(case: &Case) -> (Vec<BTreeMap<String, Option<f64>>>, Summary) {
    let mut random = fastrand::Rng::with_seed(7);
    let closed = (1..=SECONDS).map(|end| moment(f64::from(end) + case.late * random.f64())).collect();
    let mut seconds = Seconds { closed, figures: (0..SECONDS).map(|_| Recorder::new(SCHEMA)).collect() };
    let source = case.source();
    for number in 0..VIEWERS {
        Viewer::watch(case, &case.arrivals(&source, number), number, &mut seconds);
    }
    let text = format!(
        "{{warmup: {WARMUP}s, workloads: [{{play: 'rtmp://h/live/a'}}, {{publish: 'rtmp://h/live/a'}}], thresholds: ['bitrate.ratio >= 98%', 'frames.ratio >= 98%']}}"
    );
    let mut scenario = Scenario::parse(&text).unwrap();
    let hold = Duration::from_secs(SECONDS.into());
    for (workload, clients) in scenario.workloads.iter_mut().zip([VIEWERS, 1]) {
        workload.stages = vec![StageSpec { clients, hold: hold.into(), ramp: Some(Duration::ZERO.into()) }];
    }
    if !case.publishes {
        scenario.workloads.truncate(1);
    }
    let workloads = [Role::Play, Role::Publish].map(|role| (facts(role), SCHEMA));
    let workloads = workloads.into_iter().take(scenario.workloads.len()).collect();
    let mut aggregator = Aggregator::new(scenario.plan().unwrap(), workloads, 0);
    aggregator.cut_into_slices(SLICE);
    let thresholds: Vec<_> =
        ["bitrate.ratio >= 98%", "frames.ratio >= 98%"].map(|text| text.parse().unwrap()).into();
    let mut slices = Vec::new();
    for (second, mut figures) in (0..).zip(seconds.figures) {
        if second == 0 {
            figures.count(PLANNED, u64::from(VIEWERS));
            figures.count(PLAYED, u64::from(VIEWERS));
        }
        figures.set(PLAYING, u64::from(VIEWERS));
        figures.count(PLAYED_TIME, u64::from(VIEWERS) * 1_000_000);
        if case.publishes {
            let mut sent = Recorder::new(SCHEMA);
            sent.set(PLAYING, 1);
            let within = f64::from(second)..f64::from(second + 1);
            for (_, frame) in source.iter().filter(|(at, _)| within.contains(at)) {
                sent.count(MEDIA, u64::from(frame.bytes));
                sent.count(FRAMES, u64::from(frame.track == Track::Video));
            }
            aggregator.interval(&Interval::new(IntervalKey { second, workload: 1, server: None }, sent));
        }
        aggregator.interval(&Interval::new(IntervalKey { second, workload: 0, server: None }, figures));
        slices.extend(aggregator.judge_slice(0, second, &thresholds).map(|slice| {
            slice.results.into_iter().map(|it| (it.expression.clone(), it.value)).collect::<BTreeMap<_, _>>()
        }));
    }
    let summary = aggregator.finish(RunFacts::default(), Outcome::Completed, &scenario);
    (slices, summary)
}

/// All that was judged, with the words for it.
fn ratios(case: &Case) -> Vec<(String, f64)> {
    let (slices, summary) = run(case);
    assert_eq!(slices.len(), SLICES as usize, "{case:?}");
    let of_slices = (1..).zip(slices).flat_map(|(number, slice)| {
        slice.into_iter().map(move |(text, value)| (format!("slice {number}: {text}"), value))
    });
    let of_run = summary.thresholds.iter().filter(|it| !it.default);
    let of_run = of_run.map(|it| (format!("run: {}", it.expression), it.value));
    of_slices.chain(of_run).map(|(text, value)| (text, value.unwrap_or(f64::NAN))).collect()
}

const ALL: [f64; 6] = [60e3, 120e3, 235e3, 500e3, 2e6, 8e6];
const SOME: [f64; 2] = [120e3, 2e6];

fn each_case(bit_rates: &[f64], mut check: impl FnMut(&Case)) {
    let mut together = true;
    for bits_per_second in bit_rates {
        for frames_per_second in [5.0, 25.0, 60.0] {
            for has_sound in [false, true] {
                for burst in [0.0, 0.1, 0.35, 1.8, 3.0] {
                    together = !together;
                    let bits_per_second = *bits_per_second;
                    check(&Case { bits_per_second, frames_per_second, has_sound, burst, together, ..QUIET });
                }
            }
        }
    }
}

#[test]
fn a_server_that_keeps_up_has_sent_all_in_every_slice() {
    each_case(&ALL, |case| {
        for (text, value) in ratios(case) {
            assert!((value - 1.0).abs() < case.tolerance(&text), "{text}: {value} of {case:?}");
        }
    });
}

#[test]
fn a_crowd_is_judged_as_witnesses_are() {
    each_case(&SOME, |case| {
        let witnesses = ratios(&Case { witness_every: 1, ..*case });
        for ((text, crowd), (_, witness)) in ratios(case).into_iter().zip(witnesses) {
            assert!((crowd - witness).abs() < 0.002, "{text}: {crowd} and {witness} of {case:?}");
        }
    });
}

#[test]
fn a_server_that_falls_behind_is_seen_to_whatever_it_sends_at_once() {
    each_case(&SOME, |case| {
        let case = Case { pace: 0.93, ..*case };
        for (text, value) in ratios(&case) {
            assert!((value - 0.93).abs() < case.tolerance(&text) + 0.01, "{text}: {value} of {case:?}");
        }
    });
}

#[test]
fn a_server_that_leaves_frames_out_is_seen_where_the_source_is_known() {
    each_case(&SOME, |case| {
        for (text, value) in ratios(&Case { leaves_out: 10, publishes: true, ..*case }) {
            let is_low = value < 0.98 || !text.contains("frames.ratio");
            assert!(is_low, "{text}: {value} of {case:?}");
        }
    });
}

#[test]
fn a_thread_that_is_late_for_its_seconds_changes_nothing() {
    each_case(&SOME, |case| {
        let case = Case { late: 0.4, publishes: case.burst < 1.0, ..*case };
        for (text, value) in ratios(&case) {
            // Keyframes that lie between a publisher and its viewers are in the window of one of them only.
            let is_of_publisher = case.publishes && text.starts_with("run: bitrate");
            let is_near = (value - 1.0).abs() < case.tolerance(&text);
            assert!(is_of_publisher || is_near, "{text}: {value} of {case:?}");
        }
    });
}
