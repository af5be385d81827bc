//! Items of a run on their way to the coordinator: kept until it has them, sent again if it has not, and for half a minute at
//! most.

use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// For how long an item is kept that the coordinator does not have: longer than a NATS server needs to be started again.
pub const KEPT_FOR: Duration = Duration::from_secs(30);
/// How long an item may be on its way before it is sent again: two beats of the coordinator.
const RESENT_AFTER: Duration = Duration::from_secs(2);

/// Items that the coordinator does not have.
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
    /// When it was sent last.
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

    /// The coordinator has all items up to this one.
    pub fn acknowledge(&mut self, number: u64) {
        while self.waiting.front().is_some_and(|it| it.number <= number) {
            self.waiting.pop_front();
        }
    }

    /// Whether the coordinator has all.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives up what is too old; the next item to be sent, with its number and that of the oldest item that is kept.
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
