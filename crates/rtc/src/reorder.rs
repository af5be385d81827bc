//! Packets of one stream put back into their order: what comes too early waits for what is missing, for a bounded time
//! and in bounded memory. What is whole and in order passes without being copied.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use weir_metrics::Moment;

/// How long to wait, and how much may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long packets wait for one that is missing before them.
    pub patience: Duration,
    /// How many may wait.
    pub packets: usize,
    /// Bytes of payload that may wait.
    pub bytes: usize,
}

impl Default for Limits {
    /// Half a second, which is some round trips; 2,048 packets or 4 MiB.
    fn default() -> Self {
        Self { patience: Duration::from_millis(500), packets: 2_048, bytes: 4 << 20 }
    }
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its extended sequence number.
    pub number: u64,
    /// Its time stamp.
    pub timestamp: u32,
    /// Its marker bit.
    pub marker: bool,
    /// Its decrypted payload.
    pub payload: &'a [u8],
}

#[derive(Clone, Debug)]
struct BufferedPacket {
    timestamp: u32,
    marker: bool,
    payload: Vec<u8>,
}

/// The packets of one sequence. The first that comes is the first that goes.
#[derive(Clone, Debug)]
pub struct Reorder {
    limits: Limits,
    /// The number that is to go next.
    next: Option<u64>,
    held: BTreeMap<u64, BufferedPacket>,
    /// When each of them came, in the order of coming; some have gone already.
    waiting: VecDeque<(Moment, u64)>,
    bytes: usize,
    skipped: u64,
    late: u64,
}

impl Reorder {
    /// Nothing came yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            next: None,
            held: BTreeMap::new(),
            waiting: VecDeque::new(),
            bytes: 0,
            skipped: 0,
            late: 0,
        }
    }

    /// A packet came. `on` gets those that are in order now. One that comes twice, or after it was given up, is passed
    /// over.
    pub fn push(&mut self, now: Moment, unit: Unit<'_>, mut on: impl FnMut(Unit<'_>)) {
        let next = *self.next.get_or_insert(unit.number);
        if unit.number < next {
            self.late += 1;
        } else if unit.number == next {
            self.next = Some(next + 1);
            on(unit);
        } else if !self.held.contains_key(&unit.number) {
            let Unit { number, timestamp, marker, payload } = unit;
            self.bytes += payload.len();
            let payload = payload.to_vec();
            self.held.insert(number, BufferedPacket { timestamp, marker, payload });
            self.waiting.push_back((now, number));
            if self.waiting.len() / 2 > self.limits.packets {
                self.waiting.retain(|(_, number)| self.held.contains_key(number));
            }
        }
        self.handle_timeout(now, on);
    }

    /// Time passes: call it at [`Self::due`] at the latest.
    pub fn handle_timeout(&mut self, now: Moment, mut on: impl FnMut(Unit<'_>)) {
        while let Some((&number, _)) = self.held.first_key_value() {
            let next = self.next.unwrap_or(number);
            let full = self.held.len() > self.limits.packets || self.bytes > self.limits.bytes;
            if number > next && !full && self.due().is_some_and(|due| due > now) {
                return;
            }
            let Some((number, held)) = self.held.pop_first() else { return };
            self.skipped += number - next;
            self.next = Some(number + 1);
            self.bytes -= held.payload.len();
            while self.waiting.front().is_some_and(|(_, number)| !self.held.contains_key(number)) {
                self.waiting.pop_front();
            }
            let BufferedPacket { timestamp, marker, ref payload } = held;
            on(Unit { number, timestamp, marker, payload });
        }
    }

    /// When to call [`Self::handle_timeout`]; `None` while nothing waits.
    pub fn due(&self) -> Option<Moment> {
        self.waiting.front().map(|(arrived, _)| *arrived + self.limits.patience)
    }

    /// Another sequence begins: what waits goes out first, in its order.
    pub fn restart(&mut self, mut on: impl FnMut(Unit<'_>)) {
        for (number, held) in std::mem::take(&mut self.held) {
            let BufferedPacket { timestamp, marker, ref payload } = held;
            on(Unit { number, timestamp, marker, payload });
        }
        (self.next, self.bytes) = (None, 0);
        self.waiting.clear();
    }

    /// Packets that were not waited for any longer.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Packets that came after they were given up, or twice.
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h264::Packetiser;
    use crate::{Assembler, VideoCodec};
    use proptest::prelude::*;

    const NONE: [u64; 0] = [];

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn unit(number: u64) -> Unit<'static> {
        Unit { number, timestamp: number as u32, marker: false, payload: b"payload" }
    }

    fn push(reorder: &mut Reorder, millis: u64, number: u64) -> Vec<u64> {
        let mut out = Vec::new();
        reorder.push(at(millis), unit(number), |unit| out.push(unit.number));
        out
    }

    #[test]
    fn what_is_early_waits_and_what_is_missing_is_given_up() {
        let mut reorder = Reorder::new(Limits::default());
        assert_eq!(push(&mut reorder, 0, 5), [5]);
        assert_eq!(push(&mut reorder, 1, 7), NONE);
        assert_eq!(push(&mut reorder, 2, 6), [6, 7]);
        assert_eq!(push(&mut reorder, 3, 7), NONE);
        assert_eq!(reorder.due(), None);
        assert_eq!(push(&mut reorder, 10, 9), NONE);
        assert_eq!(reorder.due(), Some(at(510)));
        let mut out = Vec::new();
        reorder.handle_timeout(at(509), |unit| out.push(unit.number));
        assert_eq!(out, NONE);
        reorder.handle_timeout(at(510), |unit| out.push(unit.number));
        assert_eq!((out, reorder.skipped()), (vec![9], 1));
        assert_eq!(push(&mut reorder, 520, 8), NONE);
        assert_eq!(reorder.late(), 2);
    }

    #[test]
    fn nothing_waits_for_longer_than_its_patience_however_much_comes_before_it() {
        let mut reorder = Reorder::new(Limits::default());
        assert_eq!(push(&mut reorder, 0, 1), [1]);
        assert_eq!(push(&mut reorder, 0, 9), NONE);
        assert_eq!(push(&mut reorder, 400, 7), NONE);
        assert_eq!(push(&mut reorder, 500, 12), [7, 9]);
        assert_eq!((reorder.due(), reorder.skipped()), (Some(at(1000)), 6));
    }

    #[test]
    fn too_much_does_not_wait() {
        for limits in [Limits { packets: 3, ..Limits::default() }, Limits { bytes: 21, ..Limits::default() }]
        {
            let mut reorder = Reorder::new(limits);
            assert_eq!(push(&mut reorder, 0, 1), [1]);
            for number in [5, 4, 3] {
                assert_eq!(push(&mut reorder, 0, number), NONE);
            }
            assert_eq!(push(&mut reorder, 0, 7), [3, 4, 5]);
            assert_eq!(push(&mut reorder, 0, 6), [6, 7]);
        }
    }

    #[test]
    fn another_sequence_may_begin_anywhere() {
        let mut reorder = Reorder::new(Limits::default());
        push(&mut reorder, 0, 100);
        push(&mut reorder, 0, 102);
        let mut out = Vec::new();
        reorder.restart(|unit| out.push(unit.number));
        assert_eq!((out, reorder.due()), (vec![102], None));
        assert_eq!(push(&mut reorder, 0, 7), [7]);
    }

    /// The access units of NAL units, cut into payloads of up to `limit` bytes, that come in this order.
    fn assemble(
        frames: &[Vec<Vec<u8>>],
        limit: usize,
        swaps: &[(usize, usize)],
    ) -> Vec<(u32, Vec<u8>, bool)> {
        let mut packets = Vec::new();
        for (timestamp, units) in (0..).zip(frames) {
            Packetiser::new(limit).packetise(units.iter().map(Vec::as_slice), |payload, marker| {
                packets.push((packets.len() as u64, timestamp, marker, payload.to_vec()));
            });
        }
        // The first one stays where it is: it says where the sequence begins.
        for (a, b) in swaps {
            let last = packets.len() - 1;
            if last > 0 {
                packets.swap(1 + a % last, 1 + b % last);
            }
        }
        // Nothing is given up for want of room: the last packet may wait for all others.
        let limits = Limits { packets: usize::MAX, bytes: usize::MAX, ..Limits::default() };
        let mut reorder = Reorder::new(limits);
        let mut assembler = Assembler::new(VideoCodec::H264, usize::MAX);
        let mut whole = Vec::new();
        for (number, timestamp, marker, payload) in &packets {
            let unit = Unit { number: *number, timestamp: *timestamp, marker: *marker, payload };
            reorder.push(at(0), unit, |unit| {
                assembler.push(unit.number, unit.timestamp, unit.marker, unit.payload, |frame| {
                    whole.push((frame.timestamp, frame.bytes.to_vec(), frame.complete));
                });
            });
        }
        assert_eq!((reorder.skipped(), reorder.late(), reorder.due()), (0, 0, None));
        whole
    }

    proptest! {
        #[test]
        fn every_order_and_every_split_give_the_same_frames(
            frames in prop::collection::vec(
                prop::collection::vec((1u8..24, prop::collection::vec(any::<u8>(), 0..200)), 1..5), 1..10,
            ),
            limit in 3usize..300,
            swaps in prop::collection::vec((any::<usize>(), any::<usize>()), 0..60),
        ) {
            let frames: Vec<Vec<Vec<u8>>> = frames
                .into_iter()
                .map(|units| units.into_iter().map(|(kind, rest)| [&[0x60 | kind][..], &rest].concat()).collect())
                .collect();
            let framed = |units: &Vec<Vec<u8>>| -> Vec<u8> {
                units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect()
            };
            let expected: Vec<_> = (0..).zip(&frames).map(|(at, units)| (at, framed(units), true)).collect();
            prop_assert_eq!(assemble(&frames, limit, &swaps), expected);
        }

        #[test]
        fn whatever_comes_goes_once_in_order_and_memory_is_bounded(
            numbers in prop::collection::vec((0u64..60, 0u64..300), 0..200), packets in 1usize..20,
        ) {
            let limits = Limits { packets, ..Limits::default() };
            let mut reorder = Reorder::new(limits);
            let (mut now, mut out) = (0, Vec::new());
            for (number, wait) in numbers {
                now += wait;
                out.extend(push(&mut reorder, now, 1_000 + number));
                prop_assert!(reorder.held.len() <= packets);
                prop_assert_eq!(reorder.bytes, 7 * reorder.held.len());
                prop_assert!(reorder.due().is_none_or(|due| due > at(now)));
            }
            prop_assert!(out.is_sorted_by(|a, b| a < b));
        }
    }
}
