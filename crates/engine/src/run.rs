//! The shell around the core: starts generator threads, observes, writes down, folds.

pub(crate) mod cells;
mod coordinator;
pub(crate) mod coordinator_message;
pub(crate) mod generator;
pub mod restarts;
mod watcher;

pub use watcher::{Unseen, Watcher};

use crate::agents::{AgentReports, CountedClients, EventRoom, Load, SecondCopier};
use crate::aggregator::Aggregator;
use crate::ingest::{ConsumerError, Consuming, Share, intake};
use crate::plan::{Plan, PlannedSlot};
use crate::record::{RecordError, RecordWriter, RunHead};
use crate::scenario::Scenario;
use crate::scenario::facts::WorkloadFacts;
use crate::summary::{Role, RunFacts, Summary};
use cells::Cells;
use coordinator::{Coordinator, wall_offset};
use coordinator_message::{CoordinatorMessage, LossReport};
use generator::GeneratorConfig;
use restarts::{Absence, RestartScript, Servers};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_clients::Workload;
use weir_metrics::{Moment, Schema};
use weir_observe::Sampler;
use weir_shard::clock;

/// Time between the threads' start and second 0.
const LEAD: Duration = Duration::from_millis(100);
/// The same with agents, which have to receive the moment first.
const LEAD_OF_AGENTS: Duration = Duration::from_secs(1);
/// How long a generator thread's last interval is waited for after the drain.
const LAST_INTERVAL_TIMEOUT: Duration = Duration::from_secs(10);

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
    /// The servers that the scenario restarts while the run goes on, if it does.
    pub servers: Option<Box<dyn Servers>>,
    /// How to watch the target.
    pub sampler: Sampler,
    /// What was run, and where.
    pub facts: RunFacts,
}

/// A run that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
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
) -> Result<Summary, RunFault> {
    let Prepared {
        scenario,
        plan,
        workloads,
        consuming,
        slice_seconds,
        load,
        servers,
        mut sampler,
        mut facts,
    } = prepared;
    let stop = Arc::new(AtomicBool::new(false));
    let (reports, received) = channel();
    let leave_last: Vec<bool> = workloads.iter().map(|(_, workload)| workload.viewers_leave_last).collect();
    let workload_facts: Vec<WorkloadFacts> = workloads.iter().map(|(facts, _)| facts.clone()).collect();
    let cells = Cells::of(workloads.iter().map(|(_, workload)| workload));
    let segments = match load {
        Load::Elsewhere(_) => Vec::new(),
        _ => segments(&plan, &workload_facts, &leave_last, &scenario),
    };
    let patience = consuming
        .as_ref()
        .map_or(LAST_INTERVAL_TIMEOUT, |it| LAST_INTERVAL_TIMEOUT + it.messages.timeout * 2);
    let gathered = consuming.as_ref().and_then(|it| match &it.messages.share {
        Share::Agents(counts) => Some(counts.clone()),
        Share::Whole | Share::Part => None,
    });
    // Agents are the first of the shards.
    let first_shards = match &load {
        Load::Elsewhere(agents) => agents.facts().len(),
        _ => segments.len(),
    };
    // The consumer is ready before the first message.
    let intake = match consuming {
        Some(consuming) => {
            let schemas = cells.schemas().collect();
            Some(take_in(consuming, schemas, first_shards, &stop, interrupt, &reports)?)
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
    let of_all = segments.len();
    for (number, (plan, background)) in segments.into_iter().enumerate() {
        let config = GeneratorConfig {
            plan,
            workloads: workloads.clone(),
            slice_seconds,
            origin,
            drain: scenario.drain(),
            stop: stop.clone(),
            reports: reports.clone(),
            number,
            threads: of_all,
            background,
        };
        let thread = std::thread::Builder::new()
            .name(format!("weir-shard-{number}"))
            .spawn(move || LossReport::watch(config.reports.clone(), number, || generator::run(config)))
            .map_err(|source| RunFault::Thread { thread: number, source })?;
        threads.push(thread);
    }
    let mut shards = threads.len();
    if let Some(agents) = agents {
        shards += facts.agents.len();
        let thread = agents.begin(origin, stop.clone(), AgentReports(reports.clone()));
        threads.push(thread.map_err(|source| RunFault::Thread { thread: threads.len(), source })?);
    }
    let absence = Absence::default();
    let restarts = servers.filter(|_| !scenario.during.is_empty()).map(|servers| RestartScript {
        restarts: scenario.during.clone(),
        servers,
        origin,
        stop: stop.clone(),
        absence: absence.clone(),
        reports: reports.clone(),
    });
    drop(reports);
    if let Some((thread, begin)) = intake {
        // One that has ended has said so.
        let _ = begin.send((origin, plan.length));
        threads.push(thread);
        shards += 1;
    }
    if let Some(script) = restarts {
        let thread = std::thread::Builder::new().name("weir-restarts".to_owned());
        let thread = thread.spawn(move || {
            script.run();
            Ok(())
        });
        threads.push(thread.map_err(|source| RunFault::Thread { thread: threads.len(), source })?);
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
        event_rooms: vec![EventRoom::default(); facts.agents.len()],
        lost: 0,
        lost_threads: Vec::new(),
        ended: vec![false; shards],
        due: vec![0; shards],
        deserted: vec![false; shards],
        trouble: Vec::new(),
        taken: None,
        gathered,
        absence,
        wall: wall_offset(),
    };
    let longest = plan.length + scenario.drain() + patience;
    let outcome = coordinator.work(&received, &mut sampler, &scenario, interrupt, &stop, watcher, longest);
    stop.store(true, Ordering::Relaxed);
    let failed = join(threads, &mut coordinator);
    // A server that was away at the end was started again after it, and a generator thread without CPU has reported late.
    received.try_iter().for_each(|message| drop(coordinator.take_arrival(message)));
    coordinator.complete_all();
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
) -> Result<IntakeThread, RunFault> {
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
        .map_err(|source| RunFault::Thread { thread: number, source })?;
    match is_ready.recv() {
        Ok(there) => there?,
        Err(_) => return Err(RunFault::Interrupted),
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

fn join(threads: Vec<JoinHandle<std::io::Result<()>>>, coordinator: &mut Coordinator) -> Option<RunFault> {
    let mut failed = None;
    for (thread, handle) in threads.into_iter().enumerate() {
        let result =
            handle.join().unwrap_or_else(|_| Err(std::io::Error::other("it panicked; please report this")));
        if let Err(source) = result {
            // The verdict has the reason for one that reported its loss.
            if !coordinator.lost_threads.contains(&thread) {
                coordinator.trouble.push(format!("generator thread {thread} failed: {source}"));
            }
            failed = Some(RunFault::Thread { thread, source });
        }
    }
    failed
}
