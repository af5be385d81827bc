//! An MQTT publisher.

mod ending;
mod message_writer;
mod requests;
mod shared_options;

use self::message_writer::{MessageWriter, TopicAlias, publisher_number};
use self::requests::Requests;
pub(super) use self::shared_options::SharedOptions;
use super::broker_path::BrokerPath;
use super::carrier::Carrier;
use super::figures::{
    AWAY, BEGAN_ALONE, CONNECTS, HELD_UP, NO_ANSWER, PUBLISH_LAG, RECONNECTS, SESSIONS_LOST, UNACKNOWLEDGED,
};
use super::outage::broken;
use super::pace::Pace;
use super::published::SentMessages;
use super::read_outcome::{ReadOutcome, number_of};
use super::reconnect::{CLOSED, NO_CONSENT, Reconnecting, Turn};
use super::refusal;
use super::session_time::{moment, since_start};
use super::start_gate::{GateState, GateWait};
use super::template::{ClientNames, MessageTemplate};
use super::topic::Topic;
use crate::client_session::{ClientSession, End, Stop};
use crate::client_state::{ClientPhase, ClientState};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_metrics::common::{MEDIA, READS, RECEIVED, SEND_LAG, STAMPED, UNITS};
use weir_metrics::{Failure, Moment};
use weir_mqtt::client::{PublishError, Session as MqttSession};
use weir_mqtt::mark::HEADER_LEN;
use weir_mqtt::packet::{Subscription, SubscriptionOptions};
use weir_mqtt::property::Properties;
use weir_mqtt::{Client, ClientOptions, PropertyBuffer, Qos, Version};
use weir_shard::Context;

/// Bytes that may wait for a broker before the publisher waits as well. The kernel's buffer comes on top.
const UNSENT_LIMIT: usize = 256 * 1024;

/// Bytes that are gathered for one write.
const WRITE: usize = 64 * 1024;

/// One virtual publisher. Message n is due at the moment when the broker consented plus n divided by the rate, and is
/// never skipped: what is late is sent as soon as it can be, and its lag recorded.
pub(super) struct Publisher {
    client: Client,
    carrier: Carrier,
    state: ClientState,
    options: Arc<SharedOptions>,
    phase: PublishPhase,
    writer: MessageWriter,
    pace: Pace,
    /// The next message to send.
    next: u64,
    /// A message is due, and the window or the link is full.
    held_up: bool,
    /// When that was last over.
    free_since: Moment,
    /// What of the messages in flight is in the shard's recorder.
    in_flight: u16,
    reconnecting: Reconnecting,
    /// Whether messages of a resumed session are still to be sent again.
    resending: bool,
    /// Where the subscribers of the run look, if there may be any; and to which broker it publishes.
    sent: Option<Arc<SentMessages>>,
    broker: SocketAddr,
    /// Whether its link is away because the run broke it: what is lost by that is not the broker's doing.
    broken_by_run: bool,
    /// Whether the broker's words on a message that it refused are kept.
    has_told_refusal: bool,
    /// How much waited for the broker when it was last seen to take something, and when that was.
    blocked: Option<(usize, Moment)>,
    /// Those that wait for an answer, if it asks for answers.
    requests: Option<Requests>,
    /// It waits for the other clients of the run.
    waits: Option<GateWait>,
    /// Since when messages wait for an acknowledgement and none has come.
    unanswered: Option<Moment>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PublishPhase {
    Working,
    /// The moment at which it was stopped; it waits for acknowledgements.
    Stopping(Moment),
    /// It has sent DISCONNECT, and waits for the link to take that.
    Leaving,
    /// Its end is in the shard's recorder.
    Booked,
}

impl Publisher {
    pub(super) fn new(
        planned: PlannedStart,
        client_options: ClientOptions,
        (topic, response_topic, names): (Topic, Option<String>, &ClientNames),
        options: Arc<SharedOptions>,
        BrokerPath { broker, again, carrier, outages }: BrokerPath,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        // Of a session that is kept, a run before this one may have begun it.
        let session = if client_options.clean_start { MqttSession::new() } else { MqttSession::continued() };
        let reconnecting = Reconnecting::new(again, planned.client).breaking(outages);
        let reconnecting = reconnecting.retrying_the_first(options.retry_connect);
        let template =
            options.payloads.template().map(|template| MessageTemplate::of_payload(template, names));
        let body = if options.mark && options.version == Version::V311 && template.is_none() {
            [&[0; HEADER_LEN][..], options.payloads.of(0)].concat()
        } else {
            Vec::new()
        };
        let publisher = publisher_number(now, planned.client);
        let timeout = options.timeouts.request;
        let requests = response_topic.map(|topic| Requests::new(topic, publisher, timeout));
        Self {
            client: Client::new(client_options, session, since_start(now)),
            carrier,
            state: ClientState::begin(planned, options.timeouts, now, shard),
            phase: PublishPhase::Working,
            writer: MessageWriter {
                topic,
                publisher,
                response_topic: requests.as_ref().map(|it| it.topic.clone()),
                begun: 0,
                name: String::new(),
                properties: PropertyBuffer::new(),
                body,
                template,
                text: String::new(),
                alias: TopicAlias::Unused,
            },
            pace: options.pace(planned, now),
            options,
            next: 0,
            held_up: false,
            free_since: now,
            in_flight: 0,
            reconnecting,
            resending: false,
            sent: None,
            broker,
            broken_by_run: false,
            has_told_refusal: false,
            blocked: None,
            requests,
            waits: None,
            unanswered: None,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let planned = self.state.planned();
        let recorder = shard.of(planned);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        let mut packets = Vec::new();
        let bytes = match self.carrier.read(bytes, &mut packets, planned, context) {
            Ok(bytes) => bytes,
            Err((failure, words)) => return self.lose(failure, &words, context),
        };
        if self.reconnecting.is_away() {
            // CONNECT may have waited for a WebSocket.
            self.flush(context);
        }
        let shard = &mut *context.world;
        let mut heard = ReadOutcome::default();
        let (pace, version, requests) = (&self.pace, self.options.version, &mut self.requests);
        let outcome = self.client.input(bytes, since_start(now), &mut |event| {
            if let Some(requests) = requests {
                requests.on_event(&event, now, shard.of(planned));
            }
            heard.on_event(&event, pace, version, now, shard, planned);
        });
        if heard.acknowledged
            && let Some(times) = &self.options.times
        {
            times.acknowledged.note(now);
            times.acknowledgements.fetch_add(heard.taken, Relaxed);
        }
        if let Some(sent) = &self.sent {
            sent.not_taken(heard.not_taken);
        }
        if let Some(words) = heard.refusal.filter(|_| !self.has_told_refusal) {
            self.has_told_refusal = true;
            context.world.failure(now, planned, Failure::MessageRefused, &words);
        }
        if heard.has_answered {
            self.unanswered = Some(now);
        }
        outcome.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
        let answer = heard.connection;
        if answer.accepted {
            context.world.of(planned).count(CONNECTS, 1);
            let known = self.options.topic_alias && self.client.granted().topic_alias_maximum > 0;
            self.writer.alias = if known { TopicAlias::ToBeTold } else { TopicAlias::Unused };
        }
        let shard = &mut *context.world;
        if let Some(refused) = answer.refused {
            return if answer.for_good { Err(refused) } else { self.lose(refused.0, &refused.1, context) };
        }
        if answer.accepted && self.state.phase() == ClientPhase::Playing {
            self.come_back(answer.session_present, now, shard);
            if !answer.session_present {
                self.subscribe_to_answers(now)?;
            }
        } else if answer.accepted && self.requests.is_some() {
            self.state.reach(ClientPhase::Requesting, now, shard);
            self.subscribe_to_answers(now)?;
        } else if answer.accepted || heard.granted && self.state.phase() == ClientPhase::Requesting {
            self.state.reach(ClientPhase::Playing, now, shard);
            self.reconnecting.back(now);
            if let Some(gate) = &self.options.start_gate {
                gate.arrive(planned);
                self.waits = self.options.waits.then(|| gate.wait(now));
            }
            self.begin_schedule(now);
            let published = self.options.published.as_ref();
            self.sent = published.map(|it| it.begin(self.writer.publisher, self.broker, &self.writer.topic));
        }
        Ok(())
    }

    /// Asks for the answers, if there are to be any.
    fn subscribe_to_answers(&mut self, now: Moment) -> Result<(), End> {
        let Some(requests) = &self.requests else { return Ok(()) };
        let options = SubscriptionOptions { qos: self.options.qos, ..SubscriptionOptions::default() };
        let subscription = Subscription { filter: &requests.topic, options };
        let asked = self.client.subscribe(&[subscription], &Properties::NONE, 0, since_start(now));
        asked.map(drop).map_err(|error| (Failure::SubscriptionRefused, error.to_string()))
    }

    /// The first message is due now.
    fn begin_schedule(&mut self, now: Moment) {
        self.pace = self.options.pace(self.state.planned(), now);
        self.free_since = now;
        if self.waits.is_none() {
            self.writer.begun = now.as_nanos();
        }
    }

    /// Whether it waits for others; begins its schedule when it need not any more.
    fn is_waiting(&mut self, now: Moment, shard: &mut ShardRecorder) -> bool {
        let (Some(wait), Some(gate)) = (&mut self.waits, &self.options.start_gate) else { return false };
        let state = wait.poll(gate, now);
        if state == GateState::Closed {
            return true;
        }
        shard.of(self.state.planned()).count(BEGAN_ALONE, u64::from(state == GateState::TimedOut));
        self.waits = None;
        self.begin_schedule(now);
        false
    }

    /// The link, or an attempt at one, has failed: waits for the next attempt, or fails.
    fn lose(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        let works = self.phase == PublishPhase::Working && self.reconnecting.is_for(self.state.phase());
        if works && self.reconnecting.lost(failure, words, now) {
            self.state.pause(now, context.world);
            self.state.try_again_at(self.reconnecting.deadline().unwrap_or(now));
            self.client.reconnect(since_start(now));
            self.carrier.end();
            self.forget(context.world);
            (self.blocked, self.unanswered, self.resending) = (None, None, false);
            context.stand_by();
            Ok(())
        } else {
            Err(self.reconnecting.verdict(failure, words))
        }
    }

    /// The broker has consented again. The schedule has gone on meanwhile.
    fn come_back(&mut self, session_present: bool, now: Moment, shard: &mut ShardRecorder) {
        let due = self.waits.is_none() && self.pace.due(self.next).is_some_and(|due| due < now);
        let recorder = shard.of(self.state.planned());
        recorder.count(RECONNECTS, 1);
        recorder.count(SESSIONS_LOST, u64::from(self.options.keeps_session && !session_present));
        recorder.count(HELD_UP, u64::from(due && !self.held_up));
        recorder.record(AWAY, self.reconnecting.back(now).as_micros() as u64);
        self.state.resume(now, shard);
        self.forget(shard);
        self.broken_by_run = false;
        self.resending = true;
        (self.held_up, self.free_since) = (false, now);
    }

    /// Notes the messages in flight of a session that has ended: the broker may or may not have them.
    fn forget(&mut self, shard: &mut ShardRecorder) {
        let lost = self.client.lost();
        if !self.broken_by_run {
            shard.of(self.state.planned()).count(UNACKNOWLEDGED, lost.len() as u64);
        }
        if let Some(sent) = &self.sent {
            sent.not_taken(lost.into_iter().map(number_of));
        }
    }

    /// Sends the messages of a resumed session again (MQTT-4.4.0-1), with the moments when they were sent first.
    fn send_again(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        while self.resending && context.unsent() <= UNSENT_LIMIT {
            let Some(resend) = self.client.next_resend() else {
                self.resending = false;
                break;
            };
            let (number, lag) = (number_of(resend.token), Duration::from_micros(resend.token >> 32));
            let sent = self.pace.due(number).map_or(now, |due| due + lag);
            let options = &*self.options;
            let mark = options.mark.then(|| self.writer.mark(number, options, options.clock.clocks(sent)));
            // The topic of a message that comes again is told again.
            let alias = std::mem::replace(&mut self.writer.alias, TopicAlias::Unused);
            let result = self.writer.make(number, mark, options, |message| {
                self.client.resend(resend, message, since_start(now)).map(|()| message.payload.len())
            });
            self.writer.alias = alias;
            result.map_err(rejected)?;
            if self.client.output().len() > WRITE {
                self.flush(context);
            }
        }
        Ok(())
    }

    /// Sends all messages that are due.
    fn send_due(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        self.send_again(context)?;
        if self.is_waiting(now, context.world) {
            return Ok(());
        }
        while self.phase == PublishPhase::Working
            && self.state.phase() == ClientPhase::Playing
            && !self.resending
        {
            let Some(due) = self.pace.due(self.next).filter(|due| *due <= now) else { break };
            if self.client.output().len() > WRITE {
                self.flush(context);
            }
            let window_full = self.options.qos != Qos::AtMostOnce && self.client.room() == 0;
            if window_full || context.unsent() > UNSENT_LIMIT {
                if !std::mem::replace(&mut self.held_up, true) {
                    context.world.of(self.state.planned()).count(HELD_UP, 1);
                }
                break;
            }
            if std::mem::take(&mut self.held_up) {
                self.free_since = now;
            }
            self.send(due, now, context.world)?;
        }
        Ok(())
    }

    fn send(&mut self, due: Moment, now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        let lag = now.since(due).as_micros() as u64;
        let options = &*self.options;
        let mark = options.mark.then(|| self.writer.mark(self.next, options, options.clock.clocks(now)));
        let result = self.writer.make(self.next, mark, options, |message| {
            let token = lag.min(u32::MAX.into()) << 32 | self.next & u64::from(u32::MAX);
            self.client.publish(message, token, since_start(now)).map(|_| message.payload.len())
        });
        let payload = result.map_err(rejected)?;
        if let Some(requests) = &mut self.requests {
            shard.of(self.state.planned()).count(NO_ANSWER, requests.sent(self.next, now));
        }
        self.next += 1;
        self.pace.advance(self.next);
        if let Some(sent) = &self.sent {
            sent.reached(self.next);
        }
        if let Some(times) = &options.times {
            times.sent.note(now);
            times.bytes.fetch_add(payload as u64, Relaxed);
        }
        if self.pace.due(self.next).is_none() {
            shard.count_reached(self.state.planned(), now + self.pace.interval());
        }
        let recorder = shard.of(self.state.planned());
        recorder.count(UNITS, 1);
        recorder.count(MEDIA, payload as u64);
        recorder.count(STAMPED, u64::from(mark.is_some()));
        recorder.record(PUBLISH_LAG, lag);
        // Of the generator: not what the broker's window or the link held up.
        recorder.record(SEND_LAG, now.since(due.max(self.free_since)).as_micros() as u64);
        Ok(())
    }

    fn flush(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.carrier.flush(self.client.output(), self.state.planned(), context);
    }

    /// Notes whether the broker takes anything.
    fn watch_broker(&mut self, context: &Context<'_, ShardRecorder>) {
        let unsent = context.unsent();
        self.blocked = match self.blocked {
            _ if unsent == 0 => None,
            Some((before, since)) if unsent >= before => Some((unsent, since)),
            _ => Some((unsent, context.now)),
        };
    }

    /// Notes whether messages wait for an acknowledgement.
    fn watch_acknowledgements(&mut self, now: Moment) {
        let waits = self.client.session().in_flight() > 0;
        self.unanswered = waits.then(|| self.unanswered.unwrap_or(now));
    }

    /// Until when a publisher with a count waits for any acknowledgement, if that is all that it can do: it has no other end.
    fn unanswered_until(&self) -> Option<Moment> {
        let is_stuck = self.pace.due(self.next).is_none() || self.client.room() == 0;
        let counts = self.options.count.is_some() && self.phase == PublishPhase::Working;
        self.unanswered.filter(|_| counts && is_stuck).map(|since| since + self.options.timeouts.request)
    }

    fn blocked_until(&self) -> Option<Moment> {
        self.blocked.map(|(_, since)| since + self.options.send_timeout)
    }
}

impl ClientSession for Publisher {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    /// Bytes of the broker are read while a message of any length is on its way to it.
    fn handle_opening(&mut self, context: &mut Context<'_, ShardRecorder>) {
        context.limit_unsent(weir_shard::UNSENT_LIMIT + self.options.longest);
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.carrier.begin(self.state.planned(), context);
        self.state.reach(ClientPhase::Handshaking, context.now, context.world);
        if self.reconnecting.is_away() {
            self.reconnecting.connected();
            self.flush(context);
        }
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.read(bytes, context)
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        match self.reconnecting.turn(now, self.options.timeouts.handshake) {
            Some(Turn::Connect(endpoint)) => context.reopen(endpoint),
            Some(Turn::LetGo) => return self.lose(Failure::HandshakeTimeout, NO_CONSENT, context),
            Some(Turn::Break) if self.phase == PublishPhase::Working => {
                self.broken_by_run = true;
                return self.lose(Failure::Reset, &broken(), context);
            }
            Some(Turn::Break) => {}
            None if self.state.phase() < ClientPhase::Playing
                && !self.reconnecting.is_away()
                && self.state.deadline().is_some_and(|deadline| deadline <= now) =>
            {
                let (failure, words) = self.state.overdue();
                return self.lose(failure, words, context);
            }
            None if self.state.phase() == ClientPhase::Playing => {
                if let Err(error) = self.client.handle_timeout(since_start(now)) {
                    return self.lose(Failure::PingTimeout, &error.to_string(), context);
                }
            }
            None => {}
        }
        Ok(())
    }

    fn handle_stop(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        if let Some(why) = self.reconnecting.why() {
            // One whose link the run has cut just now has not failed.
            let is_cut = self.broken_by_run && self.reconnecting.is_first_attempt();
            return if is_cut { Ok(Stop::Now) } else { Err(why) };
        }
        if self.state.phase() != ClientPhase::Playing {
            return Ok(Stop::Now);
        }
        if self.phase == PublishPhase::Working {
            self.phase = PublishPhase::Stopping(context.now);
            if let Some(sent) = &self.sent {
                sent.stop();
            }
        }
        Ok(Stop::WhenDone)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        if self.phase == PublishPhase::Leaving {
            self.state.finish(context.now, context.world);
            return Ok(());
        }
        let words = if words.is_empty() { CLOSED } else { words };
        if self.state.phase() == ClientPhase::Handshaking {
            return self.lose(failure, &refusal::before_connack(words, self.options.version), context);
        }
        self.lose(failure, words, context)
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if !self.reconnecting.is_away() && self.state.phase() > ClientPhase::Connecting {
            if let Some(requests) = &mut self.requests {
                context.world.of(self.state.planned()).count(NO_ANSWER, requests.expire(context.now));
            }
            self.send_due(context)?;
            self.flush(context);
            self.leave_when_done(context);
            if self.state.is_over() {
                return Ok(());
            }
            self.watch_broker(context);
            if self.blocked_until().is_some_and(|until| until <= context.now) {
                self.lose(Failure::SendTimeout, "the broker took nothing more in time", context)?;
            }
            self.watch_acknowledgements(context.now);
            if self.unanswered_until().is_some_and(|until| until <= context.now) {
                let seconds = self.options.timeouts.request.as_secs_f64();
                let waiting = self.client.session().in_flight();
                let words = format!(
                    "the broker has acknowledged nothing for {seconds} s, and {waiting} messages wait for it"
                );
                return Err((Failure::SendTimeout, words));
            }
        }
        if self.phase != PublishPhase::Leaving {
            self.book_in_flight(context.world);
        }
        Ok(())
    }

    fn poll_timeout(&self, _: &Context<'_, ShardRecorder>) -> Option<Moment> {
        if self.reconnecting.is_away() {
            return self.reconnecting.deadline();
        }
        let playing = self.state.phase() == ClientPhase::Playing;
        let due = match self.phase {
            PublishPhase::Working if playing && self.waits.is_some() => {
                self.waits.map(|wait| wait.deadline())
            }
            PublishPhase::Working if playing && !self.held_up => self.pace.due(self.next),
            PublishPhase::Stopping(since) => Some(since + self.options.linger),
            _ => None,
        };
        let ping = self.client.deadline().map(moment);
        let answer = self.requests.as_ref().and_then(Requests::deadline);
        [self.blocked_until(), self.unanswered_until(), due, ping, answer, self.reconnecting.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn leave(&mut self, _: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        if self.reconnecting.is_away() {
            self.client.output().clear();
        }
        // A DISCONNECT with the reason code of the broker's error.
        self.flush(context);
        self.carrier.close(self.state.planned(), context);
        self.book(context.now, context.world);
    }
}

fn rejected(error: PublishError) -> End {
    (Failure::Rejected, error.to_string())
}
