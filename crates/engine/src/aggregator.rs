//! From intervals and samples to the summary: a function of values, of a live run or of one that was read back from disk.

mod agents;
mod asked;
mod blocks;
mod clocks;
mod delays;
mod growth;
mod points;
mod progress;
mod published;
mod restarts;
mod slice;
mod stage;
mod standstill;
mod workload;

pub use progress::StageProgress;
pub use slice::Slice;

use crate::clients::sums::ClientSums;
use crate::machine::loads::{card_warnings, cores, queue_drops, queue_words};
use crate::plan::{Plan, Segment, planned_at};
use crate::record::event::EventLine;
use crate::scenario::Scenario;
use crate::scenario::facts::WorkloadFacts;
use crate::scenario::role::Role;
use crate::summary::{
    BaseUnit, FigureValue, Outcome, Point, Reason, RunFacts, Summary, ThresholdResult, Value, WorkloadPoint,
    WorkloadSummary,
};
use crate::threshold::Threshold;
use crate::{machine, summary, verdict};
use agents::AgentsAggregator;
use blocks::{Blocks, Firsts, Successor};
use points::{busiest_names, by_name, workload_point};
use restarts::Restarts;
use stage::StageAggregator;
use standstill::Standstill;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_metrics::common::{BLACKOUTS, FIGURES, LATE, ON_TIME, PLAYING, STARTED, STARVED, STARVING, UNITS};
use weir_metrics::{Failure, Interval, Schema};
use weir_observe::{Environment, MachinePoint, Sample, Usage, UsageSummary, Window};
use workload::WorkloadAggregator;

/// Sums up a run, second by second.
#[derive(Debug)]
pub struct Aggregator {
    plan: Plan,
    workloads: Vec<WorkloadAggregator>,
    origin_ns: u64,
    samples: Firsts<Sample>,
    points: Firsts<(u32, Vec<WorkloadPoint>)>,
    /// The second after the latest one.
    seen: Option<u32>,
    /// The point before the latest, which may not be kept.
    before_latest: Option<(u32, Vec<WorkloadPoint>)>,
    words: BTreeMap<(u16, Failure), String>,
    clock_steps: f64,
    /// Clients that began in each block of seconds, those left out that are there only to disturb the others.
    begun: Blocks<u64>,
    standstill: Standstill,
    /// The second in which the run was stopped before its plan's end: it and those after it are in no window.
    cut: Option<u32>,
    /// When it was stopped, to the moment.
    stopped_seconds: Option<f64>,
    /// Why messages could not be saved any more.
    trouble: Option<String>,
    /// The first generator thread that was lost, in which second of the run, and why.
    lost_thread: Option<(usize, f64, String)>,
    agents: AgentsAggregator,
    restarts: Restarts,
    /// How long the slices are that windows are cut into, if they are.
    slice_seconds: Option<u32>,
}

impl Successor for Sample {
    fn take_over(&mut self, earlier: Self) {
        self.take_over(earlier);
    }
}

/// The plots of a long run show a second of each block.
impl Successor for (u32, Vec<WorkloadPoint>) {
    fn take_over(&mut self, _: Self) {}
}

impl Aggregator {
    /// An aggregator of a run whose plan and workloads are these, and whose second 0 began at the
    /// monotonic time `origin_ns`.
    pub fn new(plan: Plan, workloads: Vec<(WorkloadFacts, Schema)>, origin_ns: u64) -> Self {
        let turnovers: BTreeMap<_, _> = plan.turnovers().collect();
        let edges = plan.window_edges();
        let workload = |(number, (facts, schema)): (usize, (WorkloadFacts, Schema))| {
            let spans = plan.stages.iter().filter(|span| usize::from(span.workload) == number);
            let turnover = turnovers.get(&(number as u16)).copied();
            WorkloadAggregator::new(facts, schema, turnover, spans.copied(), plan.window_parts())
        };
        let workloads = workloads.into_iter().enumerate().map(workload).collect();
        Self {
            plan,
            workloads,
            origin_ns,
            samples: Firsts::new(edges.clone()),
            points: Firsts::new(edges.clone()),
            seen: None,
            before_latest: None,
            words: BTreeMap::new(),
            clock_steps: 0.0,
            begun: Blocks::new(edges),
            standstill: Standstill::default(),
            cut: None,
            stopped_seconds: None,
            trouble: None,
            lost_thread: None,
            agents: AgentsAggregator::default(),
            restarts: Restarts::default(),
            slice_seconds: None,
        }
    }

    /// Adds one workload's second, or several seconds that are one interval: those of a long run that is read again.
    pub fn interval(&mut self, interval: &Interval) {
        let (second, seconds) = (interval.key.second, interval.seconds());
        let count = self.workloads.len();
        let Some(workload) = self.workloads.get_mut(usize::from(interval.key.workload)) else { return };
        if let Some(server) = interval.key.server {
            // What all of them counted comes in an interval of its own.
            let server = workload.servers.get_mut(usize::from(server));
            return server.into_iter().for_each(|server| server.add(interval));
        }
        let steady = self.cut.is_none_or(|cut| second < cut);
        workload.add(interval, steady, self.slice_seconds);
        if steady && Duration::from_secs(interval.end().into()) <= self.plan.length {
            let count = |counter| interval.figures.counter(counter);
            let level = |gauge| interval.figures.gauge(gauge);
            workload.starvation.add(second, count(STARVED), level(STARVING), level(PLAYING));
            workload.outages.iter_mut().for_each(|it| it.add(interval));
            workload.blackouts.add(interval);
        }
        if !workload.facts.background {
            self.begun.add(second..interval.end(), interval.figures.counter(STARTED));
            self.restarts.add(interval);
        }
        self.standstill.add(interval);
        // Just before the end: a client that stops at that moment was planned, and played, up to it.
        let before_its_end =
            Duration::from_secs(interval.end().into()).saturating_sub(Duration::from_nanos(1));
        let planned = planned_at(&self.plan, interval.key.workload, before_its_end) as u32;
        let messages = self.workloads.get(usize::from(interval.key.workload));
        let messages = messages
            .and_then(|it| it.messages(planned.into(), interval.figures.counter(UNITS), seconds.into()));
        self.seen = self.seen.max(Some(interval.end()));
        if self.points.latest_second().is_none_or(|latest| latest < i64::from(second)) {
            self.before_latest = self.points.items().last().cloned();
            self.points.push(second.into(), (second, vec![WorkloadPoint::default(); count]));
        }
        // What comes late to a second of a long run that is not kept is in the sums all the same.
        if let Some((_, points)) = self.points.get_mut(second.into()) {
            let place = usize::from(interval.key.workload);
            let turns_over = self.workloads.get(place).is_some_and(|it| it.turnover.is_some());
            points[place] = workload_point(planned, interval, messages, turns_over);
        }
    }

    /// Adds one observation.
    pub fn sample(&mut self, sample: Sample) {
        let second = (i128::from(sample.at_ns) - i128::from(self.origin_ns)).div_euclid(1_000_000_000);
        self.samples.push(i64::try_from(second).unwrap_or(i64::MAX), sample);
    }

    /// Adds an event. The event that the run was stopped must come before the intervals from that second on.
    pub fn event(&mut self, line: &EventLine) {
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
            EventLine::Track { workload, track, .. } => {
                if let Some(workload) = self.workloads.get_mut(usize::from(*workload)) {
                    workload.take_track(track);
                }
            }
            EventLine::ThreadLost { at_seconds, thread, words } => {
                self.lost_thread.get_or_insert((*thread, *at_seconds, words.clone()));
            }
            EventLine::Restart { .. } => self.restarts.take(line),
            EventLine::Gap { workload, .. } | EventLine::Account { workload, .. } => {
                if let Some(workload) = self.workloads.get_mut(usize::from(*workload)) {
                    workload.readers.take(line);
                }
            }
            EventLine::AgentBegun { .. } | EventLine::AgentLost { .. } | EventLine::AgentEnded { .. } => {
                self.agents.take(line);
                self.restarts.take(line);
                if let EventLine::AgentLost { at_seconds, segment, open, is_allowed, .. } = line {
                    self.workloads.iter_mut().zip(open).for_each(|(workload, open)| workload.let_go(*open));
                    if *is_allowed {
                        self.let_go(segment, *at_seconds);
                    }
                }
            }
            EventLine::Failure { .. } => {}
        }
    }

    /// Adds what clients of a workload left behind that have no event of their own.
    pub(crate) fn left_out(&mut self, workload: u16, sums: &ClientSums) {
        if let Some(workload) = self.workloads.get_mut(usize::from(workload)) {
            workload.readers.left_out(sums);
        }
    }

    /// The clients of a lost agent are not planned any more.
    fn let_go(&mut self, segment: &Segment, at_seconds: f64) {
        for span in &self.plan.part(segment).stages {
            let workload = self.workloads.get_mut(usize::from(span.workload));
            let stage = workload.and_then(|it| it.stages.get_mut(usize::from(span.stage)));
            stage.into_iter().for_each(|stage| stage.let_go(span.clients, at_seconds as u32));
        }
        let at = Duration::try_from_secs_f64(at_seconds).unwrap_or_default();
        self.plan.cut(segment, at);
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The workloads.
    pub(crate) fn facts(&self) -> impl Iterator<Item = &WorkloadFacts> {
        self.workloads.iter().map(|it| &it.facts)
    }

    /// Whether clients have counts at which they end, and some client has ended without a failure.
    pub(crate) fn has_reached_counts(&self) -> bool {
        let ended =
            |it: &WorkloadAggregator| it.total.figures.counter(ON_TIME) + it.total.figures.counter(LATE);
        self.plan.about.is_some() && self.workloads.iter().any(|it| ended(it) > 0)
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

    /// Whether it is over when all messages are accounted for. It may take less than a second: it has no window, and the use of
    /// processes is measured from its beginning to its end.
    fn ends_with_its_messages(&self) -> bool {
        self.plan.about.is_some() && self.workloads.iter().any(|it| it.facts.role == Role::Ingest)
    }

    /// How many seconds of the run there are.
    pub fn seen(&self) -> Option<u32> {
        self.seen
    }

    /// Whether the plan holds any client beyond the end of this second.
    pub(crate) fn wants_clients_after(&self, second: u32) -> bool {
        let end = Duration::from_secs(u64::from(second) + 1);
        self.plan.slots.iter().any(|slot| slot.stop > end)
    }

    /// How often queues of this machine dropped what its sockets had sent, if they did.
    fn queue_drops(&self) -> Option<u64> {
        let of_sockets = self.workloads.iter().map(WorkloadAggregator::socket_drops);
        queue_drops(self.samples.items(), self.origin_ns, of_sockets.sum())
    }

    /// Sums up what was added so far, as a run of `scenario`.
    pub fn finish(&self, run: RunFacts, outcome: Outcome, scenario: &Scenario) -> Summary {
        let usages: Vec<Vec<Option<UsageSummary>>> = self
            .workloads
            .iter()
            .map(|workload| workload.stages.iter().map(|stage| self.usage(stage)).collect())
            .collect();
        let cores = cores(&run.environment.cpu);
        let complaints = self.complaints();
        let mut reasons = verdict::of_run(self.clock_steps);
        let lost_thread = self.lost_thread.as_ref();
        reasons.extend(
            lost_thread
                .map(|(thread, at_seconds, words)| verdict::of_lost_thread(*thread, *at_seconds, words)),
        );
        let mut warnings: Vec<_> = self.trouble.iter().cloned().collect();
        let mut workloads = Vec::new();
        let by_count = self.ends_with_its_messages();
        let saves = self.workloads.iter().any(|it| it.facts.role == Role::Ingest);
        // Where agents made the load, it is their machines that are judged, by themselves.
        let is_elsewhere = !run.agents.is_empty();
        reasons.extend(self.agents.reasons(&run.agents));
        for (number, (workload, usages)) in self.workloads.iter().zip(&usages).enumerate() {
            let (mut summary, stage_reasons) = workload.summary(
                number as u16,
                &self.published_in_windows(workload),
                usages,
                &run.environment,
                self.ended(),
                workload.count_end(),
            );
            if summary.clock_uncertainty_seconds.is_none() && self.publisher_of(workload).is_some() {
                // Agents follow one clock; other publishers have their own.
                summary.clock_uncertainty_seconds =
                    workload.has_latency().then(|| self.agents.clock_uncertainty()).flatten();
            }
            summary.channels = workload.readers.channels(&workload.facts, &complaints);
            summary.clients = workload.readers.clients(&workload.facts, summary.slots.planned);
            for failure in &mut summary.failures {
                failure.words = self.words.get(&(number as u16, failure.kind)).cloned().unwrap_or_default();
            }
            // What weir's own ingester needs is what is measured.
            let is_meant = |it: &Reason| !saves || it.check != "generator_cores";
            let is_here = |it: &Reason| !is_elsewhere || !verdict::is_of_surroundings(&it.check);
            reasons.extend(stage_reasons.into_iter().filter(|it| is_meant(it) && is_here(it)));
            for stage in summary.stages.iter_mut().filter(|_| is_elsewhere) {
                stage.generator = self.agents.load(run.agents.len(), number as u16, stage.stage);
                stage.host = None;
            }
            self.add_blackouts(workload, &mut summary);
            warnings.extend(summary.outages.iter().map(|it| format!("{}: {}", summary.name, it.line())));
            warnings.extend(workload.warnings(by_count));
            workloads.push(summary);
        }
        warnings.extend(self.set_growths(&mut workloads));
        let courses = machine::courses(&run.machines, self.samples.items());
        let span = self.span(&run);
        let machines = run.machines.iter().zip(&courses);
        let machines = machines.map(|(facts, course)| machine::summary(facts, course, span)).collect();
        warnings.extend(machine::warnings(&run.machines, &courses, self.samples.items(), span));
        for stage in workloads.iter_mut().flat_map(|workload: &mut WorkloadSummary| &mut workload.stages) {
            let (begin, end) = (stage.window_begin_seconds, stage.window_end_seconds);
            stage.machines = machine::stage(&courses, self.origin_ns, begin, end);
        }
        let hosts = workloads.iter().flat_map(|workload| &workload.stages).filter_map(|it| it.host.as_ref());
        warnings.extend(card_warnings(hosts));
        // Where agents made the load, it is their machines' queues that matter, and each says it of its own.
        if let Some(drops) = self.queue_drops().filter(|_| !is_elsewhere) {
            match self.workloads.iter().map(WorkloadAggregator::given_up).sum::<u64>() {
                0 => warnings.push(queue_words(drops)),
                given_up => {
                    let datagrams = self.workloads.iter().map(WorkloadAggregator::datagrams).sum();
                    reasons.push(verdict::of_queues(drops, datagrams, given_up));
                }
            }
        }
        let run_seconds = f64::from(self.seen().unwrap_or_default());
        reasons.extend(verdict::of_standstill(self.standstill.seconds(), run_seconds, &reasons));
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
            restarts: self.restarts.summaries(),
            series: self.series(cores, &courses),
            glossary: self.glossary(),
        };
        let asked = self.asked(scenario, &mut summary);
        summary.warnings.extend(asked.iter().filter_map(|threshold| threshold.unasked(&summary.workloads)));
        let judged = asked.iter().filter_map(|threshold| {
            let result = threshold.judge_run(&summary);
            // A default threshold without a value is left out: the rate of the source may be unknown.
            let is_left_out = result.default && result.value.is_none() && !threshold.is_open(&summary);
            let words = self.words_about(threshold).filter(|_| !result.passed);
            (!is_left_out).then_some(ThresholdResult { words, ..result })
        });
        summary.thresholds = judged.collect();
        for threshold in asked {
            threshold.find_second(&mut summary);
        }
        if !summary.has_measured() || !self.has_judged(&summary) {
            summary.has_nothing();
        }
        summary
    }

    /// Whether any of what is judged had a second: all that is sent by count is, and all that is saved.
    fn has_judged(&self, summary: &Summary) -> bool {
        let judged = self.workloads.iter().zip(&summary.workloads).filter(|(it, _)| !it.facts.background);
        self.plan.about.is_some()
            || judged.into_iter().any(|(it, summary)| it.facts.role == Role::Ingest || summary.has_window())
    }

    /// What a peer said the first time of what this threshold's figure counts.
    fn words_about(&self, threshold: &Threshold) -> Option<String> {
        let about = |kind: &Failure| kind.figure().is_some_and(|figure| threshold.is_of(figure));
        self.words.iter().find(|((_, kind), _)| about(kind)).map(|(_, words)| words.clone())
    }

    /// The stretches, in seconds of the run, in which a server that cannot wait may have dropped because of this host:
    /// segments were dropped at full buffers or backlogs, or weir itself did not read. Zero windows are no sign of that:
    /// the kernel counts them for the whole host, whichever process caused them.
    fn complaints(&self) -> Vec<(f64, f64)> {
        let second = |at_ns: u64| at_ns.saturating_sub(self.origin_ns) as f64 * 1e-9;
        let complains = |pair: &&[Sample]| {
            let usage = Usage::between(&pair[0], &pair[1]);
            usage
                .and_then(|usage| usage.host.network)
                .is_some_and(|network| network.tcp_receive_queue_drops + network.tcp_backlog_drops > 0)
        };
        self.samples
            .items()
            .windows(2)
            .filter(|pair| pair[1].at_ns > self.origin_ns)
            .filter(complains)
            .map(|pair| (second(pair[0].at_ns), second(pair[1].at_ns)))
            .chain(self.standstill.pauses())
            .collect()
    }

    /// Adds the spans in which no viewer received media, and counts those that the run did not make itself.
    fn add_blackouts(&self, workload: &WorkloadAggregator, summary: &mut WorkloadSummary) {
        if !workload.views_streams() {
            return;
        }
        let mut blackouts = workload.blackouts.found();
        for blackout in &mut blackouts {
            let until = blackout.until_seconds.unwrap_or(f64::MAX);
            let seconds = blackout.from_seconds as u32..until as u32;
            let publisher = self.publisher_of(workload);
            blackout.made_by_run = self.restarts.overlap(blackout.from_seconds, until)
                || publisher.is_some_and(|publisher| publisher.is_away_in(seconds));
        }
        let count = blackouts.iter().filter(|it| !it.made_by_run).count() as f64;
        let value =
            Value::Counter { total: count, per_second: count / f64::from(workload.total.seconds.max(1)) };
        let name = FIGURES[usize::from(BLACKOUTS.0)].name;
        summary.total.0.insert(name.to_owned(), FigureValue { unit: BaseUnit::Count, value });
        summary.outages.extend(blackouts);
        summary.outages.sort_by(|a, b| a.from_seconds.total_cmp(&b.from_seconds));
    }

    /// When the load was: up to the plan's end, or to where the run was stopped.
    fn span(&self, run: &RunFacts) -> machine::LoadSpan {
        let seen = self.cut.or(self.seen());
        machine::LoadSpan {
            origin_ns: self.origin_ns,
            started_at_seconds: run.started_at_seconds + run.base_seconds,
            // A run that was ended within its base has none.
            base_seconds: if self.samples.items().last().is_some_and(|last| last.at_ns >= self.origin_ns) {
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
    /// of a long run costs no more than one of a short run. `bitrate.ratio` and `frames.ratio` have a value in stages whose
    /// window is whole: until its end bytes of the crowd wait in the kernel.
    pub fn judge(&self, thresholds: &[Threshold]) -> Vec<ThresholdResult> {
        // Nothing that is watched is judged here.
        let machine = Environment::default();
        let figures_of = |(number, aggregator): (usize, &WorkloadAggregator)| {
            let unwatched = vec![None; aggregator.stages.len()];
            let published = self.published_in_windows(aggregator);
            let count_end = aggregator.count_end();
            let (mut summary, _) =
                aggregator.summary(number as u16, &published, &unwatched, &machine, None, count_end);
            for (row, stage) in summary.stages.iter_mut().zip(&aggregator.stages) {
                let is_whole = stage.window_end() == stage.span.window_end;
                row.expected_bps = row.expected_bps.filter(|_| is_whole);
                row.source_fps = row.source_fps.filter(|_| is_whole);
                row.window_is_void &= is_whole;
            }
            summary
        };
        let workloads: Vec<_> = self.workloads.iter().enumerate().map(figures_of).collect();
        thresholds.iter().map(|threshold| threshold.judge(&workloads)).collect()
    }

    /// From now on each stage's window is cut into slices of this many seconds, for [`Self::judge_slice`].
    pub fn cut_into_slices(&mut self, seconds: u32) {
        self.slice_seconds = Some(seconds.max(1));
    }

    /// Judges the slice of this workload that ended with `second`, if one did.
    pub fn judge_slice(&self, workload: u16, second: u32, thresholds: &[Threshold]) -> Option<Slice> {
        let length = self.slice_seconds?;
        let workload = self.workloads.get(usize::from(workload))?;
        let slices = workload.stages.iter().filter_map(|stage| Some((stage, stage.slice.as_ref()?)));
        let mut over =
            slices.filter(|(_, slice)| slice.totals.seconds == length && slice.end() == second + 1);
        let (stage, slice) = over.next()?;
        let source = self.published_for(workload, stage, stage.span.window_begin..slice.end());
        let own_faults =
            self.workloads.iter().filter(|it| !it.facts.background).map(WorkloadAggregator::own_faults).sum();
        Some(Slice { own_faults, ..workload.judge_slice(stage, slice, source, thresholds) })
    }

    fn usage(&self, stage: &StageAggregator) -> Option<UsageSummary> {
        if self.ends_with_its_messages() {
            return Usage::summary(self.samples.items(), Window { from_ns: self.origin_ns, to_ns: u64::MAX });
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
        Usage::summary(self.samples.items(), window)
    }

    fn series(&self, cores: f64, courses: &[Vec<MachinePoint>]) -> Vec<Point> {
        let mut machines = machine::seconds(courses, self.origin_ns);
        let usages: Vec<(u64, u64, Usage)> = Sample::spaced(self.samples.items())
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
            .items()
            .iter()
            .map(|(second, points)| {
                let usage = of_second(*second);
                let targets = usage.map_or(&[][..], |usage| &usage.targets);
                let mut workloads = points.clone();
                for (point, rate) in workloads.iter_mut().zip(&rates) {
                    point.expect(*rate);
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
