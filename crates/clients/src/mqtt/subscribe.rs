//! An MQTT subscriber.

use super::figures::{DELIVERED_AGAIN, EXCESS, LOWER_QOS, MISSING, PINGS, RETAINED, UNMARKED};
use super::publish::{moment, time};
use super::refusal;
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use crate::life::{Life, Phase, Timeouts};
use std::sync::{Arc, Mutex, PoisonError};
use weir_metrics::common::{
    DUPLICATE, LATENCY, LOST, MEDIA, READS, RECEIVED, REORDERED, SENT, STAMPED, UNITS, WALL_LATENCIES,
};
use weir_metrics::{Failure, Moment, Recorder};
use weir_mqtt::account::{Account, Arrival};
use weir_mqtt::client::{Message, Session as MqttSession};
use weir_mqtt::mark::{Clocks, Mark, PROPERTY};
use weir_mqtt::packet::{Disconnect, Suback, Subscription, SubscriptionOptions};
use weir_mqtt::property::Properties;
use weir_mqtt::{Client, ClientEvent, ClientOptions, Qos, ReasonCode, Version};
use weir_shard::{Context, Event, Session};

/// What all subscribers of a workload share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) timeouts: Timeouts,
    pub(super) qos: Qos,
    pub(super) version: Version,
    pub(super) clock: HostClock,
}

/// What came, of one subscriber or of all that share a subscription.
#[derive(Debug, Default)]
pub(super) struct Group {
    account: Account,
    missing: u64,
    /// When the first was subscribed.
    since: Option<Moment>,
    members: u32,
}

/// One virtual subscriber. It plays as soon as its subscription is granted.
pub(super) struct Subscriber {
    client: Client,
    filter: String,
    viewer: Viewer,
}

/// All of a subscriber but the protocol's machine.
struct Viewer {
    life: Life,
    common: Arc<Common>,
    following: Following,
    /// Whether it counts as a member of its group.
    member: bool,
    /// What of the missing messages is in the ledger.
    missing_booked: u64,
    stopping: bool,
}

/// Who keeps the account. Those that share a subscription keep one together, and it is taken once a read.
enum Following {
    Alone(Box<Group>),
    Shared(Arc<Mutex<Group>>),
}

/// What one read brings: added up here, written into the ledger once.
#[derive(Default)]
struct Tally {
    media: u64,
    units: u64,
    stamped: u64,
    unmarked: u64,
    duplicate: u64,
    reordered: u64,
    retained: u64,
    dup: u64,
    walls: u64,
    excess: u64,
    pings: u64,
    connected: bool,
    granted: bool,
    refused: Option<(Failure, String)>,
}

impl Subscriber {
    pub(super) fn new(
        slot: Slot,
        options: ClientOptions,
        filter: String,
        group: Option<Arc<Mutex<Group>>>,
        common: Arc<Common>,
        now: Moment,
        ledger: &mut Ledger,
    ) -> Self {
        // Of a session that is kept, a run before this one may have begun it.
        let session = if options.clean_start { MqttSession::new() } else { MqttSession::continued() };
        Self {
            client: Client::new(options, session, time(now)),
            filter,
            viewer: Viewer {
                life: Life::begin(slot, common.timeouts, now, ledger),
                common,
                following: group.map_or_else(|| Following::Alone(Box::default()), Following::Shared),
                member: false,
                missing_booked: 0,
                stopping: false,
            },
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Ledger>) {
        let now = context.now;
        let viewer = &mut self.viewer;
        let slot = viewer.life.slot();
        let recorder = context.world.of(slot);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        let mut tally = Tally::default();
        let here = viewer.common.clock.clocks(now);
        let common = &*viewer.common;
        let outcome = {
            let mut guard;
            let (group, shared) = match &mut viewer.following {
                Following::Alone(group) => (&mut **group, false),
                Following::Shared(group) => {
                    guard = group.lock().unwrap_or_else(PoisonError::into_inner);
                    (&mut *guard, true)
                }
            };
            let outcome = self.client.input(bytes, time(now), &mut |event| match event {
                ClientEvent::Message(message) => {
                    tally.message(&message, message.publish.payload, &here, shared, group, recorder);
                }
                ClientEvent::MessageBegin { message, payload } => {
                    // The mark in front of a payload is not looked for in one that comes in pieces.
                    tally.media += u64::from(payload);
                    tally.message(&message, &[], &here, shared, group, recorder);
                }
                ClientEvent::Subscribed { suback, .. } => {
                    tally.granted(&suback, common, now, group, recorder);
                }
                other => tally.hear(&other, common.version),
            });
            if tally.granted {
                group.members += 1;
                viewer.member = true;
            }
            tally.book(recorder);
            if !shared {
                let before = std::mem::replace(&mut viewer.missing_booked, group.missing);
                recorder.shift(MISSING, group.missing as i64 - before as i64);
            }
            outcome
        };
        let ledger = &mut *context.world;
        if let Err(error) = outcome {
            viewer.life.fail(Failure::MalformedInput, &error.to_string(), now, ledger);
        } else if let Some((failure, words)) = tally.refused {
            viewer.life.fail(failure, &words, now, ledger);
        } else if tally.granted {
            viewer.life.reach(Phase::Playing, now, ledger);
        } else if tally.connected {
            viewer.life.reach(Phase::Requesting, now, ledger);
            let options = SubscriptionOptions::qos(viewer.common.qos);
            let subscription = [Subscription { filter: &self.filter, options }];
            let asked = self.client.subscribe(&subscription, &Properties::NONE, 0, time(now));
            if let Err(error) = asked {
                self.viewer.life.fail(Failure::SubscriptionRefused, &error.to_string(), now, context.world);
            }
        }
    }

    fn flush(&mut self, context: &mut Context<'_, Ledger>) {
        let output = self.client.output();
        if !output.is_empty() {
            context.send(output);
            context.world.of(self.viewer.life.slot()).count(SENT, output.len() as u64);
            output.clear();
            // Thousands that do nothing must cost little.
            output.shrink_to(4096);
        }
    }

    fn time(&mut self, now: Moment, ledger: &mut Ledger) {
        let life = &mut self.viewer.life;
        if life.deadline().is_some_and(|deadline| deadline <= now) {
            let (failure, words) = life.overdue();
            life.fail(failure, words, now, ledger);
        }
        if life.phase() == Phase::Playing
            && let Err(error) = self.client.pass(time(now))
        {
            life.fail(Failure::PingTimeout, &error.to_string(), now, ledger);
        }
    }

    fn stop(&mut self, context: &mut Context<'_, Ledger>) {
        if self.viewer.life.phase() > Phase::Connecting {
            // Both versions have a normal disconnection.
            let _ = self.client.disconnect(&Disconnect::of(ReasonCode::Success));
            self.flush(context);
        }
        self.viewer.life.finish(context.world);
    }
}

impl Session<Ledger> for Subscriber {
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
            Event::Connected => self.viewer.life.reach(Phase::Handshaking, now, context.world),
            Event::Bytes(bytes) => {
                if !bytes.is_empty() {
                    self.read(bytes, context);
                }
                if self.viewer.stopping {
                    self.stop(context);
                }
            }
            Event::Timer => self.time(now, context.world),
            Event::Stop => {
                self.viewer.stopping = true;
                context.pull();
                return;
            }
            Event::Closed { failure, words } => {
                let words = if words.is_empty() { "the broker closed the link" } else { words };
                self.viewer.life.fail(failure, words, now, context.world);
            }
        }
        if self.viewer.life.phase() > Phase::Connecting {
            self.flush(context);
        }
        if self.viewer.life.phase() == Phase::Over {
            self.viewer.book(context.world);
            context.close();
            return;
        }
        let ping = self.client.deadline().map(moment);
        match [self.viewer.life.deadline(), ping].into_iter().flatten().min() {
            Some(next) => context.set_timer(next),
            None => context.clear_timer(),
        }
    }
}

impl Viewer {
    /// Books what never came. Of a shared subscription the last one to leave does.
    fn book(&mut self, ledger: &mut Ledger) {
        if !std::mem::take(&mut self.member) {
            return;
        }
        let recorder = ledger.of(self.life.slot());
        let lost = match &mut self.following {
            Following::Alone(group) => std::mem::take(&mut group.missing),
            Following::Shared(group) => {
                let mut group = group.lock().unwrap_or_else(PoisonError::into_inner);
                group.members -= 1;
                if group.members == 0 { std::mem::take(&mut group.missing) } else { 0 }
            }
        };
        recorder.count(LOST, lost);
        recorder.shift(MISSING, -(self.missing_booked as i64));
        self.missing_booked = 0;
    }
}

impl Tally {
    #[inline]
    fn message(
        &mut self,
        message: &Message<'_>,
        payload: &[u8],
        here: &Clocks,
        shared: bool,
        group: &mut Group,
        recorder: &mut Recorder,
    ) {
        let publish = &message.publish;
        self.units += 1;
        self.media += payload.len() as u64;
        self.dup += u64::from(publish.dup);
        if publish.retain {
            // It may be from any time.
            self.retained += 1;
            return;
        }
        let property = publish.properties.user_property(PROPERTY).and_then(Mark::from_text);
        let Some(mark) = property.or_else(|| Mark::from_payload(payload)) else {
            self.unmarked += 1;
            return;
        };
        self.stamped += 1;
        let latency = here.since(&mark.sent);
        recorder.record(LATENCY, latency.micros.max(0) as u64);
        self.walls += u64::from(!latency.one_clock);
        let since = group.since;
        let number = mark.sequence_number;
        // All messages of a publisher that began after the subscription should come.
        let first =
            || if since.is_some_and(|since| mark.began_after(since.as_nanos(), here)) { 0 } else { number };
        match group.account.take(mark.publisher, number, first) {
            Some(Arrival::Ahead { missing }) => group.missing += missing,
            Some(Arrival::Late) => {
                group.missing = group.missing.saturating_sub(1);
                // Between those that share a subscription there is no order.
                self.reordered += u64::from(!shared);
            }
            Some(Arrival::Again) => self.duplicate += 1,
            None => self.unmarked += 1,
        }
    }

    fn granted(
        &mut self,
        suback: &Suback<'_>,
        common: &Common,
        now: Moment,
        group: &mut Group,
        recorder: &mut Recorder,
    ) {
        for reason in suback.reasons.iter() {
            if reason.is_error() {
                self.refused = Some(refusal::of_subscription(reason, &suback.properties, common.version));
                return;
            }
            recorder.count(LOWER_QOS, u64::from(reason.code() < common.qos.bits()));
        }
        group.since.get_or_insert(now);
        self.granted = true;
    }

    #[cold]
    fn hear(&mut self, event: &ClientEvent<'_>, version: Version) {
        match event {
            ClientEvent::Connected(_) => self.connected = true,
            ClientEvent::Refused(connack) => self.refused = Some(refusal::of_connack(connack, version)),
            ClientEvent::Disconnected(disconnect) => {
                self.refused = Some(refusal::of_disconnect(disconnect, version));
            }
            ClientEvent::Excess { .. } => self.excess += 1,
            ClientEvent::Pong => self.pings += 1,
            _ => {}
        }
    }

    fn book(&self, recorder: &mut Recorder) {
        for (figure, value) in [
            (UNITS, self.units),
            (MEDIA, self.media),
            (STAMPED, self.stamped),
            (UNMARKED, self.unmarked),
            (DUPLICATE, self.duplicate),
            (REORDERED, self.reordered),
            (RETAINED, self.retained),
            (DELIVERED_AGAIN, self.dup),
            (WALL_LATENCIES, self.walls),
            (EXCESS, self.excess),
            (PINGS, self.pings),
        ] {
            recorder.count(figure, value);
        }
    }
}
