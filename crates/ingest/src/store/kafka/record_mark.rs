//! The mark of a record in Kafka: headers with the publisher, the number of its message, and what the payload was, by which a record that
//! is there already is known.

use super::newest_records::Identity;
use crate::batch::RowSource;
use crate::payload_hash::{LENGTH, PayloadHash};
use weir_kafka::RecordRef;

pub(super) const PUBLISHER: &str = "publisher";
pub(super) const SEQUENCE_NUMBER: &str = "seq";
pub(super) const RECORD: &str = "record";
pub(super) const PAYLOAD_HASH: &str = "payload_hash";

/// The identity of a row, and the hash of its payload; `None` for one whose publisher is unknown.
pub(super) fn identity_of(source: &RowSource<'_>) -> Option<(Identity, PayloadHash)> {
    let (origin, hash) = source.origin.zip(source.hash)?;
    Some(((origin.publisher, origin.sequence_number, source.record), hash))
}

/// The same of a record that is read back; `None` for one without a mark, and for one of other programs.
pub(super) fn identity_in(record: &RecordRef<'_>) -> Option<(Identity, PayloadHash)> {
    let header = |name: &str| {
        let found = record.headers.iter().find(|(key, _)| *key == name.as_bytes())?;
        std::str::from_utf8(found.1).ok()
    };
    let identity = (
        header(PUBLISHER)?.parse().ok()?,
        header(SEQUENCE_NUMBER)?.parse().ok()?,
        header(RECORD)?.parse().ok()?,
    );
    let digits = header(PAYLOAD_HASH)?;
    let mut hash = [0; LENGTH];
    if digits.len() != 2 * LENGTH || !digits.is_ascii() {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some((identity, PayloadHash(hash)))
}
