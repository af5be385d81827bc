//! The shell around the core: starts generator threads, observes, writes down, folds.

use crate::agents::{
    AgentEnd, AgentReport, AgentReports, CountedClients, Load, SecondCopier, SecondLines, WatchedElsewhere,
    read,
};
use crate::aggregator::Aggregator;
use crate::cells::Cells;
use crate::coordinator_message::{ConsumerEnd, CoordinatorMessage, LossReport, ThreadReport};
use crate::event::EventLine;
use crate::facts::WorkloadFacts;
use crate::generator::{self, GeneratorConfig};
use crate::ingest::intake;
use crate::ingest::{ConsumerError, Consuming};
use crate::plan::{Plan, PlannedSlot, Segment};
use crate::record::{RecordError, RecordWriter, RunHead};
use crate::scenario::Scenario;
use crate::summary::{Outcome, Role, RunFacts, Summary};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_clients::{ClientFailure, Workload};
use weir_metrics::{Moment, Recorder, Schema};
use weir_observe::{Observer, Sample, TargetState};
use weir_shard::clock;

/// Time between the threads' start and second 0.
const LEAD: Duration = Duration::from_millis(100);
/// The same with agents, which have to receive the moment first.
const LEAD_OF_AGENTS: Duration = Duration::from_secs(1);
/// Wall against monotonic clock, in one second, that is called a step.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// How long a run takes at the least that ends with its messages and watches processes: their CPU is not known over less than
/// half a second.
const LEAST: Duration = Duration::from_millis(520);
/// How long a generator thread's last interval is waited for after the drain.
const PATIENCE: Duration = Duration::from_secs(10);

/// A run that is ready to start.
pub struct Prepared {
    /// What was asked for.
    pub scenario: Scenario,
    /// When, by the scenario.
    pub plan: Plan,
    /// The workloads, in the scenario's order.
    pub workloads: Vec<(WorkloadFacts, Workload)>,
    /// The consumer, if a workload saves messages.
    pub consuming: Option<Consuming>,
    /// Seconds of the slices that windows are cut into for [`Aggregator::judge_slice`], if they are.
    pub slice_seconds: Option<u32>,
    /// Which generators make the load.
    pub load: Load,
    /// How to watch the target.
    pub observer: Observer,
    /// What was run, and where.
    pub facts: RunFacts,
}

/// A run that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run directory could not be made.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A thread could not be started, or its event loop failed.
    #[error("generator thread {thread}: {source}")]
    Thread {
        /// Its number.
        thread: usize,
        /// The system's words.
        source: std::io::Error,
    },
    /// The consumer that is to save messages could not be made ready.
    #[error(transparent)]
    Consumer(#[from] ConsumerError),
    /// It was interrupted before the consumer was ready.
    #[error("interrupted")]
    Interrupted,
}

/// What a live view gets of a run.
pub trait Watcher {
    /// A second is complete; `aggregator` holds all up to it.
    fn second(&mut self, second: u32, aggregator: &Aggregator);
    /// Called a few times a second.
    fn tick(&mut self, elapsed: Duration);
    /// An agent should have reported its next second this long ago. Called for each that goes on, a few times a second.
    fn lag(&mut self, _agent: &str, _behind: Duration) {}
    /// Whether the run has shown what it was made for: it ends then, before its plan does, as completed.
    fn has_seen_enough(&self) -> bool {
        false
    }
}

/// Runs to the plan's end, or until `interrupt` is set; writes the run directory; sums up.
///
/// # Errors
/// The run directory or a thread could not be made. Once the run goes, what fails to be written is
/// a warning in the summary, not an end.
pub fn run(
    prepared: Prepared,
    directory: &Path,
    interrupt: &Arc<AtomicBool>,
    watcher: &mut dyn Watcher,
) -> Result<Summary, RunError> {
    let Prepared { scenario, plan, workloads, consuming, slice_seconds, load, mut observer, mut facts } =
        prepared;
    let stop = Arc::new(AtomicBool::new(false));
    let (reports, received) = channel();
    let leave_last: Vec<bool> = workloads.iter().map(|(_, workload)| workload.viewers_leave_last).collect();
    let workload_facts: Vec<WorkloadFacts> = workloads.iter().map(|(facts, _)| facts.clone()).collect();
    let cells = Cells::of(workloads.iter().map(|(_, workload)| workload));
    let segments = match load {
        Load::Elsewhere(_) => Vec::new(),
        _ => segments(&plan, &workload_facts, &leave_last, &scenario),
    };
    let patience = consuming.as_ref().map_or(PATIENCE, |it| PATIENCE + it.messages.timeout * 2);
    // The consumer is ready before the first message.
    let intake = match consuming {
        Some(consuming) => {
            let schemas = cells.schemas().collect();
            Some(take_in(consuming, schemas, segments.len(), &stop, interrupt, &reports)?)
        }
        None => None,
    };
    // The machine is read before the load: second 0 waits for it.
    let base = scenario.base();
    let (origin, segment, copier, agents) = match load {
        Load::Here => (clock::now() + LEAD + base, None, None, None),
        Load::AsAgent(run) => (run.origin, Some(run.segment), Some(SecondCopier::new(run.seconds)), None),
        Load::Elsewhere(agents) => (clock::now() + LEAD_OF_AGENTS + base, None, None, Some(agents)),
    };
    let losses_allowed = agents.as_ref().map_or(0, |agents| agents.losses_allowed());
    let watched = agents.as_ref().map(|agents| agents.watched()).unwrap_or_default();
    let parts = agents.as_ref().map(|agents| agents.segments()).unwrap_or_default();
    facts.agents = agents.iter().flat_map(|agents| agents.facts()).collect();
    let head = RunHead {
        run: facts.clone(),
        origin_ns: origin.as_nanos(),
        scenario: scenario.without_secrets(),
        workloads: workload_facts.clone(),
        segment,
    };
    let writer = RecordWriter::create(directory, &head)?;
    let schemas: Vec<_> = workloads.iter().map(|(_, workload)| workload.schema).collect();
    let mut aggregator = Aggregator::new(
        plan.clone(),
        workload_facts.iter().cloned().zip(schemas.clone()).collect(),
        origin.as_nanos(),
    );
    if let Some(seconds) = slice_seconds {
        aggregator.cut_into_slices(seconds);
    }
    let workloads: Arc<[Workload]> = workloads.into_iter().map(|(_, workload)| workload).collect();

    let mut threads = Vec::new();
    for (number, (plan, background)) in segments.into_iter().enumerate() {
        let config = GeneratorConfig {
            plan,
            workloads: workloads.clone(),
            origin,
            drain: scenario.drain(),
            stop: stop.clone(),
            reports: reports.clone(),
            number,
            background,
        };
        let thread = std::thread::Builder::new()
            .name(format!("weir-shard-{number}"))
            .spawn(move || LossReport::watch(config.reports.clone(), number, || generator::run(config)))
            .map_err(|source| RunError::Thread { thread: number, source })?;
        threads.push(thread);
    }
    let mut shards = threads.len();
    if let Some(agents) = agents {
        shards += facts.agents.len();
        let thread = agents.begin(origin, stop.clone(), AgentReports(reports.clone()));
        threads.push(thread.map_err(|source| RunError::Thread { thread: threads.len(), source })?);
    }
    drop(reports);
    if let Some((thread, begin)) = intake {
        // One that has ended has said so.
        let _ = begin.send((origin, plan.length));
        threads.push(thread);
        shards += 1;
    }
    let mut coordinator = Coordinator {
        origin,
        workloads: workloads.clone(),
        show_keys: scenario.show_keys,
        writer: Some(writer),
        aggregator,
        pending: BTreeMap::new(),
        cells,
        copier,
        losses_allowed,
        watched,
        agents: facts.agents.iter().map(|agent| agent.name.clone()).collect(),
        segments: parts,
        counted: vec![vec![CountedClients::default(); workloads.len()]; facts.agents.len()],
        lost: 0,
        lost_threads: Vec::new(),
        ended: vec![false; shards],
        due: vec![0; shards],
        deserted: vec![false; shards],
        trouble: Vec::new(),
        taken: None,
        wall: wall_offset(),
    };
    let longest = plan.length + scenario.drain() + patience;
    let outcome = coordinator.work(&received, &mut observer, &scenario, interrupt, &stop, watcher, longest);
    stop.store(true, Ordering::Relaxed);
    let failed = join(threads, &mut coordinator);
    coordinator.write(RecordWriter::finish);
    facts.duration_seconds = clock::now().since(origin).as_secs_f64();
    let mut summary = coordinator.aggregator.finish(facts, outcome, &scenario);
    summary.warnings.append(&mut coordinator.trouble);
    match failed {
        Some(error) if coordinator.aggregator.latest().is_none() => Err(error),
        _ => Ok(summary),
    }
}

/// The thread of a workload that saves, and where to say when second 0 begins.
type IntakeThread = (JoinHandle<std::io::Result<()>>, Sender<(Moment, Duration)>);

/// Starts the thread of a workload that saves; returns when its consumer is there.
fn take_in(
    consuming: Consuming,
    schemas: Vec<Schema>,
    number: usize,
    stop: &Arc<AtomicBool>,
    interrupt: &Arc<AtomicBool>,
    reports: &Sender<CoordinatorMessage>,
) -> Result<IntakeThread, RunError> {
    let ((ready, is_ready), (begin, begins)) = (channel(), channel());
    let config = intake::IntakeConfig {
        schemas,
        stop: stop.clone(),
        interrupt: interrupt.clone(),
        reports: reports.clone(),
        number,
        ready,
        begin: begins,
    };
    let thread = std::thread::Builder::new()
        .name("weir-intake".to_owned())
        .spawn(move || {
            LossReport::watch(config.reports.clone(), number, || {
                intake::run(consuming, config);
                Ok(())
            })
        })
        .map_err(|source| RunError::Thread { thread: number, source })?;
    match is_ready.recv() {
        Ok(there) => there?,
        Err(_) => return Err(RunError::Interrupted),
    }
    Ok((thread, begin))
}

/// Viewers are shared out over the shards; publishers have one of their own, so that the pace of frames is not
/// disturbed. They leave after their viewers, which would else see their streams end; where messages are to be received
/// to the last one (`leave_last`), they leave before them. A background has a shard of its own too, marked `true`.
fn segments(
    plan: &Plan,
    workloads: &[WorkloadFacts],
    leave_last: &[bool],
    scenario: &Scenario,
) -> Vec<(Plan, bool)> {
    let of = |number: u16| &workloads[usize::from(number)];
    let mut viewers = plan.only(|number| of(number).role == Role::Play && !of(number).background);
    let mut publishers = plan.only(|number| of(number).role == Role::Publish && !of(number).background);
    let background = plan.only(|number| of(number).background);
    // Of a part of a plan the others may be on another machine.
    let is_there = |role| workloads.iter().any(|it| it.role == role && !it.background);
    if is_there(Role::Play) && is_there(Role::Publish) {
        let grace = scenario.drain() / 2;
        for (side, are_viewers) in [(&mut viewers, true), (&mut publishers, false)] {
            let later = |slot: &&mut PlannedSlot| leave_last[usize::from(slot.workload)] == are_viewers;
            let at_the_end = side.slots.iter_mut().filter(|slot| slot.stop == plan.length).filter(later);
            if at_the_end.map(|slot| slot.stop += grace).count() > 0 {
                side.length += grace;
            }
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shards = scenario.shards.map_or((cores / 2).max(1), |shards| shards.max(1) as usize);
    let mut segments = Vec::new();
    if !publishers.slots.is_empty() || viewers.slots.is_empty() {
        segments.push((publishers, false));
    }
    if !viewers.slots.is_empty() {
        segments.extend((0..shards).map(|i| (viewers.segment(i, shards), false)));
    }
    if !background.slots.is_empty() {
        segments.push((background, true));
    }
    segments
}

fn join(threads: Vec<JoinHandle<std::io::Result<()>>>, coordinator: &mut Coordinator) -> Option<RunError> {
    let mut failed = None;
    for (thread, handle) in threads.into_iter().enumerate() {
        let result =
            handle.join().unwrap_or_else(|_| Err(std::io::Error::other("it panicked; please report this")));
        if let Err(source) = result {
            // The verdict has the reason for one that reported its loss.
            if !coordinator.lost_threads.contains(&thread) {
                coordinator.trouble.push(format!("generator thread {thread} failed: {source}"));
            }
            failed = Some(RunError::Thread { thread, source });
        }
    }
    failed
}

/// Nanoseconds of the wall clock over the monotonic one. Both are read several times: a thread that has
/// to wait for a CPU between the two would see a step that never was.
fn wall_offset() -> i128 {
    let offset = || {
        let before = clock::now();
        let wall = clock::wall_nanos();
        (clock::now().since(before), i128::from(wall) - i128::from(before.as_nanos()))
    };
    let tightest = (0..5).map(|_| offset()).min_by_key(|(taken, _)| *taken);
    tightest.map_or(0, |(_, offset)| offset)
}

/// The coordinator of a run: intervals come in, lines go out.
struct Coordinator {
    origin: Moment,
    workloads: Arc<[Workload]>,
    /// Whether keys of RTMP streams may be written down.
    show_keys: bool,
    writer: Option<RecordWriter>,
    aggregator: Aggregator,
    /// Seconds that not every shard has reported.
    pending: BTreeMap<u32, Vec<Recorder>>,
    /// Whose figures those of a report are.
    cells: Cells,
    /// What copies the lines of the run directory for the coordinator, in an agent's run.
    copier: Option<SecondCopier>,
    /// How many agents may be lost, and how many were.
    losses_allowed: u16,
    /// The watched processes of other machines.
    watched: WatchedElsewhere,
    /// The names of the agents, which are its first shards.
    agents: Vec<String>,
    /// Their parts.
    segments: Vec<Segment>,
    /// What each agent has counted, of each workload.
    counted: Vec<Vec<CountedClients>>,
    lost: u16,
    /// Threads of this process that ended without their last report.
    lost_threads: Vec<usize>,
    /// Whether each shard has reported its end. A shard is a thread of this process, or an agent.
    ended: Vec<bool>,
    /// The second that each shard is to report next.
    due: Vec<u32>,
    /// Whether each shard's last word was that it has no client, and none to come.
    deserted: Vec<bool>,
    /// How the workload that saves messages has ended, once it has.
    taken: Option<Outcome>,
    trouble: Vec<String>,
    wall: i128,
}

impl Coordinator {
    #[allow(clippy::too_many_arguments)]
    fn work(
        &mut self,
        received: &Receiver<CoordinatorMessage>,
        observer: &mut Observer,
        scenario: &Scenario,
        interrupt: &Arc<AtomicBool>,
        stop: &Arc<AtomicBool>,
        watcher: &mut dyn Watcher,
        longest: Duration,
    ) -> Outcome {
        let mut outcome = Outcome::Completed;
        let mut next_sample = self.origin - scenario.base();
        let mut deserted = false;
        while self.ended.contains(&false) {
            let now = clock::now();
            if now >= next_sample {
                let died = self.observe(observer.sample(now.as_nanos()), now);
                next_sample = next_sample + Duration::from_secs(1);
                if died && outcome == Outcome::Completed && !stop.load(Ordering::Relaxed) {
                    outcome = Outcome::TargetDied;
                    self.stop(stop);
                }
            }
            // Said after the sample of that moment: that the target died explains more.
            if deserted && outcome == Outcome::Completed && !stop.load(Ordering::Relaxed) {
                // Clients that ended by themselves have done what there was to do. Where each client has a count, the run ends
                // when the last has reached it, even if others failed on the way, which thresholds judge.
                let is_done = self.aggregator.failed() == 0 || self.aggregator.has_reached_counts();
                outcome = if is_done { Outcome::Completed } else { Outcome::NobodyLeft };
                self.stop(stop);
            }
            if self.lost > self.losses_allowed && !stop.load(Ordering::Relaxed) {
                // Its clients are missing: what comes now is another load than was asked for.
                outcome = Outcome::AgentLost;
                self.stop(stop);
            }
            let is_long_enough = scenario.watch.is_empty() || now.since(self.origin) >= LEAST;
            if let Some(taken) = self.taken.take_if(|_| is_long_enough)
                && outcome == Outcome::Completed
                && !stop.load(Ordering::Relaxed)
            {
                outcome = taken;
                self.stop(stop);
            }
            if interrupt.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                // A run without an end of its own is complete when it is stopped.
                if !scenario.is_endless() {
                    outcome = Outcome::Interrupted;
                }
                self.stop(stop);
            }
            if now.since(self.origin) > longest {
                self.trouble
                    .push("a generator thread did not report its end; its last figures are missing".into());
                break;
            }
            let longest_wait = Duration::from_millis(if self.taken.is_some() { 20 } else { 250 });
            let patience = next_sample.since(now).min(longest_wait);
            let arrival = received.recv_timeout(patience);
            self.lags(clock::now()).for_each(|(agent, behind)| watcher.lag(agent, behind));
            match arrival {
                Ok(arrival) => {
                    for second in self.take_arrival(arrival) {
                        watcher.second(second, &self.aggregator);
                        deserted |= self.nobody_is_left(second);
                        if outcome == Outcome::Completed
                            && !stop.load(Ordering::Relaxed)
                            && let Some(threshold) = self.to_abort(scenario)
                        {
                            outcome = Outcome::Aborted(threshold);
                            self.stop(stop);
                        }
                    }
                    if watcher.has_seen_enough() && !stop.load(Ordering::Relaxed) {
                        self.stop(stop);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            watcher.tick(clock::now().since(self.origin));
        }
        if self.lost > self.losses_allowed && outcome == Outcome::Completed {
            outcome = Outcome::AgentLost;
        }
        for second in self.pending.keys().copied().collect::<Vec<_>>() {
            self.complete(second);
        }
        let now = clock::now();
        self.observe(observer.last_sample(now.as_nanos()), now);
        outcome
    }

    /// How long ago each agent that goes on should have reported its next second. The run's seconds wait for the slowest.
    fn lags(&self, now: Moment) -> impl Iterator<Item = (&str, Duration)> {
        let agents = self.agents.iter().zip(&self.due).zip(&self.ended);
        agents.filter(|(_, ended)| !**ended).map(move |((agent, due), _)| {
            let complete = Duration::from_secs(u64::from(*due) + 1);
            (agent.as_str(), now.since(self.origin).saturating_sub(complete))
        })
    }

    /// Ends the run before its plan does.
    fn stop(&mut self, stop: &AtomicBool) {
        let at_seconds = clock::now().since(self.origin).as_secs_f64();
        self.write_event(&EventLine::Stopped { at_seconds });
        stop.store(true, Ordering::Relaxed);
    }

    /// Whether clients that the plan still wants are all over, so that the rest of the run would measure nothing.
    fn nobody_is_left(&self, second: u32) -> bool {
        self.deserted.iter().all(|deserted| *deserted) && self.aggregator.wants_clients_after(second)
    }

    /// The first aborting threshold that does not hold, judged on all up to now.
    fn to_abort(&self, scenario: &Scenario) -> Option<String> {
        if scenario.abort.is_empty() {
            return None;
        }
        let results = self.aggregator.judge(&scenario.abort);
        let failed = results.into_iter().find(|result| result.value.is_some() && !result.passed);
        failed.map(|result| result.expression)
    }

    /// Takes a sample of the target, the host and weir; says whether the target has died.
    fn observe(&mut self, mut sample: Sample, now: Moment) -> bool {
        sample.targets.append(&mut self.watched.latest());
        let died = !sample.targets.is_empty()
            && sample.targets.iter().all(|target| target.state == TargetState::Died);
        self.write(|writer| writer.sample(&sample));
        self.aggregator.sample(sample);
        let wall = wall_offset();
        let step = wall - std::mem::replace(&mut self.wall, wall);
        if step.unsigned_abs() > CLOCK_STEP.as_nanos() {
            self.write_event(&EventLine::ClockStep {
                at_seconds: now.since(self.origin).as_secs_f64(),
                by_seconds: step as f64 * 1e-9,
            });
        }
        died
    }

    /// Takes what came; the seconds that it completes, in order.
    fn take_arrival(&mut self, arrival: CoordinatorMessage) -> Vec<u32> {
        match arrival {
            CoordinatorMessage::Thread(report) => self.take(report),
            CoordinatorMessage::ThreadLost(thread, words) => self.lose_thread(thread, words),
            CoordinatorMessage::Agent(agent, report) => self.take_from_agent(agent, report),
        }
        let open = self.ended.iter().zip(&self.due).filter(|(ended, _)| !**ended);
        let first_open = open.map(|(_, due)| *due).min().unwrap_or(u32::MAX);
        let complete: Vec<u32> = self.pending.range(..first_open).map(|(second, _)| *second).collect();
        complete.iter().for_each(|second| self.complete(*second));
        complete
    }

    /// Takes a shard's interval.
    fn take(&mut self, report: ThreadReport) {
        self.deserted[report.shard] = report.deserted;
        for failure in &report.failures {
            let line = self.line(failure);
            self.write_event(&line);
        }
        for gap in &report.gaps {
            self.write_event(&EventLine::Gap {
                at_seconds: gap.at.since(self.origin).as_secs_f64(),
                workload: gap.planned.workload,
                client: gap.planned.number(),
                channel: gap.target,
                mark: gap.mark,
                place_seconds: gap.place as f64 * 1e-6,
            });
        }
        for account in report.client_records {
            self.write_event(&EventLine::Account {
                at_seconds: account.at.since(self.origin).as_secs_f64(),
                workload: account.planned.workload,
                client: account.planned.number(),
                channel: account.target,
                since_seconds: account.since.map(|since| since.since(self.origin).as_secs_f64()),
                failure: account.failure,
                numbers: account.numbers,
            });
        }
        if let Some((workload, taken)) = report.consumer_end {
            let at_seconds = clock::now().since(self.origin).as_secs_f64();
            let (line, outcome) = match taken {
                ConsumerEnd::Over(ingested) => {
                    (EventLine::Ingested { at_seconds, workload, ingested }, Outcome::Completed)
                }
                ConsumerEnd::Failed(trouble) => {
                    (EventLine::Trouble { at_seconds, words: trouble.to_string() }, Outcome::TargetDied)
                }
            };
            self.taken = Some(outcome);
            self.write_event(&line);
        }
        self.add(report.second, report.figures);
        self.due[report.shard] = report.second + 1;
        self.ended[report.shard] |= report.last;
    }

    /// A thread is gone, and its clients with it: what the others do is another load than was asked for.
    fn lose_thread(&mut self, thread: usize, words: String) {
        let at_seconds = clock::now().since(self.origin).as_secs_f64();
        self.write_event(&EventLine::ThreadLost { at_seconds, thread, words });
        self.lost_threads.push(thread);
        (self.ended[thread], self.deserted[thread]) = (true, true);
    }

    /// Adds what a shard counted in a second.
    fn add(&mut self, second: u32, figures: Vec<Recorder>) {
        match self.pending.entry(second) {
            Entry::Vacant(entry) => drop(entry.insert(figures)),
            Entry::Occupied(mut entry) => {
                entry.get_mut().iter_mut().zip(&figures).for_each(|(sum, more)| sum.merge(more));
            }
        }
    }

    /// Takes what came from an agent. One that has ended, or was given up, has no more to say.
    fn take_from_agent(&mut self, agent: u16, report: AgentReport) {
        let shard = usize::from(agent);
        if self.ended.get(shard).is_none_or(|ended| *ended) {
            return;
        }
        let at_seconds = clock::now().since(self.origin).as_secs_f64();
        match report {
            AgentReport::Begun { late_seconds, clock_bound_seconds } => {
                self.write_event(&EventLine::AgentBegun { agent, late_seconds, clock_bound_seconds });
            }
            AgentReport::Second(lines) => {
                if let Err(words) = self.take_second(agent, &lines) {
                    self.lose(agent, at_seconds, format!("it sent what is no second: {words}"));
                }
            }
            AgentReport::Ended(AgentEnd { cut_short: Some(words), .. }) => {
                self.lose(agent, at_seconds, words);
            }
            AgentReport::Ended(end) => {
                (self.ended[shard], self.deserted[shard]) = (true, true);
                self.write_event(&EventLine::AgentEnded { agent, end: Box::new(end) });
            }
            AgentReport::Lost(words) => self.lose(agent, at_seconds, words),
            AgentReport::Trouble(words) => self.trouble.push(words),
        }
    }

    /// Takes a part of an agent's second.
    fn take_second(&mut self, agent: u16, lines: &SecondLines) -> Result<(), String> {
        let schemas: Vec<_> = self.workloads.iter().map(|workload| workload.schema).collect();
        if lines.second < self.due[usize::from(agent)] {
            return Err(format!("second {}, which it has sent before", lines.second));
        }
        let intervals = read(lines, self.aggregator.plan(), &schemas)?;
        lines.events.iter().filter(|it| it.is_of_clients()).for_each(|it| self.write_event(it));
        for interval in intervals.iter().filter(|it| it.key.server.is_none()) {
            let counted = &mut self.counted[usize::from(agent)][usize::from(interval.key.workload)];
            counted.add(&interval.figures);
        }
        for interval in &intervals {
            self.write(|writer| writer.interval_of(Some(agent), interval));
        }
        if !intervals.is_empty() {
            self.add(lines.second, self.cells.figures(&intervals));
        }
        if lines.is_whole {
            self.due[usize::from(agent)] = lines.second + 1;
        }
        Ok(())
    }

    /// Goes on without an agent, if that is allowed.
    fn lose(&mut self, agent: u16, at_seconds: f64, words: String) {
        self.ended[usize::from(agent)] = true;
        self.deserted[usize::from(agent)] = true;
        self.lost += 1;
        let is_allowed = self.lost <= self.losses_allowed;
        let segment = self.segments.get(usize::from(agent)).cloned();
        let segment = segment.unwrap_or_else(|| Segment::equal(agent, self.counted.len() as u16));
        let open = self.counted[usize::from(agent)].iter().map(CountedClients::open).collect();
        self.write_event(&EventLine::AgentLost { at_seconds, agent, segment, open, is_allowed, words });
    }

    fn complete(&mut self, second: u32) {
        let Some(figures) = self.pending.remove(&second) else { return };
        let is_written = !self.counted.is_empty();
        for interval in self.cells.intervals(second, &figures) {
            // What agents counted was written down as it came.
            if !is_written {
                self.write(|writer| writer.interval(&interval));
            }
            self.copier.iter_mut().for_each(|copier| copier.interval(&interval));
            self.aggregator.interval(&interval);
        }
        self.copier.iter_mut().for_each(|copier| copier.complete(second));
        self.write(RecordWriter::flush);
    }

    fn line(&self, remark: &ClientFailure) -> EventLine {
        let targets = self.workloads[usize::from(remark.planned.workload)].targets();
        // What a server says may quote what it was asked for.
        let target = targets.get(remark.planned.client as usize % targets.len().max(1));
        let words = match target.filter(|_| !self.show_keys) {
            Some(target) => target.url().hide_in(&remark.words),
            None => remark.words.clone(),
        };
        EventLine::Failure {
            at_seconds: remark.at.since(self.origin).as_secs_f64(),
            workload: remark.planned.workload,
            client: remark.planned.number(),
            failure: remark.failure,
            words,
        }
    }

    fn write_event(&mut self, event: &EventLine) {
        self.write(|writer| writer.event(event));
        self.copier.iter_mut().for_each(|copier| copier.event(event));
        self.aggregator.event(event);
    }

    /// Writes, or gives up writing at the first refusal and says so: a full disk ends no run.
    fn write(&mut self, write: impl FnOnce(&mut RecordWriter) -> Result<(), RecordError>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.trouble.push(format!("{error}; the run directory ends here, the figures above are whole"));
            self.writer = None;
        }
    }
}
