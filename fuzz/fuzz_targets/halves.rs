//! How a target gets a stream of bytes and a place to cut it from what the fuzzer made.

/// The bytes after the first two, whole, and in two pieces cut where the first two say.
pub(crate) fn halves(data: &[u8]) -> Option<(&[u8], [&[u8]; 2])> {
    let (cut, bytes) = data.split_first_chunk()?;
    let cut = usize::from(u16::from_le_bytes(*cut)) % (bytes.len() + 1);
    let (first, second) = bytes.split_at(cut);
    Some((bytes, [first, second]))
}
