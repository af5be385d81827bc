//! Datagrams that wait to be sent, in one buffer, so that those of one length can leave in one system call.

use crate::packet::MOST_DATAGRAM;

/// Data packets that may wait: what leaves at 1 Gbit/s in 46 ms. With the longest packets they take 6 MB.
const MOST: usize = 4_096;

/// Control packets that may wait beside a full outbox: acknowledgements and loss reports of one event, and a shutdown.
const BESIDE: usize = 256;

/// Bytes for which an empty outbox keeps room: about ninety packets, a keyframe of 1 Mbit.
const KEPT_BYTES: usize = 128 << 10;

/// Datagrams for whose lengths it keeps room.
const KEPT_LENGTHS: usize = 512;

/// Bytes that leave in one system call at the most: with its headers, what UDP GSO puts together is one datagram of IP.
const MOST_RUN: usize = 60_000;

/// Datagrams that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    lengths: Vec<u16>,
}

impl Outbox {
    /// Whether there is no room for data packets: they stay in the sender's window, and leave after the next flush.
    pub(crate) fn is_full(&self) -> bool {
        self.lengths.len() >= MOST
    }

    /// Bytes that are held for what waits.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Adds a datagram that `write` appends. A control packet that finds no room is lost, as on any link: those that matter are repeated.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = self.bytes.len() - start;
        if length > MOST_DATAGRAM || self.lengths.len() >= MOST + BESIDE {
            self.bytes.truncate(start);
        } else {
            self.lengths.push(length as u16);
        }
    }

    /// Hands out runs of datagrams of one length each, of which the last may be shorter.
    pub(crate) fn flush(&mut self, send: &mut dyn FnMut(&[u8], usize)) {
        let (mut from, mut at) = (0, 0);
        while let Some(&first) = self.lengths.get(at) {
            let mut end = from;
            let has_room =
                |length: &u16, end: usize| *length <= first && end - from + usize::from(*length) <= MOST_RUN;
            while let Some(&length) = self.lengths.get(at).filter(|length| has_room(length, end)) {
                end += usize::from(length);
                at += 1;
                if length < first {
                    break;
                }
            }
            send(&self.bytes[from..end], usize::from(first));
            from = end;
        }
        self.bytes.clear();
        self.lengths.clear();
        // One burst would else cost megabytes for as long as the connection lasts.
        self.bytes.shrink_to(KEPT_BYTES);
        self.lengths.shrink_to(KEPT_LENGTHS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_length_leave_together() {
        let mut outbox = Outbox::default();
        for length in [3, 3, 2, 4, 4, 5] {
            outbox.add(|bytes| bytes.extend(std::iter::repeat_n(length as u8, length)));
        }
        let mut sent = Vec::new();
        outbox.flush(&mut |bytes, length| sent.push((bytes.len(), length)));
        assert_eq!(sent, [(8, 3), (8, 4), (5, 5)]);
        outbox.flush(&mut |_, _| panic!("nothing is left"));
        for _ in 0..200 {
            outbox.add(|bytes| bytes.resize(bytes.len() + 1_332, 0));
        }
        let mut sent = 0;
        outbox.flush(&mut |bytes, length| {
            assert!(bytes.len() <= MOST_RUN && length == 1_332, "the kernel takes no more in one call");
            sent += bytes.len();
        });
        assert_eq!(sent, 200 * 1_332);
    }

    #[test]
    fn a_full_outbox_says_so_has_room_for_control_packets_and_is_small_again_when_it_is_empty() {
        let mut outbox = Outbox::default();
        let mut added = 0;
        while !outbox.is_full() {
            outbox.add(|bytes| bytes.resize(bytes.len() + MOST_DATAGRAM, 0));
            added += 1;
        }
        assert_eq!(added, MOST);
        assert!(outbox.bytes() >= MOST * MOST_DATAGRAM);
        for _ in 0..2 * BESIDE {
            outbox.add(|bytes| bytes.extend([1; 16]));
        }
        let mut sent = 0;
        outbox.flush(&mut |bytes, length| sent += bytes.len().div_ceil(length));
        assert_eq!(sent, MOST + BESIDE);
        assert!(!outbox.is_full() && outbox.bytes() <= KEPT_BYTES);
    }
}
