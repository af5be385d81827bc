//! Which records a topic holds, as far back as a repetition may lie: in memory, because a log has no index to ask.

use crate::payload_hash::PayloadHash;
use std::collections::{HashMap, HashSet};

/// Records of a generation. Two generations are kept, so that at least this many of the newest records are known; MQTT allows
/// 65,535 messages that are not acknowledged, and only those come again. 229,376 entries fill seven eighths of 2¹⁸ places,
/// with which the two take 22 MB at most.
pub(super) const GENERATION: usize = 229_376;

/// Publisher, sequence number, record.
pub(super) type Identity = (u64, u64, u32);

/// What became of a record, or would become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// Nothing with its identity is known.
    New,
    /// Its identity is known with other payloads only.
    Conflict,
    /// It is there.
    Known,
}

/// Records with an identity.
#[derive(Debug, Default)]
pub(super) struct Generation {
    first: HashMap<Identity, PayloadHash>,
    /// Those that are in conflict with the first.
    beside: HashSet<(Identity, PayloadHash)>,
}

impl Generation {
    fn find(&self, identity: Identity, hash: PayloadHash) -> Novelty {
        match self.first.get(&identity) {
            Some(known) if *known == hash => Novelty::Known,
            _ if self.beside.contains(&(identity, hash)) => Novelty::Known,
            Some(_) => Novelty::Conflict,
            None => Novelty::New,
        }
    }

    /// Notes a record; `true` if its identity was not there.
    pub(super) fn insert(&mut self, identity: Identity, hash: PayloadHash) -> bool {
        match self.find(identity, hash) {
            Novelty::New => self.first.insert(identity, hash).is_none(),
            Novelty::Conflict => {
                self.beside.insert((identity, hash));
                false
            }
            Novelty::Known => false,
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.beside.len()
    }
}

/// The newest records of a topic.
#[derive(Debug, Default)]
pub(super) struct NewestRecords {
    newest: Generation,
    before: Generation,
}

impl NewestRecords {
    /// What a record is beside those that are there and those of `batch`.
    pub(super) fn find(&self, batch: &Generation, identity: Identity, hash: PayloadHash) -> Novelty {
        let found = [batch, &self.newest, &self.before].map(|it| it.find(identity, hash));
        let is = |novelty| found.contains(&novelty);
        match (is(Novelty::Known), is(Novelty::Conflict)) {
            (true, _) => Novelty::Known,
            (false, true) => Novelty::Conflict,
            (false, false) => Novelty::New,
        }
    }

    pub(super) fn insert(&mut self, identity: Identity, hash: PayloadHash) {
        if self.newest.len() >= GENERATION {
            self.before = std::mem::take(&mut self.newest);
        }
        self.newest.insert(identity, hash);
    }

    /// Takes in those of a batch that is saved.
    pub(super) fn absorb(&mut self, batch: Generation) {
        for (identity, hash) in batch.first.into_iter().chain(batch.beside) {
            self.insert(identity, hash);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> PayloadHash {
        PayloadHash::of(&[number], 0)
    }

    #[test]
    fn a_repetition_is_one_by_its_payload() {
        let (mut seen, mut batch) = (NewestRecords::default(), Generation::default());
        let identity = (1, 2, 0);
        assert_eq!(seen.find(&batch, identity, hash(1)), Novelty::New);
        assert!(batch.insert(identity, hash(1)));
        assert_eq!(seen.find(&batch, identity, hash(1)), Novelty::Known);
        assert_eq!(seen.find(&batch, identity, hash(2)), Novelty::Conflict);
        batch.insert(identity, hash(2));
        seen.absorb(std::mem::take(&mut batch));
        for number in [1, 2] {
            assert_eq!(seen.find(&batch, identity, hash(number)), Novelty::Known);
        }
        assert_eq!(seen.find(&batch, identity, hash(3)), Novelty::Conflict);
        assert_eq!(seen.find(&batch, (1, 2, 1), hash(1)), Novelty::New);
    }

    #[test]
    fn the_newest_are_known_and_memory_is_bounded() {
        let (mut seen, batch) = (NewestRecords::default(), Generation::default());
        for number in 0..3 * GENERATION as u64 {
            seen.insert((1, number, 0), hash(0));
        }
        assert!(seen.newest.len() <= GENERATION && seen.before.len() <= GENERATION);
        assert_eq!(seen.find(&batch, (1, 0, 0), hash(0)), Novelty::New);
        for number in 2 * GENERATION as u64..3 * GENERATION as u64 {
            assert_eq!(seen.find(&batch, (1, number, 0), hash(0)), Novelty::Known);
        }
    }
}
