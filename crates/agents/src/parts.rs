//! Messages that are larger than the NATS server's `max_payload`: split into parts by the sender and reassembled by the receiver. This
//! module does not know what they mean.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Largest message, in bytes, over all its parts: a plan of ten thousand streams with its files is a few megabytes.
pub const LARGEST: usize = 64 << 20;
/// Bytes of incomplete messages that are kept at most: two of the largest.
const MOST_KEPT: usize = 2 * LARGEST;
/// Number of incomplete messages that are kept at most.
const MOST_INCOMPLETE: usize = 256;
/// The first byte of a part. A whole message is JSON and never begins with it.
const MARK: u8 = 0;
/// Header of a part: the mark, the number of the message, the number of the part, and the number of parts.
const HEAD: usize = 1 + 8 + 4 + 4;

/// Splits a message that is larger than `most` bytes into parts of that size. `number` tells its parts from those of other messages.
///
/// # Errors
/// The message is larger than [`LARGEST`], or `most` leaves no room beside a header.
pub fn split(number: u64, bytes: Vec<u8>, most: usize) -> Result<Vec<Vec<u8>>, TooLarge> {
    if bytes.len() <= most {
        return Ok(vec![bytes]);
    }
    let room = most.saturating_sub(HEAD);
    if bytes.len() > LARGEST || room == 0 {
        return Err(TooLarge(bytes.len()));
    }
    let count = bytes.len().div_ceil(room) as u32;
    let part = |(at, chunk): (u32, &[u8])| {
        let mut part = Vec::with_capacity(HEAD + chunk.len());
        part.push(MARK);
        part.extend(number.to_be_bytes());
        part.extend(at.to_be_bytes());
        part.extend(count.to_be_bytes());
        part.extend(chunk);
        part
    };
    Ok((0..).zip(bytes.chunks(room)).map(part).collect())
}

/// A message of this many bytes cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge(pub usize);

/// Reassembles messages. Parts of one message arrive in order, as NATS delivers them; a message with a missing part stays incomplete, and
/// is dropped when the room is needed for others.
#[derive(Debug, Default)]
pub struct Reassembler {
    incomplete: BTreeMap<(String, u64), Incomplete>,
    /// Bytes of all incomplete messages.
    kept: usize,
    /// Number of messages whose first part has arrived.
    begun: u64,
}

#[derive(Debug)]
struct Incomplete {
    /// Its position among all messages that were begun, which tells the oldest.
    begun: u64,
    next: u32,
    count: u32,
    bytes: Vec<u8>,
}

impl Reassembler {
    /// Takes what arrived on a subject, and returns a whole message if it is one or completes one.
    pub fn take<'a>(&mut self, subject: &str, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if bytes.first() != Some(&MARK) {
            return Some(Cow::Borrowed(bytes));
        }
        let (head, chunk) = bytes.split_at_checked(HEAD)?;
        let number = u64::from_be_bytes(head[1..9].try_into().ok()?);
        let at = u32::from_be_bytes(head[9..13].try_into().ok()?);
        let count = u32::from_be_bytes(head[13..].try_into().ok()?);
        let key = (subject.to_owned(), number);
        let mut open = match self.incomplete.remove(&key) {
            Some(open) => {
                self.kept -= open.bytes.len();
                open
            }
            None => {
                self.begun += 1;
                Incomplete { begun: self.begun, next: 0, count, bytes: Vec::new() }
            }
        };
        if at != open.next || at >= count || count != open.count || open.bytes.len() + chunk.len() > LARGEST {
            return None;
        }
        open.bytes.extend_from_slice(chunk);
        open.next += 1;
        if open.next == open.count {
            return Some(Cow::Owned(open.bytes));
        }
        self.kept += open.bytes.len();
        self.incomplete.insert(key, open);
        while self.kept > MOST_KEPT || self.incomplete.len() > MOST_INCOMPLETE {
            self.drop_oldest();
        }
        None
    }

    fn drop_oldest(&mut self) {
        let oldest =
            self.incomplete.iter().min_by_key(|(_, message)| message.begun).map(|(key, _)| key.clone());
        if let Some(open) = oldest.and_then(|key| self.incomplete.remove(&key)) {
            self.kept -= open.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_that_is_small_enough_is_not_split() {
        assert_eq!(split(7, b"{}".to_vec(), 2), Ok(vec![b"{}".to_vec()]));
        assert_eq!(Reassembler::default().take("a", b"{}").as_deref(), Some(&b"{}"[..]));
        assert_eq!(split(7, vec![b'x'; LARGEST + 1], 1 << 20), Err(TooLarge(LARGEST + 1)));
        assert_eq!(split(7, vec![b'x'; 100], HEAD), Err(TooLarge(100)));
    }

    #[test]
    fn a_message_with_a_missing_part_is_never_returned_and_takes_no_room_for_long() {
        let parts = split(7, vec![b'x'; 100], HEAD + 10).unwrap();
        let mut reassembler = Reassembler::default();
        for part in parts.iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, part)| part) {
            assert_eq!(reassembler.take("a", part), None);
        }
        assert_eq!(
            (reassembler.incomplete.len(), reassembler.kept),
            (0, 0),
            "parts after the gap begin no message"
        );
        for number in 0..1_000 {
            reassembler.take("a", &split(number, vec![b'x'; 100], HEAD + 60).unwrap()[0]);
        }
        assert_eq!((reassembler.incomplete.len(), reassembler.kept), (MOST_INCOMPLETE, MOST_INCOMPLETE * 60));
        // Whole messages of other senders are still reassembled.
        let whole = split(9, vec![b'y'; 100], HEAD + 60).unwrap();
        assert_eq!(reassembler.take("b", &whole[0]), None);
        assert_eq!(reassembler.take("b", &whole[1]).as_deref(), Some(&[b'y'; 100][..]));
    }

    #[test]
    fn parts_of_messages_that_are_never_completed_are_kept_up_to_a_limit() {
        let mut reassembler = Reassembler::default();
        let chunk = vec![b'x'; LARGEST / 2];
        for number in 0_u64..9 {
            let head =
                [&[MARK][..], &number.to_be_bytes(), &0_u32.to_be_bytes(), &9_u32.to_be_bytes()].concat();
            assert_eq!(reassembler.take("a", &[&head[..], &chunk].concat()), None);
            assert!(reassembler.kept <= MOST_KEPT);
        }
    }

    proptest! {
        /// However messages are split, and whichever parts of others arrive between their own, they are returned unchanged.
        #[test]
        fn messages_are_returned_as_they_were_sent(
            messages in prop::collection::vec(prop::collection::vec(1u8.., 1..200), 1..6), most in HEAD + 1..HEAD + 90,
        ) {
            let mut ways: Vec<_> = (0..).zip(&messages)
                .map(|(number, it)| split(number, it.clone(), most).unwrap().into_iter())
                .collect();
            let (mut reassembler, mut out) = (Reassembler::default(), vec![None; messages.len()]);
            while ways.iter().any(|it| it.len() > 0) {
                for (number, way) in ways.iter_mut().enumerate() {
                    if let Some(message) = way.next().and_then(|part| reassembler.take("a", &part).map(Cow::into_owned)) {
                        out[number] = Some(message);
                    }
                }
            }
            prop_assert_eq!(out.into_iter().flatten().collect::<Vec<_>>(), messages);
            prop_assert_eq!(reassembler.kept, 0);
        }

        #[test]
        fn no_bytes_panic(all in prop::collection::vec(prop::collection::vec(0u8..3, 0..40), 0..20)) {
            let mut reassembler = Reassembler::default();
            for bytes in &all {
                let _ = reassembler.take("a", bytes);
            }
        }
    }
}
