//! An MQTT publisher.

use super::figures::{
    ACKNOWLEDGE_TIME, ACKNOWLEDGED, HELD_UP, IN_FLIGHT, PINGS, PUBLISH_LAG, REFUSED, RESPONSE_TIME,
    UNACKNOWLEDGED, UNMATCHED, UNSENT,
};
use super::pace::Pace;
use super::payloads::Payloads;
use super::refusal;
use super::times::PublishTimes;
use super::topic::Topic;
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use crate::life::{Life, Phase, Timeouts};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::common::{MEDIA, READS, RECEIVED, SEND_LAG, SENT, STAMPED, UNITS};
use weir_metrics::{Failure, Moment};
use weir_mqtt::client::{PublishError, Session as MqttSession};
use weir_mqtt::mark::{Clocks, HEADER_LEN, Mark, PROPERTY};
use weir_mqtt::packet::Disconnect;
use weir_mqtt::{
    Client, ClientEvent, ClientOptions, Property, PropertyBuffer, Publish, Qos, ReasonCode, Version,
};
use weir_shard::{Context, Event, Session};

/// Bytes that may wait for a broker before the publisher waits as well. The kernel's buffer comes on top.
const UNSENT_LIMIT: usize = 256 * 1024;

/// Bytes that are gathered for one write.
const WRITE: usize = 64 * 1024;

/// How long a publisher that has to stop waits for acknowledgements.
const FAREWELL: Duration = Duration::from_millis(400);

/// What all publishers of a workload share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) timeouts: Timeouts,
    /// How long a broker may take nothing.
    pub(super) send_timeout: Duration,
    pub(super) version: Version,
    pub(super) qos: Qos,
    pub(super) retain: bool,
    pub(super) rate: f64,
    pub(super) count: Option<u64>,
    /// Whether each message carries a mark.
    pub(super) mark: bool,
    pub(super) payloads: Payloads,
    pub(super) clock: HostClock,
    pub(super) times: Option<Arc<PublishTimes>>,
}

/// One virtual publisher. Message n is due at the moment when the broker consented plus n divided by the rate, and is
/// never skipped: what is late is sent as soon as it can be, and its lag recorded.
pub(super) struct Publisher {
    client: Client,
    life: Life,
    common: Arc<Common>,
    stage: Stage,
    maker: Maker,
    pace: Pace,
    /// The next message to send.
    next: u64,
    /// A message is due, and the window or the link is full.
    held_up: bool,
    /// When that was last over.
    free_since: Moment,
    /// What of the messages in flight is in the ledger.
    in_flight: u16,
    /// How much waited for the broker when it was last seen to take something, and when that was.
    blocked: Option<(usize, Moment)>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Working,
    /// It was told to stop then, and waits for acknowledgements.
    Stopping(Moment),
    /// It has said goodbye, and waits for the link to take that.
    Leaving,
    /// Its end is in the ledger.
    Booked,
}

/// Makes messages, one after the other, without new memory.
struct Maker {
    topic: Topic,
    publisher: u64,
    begun: u64,
    name: String,
    properties: PropertyBuffer,
    /// A payload with room for a mark in front, if the version has no other place for it.
    body: Vec<u8>,
}

/// What the broker said in one read.
#[derive(Default)]
struct Heard {
    connected: bool,
    refused: Option<(Failure, String)>,
    acknowledged: bool,
}

impl Publisher {
    pub(super) fn new(
        slot: Slot,
        options: ClientOptions,
        topic: Topic,
        common: Arc<Common>,
        now: Moment,
        ledger: &mut Ledger,
    ) -> Self {
        // Of a session that is kept, a run before this one may have begun it.
        let session = if options.clean_start { MqttSession::new() } else { MqttSession::continued() };
        let body = if common.mark && common.version == Version::V311 {
            [&[0; HEADER_LEN][..], common.payloads.of(0)].concat()
        } else {
            Vec::new()
        };
        Self {
            client: Client::new(options, session, time(now)),
            life: Life::begin(slot, common.timeouts, now, ledger),
            stage: Stage::Working,
            maker: Maker {
                topic,
                publisher: publisher_number(now, slot.client),
                begun: 0,
                name: String::new(),
                properties: PropertyBuffer::new(),
                body,
            },
            pace: Pace::new(now, common.rate, common.count),
            common,
            next: 0,
            held_up: false,
            free_since: now,
            in_flight: 0,
            blocked: None,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Ledger>) {
        let (now, ledger) = (context.now, &mut *context.world);
        let slot = self.life.slot();
        let recorder = ledger.of(slot);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        let mut heard = Heard::default();
        let (pace, version) = (self.pace, self.common.version);
        let outcome = self.client.input(bytes, time(now), &mut |event| {
            heard.hear(&event, &pace, version, now, ledger, slot);
        });
        if heard.acknowledged
            && let Some(times) = &self.common.times
        {
            times.acknowledged.note(now);
        }
        if let Err(error) = outcome {
            self.life.fail(Failure::MalformedInput, &error.to_string(), now, ledger);
        } else if let Some((failure, words)) = heard.refused {
            self.life.fail(failure, &words, now, ledger);
        } else if heard.connected {
            self.life.reach(Phase::Playing, now, ledger);
            self.pace = Pace::new(now, self.common.rate, self.common.count);
            self.maker.begun = now.as_nanos();
            self.free_since = now;
        }
    }

    /// Sends all messages that are due.
    fn send_due(&mut self, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        while self.stage == Stage::Working && self.life.phase() == Phase::Playing {
            let Some(due) = self.pace.due(self.next).filter(|due| *due <= now) else { break };
            if self.client.output().len() > WRITE {
                self.flush(context);
            }
            let window_full = self.common.qos != Qos::AtMostOnce && self.client.room() == 0;
            if window_full || context.unsent() > UNSENT_LIMIT {
                if !std::mem::replace(&mut self.held_up, true) {
                    context.world.of(self.life.slot()).count(HELD_UP, 1);
                }
                return;
            }
            if std::mem::take(&mut self.held_up) {
                self.free_since = now;
            }
            self.send(due, now, context.world);
        }
    }

    fn send(&mut self, due: Moment, now: Moment, ledger: &mut Ledger) {
        let lag = now.since(due).as_micros() as u64;
        let common = &*self.common;
        let mark = common.mark.then(|| self.maker.mark(self.next, common.clock.clocks(now)));
        let result = self.maker.make(self.next, mark, common, |message| {
            // The lag in the upper half, the number in the lower: enough for an hour, and for four thousand million.
            let token = lag.min(u32::MAX.into()) << 32 | self.next & u64::from(u32::MAX);
            self.client.publish(message, token, time(now)).map(|_| message.payload.len())
        });
        let recorder = ledger.of(self.life.slot());
        match result {
            Ok(payload) => {
                self.next += 1;
                if let Some(times) = &common.times {
                    times.sent.note(now);
                }
                recorder.count(UNITS, 1);
                recorder.count(MEDIA, payload as u64);
                recorder.count(STAMPED, u64::from(mark.is_some()));
                recorder.record(PUBLISH_LAG, lag);
                // Of the generator: not what the broker's window or the link held up.
                recorder.record(SEND_LAG, now.since(due.max(self.free_since)).as_micros() as u64);
            }
            Err(error) => self.life.fail(Failure::Rejected, &error.to_string(), now, ledger),
        }
    }

    fn flush(&mut self, context: &mut Context<'_, Ledger>) {
        let output = self.client.output();
        if !output.is_empty() {
            context.send(output);
            context.world.of(self.life.slot()).count(SENT, output.len() as u64);
            output.clear();
        }
    }

    /// Time passed: deadlines of the phase, of the keep-alive, of a farewell.
    fn time(&mut self, now: Moment, ledger: &mut Ledger) {
        if self.life.deadline().is_some_and(|deadline| deadline <= now) {
            let (failure, words) = self.life.overdue();
            self.life.fail(failure, words, now, ledger);
        }
        if self.life.phase() == Phase::Playing
            && let Err(error) = self.client.pass(time(now))
        {
            self.life.fail(Failure::PingTimeout, &error.to_string(), now, ledger);
        }
    }

    /// Says goodbye when all is done, or when it must.
    fn leave_when_done(&mut self, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        let in_flight = self.client.session().in_flight() > 0;
        let done = match self.stage {
            Stage::Working => self.pace.due(self.next).is_none() && !in_flight,
            Stage::Stopping(since) => !in_flight || now >= since + FAREWELL,
            Stage::Leaving | Stage::Booked => false,
        };
        if done && self.life.phase() == Phase::Playing {
            // Both versions have a normal disconnection.
            let _ = self.client.disconnect(&Disconnect::of(ReasonCode::Success));
            self.flush(context);
            self.book(now, context.world);
            self.stage = Stage::Leaving;
        }
        if self.stage == Stage::Leaving && context.unsent() == 0 {
            self.life.finish(context.world);
        }
    }

    /// Books what was not done.
    fn book(&mut self, now: Moment, ledger: &mut Ledger) {
        let until = match self.stage {
            Stage::Working => now,
            Stage::Stopping(since) => since,
            Stage::Leaving | Stage::Booked => return,
        };
        let recorder = ledger.of(self.life.slot());
        if self.maker.begun > 0 {
            recorder.count(UNSENT, self.pace.due_by(until).saturating_sub(self.next));
        }
        recorder.count(UNACKNOWLEDGED, self.client.session().in_flight().into());
        recorder.shift(IN_FLIGHT, -i64::from(self.in_flight));
        self.in_flight = 0;
        self.stage = Stage::Booked;
    }

    fn book_in_flight(&mut self, ledger: &mut Ledger) {
        let in_flight = self.client.session().in_flight();
        let before = std::mem::replace(&mut self.in_flight, in_flight);
        ledger.of(self.life.slot()).shift(IN_FLIGHT, i64::from(in_flight) - i64::from(before));
    }

    /// Notes whether the broker takes anything.
    fn watch_broker(&mut self, context: &Context<'_, Ledger>) {
        let unsent = context.unsent();
        self.blocked = match self.blocked {
            _ if unsent == 0 => None,
            Some((before, since)) if unsent >= before => Some((unsent, since)),
            _ => Some((unsent, context.now)),
        };
    }

    fn blocked_until(&self) -> Option<Moment> {
        self.blocked.map(|(_, since)| since + self.common.send_timeout)
    }

    fn next_moment(&self) -> Option<Moment> {
        let playing = self.life.phase() == Phase::Playing;
        let due = match self.stage {
            Stage::Working if playing && !self.held_up => self.pace.due(self.next),
            Stage::Stopping(since) => Some(since + FAREWELL),
            _ => None,
        };
        let ping = self.client.deadline().map(moment);
        [self.life.deadline(), self.blocked_until(), due, ping].into_iter().flatten().min()
    }
}

impl Session<Ledger> for Publisher {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        match event {
            // The last two are for those that have datagrams.
            Event::Opening
            | Event::Writable
            | Event::Woken
            | Event::Datagrams(_)
            | Event::Side(_)
            | Event::HungUp { .. } => {}
            Event::Connected => self.life.reach(Phase::Handshaking, now, context.world),
            Event::Bytes(bytes) => self.read(bytes, context),
            Event::Timer => self.time(now, context.world),
            Event::Stop if self.life.phase() == Phase::Playing => {
                if self.stage == Stage::Working {
                    self.stage = Stage::Stopping(now);
                }
            }
            Event::Stop => self.life.finish(context.world),
            Event::Closed { .. } if self.stage == Stage::Leaving => self.life.finish(context.world),
            Event::Closed { failure, words } => {
                let words = if words.is_empty() { "the broker closed the link" } else { words };
                self.life.fail(failure, words, now, context.world);
            }
        }
        if self.life.phase() > Phase::Connecting && self.life.phase() < Phase::Over {
            self.send_due(context);
            self.flush(context);
            self.leave_when_done(context);
            self.watch_broker(context);
            if self.blocked_until().is_some_and(|until| until <= now) {
                let words = "the broker took nothing more in time";
                self.life.fail(Failure::SendTimeout, words, now, context.world);
            }
        }
        if self.life.phase() == Phase::Over {
            // A DISCONNECT that tells the broker what it did wrong.
            self.flush(context);
            self.book(now, context.world);
            context.close();
            return;
        }
        self.book_in_flight(context.world);
        match self.next_moment() {
            Some(next) => context.set_timer(next),
            None => context.clear_timer(),
        }
    }
}

impl Maker {
    fn mark(&self, sequence_number: u64, sent: Clocks) -> Mark {
        Mark { publisher: self.publisher, sequence_number, begun: self.begun, sent }
    }

    /// Makes a message and hands it over.
    #[inline]
    fn make(
        &mut self,
        number: u64,
        mark: Option<Mark>,
        common: &Common,
        publish: impl FnOnce(&Publish<'_>) -> Result<usize, PublishError>,
    ) -> Result<usize, PublishError> {
        self.topic.write(number, &mut self.name);
        self.properties.clear();
        let mut payload = common.payloads.of(number);
        match (mark, common.version) {
            (Some(mark), Version::V5) => {
                let text = mark.text();
                let text = std::str::from_utf8(&text).unwrap_or_default();
                self.properties.push(Property::UserProperty((PROPERTY, text)))?;
            }
            (Some(mark), Version::V311) => {
                if common.payloads.len() > 1 {
                    self.body.truncate(HEADER_LEN);
                    self.body.extend_from_slice(payload);
                }
                mark.put(&mut self.body);
                payload = &self.body;
            }
            (None, _) => {}
        }
        let properties = self.properties.properties();
        let (qos, retain) = (common.qos, common.retain);
        publish(&Publish { qos, retain, properties, ..Publish::new(&self.name, payload) })
    }
}

impl Heard {
    #[inline]
    fn hear(
        &mut self,
        event: &ClientEvent<'_>,
        pace: &Pace,
        version: Version,
        now: Moment,
        ledger: &mut Ledger,
        slot: Slot,
    ) {
        let recorder = ledger.of(slot);
        match event {
            ClientEvent::Acknowledged { token, reason, .. } => {
                self.acknowledged = true;
                if reason.is_error() {
                    recorder.count(REFUSED, 1);
                } else {
                    recorder.count(ACKNOWLEDGED, 1);
                    recorder.count(UNMATCHED, u64::from(*reason == ReasonCode::NoMatchingSubscribers));
                }
                if let Some(due) = pace.due(token & u64::from(u32::MAX)) {
                    let response = now.since(due).as_micros() as u64;
                    recorder.record(RESPONSE_TIME, response);
                    recorder.record(ACKNOWLEDGE_TIME, response.saturating_sub(token >> 32));
                }
            }
            ClientEvent::Connected(_) => self.connected = true,
            ClientEvent::Refused(connack) => self.refused = Some(refusal::of_connack(connack, version)),
            ClientEvent::Disconnected(disconnect) => {
                self.refused = Some(refusal::of_disconnect(disconnect, version));
            }
            ClientEvent::Pong => recorder.count(PINGS, 1),
            _ => {}
        }
    }
}

/// A number that no other publisher has, whatever run and machine: the time, well mixed, and the client.
fn publisher_number(now: Moment, client: u32) -> u64 {
    let mut number =
        weir_shard::clock::wall_nanos() ^ now.as_nanos().rotate_left(32) ^ u64::from(client) << 20;
    for _ in 0..2 {
        number = (number ^ number >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    number ^ number >> 29
}

/// A moment as the protocol's machine takes it.
pub(super) fn time(now: Moment) -> Duration {
    Duration::from_nanos(now.as_nanos())
}

/// And back.
pub(super) fn moment(time: Duration) -> Moment {
    Moment::default() + time
}
