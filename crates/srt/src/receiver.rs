//! The receiving side: packets put into their order, missing ones asked for, and each delivered at its time or given up
//! (draft-sharabayko-srt-01, sections 4.5 to 4.8).

use crate::loss_report;
use crate::packet::{Acknowledgement, DataHeader, MOST_PAYLOAD};
use crate::round_trip::RoundTrip;
use crate::sequence::SequenceNumber;
use crate::statistics::Statistics;
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// Packets that handshakes say may be on their way, as libsrt's do with its usual buffers. Acknowledgements then say the room that there is.
pub(crate) const FIRST_WINDOW: u32 = 8_192;
/// Packets that one side holds at the most, present or missing, whatever the latency and the rate: libsrt's usual limit (SRTO_FC).
pub(crate) const MOST_WINDOW: usize = 25_600;
/// Bytes that the payloads of one side take at the most: two seconds at 130 Mbit/s.
pub(crate) const MOST_BYTES: usize = 32 << 20;
/// Packets a second for which there is room while the rate is not known: 210 Mbit/s, which is more than any encoder's.
const USUAL_RATE: u64 = 20_000;
/// What a packet may take beside the latency: a long round trip, and a thread that was not scheduled.
const BESIDE_LATENCY: Duration = Duration::from_millis(250);
/// "A full ACK is based on a timer of 10 milliseconds" (section 4.8.1). What is due is delivered at these moments as well.
pub(crate) const SYN: Duration = Duration::from_millis(10);
/// "After 64 packets (even if the ACK period has not fully elapsed) the receiver sends a light ACK" (section 4.8.1).
const LIGHT_AFTER: u32 = 64;
/// The floor of the time between two reports of one loss.
const LEAST_NAK_INTERVAL: Duration = Duration::from_millis(20);
/// Acknowledgements whose answers are waited for.
const AWAITED: usize = 128;
/// Bytes of one loss report: what a datagram holds.
const MOST_REPORT: usize = MOST_PAYLOAD;
/// Buffers that are kept to be used again.
const MOST_SPARE: usize = 64;
/// Packets for which an empty buffer keeps places: two seconds of 2 Mbit/s.
const KEPT_PLACES: usize = 512;
/// Samples of the peer's clock after which a drift is taken for one.
const DRIFT_SAMPLES: u32 = 1_000;

/// How a packet came to be here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    Missing,
    InOrder,
    /// After one that was sent later.
    Overtaken,
    /// Sent again.
    Repaired,
    /// It came, and cannot be read: there is nothing to deliver, and nothing is missing.
    Undecrypted,
}

#[derive(Debug)]
struct Slot {
    arrival: Arrival,
    /// When it is to be delivered, in microseconds of the receiver's clock.
    due: i64,
    payload: Vec<u8>,
}

/// What is to be said to the peer about a packet that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reaction {
    /// These are missing.
    pub(crate) gap: Option<(SequenceNumber, SequenceNumber)>,
    /// A light acknowledgement is due.
    pub(crate) light_ack: bool,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The number of the first slot.
    start: SequenceNumber,
    slots: VecDeque<Slot>,
    /// Bytes that their payloads take.
    bytes: usize,
    /// Missing packets, in order. Each range is followed by a packet that is there.
    losses: Vec<(SequenceNumber, SequenceNumber)>,
    spare: Vec<Vec<u8>>,
    /// What the peer's timestamp 0 is in microseconds of this clock, drift included.
    base: i64,
    /// The newest timestamp, and the same without wraps.
    newest: (u32, i64),
    latency: i64,
    drift: Drift,
    acknowledgements: Acknowledgements,
    /// The last packet that the peer will not send again.
    unavailable: SequenceNumber,
    nak_at: Option<Moment>,
    since_light: u32,
    rate: Rate,
}

#[derive(Debug)]
struct Acknowledgements {
    number: u32,
    /// What was said last, and when.
    last: SequenceNumber,
    last_at: Moment,
    /// What the peer knows of.
    confirmed: SequenceNumber,
    awaited: VecDeque<(u32, SequenceNumber, Moment)>,
}

/// How far the peer's clock has moved against this one.
#[derive(Debug, Default)]
struct Drift {
    sum: i64,
    samples: u32,
    first_round_trip: Option<i64>,
}

/// What came in the last whole second.
#[derive(Debug)]
struct Rate {
    since: Moment,
    packets: u32,
    bytes: u32,
    last: [u32; 2],
}

/// How long after a loss report the next one names what is still missing.
fn nak_interval(round_trip: &RoundTrip) -> Duration {
    //= draft-sharabayko-srt-01, section 5.1.2
    //# NAKInterval = max((RTT + 4 * RTTVar) / 2, 20000)
    (round_trip.patience() / 2).max(LEAST_NAK_INTERVAL)
}

fn micros(moment: Moment) -> i64 {
    (moment.as_nanos() / 1_000) as i64
}

impl Receiver {
    /// Of a peer whose packets begin with `first`, and whose clock said `timestamp` in a packet that came `now`.
    pub(crate) fn new(first: SequenceNumber, timestamp: u32, latency: Duration, now: Moment) -> Self {
        //= draft-sharabayko-srt-01, section 4.5.1.1
        //# TsbpdTimeBase = T_NOW - HSREQ_TIMESTAMP
        let base = micros(now) - i64::from(timestamp);
        Self {
            start: first,
            slots: VecDeque::new(),
            bytes: 0,
            losses: Vec::new(),
            spare: Vec::new(),
            base,
            newest: (timestamp, i64::from(timestamp)),
            latency: latency.as_micros() as i64,
            drift: Drift::default(),
            acknowledgements: Acknowledgements {
                number: 0,
                last: first,
                last_at: now,
                confirmed: first,
                awaited: VecDeque::new(),
            },
            unavailable: first.plus(u32::MAX),
            nak_at: None,
            since_light: 0,
            rate: Rate { since: now, packets: 0, bytes: 0, last: [0; 2] },
        }
    }

    /// The number behind the newest packet.
    fn end(&self) -> SequenceNumber {
        self.start.plus(self.slots.len() as u32)
    }

    /// The first packet that is neither here nor given up.
    pub(crate) fn next_missing(&self) -> SequenceNumber {
        self.losses.first().map_or(self.end(), |(first, _)| *first)
    }

    /// Bytes that are held for packets which wait for their time, for places of missing ones, and for packets to come.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
            + self.spare.iter().map(Vec::capacity).sum::<usize>()
            + self.slots.capacity() * size_of::<Slot>()
    }

    /// Packets for which there is room.
    fn room(&self) -> u32 {
        // A peer takes 0 for "send nothing"; libsrt says 2 at the least.
        self.window().saturating_sub(self.slots.len()).max(2) as u32
    }

    /// Packets that are held at the most, present or missing: twice what comes in the latency.
    fn window(&self) -> usize {
        let a_second = USUAL_RATE.max(2 * u64::from(self.rate.last[0]));
        let micros = self.latency.max(0) as u64 + BESIDE_LATENCY.as_micros() as u64;
        usize::try_from(a_second * micros / 1_000_000).map_or(MOST_WINDOW, |window| window.min(MOST_WINDOW))
    }

    /// The span of media time that is held, by the packets' own times.
    pub(crate) fn held(&self) -> Duration {
        let mut present = self.slots.iter().filter(|slot| slot.arrival != Arrival::Missing);
        let first = present.next().map(|slot| slot.due);
        let last = self.slots.back().map(|slot| slot.due);
        let span = last.zip(first).map_or(0, |(last, first)| last - first);
        Duration::from_micros(span.max(0) as u64)
    }

    /// A data packet came. `decrypt` makes its payload readable where it lies; it says whether it could.
    pub(crate) fn take(
        &mut self,
        header: &DataHeader,
        payload: &[u8],
        now: Moment,
        counts: &mut Statistics,
        decrypt: impl FnOnce(&mut [u8]) -> bool,
    ) -> Reaction {
        counts.received += 1;
        counts.retransmissions_received += u64::from(header.retransmitted);
        self.rate.take(payload.len(), now);
        let mut reaction = Reaction::default();
        let mut offset = header.sequence_number.since(self.start);
        if offset < 0 {
            counts.belated += 1;
            return reaction;
        }
        if self.slots.is_empty() && offset as usize >= self.window() && offset < 1 << 24 {
            // A peer that has sent nothing that came for so long has nothing left to send again: at 1 Gbit/s 2²⁴ packets are
            // three minutes.
            counts.missing += offset as u64;
            counts.dropped += offset as u64;
            self.start = header.sequence_number;
            offset = 0;
        }
        let offset = offset as usize;
        if offset >= self.window() || self.bytes + payload.len() > MOST_BYTES {
            counts.discarded += 1;
            return reaction;
        }
        let held = self.slots.get(offset).map(|slot| slot.arrival);
        if let Some(arrival) = held.filter(|arrival| *arrival != Arrival::Missing) {
            counts.duplicates += 1;
            // What was sent again had only been overtaken: here it is.
            if arrival == Arrival::Repaired && !header.retransmitted {
                self.slots[offset].arrival = Arrival::Overtaken;
            }
            return reaction;
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(payload);
        let is_readable = header.key == 0 || decrypt(&mut buffer);
        if !is_readable {
            counts.undecrypted += 1;
            buffer.clear();
        }
        self.bytes += buffer.capacity();
        let arrival = |arrival| if is_readable { arrival } else { Arrival::Undecrypted };
        let due = self.due(header.timestamp);
        if held.is_some() {
            let arrival = arrival(if header.retransmitted { Arrival::Repaired } else { Arrival::Overtaken });
            self.slots[offset] = Slot { arrival, due, payload: buffer };
            self.found(header.sequence_number);
        } else {
            let missing = offset - self.slots.len();
            if missing > 0 {
                let (first, last) = (self.end(), self.end().plus(missing as u32 - 1));
                counts.missing += missing as u64;
                for _ in 0..missing {
                    self.slots.push_back(Slot { arrival: Arrival::Missing, due, payload: Vec::new() });
                }
                self.losses.push((first, last));
                reaction.gap = Some((first, last));
            }
            // The first copy of a packet that is lost as well may be the one that shows a gap.
            let arrival = arrival(if header.retransmitted { Arrival::Repaired } else { Arrival::InOrder });
            counts.missing += u64::from(header.retransmitted);
            self.slots.push_back(Slot { arrival, due, payload: buffer });
        }
        self.since_light += 1;
        if self.since_light >= LIGHT_AFTER {
            self.since_light = 0;
            reaction.light_ack = true;
        }
        reaction
    }

    /// The peer's clock says this in a control packet: timestamps wrap after 71 minutes, also while no data comes.
    pub(crate) fn on_timestamp(&mut self, timestamp: u32) {
        let (newest, whole) = self.newest;
        let step = timestamp.wrapping_sub(newest) as i32;
        if step > 0 {
            self.newest = (timestamp, whole + i64::from(step));
        }
    }

    /// When a packet of this timestamp is due.
    fn due(&mut self, timestamp: u32) -> i64 {
        //= draft-sharabayko-srt-01, section 4.5.1
        //# PktTsbpdTime = TsbpdTimeBase + PKT_TIMESTAMP + TsbpdDelay + Drift
        let (newest, whole) = self.newest;
        let this = whole + i64::from(timestamp.wrapping_sub(newest) as i32);
        self.on_timestamp(timestamp);
        self.base + this + self.latency
    }

    /// A packet that was missing is here.
    fn found(&mut self, number: SequenceNumber) {
        let start = self.start;
        let place = self.losses.partition_point(|(_, last)| last.since(start) < number.since(start));
        let Some(&(first, last)) = self.losses.get(place) else { return };
        match (first == number, last == number) {
            (true, true) => {
                self.losses.remove(place);
            }
            (true, false) => self.losses[place].0 = number.plus(1),
            (false, true) => self.losses[place].1 = number.plus(u32::MAX),
            (false, false) => {
                self.losses[place].1 = number.plus(u32::MAX);
                self.losses.insert(place + 1, (number.plus(1), last));
            }
        }
    }

    /// Hands out the payloads that are due, and gives up what is missing before them.
    pub(crate) fn deliver(&mut self, now: Moment, counts: &mut Statistics, take: &mut dyn FnMut(&[u8])) {
        let now = micros(now);
        //= draft-sharabayko-srt-01, section 4.6
        //# When enabled on the receiver, the receiver drops packets that have not been delivered
        //# or retransmitted in time, and delivers the subsequent packets to the application when
        //# it is their time to play.
        loop {
            let skipped = match self.losses.first() {
                Some((first, last)) if *first == self.start => last.since(*first) as usize + 1,
                _ => 0,
            };
            if self.slots.get(skipped).is_none_or(|next| next.due > now) {
                return;
            }
            self.give_up(skipped, counts);
            let Some(mut slot) = self.slots.pop_front() else { return };
            self.start = self.start.plus(1);
            if self.unavailable.since(self.start) < -1 {
                // It stays right before the first slot: numbers are compared over half of their range only.
                self.unavailable = self.start.plus(u32::MAX);
            }
            match slot.arrival {
                Arrival::Repaired => counts.recovered += 1,
                Arrival::Overtaken => counts.reordered += 1,
                Arrival::InOrder | Arrival::Missing | Arrival::Undecrypted => {}
            }
            if slot.arrival != Arrival::Undecrypted {
                take(&slot.payload);
            }
            self.bytes -= slot.payload.capacity();
            if self.spare.len() < MOST_SPARE {
                self.spare.push(std::mem::take(&mut slot.payload));
            }
            if self.slots.is_empty() {
                self.slots.shrink_to(KEPT_PLACES);
            }
        }
    }

    /// The first `skipped` slots, which are missing, are not waited for any more.
    fn give_up(&mut self, skipped: usize, counts: &mut Statistics) {
        if skipped > 0 {
            self.slots.drain(..skipped);
            self.start = self.start.plus(skipped as u32);
            self.losses.remove(0);
            counts.dropped += skipped as u64;
        }
    }

    /// The peer has nothing up to this packet any more: it is not asked for it again.
    pub(crate) fn on_drop_request(&mut self, last: SequenceNumber) {
        if last.since(self.unavailable) > 0 && last.since(self.end()) < 0 {
            self.unavailable = last;
        }
    }

    /// Appends a list of what is missing.
    pub(crate) fn write_losses(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let asked = self.losses.iter().filter(|(_, last)| last.since(self.unavailable) > 0);
        for (first, last) in asked {
            if out.len() - start + 8 > MOST_REPORT {
                return;
            }
            loss_report::write(*first, *last, out);
        }
    }

    /// A new loss was just reported. A periodic report of earlier ones that is due stays due.
    pub(crate) fn on_loss_reported(&mut self, now: Moment, round_trip: &RoundTrip) {
        self.nak_at.get_or_insert(now + nak_interval(round_trip));
    }

    /// Whether a periodic loss report is due.
    pub(crate) fn nak_is_due(&mut self, now: Moment, round_trip: &RoundTrip) -> bool {
        if self.losses.is_empty() {
            self.nak_at = None;
            return false;
        }
        let at = *self.nak_at.get_or_insert(now + nak_interval(round_trip));
        if at <= now {
            self.nak_at = Some(now + nak_interval(round_trip));
        }
        at <= now
    }

    /// The full acknowledgement that is due, if one is.
    pub(crate) fn acknowledge(&mut self, now: Moment, round_trip: &RoundTrip) -> Option<Acknowledgement> {
        let next = self.next_missing();
        let (room, rates) = (self.room(), self.rate.read(now));
        let said = &mut self.acknowledgements;
        //= draft-sharabayko-srt-01, section 4.8.1
        //# The ACKACK tells the receiver to stop sending the ACK position because the sender already
        //# knows it.
        let is_repeated = next == said.last && now < said.last_at + round_trip.patience();
        if next == said.confirmed || is_repeated {
            return None;
        }
        said.number = said.number.wrapping_add(1).max(1);
        (said.last, said.last_at) = (next, now);
        if said.awaited.len() == AWAITED {
            said.awaited.pop_front();
        }
        said.awaited.push_back((said.number, next, now));
        let [time, variance] = round_trip.as_micros();
        let [packets, bytes] = rates;
        Some(Acknowledgement {
            number: said.number,
            next,
            state: Some([time, variance, room]),
            // The link's capacity is not estimated: nothing of live mode depends on it.
            rates: Some([packets, packets, bytes]),
        })
    }

    /// What a light acknowledgement says.
    pub(crate) fn light_acknowledgement(&self) -> Acknowledgement {
        Acknowledgement { next: self.next_missing(), ..Acknowledgement::default() }
    }

    /// The peer has a full acknowledgement. The round trip in microseconds, if it was waited for.
    pub(crate) fn on_ack_ack(&mut self, number: u32, timestamp: u32, now: Moment) -> Option<u32> {
        let said = &mut self.acknowledgements;
        let place = said.awaited.iter().position(|(awaited, ..)| *awaited == number)?;
        let (_, next, at) = said.awaited[place];
        said.awaited.drain(..=place);
        if next.since(said.confirmed) > 0 {
            said.confirmed = next;
        }
        let round_trip = now.since(at).as_micros() as u32;
        self.follow_clock(timestamp, i64::from(round_trip), now);
        Some(round_trip)
    }

    /// Looks at the peer's clock: "The receiver samples time drift data and periodically calculates a packet timestamp correction factor"
    /// (section 4.7).
    fn follow_clock(&mut self, timestamp: u32, round_trip: i64, now: Moment) {
        let (newest, whole) = self.newest;
        let sent = whole + i64::from(timestamp.wrapping_sub(newest) as i32);
        let first = *self.drift.first_round_trip.get_or_insert(round_trip);
        self.drift.sum += micros(now) - (self.base + sent) - (round_trip - first) / 2;
        self.drift.samples += 1;
        if self.drift.samples == DRIFT_SAMPLES {
            self.base += self.drift.sum / i64::from(DRIFT_SAMPLES);
            (self.drift.sum, self.drift.samples) = (0, 0);
        }
    }

    /// Whether there is anything that a later moment changes.
    pub(crate) fn needs_time(&self) -> bool {
        !self.slots.is_empty() || self.next_missing() != self.acknowledgements.confirmed
    }
}

impl Rate {
    fn roll(&mut self, now: Moment) {
        let span = now.since(self.since).as_micros() as u64;
        if span >= 1_000_000 {
            let per_second = |n: u32| (u64::from(n) * 1_000_000 / span) as u32;
            self.last = [per_second(self.packets), per_second(self.bytes)];
            (self.since, self.packets, self.bytes) = (now, 0, 0);
        }
    }

    fn take(&mut self, bytes: usize, now: Moment) {
        self.roll(now);
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u32);
    }

    fn read(&mut self, now: Moment) -> [u32; 2] {
        self.roll(now);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    fn receiver() -> Receiver {
        Receiver::new(SequenceNumber::new(5), 0, LATENCY, at(0))
    }

    fn header(number: u32, timestamp: u32) -> DataHeader {
        DataHeader {
            sequence_number: SequenceNumber::new(number),
            is_whole: true,
            key: 0,
            retransmitted: false,
            message_number: 1,
            timestamp,
            destination: 1,
        }
    }

    fn delivered(receiver: &mut Receiver, counts: &mut Statistics, now: Moment) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        receiver.deliver(now, counts, &mut |payload| payloads.push(payload.to_vec()));
        payloads
    }

    #[test]
    fn a_new_loss_does_not_put_off_the_report_of_earlier_ones() {
        let (mut receiver, mut counts, round_trip) =
            (receiver(), Statistics::default(), RoundTrip::default());
        for number in [5, 7] {
            receiver.take(&header(number, 0), b"a", at(0), &mut counts, |_| true);
        }
        receiver.on_loss_reported(at(0), &round_trip);
        assert!(!receiver.nak_is_due(at(1), &round_trip), "it was just reported");
        // The report is due, and another loss shows itself before it is written.
        receiver.take(&header(9, 0), b"a", at(400), &mut counts, |_| true);
        receiver.on_loss_reported(at(400), &round_trip);
        assert!(receiver.nak_is_due(at(400), &round_trip));
        assert!(!receiver.nak_is_due(at(401), &round_trip));
    }

    #[test]
    fn a_packet_that_no_key_opens_is_not_missing_and_is_not_delivered() {
        let (mut receiver, mut counts) = (receiver(), Statistics::default());
        for (number, key) in [(5, 0), (6, 1), (7, 0)] {
            receiver.take(
                &DataHeader { key, ..header(number, 0) },
                &[number as u8],
                at(0),
                &mut counts,
                |_| false,
            );
        }
        assert_eq!(receiver.next_missing(), SequenceNumber::new(8));
        assert_eq!(delivered(&mut receiver, &mut counts, at(200)), [[5], [7]]);
        assert_eq!((counts.undecrypted, counts.missing, counts.dropped), (1, 0, 0));
    }

    #[test]
    fn losses_are_reported_however_long_ago_the_peer_dropped_something() {
        let (mut receiver, mut counts) = (receiver(), Statistics::default());
        // Three quarters of all numbers later, in steps, nothing but a gap.
        for _ in 0..6 {
            receiver.start = receiver.start.plus(1 << 28);
            let header = DataHeader { sequence_number: receiver.start, ..header(0, 0) };
            receiver.take(&header, b"a", at(0), &mut counts, |_| true);
            delivered(&mut receiver, &mut counts, at(100));
        }
        let header = DataHeader { sequence_number: receiver.start.plus(1), ..header(0, 0) };
        receiver.take(&header, b"a", at(0), &mut counts, |_| true);
        let mut report = Vec::new();
        receiver.write_losses(&mut report);
        assert_eq!(report.len(), 4, "one number");
    }

    #[test]
    fn timestamps_of_keep_alives_carry_a_silent_stream_over_a_wrap() {
        let (mut receiver, mut counts) = (receiver(), Statistics::default());
        let half_an_hour: u64 = 1_800_000;
        for times in 1..=3 {
            receiver.on_timestamp((times * half_an_hour * 1_000) as u32);
        }
        let sent = 3 * half_an_hour;
        receiver.take(&header(5, (sent * 1_000) as u32), b"a", at(sent + 1), &mut counts, |_| true);
        assert!(
            delivered(&mut receiver, &mut counts, at(sent + 99)).is_empty(),
            "it is due after the latency"
        );
        assert_eq!(delivered(&mut receiver, &mut counts, at(sent + 100)).len(), 1);
    }
}
