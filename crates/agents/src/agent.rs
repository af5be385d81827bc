//! An agent's side of the dialogue: it answers a coordinator's call, runs what it is offered, and gives a coordinator up that has fallen
//! silent.

use crate::frame::{
    AgentMessage, AgentName, CommonClock, CoordinatorMessage, FromAgent, FromCoordinator, Hello, Instance,
    Item, Offer, Watched,
};
use crate::offset::{self, ClockOffset, Exchange, OffsetMeter};
use crate::outbox::{KEPT_FOR, Outbox};
use crate::state_machine::{Outgoing, StateMachine};
use std::collections::VecDeque;
use std::time::Duration;
use weir_engine::agents::{AgentEnd, SecondLines};
use weir_engine::record::kernel_clock::KernelClock;
use weir_metrics::Moment;
use weir_observe::Elsewhere;

/// Time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// A coordinator that was silent for this long is given up: ten of its heartbeats are missing.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// What a coordinator is told that offers a run before the last one is over here: a store that does not answer may still save what it was
/// given, and uses the machine.
const BUSY: &str = "busy: it is not done with its last run; ask again, or see what its store waits for";

/// What an agent reports to its owner.
#[derive(Debug, PartialEq)]
pub enum AgentEvent {
    /// The connection to NATS is up, or down.
    Connected(bool),
    /// A coordinator offers it a part of a run.
    Offered(Box<Offer>),
    /// Second 0 of the run begins at this moment of its own clock.
    Begin(Moment),
    /// What the wall clock of the run shows at the zero of its own monotonic clock, in nanoseconds since the Unix epoch.
    WallAtZero(u64),
    /// A message of this many bytes could not be sent: the NATS server does not accept messages of that size.
    TooLarge(usize),
    /// It has to end its run now, with the reason.
    Stop(&'static str),
    /// The coordinator has finished the run, or was given up.
    Over {
        /// Whether the coordinator has received every item.
        is_kept: bool,
    },
}

/// What the owner of an agent asks it to do.
#[derive(Debug)]
pub enum AgentCommand {
    /// Accept the offer.
    Accept,
    /// Refuse the offer, with the reason.
    Refuse(String),
    /// Accept the offer as an agent that watches processes and makes no load.
    Watch,
    /// Send what was read of the watched processes.
    Watched {
        /// What was read.
        watched: Watched,
        /// Uptime of its machine at that moment.
        uptime_seconds: f64,
        /// When it was read, by its own clock.
        at: Moment,
    },
    /// Its run has begun, this long after the moment at which all agents were to begin.
    Begun(Duration),
    /// A second of its run is over.
    Second(SecondLines),
    /// Its run is over.
    Ended(AgentEnd),
    /// What `adjtimex` says of its clock now.
    Clock(KernelClock),
    /// Take offers again: its owner is done with the last one, and nothing of it works any more.
    Free,
}

/// The state of an agent.
#[derive(Debug)]
pub struct Agent {
    name: AgentName,
    instance: Instance,
    hello: Hello,
    work: Option<Work>,
    /// Whether its owner was given an offer and has not said since that it is free.
    is_working: bool,
    /// Since when the connection to NATS is up, if it is.
    connected: Option<Moment>,
    outgoing: VecDeque<FromAgent>,
    events: VecDeque<AgentEvent>,
}

#[derive(Debug)]
struct Work {
    by: Instance,
    run: String,
    phase: Phase,
    meter: OffsetMeter,
    outbox: Outbox<Item>,
    /// The clock of the run, once it has begun, and the largest error that it may have had so far.
    clock: Option<(CommonClock, Duration)>,
    /// When the last message of the coordinator arrived.
    heard: Moment,
    /// When the last heartbeat was sent.
    heartbeat: Option<Moment>,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Offered,
    Accepted,
    /// It watches processes and makes no load.
    Watching,
    Begun,
    Ended,
}

impl Agent {
    /// An agent of this name, in this process, on this machine.
    pub fn new(name: AgentName, instance: Instance, hello: Hello) -> Self {
        let (outgoing, events) = (VecDeque::new(), VecDeque::new());
        Self { name, instance, hello, work: None, is_working: false, connected: None, outgoing, events }
    }

    fn send(&mut self, message: AgentMessage) {
        let run = self.work.as_ref().map_or_else(String::new, |work| work.run.clone());
        self.outgoing.push_back(FromAgent { from: self.instance, run, message });
    }

    fn send_hello(&mut self) {
        let hello = Hello { is_busy: self.work.is_some() || self.is_working, ..self.hello.clone() };
        self.send(AgentMessage::Hello(Box::new(hello)));
    }

    fn take_offer(&mut self, by: Instance, run: String, offer: Box<Offer>, now: Moment) {
        // A busy agent takes no other offer, and the offer that it has is repeated until the coordinator has its answer.
        if self.work.is_none() && self.is_working {
            let message = AgentMessage::Refused(BUSY.to_owned());
            self.outgoing.push_back(FromAgent { from: self.instance, run, message });
        } else if self.work.is_none() {
            self.is_working = true;
            self.work = Some(Work {
                by,
                run,
                phase: Phase::Offered,
                meter: OffsetMeter::default(),
                outbox: Outbox::default(),
                clock: None,
                heard: now,
                heartbeat: None,
                is_stopped: false,
            });
            self.events.push_back(AgentEvent::Offered(offer));
        }
    }

    fn stop(&mut self, why: &'static str) {
        let Some(work) = &mut self.work else { return };
        match work.phase {
            Phase::Begun if !work.is_stopped => {
                work.is_stopped = true;
                self.events.push_back(AgentEvent::Stop(why));
            }
            Phase::Begun => {}
            Phase::Offered | Phase::Accepted | Phase::Watching | Phase::Ended => self.leave(),
        }
    }

    /// Drops the run, whether or not the coordinator has received all of it.
    fn leave(&mut self) {
        if let Some(work) = self.work.take() {
            let is_kept = work.phase == Phase::Ended && work.outbox.is_empty();
            self.events.push_back(AgentEvent::Over { is_kept });
        }
    }
}

/// The largest error of an offset until the next one is measured: half of the round trip, and by how much the kernels of both machines
/// may adjust their clocks meanwhile.
fn bound(offset: ClockOffset, common: CommonClock, own: Option<KernelClock>) -> Duration {
    let moves = own.map_or(Duration::ZERO, |own| own.moves_within(offset::EVERY));
    let bound = offset.bound.saturating_add(moves);
    bound.saturating_add(Duration::from_nanos(common.moves))
}

impl StateMachine for Agent {
    type Command = AgentCommand;
    type Event = AgentEvent;

    fn subjects(&self) -> Vec<String> {
        vec![crate::frame::CALL.to_owned(), self.name.down()]
    }

    fn handle_message(&mut self, _subject: &str, bytes: &[u8], now: Moment) {
        // The permissions of the NATS server decide who may publish here; malformed messages are ignored.
        let Ok(FromCoordinator { from, to, run, message }) = serde_json::from_slice(bytes) else { return };
        if to.is_some_and(|to| to != self.instance) {
            return;
        }
        match message {
            CoordinatorMessage::Call => return self.send_hello(),
            CoordinatorMessage::Offer(offer) => return self.take_offer(from, run, offer, now),
            _ => {}
        }
        let Some(work) = self.work.as_mut().filter(|work| work.by == from && work.run == run) else { return };
        work.heard = now;
        match message {
            CoordinatorMessage::Time { asked, received, answered } => {
                work.meter.handle(Exchange { asked, received, answered, heard: now.as_nanos() });
            }
            CoordinatorMessage::Begin(clock) => {
                let Some(offset) = work.meter.at(now) else { return };
                if work.phase == Phase::Watching {
                    self.events.push_back(AgentEvent::Begin(offset.here(clock.origin)));
                } else if work.phase == Phase::Accepted {
                    work.phase = Phase::Begun;
                    work.clock = Some((clock, bound(offset, clock, self.hello.clock)));
                    self.events.push_back(AgentEvent::WallAtZero(offset.wall_at_zero(clock.wall_at_zero)));
                    self.events.push_back(AgentEvent::Begin(offset.here(clock.origin)));
                }
            }
            CoordinatorMessage::Heartbeat(received) => work.outbox.acknowledge(received),
            CoordinatorMessage::Stop => self.stop("the coordinator says so"),
            CoordinatorMessage::Done => {
                work.outbox.acknowledge(u64::MAX);
                match work.phase {
                    Phase::Begun => self.stop("the coordinator is done"),
                    _ => self.leave(),
                }
            }
            CoordinatorMessage::Call | CoordinatorMessage::Offer(_) => {}
        }
    }

    fn handle_connection(&mut self, is_up: bool, now: Moment) {
        self.connected = is_up.then_some(now);
        self.events.push_back(AgentEvent::Connected(is_up));
    }

    fn handle_dropped(&mut self) {
        // A coordinator repeats its messages until they are answered.
    }

    fn handle_too_large(&mut self, _subject: &str, bytes: usize) {
        self.events.push_back(AgentEvent::TooLarge(bytes));
    }

    fn handle_command(&mut self, command: AgentCommand, now: Moment) {
        match command {
            AgentCommand::Clock(clock) => {
                self.hello.clock = Some(clock);
                return;
            }
            AgentCommand::Free => {
                self.is_working = false;
                return;
            }
            _ => {}
        }
        let Some(work) = &mut self.work else { return };
        match command {
            AgentCommand::Clock(_) | AgentCommand::Free => {}
            AgentCommand::Accept => work.phase = Phase::Accepted,
            AgentCommand::Watch => work.phase = Phase::Watching,
            AgentCommand::Watched { mut watched, uptime_seconds, at } => {
                let Some(offset) = work.meter.at(at).filter(|_| self.connected.is_some()) else { return };
                let elsewhere = Elsewhere { at_ns: offset.there(at), uptime_seconds };
                watched.targets.iter_mut().for_each(|target| target.elsewhere = Some(elsewhere));
                self.send(AgentMessage::Watched(Box::new(watched)));
            }
            AgentCommand::Refuse(words) => {
                self.send(AgentMessage::Refused(words));
                self.work = None;
            }
            AgentCommand::Begun(late) => {
                let Some((_, bound)) = work.clock else { return };
                let (late_seconds, clock_bound_seconds) = (late.as_secs_f64(), bound.as_secs_f64());
                work.outbox.push(Item::Begun { late_seconds, clock_bound_seconds }, now);
            }
            AgentCommand::Second(lines) => work.outbox.push(Item::Second(lines), now),
            AgentCommand::Ended(mut end) => {
                end.clock_bound_seconds = work.clock.map_or(0.0, |(_, bound)| bound.as_secs_f64());
                work.outbox.push(Item::Ended(end), now);
                work.phase = Phase::Ended;
                if work.is_stopped && now.since(work.heard) >= GONE_AFTER {
                    self.leave();
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Moment) {
        let connected = self.connected;
        let Some(work) = &mut self.work else { return };
        let (since, patience) = match connected {
            Some(connected) => (work.heard.max(connected), GONE_AFTER),
            None => (work.heard, KEPT_FOR),
        };
        if now.since(since) >= patience {
            return self.stop("its coordinator is gone");
        }
        if connected.is_none() {
            return;
        }
        let is_asked = work.meter.poll(now);
        let is_ready =
            matches!(work.phase, Phase::Accepted | Phase::Watching) && work.meter.at(now).is_some();
        let is_heartbeat_due = work.heartbeat.is_none_or(|last| now.since(last) >= HEARTBEAT);
        if is_heartbeat_due {
            work.heartbeat = Some(now);
            if let (Some((clock, bound)), Some(offset)) = (&mut work.clock, work.meter.at(now)) {
                *bound = self::bound(offset, *clock, self.hello.clock).max(*bound);
                self.events.push_back(AgentEvent::WallAtZero(offset.wall_at_zero(clock.wall_at_zero)));
            }
        }
        let items: Vec<_> = std::iter::from_fn(|| work.outbox.poll(now)).collect();
        if is_asked {
            self.send(AgentMessage::Time(now.as_nanos()));
        }
        if is_heartbeat_due {
            self.send(if is_ready { AgentMessage::Accepted } else { AgentMessage::Heartbeat });
        }
        for (number, oldest, item) in items {
            self.send(AgentMessage::Item { number, oldest, item: Box::new(item) });
        }
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        let frame = self.outgoing.pop_front()?;
        Some(Outgoing {
            subject: self.name.up(),
            bytes: serde_json::to_vec(&frame).expect("a frame is JSON"),
        })
    }

    fn poll_event(&mut self) -> Option<AgentEvent> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(agent: &mut Agent, run: &str) -> Vec<String> {
        let message = CoordinatorMessage::Offer(Box::default());
        let frame = FromCoordinator { from: 7, to: Some(1), run: run.to_owned(), message };
        agent.handle_message("weir.down.a", &serde_json::to_vec(&frame).unwrap(), Moment::default());
        let sent = std::iter::from_fn(|| agent.poll_send());
        sent.map(|it| String::from_utf8(it.bytes).unwrap()).collect()
    }

    #[test]
    fn an_agent_takes_no_offer_before_its_owner_is_done_with_the_last_one() {
        let mut agent = Agent::new("a".parse().unwrap(), 1, Hello::default());
        assert!(offered(&mut agent, "first").is_empty());
        assert!(matches!(agent.poll_event(), Some(AgentEvent::Offered(_))));
        // The coordinator lets it go while a store of its owner still works.
        let done = FromCoordinator {
            from: 7,
            to: Some(1),
            run: "first".to_owned(),
            message: CoordinatorMessage::Done,
        };
        agent.handle_message("weir.down.a", &serde_json::to_vec(&done).unwrap(), Moment::default());
        assert!(matches!(agent.poll_event(), Some(AgentEvent::Over { .. })));
        let refused = offered(&mut agent, "second");
        assert!(refused[0].contains("busy") && refused[0].contains("second"), "{refused:?}");
        assert_eq!(agent.poll_event(), None);
        agent.handle_command(AgentCommand::Free, Moment::default());
        assert!(offered(&mut agent, "third").is_empty());
        assert!(matches!(agent.poll_event(), Some(AgentEvent::Offered(_))));
    }
}
