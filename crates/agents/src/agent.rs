//! An agent's side of the dialogue: it waits to be called, runs what it is offered, and gives up a coordinator that is gone.

use crate::frame::{
    AgentName, AgentSays, CommonClock, CoordinatorSays, FromAgent, FromCoordinator, Hello, Instance, Item,
    Offer, Watched,
};
use crate::machine::{Machine, Outgoing};
use crate::offset::{self, ClockOffset, Exchange, OffsetMeter};
use crate::outbox::{KEPT_FOR, Outbox};
use std::collections::VecDeque;
use std::time::Duration;
use weir_engine::agents::{AgentEnd, SecondLines};
use weir_engine::kernel_clock::KernelClock;
use weir_metrics::Moment;
use weir_observe::Elsewhere;

/// Time between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// A coordinator that was silent for this long is gone.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// What becomes of an agent.
#[derive(Debug, PartialEq)]
pub enum AgentEvent {
    /// NATS is there, or not any more.
    Connected(bool),
    /// It is to run this.
    Offered(Box<Offer>),
    /// Second 0 begins at this moment of its own clock.
    Begin(Moment),
    /// The common wall clock says this at the zero of its own monotonic one, in nanoseconds since the Unix epoch.
    WallAtZero(u64),
    /// A message of so many bytes was not sent: the server takes none of that size.
    TooLarge(usize),
    /// It is to end its run now, and why.
    Stop(&'static str),
    /// The run is over for the coordinator, or has none any more.
    Over {
        /// Whether the coordinator has all that was sent.
        is_kept: bool,
    },
}

/// What an agent does.
#[derive(Debug)]
pub enum AgentCommand {
    /// It is ready to run what it was offered.
    Accept,
    /// It will not.
    Refuse(String),
    /// It watches, and is ready to go on with that through a run.
    Watch,
    /// What it has read, and when, by its own clock.
    Watched {
        /// What.
        watched: Watched,
        /// For how long its machine is up.
        uptime_seconds: f64,
        /// When.
        at: Moment,
    },
    /// It has begun, so long after the common moment.
    Begun(Duration),
    /// A second is over.
    Second(SecondLines),
    /// Its run is over.
    Ended(AgentEnd),
    /// What its kernel says of its clock now.
    Clock(KernelClock),
}

/// The state of an agent.
#[derive(Debug)]
pub struct Agent {
    name: AgentName,
    instance: Instance,
    hello: Hello,
    work: Option<Work>,
    /// Since when NATS is there, if it is.
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
    /// The clock of the run, once it has begun, and how far it may be off at the most.
    clock: Option<(CommonClock, Duration)>,
    /// When the coordinator was heard last.
    heard: Moment,
    /// When the last sign of life was given.
    beat: Option<Moment>,
    is_stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Offered,
    Accepted,
    /// It makes no load.
    Watching,
    Begun,
    Ended,
}

impl Agent {
    /// One of this name, in this process, on this machine.
    pub fn new(name: AgentName, instance: Instance, hello: Hello) -> Self {
        let (outgoing, events) = (VecDeque::new(), VecDeque::new());
        Self { name, instance, hello, work: None, connected: None, outgoing, events }
    }

    fn say(&mut self, says: AgentSays) {
        let run = self.work.as_ref().map_or_else(String::new, |work| work.run.clone());
        self.outgoing.push_back(FromAgent { from: self.instance, run, says });
    }

    fn say_hello(&mut self) {
        let hello = Hello { is_busy: self.work.is_some(), ..self.hello.clone() };
        self.say(AgentSays::Hello(Box::new(hello)));
    }

    fn take_offer(&mut self, by: Instance, run: String, offer: Box<Offer>, now: Moment) {
        // One that has a run takes no other, and needs the same one once.
        if self.work.is_none() {
            self.work = Some(Work {
                by,
                run,
                phase: Phase::Offered,
                meter: OffsetMeter::default(),
                outbox: Outbox::default(),
                clock: None,
                heard: now,
                beat: None,
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

    /// Is done with the run, whatever the coordinator has of it.
    fn leave(&mut self) {
        if let Some(work) = self.work.take() {
            let is_kept = work.phase == Phase::Ended && work.outbox.is_empty();
            self.events.push_back(AgentEvent::Over { is_kept });
        }
    }
}

/// How far an offset may be off until the next one is measured: half of the round trip, and what the kernels of both machines are
/// about to move their clocks by.
fn bound(offset: ClockOffset, common: CommonClock, own: Option<KernelClock>) -> Duration {
    let moves = own.map_or(Duration::ZERO, |own| own.moves_within(offset::EVERY));
    let bound = offset.bound.saturating_add(moves);
    bound.saturating_add(Duration::from_nanos(common.moves))
}

impl Machine for Agent {
    type Command = AgentCommand;
    type Event = AgentEvent;

    fn subjects(&self) -> Vec<String> {
        vec![crate::frame::CALL.to_owned(), self.name.down()]
    }

    fn handle_message(&mut self, _subject: &str, bytes: &[u8], now: Moment) {
        // Who may speak here is for NATS to say; what is no message is none.
        let Ok(FromCoordinator { from, to, run, says }) = serde_json::from_slice(bytes) else { return };
        if to.is_some_and(|to| to != self.instance) {
            return;
        }
        match says {
            CoordinatorSays::Call => return self.say_hello(),
            CoordinatorSays::Offer(offer) => return self.take_offer(from, run, offer, now),
            _ => {}
        }
        let Some(work) = self.work.as_mut().filter(|work| work.by == from && work.run == run) else { return };
        work.heard = now;
        match says {
            CoordinatorSays::Time { asked, received, answered } => {
                work.meter.handle(Exchange { asked, received, answered, heard: now.as_nanos() });
            }
            CoordinatorSays::Begin(clock) => {
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
            CoordinatorSays::Beat(received) => work.outbox.acknowledge(received),
            CoordinatorSays::Stop => self.stop("the coordinator says so"),
            CoordinatorSays::Done => {
                work.outbox.acknowledge(u64::MAX);
                match work.phase {
                    Phase::Begun => self.stop("the coordinator is done"),
                    _ => self.leave(),
                }
            }
            CoordinatorSays::Call | CoordinatorSays::Offer(_) => {}
        }
    }

    fn handle_connection(&mut self, is_up: bool, now: Moment) {
        self.connected = is_up.then_some(now);
        self.events.push_back(AgentEvent::Connected(is_up));
    }

    fn handle_dropped(&mut self) {
        // What a coordinator says is said again.
    }

    fn handle_too_large(&mut self, _subject: &str, bytes: usize) {
        self.events.push_back(AgentEvent::TooLarge(bytes));
    }

    fn handle_command(&mut self, command: AgentCommand, now: Moment) {
        if let AgentCommand::Clock(clock) = command {
            self.hello.clock = Some(clock);
            return;
        }
        let Some(work) = &mut self.work else { return };
        match command {
            AgentCommand::Clock(_) => {}
            AgentCommand::Accept => work.phase = Phase::Accepted,
            AgentCommand::Watch => work.phase = Phase::Watching,
            AgentCommand::Watched { mut watched, uptime_seconds, at } => {
                let Some(offset) = work.meter.at(at).filter(|_| self.connected.is_some()) else { return };
                let elsewhere = Elsewhere { at_ns: offset.there(at), uptime_seconds };
                watched.targets.iter_mut().for_each(|target| target.elsewhere = Some(elsewhere));
                self.say(AgentSays::Watched(Box::new(watched)));
            }
            AgentCommand::Refuse(words) => {
                self.say(AgentSays::Refused(words));
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
        let beat = work.beat.is_none_or(|beat| now.since(beat) >= BEAT);
        if beat {
            work.beat = Some(now);
            if let (Some((clock, bound)), Some(offset)) = (&mut work.clock, work.meter.at(now)) {
                *bound = self::bound(offset, *clock, self.hello.clock).max(*bound);
                self.events.push_back(AgentEvent::WallAtZero(offset.wall_at_zero(clock.wall_at_zero)));
            }
        }
        let items: Vec<_> = std::iter::from_fn(|| work.outbox.poll(now)).collect();
        if is_asked {
            self.say(AgentSays::Time(now.as_nanos()));
        }
        if beat {
            self.say(if is_ready { AgentSays::Accepted } else { AgentSays::Beat });
        }
        for (number, oldest, item) in items {
            self.say(AgentSays::Item { number, oldest, item: Box::new(item) });
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
