//! Datagrams that wait to be sent, in one buffer, so that those of one length can leave in one system call.

use crate::packet::MOST_DATAGRAM;
use crate::sequence::SequenceNumber;

/// Data packets that may wait: what leaves at 1 Gbit/s in 46 ms. With the longest packets they take 6 MB.
const MOST: usize = 4_096;

/// Control packets that may wait beside a full outbox: acknowledgements and loss reports of one event, and a shutdown.
const BESIDE: usize = 256;

/// Bytes for which an empty outbox keeps room: about ninety packets, a keyframe of 1 Mbit.
const KEPT_BYTES: usize = 128 << 10;

/// Datagrams that it keeps room to list.
const KEPT_PLACES: usize = 128;

/// Bytes that leave in one system call at the most: with its headers, what UDP GSO puts together is one datagram of IP.
const MOST_RUN: usize = 60_000;

/// What a datagram is, for what is counted once the system has taken it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A data packet that has not left before.
    Original(SequenceNumber),
    /// A data packet that has.
    Copy(SequenceNumber),
    LossReport,
    FullAcknowledgement,
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    content: Content,
    length: u16,
}

/// Datagrams that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    datagrams: Vec<Datagram>,
}

impl Outbox {
    /// Whether there is no room for data packets: they stay in the sender's window, and leave after the next flush.
    pub(crate) fn is_full(&self) -> bool {
        self.datagrams.len() >= MOST
    }

    /// Bytes that are held for what waits.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.datagrams.capacity() * size_of::<Datagram>()
    }

    /// Adds a datagram that `write` appends. A control packet that finds no room is lost, as on any link: those that matter are repeated.
    pub(crate) fn add(&mut self, content: Content, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - start;
        if length > MOST_DATAGRAM || self.datagrams.len() >= MOST + BESIDE {
            self.bytes.truncate(start);
        } else {
            self.datagrams.push(Datagram { content, length: length as u16 });
        }
    }

    /// Hands out runs of datagrams of one length each, of which the last may be shorter. `send` says how many of the first were taken;
    /// `took` is called for each of those, with its length.
    pub(crate) fn flush(
        &mut self,
        send: &mut dyn FnMut(&[u8], usize) -> usize,
        took: &mut dyn FnMut(Content, usize),
    ) {
        let (mut from, mut at) = (0, 0);
        while let Some(Datagram { length: first, .. }) = self.datagrams.get(at).copied() {
            let (mut end, begins) = (from, at);
            let has_room = |it: &&Datagram, end: usize| {
                it.length <= first && end - from + usize::from(it.length) <= MOST_RUN
            };
            while let Some(Datagram { length, .. }) =
                self.datagrams.get(at).filter(|datagram| has_room(datagram, end)).copied()
            {
                end += usize::from(length);
                at += 1;
                if length < first {
                    break;
                }
            }
            let taken = send(&self.bytes[from..end], usize::from(first)).min(at - begins);
            for datagram in &self.datagrams[begins..begins + taken] {
                took(datagram.content, usize::from(datagram.length));
            }
            from = end;
        }
        self.bytes.clear();
        self.datagrams.clear();
        // One burst would else cost megabytes for as long as the connection lasts.
        self.bytes.shrink_to(KEPT_BYTES);
        self.datagrams.shrink_to(KEPT_PLACES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flush(outbox: &mut Outbox, mut send: impl FnMut(&[u8], usize)) {
        outbox.flush(
            &mut |bytes, length| {
                send(bytes, length);
                bytes.len().div_ceil(length)
            },
            &mut |_, _| {},
        );
    }

    #[test]
    fn datagrams_of_one_length_leave_together() {
        let mut outbox = Outbox::default();
        for length in [3, 3, 2, 4, 4, 5] {
            outbox.add(Content::Other, |bytes| bytes.extend(std::iter::repeat_n(length as u8, length)));
        }
        let mut sent = Vec::new();
        flush(&mut outbox, |bytes, length| sent.push((bytes.len(), length)));
        assert_eq!(sent, [(8, 3), (8, 4), (5, 5)]);
        flush(&mut outbox, |_, _| panic!("nothing is left"));
        for _ in 0..200 {
            outbox.add(Content::Other, |bytes| bytes.resize(bytes.len() + 1_332, 0));
        }
        let mut sent = 0;
        flush(&mut outbox, |bytes, length| {
            assert!(bytes.len() <= MOST_RUN && length == 1_332, "the kernel takes no more in one call");
            sent += bytes.len();
        });
        assert_eq!(sent, 200 * 1_332);
    }

    #[test]
    fn it_says_of_each_datagram_that_was_taken_what_it_is() {
        let mut outbox = Outbox::default();
        let number = SequenceNumber::new;
        let contents = [
            Content::Original(number(1)),
            Content::Copy(number(0)),
            Content::Original(number(2)),
            Content::LossReport,
            Content::FullAcknowledgement,
        ];
        for (content, length) in contents.into_iter().zip([9, 9, 9, 20, 20]) {
            outbox.add(content, |bytes| bytes.resize(bytes.len() + length, 0));
        }
        // Of the first run two are taken; of the second more than there are.
        let (mut answers, mut taken) = ([2, 7].into_iter(), Vec::new());
        outbox
            .flush(&mut |_, _| answers.next().unwrap(), &mut |content, length| taken.push((content, length)));
        let expected = [(contents[0], 9), (contents[1], 9), (contents[3], 20), (contents[4], 20)];
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_full_outbox_says_so_has_room_for_control_packets_and_is_small_again_when_it_is_empty() {
        let mut outbox = Outbox::default();
        let mut added = 0;
        while !outbox.is_full() {
            outbox.add(Content::Other, |bytes| bytes.resize(bytes.len() + MOST_DATAGRAM, 0));
            added += 1;
        }
        assert_eq!(added, MOST);
        assert!(outbox.bytes() >= MOST * MOST_DATAGRAM);
        for _ in 0..2 * BESIDE {
            outbox.add(Content::Other, |bytes| bytes.extend([1; 16]));
        }
        let mut sent = 0;
        flush(&mut outbox, |bytes, length| sent += bytes.len().div_ceil(length));
        assert_eq!(sent, MOST + BESIDE);
        assert!(!outbox.is_full() && outbox.bytes() <= KEPT_BYTES + KEPT_PLACES * size_of::<Datagram>());
    }
}
