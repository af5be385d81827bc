//! The subscriptions of all clients, in a tree by the patterns of their filters. Taking one costs as much with a hundred thousand
//! others as with none, and a message looks only at patterns that resemble its topic.

use super::inbox_key::InboxKey;
use slab::Slab;
use std::collections::HashMap;
use weir_mqtt::packet::SubscriptionOptions;
use weir_mqtt::property::SubscriptionIdentifier;
use weir_mqtt::topic::{Filter, TopicTree};

/// Subscriptions of one client: what one may cost, for a message may go to each of them.
pub(super) const MOST_OF_ONE: usize = 4_096;
/// Bytes of the filters of one client, with what each of their levels takes.
const MOST_BYTES_OF_ONE: usize = 8 << 20;
/// Bytes that a level of a filter takes beside its text: its node, and its place in the node above.
const LEVEL_BYTES: usize = 160;

/// A subscription as a message finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) inbox: InboxKey,
    pub(super) options: SubscriptionOptions,
    pub(super) identifier: Option<SubscriptionIdentifier>,
    key: SubscriptionKey,
}

/// The share name and the pattern of a filter.
type Name = (Option<Box<str>>, Box<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SubscriptionKey(usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AudienceKey(usize);

/// All subscriptions of a broker.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    /// The audiences of each pattern.
    patterns: TopicTree<Vec<AudienceKey>>,
    audiences: Slab<Audience>,
    names: HashMap<Name, AudienceKey>,
    /// Where each subscription stands among the members of its audience.
    places: Slab<(AudienceKey, usize)>,
    of: HashMap<InboxKey, ClientSubscriptions>,
    /// Of one message, kept for its memory.
    found: Vec<AudienceKey>,
}

/// All that have subscribed to one filter: each gets a message, or one of them if it is shared (MQTT 5 section 4.8.2).
#[derive(Debug)]
struct Audience {
    name: Name,
    members: Vec<Member>,
    /// Whose turn it is, of those that share.
    turn: usize,
    /// Where it stands among the audiences of its pattern.
    place: usize,
}

/// What one client has subscribed to.
#[derive(Debug, Default)]
struct ClientSubscriptions {
    subscriptions: HashMap<AudienceKey, SubscriptionKey>,
    bytes: usize,
}

/// What became of a wish to subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscribeOutcome {
    /// It is a new one.
    New,
    /// It has taken the place of an older one of the same filter.
    Again,
    /// The client has too many.
    TooMany,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MatchOutcome {
    /// Whether it went to anyone.
    pub(super) any: bool,
    /// What that has cost: patterns and subscriptions that were looked at.
    pub(super) steps: usize,
}

impl Subscriptions {
    pub(super) fn add(
        &mut self,
        inbox: InboxKey,
        filter: &Filter<'_>,
        options: SubscriptionOptions,
        identifier: Option<SubscriptionIdentifier>,
    ) -> SubscribeOutcome {
        let name: Name = (filter.share.map(Into::into), filter.pattern.into());
        let owned = self.of.entry(inbox).or_default();
        let again = self.names.get(&name).and_then(|audience| owned.subscriptions.get(audience));
        if let Some(key) = again {
            let (audience, place) = self.places[key.0];
            self.audiences[audience.0].members[place] = Member { inbox, options, identifier, key: *key };
            return SubscribeOutcome::Again;
        }
        let bytes = bytes_of(&name);
        if owned.subscriptions.len() >= MOST_OF_ONE || owned.bytes + bytes > MOST_BYTES_OF_ONE {
            return SubscribeOutcome::TooMany;
        }
        owned.bytes += bytes;
        let audience = match self.names.get(&name) {
            Some(audience) => *audience,
            None => {
                let key = AudienceKey(self.audiences.vacant_key());
                let same_pattern = self.patterns.entry(&name.1);
                let place = same_pattern.len();
                same_pattern.push(key);
                self.names.insert(name.clone(), key);
                self.audiences.insert(Audience { name, members: Vec::new(), turn: 0, place });
                key
            }
        };
        let members = &mut self.audiences[audience.0].members;
        let key = SubscriptionKey(self.places.insert((audience, members.len())));
        members.push(Member { inbox, options, identifier, key });
        owned.subscriptions.insert(audience, key);
        SubscribeOutcome::New
    }

    /// Says whether there was one.
    pub(super) fn remove(&mut self, inbox: InboxKey, filter: &Filter<'_>) -> bool {
        let name: Name = (filter.share.map(Into::into), filter.pattern.into());
        let (Some(audience), Some(owned)) = (self.names.get(&name), self.of.get_mut(&inbox)) else {
            return false;
        };
        let Some(key) = owned.subscriptions.remove(audience) else { return false };
        owned.bytes -= bytes_of(&name);
        self.forget(key);
        true
    }

    /// Takes all subscriptions of a client away.
    pub(super) fn leave(&mut self, inbox: InboxKey) {
        let owned = self.of.remove(&inbox).unwrap_or_default();
        owned.subscriptions.into_values().for_each(|key| self.forget(key));
    }

    fn forget(&mut self, key: SubscriptionKey) {
        let (audience, place) = self.places.remove(key.0);
        let members = &mut self.audiences[audience.0].members;
        members.swap_remove(place);
        if let Some(moved) = members.get(place) {
            self.places[moved.key.0].1 = place;
        }
        if !members.is_empty() {
            return;
        }
        let gone = self.audiences.remove(audience.0);
        self.names.remove(&gone.name);
        let Some(same_pattern) = self.patterns.get_mut(&gone.name.1) else { return };
        same_pattern.swap_remove(gone.place);
        if let Some(moved) = same_pattern.get(gone.place) {
            self.audiences[moved.0].place = gone.place;
        }
        if same_pattern.is_empty() {
            self.patterns.remove(&gone.name.1);
        }
    }

    /// Whether anyone has subscribed to a topic.
    pub(super) fn has_any(&mut self, topic: &str) -> bool {
        let mut any = false;
        self.patterns.find(topic, |_| any = true);
        any
    }

    /// Bytes of the filters of a client.
    pub(super) fn bytes_of(&self, inbox: InboxKey) -> usize {
        self.of.get(&inbox).map_or(0, |owned| owned.bytes)
    }

    /// Calls `on` for each subscription that a message from a client goes to: all that match, and of those that share
    /// one, the one whose turn it is, or the next that takes it. `on` says whether its client takes the message.
    pub(super) fn choose(
        &mut self,
        from: Option<InboxKey>,
        topic: &str,
        mut on: impl FnMut(&Member) -> bool,
    ) -> MatchOutcome {
        let Self { patterns, audiences, found, .. } = self;
        found.clear();
        let mut matched = MatchOutcome {
            any: false,
            steps: patterns.find(topic, |same_pattern| found.extend(same_pattern)),
        };
        for key in &*found {
            let audience = &mut audiences[key.0];
            if audience.name.0.is_some() {
                let first = audience.turn % audience.members.len().max(1);
                let (before, from_first) = audience.members.split_at(first);
                let mut taken = from_first.iter().chain(before).map(&mut on);
                let asked = taken.position(|taken| taken).map(|position| position + 1);
                matched.any |= asked.is_some();
                let asked = asked.unwrap_or(audience.members.len());
                audience.turn = audience.turn.wrapping_add(asked);
                matched.steps += asked;
                continue;
            }
            for member in &audience.members {
                // MQTT-3.8.3-3.
                if !(member.options.no_local && from == Some(member.inbox)) {
                    matched.any |= on(member);
                }
            }
            matched.steps += audience.members.len();
        }
        matched
    }
}

/// What a filter counts for.
fn bytes_of((share, pattern): &Name) -> usize {
    let levels = pattern.split('/').count();
    share.as_deref().unwrap_or_default().len() + pattern.len() + levels * LEVEL_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(subscriptions: &mut Subscriptions, inbox: usize, filter: &str) -> SubscribeOutcome {
        let filter = Filter::parse(filter).unwrap();
        subscriptions.add(InboxKey(inbox), &filter, SubscriptionOptions::default(), None)
    }

    fn remove(subscriptions: &mut Subscriptions, inbox: usize, filter: &str) -> bool {
        subscriptions.remove(InboxKey(inbox), &Filter::parse(filter).unwrap())
    }

    fn chosen(subscriptions: &mut Subscriptions, topic: &str) -> Vec<usize> {
        let mut chosen = Vec::new();
        subscriptions.choose(None, topic, |member| {
            chosen.push(member.inbox.0);
            true
        });
        chosen.sort_unstable();
        chosen
    }

    #[test]
    fn each_gets_a_message_and_one_of_those_that_share_by_turns() {
        let mut all = Subscriptions::default();
        for (inbox, filter) in [
            (0, "a/#"),
            (1, "a/+"),
            (1, "a/b"),
            (2, "$share/g/a/+"),
            (3, "$share/g/a/+"),
            (4, "$share/h/a/+"),
        ] {
            assert_eq!(add(&mut all, inbox, filter), SubscribeOutcome::New);
        }
        assert_eq!(add(&mut all, 2, "$share/g/a/+"), SubscribeOutcome::Again);
        let turns = [(); 4].map(|()| chosen(&mut all, "a/b"));
        assert_eq!(turns[0], [0, 1, 1, 2, 4], "overlapping subscriptions each bring it");
        assert_eq!(turns[1], [0, 1, 1, 3, 4]);
        assert_eq!(turns[2..], turns[..2]);
        assert!(remove(&mut all, 2, "$share/g/a/+") && !remove(&mut all, 2, "$share/g/a/+"));
        assert_eq!([(); 2].map(|()| chosen(&mut all, "a/b")), [[0, 1, 1, 3, 4], [0, 1, 1, 3, 4]]);
        all.leave(InboxKey(1));
        assert_eq!((chosen(&mut all, "a/b"), chosen(&mut all, "a")), (vec![0, 3, 4], vec![0]));
    }

    #[test]
    fn a_shared_message_goes_to_the_next_that_takes_it() {
        let mut all = Subscriptions::default();
        for inbox in 0..3 {
            add(&mut all, inbox, "$share/g/a");
        }
        let takers = [(); 4].map(|()| {
            let mut taker = None;
            let matched = all.choose(None, "a", |member| {
                let takes = member.inbox.0 != 1;
                taker = takes.then_some(member.inbox.0);
                takes
            });
            assert!(matched.any);
            taker.unwrap()
        });
        assert_eq!(takers, [0, 2, 0, 2]);
        assert!(!all.choose(None, "a", |_| false).any);
    }

    #[test]
    fn who_leaves_in_whatever_order_leaves_nothing_behind() {
        let mut all = Subscriptions::default();
        for inbox in 0..100 {
            for filter in ["a/#", "a/+", "$share/g/a/+", "$share/h/a/+"] {
                add(&mut all, inbox, filter);
            }
            add(&mut all, inbox, &format!("own/{inbox}"));
        }
        for inbox in (0..100).step_by(3).chain(0..100) {
            let others = chosen(&mut all, "a/b").len();
            let own = chosen(&mut all, &format!("own/{inbox}")).len();
            all.leave(InboxKey(inbox));
            // All filters but the shared ones, of which each goes to one as long as there is one.
            let left = chosen(&mut all, "a/b").len();
            assert_eq!(others - left, if left == 0 && own == 1 { 4 } else { 2 * own });
            assert!(chosen(&mut all, &format!("own/{inbox}")).is_empty());
        }
        assert!(
            all.audiences.is_empty() && all.places.is_empty() && all.names.is_empty() && all.of.is_empty()
        );
        assert_eq!(all.patterns.levels(), 0);
    }

    #[test]
    fn one_client_may_keep_so_many_filters_and_levels_and_no_more() {
        let mut all = Subscriptions::default();
        let fitting =
            (0..5_000).filter(|n| add(&mut all, 0, &format!("a/{n}")) == SubscribeOutcome::New).count();
        assert_eq!(fitting, MOST_OF_ONE);
        assert_eq!(add(&mut all, 0, "a/7"), SubscribeOutcome::Again);
        let deep = "/".repeat(20_000);
        let fitting =
            (0..10).filter(|n| add(&mut all, 1, &format!("{n}{deep}")) == SubscribeOutcome::New).count();
        assert_eq!(fitting, MOST_BYTES_OF_ONE / (20_001 * (LEVEL_BYTES + 1)));
        assert_eq!(add(&mut all, 2, "a/7"), SubscribeOutcome::New, "another client has room of its own");
    }
}
