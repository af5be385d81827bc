//! Items of one agent's run as they arrive: each counts once and in order, and those that will never arrive are counted.

use std::collections::BTreeMap;

/// How many items are kept while an earlier one is missing: an agent makes fewer than 1,000 in the 30 s for which it keeps them.
const MOST_AHEAD: usize = 1_000;
/// Bytes of these items: as many seconds of a run of ten workloads, of 20 kB each, are less.
const MOST_AHEAD_BYTES: usize = 8 << 20;

/// The items of one agent's run that have arrived.
#[derive(Debug)]
pub struct Inbox<Item> {
    /// The number of the next item in order.
    next: u64,
    /// Items that arrived before an earlier one, by number, with their bytes.
    ahead: BTreeMap<u64, (Item, usize)>,
    /// Bytes of all of them.
    ahead_bytes: usize,
    /// Number of items that arrived more than once.
    pub repeated: u64,
    /// Number of items that never arrived.
    pub missing: u64,
}

impl<Item> Default for Inbox<Item> {
    fn default() -> Self {
        Self { next: 1, ahead: BTreeMap::new(), ahead_bytes: 0, repeated: 0, missing: 0 }
    }
}

impl<Item> Inbox<Item> {
    /// The number of the last item up to which none is missing.
    pub fn received(&self) -> u64 {
        self.next - 1
    }

    /// Takes an item, and returns those that are complete with it, in order. Its sender still keeps items from `oldest` on; earlier ones
    /// will not be sent again. One for which there is no room behind a gap is not kept; its sender sends it again.
    pub fn take(&mut self, number: u64, oldest: u64, item: Item, bytes: usize) -> Vec<Item> {
        if number < self.next || self.ahead.contains_key(&number) {
            self.repeated += 1;
            return Vec::new();
        }
        let has_room = self.ahead.len() < MOST_AHEAD && self.ahead_bytes + bytes <= MOST_AHEAD_BYTES;
        if oldest <= number && (number == self.next || has_room) {
            self.ahead.insert(number, (item, bytes));
            self.ahead_bytes += bytes;
        }
        let mut whole = Vec::new();
        loop {
            if let Some((item, bytes)) = self.ahead.remove(&self.next) {
                self.ahead_bytes -= bytes;
                whole.push(item);
            } else if self.next < oldest {
                // The sender no longer keeps these.
                let upto = self.ahead.keys().next().map_or(oldest, |ahead| oldest.min(*ahead));
                self.missing += upto - self.next;
                self.next = upto;
                continue;
            } else {
                return whole;
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::Outbox;
    use proptest::prelude::*;
    use std::time::Duration;
    use weir_metrics::Moment;

    #[test]
    fn a_repeated_item_counts_once_and_a_gap_is_counted() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.take(1, 1, 'a', 1), ['a']);
        assert!(inbox.take(1, 1, 'a', 1).is_empty());
        assert!(inbox.take(3, 1, 'c', 1).is_empty());
        assert_eq!(inbox.take(2, 1, 'b', 1), ['b', 'c']);
        // The sender no longer keeps four and five.
        assert_eq!(inbox.take(6, 6, 'f', 1), ['f']);
        assert_eq!((inbox.repeated, inbox.missing, inbox.received()), (1, 2, 6));
        // A number that is far ahead changes nothing.
        assert!(inbox.take(u64::MAX, 1, 'x', 1).is_empty());
        assert_eq!(inbox.received(), 6);
    }

    #[test]
    fn what_waits_behind_a_gap_is_bounded_in_bytes_and_closes_it_all_the_same() {
        let mut inbox = Inbox::default();
        for number in 2..100 {
            assert!(inbox.take(number, 1, number, 1 << 20).is_empty());
        }
        assert_eq!(inbox.ahead_bytes, MOST_AHEAD_BYTES);
        assert_eq!(inbox.take(1, 1, 1, 64 << 20), (1..=9).collect::<Vec<u64>>());
        assert_eq!((inbox.ahead_bytes, inbox.received()), (0, 9));
        // The sender has not been told of the others, and sends them again.
        assert_eq!(inbox.take(10, 10, 10, 1 << 20), [10]);
    }

    proptest! {
        /// Whatever the network loses, repeats and reorders, each item is returned once and in order.
        #[test]
        fn items_are_returned_once_and_in_order_whatever_the_network_does(
            fates in prop::collection::vec(0u8..4, 0..60),
            count in 1u64..20,
        ) {
            let (mut outbox, mut inbox) = (Outbox::default(), Inbox::default());
            let mut now = Moment::from_nanos(0);
            let mut fates = fates.into_iter();
            let (mut held, mut out) = (Vec::new(), Vec::new());
            (1..=count).for_each(|item| outbox.push(item, now));
            for _ in 0..12 {
                while let Some(frame) = outbox.poll(now) {
                    match fates.next().unwrap_or(0) {
                        0 => out.extend(inbox.take(frame.0, frame.1, frame.2, 1)),
                        1 => {}
                        2 => for _ in 0..2 { out.extend(inbox.take(frame.0, frame.1, frame.2, 1)) },
                        _ => held.push(frame),
                    }
                }
                for frame in held.drain(..) {
                    out.extend(inbox.take(frame.0, frame.1, frame.2, 1));
                }
                outbox.acknowledge(inbox.received());
                now = now + Duration::from_secs(2);
            }
            let expected: Vec<_> = (1..=count).collect();
            // An item that was lost for longer than it is kept is counted as missing.
            prop_assert_eq!(out.len() as u64 + inbox.missing, count);
            if inbox.missing == 0 { prop_assert_eq!(out, expected) } else { prop_assert!(out.is_sorted()) }
        }
    }
}
