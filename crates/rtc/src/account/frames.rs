//! Frames: the packets of one time stamp, and whether all of them came.
//!
//! A frame is whole when no number is missing between its first and its last packet. Its last packet has the marker, or
//! is right in front of the next frame's first; its first is right behind the last of the frame before. Packets of padding
//! alone have numbers and belong to no frame, wherever they lie. The newest frames stay open, so that what comes late can
//! still make them whole.

use super::padding::Padding;
use std::collections::VecDeque;

/// How many frames are open: a second at 32 frames a second.
const OPEN: usize = 32;

/// How many frames came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames of which a packet came.
    pub received: u64,
    /// Of these, how many are whole.
    pub complete: u64,
    /// How many will not be any more. What is neither is still open, or was on its way when the track ended.
    pub broken: u64,
    /// Broken ones of which nothing is known to be missing: what was lost right before them may have been their
    /// beginning, or the frame before.
    pub unproven: u64,
}

/// What a packet did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameEffect {
    /// It is the first of its frame to come.
    pub(super) new: bool,
    /// How many frames became complete.
    pub(super) completed: u32,
    /// It is the first of the very next frame behind one that came.
    pub(super) follows: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    timestamp: u32,
    lowest: u64,
    highest: u64,
    packets: u64,
    /// Where the marker was.
    marker: Option<u64>,
    begun: bool,
    /// The lowest packet is known not to be the first.
    is_cut: bool,
    ended: bool,
    complete: bool,
}

impl Frame {
    /// Looks again whether it is whole; whether it has just become so.
    fn settle(&mut self, padding: Option<&Padding>) -> bool {
        self.ended |= self.marker == Some(self.highest);
        let whole = self.begun && self.ended && self.has_no_hole(padding);
        whole && !std::mem::replace(&mut self.complete, true)
    }

    fn has_no_hole(&self, padding: Option<&Padding>) -> bool {
        let end = self.highest + 1;
        self.packets + in_between(padding, self.lowest, end, self.packets) == end - self.lowest
    }

    /// Whether nothing but padding lies between it and a frame that begins with this number.
    fn is_right_before(&self, number: u64, padding: Option<&Padding>) -> bool {
        let end = self.highest + 1;
        number >= end && in_between(padding, end, number, 0) == number - end
    }
}

/// How many numbers from `from` up to, and without, `to` are padding, if `known` packets do not account for all of them.
fn in_between(padding: Option<&Padding>, from: u64, to: u64, known: u64) -> u64 {
    padding.filter(|_| to - from > known).map_or(0, |padding| padding.count(from, to))
}

#[derive(Clone, Debug)]
pub(super) struct Frames {
    open: VecDeque<Frame>,
    counts: FrameCounts,
    /// The number in front of which no frame is open any more.
    closed_below: u64,
    /// Packets of padding alone, once there was one.
    padding: Option<Box<Padding>>,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self {
            open: VecDeque::with_capacity(OPEN),
            counts: FrameCounts::default(),
            closed_below: 0,
            padding: None,
        }
    }

    /// A packet that is here for the first time. `start` says whether it is the first of its frame, if that is known.
    #[inline]
    pub(super) fn packet(
        &mut self,
        number: u64,
        timestamp: u32,
        marker: bool,
        start: Option<bool>,
    ) -> FrameEffect {
        if let Some(last) = self.open.back_mut()
            && last.timestamp == timestamp
            && number == last.highest + 1
        {
            last.highest = number;
            last.packets += 1;
            if marker {
                last.marker = Some(number);
            }
            let completed = u32::from(last.settle(self.padding.as_deref()));
            self.counts.complete += u64::from(completed);
            return FrameEffect { completed, ..FrameEffect::default() };
        }
        self.packet_slowly(number, timestamp, marker, start)
    }

    fn packet_slowly(
        &mut self,
        number: u64,
        timestamp: u32,
        marker: bool,
        start: Option<bool>,
    ) -> FrameEffect {
        if number < self.closed_below {
            return FrameEffect::default();
        }
        // The frame that the packet lies in or behind.
        let behind = self.open.iter().rposition(|frame| frame.lowest <= number);
        let before = behind.map_or(0, |at| at + 1);
        let joins = |frame: Option<&Frame>| frame.is_some_and(|frame| frame.timestamp == timestamp);
        let at = if joins(behind.and_then(|at| self.open.get(at))) {
            before - 1
        } else if joins(self.open.get(before)) {
            before
        } else {
            if behind.is_some_and(|at| number < self.open[at].highest) {
                // Inside another frame: no sender does this, and neither frame will be whole.
                return FrameEffect::default();
            }
            return self.insert(before, number, timestamp, marker, start);
        };
        let frame = &mut self.open[at];
        if number < frame.lowest {
            (frame.lowest, frame.is_cut) = (number, start == Some(false));
        }
        frame.highest = frame.highest.max(number);
        frame.packets += 1;
        frame.begun |= start == Some(true) && frame.lowest == number;
        if marker {
            frame.marker = Some(number);
        }
        FrameEffect { completed: self.settle_around(at), ..FrameEffect::default() }
    }

    fn insert(
        &mut self,
        mut at: usize,
        number: u64,
        timestamp: u32,
        marker: bool,
        start: Option<bool>,
    ) -> FrameEffect {
        if self.open.len() == OPEN {
            if at == 0 {
                // Older than all that is open.
                return FrameEffect::default();
            }
            self.close_oldest();
            at -= 1;
        }
        // The first packet of a sequence is taken for the first of its frame.
        let first = self.open.is_empty() && self.closed_below == 0;
        let frame = Frame {
            timestamp,
            lowest: number,
            highest: number,
            packets: 1,
            marker: marker.then_some(number),
            begun: start.unwrap_or(first),
            is_cut: start == Some(false),
            ended: false,
            complete: false,
        };
        self.open.insert(at, frame);
        self.counts.received += 1;
        let neighbour = at.checked_sub(1).and_then(|before| self.open.get(before));
        let follows = neighbour.is_some_and(|it| it.is_right_before(number, self.padding.as_deref()));
        FrameEffect { new: true, completed: self.settle_around(at), follows }
    }

    /// A packet of padding alone, which is here for the first time.
    #[cold]
    pub(super) fn padding(&mut self, number: u64) -> FrameEffect {
        match &mut self.padding {
            Some(padding) => padding.mark(number),
            None => self.padding = Some(Box::new(Padding::new(number))),
        }
        // It may have been all that was missing, in a frame or between two.
        let behind = self.open.iter().rposition(|frame| frame.lowest <= number);
        let completed = behind.map_or(0, |at| self.settle_around(at));
        FrameEffect { completed, ..FrameEffect::default() }
    }

    /// Neighbours prove each other's beginnings and ends.
    fn settle_around(&mut self, at: usize) -> u32 {
        let padding = self.padding.as_deref();
        let mut completed = 0;
        for (first, second) in [(at.checked_sub(1), Some(at)), (Some(at), at.checked_add(1))] {
            let (Some(first), Some(second)) = (first, second) else { continue };
            let Some(next) = self.open.get(second).map(|frame| frame.lowest) else { continue };
            if self.open[first].is_right_before(next, padding) {
                self.open[first].ended = true;
                self.open[second].begun = true;
            }
        }
        let from = at.saturating_sub(1);
        for frame in self.open.iter_mut().skip(from).take(at + 2 - from) {
            completed += u32::from(frame.settle(padding));
        }
        self.counts.complete += u64::from(completed);
        completed
    }

    fn close_oldest(&mut self) {
        let Some(frame) = self.open.pop_front() else { return };
        self.closed_below = frame.highest + 1;
        if !frame.complete {
            self.counts.broken += 1;
            let has_no_hole = frame.has_no_hole(self.padding.as_deref());
            self.counts.unproven += u64::from(!frame.begun && !frame.is_cut && has_no_hole && frame.ended);
        }
    }

    /// Leaves the newest frame unjudged if only its end is missing: it was on its way when the track ended.
    pub(super) fn leave_newest(&mut self) {
        let padding = self.padding.as_deref();
        if self.open.back().is_some_and(|frame| frame.begun && frame.has_no_hole(padding) && !frame.ended) {
            self.open.pop_back();
        }
    }

    /// Closes what is open: the track ends, or its sequence numbers restart.
    pub(super) fn close(&mut self) {
        while !self.open.is_empty() {
            self.close_oldest();
        }
        self.closed_below = 0;
        self.padding = None;
    }

    pub(super) fn counts(&self) -> FrameCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds `(number, frame, marker)` and closes.
    fn count(packets: impl IntoIterator<Item = (u64, u32, bool)>) -> FrameCounts {
        let mut frames = Frames::new();
        let mut completed = 0;
        for (number, frame, marker) in packets {
            completed += u64::from(frames.packet(number, frame * 3000, marker, None).completed);
        }
        frames.close();
        let counts = frames.counts();
        assert_eq!(counts.complete, completed);
        assert_eq!(counts.received, counts.complete + counts.broken);
        counts
    }

    /// Frames with these numbers of packets.
    fn stream(lengths: &[u64]) -> Vec<(u64, u32, bool)> {
        let mut packets = Vec::new();
        for (frame, length) in lengths.iter().enumerate() {
            for packet in 0..*length {
                packets.push((1000 + packets.len() as u64, frame as u32, packet + 1 == *length));
            }
        }
        packets
    }

    #[test]
    fn a_stream_without_loss_is_whole() {
        let counts = count(stream(&[3; 100]));
        assert_eq!(counts, FrameCounts { received: 100, complete: 100, ..FrameCounts::default() });
    }

    #[test]
    fn markers_are_not_needed_but_for_the_last_frame() {
        let packets = stream(&[3; 100]).into_iter().map(|(number, frame, _)| (number, frame, false));
        let counts = count(packets);
        assert_eq!((counts.complete, counts.broken, counts.unproven), (99, 1, 0));
    }

    #[test]
    fn a_hole_breaks_its_frame_and_leaves_the_next_one_alone() {
        let mut packets = stream(&[3; 10]);
        packets.remove(4);
        let counts = count(packets);
        assert_eq!((counts.received, counts.complete, counts.broken), (10, 9, 1));
    }

    #[test]
    fn a_lost_end_leaves_the_next_frame_unproven() {
        let mut packets = stream(&[3; 10]);
        packets.remove(5);
        let counts = count(packets);
        assert_eq!((counts.received, counts.complete, counts.broken, counts.unproven), (10, 8, 2, 1));
    }

    #[test]
    fn a_frame_lost_whole_is_not_received_and_leaves_the_next_one_unproven() {
        let mut packets = stream(&[3; 10]);
        packets.drain(6..9);
        let counts = count(packets);
        assert_eq!((counts.received, counts.complete, counts.broken, counts.unproven), (9, 8, 1, 1));
    }

    #[test]
    fn an_announced_start_proves_what_a_gap_hides() {
        let mut frames = Frames::new();
        for (number, frame) in [(1, 0), (2, 1), (9, 5), (10, 6)] {
            frames.packet(number, frame, true, Some(true));
        }
        frames.close();
        assert_eq!((frames.counts().complete, frames.counts().broken), (4, 0));
    }

    #[test]
    fn a_packet_that_is_known_not_to_be_the_first_proves_that_another_is_missing() {
        let counted = |start: Option<bool>| {
            let mut frames = Frames::new();
            for (number, frame, marker) in stream(&[3, 3, 3]).into_iter().filter(|it| it.0 != 1003) {
                let start = if frame == 1 { start } else { Some(number % 3 == 1) };
                frames.packet(number, frame, marker, start);
            }
            frames.close();
            frames.counts()
        };
        assert_eq!((counted(Some(false)).broken, counted(Some(false)).unproven), (1, 0));
        assert_eq!((counted(None).broken, counted(None).unproven), (1, 1));
    }

    #[test]
    fn of_a_frame_on_its_way_only_the_end_is_missing() {
        let without = |number: u64| {
            let mut frames = Frames::new();
            for (number, frame, marker) in stream(&[4, 4]).into_iter().take(7).filter(|it| it.0 != number) {
                frames.packet(number, frame, marker, None);
            }
            frames.leave_newest();
            frames.close();
            frames.counts()
        };
        assert_eq!(without(0), FrameCounts { received: 2, complete: 1, broken: 0, unproven: 0 });
        assert_eq!(without(1005), FrameCounts { received: 2, complete: 1, broken: 1, unproven: 0 });
        assert_eq!(without(1004).broken, 1);
    }

    #[test]
    fn what_comes_after_a_second_is_too_late() {
        let mut packets = stream(&[2; 100]);
        let late = packets.remove(4);
        packets.insert(4 + 2 * OPEN, late);
        assert_eq!(count(packets).broken, 1);
    }

    /// A stream with packets of padding behind its packets, of which this many are taken from `padding` in turn.
    fn padded(lengths: &[u64], padding: &[u64]) -> Vec<(u64, Option<u32>, bool)> {
        let mut packets = Vec::new();
        for (at, (_, frame, marker)) in stream(lengths).into_iter().enumerate() {
            packets.push((1000 + packets.len() as u64, Some(frame), marker));
            for _ in 0..padding[at % padding.len()] {
                packets.push((1000 + packets.len() as u64, None, false));
            }
        }
        packets
    }

    fn count_padded(packets: &[(u64, Option<u32>, bool)]) -> FrameCounts {
        let mut frames = Frames::new();
        let mut completed = 0;
        for (number, frame, marker) in packets {
            let framed = match frame {
                Some(frame) => frames.packet(*number, frame * 3000, *marker, None),
                None => frames.padding(*number),
            };
            completed += u64::from(framed.completed);
        }
        frames.close();
        let counts = frames.counts();
        assert_eq!(counts.complete, completed);
        assert_eq!(counts.received, counts.complete + counts.broken);
        counts
    }

    #[test]
    fn lost_padding_breaks_no_frame_and_leaves_the_next_one_unproven() {
        // Frames of two packets with three of padding behind each.
        let mut packets = padded(&[2; 4], &[0, 3]);
        packets.remove(8);
        assert_eq!(count_padded(&packets), FrameCounts { received: 4, complete: 3, broken: 1, unproven: 1 });
        // Their order is no matter: the marker comes behind what it ends.
        let mut packets = padded(&[2; 4], &[0, 3]);
        packets.swap(6, 9);
        packets.remove(8);
        assert_eq!(count_padded(&packets).complete, 3);
    }

    #[test]
    fn two_frames_that_are_mixed_are_not_whole() {
        let counts = count([(1, 0, false), (2, 1, true), (3, 0, true), (4, 2, true)]);
        assert_eq!(counts.received, 4);
        assert_eq!((counts.complete, counts.broken), (4, 0));
        let counts = count([(1, 0, false), (3, 0, true), (2, 1, true), (4, 2, true)]);
        assert_eq!((counts.received, counts.complete, counts.broken), (2, 1, 1));
    }

    proptest! {
        /// Whatever the order within a window, a stream of which everything comes is whole.
        #[test]
        fn order_does_not_matter(
            lengths in prop::collection::vec(1u64..6, 1..60), delays in prop::collection::vec(0u64..12, 300),
        ) {
            let mut packets = stream(&lengths);
            // The first packet tells where the stream begins.
            packets[1..].sort_by_key(|(number, ..)| number + delays[(*number - 1000) as usize]);
            let counts = count(packets);
            prop_assert_eq!(counts.received, lengths.len() as u64);
            prop_assert_eq!(counts.complete, lengths.len() as u64);
        }

        /// The same with packets of padding anywhere.
        #[test]
        fn padding_is_no_gap_and_no_frame_in_any_order(
            lengths in prop::collection::vec(1u64..6, 1..60),
            padding in prop::collection::vec(0u64..4, 1..9),
            delays in prop::collection::vec(0u64..12, 300),
        ) {
            let mut packets = padded(&lengths, &padding);
            packets[1..].sort_by_key(|(number, ..)| number + delays[(*number - 1000) as usize % delays.len()]);
            let counts = count_padded(&packets);
            prop_assert_eq!((counts.received, counts.complete), (lengths.len() as u64, lengths.len() as u64));
        }

        /// With losses, against one who knows the truth: a frame is called whole if all came from the last packet of the frame
        /// before to its own last, padding included: what is missing might have been a packet of either.
        #[test]
        fn padding_that_is_lost_is_a_gap(
            lengths in prop::collection::vec(1u64..6, 1..60),
            padding in prop::collection::vec(0u64..4, 1..9),
            lost in prop::collection::btree_set(1001u64..1300, 0..60),
        ) {
            let all = padded(&lengths, &padding);
            let came: Vec<_> = all.iter().copied().filter(|(number, ..)| !lost.contains(number)).collect();
            let provable = (0..lengths.len() as u32).filter(|frame| {
                let first = all.iter().position(|it| it.1 == Some(*frame)).unwrap();
                let last = all.iter().rposition(|it| it.1 == Some(*frame)).unwrap();
                let before = all[..first].iter().rposition(|it| it.1.is_some()).unwrap_or(0);
                all[before..=last].iter().all(|it| !lost.contains(&it.0))
            });
            let (whole, counts) = (provable.count() as u64, count_padded(&came));
            prop_assert_eq!(counts.complete, whole);
        }

        /// Against one who knows the truth: what is called whole is whole, and what is whole and not called so is
        /// called unproven.
        #[test]
        fn whole_frames_are_those_of_which_everything_came(
            lengths in prop::collection::vec(1u64..6, 1..60), lost in prop::collection::btree_set(1u64..200, 0..30),
        ) {
            let mut packets = stream(&lengths);
            packets.retain(|(number, ..)| !lost.contains(&(number - 1000)));
            let mut number = 0;
            let (mut received, mut whole, mut provable) = (0, 0, 0);
            for length in &lengths {
                let missing = (number..number + length).filter(|packet| lost.contains(packet)).count() as u64;
                received += u64::from(missing < *length);
                whole += u64::from(missing == 0);
                provable += u64::from(missing == 0 && (number == 0 || !lost.contains(&(number - 1))));
                number += length;
            }
            let counts = count(packets);
            prop_assert_eq!(counts.received, received);
            prop_assert_eq!(counts.complete, provable);
            prop_assert!((counts.complete..=counts.complete + counts.unproven).contains(&whole));
        }
    }
}
