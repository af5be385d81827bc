//! Messages that a broker has dropped, by the holes in their publishers' numbers: how many, whose, and since when. Looked at
//! only when a message comes behind a hole or fills one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_metrics::several;
use weir_setting::named;

/// Publishers whose holes are told apart; those of others are counted together.
const PUBLISHERS_KEPT: usize = 4_096;

/// Publishers that a line names.
const PUBLISHERS_NAMED: usize = 3;

/// The holes that one thread finds and others read.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Mutex<Holes>);

#[derive(Debug, Default)]
struct Holes {
    missing: u64,
    publishers: HashMap<u64, PublisherGap>,
}

/// What is missing of one publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherGap {
    /// Its number, as the column `publisher` has it.
    pub publisher: i64,
    /// Its messages that did not come.
    pub missing: u64,
    /// When a message came that lay behind the first hole, in microseconds since the Unix epoch.
    pub since: i64,
}

/// What is missing at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Messages that did not come.
    pub messages: u64,
    /// Publishers with a hole in their numbers; no more than 4,096 are told apart.
    pub publishers: u64,
    /// When the first hole was found, in microseconds since the Unix epoch.
    pub since: Option<i64>,
    /// The publishers that miss most, eight at the most.
    pub most: Vec<PublisherGap>,
}

/// Why a broker has most likely dropped messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The subscription is at QoS 0: what a slow reader does not take in time may be dropped.
    QosZero,
    /// The broker forgot the session, and what it held for it.
    SessionLost,
    /// More messages waited for this client than the broker keeps for one.
    QueueFull,
    /// The broker was away and has kept the session: it may have been killed before what it held was on its disk.
    BrokerAway,
}

impl Gaps {
    fn lock(&self) -> MutexGuard<'_, Holes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message came behind this many of its publisher that did not; the time in microseconds since the Unix epoch.
    pub(crate) fn open(&self, publisher: u64, missing: u64, now: i64) {
        let mut holes = self.lock();
        holes.missing += missing;
        if holes.publishers.len() >= PUBLISHERS_KEPT && !holes.publishers.contains_key(&publisher) {
            return;
        }
        let fresh = PublisherGap { publisher: publisher as i64, missing: 0, since: now };
        holes.publishers.entry(publisher).or_insert(fresh).missing += missing;
    }

    /// One that was missing has come after all.
    pub(crate) fn fill(&self, publisher: u64) {
        let mut holes = self.lock();
        holes.missing = holes.missing.saturating_sub(1);
        if let Some(gap) = holes.publishers.get_mut(&publisher) {
            gap.missing -= 1;
            if gap.missing == 0 {
                holes.publishers.remove(&publisher);
            }
        }
    }

    /// What is missing now.
    pub(crate) fn missing(&self) -> Missing {
        let holes = self.lock();
        let mut most: Vec<_> = holes.publishers.values().copied().collect();
        most.sort_unstable_by_key(|gap| (std::cmp::Reverse(gap.missing), gap.publisher));
        let since = most.iter().map(|gap| gap.since).min();
        let publishers = most.len() as u64;
        most.truncate(8);
        Missing { messages: holes.missing, publishers, since, most }
    }

    /// How many messages are missing now.
    pub(crate) fn messages(&self) -> u64 {
        self.lock().missing
    }
}

impl DropCause {
    /// What is most likely, of a subscription at QoS 0 or above, after this many lost sessions.
    pub fn likely(at_most_once: bool, sessions_lost: u64) -> Self {
        match (at_most_once, sessions_lost) {
            (true, _) => Self::QosZero,
            (false, 0) => Self::QueueFull,
            (false, _) => Self::SessionLost,
        }
    }

    /// The same after this many connections behind the first.
    #[must_use]
    pub fn after(self, reconnects: u64) -> Self {
        if self == Self::QueueFull && reconnects > 0 { Self::BrokerAway } else { self }
    }
}

impl Missing {
    /// How many are missing, whose, since when, why this broker has most likely dropped them, and what helps.
    pub fn line(&self, broker: &str, cause: DropCause) -> String {
        let since = self.since.map(|micros| micros.div_euclid(1_000_000).rem_euclid(86_400));
        let clock =
            |time: i64| format!(" since {:02}:{:02}:{:02} UTC", time / 3_600, time / 60 % 60, time % 60);
        let since = since.map(clock).unwrap_or_default();
        format!("missing{since}: {self}, by their numbers; {broker} did not deliver them: {cause}")
    }
}

impl fmt::Display for Missing {
    /// `870 messages of 2 publishers (1234: 500, -5: 370)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, publishers, most, .. } = self;
        write!(f, "{} of {}", several(*messages, "message"), several(*publishers, "publisher"))?;
        let named = most.iter().take(PUBLISHERS_NAMED);
        let named: Vec<_> = named.map(|gap| format!("{}: {}", gap.publisher, gap.missing)).collect();
        let others = if *publishers > PUBLISHERS_NAMED as u64 { ", …" } else { "" };
        write!(f, " ({}{others})", named.join(", "))
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&named(match self {
            Self::QosZero => {
                "the subscription is at QoS 0, at which a broker drops what a slow client does not take; use {qos_of_ingest} 1"
            }
            Self::SessionLost => {
                "it has forgotten the session with what it held; have it keep sessions longer ({session}, and the \
                 broker's own limit and persistence)"
            }
            Self::QueueFull => {
                "most likely more waited than it keeps for one client; raise its limit (mosquitto: \
                 max_queued_messages, EMQX: max_mqueue_len), or share the topic among several ingesters ($share/NAME/…)"
            }
            Self::BrokerAway => {
                "it was away meanwhile: if it was killed, what it had not written to its disk is gone (mosquitto: \
                 autosave_interval); if it was not, more waited than it keeps for one client (mosquitto: max_queued_messages, EMQX: \
                 max_mqueue_len)"
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_told_by_publisher_until_they_are_filled() {
        let gaps = Gaps::default();
        assert_eq!(gaps.missing(), Missing::default());
        gaps.open(7, 2, 1_000);
        gaps.open(u64::MAX, 5, 2_000);
        gaps.open(7, 1, 3_000);
        let missing = gaps.missing();
        assert_eq!((missing.messages, missing.publishers, missing.since), (8, 2, Some(1_000)));
        assert_eq!(missing.to_string(), "8 messages of 2 publishers (-1: 5, 7: 3)");
        let noon = Missing { since: Some((86_400 + 12 * 3_600 + 61) * 1_000_000), ..missing };
        let line = noon.line("mqtt://b", DropCause::likely(false, 0));
        let begin = "missing since 12:01:01 UTC: 8 messages of 2 publishers (-1: 5, 7: 3), by their numbers; mqtt://b did not";
        assert!(line.starts_with(begin) && line.contains("max_queued_messages"), "{line}");
        let away = DropCause::likely(false, 0).after(1).to_string();
        assert!(away.contains("if it was killed") && away.contains("autosave_interval"), "{away}");
        assert_eq!(DropCause::likely(false, 1).after(1), DropCause::SessionLost);
        (0..3).for_each(|_| gaps.fill(7));
        let missing = gaps.missing();
        assert_eq!(missing.most, [PublisherGap { publisher: -1, missing: 5, since: 2_000 }]);
        (0..5).for_each(|_| gaps.fill(u64::MAX));
        assert_eq!(gaps.missing(), Missing::default());
    }

    #[test]
    fn publishers_without_number_are_counted_and_not_named() {
        let gaps = Gaps::default();
        (0..5_000).for_each(|publisher| gaps.open(publisher, 2, 0));
        let missing = gaps.missing();
        assert_eq!((missing.messages, missing.publishers, missing.most.len()), (10_000, 4_096, 8));
        gaps.fill(4_999);
        assert_eq!(gaps.messages(), 9_999);
        assert!(missing.to_string().ends_with("(0: 2, 1: 2, 2: 2, …)"), "{missing}");
    }
}
