//! Has agents make the load of a run: calls them, offers each its part, and passes on what they send.

use super::{of_nats, offer, placement};
use crate::session::Session;
use crate::{ErrorKind, RunError, prepare};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_agents::frame::{AgentName, CommonClock, Hello, Instance, Offer, Watched};
use weir_agents::nats::Link;
use weir_agents::offset;
use weir_agents::roster::Roster;
use weir_agents::{Coordinator, CoordinatorCommand, CoordinatorEvent, NatsServer, connect};
use weir_engine::agents::{AgentFacts, AgentReport, AgentReports, Agents, Load, WatchedElsewhere};
use weir_engine::ingest::ConsumerError;
use weir_engine::plan::{Segment, apportion};
use weir_engine::record::kernel_clock::KernelClock;
use weir_engine::run::Prepared;
use weir_engine::scenario::{IntoSpec, Scenario, WorkloadSpec};
use weir_ingest::Destination;
use weir_metrics::{Moment, several};
use weir_observe::TargetEnvironment;
use weir_shard::clock;

/// How long agents are waited for.
const AGENTS_TIMEOUT: Duration = Duration::from_secs(60);
/// How long they have to get ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long the first may be the only one that is looked at.
const FIRST_ANSWERS: Duration = Duration::from_millis(500);
/// How long an agent may take to end, over its drain.
const END_WITHIN: Duration = Duration::from_secs(15);
const TICK: Duration = Duration::from_millis(50);

/// Has the load of what is prepared made by agents, if that is asked for.
///
/// # Errors
/// Too few are there, or one will not run its part.
pub(crate) fn gather(mut prepared: Prepared, session: &mut Session<'_>) -> Result<Prepared, RunError> {
    let Some(settings) = session.agents.clone() else { return Ok(prepared) };
    let (server, interrupt) = (settings.server, session.interrupt);
    let instance = fastrand::u64(..);
    let machine = Coordinator::new(instance, format!("{instance:016x}"));
    let link = connect(&server, machine).map_err(|error| of_nats(&error))?;
    check_secrets(&prepared.scenario, &server).map_err(RunError::with(ErrorKind::Usage))?;
    let offer = offer::of(&prepared).map_err(RunError::with(ErrorKind::Usage))?;
    let [free, watching] = call(&link, usize::from(settings.count), session)?;
    let thresholds = || prepared.scenario.thresholds.iter().chain(&prepared.scenario.abort);
    if free.len() > 1 {
        let checked = thresholds().map(|it| prepare::check_lost(it, &prepared.scenario));
        checked.collect::<Result<(), _>>().map_err(|line| RunError::new(ErrorKind::Usage, line))?;
    }
    if watching.is_empty() {
        let checked = thresholds().map(|it| prepare::check_watched(it, &prepared.scenario));
        checked.collect::<Result<Vec<_>, _>>().map_err(|line| {
            let more = "; or have an agent on its machine do it: weir agent --join URL --watch name=nginx";
            RunError::new(ErrorKind::Usage, line + more)
        })?;
    }
    let there: Vec<_> = free.iter().map(|(name, _, hello)| (name, hello)).collect();
    let mut specs = prepared.scenario.workloads.clone();
    specs.resize(prepared.workloads.len(), WorkloadSpec::default());
    let places = placement::places(&specs, &there).map_err(RunError::with(ErrorKind::Usage))?;
    let capacities: Vec<_> = there.iter().map(|(_, hello)| placement::capacity(hello)).collect();
    let segments = apportion::segments(&prepared.plan, &capacities, &places);
    let facts = there.iter().map(|(name, hello)| facts(name, hello)).collect();
    // The tables are there, and empty if they are to be, before an agent sees them.
    if let Some(consuming) = prepared.consuming.take() {
        let consuming = consuming.ready(interrupt).map_err(|error| of_consumer(&error))?;
        prepared.consuming = Some(consuming.ok_or_else(interrupted)?);
    }
    let watched = WatchedElsewhere::of(watching.len());
    let watchers = watching.iter().map(|(name, ..)| name.to_string()).collect();
    let parts = segments.clone().into_iter();
    let offers = parts.zip(free).map(|(segment, (name, instance, _))| {
        (name, instance, Offer { segment: Some(segment), ..offer.clone() })
    });
    // Those that watch need to know nothing of the load.
    let to_watch =
        || Offer { version: offer.version.clone(), figures: offer.figures.clone(), ..Offer::default() };
    let offers = offers.chain(watching.into_iter().map(|(name, instance, _)| (name, instance, to_watch())));
    link.send(CoordinatorCommand::Offer(offers.collect()));
    let (losses_allowed, drain) = (settings.losses_allowed, prepared.scenario.drain());
    let gathered = OfferedAgents { link, facts, segments, watchers, watched, losses_allowed, drain };
    let described = gathered.wait_until_ready(interrupt)?;
    prepared.facts.targets.extend(described);
    Ok(Prepared { load: Load::Elsewhere(Box::new(gathered)), ..prepared })
}

/// Refuses to send the password of a database where others may read it.
fn check_secrets(scenario: &Scenario, nats: &NatsServer) -> Result<(), String> {
    let has_password = |into: &IntoSpec| {
        let save = into.save.as_deref().and_then(|save| save.parse::<Destination>().ok());
        into.save_password_file.is_some() || save.is_some_and(|it| it.has_password())
    };
    let is_safe = nats.url.starts_with("tls://") || nats.is_here();
    if !is_safe && scenario.workloads.iter().filter_map(|it| it.into.as_ref()).any(has_password) {
        return Err("the password of the database would be sent to the agents in the clear; have NATS speak TLS (tls://), or give \
                    it to the agents themselves in their environment (PGPASSWORD, CLICKHOUSE_PASSWORD, KAFKA_PASSWORD)"
            .to_owned());
    }
    Ok(())
}

fn facts(name: &AgentName, hello: &Hello) -> AgentFacts {
    AgentFacts {
        name: name.to_string(),
        hostname: hello.hostname.clone(),
        cores: hello.cores,
        labels: hello.labels.clone(),
        clock: hello.clock,
    }
}

fn of_consumer(error: &ConsumerError) -> RunError {
    RunError::new(
        if error.is_of_scenario { ErrorKind::Scenario } else { ErrorKind::TargetDied },
        error.to_string(),
    )
}

fn interrupted() -> RunError {
    RunError::new(ErrorKind::Interrupted, "interrupted")
}

/// An agent that has nothing to do.
type FreeAgent = (AgentName, Instance, Hello);

/// Calls until enough are free: the first of those that make load, by their names, and all that watch the target.
fn call(
    link: &Link<Coordinator>,
    wanted: usize,
    session: &mut Session<'_>,
) -> Result<[Vec<FreeAgent>; 2], RunError> {
    link.send(CoordinatorCommand::Call);
    let began = Instant::now();
    let mut roster = Roster::default();
    let mut said = 0;
    loop {
        if session.interrupt.load(Relaxed) {
            return Err(interrupted());
        }
        match link.event(TICK) {
            Ok(CoordinatorEvent::Hello(name, instance, hello)) => roster.enter(name, instance, *hello),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(gone(link)),
        }
        let free = roster.count_free();
        // The first agents to answer are not always the first by name.
        if free >= wanted && began.elapsed() >= FIRST_ANSWERS {
            let [mut load, watching] = roster.free();
            load.truncate(wanted);
            if !watching.is_empty() {
                let names: Vec<_> = watching.iter().map(|(name, ..)| name.to_string()).collect();
                session.watcher.line(&format!(
                    "{} watching the target: {}",
                    several(names.len() as u64, "agent"),
                    names.join(", ")
                ));
            }
            return Ok([load, watching]);
        }
        let there = format!("{free} of {wanted} agents are there and free");
        if began.elapsed() >= AGENTS_TIMEOUT {
            let line = format!(
                "{there}; start others with `weir agent --join URL`, and see `weir agents --nats URL`"
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        let seconds = began.elapsed().as_secs() / 5;
        if seconds > said {
            said = seconds;
            session.watcher.line(&format!("waiting: {there}"));
        }
    }
}

fn gone(link: &Link<Coordinator>) -> RunError {
    RunError::new(ErrorKind::Internal, link.end())
}

/// Agents that have been offered their parts.
struct OfferedAgents {
    link: Link<Coordinator>,
    facts: Vec<AgentFacts>,
    segments: Vec<Segment>,
    /// The names of those that watch, whose numbers follow.
    watchers: Vec<String>,
    watched: WatchedElsewhere,
    losses_allowed: u16,
    drain: Duration,
}

impl OfferedAgents {
    fn name(&self, agent: u16) -> &str {
        match self.watcher(agent) {
            Some(watcher) => &self.watchers[watcher],
            None => &self.facts[usize::from(agent)].name,
        }
    }

    /// Which of those that watch an agent is, if it is one.
    fn watcher(&self, agent: u16) -> Option<usize> {
        usize::from(agent).checked_sub(self.facts.len())
    }

    /// Until each has accepted, and those that watch have said what they have read; what that is.
    fn wait_until_ready(&self, interrupt: &AtomicBool) -> Result<Vec<TargetEnvironment>, RunError> {
        let began = Instant::now();
        let mut ready = vec![false; self.facts.len() + self.watchers.len()];
        let mut described = BTreeMap::new();
        while ready.contains(&false) {
            let refusal = match self.link.event(TICK) {
                Ok(CoordinatorEvent::Accepted(agent)) => {
                    ready[usize::from(agent)] |= self.watcher(agent).is_none();
                    None
                }
                Ok(CoordinatorEvent::Watched(agent, watched)) => {
                    if let Some(it) = self.take_watched(agent, *watched) {
                        ready[usize::from(agent)] = true;
                        described.entry(agent).or_insert(it);
                    }
                    None
                }
                Ok(CoordinatorEvent::Refused(agent, words)) => {
                    Some(RunError::new(ErrorKind::Usage, format!("agent {}: {words}", self.name(agent))))
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(gone(&self.link)),
            };
            let refusal = refusal.or_else(|| interrupt.load(Relaxed).then(interrupted)).or_else(|| {
                let late =
                    ready.iter().position(|ready| !ready).filter(|_| began.elapsed() > READY_WITHIN)?;
                let line = format!("agent {} was not ready within 60 s", self.name(late as u16));
                Some(RunError::new(ErrorKind::Usage, line))
            });
            if let Some(refusal) = refusal {
                self.link.send(CoordinatorCommand::Done);
                return Err(refusal);
            }
        }
        Ok(described.into_values().flatten().collect())
    }

    /// Takes what an agent has read, if a machine can have read it; what its processes are, if it says so.
    fn take_watched(&self, agent: u16, watched: Watched) -> Option<Vec<TargetEnvironment>> {
        let (targets, described) = (watched.targets, watched.described);
        let most = targets.len();
        let is_taken = self.watched.set(self.watcher(agent)?, targets, clock::now());
        let named = |it| TargetEnvironment { agent: Some(self.name(agent).to_owned()), ..it };
        is_taken.then(|| described.into_iter().take(most).map(named).collect())
    }

    /// Passes on what they send until each has ended or is lost.
    fn pass_on(&self, stop: &AtomicBool, reports: &AgentReports) {
        let mut open: Vec<u16> = (0..self.facts.len() as u16).collect();
        let mut stopped: Option<Instant> = None;
        while !open.is_empty() {
            let event = self.link.event(TICK);
            if stopped.is_none() && stop.load(Relaxed) {
                stopped = Some(Instant::now());
                self.link.send(CoordinatorCommand::Stop);
            }
            let words = match event {
                Ok(CoordinatorEvent::Report(agent, report)) if self.watcher(agent).is_some() => {
                    let name = self.name(agent);
                    let words = match report {
                        AgentReport::Lost(words) => {
                            format!("agent {name}, which watched the target, is not there any more: {words}")
                        }
                        AgentReport::Trouble(words) => words,
                        _ => continue,
                    };
                    reports.send(0, AgentReport::Trouble(words));
                    continue;
                }
                Ok(CoordinatorEvent::Watched(agent, watched)) => {
                    self.take_watched(agent, *watched);
                    continue;
                }
                Ok(CoordinatorEvent::Report(agent, report)) => {
                    if matches!(report, AgentReport::Ended(_) | AgentReport::Lost(_)) {
                        open.retain(|it| *it != agent);
                    }
                    reports.send(agent, report);
                    continue;
                }
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout)
                    if stopped.is_none_or(|stopped| stopped.elapsed() < self.drain + END_WITHIN) =>
                {
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => "it did not end when it was told to".to_owned(),
                Err(RecvTimeoutError::Disconnected) => self.link.end(),
            };
            for agent in open.drain(..) {
                reports.send(agent, AgentReport::Lost(words.clone()));
            }
        }
    }
}

impl Agents for OfferedAgents {
    fn facts(&self) -> Vec<AgentFacts> {
        self.facts.clone()
    }

    fn segments(&self) -> Vec<Segment> {
        self.segments.clone()
    }

    fn watched(&self) -> WatchedElsewhere {
        self.watched.clone()
    }

    fn losses_allowed(&self) -> u16 {
        self.losses_allowed
    }

    fn begin(
        self: Box<Self>,
        origin: Moment,
        stop: Arc<AtomicBool>,
        reports: AgentReports,
    ) -> io::Result<JoinHandle<io::Result<()>>> {
        std::thread::Builder::new().name("weir-agents".to_owned()).spawn(move || {
            let wall_at_zero = clock::wall_nanos().wrapping_sub(clock::now().as_nanos());
            let moves = KernelClock::read().map_or(Duration::ZERO, |it| it.moves_within(offset::EVERY));
            let moves = moves.as_nanos() as u64;
            self.link.send(CoordinatorCommand::Begin(CommonClock {
                origin: origin.as_nanos(),
                wall_at_zero,
                moves,
            }));
            self.pass_on(&stop, &reports);
            self.link.send(CoordinatorCommand::Done);
            Ok(())
        })
    }
}
