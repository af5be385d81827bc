//! What all sessions of a broker share: who has subscribed to what, what waits for whom, and the counts.

use crate::fault::{Effect, Script, Subject, Whom};
use crate::stream::{Kind, Packet};
use crate::worker::Settings;
use slab::Slab;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use weir_metrics::Moment;
use weir_mqtt::packet::{RetainHandling, SubscriptionOptions};
use weir_mqtt::property::SubscriptionIdentifier;
use weir_mqtt::topic::Filter;
use weir_mqtt::{Property, PropertyBuffer, Publish, Qos};
use weir_shard::{SessionId, World};

/// Messages that wait for one subscriber. What comes beyond is left out, and counted.
const QUEUE_KEPT: usize = 100_000;
/// Messages that are kept for who subscribes later.
const RETAINED_KEPT: usize = 65_536;
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
    /// PUBACKs sent.
    pub acknowledged: u64,
    /// PUBACKs that a fault withheld.
    pub withheld: u64,
    /// Messages that a fault kept from all subscribers.
    pub dropped: u64,
    /// Messages sent to subscribers.
    pub sent: u64,
    /// PUBACKs that came.
    pub confirmed: u64,
    /// Messages that a fault kept from one subscriber.
    pub dropped_for_one: u64,
    /// Messages that were left out because too many waited for a subscriber.
    pub overflowed: u64,
}

/// What the origin's owner tells a broker.
#[derive(Debug)]
pub(crate) enum Message {
    /// What has been counted?
    Report(Sender<Report>),
    /// It has to end.
    Stop,
}

/// What a broker has counted.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) counts: MessageCounts,
    pub(crate) effects: Vec<Effect>,
}

/// A message as it came, for all who are sent it.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) topic: Box<str>,
    pub(crate) payload: Box<[u8]>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    /// Those that go on to subscribers.
    pub(crate) properties: PropertyBuffer,
}

/// A message for one subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) publication: Arc<Publication>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) identifier: Option<SubscriptionIdentifier>,
}

/// Names what waits for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InboxKey(usize);

#[derive(Debug)]
struct Inbox {
    session: SessionId,
    client_id: String,
    queue: VecDeque<Delivery>,
    taken_over: bool,
}

#[derive(Debug)]
struct Subscription {
    inbox: InboxKey,
    share: Option<String>,
    pattern: String,
    options: SubscriptionOptions,
    identifier: Option<SubscriptionIdentifier>,
}

/// The [`World`] of a broker.
pub(crate) struct Broker {
    pub(crate) settings: Arc<Settings>,
    pub(crate) counts: MessageCounts,
    inboxes: Slab<Inbox>,
    names: HashMap<String, InboxKey>,
    subscriptions: Vec<Subscription>,
    /// Whose turn it is among those that share a subscription.
    turns: HashMap<(String, String), usize>,
    retained: BTreeMap<Box<str>, Arc<Publication>>,
    /// Faults of messages as they come in, by topic filter.
    scripts: Vec<(String, Box<Script>)>,
    effects: Vec<Effect>,
    pub(crate) stopping: bool,
}

impl Broker {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
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
            subscriptions: Vec::new(),
            turns: HashMap::new(),
            retained: BTreeMap::new(),
            effects: Vec::new(),
            stopping: false,
            settings,
        }
    }

    /// A client is let in. Another one of its name has to go: the session to wake.
    pub(crate) fn enter(&mut self, session: SessionId, client_id: &str) -> (InboxKey, Option<SessionId>) {
        let other = self.names.get(client_id).map(|key| {
            let inbox = &mut self.inboxes[key.0];
            inbox.taken_over = true;
            inbox.session
        });
        let client_id = client_id.to_owned();
        let (queue, taken_over) = (VecDeque::new(), false);
        let inbox = Inbox { session, client_id: client_id.clone(), queue, taken_over };
        let key = InboxKey(self.inboxes.insert(inbox));
        self.names.insert(client_id, key);
        self.counts.clients += 1;
        (key, other)
    }

    /// A client is gone, with its subscriptions.
    pub(crate) fn leave(&mut self, key: InboxKey) {
        let inbox = self.inboxes.remove(key.0);
        if self.names.get(&inbox.client_id) == Some(&key) {
            self.names.remove(&inbox.client_id);
        }
        self.subscriptions.retain(|subscription| subscription.inbox != key);
    }

    /// Whether another client of the same name has come.
    pub(crate) fn is_taken_over(&self, key: InboxKey) -> bool {
        self.inboxes[key.0].taken_over
    }

    /// The next message for a client.
    pub(crate) fn next(&mut self, key: InboxKey) -> Option<Delivery> {
        self.inboxes[key.0].queue.pop_front()
    }

    /// Subscribes, or changes a subscription; what had been kept goes to the client.
    pub(crate) fn subscribe(
        &mut self,
        key: InboxKey,
        filter: &Filter<'_>,
        options: SubscriptionOptions,
        identifier: Option<SubscriptionIdentifier>,
    ) {
        let share = filter.share.map(str::to_owned);
        let before = self.subscriptions.len();
        self.unsubscribe(key, filter);
        let is_new = self.subscriptions.len() == before;
        let wanted = match options.retain_handling {
            RetainHandling::Always => true,
            RetainHandling::New => is_new,
            RetainHandling::Never => false,
        };
        if share.is_none() && wanted {
            let kept: Vec<_> = self
                .retained
                .values()
                .filter(|kept| filter.matches(&kept.topic))
                .map(|kept| Delivery {
                    publication: kept.clone(),
                    qos: kept.qos.min(options.qos),
                    retain: true,
                    identifier,
                })
                .collect();
            self.inboxes[key.0].queue.extend(kept);
        }
        let pattern = filter.pattern.to_owned();
        self.subscriptions.push(Subscription { inbox: key, share, pattern, options, identifier });
    }

    /// Unsubscribes; says whether there was a subscription.
    pub(crate) fn unsubscribe(&mut self, key: InboxKey, filter: &Filter<'_>) -> bool {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|it| {
            it.inbox != key || it.pattern != filter.pattern || it.share.as_deref() != filter.share
        });
        self.subscriptions.len() < before
    }

    /// A message came in, from a client or out of a will. Says whether anyone has subscribed to it.
    pub(crate) fn publish(
        &mut self,
        from: Option<InboxKey>,
        publication: Publication,
        now: Moment,
        wake: &mut Vec<SessionId>,
    ) -> bool {
        let publication = Arc::new(publication);
        if publication.retain {
            self.keep(&publication);
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
        let mut matched = false;
        for _ in 0..times {
            matched |= self.hand_out(from, &publication, wake);
        }
        // Who published it learns nothing of a fault.
        matched
            || times == 0
                && self
                    .subscriptions
                    .iter()
                    .any(|it| weir_mqtt::topic::matches(&it.pattern, &publication.topic))
    }

    fn hand_out(
        &mut self,
        from: Option<InboxKey>,
        publication: &Arc<Publication>,
        wake: &mut Vec<SessionId>,
    ) -> bool {
        let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        let mut chosen: Vec<usize> = Vec::new();
        for (position, it) in self.subscriptions.iter().enumerate() {
            if !weir_mqtt::topic::matches(&it.pattern, &publication.topic) {
                continue;
            }
            match &it.share {
                Some(share) => groups.entry((share, &it.pattern)).or_default().push(position),
                None if it.options.no_local && from == Some(it.inbox) => {}
                None => chosen.push(position),
            }
        }
        for ((share, pattern), members) in groups {
            let turn = self.turns.entry((share.to_owned(), pattern.to_owned())).or_default();
            chosen.push(members[*turn % members.len()]);
            *turn += 1;
        }
        for position in &chosen {
            let it = &self.subscriptions[*position];
            let inbox = &mut self.inboxes[it.inbox.0];
            if inbox.queue.len() >= QUEUE_KEPT {
                self.counts.overflowed += 1;
                continue;
            }
            if inbox.queue.is_empty() {
                wake.push(inbox.session);
            }
            inbox.queue.push_back(Delivery {
                publication: publication.clone(),
                qos: publication.qos.min(it.options.qos),
                retain: publication.retain && it.options.retain_as_published,
                identifier: it.identifier,
            });
        }
        !chosen.is_empty()
    }

    /// The last message of a topic; one without payload takes it away (MQTT-3.3.1-6).
    fn keep(&mut self, publication: &Arc<Publication>) {
        if publication.payload.is_empty() {
            self.retained.remove(&publication.topic);
        } else if self.retained.len() < RETAINED_KEPT || self.retained.contains_key(&publication.topic) {
            self.retained.insert(publication.topic.clone(), publication.clone());
        }
    }

    /// Keeps what faults did.
    pub(crate) fn note(&mut self, effects: impl Iterator<Item = Effect>) {
        let room = EFFECTS_KEPT.saturating_sub(self.effects.len());
        self.effects.extend(effects.take(room));
    }
}

impl World for Broker {
    type Message = Message;

    fn receive(&mut self, message: Message, _: Moment, _: &mut Vec<SessionId>) {
        match message {
            Message::Report(reply) => {
                // The asker may have given up.
                let _ = reply.send(Report { counts: self.counts, effects: self.effects.clone() });
            }
            Message::Stop => self.stopping = true,
        }
    }
}

impl Publication {
    pub(crate) fn of(publish: &Publish<'_>) -> Self {
        let mut properties = PropertyBuffer::new();
        for property in publish.properties {
            // An alias is between two; a subscription has identifiers of its own (MQTT 5 section 3.3.2.3).
            if !matches!(property, Property::TopicAlias(_) | Property::SubscriptionIdentifier(_)) {
                // What was read can be written.
                let _ = properties.push(property);
            }
        }
        Self {
            topic: publish.topic.into(),
            payload: publish.payload.into(),
            qos: publish.qos,
            retain: publish.retain,
            properties,
        }
    }
}

/// A message as faults see it: a unit of media.
pub(crate) fn unit_of(payload: usize) -> Packet {
    Packet::unit(Kind::Data, false, 0, payload, &[][..])
}
