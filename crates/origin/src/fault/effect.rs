//! What a fault really did, for tests to compare with.

use super::Damage;
use std::sync::Arc;
use weir_metrics::Moment;

/// One thing that a fault did.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// When, on `CLOCK_MONOTONIC`.
    pub at: Moment,
    /// Position of the fault in the configuration.
    pub fault: usize,
    /// What it was done to.
    pub subject: Subject,
    /// The effect itself.
    pub what: What,
}

/// What it was done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A link, by its number.
    Link(u64),
    /// A viewer, by its number.
    Viewer(u64),
    /// A publisher, by its number.
    Publisher(u64),
    /// A stream, by its name.
    Stream(Arc<str>),
}

/// What was done. Timestamps are media time in microseconds, as the publisher sent them; packets of a
/// transport stream have 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A unit was not sent.
    Dropped {
        /// Its number, among those that the fault counts.
        unit: u64,
        /// Its timestamp.
        timestamp: i64,
    },
    /// A unit was sent again.
    Duplicated {
        /// Its number, among those that the fault counts.
        unit: u64,
        /// Its timestamp.
        timestamp: i64,
    },
    /// A unit was sent after the one that follows it.
    Swapped {
        /// Its number, among those that the fault counts.
        unit: u64,
        /// Its timestamp.
        timestamp: i64,
    },
    /// A packet of a transport stream was damaged.
    Damaged {
        /// Its number, among those that the fault counts.
        unit: u64,
        /// What was changed in it.
        damage: Damage,
    },
    /// Something waited because of a stall; once for each stall.
    Stalled {
        /// Until when.
        until: Moment,
    },
    /// Units began to be sent later; once.
    Delayed,
    /// Timestamps began to be moved; once.
    Jumped {
        /// The first that was moved, as it was before.
        timestamp: i64,
        /// By how many microseconds.
        by: i64,
    },
    /// Playlists stood still; once.
    Stale {
        /// Until when.
        until: Moment,
    },
    /// A reload that waited was answered at once.
    Early {
        /// Its number, among those that the fault counts.
        unit: u64,
    },
    /// A segment or part was answered with a status.
    Answered {
        /// Its number, among those that the fault counts.
        unit: u64,
        /// The status.
        status: u16,
    },
    /// Packets were not in a segment or part.
    LostPackets {
        /// Its number, among those that the fault counts.
        unit: u64,
        /// How many.
        packets: usize,
    },
    /// A segment was named and not there.
    Gap {
        /// Its number, among those that the fault counts.
        unit: u64,
    },
    /// The handshake asked for another latency.
    AskedForLatency,
    /// The connection was reset.
    Reset,
    /// The connection was closed.
    Closed,
    /// A request was refused.
    Refused,
    /// A message was not acknowledged.
    Withheld {
        /// Its number, among those that the fault counts.
        unit: u64,
    },
    /// Something was not answered.
    Silenced,
    /// Reading paused to keep to the rate; once.
    Paced,
}
