//! What a run does from second to second: it takes what generator threads, agents and consumers report, observes, writes down,
//! adds up, and knows when the run is over.

use super::Watcher;
use crate::agents::{
    AgentEnd, AgentReport, CountedClients, EventRoom, SecondCopier, SecondLines, WatchedElsewhere, briefly,
    check_events, read,
};
use crate::aggregator::Aggregator;
use crate::ingest::AgentCounts;
use crate::plan::Segment;
use crate::record::event::EventLine;
use crate::record::{RecordError, RecordWriter};
use crate::run::cells::Cells;
use crate::run::coordinator_message::{ConsumerEnd, CoordinatorMessage, ThreadReport};
use crate::run::restarts::Absence;
use crate::scenario::Scenario;
use crate::summary::Outcome;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use weir_clients::{ClientFailure, Workload};
use weir_metrics::{Moment, Recorder};
use weir_observe::{Sample, Sampler, TargetState};
use weir_shard::clock;

/// Wall against monotonic clock, in one second, that is called a step.
const CLOCK_STEP: Duration = Duration::from_millis(20);
/// How long a run that ends with its messages goes on behind the first look at what it watches: CPU is not known over less than
/// half a second.
const LEAST: Duration = Duration::from_millis(520);

/// Nanoseconds of the wall clock over the monotonic one. Both are read several times: a thread that has
/// to wait for a CPU between the two would see a step that never was.
pub(super) fn wall_offset() -> i128 {
    let offset = || {
        let before = clock::now();
        let wall = clock::wall_nanos();
        (clock::now().since(before), i128::from(wall) - i128::from(before.as_nanos()))
    };
    let tightest = (0..5).map(|_| offset()).min_by_key(|(taken, _)| *taken);
    tightest.map_or(0, |(_, offset)| offset)
}

/// The coordinator of a run: intervals come in, lines go out.
pub(super) struct Coordinator {
    pub(super) origin: Moment,
    pub(super) workloads: Arc<[Workload]>,
    /// Whether keys of RTMP streams may be written down.
    pub(super) show_keys: bool,
    pub(super) writer: Option<RecordWriter>,
    pub(super) aggregator: Aggregator,
    /// Seconds that not every shard has reported.
    pub(super) pending: BTreeMap<u32, Vec<Recorder>>,
    /// Whose figures those of a report are.
    pub(super) cells: Cells,
    /// What copies the lines of the run directory for the coordinator, in an agent's run.
    pub(super) copier: Option<SecondCopier>,
    /// How many agents may be lost, and how many were.
    pub(super) losses_allowed: u16,
    /// The watched processes of other machines.
    pub(super) watched: WatchedElsewhere,
    /// The names of the agents, which are its first shards.
    pub(super) agents: Vec<String>,
    /// Their parts.
    pub(super) segments: Vec<Segment>,
    /// What each agent has counted, of each workload.
    pub(super) counted: Vec<Vec<CountedClients>>,
    /// Room for the lines of events of each agent's clients.
    pub(super) event_rooms: Vec<EventRoom>,
    pub(super) lost: u16,
    /// Threads of this process that ended without their last report.
    pub(super) lost_threads: Vec<usize>,
    /// Whether each shard has reported its end. A shard is a thread of this process, or an agent.
    pub(super) ended: Vec<bool>,
    /// The second that each shard is to report next.
    pub(super) due: Vec<u32>,
    /// Whether each shard's last word was that it has no client, and none to come.
    pub(super) deserted: Vec<bool>,
    /// How the workload that saves messages has ended, once it has.
    pub(super) taken: Option<Outcome>,
    /// What agents have counted of messages that are saved.
    pub(super) gathered: Option<Arc<AgentCounts>>,
    /// When the target is away because the scenario restarts it.
    pub(super) absence: Absence,
    pub(super) trouble: Vec<String>,
    pub(super) wall: i128,
}

impl Coordinator {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn work(
        &mut self,
        received: &Receiver<CoordinatorMessage>,
        sampler: &mut Sampler,
        scenario: &Scenario,
        interrupt: &Arc<AtomicBool>,
        stop: &Arc<AtomicBool>,
        watcher: &mut dyn Watcher,
        longest: Duration,
    ) -> Outcome {
        let mut outcome = Outcome::Completed;
        let mut next_sample = self.origin - scenario.base();
        // When what is watched was first read behind the run's beginning.
        let mut first_sample = None;
        let mut deserted = false;
        while self.ended.contains(&false) {
            let now = clock::now();
            if now >= next_sample {
                let died = self.observe(sampler.sample(now.as_nanos()), now);
                next_sample = next_sample + Duration::from_secs(1);
                if now >= self.origin {
                    first_sample.get_or_insert(now);
                }
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
            let all_is_saved = self.gathered.as_ref().is_some_and(|it| it.wants_end());
            if all_is_saved && !stop.load(Ordering::Relaxed) {
                self.stop(stop);
            }
            let is_long_enough =
                scenario.watch.is_empty() || first_sample.is_some_and(|first| now.since(first) >= LEAST);
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
                self.trouble.push(format!(
                    "a generator thread had not ended {:.0} s after the plan did; the run waited for it",
                    longest.saturating_sub(self.aggregator.plan().length).as_secs_f64()
                ));
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
        // Of a run with agents they end before the consumer does.
        if let Some(taken) = self.taken.take()
            && outcome == Outcome::Completed
        {
            outcome = taken;
        }
        let now = clock::now();
        self.observe(sampler.last_sample(now.as_nanos()), now);
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
        died && !self.absence.covers(now)
    }

    /// Takes what came; the seconds that it completes, in order.
    pub(super) fn take_arrival(&mut self, arrival: CoordinatorMessage) -> Vec<u32> {
        match arrival {
            CoordinatorMessage::Thread(report) => self.take(report),
            CoordinatorMessage::ThreadLost(thread, words) => self.lose_thread(thread, words),
            CoordinatorMessage::Event(line) => {
                if line.trouble().is_some() {
                    self.taken = Some(Outcome::TargetDied);
                }
                self.write_event(&line);
            }
            CoordinatorMessage::Agent(agent, report) => self.take_from_agent(agent, report),
        }
        if let Some(gathered) = &self.gathered
            && self.ended.iter().take(self.agents.len()).all(|ended| *ended)
        {
            gathered.end();
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
        for (workload, track) in report.tracks {
            let at_seconds = f64::from(report.second);
            self.write_event(&EventLine::Track { at_seconds, workload, track });
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
                place: None,
            });
        }
        if let Some((workload, taken)) = report.consumer_end {
            let at_seconds = clock::now().since(self.origin).as_secs_f64();
            let (line, outcome) = match taken {
                ConsumerEnd::Over(ingested) => {
                    (EventLine::Ingested { at_seconds, workload, ingested }, Outcome::Completed)
                }
                ConsumerEnd::Failed(trouble) => (
                    EventLine::Trouble { at_seconds, words: briefly(&trouble.to_string()) },
                    Outcome::TargetDied,
                ),
            };
            self.taken = Some(outcome);
            self.write_event(&line);
        }
        if let Some(gathered) = self.gathered.clone() {
            // Beside what agents count a line of this process' own is that of one agent more.
            let intervals = self.cells.intervals(report.second, &report.figures);
            for interval in intervals.iter().filter(|it| it.key.workload == gathered.workload()) {
                self.write(|writer| writer.interval_of(report.shard as u16, interval));
            }
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
                    self.lose(agent, at_seconds, format!("it sent a malformed second: {words}"));
                } else if let Some(words) = lines.events.iter().find_map(EventLine::trouble) {
                    self.lose(agent, at_seconds, words.to_owned());
                }
            }
            AgentReport::Ended(end) if !end.is_possible(self.aggregator.plan().stages.len()) => {
                self.lose(agent, at_seconds, "it sent a malformed end of the run".to_owned());
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
        let facts: Vec<_> = self.aggregator.facts().collect();
        let servers: Vec<_> = facts.iter().map(|it| it.servers.len()).collect();
        let intervals = read(lines, self.aggregator.plan(), &schemas, &servers)?;
        check_events(&lines.events, &facts)?;
        for event in lines.events.iter().filter(|it| it.is_of_clients()) {
            let room = &mut self.event_rooms[usize::from(agent)];
            let was_full = room.is_full();
            if room.takes(event) {
                self.write_event(event);
            } else {
                self.aggregator.event(event);
            }
            if !was_full && self.event_rooms[usize::from(agent)].is_full() {
                let name = self.agents.get(usize::from(agent)).map_or("?", String::as_str);
                self.trouble.push(format!("agent {name}: {}", EventRoom::FULL));
            }
        }
        if let Some(gathered) = &self.gathered {
            intervals.iter().filter(|it| it.key.server.is_none()).for_each(|it| gathered.add(agent, it));
            for event in &lines.events {
                if let EventLine::Ingested { ingested, .. } = event {
                    gathered.end_of_part(ingested);
                }
            }
        }
        for interval in intervals.iter().filter(|it| it.key.server.is_none()) {
            let counted = &mut self.counted[usize::from(agent)][usize::from(interval.key.workload)];
            counted.add(&interval.figures);
        }
        for interval in &intervals {
            self.write(|writer| writer.interval_of(agent, interval));
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
        if let Some(gathered) = &self.gathered {
            let part = self.aggregator.plan().part(&segment);
            let own = part.slots.iter().filter(|slot| slot.workload == gathered.workload());
            gathered.lose(agent, own.map(|slot| slot.client).collect());
        }
        self.write_event(&EventLine::AgentLost { at_seconds, agent, segment, open, is_allowed, words });
    }

    /// Completes the seconds that not every shard has reported.
    pub(super) fn complete_all(&mut self) {
        for second in self.pending.keys().copied().collect::<Vec<_>>() {
            self.complete(second);
        }
    }

    fn complete(&mut self, second: u32) {
        let Some(figures) = self.pending.remove(&second) else { return };
        let has_agents = !self.counted.is_empty();
        for interval in self.cells.intervals(second, &figures) {
            // What each agent counted was written down as it came.
            let write = if has_agents { RecordWriter::interval_of_all } else { RecordWriter::interval };
            self.write(|writer| write(writer, &interval));
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
    pub(super) fn write(&mut self, write: impl FnOnce(&mut RecordWriter) -> Result<(), RecordError>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer)
        {
            self.trouble.push(format!("{error}; the run directory ends here, the figures above are whole"));
            self.writer = None;
        }
    }
}
