//! The consumer of a run's messages: weir's own ingester, or one of another program whose result is requested.

use super::account::{Imbalance, IngestStage, MessageBalance};
use std::time::Duration;
use weir_metrics::Moment;

/// First and last of something.
pub type Both = Option<(Moment, Moment)>;

/// A consumer that cannot go on: where it stands, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {words}", .stage.name())]
pub struct ConsumerError {
    /// The part that cannot go on.
    pub stage: IngestStage,
    /// One line for people.
    pub words: String,
    /// Whether the scenario lacks something that was asked for, such as a password, while the consumer itself works.
    pub is_of_scenario: bool,
}

impl ConsumerError {
    /// Of this stage, with these words.
    pub fn new(stage: IngestStage, words: impl Into<String>) -> Self {
        Self { stage, words: words.into(), is_of_scenario: false }
    }
}

/// What was counted while it works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveCounts {
    /// Messages that the broker has delivered; absent if unknown.
    pub delivered: Option<u64>,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Messages of which it is decided what becomes of them.
    pub settled: u64,
    /// Records committed to the table.
    pub saved: u64,
    /// Messages among the dead letters.
    pub dead_lettered: u64,
    /// Messages that had been saved before.
    pub duplicate: u64,
}

impl SaveCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            delivered: self.delivered.zip(other.delivered).map(|(own, more)| own + more),
            bytes: self.bytes + other.bytes,
            settled: self.settled + other.settled,
            saved: self.saved + other.saved,
            dead_lettered: self.dead_lettered + other.dead_lettered,
            duplicate: self.duplicate + other.duplicate,
        }
    }
}

/// One that works while messages are published. It is there when it is made: the broker has granted its subscription.
pub trait Consumer {
    /// Second 0 of the run begins, or began, then.
    fn begin(&mut self, _origin: Moment) {}

    /// All that is to come has been published.
    fn published(&self) {}

    /// What was counted until now.
    fn counted(&self) -> SaveCounts;

    /// What of it this process has counted: agents hand on what they have.
    fn own(&self) -> SaveCounts {
        self.counted()
    }

    /// How long the batches waited for their commit that were committed since this was last asked.
    fn take_lags(&self) -> Vec<Duration> {
        Vec::new()
    }

    /// How long nothing may come, with messages missing, before they are lost: `settle`, or of one that commits when it
    /// likes as long as anything may take.
    fn patience(&self, settle: Duration, _timeout: Duration) -> Duration {
        settle
    }

    /// How long nothing may move; another's consumer may have a wait of its own, of the same length.
    fn longest(&self, timeout: Duration) -> Duration {
        timeout
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
    fn end(self: Box<Self>) -> Result<Consumed, ConsumerError>;

    /// Ends it, whatever came of it.
    fn leave(self: Box<Self>);
}

/// Where a consumer puts what it takes, and what that is called in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowStore {
    /// Tables of weir's own ingester.
    Own(String),
    /// A table that another program fills.
    Elsewhere(String),
}

/// What a consumer made of a run's messages.
#[derive(Clone, Debug)]
pub struct Consumed {
    /// Where it put them.
    pub place: RowStore,
    /// Messages that were delivered. One that only counts rows says as many as there are rows.
    pub received: u64,
    /// Records committed to the table.
    pub saved: u64,
    /// Messages among the dead letters.
    pub dead_lettered: u64,
    /// Messages that had been saved before.
    pub duplicate: u64,
    /// Rows that the table has more than at the start.
    pub counted: u64,
    /// The same of the table of dead letters.
    pub counted_dead: u64,
    /// Publishers whose marks came.
    pub publishers: u64,
    /// Records without a mark.
    pub unmarked: u64,
    /// The first number of the original's line, unless something does not come out even.
    pub code: i64,
    /// From the first insert to the last, in milliseconds.
    pub milliseconds: u64,
    /// When messages came.
    pub receipts: Both,
    /// When they were decoded.
    pub decodings: Both,
    /// When transactions were committed.
    pub commits: Both,
    /// Time spent decoding, if it is known.
    pub decode_seconds: Option<f64>,
    /// Time spent in transactions, if it is known.
    pub save_seconds: Option<f64>,
    /// Transactions.
    pub transactions: u64,
    /// Bytes that the table takes.
    pub table_bytes: u64,
    /// What a commit was worth, if it is known.
    pub durability: Option<String>,
    /// Why the broker has most likely dropped what is missing, and what helps.
    pub drop_cause: Option<String>,
    /// What was said meanwhile.
    pub remarks: Vec<String>,
}

impl Consumed {
    /// Nothing, in this place.
    pub fn nothing(place: RowStore) -> Self {
        Self {
            place,
            received: 0,
            saved: 0,
            dead_lettered: 0,
            duplicate: 0,
            counted: 0,
            counted_dead: 0,
            publishers: 0,
            unmarked: 0,
            code: 0,
            milliseconds: 0,
            receipts: None,
            decodings: None,
            commits: None,
            decode_seconds: None,
            save_seconds: None,
            transactions: 0,
            table_bytes: 0,
            durability: None,
            drop_cause: None,
            remarks: Vec::new(),
        }
    }

    /// Sums behind the publishers that do not come out even. `publishers` are those of the run.
    pub(super) fn imbalances(
        &self,
        account: &MessageBalance,
        publishers: u64,
        broker: &str,
    ) -> Vec<Imbalance> {
        match &self.place {
            RowStore::Own(store) => {
                let others = strangers(self.publishers, publishers, self.unmarked, broker);
                others.into_iter().chain(account.unsettled(broker, store)).collect()
            }
            RowStore::Elsewhere(store) => {
                elsewhere(account.published, account.counted, store).into_iter().collect()
            }
        }
    }
}

/// The sum over another program's consumer, if it does not come out even. What is missing was lost between the broker and the
/// consumer's table.
fn elsewhere(published: u64, rows: u64, store: &str) -> Option<Imbalance> {
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
    Some(Imbalance { stage: IngestStage::Consumer, text })
}

/// Messages of other publishers on the same topics: without a mark they may stand for messages of this run that are missing.
fn strangers(heard: u64, publishers: u64, unmarked: u64, broker: &str) -> Option<Imbalance> {
    if heard <= publishers && unmarked == 0 {
        return None;
    }
    let text = format!(
        "{broker} delivered messages of {heard} publishers, and {unmarked} of no known one, and the run has {publishers}; give it \
         topics of its own"
    );
    Some(Imbalance { stage: IngestStage::Broker, text })
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
