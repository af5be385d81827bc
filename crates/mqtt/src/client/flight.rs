//! What was sent and waits for an answer: packet identifiers, and who uses them.

use crate::packet::PacketId;
use std::collections::VecDeque;

/// What a packet identifier waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaits {
    /// Nothing: it is free.
    Nothing,
    /// The acknowledgement of a message of QoS 1.
    Puback,
    /// The first one of a message of QoS 2.
    Pubrec,
    /// The second one.
    Pubcomp,
    /// The answer to a SUBSCRIBE with this number of filters.
    Suback(u16),
    /// The answer to an UNSUBSCRIBE with this number of filters.
    Unsuback(u16),
}

impl Awaits {
    /// Whether it counts against the window (MQTT 5 section 4.9).
    fn is_publish(self) -> bool {
        matches!(self, Self::Puback | Self::Pubrec | Self::Pubcomp)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    awaits: Awaits,
    token: u64,
    /// Its place in the order of sending; of what was released, in the order of releasing.
    order: u64,
}

/// Identifiers in use. The table is as long as there ever were at once; a free one is used again as late as possible.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    entries: Vec<Entry>,
    free: VecDeque<PacketId>,
    publishes: u16,
    order: u64,
}

impl Flight {
    /// Messages that wait for an acknowledgement.
    #[inline]
    pub(super) fn publishes(&self) -> u16 {
        self.publishes
    }

    /// Takes an identifier into use; `None` if all 65,535 are.
    #[inline]
    pub(super) fn begin(&mut self, awaits: Awaits, token: u64) -> Option<PacketId> {
        let order = self.order;
        let entry = Entry { awaits, token, order };
        // A third of the table lies fallow, so that an identifier has a rest before it is used again.
        let spare = self.free.len() * 3 > self.entries.len() || self.entries.len() >= usize::from(u16::MAX);
        let id = match if spare { self.free.pop_front() } else { None } {
            Some(id) => {
                *self.entry(id)? = entry;
                id
            }
            None => {
                let number = u16::try_from(self.entries.len() + 1).ok()?;
                self.entries.push(entry);
                PacketId::new(number)?
            }
        };
        self.order += 1;
        self.publishes += u16::from(awaits.is_publish());
        Some(id)
    }

    /// The token of an identifier that waits for just this.
    #[inline]
    pub(super) fn awaited(&self, id: PacketId, awaits: Awaits) -> Option<u64> {
        self.state(id).filter(|(state, _)| *state == awaits).map(|(_, token)| token)
    }

    /// What an identifier in use waits for, and its token.
    #[inline]
    pub(super) fn state(&self, id: PacketId) -> Option<(Awaits, u64)> {
        let entry = self.entries.get(usize::from(id.get()) - 1)?;
        (entry.awaits != Awaits::Nothing).then_some((entry.awaits, entry.token))
    }

    /// Whether an identifier was in use, and is free now.
    pub(super) fn was_used(&self, id: PacketId) -> bool {
        let entry = self.entries.get(usize::from(id.get()) - 1);
        entry.is_some_and(|entry| entry.awaits == Awaits::Nothing)
    }

    /// A message of QoS 2 was received: its release is what waits from now on.
    pub(super) fn release(&mut self, id: PacketId) {
        let order = self.order;
        self.order += 1;
        if let Some(entry) = self.entry(id) {
            (entry.awaits, entry.order) = (Awaits::Pubcomp, order);
        }
    }

    /// Frees an identifier.
    #[inline]
    pub(super) fn end(&mut self, id: PacketId) {
        let Some(entry) = self.entry(id) else { return };
        let awaits = std::mem::replace(&mut entry.awaits, Awaits::Nothing);
        if awaits != Awaits::Nothing {
            self.publishes -= u16::from(awaits.is_publish());
            self.free.push_back(id);
        }
    }

    /// The identifiers and tokens of those that wait for one of these, in order.
    pub(super) fn waiting(&self, which: impl Fn(Awaits) -> bool) -> Vec<(PacketId, u64)> {
        let mut waiting: Vec<_> = (1..)
            .map_while(PacketId::new)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.awaits != Awaits::Nothing && which(entry.awaits))
            .collect();
        waiting.sort_by_key(|(_, entry)| entry.order);
        waiting.into_iter().map(|(id, entry)| (id, entry.token)).collect()
    }

    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.free.capacity() * size_of::<PacketId>()
    }

    #[inline]
    fn entry(&mut self, id: PacketId) -> Option<&mut Entry> {
        self.entries.get_mut(usize::from(id.get()) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_unique_while_in_use_and_all_of_them_can_be() {
        let mut flight = Flight::default();
        let mut used = std::collections::HashSet::new();
        for token in 0..65_535 {
            assert!(used.insert(flight.begin(Awaits::Puback, token).unwrap()));
        }
        assert_eq!(flight.begin(Awaits::Puback, 0), None);
        assert_eq!(flight.publishes(), 65_535);
        let freed = PacketId::new(77).unwrap();
        flight.end(freed);
        flight.end(freed);
        assert_eq!(flight.begin(Awaits::Pubrec, 1), Some(freed));
        assert_eq!(flight.begin(Awaits::Pubrec, 2), None);
    }

    #[test]
    fn a_freed_identifier_is_not_the_next_to_be_used() {
        let mut flight = Flight::default();
        let first = flight.begin(Awaits::Puback, 0).unwrap();
        let _ = flight.begin(Awaits::Puback, 1).unwrap();
        let _ = flight.begin(Awaits::Puback, 2).unwrap();
        flight.end(first);
        assert_ne!(flight.begin(Awaits::Puback, 3), Some(first));
    }

    #[test]
    fn order_is_that_of_sending_whatever_the_identifiers() {
        let mut flight = Flight::default();
        let ids: Vec<_> = (0..8).map(|token| flight.begin(Awaits::Puback, token).unwrap()).collect();
        ids.iter().take(6).for_each(|id| flight.end(*id));
        for token in 8..12 {
            flight.begin(Awaits::Puback, token).unwrap();
        }
        let tokens: Vec<_> = flight.waiting(|_| true).into_iter().map(|(_, token)| token).collect();
        assert_eq!(tokens, [6, 7, 8, 9, 10, 11]);
    }
}
