//! What the tests say on the wire, and how they write down what they hear.

use weir_mqtt::{Error, Event, Limits, Reader, Version};

/// Reads a stream in pieces that end where `cuts` says: each packet in words, those that came in pieces joined.
pub(crate) fn hear(
    bytes: &[u8],
    cuts: &[usize],
    version: Version,
    limits: Limits,
) -> (Vec<String>, Option<Error>) {
    let mut reader = Reader::new(version, limits);
    let mut heard = Vec::new();
    let mut large: Option<(String, u32, Vec<u8>)> = None;
    for piece in pieces(bytes, cuts) {
        let mut input = piece;
        loop {
            match reader.next(&mut input) {
                Ok(Some(Event::Packet(packet))) => {
                    assert!(large.is_none(), "a packet within a message");
                    heard.push(format!("{packet:?}"));
                }
                Ok(Some(Event::Begin { publish, payload })) => {
                    assert!(large.is_none() && publish.payload.is_empty());
                    large = Some((format!("{publish:?}"), payload, Vec::new()));
                }
                Ok(Some(Event::Payload(bytes))) => {
                    assert!(!bytes.is_empty());
                    large.as_mut().expect("a message under way").2.extend(bytes);
                }
                Ok(Some(Event::End)) => {
                    let (publish, length, payload) = large.take().expect("a message under way");
                    assert_eq!(payload.len(), length as usize);
                    heard.push(format!("{publish} {payload:?}"));
                }
                Ok(None) => break,
                Err(error) => return (heard, Some(error)),
            }
            assert!(reader.memory() <= 2 * limits.whole as usize + 64, "{}", reader.memory());
        }
        assert!(input.is_empty());
    }
    (heard, None)
}

/// `bytes` in the pieces between `cuts`, which need not be sorted or within bounds.
pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(bytes.len());
    let mut from = 0;
    cuts.into_iter().map(|to| &bytes[std::mem::replace(&mut from, to)..to]).collect()
}
