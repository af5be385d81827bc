//! An MQTT subscriber.

mod group;
mod read_totals;
mod responses;

pub use self::group::SharedSubscriptions;
use self::group::{Following, Group, PublisherFilter, lock};
use self::read_totals::ReadTotals;
use self::responses::Responses;
use super::broker_path::BrokerPath;
use super::carrier::Carrier;
use super::figures::{AWAY, CONNECTS, CUT, MISSING, RECONNECTS, SESSIONS_LOST};
use super::outage::broken;
use super::published::Published;
use super::reconnect::{CLOSED, NO_CONSENT, Reconnecting, Turn};
use super::session_time::{moment, since_start};
use super::start_gate::StartGate;
use super::{refusal, trace};
use crate::client_session::{ClientSession, End, Stop};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::host_clock::HostClock;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_metrics::common::{LOST, OPEN_ENDS, READS, RECEIVED};
use weir_metrics::{Failure, Moment};
use weir_mqtt::client::{Message, Session as MqttSession};
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
    /// For how long the broker is to keep the session of a subscriber that is gone; zero for a clean one.
    pub(super) session: Duration,
    /// How long a stopped subscriber waits for what has been published.
    pub(super) linger: Duration,
    /// Where the publishers of the run leave what they have published.
    pub(super) published: Option<Arc<Published>>,
    /// Whether members of shared subscriptions may be in other processes of the run, which get what these miss.
    pub(super) members_elsewhere: bool,
    /// Where the clients of the run wait for each other.
    pub(super) start_gate: Option<Arc<StartGate>>,
    /// Whether messages with a Response Topic are answered.
    pub(super) responds: bool,
    /// Whether the first connection is tried again.
    pub(super) retry_connect: bool,
}

/// How often a subscriber that lingers looks whether all has come.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
    /// When the run cut its link, until it has one again.
    cut: Option<Moment>,
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
                following: Following::of(group),
                filters,
                broker,
                large: None,
                resumed: false,
                member: false,
                cut: None,
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
                    guard = lock(group);
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
            if totals.granted {
                let followed = PublisherFilter {
                    published: options.published.as_deref(),
                    broker: viewer.broker,
                    filters: &viewer.filters,
                };
                group.grant(&mut viewer.member, viewer.resumed, followed);
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
            let keeps = !viewer.options.session.is_zero();
            recorder.count(SESSIONS_LOST, u64::from(keeps && !answer.session_present));
            if !answer.session_present && viewer.cut.is_some_and(|at| now.since(at) >= viewer.options.session)
            {
                viewer.lose_session();
            }
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
        self.viewer.cut = None;
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
        let is_first = self.viewer.leaves.is_none();
        let leaves = *self.viewer.leaves.get_or_insert(now + self.viewer.options.linger);
        if is_first && self.viewer.member && self.viewer.is_shared() {
            self.viewer.with_group(|group, _, followed| group.close(followed));
        }
        if self.viewer.cut.is_some() && self.reconnecting.is_first_attempt() {
            // The run has cut its link just now. Whatever waits for it at the broker need not come.
            self.viewer.lose_session();
        } else if let Some(why) = self.reconnecting.why() {
            return Err(why);
        } else if self.viewer.state.phase() == ClientPhase::Playing && now < leaves && self.viewer.waits() {
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
            Some(Turn::Break) if !self.viewer.stopping => {
                self.viewer.cut = Some(now);
                if self.viewer.options.session.is_zero() {
                    self.viewer.lose_session();
                }
                self.lose(Failure::Reset, &broken(), context)?;
            }
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
        // A subscriber that leaves after its lifetime, while a publisher of the run goes on, was not meant to receive that publisher's last message.
        let leaves_before = self.state.planned().turn.mean_life.is_some();
        // What members in other processes got is missing here.
        let is_known = !(self.options.members_elsewhere && self.is_shared());
        let settled = self.with_group(|group, _, followed| group.leave(followed)).filter(|_| is_known);
        let (lost, open) = settled.map_or((0, 0), |(lost, lacking)| {
            (lost, lacking.open - if leaves_before { lacking.going_on } else { 0 })
        });
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

    /// Its session has ended with a link that the run cut.
    fn lose_session(&mut self) {
        self.resumed = false;
        if self.is_shared() && std::mem::take(&mut self.member) {
            self.with_group(|group, _, _| group.cut());
        } else if self.member {
            self.with_group(|group, _, _| group.interrupt());
        }
    }

    /// Whether something that should come has not come yet.
    fn waits(&mut self) -> bool {
        // What members in other processes got never comes to these.
        let is_known = !(self.options.members_elsewhere && self.is_shared());
        is_known && self.with_group(Group::waits)
    }

    fn is_shared(&self) -> bool {
        matches!(self.following, Following::Shared(_))
    }

    /// Does something with its group, which may be shared.
    fn with_group<T>(&mut self, action: impl FnOnce(&mut Group, bool, PublisherFilter<'_>) -> T) -> T {
        let Self { following, options, broker, filters, .. } = self;
        let followed = PublisherFilter { published: options.published.as_deref(), broker: *broker, filters };
        match following {
            Following::Alone(group) => action(group, false, followed),
            Following::Shared(group) => action(&mut lock(group), true, followed),
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
