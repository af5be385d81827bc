//! From intervals and samples to the summary: a fold of values, live or read back from disk.

use crate::channel::Readers;
use crate::plan::{Plan, StageSpan, planned_at};
use crate::remark::RemarkLine;
use crate::summary::{
    FailureCount, FigureValue, Figures, HostLoad, Outcome, Point, ProcessLoad, Role, RunFacts, Slots, Spread,
    StageSummary, Summary, ThreadLoad, ThresholdResult, Value, WorkloadPoint, WorkloadSummary,
};
use crate::threshold::Threshold;
use crate::{machine, summary, verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_metrics::common::{
    DRIFT, FAILED, LATE, LATENCY, MEDIA, MISSED, ON_TIME, PLANNED, PLAYING, SOURCE, SOURCE_TIME, STALLS,
    STARTUP, WALL_LATENCIES,
};
use weir_metrics::{BitRate, Failure, Gauge, Histogram, Interval, Kind, Recorder, Schema, Signed, Unit};
use weir_observe::{MachinePoint, ProcessSummary, Sample, Usage, UsageSummary, Window};

/// Threads whose CPU is drawn second by second.
const DRAWN_THREADS: usize = 12;
/// Thread names listed for a process.
const LISTED_THREADS: usize = 32;
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
    /// Whether it is there only to disturb the others.
    #[serde(default)]
    pub background: bool,
}

/// Sums up a run, second by second.
#[derive(Debug)]
pub struct Fold {
    plan: Plan,
    workloads: Vec<WorkloadFold>,
    origin_ns: u64,
    samples: Vec<Sample>,
    points: BTreeMap<u32, Vec<WorkloadPoint>>,
    words: BTreeMap<(u16, Failure), String>,
    clock_steps: f64,
    /// The second in which the run was stopped before its plan's end: it and those after it are in no window.
    cut: Option<u32>,
}

#[derive(Debug)]
struct WorkloadFold {
    facts: WorkloadFacts,
    total: Stretch,
    stages: Vec<StageFold>,
    readers: Readers,
}

#[derive(Debug)]
struct StageFold {
    span: StageSpan,
    /// The ramp and the hold.
    whole: Stretch,
    window: Stretch,
    /// Media bytes of each second of the window, for steadiness.
    media: Vec<f64>,
}

/// Figures added up over seconds.
#[derive(Debug)]
struct Stretch {
    figures: Recorder,
    seconds: u32,
    levels: Vec<Level>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    sum: f64,
    max: u64,
}

impl Stretch {
    fn new(schema: Schema) -> Self {
        Self {
            figures: Recorder::new(schema),
            seconds: 0,
            levels: vec![Level::default(); schema.figures().count()],
        }
    }

    fn add(&mut self, figures: &Recorder) {
        self.figures.append(figures);
        self.seconds += 1;
        for (position, level) in self.levels.iter_mut().enumerate() {
            let value = figures.number(position);
            level.sum += value as f64;
            level.max = level.max.max(value);
        }
    }

    fn mean(&self, gauge: Gauge) -> f64 {
        self.levels[usize::from(gauge.0)].sum / f64::from(self.seconds.max(1))
    }

    fn figure(&self, position: usize) -> Option<(&'static str, FigureValue)> {
        let figure = self.figures.schema().figures().nth(position)?;
        let scale = figure.unit.scale();
        let number = self.figures.number(position) as f64 * scale;
        let seconds = f64::from(self.seconds.max(1));
        let value = match figure.kind {
            Kind::Counter => Value::Counter { total: number, per_second: number / seconds },
            Kind::Gauge(_) => {
                let level = self.levels[position];
                Value::Gauge {
                    mean: level.sum * scale / seconds,
                    max: level.max as f64 * scale,
                    last: number,
                }
            }
            Kind::Spread => {
                let it = self.figures.spread(weir_metrics::Spread(position as u16));
                let ends = [it.min() as f64, it.mean(), it.max() as f64];
                Value::Spread(spread(it.len(), ends, |q| it.value_at_quantile(q) as f64, scale))
            }
            Kind::Signed => {
                let it = self.figures.signed(Signed(position as u16));
                let ends = [it.min() as f64, it.mean(), it.max() as f64];
                Value::Spread(spread(it.len(), ends, |q| it.value_at_quantile(q) as f64, scale))
            }
        };
        Some((figure.name, FigureValue { unit: figure.unit.into(), value }))
    }

    fn figures(&self, keep: impl Fn(&str) -> bool) -> BTreeMap<String, FigureValue> {
        (0..self.levels.len())
            .filter_map(|position| self.figure(position))
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Bits a second of media by its own clock, over whole groups of pictures.
    fn source_bps(&self) -> Option<f64> {
        let micros = self.figures.counter(SOURCE_TIME);
        (micros > 0).then(|| self.figures.counter(SOURCE) as f64 * 8e6 / micros as f64)
    }

    fn actual_bps(&self) -> f64 {
        self.figures.counter(MEDIA) as f64 * 8.0 / f64::from(self.seconds.max(1))
    }
}

/// A distribution of either kind, in base units: how many values, the smallest, the mean, the largest, and the
/// value at a quantile.
fn spread(count: u64, [min, mean, max]: [f64; 3], at: impl Fn(f64) -> f64, scale: f64) -> Spread {
    let at = |q| at(q) * scale;
    Spread {
        count,
        min: min * scale,
        mean: mean * scale,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: max * scale,
    }
}

impl Fold {
    /// A fold of a run whose plan and workloads are these, and whose second 0 began at the
    /// monotonic time `origin_ns`.
    pub fn new(plan: Plan, workloads: Vec<(WorkloadFacts, Schema)>, origin_ns: u64) -> Self {
        let fold_of = |(number, (facts, schema)): (usize, (WorkloadFacts, Schema))| WorkloadFold {
            readers: Readers::default(),
            facts,
            total: Stretch::new(schema),
            stages: plan
                .stages
                .iter()
                .filter(|span| usize::from(span.workload) == number)
                .map(|span| StageFold {
                    span: *span,
                    whole: Stretch::new(schema),
                    window: Stretch::new(schema),
                    media: Vec::new(),
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
            cut: None,
        }
    }

    /// Adds one workload's second.
    pub fn interval(&mut self, interval: &Interval) {
        let second = interval.key.second;
        let count = self.workloads.len();
        let Some(workload) = self.workloads.get_mut(usize::from(interval.key.workload)) else { return };
        workload.add(second, self.cut.is_none_or(|cut| second < cut), &interval.figures);
        let planned =
            planned_at(&self.plan, interval.key.workload, Duration::from_secs(u64::from(second) + 1)) as u32;
        let points = self.points.entry(second).or_insert_with(|| vec![WorkloadPoint::default(); count]);
        points[usize::from(interval.key.workload)] = workload_point(planned, &interval.figures);
    }

    /// Adds one observation.
    pub fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// Adds an event. That the run was stopped must be told before the intervals from that second on.
    pub fn remark(&mut self, line: &RemarkLine) {
        match line {
            RemarkLine::Failure { workload, failure, words, .. } if !words.is_empty() => {
                self.words.entry((*workload, *failure)).or_insert_with(|| words.clone());
            }
            RemarkLine::ClockStep { by_seconds, .. } => self.clock_steps += by_seconds.abs(),
            RemarkLine::Stopped { at_seconds } => self.cut = Some(*at_seconds as u32),
            RemarkLine::Gap { workload, .. } | RemarkLine::Account { workload, .. } => {
                if let Some(workload) = self.workloads.get_mut(usize::from(*workload)) {
                    workload.readers.take(line);
                }
            }
            RemarkLine::Failure { .. } => {}
        }
    }

    /// The latest second of each workload, for a live view.
    pub fn latest(&self) -> Option<(u32, &[WorkloadPoint])> {
        self.points.last_key_value().map(|(second, points)| (*second, points.as_slice()))
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

    /// Whether the plan holds any client beyond the end of this second.
    pub(crate) fn wants_clients_after(&self, second: u32) -> bool {
        let end = Duration::from_secs(u64::from(second) + 1);
        self.plan.slots.iter().any(|slot| slot.stop > end)
    }

    /// Sums up what was added so far.
    pub fn finish(&self, run: RunFacts, outcome: Outcome, thresholds: &[Threshold]) -> Summary {
        let usages: Vec<Vec<Option<UsageSummary>>> = self
            .workloads
            .iter()
            .map(|workload| workload.stages.iter().map(|stage| self.usage(stage)).collect())
            .collect();
        let cores = run.environment.cpu.online_count.max(1) as f64;
        let complaints = self.complaints();
        let mut reasons = verdict::of_run(self.clock_steps);
        let mut warnings = Vec::new();
        let mut workloads = Vec::new();
        for (number, (workload, usages)) in self.workloads.iter().zip(&usages).enumerate() {
            let (mut summary, stage_reasons) =
                workload.summary(number as u16, self.published_bps(workload), usages, cores);
            summary.channels = workload.readers.channels(&workload.facts, &complaints);
            summary.clients = workload.readers.clients(&workload.facts, summary.slots.planned);
            for failure in &mut summary.failures {
                failure.words = self.words.get(&(number as u16, failure.kind)).cloned().unwrap_or_default();
            }
            reasons.extend(stage_reasons);
            warnings.extend(workload.warnings());
            workloads.push(summary);
        }
        let announced = |usage: &UsageSummary| usage.host.network.map_or(0, |it| it.tcp_zero_windows);
        warnings.extend(zero_windows(usages.iter().flatten().flatten().map(announced)));
        let courses = machine::courses(&run.machines, &self.samples);
        let span = self.span(&run);
        let machines = run.machines.iter().zip(&courses);
        let machines = machines.map(|(facts, course)| machine::summary(facts, course, span)).collect();
        warnings.extend(machine::warnings(&run.machines, &courses, &self.samples, span));
        for stage in workloads.iter_mut().flat_map(|workload: &mut WorkloadSummary| &mut workload.stages) {
            let (begin, end) = (stage.window_begin_seconds, stage.window_end_seconds);
            stage.machines = machine::stage(&courses, self.origin_ns, begin, end);
        }
        let mut summary = Summary {
            layout: summary::LAYOUT.to_owned(),
            run,
            outcome,
            verdict: verdict::of_reasons(reasons),
            warnings,
            thresholds: Vec::new(),
            workloads,
            machines,
            series: self.series(cores, &courses),
            glossary: self.glossary(),
        };
        summary.thresholds = thresholds.iter().map(|threshold| threshold.judge(&summary.workloads)).collect();
        summary
    }

    /// The stretches, in seconds of the run, in which this host's receive path complained: segments were dropped at
    /// full buffers or backlogs, or a window was closed.
    fn complaints(&self) -> Vec<(f64, f64)> {
        let second = |at_ns: u64| at_ns.saturating_sub(self.origin_ns) as f64 * 1e-9;
        let complains = |pair: &&[Sample]| {
            let usage = Usage::between(&pair[0], &pair[1]);
            usage.and_then(|usage| usage.host.network).is_some_and(|network| {
                network.tcp_receive_queue_drops + network.tcp_backlog_drops + network.tcp_zero_windows > 0
            })
        };
        self.samples
            .windows(2)
            .filter(|pair| pair[1].at_ns > self.origin_ns)
            .filter(complains)
            .map(|pair| (second(pair[0].at_ns), second(pair[1].at_ns)))
            .collect()
    }

    /// When the load was: to the plan's end, or as far as it came.
    fn span(&self, run: &RunFacts) -> machine::Span {
        let seen = self.cut.or(self.points.last_key_value().map(|(second, _)| second + 1));
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
        let figures_of = |(number, fold): (usize, &WorkloadFold)| {
            let unwatched = vec![None; fold.stages.len()];
            let published = self.published_bps(fold);
            let (mut summary, _) = fold.summary(number as u16, published, &unwatched, 1.0);
            for (row, stage) in summary.stages.iter_mut().zip(&fold.stages) {
                row.expected_bps = row.expected_bps.filter(|_| stage.window_end() == stage.span.window_end);
            }
            summary
        };
        let workloads: Vec<_> = self.workloads.iter().enumerate().map(figures_of).collect();
        thresholds.iter().map(|threshold| threshold.judge(&workloads)).collect()
    }

    /// What the run's own publisher of all that `viewers` play sends, if there is one: over the window
    /// of its last stage.
    fn published_bps(&self, viewers: &WorkloadFold) -> Option<f64> {
        let sends = |publishers: &&WorkloadFold| {
            publishers.facts.role == Role::Publish
                && viewers.facts.targets.iter().all(|target| publishers.facts.targets.contains(target))
        };
        let window = &self.workloads.iter().find(sends)?.stages.last()?.window;
        let publishing = window.mean(PLAYING);
        (publishing > 0.0).then(|| window.actual_bps() / publishing)
    }

    fn usage(&self, stage: &StageFold) -> Option<UsageSummary> {
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
        let usages: BTreeMap<u32, Usage> = self
            .samples
            .windows(2)
            .filter_map(|pair| {
                let middle = (pair[0].at_ns / 2 + pair[1].at_ns / 2).checked_sub(self.origin_ns)?;
                Some(((middle / 1_000_000_000) as u32, Usage::between(&pair[0], &pair[1])?))
            })
            .collect();
        let drawn = busiest_names(usages.values());
        let rates: Vec<Option<f64>> = self
            .workloads
            .iter()
            .map(|workload| workload.client_bps(self.published_bps(workload), &workload.total))
            .collect();
        self.points
            .iter()
            .map(|(second, points)| {
                let usage = usages.get(second);
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
    let drift = figures.signed(DRIFT);
    let drift_at = |q| (!drift.is_empty()).then(|| drift.value_at_quantile(q) as f64 * Unit::Micros.scale());
    WorkloadPoint {
        planned,
        playing: figures.gauge(PLAYING),
        failed: figures.counter(FAILED),
        expected_bps: None,
        actual_bps: figures.counter(MEDIA) as f64 * 8.0,
        startup_p50_seconds: micros(figures.spread(STARTUP), 0.5),
        startup_p99_seconds: micros(figures.spread(STARTUP), 0.99),
        latency_p50_seconds: micros(figures.spread(LATENCY), 0.5),
        latency_p99_seconds: micros(figures.spread(LATENCY), 0.99),
        drift_p50_seconds: drift_at(0.5),
        drift_p99_seconds: drift_at(0.99),
        stalls: figures.counter(STALLS),
    }
}

impl WorkloadFold {
    /// Adds a second; one that is not `steady`, since the run was being stopped, to no window.
    fn add(&mut self, second: u32, steady: bool, figures: &Recorder) {
        self.total.add(figures);
        // What begins after the last stage's end (a slow startup) still belongs to that stage.
        let stage =
            self.stages.iter_mut().rev().find(|stage| stage.span.begin.as_secs() <= u64::from(second));
        let Some(stage) = stage else { return };
        stage.whole.add(figures);
        let (begin, end) = (stage.span.window_begin, stage.span.window_end);
        if steady && (begin..end).contains(&second) {
            stage.window.add(figures);
            stage.media.push(figures.counter(MEDIA) as f64);
        }
    }

    /// What the source sends for one client: the scenario's word, else what the run's own publisher
    /// sent, else the stream's rate by its own clock.
    fn client_bps(&self, published: Option<f64>, stretch: &Stretch) -> Option<f64> {
        let said = self.facts.expect.map(BitRate::bps);
        match self.facts.role {
            Role::Publish => said,
            // What the streams send to the far end does not come back.
            Role::Play if self.facts.background => said,
            Role::Play => {
                said.or(published).or_else(|| stretch.source_bps()).or_else(|| self.total.source_bps())
            }
        }
    }

    fn summary(
        &self,
        number: u16,
        source: Option<f64>,
        usages: &[Option<UsageSummary>],
        cores: f64,
    ) -> (WorkloadSummary, Vec<summary::Reason>) {
        let mut reasons = verdict::of_workload(&self.total.figures, self.slots());
        let mut stages = Vec::new();
        for (stage, usage) in self.stages.iter().zip(usages) {
            let mut row = stage.summary(self.client_bps(source, &stage.window), usage.as_ref(), cores);
            let of_stage =
                verdict::of_stage(number, &row, usage.as_ref(), cores, self.facts.frame_time_seconds);
            row.verdict = verdict::worst(&of_stage);
            reasons.extend(of_stage);
            stages.push(row);
        }
        let mut failures: Vec<FailureCount> = self
            .total
            .figures
            .failures()
            .map(|(kind, clients)| FailureCount { kind, side: kind.side(), clients, words: String::new() })
            .collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.clients));
        let summary = WorkloadSummary {
            name: self.facts.name.clone(),
            role: self.facts.role,
            background: self.facts.background,
            targets: self.facts.targets.clone(),
            stages,
            total: Figures(self.total.figures(|_| true)),
            slots: self.slots(),
            failures,
            channels: Vec::new(),
            clients: None,
            clock_uncertainty_seconds: self.clock_uncertainty(),
        };
        (summary, reasons)
    }

    /// Nothing where the monotonic clock that both ends share gave every latency; wall clocks agree
    /// as far as nobody has measured.
    fn clock_uncertainty(&self) -> Option<f64> {
        let figures = &self.total.figures;
        (!figures.spread(LATENCY).is_empty() && figures.counter(WALL_LATENCIES) == 0).then_some(0.0)
    }

    fn slots(&self) -> Slots {
        let count = |counter| self.total.figures.counter(counter);
        let (on_time, late, missed, failed) = (count(ON_TIME), count(LATE), count(MISSED), count(FAILED));
        Slots { planned: count(PLANNED), on_time, late, missed, failed }
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let measured = self.stages.iter().filter(|_| !self.facts.background);
        for stage in measured {
            let place = format!("{}, stage of {} clients", self.facts.name, stage.span.clients);
            let seconds = stage.window.seconds;
            if seconds < 10 {
                warnings.push(format!(
                    "{place}: the figures come from {seconds} s; hold each stage for 10 s beyond the warm-up at the least"
                ));
            }
            if let Some(change) = unsteadiness(&stage.media) {
                warnings.push(format!(
                    "{place}: no steady state, the window's halves differ by {:.0} %",
                    change * 100.0
                ));
            }
        }
        warnings
    }
}

/// The kernel counts zero windows for the whole host, so that weir can only be suspected of them.
fn zero_windows(announced: impl Iterator<Item = u64>) -> Option<String> {
    let most = announced.max().filter(|most| *most > 0)?;
    Some(format!(
        "{most} zero TCP windows were announced on this host in one window, by weir or by others: if nothing else here receives, weir reads too slowly; use more threads (--shards) or cores"
    ))
}

/// By how much the second half of a window differs from the first, if that is over a tenth and
/// more than the seconds' own scatter (a keyframe more or less) explains; none under ten seconds.
fn unsteadiness(seconds: &[f64]) -> Option<f64> {
    if seconds.len() < 10 {
        return None;
    }
    let half = seconds.len() / 2;
    let (first, second) = (&seconds[..half], &seconds[seconds.len() - half..]);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (mean(first), mean(second));
    let variance = |values: &[f64], mean: f64| {
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    };
    let error = ((variance(first, a) + variance(second, b)) / half as f64).sqrt();
    let difference = (a - b).abs();
    (difference > 0.1 * a.max(b) && difference > 3.0 * error).then(|| difference / a.max(b))
}

impl StageFold {
    /// The end of the window as far as the run came.
    fn window_end(&self) -> u32 {
        self.span.window_begin + self.window.seconds
    }

    fn summary(&self, client_bps: Option<f64>, usage: Option<&UsageSummary>, cores: f64) -> StageSummary {
        let mut figures = self.window.figures(|name| !OF_THE_RAMP.contains(&name));
        figures.extend(self.whole.figures(|name| OF_THE_RAMP.contains(&name)));
        StageSummary {
            stage: self.span.stage,
            clients: self.span.clients,
            begin_seconds: self.span.begin.as_secs_f64(),
            end_seconds: self.span.end.as_secs_f64(),
            window_begin_seconds: self.span.window_begin,
            window_end_seconds: self.window_end(),
            playing_mean: self.window.mean(PLAYING),
            expected_bps: client_bps
                .filter(|_| self.window.seconds > 0)
                .map(|bps| bps * f64::from(self.span.clients)),
            actual_bps: self.window.actual_bps(),
            figures: Figures(figures),
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
            machines: Vec::new(),
            verdict: summary::VerdictState::Valid,
        }
    }
}

fn process_load(label: String, process: &ProcessSummary, connections_max: Option<u64>) -> ProcessLoad {
    ProcessLoad {
        label,
        cpu_percent: process.cpu_percent.mean,
        cpu_percent_max: process.cpu_percent.max,
        rss_max_bytes: process.rss_bytes.max as u64,
        rss_mean_bytes: process.rss_bytes.mean,
        connections_max,
        descriptors_max: process.descriptors.map(|figure| figure.max as u64),
        context_switches_per_second: process.voluntary_switches_per_second.mean
            + process.involuntary_switches_per_second.mean,
        threads: process
            .thread_names
            .iter()
            .take(LISTED_THREADS)
            .map(|thread| ThreadLoad {
                name: thread.name.clone(),
                threads: thread.threads as u32,
                cpu_percent: thread.cpu_percent,
                cpu_percent_busiest: thread.busiest_percent,
            })
            .collect(),
    }
}

fn host_load(usage: &UsageSummary, cores: f64) -> HostLoad {
    let host = &usage.host;
    let mean = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.mean);
    let max = |figure: Option<weir_observe::Figure>| figure.map_or(0.0, |figure| figure.max);
    let interfaces =
        |value: fn(&weir_observe::InterfaceSummary) -> f64| host.interfaces.iter().map(value).sum();
    HostLoad {
        cpu_percent: 100.0 * cores * mean(host.cpu_busy_ratio),
        steal_percent: 100.0 * cores * mean(host.cpu_steal_ratio),
        load1_max: max(host.load1),
        memory_used_max_bytes: max(host.memory_used_bytes) as u64,
        rx_bps: interfaces(|interface| interface.rx_bps.mean),
        tx_bps: interfaces(|interface| interface.tx_bps.mean),
        tcp_retransmits_per_second: mean(host.tcp_retransmits_per_second),
        listen_drops: host.network.map_or(0, |network| network.listen_drops),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_windows_of_the_host_are_a_warning() {
        assert_eq!(zero_windows([0, 0].into_iter()), None);
        let said = zero_windows([0, 7, 3].into_iter()).unwrap();
        assert!(said.starts_with("7 zero TCP windows"), "{said}");
    }

    #[test]
    fn a_keyframe_more_in_one_half_is_no_change_of_state() {
        let pulses: Vec<f64> = (0..10).map(|second| if second % 2 == 0 { 540.0 } else { 447.0 }).collect();
        assert_eq!(unsteadiness(&pulses), None);
        let fall: Vec<f64> = (0..10).map(|second| if second < 5 { 500.0 } else { 300.0 }).collect();
        assert_eq!(unsteadiness(&fall), Some(0.4));
    }
}
