//! Counters that the working threads write, and that live output and the summary read.

use crate::gaps::{Gaps, Missing};
use crate::lag::Lag;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_metrics::{Moment, MomentRange};

/// Counters that two threads add to, each its own.
#[derive(Debug, Default)]
pub struct Counts {
    /// Messages that came from the broker, those that came again included.
    pub messages: AtomicU64,
    /// Bytes of their payloads.
    pub bytes: AtomicU64,
    /// Records of the messages that are settled; a message that could not be decoded counts as one.
    pub records: AtomicU64,
    /// Records that are in the table, and were not before.
    pub saved: AtomicU64,
    /// Records and messages that went to the dead letters.
    pub dead_lettered: AtomicU64,
    /// Records that had been saved before.
    pub duplicate: AtomicU64,
    /// Records that were saved or dead-lettered though their publisher and sequence number were there before: with another
    /// payload.
    pub conflict: AtomicU64,
    /// Records without a mark: one that comes again is saved again.
    pub unmarked: AtomicU64,
    /// Messages that were acknowledged to the broker.
    pub acknowledged: AtomicU64,
    /// Messages that are saved, among the dead letters, or were there before.
    pub settled: AtomicU64,
    /// Which messages are missing in the publishers' numbers.
    pub(crate) gaps: Gaps,
    /// Publishers whose messages arrived, by their marks.
    pub publishers: AtomicU64,
    /// Transactions.
    pub commits: AtomicU64,
    /// Time spent decoding, in nanoseconds.
    pub decode_nanos: AtomicU64,
    /// Time spent saving, in nanoseconds, failures included.
    pub save_nanos: AtomicU64,
    /// Attempts at saving that failed and were made again.
    pub retries: AtomicU64,
    /// Connections to the broker after the first.
    pub reconnects: AtomicU64,
    /// Connections at which the broker had forgotten the session.
    pub sessions_lost: AtomicU64,
    /// When messages came from the broker.
    pub receipts: MomentRange,
    /// When messages were decoded.
    pub decodings: MomentRange,
    /// When transactions were committed.
    pub committals: MomentRange,
    /// Whether the broker has granted the subscription, now.
    pub subscribed: AtomicU64,
    /// Bytes that wait to be saved.
    pub queued: AtomicU64,
    /// How long messages wait for their commit.
    pub lag: Lag,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, value: u64) {
        counter.fetch_add(value, Relaxed);
    }

    /// Whether the broker has granted the subscription, now.
    pub fn is_subscribed(&self) -> bool {
        Self::of(&self.subscribed) > 0
    }

    /// Bytes that wait to be saved.
    pub fn queued_bytes(&self) -> u64 {
        Self::of(&self.queued)
    }

    /// Which messages are missing now, in the publishers' numbers. Of a shared subscription none are: others get them.
    pub fn missing(&self) -> Missing {
        self.gaps.missing()
    }

    pub(crate) fn of(counter: &AtomicU64) -> u64 {
        counter.load(Relaxed)
    }

    /// Records that are still to come, of the `count` that were asked for.
    pub(crate) fn left(&self, count: Option<u64>) -> u64 {
        let done = Self::of(&self.saved) + Self::of(&self.dead_lettered);
        count.map_or(u64::MAX, |count| count.saturating_sub(done))
    }

    /// A transaction was committed.
    pub(crate) fn committed(&self, now: Moment) {
        Self::add(&self.commits, 1);
        self.committals.note(now);
    }

    /// All of it at this moment.
    pub fn totals(&self) -> Totals {
        let of = Self::of;
        let nanos = |counter| Duration::from_nanos(of(counter));
        // Once: a second reading may be of more messages, and more would be left than came.
        let messages = of(&self.messages);
        Totals {
            messages,
            bytes: of(&self.bytes),
            received: of(&self.records),
            saved: of(&self.saved),
            dead_lettered: of(&self.dead_lettered),
            duplicate: of(&self.duplicate),
            conflict: of(&self.conflict),
            unmarked: of(&self.unmarked),
            acknowledged: of(&self.acknowledged),
            left: messages.saturating_sub(of(&self.settled)),
            missing: self.gaps.messages(),
            publishers: of(&self.publishers),
            commits: of(&self.commits),
            retries: of(&self.retries),
            reconnects: of(&self.reconnects),
            sessions_lost: of(&self.sessions_lost),
            decode: nanos(&self.decode_nanos),
            save: nanos(&self.save_nanos),
            longest_lag: self.lag.longest(),
            first_to_last_commit: self
                .committals
                .get()
                .map_or(Duration::ZERO, |(first, last)| last.since(first)),
        }
    }
}

/// What was counted until a moment. Each is defined in `docs/method/ingest.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages that came from the broker.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Records settled: saved, dead-lettered or duplicate.
    pub received: u64,
    /// Records saved.
    pub saved: u64,
    /// Records and messages among the dead letters.
    pub dead_lettered: u64,
    /// Records that had been saved before.
    pub duplicate: u64,
    /// Of those saved and dead-lettered, records whose identity was there before with another payload.
    pub conflict: u64,
    /// Records without a mark.
    pub unmarked: u64,
    /// Messages acknowledged.
    pub acknowledged: u64,
    /// Messages left to the broker.
    pub left: u64,
    /// Messages missing in the publishers' numbers.
    pub missing: u64,
    /// Publishers whose messages arrived, by their marks.
    pub publishers: u64,
    /// Transactions.
    pub commits: u64,
    /// Attempts at saving that failed.
    pub retries: u64,
    /// Connections after the first.
    pub reconnects: u64,
    /// Sessions that the broker had forgotten.
    pub sessions_lost: u64,
    /// Time spent decoding.
    pub decode: Duration,
    /// Time spent saving.
    pub save: Duration,
    /// Longest time from the receipt of a batch's first message to its commit.
    pub longest_lag: Duration,
    /// From the first commit to the last.
    pub first_to_last_commit: Duration,
}
