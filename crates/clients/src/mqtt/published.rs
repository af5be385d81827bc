//! What the publishers of a run have published, for its subscribers: what a broker has acknowledged should come.

use super::topic::Topic;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_mqtt::delivery::DeliveryTracker;
use weir_mqtt::topic::Filter;

/// Publishers that are kept, as many as a subscriber follows.
const MOST: usize = 65_536;

/// How many ranges of possibly published numbers are kept for one publisher. Beyond that the last range
/// grows, and what lies between is taken for unknown too: nothing is then called lost that may not have been sent.
const MOST_RANGES: usize = 65_536;

/// Where the publishers of a run leave what they have published.
#[derive(Debug, Default)]
pub struct Published(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    all: HashMap<u64, Arc<SentMessages>>,
    /// Of those whose topic is always the same, by topic.
    by_topic: HashMap<String, Vec<Arc<SentMessages>>>,
    /// The others.
    of_many_topics: Vec<Arc<SentMessages>>,
}

/// What one publisher has sent.
#[derive(Debug)]
pub(super) struct SentMessages {
    publisher: u64,
    broker: SocketAddr,
    topic: Topic,
    /// Messages below this number were handed to the link.
    next: AtomicU64,
    /// Whether it is stopping, and will soon have ended.
    stopping: AtomicBool,
    /// Messages that the broker may or may not have, and those that it refused.
    unknown: Mutex<NumberRanges>,
    /// What it had sent when it ended.
    end: OnceLock<u64>,
}

/// Numbers, as ranges in order, ends not included.
#[derive(Debug, Default)]
struct NumberRanges(Vec<(u64, u64)>);

/// What a subscriber lacks that ends now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lacking {
    /// Messages behind the last that came of their publisher, which should have come.
    pub(super) behind: u64,
    /// Messages missing before the last received one that may never have been published.
    pub(super) excused: u64,
    /// Publishers whose end is not known.
    pub(super) open: u64,
    /// Those of them that are stopping.
    pub(super) stopping: u64,
    /// Those of them that are this run's, and publish on.
    pub(super) going_on: u64,
}

impl Published {
    /// A publisher begins to send to this topic of a broker.
    pub(super) fn begin(&self, publisher: u64, broker: SocketAddr, topic: &Topic) -> Arc<SentMessages> {
        let sent = Arc::new(SentMessages {
            publisher,
            broker,
            topic: topic.clone(),
            next: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            unknown: Mutex::default(),
            end: OnceLock::new(),
        });
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.all.len() < MOST {
            shelf.all.insert(publisher, sent.clone());
            match topic.only() {
                Some(name) => shelf.by_topic.entry(name.to_owned()).or_default().push(sent.clone()),
                None => shelf.of_many_topics.push(sent.clone()),
            }
        }
        sent
    }

    /// A subscription was granted just now: what publishers send from now on should come.
    pub(super) fn subscribe(&self, broker: SocketAddr, filters: &[String], deliveries: &mut DeliveryTracker) {
        for sent in self.matching(broker, filters) {
            // What is handed to the link behind this reaches the broker behind the subscription.
            deliveries.resume(sent.publisher, sent.next.load(Ordering::Acquire));
        }
    }

    /// A tracker follows what publishers that go on send from now on no further.
    pub(super) fn close(
        &self,
        broker: SocketAddr,
        filters: &[String],
        complete: bool,
        deliveries: &mut DeliveryTracker,
    ) {
        self.complete(broker, filters, complete, deliveries);
        let ended: HashSet<u64> = deliveries.known().filter(|it| deliveries.has_ended(*it)).collect();
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own_at_end =
            |sent: &Arc<SentMessages>| sent.end.get().is_some() || sent.stopping.load(Ordering::Relaxed);
        deliveries.close(|publisher| {
            ended.contains(&publisher) || shelf.all.get(&publisher).is_some_and(is_own_at_end)
        });
    }

    /// Expects what publishers sent that began after a subscription with [`Self::subscribe`].
    fn complete(
        &self,
        broker: SocketAddr,
        filters: &[String],
        complete: bool,
        deliveries: &mut DeliveryTracker,
    ) {
        for sent in complete.then(|| self.matching(broker, filters)).into_iter().flatten() {
            deliveries.expect(sent.publisher, 0);
        }
    }

    /// What a tracker lacks. `complete`: whether it has subscribed with [`Self::subscribe`], so that it should have
    /// received everything from publishers that began later.
    pub(super) fn lacking(
        &self,
        broker: SocketAddr,
        filters: &[String],
        complete: bool,
        deliveries: &mut DeliveryTracker,
    ) -> Lacking {
        self.complete(broker, filters, complete, deliveries);
        let mut lacking = Lacking::default();
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for publisher in deliveries.known() {
            let sent = shelf.all.get(&publisher);
            let unreceived = |end| {
                let unknown = sent.map(|sent| sent.unknown.lock().unwrap_or_else(PoisonError::into_inner));
                deliveries.unreceived(publisher, end, unknown.as_ref().map_or(&[], |it| &it.0))
            };
            match sent.and_then(|sent| sent.end.get()) {
                Some(end) => {
                    let it = unreceived(*end);
                    lacking.behind += it.behind.saturating_sub(it.excused_behind);
                    lacking.excused += it.excused - it.excused_behind;
                }
                None if deliveries.has_ended(publisher) => {}
                None => {
                    let it = unreceived(0);
                    lacking.excused += it.excused - it.excused_behind;
                    lacking.open += 1;
                    let stops = sent.map(|sent| sent.stopping.load(Ordering::Relaxed));
                    lacking.stopping += u64::from(stops == Some(true));
                    lacking.going_on += u64::from(stops == Some(false));
                }
            }
        }
        lacking
    }

    /// The publishers of a broker all of whose messages match one of the filters; each as often as there are such.
    fn matching(&self, broker: SocketAddr, filters: &[String]) -> Vec<Arc<SentMessages>> {
        filters.iter().flat_map(|filter| self.matching_one(broker, filter)).collect()
    }

    fn matching_one(&self, broker: SocketAddr, filter: &str) -> Vec<Arc<SentMessages>> {
        let Ok(filter) = Filter::parse(filter) else { return Vec::new() };
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let named: Vec<&Arc<SentMessages>> = if filter.has_wildcards() {
            let all = shelf.by_topic.iter().filter(|(topic, _)| filter.matches(topic));
            all.flat_map(|(_, sent)| sent).collect()
        } else {
            shelf.by_topic.get(filter.pattern).into_iter().flatten().collect()
        };
        let others = shelf.of_many_topics.iter().filter(|sent| sent.topic.always_matches(&filter));
        named.into_iter().chain(others).filter(|sent| sent.broker == broker).cloned().collect()
    }
}

impl SentMessages {
    /// Messages below `next` were handed to the link.
    #[inline]
    pub(super) fn reached(&self, next: u64) {
        self.next.store(next, Ordering::Release);
    }

    /// It is stopping.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The broker may or may not have these messages, or has refused them.
    pub(super) fn not_taken(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut numbers = numbers.into_iter().peekable();
        if numbers.peek().is_some() {
            let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
            numbers.for_each(|number| unknown.insert(number));
        }
    }

    /// The publisher has ended.
    pub(super) fn end(&self, next: u64) {
        // It ends once.
        let _ = self.end.set(next);
    }
}

impl NumberRanges {
    /// Adds a number; most come in order.
    fn insert(&mut self, number: u64) {
        let ranges = &mut self.0;
        let position = ranges.partition_point(|(_, end)| *end < number);
        let is_full = ranges.len() >= MOST_RANGES;
        match ranges.get_mut(position) {
            Some((start, end)) if *start <= number + 1 || is_full => {
                (*start, *end) = ((*start).min(number), (*end).max(number + 1));
                let end = *end;
                if let Some((_, next)) = ranges.get(position + 1).copied().filter(|(start, _)| *start <= end)
                {
                    ranges[position].1 = next;
                    ranges.remove(position + 1);
                }
            }
            None if is_full => ranges[position - 1].1 = number + 1,
            _ => ranges.insert(position, (number, number + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mqtt::SCHEMES;
    use crate::target::Target;

    const BROKER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1883);

    fn topic(path: &str) -> Topic {
        let target = Target::parse(&format!("mqtt://h/{path}"), "publish", SCHEMES).unwrap();
        Topic::of(&target, &Default::default()).unwrap()
    }

    fn lacking(published: &Published, filter: &str, deliveries: &mut DeliveryTracker) -> (u64, u64, u64) {
        let lacking = published.lacking(BROKER, &[filter.to_owned()], true, deliveries);
        (lacking.behind, lacking.excused, lacking.open)
    }

    #[test]
    fn all_that_was_sent_behind_a_subscription_that_matches_should_come() {
        let published = Published::default();
        let early = published.begin(1, BROKER, &topic("a/{seq}/b"));
        early.reached(40);
        let mut trackers: Vec<(&str, DeliveryTracker)> =
            ["a/#", "$share/g/a/+/b", "a/7/b", "b"].map(|filter| (filter, DeliveryTracker::default())).into();
        for (filter, deliveries) in &mut trackers {
            published.subscribe(BROKER, &[(*filter).to_owned()], deliveries);
        }
        let late = published.begin(2, BROKER, &topic("a/b"));
        let elsewhere = published.begin(3, SocketAddr::new(BROKER.ip(), 1884), &topic("a/b"));
        for (sent, next) in [(&early, 100), (&late, 10), (&elsewhere, 5)] {
            sent.reached(next);
        }
        assert_eq!(lacking(&published, "a/#", &mut trackers[0].1), (0, 0, 2), "they go on");
        for (sent, next, unknown) in
            [(&early, 100, vec![99, 41, 42]), (&late, 10, vec![]), (&elsewhere, 5, vec![])]
        {
            sent.not_taken(unknown);
            sent.end(next);
        }
        let expected = [(57 + 10, 0, 0), (57, 0, 0), (0, 0, 0), (0, 0, 0)];
        for ((filter, deliveries), expected) in trackers.iter_mut().zip(expected) {
            assert_eq!(lacking(&published, filter, deliveries), expected, "{filter}");
        }
    }

    #[test]
    fn ranges_are_those_of_a_set_in_whatever_order_numbers_come() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut ranges, mut set) = (NumberRanges::default(), std::collections::BTreeSet::new());
        for _ in 0..2_000 {
            let number = random.u64(..5_000);
            ranges.insert(number);
            set.insert(number);
        }
        let numbers: Vec<u64> = ranges.0.iter().flat_map(|(start, end)| *start..*end).collect();
        assert_eq!(numbers, set.into_iter().collect::<Vec<_>>());
        assert!(ranges.0.windows(2).all(|pair| pair[0].1 < pair[1].0), "none touches the next");
    }

    #[test]
    fn whoever_is_heard_is_followed_to_its_end_whatever_its_topic_and_broker() {
        let published = Published::default();
        let bridged = published.begin(1, SocketAddr::new(BROKER.ip(), 1884), &topic("x"));
        let mut deliveries = DeliveryTracker::default();
        // 3 and 4 are missing; 4 was refused.
        for number in [2, 5, 6] {
            deliveries.take(1, number, || number);
        }
        deliveries.take(2, 0, || 0);
        bridged.reached(10);
        bridged.not_taken([8, 4]);
        assert_eq!(lacking(&published, "y", &mut deliveries), (0, 1, 2), "4 was refused, whatever comes");
        bridged.end(10);
        assert_eq!(lacking(&published, "y", &mut deliveries), (2, 1, 1), "nobody knows when 2 ends");
        deliveries.end(2);
        assert_eq!(lacking(&published, "y", &mut deliveries), (2, 1, 0));
    }
}
