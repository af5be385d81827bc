//! Who takes the messages of a repetition: weir's own ingester, or somebody else's consumer that is asked.

use crate::bench::Trouble;
use std::time::Duration;
use weir_engine::experiment::{Imbalance, Stage};
use weir_metrics::Moment;

/// First and last of something.
pub(crate) type Both = Option<(Moment, Moment)>;

/// One that works while messages are published.
pub(crate) trait Consumer {
    /// All that is to come has been published.
    fn published(&self) {}

    /// Messages that the broker has delivered to it; `None` if it does not say.
    fn delivered(&self) -> Option<u64>;

    /// Messages of which it is decided what becomes of them.
    fn settled(&self) -> u64;

    /// Of these, those that did not come before.
    fn distinct(&self) -> u64 {
        self.settled()
    }

    /// How long nothing may come, with messages missing, before they are lost: `settle`, or of one that commits when it
    /// likes as long as anything may take.
    fn patience(&self, settle: Duration, _timeout: Duration) -> Duration {
        settle
    }

    /// Whether nothing more will come of it.
    fn has_ended(&self) -> bool;

    /// The last line that it said, if it said one.
    fn last_line(&self) -> Option<String> {
        None
    }

    /// Ends it, and has it counted what is there.
    ///
    /// # Errors
    /// Where it stands, and why.
    fn end(self: Box<Self>) -> Result<Consumed, Trouble>;

    /// Ends it, whatever came of it.
    fn leave(self: Box<Self>);
}

/// What a consumer made of a repetition's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumed {
    /// Messages that were delivered. One that only counts rows says as many as there are rows.
    pub(crate) received: u64,
    pub(crate) saved: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) duplicate: u64,
    pub(crate) counted: u64,
    pub(crate) counted_dead: u64,
    /// Publishers whose marks came, and records without one: more than one, or any, is somebody else's.
    pub(crate) publishers: u64,
    pub(crate) unmarked: u64,
    /// The first number of the original's line, unless something does not come out even.
    pub(crate) code: i64,
    /// From the first insert to the last, in milliseconds.
    pub(crate) milliseconds: u64,
    pub(crate) receipts: Both,
    pub(crate) decodings: Both,
    pub(crate) commits: Both,
    pub(crate) decode_seconds: Option<f64>,
    pub(crate) save_seconds: Option<f64>,
    pub(crate) transactions: u64,
    pub(crate) table_bytes: u64,
    pub(crate) remarks: Vec<String>,
}

/// Sums over somebody else's consumer that do not come out even: who lost what lies between the broker and its table.
pub(crate) fn elsewhere(published: u64, rows: u64, store: &str) -> Option<Imbalance> {
    let text = match published.checked_sub(rows) {
        Some(0) => return None,
        Some(missing) => {
            format!("{store} has {rows} of {published} messages; the broker or its consumer lost {missing}")
        }
        None => {
            let more = rows - published;
            format!(
                "{store} has {more} more rows than messages were published; does another publisher write there?"
            )
        }
    };
    Some(Imbalance { stage: Stage::Consumer, text })
}

/// Messages of others on the same topics: what of ours is missing cannot be told from what of theirs came.
pub(crate) fn strangers(publishers: u64, unmarked: u64, broker: &str) -> Option<Imbalance> {
    if publishers <= 1 && unmarked == 0 {
        return None;
    }
    let text = format!(
        "{broker} delivered messages of {publishers} publishers, and {unmarked} of no known one; give the experiment topics of \
         its own"
    );
    Some(Imbalance { stage: Stage::Broker, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_consumer_lacks_is_said_with_its_place() {
        assert_eq!(elsewhere(10, 10, "t"), None);
        let said = |rows| elsewhere(10, rows, "t").unwrap().text;
        assert_eq!(said(7), "t has 7 of 10 messages; the broker or its consumer lost 3");
        assert!(said(12).starts_with("t has 2 more rows than messages were published"));
    }
}
