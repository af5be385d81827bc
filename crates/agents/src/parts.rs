//! Messages that are larger than what a NATS server takes at a time: cut into parts where they are sent, and put together where
//! they come. What they say is not known here.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Bytes of a message, at the most, however many parts it has: a plan of ten thousand streams with its files is a few megabytes.
pub const LARGEST: usize = 64 << 20;
/// Bytes of messages of which not all parts have come, at the most.
const MOST_KEPT: usize = 2 * LARGEST;
/// Messages of which not all parts have come, at the most.
const MOST_OPEN: usize = 256;
/// What a part begins with: no message does, since all are JSON.
const MARK: u8 = 0;
/// The mark, the message's number, the part's, and how many there are.
const HEAD: usize = 1 + 8 + 4 + 4;

/// Cuts a message into parts of this many bytes, if it is larger; `number` tells it from others that are on their way.
///
/// # Errors
/// It is too large for that as well.
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

/// Puts messages together. Parts of one message come in their order; one that is missing leaves the message incomplete, and it is
/// given up when others need the room.
#[derive(Debug, Default)]
pub struct Joiner {
    open: BTreeMap<(String, u64), Open>,
    /// Bytes of all that are open.
    kept: usize,
    /// How many were begun.
    begun: u64,
}

#[derive(Debug)]
struct Open {
    /// Which one it was of those that were begun.
    begun: u64,
    next: u32,
    count: u32,
    bytes: Vec<u8>,
}

impl Joiner {
    /// Takes what came on a subject; a message, if it is one or the last part of one.
    pub fn take<'a>(&mut self, subject: &str, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if bytes.first() != Some(&MARK) {
            return Some(Cow::Borrowed(bytes));
        }
        let (head, chunk) = bytes.split_at_checked(HEAD)?;
        let number = u64::from_be_bytes(head[1..9].try_into().ok()?);
        let at = u32::from_be_bytes(head[9..13].try_into().ok()?);
        let count = u32::from_be_bytes(head[13..].try_into().ok()?);
        let key = (subject.to_owned(), number);
        let mut open = match self.open.remove(&key) {
            Some(open) => {
                self.kept -= open.bytes.len();
                open
            }
            None => {
                self.begun += 1;
                Open { begun: self.begun, next: 0, count, bytes: Vec::new() }
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
        self.open.insert(key, open);
        while self.kept > MOST_KEPT || self.open.len() > MOST_OPEN {
            self.give_up_oldest();
        }
        None
    }

    fn give_up_oldest(&mut self) {
        let oldest = self.open.iter().min_by_key(|(_, open)| open.begun).map(|(key, _)| key.clone());
        if let Some(open) = oldest.and_then(|key| self.open.remove(&key)) {
            self.kept -= open.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_that_is_small_enough_stays_as_it_is() {
        assert_eq!(split(7, b"{}".to_vec(), 2), Ok(vec![b"{}".to_vec()]));
        assert_eq!(Joiner::default().take("a", b"{}").as_deref(), Some(&b"{}"[..]));
        assert_eq!(split(7, vec![b'x'; LARGEST + 1], 1 << 20), Err(TooLarge(LARGEST + 1)));
        assert_eq!(split(7, vec![b'x'; 100], HEAD), Err(TooLarge(100)));
    }

    #[test]
    fn a_message_without_one_of_its_parts_is_none_and_takes_no_room_for_long() {
        let parts = split(7, vec![b'x'; 100], HEAD + 10).unwrap();
        let mut joiner = Joiner::default();
        for part in parts.iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, part)| part) {
            assert_eq!(joiner.take("a", part), None);
        }
        assert_eq!((joiner.open.len(), joiner.kept), (0, 0), "what follows the gap begins nothing");
        for number in 0..1_000 {
            joiner.take("a", &split(number, vec![b'x'; 100], HEAD + 60).unwrap()[0]);
        }
        assert_eq!((joiner.open.len(), joiner.kept), (MOST_OPEN, MOST_OPEN * 60));
        // The others' whole messages come through all the same.
        let whole = split(9, vec![b'y'; 100], HEAD + 60).unwrap();
        assert_eq!(joiner.take("b", &whole[0]), None);
        assert_eq!(joiner.take("b", &whole[1]).as_deref(), Some(&[b'y'; 100][..]));
    }

    #[test]
    fn parts_of_endless_messages_are_kept_up_to_a_limit() {
        let mut joiner = Joiner::default();
        let chunk = vec![b'x'; LARGEST / 2];
        for number in 0_u64..9 {
            let head =
                [&[MARK][..], &number.to_be_bytes(), &0_u32.to_be_bytes(), &9_u32.to_be_bytes()].concat();
            assert_eq!(joiner.take("a", &[&head[..], &chunk].concat()), None);
            assert!(joiner.kept <= MOST_KEPT);
        }
    }

    proptest! {
        /// However messages are cut, and with whatever others between their parts, they come out as they were.
        #[test]
        fn messages_come_out_as_they_went_in(
            messages in prop::collection::vec(prop::collection::vec(1u8.., 1..200), 1..6), most in HEAD + 1..HEAD + 90,
        ) {
            let mut ways: Vec<_> = (0..).zip(&messages)
                .map(|(number, it)| split(number, it.clone(), most).unwrap().into_iter())
                .collect();
            let (mut joiner, mut out) = (Joiner::default(), vec![None; messages.len()]);
            while ways.iter().any(|it| it.len() > 0) {
                for (number, way) in ways.iter_mut().enumerate() {
                    if let Some(message) = way.next().and_then(|part| joiner.take("a", &part).map(Cow::into_owned)) {
                        out[number] = Some(message);
                    }
                }
            }
            prop_assert_eq!(out.into_iter().flatten().collect::<Vec<_>>(), messages);
            prop_assert_eq!(joiner.kept, 0);
        }

        #[test]
        fn no_bytes_panic(all in prop::collection::vec(prop::collection::vec(0u8..3, 0..40), 0..20)) {
            let mut joiner = Joiner::default();
            for bytes in &all {
                let _ = joiner.take("a", bytes);
            }
        }
    }
}
