//! Items of a run on their way to the coordinator: kept and sent again until they are acknowledged, for 30 s at most.

use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// How long an item is kept without an acknowledgement: longer than a NATS server needs to be started again.
pub const KEPT_FOR: Duration = Duration::from_secs(30);
/// How long an acknowledgement is waited for before an item is sent again: two heartbeats of the coordinator, which carry them.
const RESENT_AFTER: Duration = Duration::from_secs(2);

/// Items that are not acknowledged.
#[derive(Debug)]
pub struct Outbox<Item> {
    waiting: VecDeque<Waiting<Item>>,
    /// The number of the next item.
    next: u64,
}

#[derive(Debug)]
struct Waiting<Item> {
    number: u64,
    item: Item,
    made: Moment,
    /// When it was sent last, if it was.
    sent: Option<Moment>,
}

impl<Item> Default for Outbox<Item> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), next: 1 }
    }
}

impl<Item: Clone> Outbox<Item> {
    /// Takes an item.
    pub fn push(&mut self, item: Item, now: Moment) {
        self.waiting.push_back(Waiting { number: self.next, item, made: now, sent: None });
        self.next += 1;
    }

    /// The coordinator has received all items up to this number.
    pub fn acknowledge(&mut self, number: u64) {
        while self.waiting.front().is_some_and(|it| it.number <= number) {
            self.waiting.pop_front();
        }
    }

    /// Whether every item is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Drops items that are too old, and returns the next one to be sent: its number, the number of the oldest item that is kept, and the
    /// item.
    pub fn poll(&mut self, now: Moment) -> Option<(u64, u64, Item)> {
        while self.waiting.front().is_some_and(|it| now.since(it.made) > KEPT_FOR) {
            self.waiting.pop_front();
        }
        let oldest = self.waiting.front()?.number;
        let is_due = |it: &&mut Waiting<Item>| it.sent.is_none_or(|sent| now.since(sent) >= RESENT_AFTER);
        let due = self.waiting.iter_mut().find(is_due)?;
        due.sent = Some(now);
        Some((due.number, oldest, due.item.clone()))
    }
}
