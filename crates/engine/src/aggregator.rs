//! From intervals and samples to the summary: a fold of values, live or read back from disk.

mod growth;
mod slice;

pub use slice::Slice;

use crate::channel::Readers;
use crate::event::EventLine;
use crate::ingest::{Imbalance, Ingested};
use crate::lifetime::Lifetime;
use crate::loads::{host_load, process_load};
use crate::plan::{Plan, StageSpan, planned_at};
use crate::scenario::Scenario;
use crate::servers::ServerTotals;
use crate::steadiness::{self, Starvation};
use crate::summary::{
    FailureCount, Figures, Outcome, Point, Role, RunFacts, Slots, StageSummary, Summary, ThresholdResult,
    TurnoverSummary, WorkloadPoint, WorkloadSummary,
};
use crate::threshold::Threshold;
use crate::totals::Totals;
use crate::{counts, machine, summary, verdict};
use serde::{Deserialize, Serialize};
use slice::SliceTotals;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use weir_metrics::common::{
    DRIFT, EXITS_BEFORE_START, FAILED, FRAMES, LATE, LATENCY, LOST, MEDIA, MISSED, NEGATIVE_LATENCIES,
    NUMBERED, ON_TIME, PLANNED, PLAYING, SOURCE_TIME, STALLS, STARTED, STARTUP, STARVED, STARVING, TURN_LAG,
    WALL_LATENCIES,
};
use weir_metrics::{BitRate, Failure, Histogram, Interval, Recorder, Schema, Unit};
use weir_observe::{MachinePoint, Sample, Usage, UsageSummary, Window};

/// Threads whose CPU is drawn second by second.
const DRAWN_THREADS: usize = 12;
/// Figures of what begins in a stage: they are taken from its ramp on.
const OF_THE_RAMP: [&str; 8] =
    ["startup", "connect", "handshake", "request", "first_byte", "first_frame", "start_lag", "started"];

/// What is known of a workload before it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkloadFacts {
    /// Its name.
    pub name: String,
    /// What its clients do.
    pub role: Role,
    /// Its protocol, which says the figures.
    pub protocol: String,
    /// Where to, without secrets.
    pub targets: Vec<String>,
    /// What each client's source sends, where the scenario says so.
    pub expect: Option<BitRate>,
    /// Time between two frames of what it publishes.
    pub frame_time_seconds: Option<f64>,
    /// How long a viewer that plays may get no media.
    #[serde(default)]
    pub timeout_seconds: f64,
    /// Whether it is there only to disturb the others.
    #[serde(default)]
    pub background: bool,
    /// The servers that its clients go to, if there are several.
    #[serde(default)]
    pub servers: Vec<String>,
}

/// Sums up a run, second by second.
#[derive(Debug)]
pub struct Aggregator {
    plan: Plan,
    workloads: Vec<WorkloadAggregator>,
    origin_ns: u64,
    samples: Vec<Sample>,
    points: BTreeMap<u32, Vec<WorkloadPoint>>,
    words: BTreeMap<(u16, Failure), String>,
    clock_steps: f64,
    /// Clients that began in each second, those left out that are there only to disturb the others.
    begun: BTreeMap<u32, u64>,
    /// The stretches, in seconds of the run, in which a generator thread did not read what came.
    pauses: Vec<(f64, f64)>,
    /// The second in which the run was stopped before its plan's end: it and those after it are in no window.
    cut: Option<u32>,
    /// When it was stopped, to the moment.
    stopped_seconds: Option<f64>,
    /// Why messages could not be saved any more.
    trouble: Option<String>,
    /// How long the slices are that windows are cut into, if they are.
    slice_seconds: Option<u32>,
}

#[derive(Debug)]
struct WorkloadAggregator {
    facts: WorkloadFacts,
    /// For how long a client stays before another comes in its place.
    life: Option<Lifetime>,
    total: Totals,
    stages: Vec<StageAggregator>,
    readers: Readers,
    starvation: Starvation,
    /// What became of the messages that it saved.
    ingested: Option<Ingested>,
    /// Of each of its servers, if it has several, over the whole run.
    servers: Vec<ServerTotals>,
    /// Of each second: media bytes, and clients that played or published.
    seconds: BTreeMap<u32, (u64, u64)>,
}

#[derive(Debug)]
struct StageAggregator {
    span: StageSpan,
    /// The ramp and the hold.
    whole: Totals,
    window: Totals,
    /// Media bytes of each second of the window, for steadiness.
    media: Vec<f64>,
    /// The latest slice of the window.
    slice: Option<SliceTotals>,
    /// Whether clients follow each other in the places of its workload.
    turns_over: bool,
}

impl Aggregator {
    /// A fold of a run whose plan and workloads are these, and whose second 0 began at the
    /// monotonic time `origin_ns`.
    pub fn new(plan: Plan, workloads: Vec<(WorkloadFacts, Schema)>, origin_ns: u64) -> Self {
        let lives = plan.lives();
        let fold_of = |(number, (facts, schema)): (usize, (WorkloadFacts, Schema))| WorkloadAggregator {
            life: lives.get(&(number as u16)).copied(),
            readers: Readers::default(),
            starvation: Starvation::default(),
            ingested: None,
            servers: facts.servers.iter().map(|_| ServerTotals::new(schema)).collect(),
            seconds: BTreeMap::new(),
            facts,
            total: Totals::new(schema),
            stages: plan
                .stages
                .iter()
                .filter(|span| usize::from(span.workload) == number)
                .map(|span| StageAggregator {
                    span: *span,
                    whole: Totals::new(schema),
                    window: Totals::new(schema),
                    media: Vec::new(),
                    slice: None,
                    turns_over: lives.contains_key(&span.workload),
                })
                .collect(),
        };
        let workloads = workloads.into_iter().enumerate().map(fold_of).collect();
        Self {
            plan,
            workloads,
            origin_ns,
            samples: Vec::new(),
            points: BTreeMap::new(),
            words: BTreeMap::new(),
            clock_steps: 0.0,
            begun: BTreeMap::new(),
            pauses: Vec::new(),
            cut: None,
            stopped_seconds: None,
            trouble: None,
            slice_seconds: None,
        }
    }

    /// Adds one workload's second.
    pub fn interval(&mut self, interval: &Interval) {
        let second = interval.key.second;
        let count = self.workloads.len();
        let Some(workload) = self.workloads.get_mut(usize::from(interval.key.workload)) else { return };
        if let Some(server) = interval.key.server {
            // What all of them counted comes in an interval of its own.
            let server = workload.servers.get_mut(usize::from(server));
            return server.into_iter().for_each(|server| server.add(&interval.figures));
        }
        let steady = self.cut.is_none_or(|cut| second < cut);
        workload.add(second, steady, self.slice_seconds, &interval.figures);
        if steady && Duration::from_secs(u64::from(second) + 1) <= self.plan.length {
            let count = |counter| interval.figures.counter(counter);
            let level = |gauge| interval.figures.gauge(gauge);
            workload.starvation.add(second, count(STARVED), level(STARVING), level(PLAYING));
        }
        if !workload.facts.background {
            *self.begun.entry(second).or_default() += interval.figures.counter(STARTED);
        }
        let pause = interval.figures.gauge(TURN_LAG) as f64 * Unit::Micros.scale();
        if pause >= verdict::PAUSE_SECONDS {
            let end = f64::from(second) + 1.0;
            self.pauses.push((end - 1.0 - pause, end));
        }
        // Just before the second's end: who is stopped at that moment was wanted, and played, up to it.
        let before_its_end = Duration::from_secs(u64::from(second) + 1) - Duration::from_nanos(1);
        let planned = planned_at(&self.plan, interval.key.workload, before_its_end) as u32;
        let points = self.points.entry(second).or_insert_with(|| vec![WorkloadPoint::default(); count]);
        points[usize::from(interval.key.workload)] = workload_point(planned, &interval.figures);
    }

    /// Adds one observation.
    pub fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// Adds an event. That the run was stopped must be told before the intervals from that second on.
    pub fn remark(&mut self, line: &EventLine) {
        match line {
            EventLine::Failure { workload, failure, words, .. } if !words.is_empty() => {
                self.words.entry((*workload, *failure)).or_insert_with(|| words.clone());
            }
            EventLine::ClockStep { by_seconds, .. } => self.clock_steps += by_seconds.abs(),
            EventLine::Stopped { at_seconds } => {
                (self.cut, self.stopped_seconds) = (Some(*at_seconds as u32), Some(*at_seconds));
            }
            EventLine::Ingested { workload, ingested, .. } => {
                if let Some(workload) = self.workloads.get_mut(usize::from(*workload)) {
                    workload.ingested = Some((**ingested).clone());
                }
            }
            EventLine::Trouble { words, .. } => self.trouble = Some(words.clone()),
            EventLine::Gap { workload, .. } | EventLine::Account { workload, .. } => {
                if let Some(workload) = self.workloads.get_mut(usize::from(*workload)) {
                    workload.readers.take(line);
                }
            }
            EventLine::Failure { .. } => {}
        }
    }

    /// The latest second of each workload, for a live view.
    pub fn latest(&self) -> Option<(u32, &[WorkloadPoint])> {
        self.points.last_key_value().map(|(second, points)| (*second, points.as_slice()))
    }

    /// Whether the run was stopped before its plan's end, in this second or one before.
    pub fn is_stopped_at(&self, second: u32) -> bool {
        self.cut.is_some_and(|cut| cut <= second)
    }

    /// What each workload's clients do.
    pub fn roles(&self) -> Vec<Role> {
        self.workloads.iter().map(|workload| workload.facts.role).collect()
    }

    /// The failures so far, all workloads together.
    pub fn failed(&self) -> u64 {
        self.workloads.iter().map(|workload| workload.total.figures.counter(FAILED)).sum()
    }

    /// The commonest kind of failure so far, how many clients met it, and what was said of the first of them.
    pub fn commonest_failure(&self) -> Option<(Failure, u64, &str)> {
        let kinds = self.workloads.iter().zip(0..).flat_map(|(workload, number)| {
            workload.total.figures.failures().map(move |(kind, clients)| (number, kind, clients))
        });
        let (number, kind, clients) = kinds.max_by_key(|(_, _, clients)| *clients)?;
        Some((kind, clients, self.words.get(&(number, kind)).map_or("", String::as_str)))
    }

    /// The length of the plan, drain not included.
    pub fn length(&self) -> Duration {
        self.plan.length
    }

    /// When the run was over, if its plan leaves that to its clients.
    fn ended(&self) -> Option<Duration> {
        if self.ends_with_its_messages() {
            return self.stopped_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        }
        let seconds = self.cut.or(self.seen()).filter(|_| self.plan.about.is_some())?;
        Some(Duration::from_secs(seconds.into()))
    }

    /// Whether it is over when all messages are accounted for. It may take less than a second: it has no window, and what
    /// processes used is told from its beginning to its end.
    fn ends_with_its_messages(&self) -> bool {
        self.plan.about.is_some() && self.workloads.iter().any(|it| it.facts.role == Role::Ingest)
    }

    /// How many seconds of the run there are.
    fn seen(&self) -> Option<u32> {
        self.points.last_key_value().map(|(second, _)| second + 1)
    }

    /// Whether the plan holds any client beyond the end of this second.
    pub(crate) fn wants_clients_after(&self, second: u32) -> bool {
        let end = Duration::from_secs(u64::from(second) + 1);
        self.plan.slots.iter().any(|slot| slot.stop > end)
    }

    /// Sums up what was added so far, as a run of `scenario`.
    pub fn finish(&self, run: RunFacts, outcome: Outcome, scenario: &Scenario) -> Summary {
        let usages: Vec<Vec<Option<UsageSummary>>> = self
            .workloads
            .iter()
            .map(|workload| workload.stages.iter().map(|stage| self.usage(stage)).collect())
            .collect();
        let cores = run.environment.cpu.online_count.max(1) as f64;
        let complaints = self.complaints();
        let mut reasons = verdict::of_run(self.clock_steps);
        let mut warnings: Vec<_> = self.trouble.iter().cloned().collect();
        let mut workloads = Vec::new();
        let by_count = self.ends_with_its_messages();
        let saves = self.workloads.iter().any(|it| it.facts.role == Role::Ingest);
        for (number, (workload, usages)) in self.workloads.iter().zip(&usages).enumerate() {
            let (mut summary, stage_reasons) = workload.summary(
                number as u16,
                &self.published_in_windows(workload),
                usages,
                cores,
                self.ended(),
            );
            summary.channels = workload.readers.channels(&workload.facts, &complaints);
            summary.clients = workload.readers.clients(&workload.facts, summary.slots.planned);
            for failure in &mut summary.failures {
                failure.words = self.words.get(&(number as u16, failure.kind)).cloned().unwrap_or_default();
            }
            // What weir's own ingester needs is what is measured.
            reasons.extend(stage_reasons.into_iter().filter(|it| !saves || it.check != "generator_cores"));
            warnings.extend(workload.warnings(by_count));
            workloads.push(summary);
        }
        let courses = machine::courses(&run.machines, &self.samples);
        let span = self.span(&run);
        let machines = run.machines.iter().zip(&courses);
        let machines = machines.map(|(facts, course)| machine::summary(facts, course, span)).collect();
        warnings.extend(machine::warnings(&run.machines, &courses, &self.samples, span));
        for stage in workloads.iter_mut().flat_map(|workload: &mut WorkloadSummary| &mut workload.stages) {
            let (begin, end) = (stage.window_begin_seconds, stage.window_end_seconds);
            stage.machines = machine::stage(&courses, self.origin_ns, begin, end);
        }
        let verdict = verdict::of_reasons(reasons, &scenario.accept);
        for (workload, number) in workloads.iter_mut().zip(0..) {
            for stage in &mut workload.stages {
                stage.verdict = verdict.of_stage((number, stage.stage));
            }
        }
        let mut summary = Summary {
            layout: summary::LAYOUT.to_owned(),
            run,
            outcome,
            verdict,
            warnings,
            thresholds: Vec::new(),
            workloads,
            machines,
            growth: self.growths(),
            series: self.series(cores, &courses),
            glossary: self.glossary(),
        };
        let asked = scenario.asked();
        summary.warnings.extend(asked.iter().filter_map(|threshold| threshold.unasked(&summary.workloads)));
        let judged = asked.iter().map(|threshold| match threshold.server_figure() {
            Some(_) => threshold.judge_growth(&summary.growth),
            None => threshold.judge(&summary.workloads),
        });
        // A default that has nothing to compare is not asked: the rate of a source that nobody knows.
        summary.thresholds = judged.filter(|it| !it.default || it.value.is_some()).collect();
        if !summary.has_measured() {
            summary.has_nothing();
        }
        summary
    }

    /// The stretches, in seconds of the run, in which a server that cannot wait may have dropped because of this host:
    /// segments were dropped at full buffers or backlogs, or weir itself did not read. Zero windows are no sign of that:
    /// the kernel counts them for the whole host, whoever caused them.
    fn complaints(&self) -> Vec<(f64, f64)> {
        let second = |at_ns: u64| at_ns.saturating_sub(self.origin_ns) as f64 * 1e-9;
        let complains = |pair: &&[Sample]| {
            let usage = Usage::between(&pair[0], &pair[1]);
            usage
                .and_then(|usage| usage.host.network)
                .is_some_and(|network| network.tcp_receive_queue_drops + network.tcp_backlog_drops > 0)
        };
        self.samples
            .windows(2)
            .filter(|pair| pair[1].at_ns > self.origin_ns)
            .filter(complains)
            .map(|pair| (second(pair[0].at_ns), second(pair[1].at_ns)))
            .chain(self.pauses.iter().copied())
            .collect()
    }

    /// When the load was: to the plan's end, or as far as it came.
    fn span(&self, run: &RunFacts) -> machine::Span {
        let seen = self.cut.or(self.seen());
        machine::Span {
            origin_ns: self.origin_ns,
            started_at_seconds: run.started_at_seconds + run.base_seconds,
            // A run that was ended within its base has none.
            base_seconds: if self.samples.last().is_some_and(|last| last.at_ns >= self.origin_ns) {
                run.base_seconds
            } else {
                0.0
            },
            load_seconds: self.plan.length.as_secs_f64().min(seen.map_or(0.0, f64::from)),
        }
    }

    fn glossary(&self) -> BTreeMap<String, String> {
        let figures = self.workloads.iter().flat_map(|workload| workload.total.figures.schema().figures());
        figures.map(|figure| (figure.name.to_owned(), figure.help.to_owned())).collect()
    }

    /// Judges thresholds on what was added so far, while the run goes on: on the figures alone, so that a second
    /// of a long run costs no more than one of a short run. `bitrate.ratio` has a value in stages whose window is
    /// whole: until its end bytes of the crowd wait in the kernel.
    pub fn judge(&self, thresholds: &[Threshold]) -> Vec<ThresholdResult> {
        let figures_of = |(number, fold): (usize, &WorkloadAggregator)| {
            let unwatched = vec![None; fold.stages.len()];
            let published = self.published_in_windows(fold);
            let (mut summary, _) = fold.summary(number as u16, &published, &unwatched, 1.0, None);
            for (row, stage) in summary.stages.iter_mut().zip(&fold.stages) {
                let is_whole = stage.window_end() == stage.span.window_end;
                row.expected_bps = row.expected_bps.filter(|_| is_whole);
                row.window_is_void &= is_whole;
            }
            summary
        };
        let workloads: Vec<_> = self.workloads.iter().enumerate().map(figures_of).collect();
        thresholds.iter().map(|threshold| threshold.judge(&workloads)).collect()
    }

    /// The workload of this run that publishes all that `viewers` play, if there is one.
    fn publisher_of(&self, viewers: &WorkloadAggregator) -> Option<&WorkloadAggregator> {
        self.workloads.iter().find(|publishers| {
            publishers.facts.role == Role::Publish
                && viewers.facts.targets.iter().all(|target| publishers.facts.targets.contains(target))
        })
    }

    /// What the run's own publisher of all that `viewers` play sends, if there is one: over the window of its last
    /// stage.
    fn published(&self, viewers: &WorkloadAggregator) -> Option<Source> {
        let window = &self.publisher_of(viewers)?.stages.last()?.window;
        let publishing = window.mean(PLAYING);
        (publishing > 0.0).then(|| Source {
            bps: window.actual_bps() / publishing,
            fps: Some(window.figures.counter(FRAMES) as f64 / f64::from(window.seconds.max(1)) / publishing)
                .filter(|fps| *fps > 0.0),
        })
    }

    /// The same of each stage of `viewers`, over the very seconds of its window: how many keyframes lie in a few seconds
    /// is chance, and both ends have the same.
    fn published_in_windows(&self, viewers: &WorkloadAggregator) -> Vec<Option<Source>> {
        let publisher = self.publisher_of(viewers);
        let on_the_whole = self.published(viewers);
        let of = |stage: &StageAggregator| {
            let bps = publisher?.client_bps_in(stage.span.window_begin..stage.window_end())?;
            Some(Source { bps, fps: on_the_whole.and_then(|it| it.fps) })
        };
        viewers.stages.iter().map(|stage| of(stage).or(on_the_whole)).collect()
    }

    fn usage(&self, stage: &StageAggregator) -> Option<UsageSummary> {
        if self.ends_with_its_messages() {
            return Usage::summary(&self.samples, Window { from_ns: self.origin_ns, to_ns: u64::MAX });
        }
        if stage.window.seconds == 0 {
            return None;
        }
        let at = |second: u32| self.origin_ns + u64::from(second) * 1_000_000_000;
        // Samples are taken at the beginning of a second, a little after it.
        let slack = 500_000_000;
        let window = Window {
            from_ns: at(stage.span.window_begin).saturating_sub(slack),
            to_ns: at(stage.window_end()) + slack,
        };
        Usage::summary(&self.samples, window)
    }

    fn series(&self, cores: f64, courses: &[Vec<MachinePoint>]) -> Vec<Point> {
        let mut machines = machine::seconds(courses, self.origin_ns);
        let usages: Vec<(u64, u64, Usage)> = Sample::spaced(&self.samples)
            .windows(2)
            .filter_map(|pair| Some((pair[0].at_ns, pair[1].at_ns, Usage::between(pair[0], pair[1])?)))
            .collect();
        // Of each second, that of the stretch in which its middle lies.
        let of_second = |second: u32| {
            let middle = self.origin_ns + u64::from(second) * 1_000_000_000 + 500_000_000;
            let (from, _, usage) = usages.get(usages.partition_point(|(_, to, _)| *to <= middle))?;
            (*from <= middle).then_some(usage)
        };
        let drawn = busiest_names(usages.iter().map(|(_, _, usage)| usage));
        let rates: Vec<Option<f64>> = self
            .workloads
            .iter()
            .map(|workload| workload.client_bps(self.published(workload), &workload.total))
            .collect();
        self.points
            .iter()
            .map(|(second, points)| {
                let usage = of_second(*second);
                let targets = usage.map_or(&[][..], |usage| &usage.targets);
                let mut workloads = points.clone();
                for (point, rate) in workloads.iter_mut().zip(&rates) {
                    point.expected_bps = rate.map(|bps| bps * f64::from(point.planned));
                }
                Point {
                    second: *second,
                    workloads,
                    target_cpu_percent: targets.iter().map(|target| target.process.cpu_percent).collect(),
                    target_rss_bytes: targets.iter().map(|target| target.process.rss_bytes).collect(),
                    generator_cpu_percent: usage.map(|usage| usage.generator.cpu_percent),
                    host_cpu_percent: usage
                        .and_then(|usage| usage.host.cpu_busy_ratio)
                        .map(|ratio| ratio * 100.0 * cores),
                    machines: machines.remove(second).unwrap_or_default(),
                    thread_cpu_percent: by_name(targets)
                        .into_iter()
                        .filter(|(name, _)| drawn.contains(name))
                        .collect(),
                }
            })
            .collect()
    }
}

fn by_name(targets: &[weir_observe::TargetUsage]) -> BTreeMap<String, f64> {
    let mut names = BTreeMap::new();
    for thread in targets.iter().flat_map(|target| &target.process.threads) {
        *names.entry(thread.name.clone()).or_insert(0.0) += thread.cpu_percent;
    }
    names
}

fn busiest_names<'a>(usages: impl Iterator<Item = &'a Usage>) -> Vec<String> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (name, percent) in usages.flat_map(|usage| by_name(&usage.targets)) {
        *sums.entry(name).or_default() += percent;
    }
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.into_iter().take(DRAWN_THREADS).map(|(name, _)| name).collect()
}

fn workload_point(planned: u32, figures: &Recorder) -> WorkloadPoint {
    let micros = |histogram: &Histogram<u64>, q| {
        (!histogram.is_empty()).then(|| histogram.value_at_quantile(q) as f64 * Unit::Micros.scale())
    };
    let signed = |figure, q| {
        let values = figures.signed(figure);
        (!values.is_empty()).then(|| values.value_at_quantile(q) as f64 * Unit::Micros.scale())
    };
    WorkloadPoint {
        planned,
        playing: figures.gauge(PLAYING),
        failed: figures.counter(FAILED),
        expected_bps: None,
        actual_bps: figures.counter(MEDIA) as f64 * 8.0,
        startup_p50_seconds: micros(figures.spread(STARTUP), 0.5),
        startup_p99_seconds: micros(figures.spread(STARTUP), 0.99),
        latency_p50_seconds: signed(LATENCY, 0.5),
        latency_p99_seconds: signed(LATENCY, 0.99),
        drift_p50_seconds: signed(DRIFT, 0.5),
        drift_p99_seconds: signed(DRIFT, 0.99),
        stalls: figures.counter(STALLS),
        frames: figures.counter(FRAMES),
        numbered: figures.counter(NUMBERED),
        lost: figures.counter(LOST),
    }
}

/// What a source sends to one client.
#[derive(Clone, Copy, Debug)]
struct Source {
    bps: f64,
    /// Video frames a second, where it has pictures.
    fps: Option<f64>,
}

impl WorkloadAggregator {
    /// Adds a second; one that is not `steady`, since the run was being stopped, to no window.
    fn add(&mut self, second: u32, steady: bool, slice_seconds: Option<u32>, figures: &Recorder) {
        self.total.add(figures);
        self.seconds.insert(second, (figures.counter(MEDIA), figures.gauge(PLAYING)));
        // What begins after the last stage's end (a slow startup) still belongs to that stage.
        let stage =
            self.stages.iter_mut().rev().find(|stage| stage.span.begin.as_secs() <= u64::from(second));
        let Some(stage) = stage else { return };
        stage.whole.add(figures);
        let (begin, end) = (stage.span.window_begin, stage.span.window_end);
        if steady && (begin..end).contains(&second) {
            stage.window.add(figures);
            let media = figures.counter(MEDIA) as f64;
            stage.media.push(media);
            if let Some(length) = slice_seconds {
                stage.add_to_slice(second, length, media, figures);
            }
        }
    }

    /// Media bits a second of one of its clients, over these seconds.
    fn client_bps_in(&self, seconds: Range<u32>) -> Option<f64> {
        let sum = |(media, clients): (u64, u64), second: &(u64, u64)| (media + second.0, clients + second.1);
        let (media, clients) = self.seconds.range(seconds).map(|(_, second)| second).fold((0, 0), sum);
        (media > 0 && clients > 0).then(|| media as f64 * 8.0 / clients as f64)
    }

    /// What the source sends for one client: the scenario's word, else what the run's own publisher
    /// sent, else the stream's rate by its own clock.
    fn client_bps(&self, published: Option<Source>, stretch: &Totals) -> Option<f64> {
        let said = self.facts.expect.map(BitRate::bps);
        match self.facts.role {
            Role::Publish | Role::Ingest => said,
            // What the streams send to the far end does not come back.
            Role::Play if self.facts.background => said,
            Role::Play => said
                .or(published.map(|source| source.bps))
                .or_else(|| stretch.source_bps())
                .or_else(|| self.total.source_bps()),
        }
    }

    /// Video frames a second of the source, where its viewers have pictures.
    fn source_fps(&self, published: Option<Source>, stretch: &Totals) -> Option<f64> {
        if self.facts.role != Role::Play || self.facts.background {
            return None;
        }
        let published = published.and_then(|source| source.fps);
        published.or_else(|| stretch.source_fps()).or_else(|| self.total.source_fps())
    }

    fn summary(
        &self,
        number: u16,
        published: &[Option<Source>],
        usages: &[Option<UsageSummary>],
        cores: f64,
        ended: Option<Duration>,
    ) -> (WorkloadSummary, Vec<summary::Reason>) {
        let mut reasons = verdict::of_workload(&self.total.figures, self.slots());
        reasons.extend(self.ingested.as_ref().and_then(verdict::of_account));
        let mut stages = Vec::new();
        for ((stage, usage), published) in self.stages.iter().zip(usages).zip(published) {
            let mut row =
                stage.summary(self.client_bps(*published, &stage.window), usage.as_ref(), cores, ended);
            row.window_is_void = self.is_void(stage, &stage.media);
            let frame_time = self.facts.frame_time_seconds;
            row.source_fps = self.source_fps(*published, &stage.window).filter(|_| stage.window.seconds > 0);
            let judged = usage.as_ref().filter(|_| stage.window.seconds > 0);
            reasons.extend(verdict::of_stage(number, &row, judged, cores, frame_time));
            stages.push(row);
        }
        let mut failures: Vec<FailureCount> = self
            .total
            .figures
            .failures()
            .map(|(kind, clients)| FailureCount { kind, side: kind.side(), clients, words: String::new() })
            .collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.clients));
        let servers = self.facts.servers.iter().zip(&self.servers);
        let summary = WorkloadSummary {
            failures,
            servers: servers.map(|(name, it)| it.summary(name)).collect(),
            ingested: self.ingested.clone(),
            clock_uncertainty_seconds: self.clock_uncertainty(),
            turnover: self.turnover(),
            ..self.summary_of(stages, Figures(self.total.figures(|_| true)))
        };
        (summary, reasons)
    }

    /// What thresholds are judged on.
    fn summary_of(&self, stages: Vec<StageSummary>, total: Figures) -> WorkloadSummary {
        WorkloadSummary {
            name: self.facts.name.clone(),
            role: self.facts.role,
            background: self.facts.background,
            targets: self.facts.targets.clone(),
            stages,
            total,
            slots: self.slots(),
            failures: Vec::new(),
            servers: Vec::new(),
            channels: Vec::new(),
            clients: None,
            ingested: None,
            clock_uncertainty_seconds: None,
            turnover: None,
        }
    }

    /// How clients followed each other, if they did.
    fn turnover(&self) -> Option<TurnoverSummary> {
        let windows = || self.stages.iter().map(|stage| &stage.window);
        let begun: u64 = windows().map(|window| window.figures.counter(STARTED)).sum();
        let seconds: u32 = windows().map(|window| window.seconds).sum();
        Some(TurnoverSummary {
            life: self.life?,
            started: self.total.figures.counter(STARTED),
            starts_per_second: (seconds > 0).then(|| begun as f64 / f64::from(seconds)),
            exits_before_start: self.total.figures.counter(EXITS_BEFORE_START),
        })
    }

    /// Nothing where the monotonic clock that both ends share gave every latency; wall clocks agree
    /// as far as nobody has measured.
    fn clock_uncertainty(&self) -> Option<f64> {
        let figures = &self.total.figures;
        (!figures.signed(LATENCY).is_empty() && figures.counter(WALL_LATENCIES) == 0).then_some(0.0)
    }

    fn slots(&self) -> Slots {
        let count = |counter| self.total.figures.counter(counter);
        let (on_time, late, missed, failed) = (count(ON_TIME), count(LATE), count(MISSED), count(FAILED));
        Slots { planned: count(PLANNED), on_time, late, missed, failed }
    }

    /// Whether the media of viewers of a stream stopped, or began, in a stage's window. Streams have a rate of their own;
    /// messages come when they come.
    fn is_void(&self, stage: &StageAggregator, media: &[f64]) -> bool {
        let streams = self.facts.role == Role::Play && self.total.figures.counter(SOURCE_TIME) > 0;
        streams && stage.span.clients > 0 && steadiness::is_void(media)
    }

    /// `by_count`: the run was over when all messages were accounted for, however soon that was.
    fn warnings(&self, by_count: bool) -> Vec<String> {
        let starved = self.starvation.line(self.facts.timeout_seconds);
        let mut warnings: Vec<_> =
            starved.map(|line| format!("{}: {line}", self.facts.name)).into_iter().collect();
        warnings.extend(counts::warnings(&self.facts.name, &self.total.figures));
        let negative = self.total.figures.counter(NEGATIVE_LATENCIES);
        if negative > 0 {
            let latency = self.total.figures.signed(LATENCY);
            let least = latency.min() as f64 * Unit::Micros.scale();
            warnings.push(format!(
                "{}: {negative} of {} latencies are below zero, down to {:.1} ms: the clocks of publisher and viewers disagree by that much at least; set both by one time server",
                self.facts.name,
                latency.len(),
                least * 1e3
            ));
        }
        if let Some(ingested) = &self.ingested {
            let of_stage = |it: &Imbalance| format!("{}: {}: {}", self.facts.name, it.stage.name(), it.text);
            warnings.extend(ingested.imbalances.iter().map(of_stage));
            warnings.extend(ingested.remarks.iter().map(|remark| format!("{}: {remark}", self.facts.name)));
        }
        let measured = self.stages.iter().filter(|_| !self.facts.background && !by_count);
        for stage in measured {
            let place = format!("{}, stage of {} clients", self.facts.name, stage.span.clients);
            let seconds = stage.window.seconds;
            if seconds < 10 {
                warnings.push(format!(
                    "{place}: the figures come from {seconds} s; hold each stage for 10 s beyond the warm-up at the least"
                ));
            }
            if self.is_void(stage, &stage.media) {
                warnings.push(format!(
                    "{place}: no media came in one half of the window or in all of it, so that it is no window: its rates are of no state of the target"
                ));
            } else if let Some(change) = steadiness::unsteadiness(&stage.media) {
                warnings.push(format!(
                    "{place}: no steady state, the window's halves differ by {:.0} %",
                    change * 100.0
                ));
            }
        }
        warnings
    }
}

impl StageAggregator {
    /// The end of the window as far as the run came.
    fn window_end(&self) -> u32 {
        self.span.window_begin + self.window.seconds
    }

    fn summary(
        &self,
        client_bps: Option<f64>,
        usage: Option<&UsageSummary>,
        cores: f64,
        ended: Option<Duration>,
    ) -> StageSummary {
        StageSummary {
            end_seconds: ended.map_or(self.span.end, |ended| self.span.end.min(ended)).as_secs_f64(),
            targets: usage.map_or_else(Vec::new, |usage| {
                usage
                    .targets
                    .iter()
                    .map(|target| {
                        let connections = target.connections.map(|figure| figure.max as u64);
                        process_load(target.watch.to_string(), &target.process, connections)
                    })
                    .collect()
            }),
            generator: usage.map(|usage| process_load("weir".to_owned(), &usage.generator, None)),
            host: usage.map(|usage| host_load(usage, cores)),
            ..self.row(&self.window, self.span.window_begin, client_bps)
        }
    }

    /// The figures of a stretch of the window that begins with a second, before anything was observed of processes.
    fn row(&self, stretch: &Totals, begin: u32, client_bps: Option<f64>) -> StageSummary {
        let mut figures = stretch.figures(|name| !OF_THE_RAMP.contains(&name));
        figures.extend(self.whole.figures(|name| OF_THE_RAMP.contains(&name)));
        let starting = if self.turns_over { stretch.starting_mean() } else { 0.0 };
        StageSummary {
            stage: self.span.stage,
            clients: self.span.clients,
            begin_seconds: self.span.begin.as_secs_f64(),
            end_seconds: self.span.end.as_secs_f64(),
            window_begin_seconds: begin,
            window_end_seconds: begin + stretch.seconds,
            playing_mean: stretch.mean(PLAYING),
            window_is_void: false,
            expected_bps: client_bps
                .filter(|_| stretch.seconds > 0)
                .map(|bps| bps * (f64::from(self.span.clients) - starting).max(0.0)),
            starting_mean: starting,
            actual_bps: stretch.actual_bps(),
            source_fps: None,
            figures: Figures(figures),
            targets: Vec::new(),
            generator: None,
            host: None,
            machines: Vec::new(),
            verdict: summary::VerdictState::Valid,
        }
    }
}
