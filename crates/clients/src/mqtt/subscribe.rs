//! An MQTT subscriber.

mod read_totals;
mod responses;

use self::read_totals::ReadTotals;
use self::responses::Responses;
use super::broker_path::BrokerPath;
use super::carrier::Carrier;
use super::figures::{AWAY, CONNECTS, CUT, MISSING, RECONNECTS, SESSIONS_LOST};
use super::outage::BROKEN;
use super::published::{Lacking, Published};
use super::reconnect::{CLOSED, NO_CONSENT, Reconnecting, Turn};
use super::session_time::{moment, since_start};
use super::start_gate::StartGate;
use super::{refusal, trace};
use crate::client_session::{ClientSession, End, Stop};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::host_clock::HostClock;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_metrics::common::{LOST, OPEN_ENDS, READS, RECEIVED};
use weir_metrics::{Failure, Moment};
use weir_mqtt::client::{Message, Session as MqttSession};
use weir_mqtt::delivery::DeliveryTracker;
use weir_mqtt::mark::{HEADER_LEN, Mark, PROPERTY};
use weir_mqtt::packet::{Disconnect, Subscription, SubscriptionOptions};
use weir_mqtt::property::Properties;
use weir_mqtt::{Client, ClientEvent, ClientOptions, Publish, ReasonCode, Version};
use weir_shard::Context;

/// What all subscribers of a workload share.
#[derive(Debug)]
pub(super) struct SharedOptions {
    pub(super) timeouts: Timeouts,
    /// What is asked of each subscription.
    pub(super) subscription: SubscriptionOptions,
    pub(super) version: Version,
    pub(super) clock: HostClock,
    /// Whether the broker is to keep the sessions of subscribers that are gone.
    pub(super) keeps_session: bool,
    /// How long a stopped subscriber waits for what has been published.
    pub(super) linger: Duration,
    /// Where the publishers of the run leave what they have published.
    pub(super) published: Option<Arc<Published>>,
    /// Where the clients of the run wait for each other.
    pub(super) start_gate: Option<Arc<StartGate>>,
    /// Whether messages with a Response Topic are answered.
    pub(super) responds: bool,
    /// Whether the first connection is tried again.
    pub(super) retry_connect: bool,
}

/// How often a subscriber that lingers looks whether all has come.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What came, of one subscriber or of all that share a subscription.
#[derive(Debug, Default)]
pub(super) struct Group {
    deliveries: DeliveryTracker,
    missing: u64,
    /// When the first was subscribed.
    since: Option<Moment>,
    /// Whether all publishers of the run are followed from then on.
    complete: bool,
    members: u32,
}

/// A message that comes in pieces: what is looked for at its end, and nothing of its payload but where a mark may be.
struct Large {
    dup: bool,
    retain: bool,
    mark: Option<Mark>,
    head: Vec<u8>,
}

/// One virtual subscriber. It plays as soon as its subscription is granted; one without a filter, as soon as the broker consents.
pub(super) struct Subscriber {
    client: Client,
    carrier: Carrier,
    viewer: Viewer,
    reconnecting: Reconnecting,
}

/// All of a subscriber but the protocol's machine.
struct Viewer {
    state: ClientState,
    options: Arc<SharedOptions>,
    following: Following,
    /// None of a client that only connects.
    filters: Vec<String>,
    broker: SocketAddr,
    large: Option<Box<Large>>,
    /// Whether the broker had a session of it, so that it may have been subscribed before this run.
    resumed: bool,
    /// Whether it counts as a member of its group.
    member: bool,
    /// What of the missing messages is in the shard's recorder.
    missing_booked: u64,
    stopping: bool,
    /// When it leaves, whether or not everything has come; set when it was asked to stop.
    leaves: Option<Moment>,
}

/// What a subscriber asks for.
pub(super) struct TopicFilters {
    /// None of a client that only connects.
    pub(super) filters: Vec<String>,
    /// What has come, if it is counted together with the others of a shared subscription.
    pub(super) group: Option<Arc<Mutex<Group>>>,
}

/// Where deliveries are tracked. Subscribers that share a subscription share a tracker, which each locks once a read.
enum Following {
    Alone(Box<Group>),
    Shared(Arc<Mutex<Group>>),
}

impl Subscriber {
    pub(super) fn new(
        planned: PlannedStart,
        client_options: ClientOptions,
        TopicFilters { filters, group }: TopicFilters,
        options: Arc<SharedOptions>,
        BrokerPath { broker, again, carrier, outages }: BrokerPath,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        // Of a session that is kept, a run before this one may have begun it.
        let session = if client_options.clean_start { MqttSession::new() } else { MqttSession::continued() };
        Self {
            client: Client::new(client_options, session, since_start(now)),
            carrier,
            reconnecting: Reconnecting::new(again, planned.client)
                .breaking(outages)
                .retrying_the_first(options.retry_connect),
            viewer: Viewer {
                state: ClientState::begin(planned, options.timeouts, now, shard),
                options,
                following: group.map_or_else(|| Following::Alone(Box::default()), Following::Shared),
                filters,
                broker,
                large: None,
                resumed: false,
                member: false,
                missing_booked: 0,
                stopping: false,
                leaves: None,
            },
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let planned = self.viewer.state.planned();
        let recorder = context.world.of(planned);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        let mut packets = Vec::new();
        let bytes = match self.carrier.read(bytes, &mut packets, planned, context) {
            Ok(bytes) => bytes,
            Err((failure, words)) => return self.lose(failure, &words, context),
        };
        let viewer = &mut self.viewer;
        let recorder = context.world.of(planned);
        let mut totals = ReadTotals::default();
        let here = viewer.options.clock.clocks(now);
        let options = &*viewer.options;
        totals.as_published = options.subscription.retain_as_published.then_some(now);
        let large = &mut viewer.large;
        let mut responses = Responses::default();
        let outcome = {
            let mut guard;
            let (group, shared) = match &mut viewer.following {
                Following::Alone(group) => (&mut **group, false),
                Following::Shared(group) => {
                    guard = group.lock().unwrap_or_else(PoisonError::into_inner);
                    (&mut *guard, true)
                }
            };
            let outcome = self.client.input(bytes, since_start(now), &mut |event| {
                trace::heard(planned.number(), &event);
                match event {
                    ClientEvent::Message(message) => {
                        if options.responds {
                            responses.take(&message.publish);
                        }
                        let payload = message.publish.payload;
                        totals.media += payload.len() as u64;
                        let mark = marked(&message).or_else(|| Mark::from_payload(payload));
                        totals.message(&message.publish, mark, &here, shared, group, recorder);
                    }
                    ClientEvent::MessageBegin { message, .. } => {
                        if options.responds {
                            responses.take(&message.publish);
                        }
                        let (dup, retain) = (message.publish.dup, message.publish.retain);
                        *large =
                            Some(Box::new(Large { dup, retain, mark: marked(&message), head: Vec::new() }));
                    }
                    ClientEvent::MessagePayload(bytes) => {
                        totals.media += bytes.len() as u64;
                        if let Some(large) = large {
                            large.keep(bytes);
                        }
                    }
                    // It counts, and is timed, when all of it is there.
                    ClientEvent::MessageEnd { .. } => {
                        if let Some(large) = large.take() {
                            let publish =
                                Publish { dup: large.dup, retain: large.retain, ..Publish::new("", &[]) };
                            let mark = large.mark.or_else(|| Mark::from_payload(&large.head));
                            totals.message(&publish, mark, &here, shared, group, recorder);
                        }
                    }
                    ClientEvent::Subscribed { suback, .. } => {
                        totals.granted(&suback, options, now, group, recorder);
                    }
                    other => totals.on_event(&other, options.version),
                }
            });
            viewer.resumed |= totals.connection.session_present;
            if totals.granted && !std::mem::replace(&mut viewer.member, true) {
                group.members += 1;
                if group.members == 1
                    && !viewer.resumed
                    && let Some(published) = &options.published
                {
                    published.subscribe(viewer.broker, &viewer.filters, &mut group.deliveries);
                    group.complete = true;
                }
            }
            totals.book(recorder);
            if !shared {
                let before = std::mem::replace(&mut viewer.missing_booked, group.missing);
                recorder.shift(MISSING, group.missing as i64 - before as i64);
            }
            outcome
        };
        responses.send(&mut self.client, now, context.world.of(planned));
        let shard = &mut *context.world;
        let answer = totals.connection;
        shard.of(planned).count(CONNECTS, u64::from(answer.accepted));
        outcome.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
        if let Some(refused) = answer.refused {
            return if answer.for_good { Err(refused) } else { self.lose(refused.0, &refused.1, context) };
        }
        let is_away = self.reconnecting.is_away() && viewer.state.phase() == ClientPhase::Playing;
        if answer.accepted && is_away {
            let recorder = shard.of(planned);
            recorder.count(RECONNECTS, 1);
            recorder.count(SESSIONS_LOST, u64::from(viewer.options.keeps_session && !answer.session_present));
        }
        // With its session the broker has kept the subscription as well.
        let has_all = viewer.filters.is_empty() || is_away && answer.session_present;
        if answer.accepted && !has_all {
            viewer.state.reach(ClientPhase::Requesting, now, shard);
            return self.subscribe(context);
        }
        if (answer.accepted || totals.granted) && is_away {
            self.come_back(now, shard);
        } else if answer.accepted || totals.granted {
            self.reconnecting.back(now);
            viewer.state.reach(ClientPhase::Playing, now, shard);
            viewer.options.start_gate.iter().for_each(|gate| gate.arrive(planned));
        }
        Ok(())
    }

    fn subscribe(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let options = self.viewer.options.subscription;
        let filters = self.viewer.filters.iter();
        let subscriptions: Vec<_> = filters.map(|filter| Subscription { filter, options }).collect();
        let asked = self.client.subscribe(&subscriptions, &Properties::NONE, 0, since_start(now));
        asked.map(drop).map_err(|error| (Failure::SubscriptionRefused, error.to_string()))
    }

    fn come_back(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let away = self.reconnecting.back(now);
        shard.of(self.viewer.state.planned()).record(AWAY, away.as_micros() as u64);
        self.viewer.state.resume(now, shard);
    }

    /// The link, or an attempt at one, has failed: waits for the next attempt, or fails.
    fn lose(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        let viewer = &mut self.viewer;
        viewer.book_cut(&self.client, context.world);
        let works = self.reconnecting.is_for(viewer.state.phase()) && !viewer.stopping;
        if works && self.reconnecting.lost(failure, words, now) {
            viewer.state.pause(now, context.world);
            viewer.state.try_again_at(self.reconnecting.deadline().unwrap_or(now));
            self.client.reconnect(since_start(now));
            self.carrier.end();
            context.stand_by();
            Ok(())
        } else {
            Err(self.reconnecting.verdict(failure, words))
        }
    }

    fn flush(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let output = self.client.output();
        self.carrier.flush(output, self.viewer.state.planned(), context);
        if output.is_empty() {
            // Thousands that do nothing must cost little.
            output.shrink_to(4096);
        }
    }

    /// Sends DISCONNECT when everything that was published in this run has come, or when the time for that is over.
    fn stop(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let leaves = *self.viewer.leaves.get_or_insert(now + self.viewer.options.linger);
        if let Some(why) = self.reconnecting.why() {
            return Err(why);
        }
        if self.viewer.state.phase() == ClientPhase::Playing && now < leaves && self.viewer.waits() {
            return Ok(());
        }
        self.viewer.book_cut(&self.client, context.world);
        if self.viewer.state.phase() > ClientPhase::Connecting {
            // Both versions have a normal disconnection.
            let _ = self.client.disconnect(&Disconnect::of(ReasonCode::Success));
        }
        self.leave(None, context);
        self.viewer.state.finish(context.now, context.world);
        Ok(())
    }
}

impl ClientSession for Subscriber {
    fn state(&self) -> &ClientState {
        &self.viewer.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.viewer.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.carrier.begin(self.viewer.state.planned(), context);
        self.viewer.state.reach(ClientPhase::Handshaking, context.now, context.world);
        if self.reconnecting.is_away() {
            self.reconnecting.connected();
        }
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if !bytes.is_empty() {
            self.read(bytes, context)?;
        }
        // One that lingers looks at its own times.
        if self.viewer.stopping && self.viewer.leaves.is_none() { self.stop(context) } else { Ok(()) }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        match self.reconnecting.turn(now, self.viewer.options.timeouts.handshake) {
            Some(Turn::Connect(endpoint)) => context.reopen(endpoint),
            Some(Turn::LetGo) => self.lose(Failure::HandshakeTimeout, NO_CONSENT, context)?,
            Some(Turn::Break) if !self.viewer.stopping => self.lose(Failure::Reset, BROKEN, context)?,
            Some(Turn::Break) => {}
            None if self.viewer.state.phase() < ClientPhase::Playing
                && !self.reconnecting.is_away()
                && self.viewer.state.deadline().is_some_and(|deadline| deadline <= now) =>
            {
                let (failure, words) = self.viewer.state.overdue();
                self.lose(failure, words, context)?;
            }
            None if self.viewer.state.phase() == ClientPhase::Playing => {
                if let Err(error) = self.client.handle_timeout(since_start(now)) {
                    self.lose(Failure::PingTimeout, &error.to_string(), context)?;
                }
            }
            None => {}
        }
        if self.viewer.stopping { self.stop(context) } else { Ok(()) }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        self.viewer.stopping = true;
        context.pull();
        Ok(Stop::WhenDone)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let words = if words.is_empty() { CLOSED } else { words };
        if self.viewer.state.phase() == ClientPhase::Handshaking {
            return self.lose(failure, &refusal::before_connack(words, self.viewer.options.version), context);
        }
        self.lose(failure, words, context)
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        // CONNECT waits for the link.
        if self.viewer.state.phase() > ClientPhase::Connecting && self.reconnecting.has_link() {
            self.flush(context);
        }
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let ping = self.client.deadline().map(moment);
        let look = self.viewer.leaves.map(|leaves| leaves.min(context.now + POLL_INTERVAL));
        [ping, look, self.reconnecting.deadline()].into_iter().flatten().min()
    }

    fn leave(&mut self, _: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        if self.reconnecting.has_link() {
            self.flush(context);
            self.carrier.close(self.viewer.state.planned(), context);
        }
        self.viewer.book(context.world);
    }
}

impl Viewer {
    /// Books what never came. Of a shared subscription the last one to leave does.
    fn book(&mut self, shard: &mut ShardRecorder) {
        if !std::mem::take(&mut self.member) {
            return;
        }
        let Self { following, options, broker, filters, .. } = self;
        // A subscriber that leaves after its lifetime, while a publisher of the run goes on, was not meant to receive that publisher's last message.
        let leaves_before = self.state.planned().turn.mean_life.is_some();
        let settle = |group: &mut Group| {
            let lacking = group.lacking(options, *broker, filters);
            let missing = std::mem::take(&mut group.missing);
            let open = lacking.open - if leaves_before { lacking.going_on } else { 0 };
            (missing.saturating_sub(lacking.excused) + lacking.behind, open)
        };
        let (lost, open) = match following {
            Following::Alone(group) => settle(group),
            Following::Shared(group) => {
                let mut group = group.lock().unwrap_or_else(PoisonError::into_inner);
                group.members -= 1;
                if group.members == 0 { settle(&mut group) } else { (0, 0) }
            }
        };
        let recorder = shard.of(self.state.planned());
        recorder.count(LOST, lost);
        recorder.count(OPEN_ENDS, open);
        recorder.shift(MISSING, -(self.missing_booked as i64));
        self.missing_booked = 0;
    }

    /// Books a message that will not be complete.
    fn book_cut(&mut self, client: &Client, shard: &mut ShardRecorder) {
        self.large = None;
        shard.of(self.state.planned()).count(CUT, u64::from(client.is_inside_message()));
    }

    /// Whether something that publishers of this run have published has not come yet.
    fn waits(&mut self) -> bool {
        let Self { following, options, broker, filters, .. } = self;
        if options.published.is_none() {
            return false;
        }
        let lacking = match following {
            Following::Alone(group) => group.lacking(options, *broker, filters),
            Following::Shared(group) => {
                group.lock().unwrap_or_else(PoisonError::into_inner).lacking(options, *broker, filters)
            }
        };
        lacking.behind + lacking.stopping > 0
    }
}

impl Group {
    /// What has not come of publishers of this run, and whose ends are not known.
    fn lacking(&mut self, options: &SharedOptions, broker: SocketAddr, filters: &[String]) -> Lacking {
        match &options.published {
            Some(published) => published.lacking(broker, filters, self.complete, &mut self.deliveries),
            None => Published::default().lacking(broker, filters, false, &mut self.deliveries),
        }
    }
}

impl Large {
    /// Keeps what a mark may be in.
    fn keep(&mut self, bytes: &[u8]) {
        if self.mark.is_none() && self.head.len() < HEADER_LEN {
            let room = HEADER_LEN - self.head.len();
            self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }
}

/// The mark of a message, where MQTT 5 carries it.
#[inline]
fn marked(message: &Message<'_>) -> Option<Mark> {
    message.publish.properties.user_property(PROPERTY).and_then(Mark::from_text)
}
