//! Wills that wait for their time: that of their delay, or the end of their session, whichever comes first (MQTT 5 section
//! 3.1.3.2.2).

use super::inbox_key::InboxKey;
use super::publication::Publication;
use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;
use std::time::Duration;
use weir_metrics::Moment;

/// A will as its client has named it.
#[derive(Debug)]
pub(super) struct Will {
    pub(super) publication: Publication,
    /// How long it waits for its client to come back.
    pub(super) delay: Duration,
}

/// Names a will that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WillKey(Moment, u64);

/// The wills that wait.
#[derive(Debug, Default)]
pub(super) struct Wills {
    waiting: BTreeMap<WillKey, (Option<InboxKey>, Publication)>,
    /// How many have waited so far: the number of the next.
    next: u64,
}

impl Wills {
    /// When the next is to be published.
    pub(super) fn next(&self) -> Option<Moment> {
        self.waiting.first_key_value().map(|(key, _)| key.0)
    }

    /// One waits, for a session that is kept if it has one.
    pub(super) fn put(&mut self, at: Moment, session: Option<InboxKey>, will: Publication) -> WillKey {
        let key = WillKey(at, self.next);
        self.next += 1;
        self.waiting.insert(key, (session, will));
        key
    }

    /// Takes one out before its time.
    pub(super) fn take(&mut self, key: WillKey) -> Option<Publication> {
        self.waiting.remove(&key).map(|(_, will)| will)
    }

    /// One whose time has come, with the session that it belonged to.
    pub(super) fn due(&mut self, now: Moment) -> Option<(Option<InboxKey>, Publication)> {
        self.waiting.first_entry().filter(|first| first.key().0 <= now).map(OccupiedEntry::remove)
    }
}
