//! A coordinator's side of the dialogue: it calls agents, offers each of them its part, lets them begin together, and receives what they
//! send until each has ended or is lost.

use crate::frame::{
    ALL_UP, AgentMessage, AgentName, CALL, CommonClock, CoordinatorMessage, FromAgent, FromCoordinator,
    Hello, Instance, Item, LARGEST_HELLO, Offer, Watched,
};
use crate::inbox::Inbox;
use crate::outbox::KEPT_FOR;
use crate::state_machine::{Outgoing, StateMachine};
use std::collections::VecDeque;
use std::time::Duration;
use weir_engine::agents::{AgentReport, briefly};
use weir_metrics::Moment;

/// Time between two heartbeats, and between two calls.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// An agent that was silent for this long is lost: three of its heartbeats are missing.
const LOST_AFTER: Duration = Duration::from_secs(3);
/// How fast offers are assumed to travel, all of them together: an agent cannot answer before its offer has arrived, and is given that
/// much longer.
const OFFER_BYTES_A_SECOND: f64 = 10e6;

/// What a coordinator reports of its agents to its owner. The number of an agent is its position in the list of offers.
#[derive(Debug)]
pub enum CoordinatorEvent {
    /// An agent answered the call.
    Hello(AgentName, Instance, Box<Hello>),
    /// An agent is ready to begin.
    Accepted(u16),
    /// An agent refuses its part, with the reason.
    Refused(u16, String),
    /// What an agent has read of the processes that it watches.
    Watched(u16, Box<Watched>),
    /// What an agent reports of its run.
    Report(u16, AgentReport),
}

/// What the owner of a coordinator asks it to do.
#[derive(Debug)]
pub enum CoordinatorCommand {
    /// Call agents until an offer is made.
    Call,
    /// Offer each of these agents its part.
    Offer(Vec<(AgentName, Instance, Offer)>),
    /// Let all agents begin, at a moment of its own clock.
    Begin(CommonClock),
    /// Let all agents end now.
    Stop,
    /// Nothing more is needed of the agents.
    Done,
}

/// The state of a coordinator.
#[derive(Debug)]
pub struct Coordinator {
    instance: Instance,
    run: String,
    is_calling: bool,
    members: Vec<Member>,
    /// How long the offers take to arrive.
    offer_transit: Duration,
    /// When the offers were sent last.
    offered: Option<Moment>,
    begin: Option<CommonClock>,
    is_stopping: bool,
    /// When the last heartbeats were sent.
    heartbeat: Option<Moment>,
    /// Whether the connection to NATS is up, and since when it is or is not.
    connection: (bool, Moment),
    outgoing: VecDeque<Outgoing>,
    events: VecDeque<CoordinatorEvent>,
}

#[derive(Debug)]
struct Member {
    name: AgentName,
    instance: Instance,
    /// Its offer, until it has answered.
    offer: Option<Offer>,
    state: MemberState,
    heard: Moment,
    inbox: Inbox<Item>,
    sent_garbage: bool,
    /// Whether it watches processes and makes no load; it is then needed until the end.
    watches: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Offered,
    Accepted,
    Begun,
    /// It has ended, has refused, or is lost.
    Gone,
}

impl Coordinator {
    /// A coordinator in this process, for the run of this identifier.
    pub fn new(instance: Instance, run: String) -> Self {
        Self {
            instance,
            run,
            is_calling: false,
            members: Vec::new(),
            offer_transit: Duration::ZERO,
            offered: None,
            begin: None,
            is_stopping: false,
            heartbeat: None,
            connection: (false, Moment::default()),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn send(&mut self, subject: String, to: Option<Instance>, message: CoordinatorMessage) {
        let run = if to.is_some() { self.run.clone() } else { String::new() };
        let frame = FromCoordinator { from: self.instance, to, run, message };
        let bytes = serde_json::to_vec(&frame).expect("a frame is JSON");
        self.outgoing.push_back(Outgoing { subject, bytes });
    }

    fn send_to(&mut self, member: usize, message: CoordinatorMessage) {
        let Member { name, instance, .. } = &self.members[member];
        self.send(name.down(), Some(*instance), message);
    }

    /// Sends a message to all agents that are not gone.
    fn send_to_all(&mut self, message: &CoordinatorMessage) {
        for member in 0..self.members.len() {
            if self.members[member].state != MemberState::Gone {
                self.send_to(member, message.clone());
            }
        }
    }

    fn receive(&mut self, number: usize, message: AgentMessage, bytes: usize, now: Moment) {
        let member = &mut self.members[number];
        member.heard = now;
        member.offer = None;
        match message {
            AgentMessage::Time(asked) => {
                // The answer leaves before anything else is handled, so that it was received and answered at the same moment.
                let answered = now.as_nanos();
                self.send_to(number, CoordinatorMessage::Time { asked, received: now.as_nanos(), answered });
            }
            AgentMessage::Accepted if member.state == MemberState::Offered => {
                member.state = MemberState::Accepted;
                self.events.push_back(CoordinatorEvent::Accepted(number as u16));
            }
            AgentMessage::Accepted => {
                // It still says that it is ready: the message with the moment to begin has not arrived.
                if let Some(begin) = self.begin {
                    self.send_to(number, CoordinatorMessage::Begin(begin));
                }
            }
            AgentMessage::Refused(words) => self.lose(number, briefly(&words)),
            AgentMessage::Watched(watched) if member.watches => {
                self.events.push_back(CoordinatorEvent::Watched(number as u16, watched));
            }
            AgentMessage::Item { number: item_number, oldest, item } if !member.watches => {
                let missing = member.inbox.missing;
                for item in member.inbox.take(item_number, oldest, *item, bytes) {
                    // Items after the end are malformed: they are ignored.
                    if self.members[number].state != MemberState::Gone {
                        self.receive_item(number, item);
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
            AgentMessage::Hello(_)
            | AgentMessage::Heartbeat
            | AgentMessage::Watched(_)
            | AgentMessage::Item { .. } => {}
        }
    }

    fn receive_item(&mut self, number: usize, item: Item) {
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

    /// Whether an agent was asked to end its clients and still has to.
    fn is_stopped(&self, number: usize) -> bool {
        let member = &self.members[number];
        self.is_stopping && !member.watches && member.state != MemberState::Gone
    }

    /// Gives an agent up, with the reason.
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

    /// The reason why an agent is lost, if it is.
    fn loss(&self, member: &Member, now: Moment) -> Option<String> {
        let ((is_up, since), heard) = (self.connection, member.heard);
        let patience = if member.offer.is_some() { LOST_AFTER + self.offer_transit } else { LOST_AFTER };
        let lost = if is_up { now.since(heard.max(since)) >= patience } else { now.since(since) >= KEPT_FOR };
        let silent = now.since(heard).as_secs_f64();
        lost.then(|| {
            format!("it was silent for {silent:.0} s{}", if is_up { "" } else { ", and so was NATS" })
        })
    }
}

/// Size of an offer on the wire, without its envelope.
fn size(offer: &Offer) -> usize {
    serde_json::to_vec(offer).map_or(0, |bytes| bytes.len())
}

impl StateMachine for Coordinator {
    type Command = CoordinatorCommand;
    type Event = CoordinatorEvent;

    fn subjects(&self) -> Vec<String> {
        vec![ALL_UP.to_owned()]
    }

    fn handle_message(&mut self, subject: &str, bytes: &[u8], now: Moment) {
        let name = subject.rsplit_once('.').and_then(|(_, name)| name.parse::<AgentName>().ok());
        let Some(name) = name else { return };
        let Ok(FromAgent { from, run, message }) = serde_json::from_slice(bytes) else {
            let member = self.members.iter().position(|it| it.name == name && !it.sent_garbage);
            if let Some(number) = member.filter(|_| self.begin.is_some()) {
                self.members[number].sent_garbage = true;
                let words = format!("a malformed message was sent as agent {name}; it was ignored");
                self.report(number, AgentReport::Trouble(words));
            }
            return;
        };
        let member = self.members.iter().position(|it| it.instance == from && it.name == name);
        match (member, message) {
            (_, AgentMessage::Hello(hello)) if bytes.len() <= LARGEST_HELLO => {
                let hello = Box::new(hello.in_one_line());
                self.events.push_back(CoordinatorEvent::Hello(name, from, hello));
            }
            (Some(number), message) if run == self.run && self.members[number].state != MemberState::Gone => {
                self.receive(number, message, bytes.len(), now);
            }
            // From another run, or from an agent that was given up.
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
                // Offers of one run have about the same size: they differ in their segments only.
                let largest = offers.iter().map(|(_, _, offer)| size(offer)).max().unwrap_or(0);
                let bytes = largest as f64 * offers.len() as f64;
                self.offer_transit = Duration::from_secs_f64(bytes / OFFER_BYTES_A_SECOND);
                self.members = offers.into_iter().map(member).collect();
            }
            CoordinatorCommand::Begin(clock) => {
                self.begin = Some(clock);
                self.send_to_all(&CoordinatorMessage::Begin(clock));
            }
            CoordinatorCommand::Stop => {
                self.is_stopping = true;
                for member in 0..self.members.len() {
                    if self.is_stopped(member) {
                        self.send_to(member, CoordinatorMessage::Stop);
                    }
                }
            }
            CoordinatorCommand::Done => {
                for member in 0..self.members.len() {
                    self.send_to(member, CoordinatorMessage::Done);
                }
            }
        }
        (self.heartbeat, self.offered) = (None, None);
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
        if self.heartbeat.is_some_and(|last| now.since(last) < HEARTBEAT) {
            return;
        }
        self.heartbeat = Some(now);
        // Offers are not repeated before the last ones have had the time to arrive.
        let is_to_offer = self.offered.is_none_or(|then| now.since(then) >= HEARTBEAT + self.offer_transit);
        if is_to_offer {
            self.offered = Some(now);
        }
        if self.is_calling {
            self.send(CALL.to_owned(), None, CoordinatorMessage::Call);
        }
        for number in 0..self.members.len() {
            let member = &self.members[number];
            let message = match (&member.offer, member.state) {
                (_, MemberState::Gone) => {
                    // It may still wait for the acknowledgement of its last items.
                    CoordinatorMessage::Heartbeat(member.inbox.received())
                }
                (Some(_), _) if !is_to_offer => continue,
                (Some(offer), _) => CoordinatorMessage::Offer(Box::new(offer.clone())),
                (None, _) if self.is_stopped(number) => CoordinatorMessage::Stop,
                (None, _) => CoordinatorMessage::Heartbeat(member.inbox.received()),
            };
            self.send_to(number, message);
        }
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    fn poll_event(&mut self) -> Option<CoordinatorEvent> {
        self.events.pop_front()
    }
}
