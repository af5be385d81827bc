//! The last message of each topic, kept for clients that subscribe later: bounded in number and in bytes, and handed out a piece
//! at a time, so that no other client waits while a subscriber to `#` is sent everything.

use super::publication::Publication;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use weir_mqtt::packet::SubscriptionOptions;
use weir_mqtt::property::SubscriptionIdentifier;
use weir_mqtt::topic::{self, Filter};

/// Messages that are kept.
const MOST: usize = 65_536;
/// Bytes of them, with what is kept beside each.
const MOST_BYTES: usize = 64 << 20;

/// The messages that are kept, by topic.
#[derive(Debug, Default)]
pub(super) struct RetainedMessages {
    kept: BTreeMap<Box<str>, (u64, Arc<Publication>)>,
    bytes: usize,
    /// How many were kept so far: the number of the next.
    next: u64,
}

/// A subscriber's way through the messages that its subscription matches.
#[derive(Debug)]
pub(super) struct Search {
    pattern: String,
    pub(super) options: SubscriptionOptions,
    pub(super) identifier: Option<SubscriptionIdentifier>,
    /// Messages from this number on came after the subscription, and have been sent as they came.
    before: u64,
    /// The topic that was looked at last.
    after: Option<Box<str>>,
}

impl Search {
    pub(super) fn is_of(&self, filter: &Filter<'_>) -> bool {
        self.pattern == filter.pattern
    }
}

impl RetainedMessages {
    /// Keeps the last message of its topic; one without payload takes it away (MQTT-3.3.1-6). `false`: there is no room
    /// for it, nor is an older one kept that is not the last any more.
    pub(super) fn keep(&mut self, publication: &Arc<Publication>) -> bool {
        self.forget(publication);
        if publication.payload.is_empty() {
            return true;
        }
        let fits = self.kept.len() < MOST && self.bytes + publication.weight() <= MOST_BYTES;
        if fits {
            self.bytes += publication.weight();
            self.kept.insert(publication.topic.clone(), (self.next, publication.clone()));
            self.next += 1;
        }
        fits
    }

    /// Does not keep a message any longer.
    pub(super) fn forget(&mut self, publication: &Publication) {
        if let Some((_, gone)) = self.kept.remove(&publication.topic) {
            self.bytes -= gone.weight();
        }
    }

    /// A subscriber's way through what is kept now.
    pub(super) fn search(
        &self,
        filter: &Filter<'_>,
        options: SubscriptionOptions,
        identifier: Option<SubscriptionIdentifier>,
    ) -> Search {
        let pattern = filter.pattern.to_owned();
        Search { pattern, options, identifier, before: self.next, after: None }
    }

    /// The next message on a subscriber's way, after at most `steps` others, which are counted down. `None`: no
    /// message was found within these steps; if some are left, there is no further one at all.
    pub(super) fn find(&self, search: &mut Search, steps: &mut usize) -> Option<Arc<Publication>> {
        // All topics that match begin with what stands before the first wildcard, the slash before it left out: sport/#
        // matches sport as well (section 4.7.1.2).
        let prefix = match search.pattern.split_once(['+', '#']) {
            Some((prefix, _)) => prefix.strip_suffix('/').unwrap_or(prefix),
            None => &search.pattern,
        };
        let is_exact = prefix.len() == search.pattern.len();
        let from = match &search.after {
            Some(topic) => Bound::Excluded(&**topic),
            None => Bound::Included(prefix),
        };
        let mut last = None;
        let found = self
            .kept
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(topic, _)| if is_exact { ***topic == *prefix } else { topic.starts_with(prefix) })
            .take(*steps)
            .find(|(topic, (number, _))| {
                *steps -= 1;
                last = Some(*topic);
                *number < search.before && topic::matches(&search.pattern, topic)
            });
        let publication = found.map(|(_, (_, publication))| publication.clone());
        if let Some(topic) = last {
            search.after = Some(topic.clone());
        }
        publication
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_mqtt::Publish;

    fn publication(topic: &str, length: usize) -> Arc<Publication> {
        let payload = vec![1; length];
        Arc::new(Publication::of(&Publish { retain: true, ..Publish::new(topic, &payload) }))
    }

    fn found(retained: &RetainedMessages, pattern: &str) -> Vec<String> {
        let filter = Filter::parse(pattern).unwrap();
        let mut search = retained.search(&filter, SubscriptionOptions::default(), None);
        let mut found = Vec::new();
        loop {
            // A step at a time is the way in the smallest pieces.
            let mut steps = 1;
            match retained.find(&mut search, &mut steps) {
                Some(publication) => found.push(publication.topic.to_string()),
                None if steps > 0 => return found,
                None => {}
            }
        }
    }

    #[test]
    fn a_search_finds_what_its_filter_matches_and_looks_at_little_else() {
        let mut retained = RetainedMessages::default();
        for topic in ["sport", "sport/tennis", "sport/tennis/final", "sports", "weather", "$SYS/uptime"] {
            assert!(retained.keep(&publication(topic, 3)));
        }
        for (pattern, topics) in [
            ("#", &["sport", "sport/tennis", "sport/tennis/final", "sports", "weather"][..]),
            ("sport/#", &["sport", "sport/tennis", "sport/tennis/final"]),
            ("sport/+", &["sport/tennis"]),
            ("sport", &["sport"]),
            ("+", &["sport", "sports", "weather"]),
            ("none", &[]),
        ] {
            assert_eq!(found(&retained, pattern), topics, "{pattern}");
        }
        let (filter, mut steps) = (Filter::parse("weather").unwrap(), 100);
        let mut search = retained.search(&filter, SubscriptionOptions::default(), None);
        assert!(retained.find(&mut search, &mut steps).is_some());
        assert_eq!(steps, 99, "only its own topic was looked at");
    }

    #[test]
    fn what_is_kept_later_is_not_found_as_it_was_sent_as_it_came() {
        let mut retained = RetainedMessages::default();
        retained.keep(&publication("a", 3));
        retained.keep(&publication("b", 3));
        let mut search = retained.search(&Filter::parse("#").unwrap(), SubscriptionOptions::default(), None);
        retained.keep(&publication("b", 4));
        retained.keep(&publication("c", 3));
        let mut steps = 10;
        assert_eq!(&*retained.find(&mut search, &mut steps).unwrap().topic, "a");
        assert!(retained.find(&mut search, &mut steps).is_none() && steps > 0);
    }

    #[test]
    fn bytes_are_bounded_and_given_free_again() {
        let mut retained = RetainedMessages::default();
        let large = 8 << 20;
        let kept = (0..20).filter(|n| retained.keep(&publication(&format!("{n}"), large))).count();
        assert_eq!(kept, 7, "of 8 MiB and a little");
        assert!(retained.keep(&publication("0", 0)), "an empty one takes the last away");
        assert!(retained.keep(&publication("x", large)));
        assert!(!retained.keep(&publication("y", large)));
        assert!(retained.bytes <= MOST_BYTES);
    }
}
