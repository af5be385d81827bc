//! The subscriptions of all clients. Taking a subscription costs as much with a hundred thousand others as with none; a
//! message is compared with the filters that have wildcards, and of the others looks up its own topic.

use super::inbox::InboxKey;
use std::collections::{BTreeMap, HashMap, HashSet};
use weir_mqtt::packet::SubscriptionOptions;
use weir_mqtt::property::SubscriptionIdentifier;
use weir_mqtt::topic::{self, Filter};

/// Subscriptions of one client. Those with wildcards cost every message of every client a comparison.
pub(super) const MOST_OF_ONE: usize = 4_096;

/// One subscription.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) inbox: InboxKey,
    share: Option<String>,
    pattern: String,
    pub(super) options: SubscriptionOptions,
    pub(super) identifier: Option<SubscriptionIdentifier>,
}

/// The share name and the pattern of a filter.
type Name = (Option<String>, String);

/// All subscriptions of a broker, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    all: HashMap<u64, Subscription>,
    next: u64,
    of: HashMap<InboxKey, HashMap<Name, u64>>,
    /// Those without wildcards, by topic.
    exact: HashMap<String, HashSet<u64>>,
    with_wildcards: BTreeMap<u64, ()>,
    groups: HashMap<Name, Group>,
}

/// Those that share a subscription (MQTT 5 section 4.8.2).
#[derive(Debug, Default)]
struct Group {
    members: usize,
    /// Whose turn it is.
    turn: usize,
}

/// What became of a wish to subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is a new one.
    New,
    /// It has taken the place of an older one of the same filter.
    Again,
    /// The client has too many.
    TooMany,
}

impl Subscriptions {
    pub(super) fn add(
        &mut self,
        inbox: InboxKey,
        filter: &Filter<'_>,
        options: SubscriptionOptions,
        identifier: Option<SubscriptionIdentifier>,
    ) -> Taken {
        let again = self.remove(inbox, filter);
        let of = self.of.entry(inbox).or_default();
        if of.len() >= MOST_OF_ONE {
            return Taken::TooMany;
        }
        let (share, pattern) = (filter.share.map(str::to_owned), filter.pattern.to_owned());
        let number = self.next;
        self.next += 1;
        of.insert((share.clone(), pattern.clone()), number);
        if filter.has_wildcards() {
            self.with_wildcards.insert(number, ());
        } else {
            self.exact.entry(pattern.clone()).or_default().insert(number);
        }
        if share.is_some() {
            self.groups.entry((share.clone(), pattern.clone())).or_default().members += 1;
        }
        self.all.insert(number, Subscription { inbox, share, pattern, options, identifier });
        if again { Taken::Again } else { Taken::New }
    }

    /// Says whether there was one.
    pub(super) fn remove(&mut self, inbox: InboxKey, filter: &Filter<'_>) -> bool {
        let name = (filter.share.map(str::to_owned), filter.pattern.to_owned());
        let Some(number) = self.of.get_mut(&inbox).and_then(|of| of.remove(&name)) else { return false };
        self.forget(number);
        true
    }

    /// Takes all subscriptions of a client away.
    pub(super) fn leave(&mut self, inbox: InboxKey) {
        let numbers = self.of.remove(&inbox).unwrap_or_default();
        numbers.into_values().for_each(|number| self.forget(number));
    }

    fn forget(&mut self, number: u64) {
        let Some(gone) = self.all.remove(&number) else { return };
        self.with_wildcards.remove(&number);
        if let Some(same) = self.exact.get_mut(&gone.pattern) {
            same.remove(&number);
            if same.is_empty() {
                self.exact.remove(&gone.pattern);
            }
        }
        if gone.share.is_some() {
            let name = (gone.share, gone.pattern);
            let group = self.groups.entry(name.clone()).or_default();
            group.members = group.members.saturating_sub(1);
            if group.members == 0 {
                self.groups.remove(&name);
            }
        }
    }

    /// How many filters a message is compared with: what it costs.
    pub(super) fn comparisons(&self) -> usize {
        self.with_wildcards.len()
    }

    /// Whether anyone has subscribed to a topic.
    pub(super) fn has_any(&self, topic: &str) -> bool {
        self.exact.contains_key(topic)
            || self.with_wildcards.keys().any(|number| topic::matches(&self.all[number].pattern, topic))
    }

    /// Calls `on` for each subscription that a message from a client goes to: all that match, and of those that share
    /// one, the one whose turn it is. Whether there was any.
    pub(super) fn choose(
        &mut self,
        from: Option<InboxKey>,
        topic: &str,
        mut on: impl FnMut(&Subscription),
    ) -> bool {
        let exact = self.exact.get(topic).into_iter().flatten();
        let wild =
            self.with_wildcards.keys().filter(|number| topic::matches(&self.all[number].pattern, topic));
        let mut matching: Vec<u64> = exact.chain(wild).copied().collect();
        matching.sort_unstable();
        let mut shared: BTreeMap<(&str, &str), Vec<&Subscription>> = BTreeMap::new();
        let mut chosen = false;
        for number in matching {
            let it = &self.all[&number];
            match &it.share {
                Some(share) => shared.entry((share, &it.pattern)).or_default().push(it),
                // MQTT-3.8.3-3.
                None if it.options.no_local && from == Some(it.inbox) => {}
                None => {
                    chosen = true;
                    on(it);
                }
            }
        }
        for ((share, pattern), members) in shared {
            let Some(group) = self.groups.get_mut(&(Some(share.to_owned()), pattern.to_owned())) else {
                continue;
            };
            on(members[group.turn % members.len()]);
            group.turn = group.turn.wrapping_add(1);
            chosen = true;
        }
        chosen
    }
}
