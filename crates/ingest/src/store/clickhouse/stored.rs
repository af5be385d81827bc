//! What a table holds under the identities of a batch, and what becomes of its records beside that. ClickHouse has no
//! unique index: who inserts has to look first.

use super::columns::NO_HASH;
use crate::batch::RowSource;
use crate::payload_hash::LENGTH;
use crate::store::SaveOutcome;
use std::collections::HashMap;

/// Bytes of a row of [`StoredRows::read`]: publisher, sequence number, record, hash, conflict, time of receipt.
const ROW_BYTES: usize = 8 + 8 + 4 + LENGTH + 1 + 8;

/// Publisher, sequence number, record.
type Identity = (u64, u64, u32);

/// Rows by identity.
#[derive(Debug, Default)]
pub(super) struct StoredRows(HashMap<Identity, Vec<StoredRow>>);

#[derive(Debug)]
struct StoredRow {
    hash: [u8; LENGTH],
    conflict: bool,
    /// `None` of one that is found twice: the second that has it is a duplicate, whoever saved the first.
    received: Option<i64>,
}

impl StoredRows {
    /// Reads rows as the server writes them; `None` if they are cut off.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Option<()> {
        let (rows, rest) = bytes.as_chunks::<ROW_BYTES>();
        for row in rows {
            let (identity, hash) = (&row[..20], &row[20..20 + LENGTH]);
            let identity = (
                u64::from_le_bytes(identity[..8].try_into().ok()?),
                u64::from_le_bytes(identity[8..16].try_into().ok()?),
                u32::from_le_bytes(identity[16..].try_into().ok()?),
            );
            let row = StoredRow {
                hash: hash.try_into().ok()?,
                conflict: row[20 + LENGTH] != 0,
                received: Some(i64::from_le_bytes(row[21 + LENGTH..].try_into().ok()?)),
            };
            self.0.entry(identity).or_default().push(row);
        }
        rest.is_empty().then_some(())
    }

    /// What becomes of a record, and whether it is inserted, in conflict or not. `again`: what is there with its time of
    /// receipt was saved by an attempt before this one.
    pub(super) fn place(&mut self, source: &RowSource<'_>, again: bool) -> (SaveOutcome, Option<bool>) {
        let (Some(origin), Some(hash)) = (source.origin, source.hash) else {
            return (SaveOutcome::Kept, Some(false));
        };
        let rows = self.0.entry((origin.publisher, origin.sequence_number, source.record)).or_default();
        // A row without a hash was inserted by another program: only its identity can be compared.
        let is_same = |row: &&mut StoredRow| row.hash == hash.0 || !row.conflict && row.hash == NO_HASH;
        if let Some(row) = rows.iter_mut().find(is_same) {
            let received = row.received.take();
            let outcome = match row.conflict {
                _ if !again || received != Some(source.received) => SaveOutcome::Duplicate,
                true => SaveOutcome::KeptBeside,
                false => SaveOutcome::Kept,
            };
            return (outcome, None);
        }
        let conflict = rows.iter().any(|row| !row.conflict);
        rows.push(StoredRow { hash: hash.0, conflict, received: None });
        (if conflict { SaveOutcome::KeptBeside } else { SaveOutcome::Kept }, Some(conflict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::Origin;
    use crate::payload_hash::PayloadHash;

    fn source(number: u64, payload: &[u8], received: i64) -> RowSource<'static> {
        let origin = Some(Origin { publisher: 7, sequence_number: number });
        RowSource { topic: "t", origin, record: 0, received, hash: Some(PayloadHash::of(payload, 0)) }
    }

    fn stored(number: u64, hash: [u8; LENGTH], conflict: bool, received: i64) -> Vec<u8> {
        let mut row = [7_u64.to_le_bytes(), number.to_le_bytes()].concat();
        row.extend([0; 4]);
        row.extend(hash);
        row.push(conflict.into());
        row.extend(received.to_le_bytes());
        row
    }

    #[test]
    fn a_record_is_kept_once_and_beside_another_payload_in_conflict() {
        let mut rows = StoredRows::default();
        let (a, b) = (PayloadHash::of(b"a", 0).0, PayloadHash::of(b"b", 0).0);
        rows.read(&[stored(1, a, false, 5), stored(1, b, true, 6), stored(2, NO_HASH, false, 5)].concat())
            .unwrap();
        assert_eq!(rows.place(&source(0, b"x", 9), false), (SaveOutcome::Kept, Some(false)));
        assert_eq!(rows.place(&source(0, b"x", 9), true), (SaveOutcome::Duplicate, None));
        assert_eq!(rows.place(&source(0, b"y", 9), true), (SaveOutcome::KeptBeside, Some(true)));
        assert_eq!(rows.place(&source(1, b"b", 6), false), (SaveOutcome::Duplicate, None));
        assert_eq!(rows.place(&source(1, b"c", 6), false), (SaveOutcome::KeptBeside, Some(true)));
        assert_eq!(rows.place(&source(2, b"z", 9), false), (SaveOutcome::Duplicate, None));
        assert_eq!(rows.read(&[0; ROW_BYTES - 1]), None);
    }

    #[test]
    fn what_an_attempt_before_has_saved_is_no_duplicate_and_counts_once() {
        let mut rows = StoredRows::default();
        let (a, b) = (PayloadHash::of(b"a", 0).0, PayloadHash::of(b"b", 0).0);
        rows.read(&[stored(1, a, false, 5), stored(1, b, true, 5)].concat()).unwrap();
        assert_eq!(rows.place(&source(1, b"a", 5), true), (SaveOutcome::Kept, None));
        assert_eq!(rows.place(&source(1, b"a", 5), true), (SaveOutcome::Duplicate, None));
        assert_eq!(rows.place(&source(1, b"b", 4), true), (SaveOutcome::Duplicate, None));
        assert_eq!(rows.place(&source(1, b"b", 5), true), (SaveOutcome::Duplicate, None));
    }

    #[test]
    fn messages_without_a_mark_are_never_repetitions() {
        let unmarked = RowSource { origin: None, hash: None, ..source(0, b"", 1) };
        let mut rows = StoredRows::default();
        for _ in 0..2 {
            assert_eq!(rows.place(&unmarked, true), (SaveOutcome::Kept, Some(false)));
        }
    }
}
