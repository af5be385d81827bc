//! A coordinator's side of the dialogue: it calls agents, offers each its part, has them begin together, and takes what they
//! send until each has ended or is lost.

use crate::frame::{
    ALL_UP, AgentName, AgentSays, CALL, CommonClock, CoordinatorSays, FromAgent, FromCoordinator, Hello,
    Instance, Item, Offer, Watched,
};
use crate::inbox::Inbox;
use crate::machine::{Machine, Outgoing};
use crate::outbox::KEPT_FOR;
use std::collections::VecDeque;
use std::time::Duration;
use weir_engine::agents::AgentReport;
use weir_metrics::Moment;

/// Time between two signs of life, and two calls.
const BEAT: Duration = Duration::from_secs(1);
/// An agent that was silent for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(3);
/// What offers are on their way for beside that: 10 MB a second, of all of them together.
const OFFER_BYTES_A_SECOND: f64 = 10e6;

/// What becomes of a coordinator's agents. A number is a position in what was offered.
#[derive(Debug)]
pub enum CoordinatorEvent {
    /// One is there.
    Heard(AgentName, Instance, Box<Hello>),
    /// One is ready to begin.
    Accepted(u16),
    /// One will not run its part, and why.
    Refused(u16, String),
    /// What one that watches has read.
    Watched(u16, Box<Watched>),
    /// What came from one.
    Report(u16, AgentReport),
}

/// What a coordinator does.
#[derive(Debug)]
pub enum CoordinatorCommand {
    /// Calls agents until something is offered.
    Call,
    /// Offers each of these its part.
    Offer(Vec<(AgentName, Instance, Offer)>),
    /// Has all begin, by its own clock.
    Begin(CommonClock),
    /// Has all end now.
    Stop,
    /// Needs nothing more.
    Done,
}

/// The state of a coordinator.
#[derive(Debug)]
pub struct Coordinator {
    instance: Instance,
    run: String,
    is_calling: bool,
    members: Vec<Member>,
    /// How long offers may be on their way.
    on_the_way: Duration,
    /// When they were sent last.
    offered: Option<Moment>,
    begin: Option<CommonClock>,
    is_stopping: bool,
    beat: Option<Moment>,
    /// Since when NATS is there, or not there.
    connection: (bool, Moment),
    outgoing: VecDeque<Outgoing>,
    events: VecDeque<CoordinatorEvent>,
}

#[derive(Debug)]
struct Member {
    name: AgentName,
    instance: Instance,
    /// Until it answers.
    offer: Option<Offer>,
    state: MemberState,
    heard: Moment,
    inbox: Inbox<Item>,
    sent_garbage: bool,
    /// Whether it makes no load, and is there until the end.
    watches: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Offered,
    Accepted,
    Begun,
    /// It has ended, was lost, or has refused.
    Gone,
}

impl Coordinator {
    /// One of this process, for a run of this name.
    pub fn new(instance: Instance, run: String) -> Self {
        Self {
            instance,
            run,
            is_calling: false,
            members: Vec::new(),
            on_the_way: Duration::ZERO,
            offered: None,
            begin: None,
            is_stopping: false,
            beat: None,
            connection: (false, Moment::default()),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn say(&mut self, subject: String, to: Option<Instance>, says: CoordinatorSays) {
        let run = if to.is_some() { self.run.clone() } else { String::new() };
        let frame = FromCoordinator { from: self.instance, to, run, says };
        let bytes = serde_json::to_vec(&frame).expect("a frame is JSON");
        self.outgoing.push_back(Outgoing { subject, bytes });
    }

    fn tell(&mut self, member: usize, says: CoordinatorSays) {
        let Member { name, instance, .. } = &self.members[member];
        self.say(name.down(), Some(*instance), says);
    }

    /// Tells all that are not gone.
    fn tell_all(&mut self, says: &CoordinatorSays) {
        for member in 0..self.members.len() {
            if self.members[member].state != MemberState::Gone {
                self.tell(member, says.clone());
            }
        }
    }

    fn take(&mut self, number: usize, says: AgentSays, now: Moment) {
        let member = &mut self.members[number];
        member.heard = now;
        member.offer = None;
        match says {
            AgentSays::Time(asked) => {
                // It leaves with the next frame, before anything else is done.
                let answered = now.as_nanos();
                self.tell(number, CoordinatorSays::Time { asked, received: now.as_nanos(), answered });
            }
            AgentSays::Accepted if member.state == MemberState::Offered => {
                member.state = MemberState::Accepted;
                self.events.push_back(CoordinatorEvent::Accepted(number as u16));
            }
            AgentSays::Accepted => {
                // The moment to begin has not come there.
                if let Some(begin) = self.begin {
                    self.tell(number, CoordinatorSays::Begin(begin));
                }
            }
            AgentSays::Refused(words) => self.lose(number, words),
            AgentSays::Watched(watched) if member.watches => {
                self.events.push_back(CoordinatorEvent::Watched(number as u16, watched));
            }
            AgentSays::Item { number: item_number, oldest, item } if !member.watches => {
                let missing = member.inbox.missing;
                for item in member.inbox.take(item_number, oldest, *item) {
                    // Nothing comes after the end, whatever was sent as if it did.
                    if self.members[number].state != MemberState::Gone {
                        self.take_item(number, item);
                    }
                }
                let missing = self.members[number].inbox.missing - missing;
                if missing > 0 {
                    let words = format!(
                        "agent {}: {missing} of its messages never came; its figures have a gap",
                        self.members[number].name
                    );
                    self.report(number, AgentReport::Trouble(words));
                }
            }
            AgentSays::Hello(_) | AgentSays::Beat | AgentSays::Watched(_) | AgentSays::Item { .. } => {}
        }
    }

    fn take_item(&mut self, number: usize, item: Item) {
        let report = match item {
            Item::Begun { late_seconds, clock_bound_seconds } => {
                self.members[number].state = MemberState::Begun;
                AgentReport::Begun { late_seconds, clock_bound_seconds }
            }
            Item::Second(lines) => AgentReport::Second(lines),
            Item::Ended(end) => {
                self.members[number].state = MemberState::Gone;
                AgentReport::Ended(end)
            }
        };
        self.report(number, report);
    }

    fn report(&mut self, number: usize, report: AgentReport) {
        self.events.push_back(CoordinatorEvent::Report(number as u16, report));
    }

    /// Whether an agent is to end its clients.
    fn is_stopped(&self, number: usize) -> bool {
        let member = &self.members[number];
        self.is_stopping && !member.watches && member.state != MemberState::Gone
    }

    /// Gives an agent up.
    fn lose(&mut self, number: usize, words: String) {
        let before = std::mem::replace(&mut self.members[number].state, MemberState::Gone);
        if before == MemberState::Gone {
            return;
        }
        if self.begin.is_some() {
            self.report(number, AgentReport::Lost(words));
        } else {
            self.events.push_back(CoordinatorEvent::Refused(number as u16, words));
        }
    }

    /// Why an agent is lost, if it is.
    fn loss(&self, member: &Member, now: Moment) -> Option<String> {
        let ((is_up, since), heard) = (self.connection, member.heard);
        let patience = if member.offer.is_some() { LOST_AFTER + self.on_the_way } else { LOST_AFTER };
        let lost = if is_up { now.since(heard.max(since)) >= patience } else { now.since(since) >= KEPT_FOR };
        let silent = now.since(heard).as_secs_f64();
        lost.then(|| {
            format!("it was silent for {silent:.0} s{}", if is_up { "" } else { ", and so was NATS" })
        })
    }
}

/// Bytes of an offer, about.
fn size(offer: &Offer) -> usize {
    serde_json::to_vec(offer).map_or(0, |bytes| bytes.len())
}

impl Machine for Coordinator {
    type Command = CoordinatorCommand;
    type Event = CoordinatorEvent;

    fn subjects(&self) -> Vec<String> {
        vec![ALL_UP.to_owned()]
    }

    fn handle_message(&mut self, subject: &str, bytes: &[u8], now: Moment) {
        let name = subject.rsplit_once('.').and_then(|(_, name)| name.parse::<AgentName>().ok());
        let Some(name) = name else { return };
        let Ok(FromAgent { from, run, says }) = serde_json::from_slice(bytes) else {
            let member = self.members.iter().position(|it| it.name == name && !it.sent_garbage);
            if let Some(number) = member.filter(|_| self.begin.is_some()) {
                self.members[number].sent_garbage = true;
                let words =
                    format!("somebody sent as agent {name} what is no message of agents; it was left out");
                self.report(number, AgentReport::Trouble(words));
            }
            return;
        };
        let member = self.members.iter().position(|it| it.instance == from && it.name == name);
        match (member, says) {
            (_, AgentSays::Hello(hello)) => {
                self.events.push_back(CoordinatorEvent::Heard(name, from, hello));
            }
            (Some(number), says) if run == self.run && self.members[number].state != MemberState::Gone => {
                self.take(number, says, now);
            }
            // Of another run, or of one that was given up.
            _ => {}
        }
    }

    fn handle_connection(&mut self, is_up: bool, now: Moment) {
        self.connection = (is_up, now);
    }

    fn handle_dropped(&mut self) {
        let number = self.members.iter().position(|it| it.state == MemberState::Begun);
        if let Some(number) = number {
            let words = "this machine was too slow for the messages of its agents, and NATS's client dropped some (SlowConsumer); \
                agents send them again"
                .to_owned();
            self.report(number, AgentReport::Trouble(words));
        }
    }

    fn handle_too_large(&mut self, subject: &str, bytes: usize) {
        if let Some(number) = self.members.iter().position(|it| it.name.down() == subject) {
            self.lose(
                number,
                format!(
                    "a message to it has {bytes} bytes, which is more than the NATS server's max_payload"
                ),
            );
        }
    }

    fn handle_command(&mut self, command: CoordinatorCommand, now: Moment) {
        match command {
            CoordinatorCommand::Call => self.is_calling = true,
            CoordinatorCommand::Offer(offers) => {
                self.is_calling = false;
                let member = |(name, instance, offer): (_, _, Offer)| Member {
                    watches: offer.segment.is_none(),
                    name,
                    instance,
                    offer: Some(offer),
                    state: MemberState::Offered,
                    heard: now,
                    inbox: Inbox::default(),
                    sent_garbage: false,
                };
                // All of one run are about of one size.
                let largest = offers.iter().map(|(_, _, offer)| size(offer)).max().unwrap_or(0);
                let bytes = largest as f64 * offers.len() as f64;
                self.on_the_way = Duration::from_secs_f64(bytes / OFFER_BYTES_A_SECOND);
                self.members = offers.into_iter().map(member).collect();
            }
            CoordinatorCommand::Begin(clock) => {
                self.begin = Some(clock);
                self.tell_all(&CoordinatorSays::Begin(clock));
            }
            CoordinatorCommand::Stop => {
                self.is_stopping = true;
                for member in 0..self.members.len() {
                    if self.is_stopped(member) {
                        self.tell(member, CoordinatorSays::Stop);
                    }
                }
            }
            CoordinatorCommand::Done => {
                for member in 0..self.members.len() {
                    self.tell(member, CoordinatorSays::Done);
                }
            }
        }
        (self.beat, self.offered) = (None, None);
    }

    fn handle_timeout(&mut self, now: Moment) {
        for number in 0..self.members.len() {
            let member = &self.members[number];
            if member.state != MemberState::Gone
                && let Some(words) = self.loss(member, now)
            {
                self.lose(number, words);
            }
        }
        if self.beat.is_some_and(|beat| now.since(beat) < BEAT) {
            return;
        }
        self.beat = Some(now);
        // Large ones are not sent again before the others are through.
        let is_to_offer = self.offered.is_none_or(|then| now.since(then) >= BEAT + self.on_the_way);
        if is_to_offer {
            self.offered = Some(now);
        }
        if self.is_calling {
            self.say(CALL.to_owned(), None, CoordinatorSays::Call);
        }
        for number in 0..self.members.len() {
            let member = &self.members[number];
            let says = match (&member.offer, member.state) {
                (_, MemberState::Gone) => {
                    // It may still wait for what is known to have come.
                    CoordinatorSays::Beat(member.inbox.received())
                }
                (Some(_), _) if !is_to_offer => continue,
                (Some(offer), _) => CoordinatorSays::Offer(Box::new(offer.clone())),
                (None, _) if self.is_stopped(number) => CoordinatorSays::Stop,
                (None, _) => CoordinatorSays::Beat(member.inbox.received()),
            };
            self.tell(number, says);
        }
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    fn poll_event(&mut self) -> Option<CoordinatorEvent> {
        self.events.pop_front()
    }
}
