//! What all sessions of a broker share: subscriptions, the messages that wait for each client, and the counts.

use super::delivery::Delivery;
use super::flight::{AckOutcome, Again, Flight};
use super::inbox::Inbox;
use super::inbox_key::InboxKey;
use super::publication::Publication;
use super::retained::RetainedMessages;
use super::subscriptions::{MatchOutcome, SubscribeOutcome, Subscriptions};
use super::wills::{Will, Wills};
use crate::fault::{Effect, Script, Subject, Whom};
use crate::protocol_states::StateReport;
use crate::stream::{Kind, Packet};
use crate::worker::{OriginSettings, Report};
use slab::Slab;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use weir_metrics::Moment;
use weir_mqtt::packet::{RetainHandling, SubscriptionOptions};
use weir_mqtt::property::SubscriptionIdentifier;
use weir_mqtt::topic::Filter;
use weir_mqtt::{PacketId, Qos};
use weir_shard::{SessionId, World};

/// Messages that wait for one subscriber. What comes beyond is left out, and counted.
const QUEUE_KEPT: usize = 100_000;
/// Bytes of the messages that wait for one subscriber; a single one may be larger.
const QUEUE_BYTES: usize = 64 << 20;
/// Bytes of the messages that wait, those of all subscribers together. One that waits for several counts for each.
const ALL_QUEUES_BYTES: usize = 256 << 20;
/// Sessions that are kept without their clients.
const AWAY: usize = 10_000;
/// Bytes of what such sessions keep beside messages: names of up to 64 KiB, filters, wills that wait, the identifiers of QoS 2 that their clients have not
/// released, and where messages in flight are noted.
const AWAY_BYTES: usize = 64 << 20;
/// Bytes that an identifier takes which a client has not released: two, one of the table, and the table's free places.
const RECEIVED_BYTES: usize = 4;
/// The longest that a session is kept without its client.
pub(super) const LONGEST_AWAY: Duration = Duration::from_secs(86_400);
/// Effects of faults that are kept.
const EFFECTS_KEPT: usize = 262_144;

/// What a broker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Links accepted.
    pub links: u64,
    /// Clients that were let in.
    pub clients: u64,
    /// Clients that have published.
    pub publishers: u64,
    /// Clients that have subscribed.
    pub subscribers: u64,
    /// Messages that came.
    pub received: u64,
    /// Their bytes of payload.
    pub received_bytes: u64,
    /// PUBACKs and PUBCOMPs sent.
    pub acknowledged: u64,
    /// PUBACKs and PUBRECs that a fault withheld.
    pub withheld: u64,
    /// Messages that a fault kept from all subscribers.
    pub dropped: u64,
    /// Messages sent to subscribers.
    pub sent: u64,
    /// PUBACKs and PUBCOMPs that came.
    pub confirmed: u64,
    /// Messages that a fault kept from one subscriber.
    pub dropped_for_one: u64,
    /// Messages that were left out because too much waited for a subscriber.
    pub overflowed: u64,
    /// Messages that waited for a subscriber until they had expired.
    pub expired: u64,
    /// Retained messages that were handed on and not kept, because too much is kept.
    pub unretained: u64,
}

/// A command of the origin's owner to a broker.
#[derive(Debug)]
pub(crate) enum Message {
    /// What has been counted?
    Report(Sender<Report>),
    /// The time of a will has come.
    Wills,
    /// It has to end.
    Stop,
}

/// The [`World`] of a broker.
pub(crate) struct Broker {
    pub(crate) settings: Arc<OriginSettings>,
    pub(crate) counts: MessageCounts,
    inboxes: Slab<Inbox>,
    names: HashMap<String, InboxKey>,
    subscriptions: Subscriptions,
    retained: RetainedMessages,
    /// Bytes of all queues, and of what is kept of messages in flight.
    queue_bytes: usize,
    /// Sessions whose clients are away, by the moment until when they are kept.
    away: BTreeSet<(Moment, InboxKey)>,
    /// Bytes of what they keep beside messages; see [`AWAY_BYTES`].
    away_bytes: usize,
    /// Wills that wait for their clients to come back.
    wills: Wills,
    /// Faults of messages as they come in, by topic filter.
    scripts: Vec<(String, Box<Script>)>,
    effects: Vec<Effect>,
    pub(crate) stopping: bool,
}

/// A client that was let in.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) key: InboxKey,
    /// The connection of another client of its name, which has to go.
    pub(super) other: Option<SessionId>,
    /// Whether it has the session that it had before.
    pub(super) is_resumed: bool,
    /// The number of the session.
    pub(super) number: u64,
}

impl Broker {
    /// How many clients are connected.
    pub(super) fn sessions(&self) -> u64 {
        (self.inboxes.len() - self.away.len()) as u64
    }

    pub(crate) fn new(settings: Arc<OriginSettings>) -> Self {
        let mut filters: Vec<&str> = Vec::new();
        for fault in &settings.faults {
            if let Whom::Stream(filter) = &fault.whom
                && !filters.contains(&filter.as_str())
            {
                filters.push(filter);
            }
        }
        let scripts = filters.into_iter().filter_map(|filter| {
            let script = Script::of(&settings.faults, Subject::Stream(filter.into()))?;
            Some((filter.to_owned(), script))
        });
        Self {
            scripts: scripts.collect(),
            counts: MessageCounts::default(),
            inboxes: Slab::new(),
            names: HashMap::new(),
            subscriptions: Subscriptions::default(),
            retained: RetainedMessages::default(),
            queue_bytes: 0,
            away: BTreeSet::new(),
            away_bytes: 0,
            wills: Wills::default(),
            effects: Vec::new(),
            stopping: false,
            settings,
        }
    }

    /// A client is let in, with its session of before if it wants it and there is one.
    pub(super) fn enter(
        &mut self,
        session: SessionId,
        client_id: &str,
        clean_start: bool,
        kept_for: Duration,
        now: Moment,
    ) -> Admission {
        self.forget_expired(now);
        self.counts.clients += 1;
        let known = self.names.get(client_id).copied();
        let other = known.and_then(|key| self.inboxes[key.0].session);
        if let Some(key) = known {
            // A session that was not to outlive its connection ends where another client takes its name.
            if !clean_start && !self.inboxes[key.0].kept_for.is_zero() {
                // Its client is back before the will's delay is over (MQTT-3.1.3-9).
                self.end_waiting(key);
                let inbox = &mut self.inboxes[key.0];
                (inbox.session, inbox.kept_for) = (Some(session), kept_for);
                return Admission { key, other, is_resumed: true, number: inbox.number };
            }
            self.remove(key);
        }
        let inbox = Inbox {
            session: Some(session),
            client_id: client_id.to_owned(),
            number: self.counts.clients,
            queue: VecDeque::new(),
            queue_bytes: 0,
            searches: VecDeque::new(),
            flight: Flight::default(),
            received: HashSet::new(),
            kept_for,
            away: None,
            will: None,
        };
        let number = inbox.number;
        let key = InboxKey(self.inboxes.insert(inbox));
        self.names.insert(client_id.to_owned(), key);
        Admission { key, other, is_resumed: false, number }
    }

    /// The connection of a client has ended: its session, which had this number, is kept, or ends with its subscriptions. What of
    /// its will is to be published now.
    pub(super) fn leave(
        &mut self,
        (key, number): (InboxKey, u64),
        session: SessionId,
        will: Option<Will>,
        now: Moment,
    ) -> Option<Publication> {
        if !self.owns(key, session) {
            // Another connection goes on with the session: a will that waits is not published (MQTT-3.1.3-9).
            let goes_on = self.inboxes.get(key.0).is_some_and(|inbox| inbox.number == number);
            return will.filter(|will| !goes_on || will.delay.is_zero()).map(|will| will.publication);
        }
        let inbox = &mut self.inboxes[key.0];
        let received = inbox.received.capacity() * RECEIVED_BYTES;
        let (waits, now_due) = match will {
            Some(Will { publication, delay }) if !delay.is_zero() => (Some((publication, delay)), None),
            will => (None, will.map(|will| will.publication)),
        };
        let of_will = waits.as_ref().map_or(0, |(publication, _)| publication.weight());
        // A queue that was long keeps its places, and 10,000 of those are 40 GB.
        inbox.queue.shrink_to_fit();
        // Its name stands in the inbox and among the names.
        let own =
            size_of::<Inbox>() + 2 * inbox.client_id.len() + inbox.queue.capacity() * size_of::<Delivery>();
        let beside = received + inbox.flight.memory() + of_will;
        let bytes = own + self.subscriptions.bytes_of(key) + beside;
        if inbox.kept_for.is_zero() || self.away.len() >= AWAY || self.away_bytes + bytes > AWAY_BYTES {
            self.remove(key);
            return now_due.or(waits.map(|(publication, _)| publication));
        }
        let until = now + inbox.kept_for;
        (inbox.session, inbox.away) = (None, Some((until, bytes)));
        inbox.will = waits
            .map(|(publication, delay)| self.wills.put((now + delay).min(until), Some(key), publication));
        self.away.insert((until, key));
        self.away_bytes += bytes;
        now_due
    }

    /// When the next will is to be published that waits.
    pub(crate) fn next_will(&self) -> Option<Moment> {
        self.wills.next()
    }

    fn publish_wills(&mut self, now: Moment, wake: &mut Vec<SessionId>) {
        while let Some((key, will)) = self.wills.due(now) {
            if let Some(inbox) = key.and_then(|key| self.inboxes.get_mut(key.0)) {
                inbox.will = None;
            }
            self.publish(None, will, now, wake);
        }
    }

    /// Whether an inbox is that of a connection, and not of another that has taken its name.
    pub(super) fn owns(&self, key: InboxKey, session: SessionId) -> bool {
        self.inboxes.get(key.0).is_some_and(|inbox| inbox.session == Some(session))
    }

    /// For how long a session is to be kept, as its client says when it leaves.
    pub(super) fn keep_for(&mut self, key: InboxKey, kept_for: Duration) {
        let inbox = &mut self.inboxes[key.0];
        // What was to end with its connection cannot be kept any more (MQTT 5 section 3.14.2.2.2).
        if !inbox.kept_for.is_zero() {
            inbox.kept_for = kept_for;
        }
    }

    /// Whether a client has subscribed to anything.
    pub(super) fn is_subscriber(&self, key: InboxKey) -> bool {
        self.subscriptions.bytes_of(key) > 0
    }

    fn forget_expired(&mut self, now: Moment) {
        while let Some((until, key)) = self.away.first().copied()
            && until <= now
        {
            self.remove(key);
        }
    }

    /// A session is not kept without its client any longer; its will, if that waited.
    fn end_waiting(&mut self, key: InboxKey) -> Option<Publication> {
        let inbox = &mut self.inboxes[key.0];
        if let Some((until, bytes)) = inbox.away.take() {
            self.away.remove(&(until, key));
            self.away_bytes -= bytes;
        }
        inbox.will.take().and_then(|will| self.wills.take(will))
    }

    fn remove(&mut self, key: InboxKey) {
        if let Some(will) = self.end_waiting(key) {
            // It waits no longer than its session.
            self.wills.put(Moment::default(), None, will);
        }
        let inbox = self.inboxes.remove(key.0);
        if self.names.get(&inbox.client_id) == Some(&key) {
            self.names.remove(&inbox.client_id);
        }
        self.queue_bytes -= inbox.queue_bytes;
        self.subscriptions.leave(key);
    }

    /// A message of QoS 2 came from a client: whether it is another than those that it has not released.
    pub(super) fn receive(&mut self, key: InboxKey, id: PacketId) -> bool {
        self.inboxes[key.0].received.insert(id)
    }

    /// A client releases a message of QoS 2: whether there was one.
    pub(super) fn release(&mut self, key: InboxKey, id: PacketId) -> bool {
        self.inboxes[key.0].received.remove(&id)
    }

    /// A message of QoS 1 or 2 goes out to a client.
    pub(super) fn begin_flight(&mut self, key: InboxKey, delivery: &Delivery) -> PacketId {
        let inbox = &mut self.inboxes[key.0];
        let keeps = !inbox.kept_for.is_zero();
        if keeps {
            let weight = delivery.publication.weight();
            inbox.queue_bytes += weight;
            self.queue_bytes += weight;
        }
        inbox.flight.begin(delivery, keeps)
    }

    /// How many messages a client has not acknowledged for good.
    pub(super) fn in_flight(&self, key: InboxKey) -> usize {
        self.inboxes[key.0].flight.len()
    }

    /// Those messages, in the order in which they were sent.
    pub(super) fn unacknowledged(&self, key: InboxKey) -> VecDeque<PacketId> {
        self.inboxes[key.0].flight.unacknowledged().into()
    }

    /// What of such a message is to be sent again.
    pub(super) fn again(&self, key: InboxKey, id: PacketId) -> Option<Again> {
        self.inboxes[key.0].flight.again(id)
    }

    /// A client acknowledges a message.
    pub(super) fn acknowledged(
        &mut self,
        key: InboxKey,
        what: impl FnOnce(&mut Flight) -> AckOutcome,
    ) -> AckOutcome {
        let inbox = &mut self.inboxes[key.0];
        let acknowledged = what(&mut inbox.flight);
        if let AckOutcome::Received(bytes) | AckOutcome::Over(bytes) = acknowledged {
            inbox.queue_bytes -= bytes;
            self.queue_bytes -= bytes;
        }
        self.counts.confirmed += u64::from(matches!(acknowledged, AckOutcome::Over(_)));
        acknowledged
    }

    /// Messages that were taken from a queue and did not go out are put in front of it again.
    pub(super) fn put_back(&mut self, key: InboxKey, deliveries: impl DoubleEndedIterator<Item = Delivery>) {
        let inbox = &mut self.inboxes[key.0];
        for delivery in deliveries.rev() {
            let weight = delivery.publication.weight();
            inbox.queue_bytes += weight;
            self.queue_bytes += weight;
            inbox.queue.push_front(delivery);
        }
    }

    /// The next message for a client: of those that are kept first, after at most `steps` that are not for it.
    pub(crate) fn next_delivery(
        &mut self,
        key: InboxKey,
        steps: &mut usize,
        now: Moment,
    ) -> Option<Delivery> {
        let inbox = &mut self.inboxes[key.0];
        while let Some(search) = inbox.searches.front_mut() {
            if let Some(publication) = self.retained.find(search, steps) {
                if publication.is_over(now) {
                    self.retained.forget(&publication);
                    continue;
                }
                let (qos, identifier) = (publication.qos.min(search.options.qos), search.identifier);
                return Some(Delivery { publication, qos, retain: true, identifier });
            }
            if *steps == 0 {
                return None;
            }
            inbox.searches.pop_front();
        }
        while *steps > 0 {
            let delivery = inbox.queue.pop_front()?;
            inbox.queue_bytes -= delivery.publication.weight();
            self.queue_bytes -= delivery.publication.weight();
            if !delivery.publication.is_over(now) {
                return Some(delivery);
            }
            self.counts.expired += 1;
            *steps -= 1;
        }
        None
    }

    /// Whether anything may wait for a client.
    pub(crate) fn has_more(&self, key: InboxKey) -> bool {
        let inbox = &self.inboxes[key.0];
        !inbox.queue.is_empty() || !inbox.searches.is_empty()
    }

    /// Subscribes, or changes a subscription; what had been kept goes to the client. `false`: it has too many.
    pub(crate) fn subscribe(
        &mut self,
        key: InboxKey,
        filter: &Filter<'_>,
        options: SubscriptionOptions,
        identifier: Option<SubscriptionIdentifier>,
    ) -> bool {
        let taken = self.subscriptions.add(key, filter, options, identifier);
        let wanted = match options.retain_handling {
            _ if taken == SubscribeOutcome::TooMany => return false,
            RetainHandling::Always => true,
            RetainHandling::New => taken == SubscribeOutcome::New,
            RetainHandling::Never => false,
        };
        if filter.share.is_none() && wanted {
            let search = self.retained.search(filter, options, identifier);
            let searches = &mut self.inboxes[key.0].searches;
            // A client that subscribes again gets the retained messages from the beginning, and once.
            searches.retain(|search| !search.is_of(filter));
            searches.push_back(search);
        }
        true
    }

    /// Unsubscribes; says whether there was a subscription.
    pub(crate) fn unsubscribe(&mut self, key: InboxKey, filter: &Filter<'_>) -> bool {
        if filter.share.is_none() {
            self.inboxes[key.0].searches.retain(|search| !search.is_of(filter));
        }
        self.subscriptions.remove(key, filter)
    }

    /// A message came in, from a client or out of a will. Says whether anyone has subscribed to it, and what that has cost.
    pub(super) fn publish(
        &mut self,
        from: Option<InboxKey>,
        publication: Publication,
        now: Moment,
        wake: &mut Vec<SessionId>,
    ) -> MatchOutcome {
        self.forget_expired(now);
        let publication = Arc::new(Publication { since: now, ..publication });
        if publication.retain && !self.retained.keep(&publication) {
            self.counts.unretained += 1;
        }
        let mut times = 1;
        let unit = unit_of(publication.payload.len());
        for (filter, script) in &mut self.scripts {
            if weir_mqtt::topic::matches(filter, &publication.topic) {
                let ruling = script.rule(&unit, now);
                times = if ruling.dropped { 0 } else { times + ruling.again };
                let room = EFFECTS_KEPT.saturating_sub(self.effects.len());
                self.effects.extend(script.take_effects().take(room));
            }
        }
        self.counts.dropped += u64::from(times == 0);
        let mut matched = MatchOutcome::default();
        for _ in 0..times {
            let MatchOutcome { any, steps } = self.hand_out(from, &publication, wake);
            matched = MatchOutcome { any: matched.any | any, steps: matched.steps + steps };
        }
        // The publisher learns nothing of a fault.
        matched.any |= times == 0 && self.subscriptions.has_any(&publication.topic);
        matched
    }

    fn hand_out(
        &mut self,
        from: Option<InboxKey>,
        publication: &Arc<Publication>,
        wake: &mut Vec<SessionId>,
    ) -> MatchOutcome {
        let Self { subscriptions, inboxes, counts, queue_bytes, .. } = self;
        let weight = publication.weight();
        subscriptions.choose(from, &publication.topic, |it| {
            let inbox = &mut inboxes[it.inbox.0];
            let qos = publication.qos.min(it.options.qos);
            if inbox.session.is_none() && qos == Qos::AtMostOnce {
                // Such messages are for those that are there.
                return false;
            }
            let is_full = inbox.queue.len() >= QUEUE_KEPT
                || inbox.queue_bytes > 0 && inbox.queue_bytes + weight > QUEUE_BYTES
                || *queue_bytes + weight > ALL_QUEUES_BYTES;
            if is_full {
                counts.overflowed += 1;
                return true;
            }
            if inbox.queue.is_empty() {
                wake.extend(inbox.session);
            }
            inbox.queue_bytes += weight;
            *queue_bytes += weight;
            inbox.queue.push_back(Delivery {
                publication: publication.clone(),
                qos,
                retain: publication.retain && it.options.retain_as_published,
                identifier: it.identifier,
            });
            true
        })
    }

    /// Keeps what faults did.
    pub(crate) fn note(&mut self, effects: impl Iterator<Item = Effect>) {
        let room = EFFECTS_KEPT.saturating_sub(self.effects.len());
        self.effects.extend(effects.take(room));
    }
}

impl World for Broker {
    type Message = Message;

    fn receive(&mut self, message: Message, now: Moment, wake: &mut Vec<SessionId>) {
        match message {
            Message::Report(reply) => {
                // The asker may have given up.
                let states: Vec<StateReport> = vec![Box::new(self.counts)];
                let _ = reply.send(Report { effects: self.effects.clone(), states, ..Report::default() });
            }
            Message::Wills => self.publish_wills(now, wake),
            Message::Stop => self.stopping = true,
        }
    }
}

/// A message as faults see it: a unit of media.
pub(crate) fn unit_of(payload: usize) -> Packet {
    Packet::unit(Kind::Data, false, 0, payload, &[][..])
}
