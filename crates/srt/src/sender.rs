//! The sending side: packets are kept until they are acknowledged or too late, and sent again when they are reported missing
//! (draft-sharabayko-srt-01, sections 4.6 and 4.8).

use crate::encryption::{EVEN, Encryption, Keys, ODD};
use crate::loss_report::LossReport;
use crate::outbox::Outbox;
use crate::pacer::Pacer;
use crate::packet::{ControlHeader, DataHeader, MOST_PAYLOAD};
use crate::receiver::{MOST_BYTES, MOST_WINDOW, SYN};
use crate::round_trip::RoundTrip;
use crate::sequence::SequenceNumber;
use crate::statistics::Statistics;
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// "The SRT sender keeps packets for at least 1 second in case the latency is not high enough for a large RTT" (section 4.6).
const LEAST_KEPT: Duration = Duration::from_secs(1);
/// The least time between two copies of one packet, however short the way is.
const LEAST_APART: Duration = Duration::from_millis(2);
/// Buffers that are kept to be used again.
const MOST_SPARE: usize = 64;
/// Packets for which an empty window keeps places: two seconds of 2 Mbit/s.
const KEPT_PLACES: usize = 512;
/// Message numbers have 26 bits, and begin at 1.
const MESSAGES: u32 = (1 << 26) - 1;
/// Tries to announce a key before it waits for the next packet.
const ANNOUNCE_AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Kept {
    payload: Vec<u8>,
    timestamp: u32,
    queued: Moment,
    message_number: u32,
    key: u8,
    /// When it was sent again last.
    resent: Option<Moment>,
}

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    /// The number of the first packet that is kept.
    start: SequenceNumber,
    kept: VecDeque<Kept>,
    /// Bytes that their payloads take, and of those that were not sent yet.
    bytes: usize,
    waiting: usize,
    pacer: Pacer,
    /// How many of them were sent.
    sent: usize,
    /// Packets that may be on their way.
    window: usize,
    message_number: u32,
    keep_for: Duration,
    spare: Vec<Vec<u8>>,
    /// When anything was sent or acknowledged last.
    progress: Moment,
    /// How many times in a row the last packet was sent again because nothing was heard of it.
    probes: u32,
    keys: Option<OutgoingKeys>,
    /// Whether the peer reports losses again and again.
    has_periodic_reports: bool,
    /// When the peer had no room for a packet last.
    blocked_at: Option<Moment>,
    /// When this side's own socket refused a datagram last.
    refused_at: Option<Moment>,
}

/// Keys of packets to be sent.
#[derive(Debug)]
struct OutgoingKeys {
    keys: Keys,
    active: u8,
    used: u32,
    refresh_after: u32,
    announce_before: u32,
    announcement: Announcement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announcement {
    None,
    /// The next key was announced last at this moment.
    Waiting(Moment),
    Taken,
}

impl Sender {
    pub(crate) fn new(
        first: SequenceNumber,
        window: u32,
        latency: Duration,
        has_periodic_reports: bool,
        now: Moment,
    ) -> Self {
        Self {
            start: first,
            kept: VecDeque::new(),
            bytes: 0,
            waiting: 0,
            pacer: Pacer::new(latency, now),
            sent: 0,
            window: window as usize,
            message_number: 0,
            //= draft-sharabayko-srt-01, section 4.6
            //# The recommended threshold value is 1.25 times the SRT latency value.
            keep_for: (latency + latency / 4).max(LEAST_KEPT),
            spare: Vec::new(),
            progress: now,
            probes: 0,
            keys: None,
            has_periodic_reports,
            blocked_at: None,
            refused_at: None,
        }
    }

    pub(crate) fn encrypt(&mut self, keys: Keys, encryption: &Encryption) {
        self.keys = Some(OutgoingKeys {
            active: if keys.has(EVEN) { EVEN } else { ODD },
            keys,
            used: 0,
            refresh_after: encryption.refresh_after.max(2),
            announce_before: encryption.announce_before.clamp(1, encryption.refresh_after.max(2) / 2),
            announcement: Announcement::None,
        });
    }

    /// Bytes that are held for packets which wait to be sent or acknowledged, and for those to come.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
            + self.spare.iter().map(Vec::capacity).sum::<usize>()
            + self.kept.capacity() * size_of::<Kept>()
    }

    /// Packets that wait to be sent or acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Takes a payload, to be sent when its turn has come and the peer has room for it.
    pub(crate) fn queue(&mut self, payload: &[u8], timestamp: u32, now: Moment, counts: &mut Statistics) {
        while self.kept.len() >= MOST_WINDOW || self.bytes + payload.len() > MOST_BYTES {
            self.drop_front(counts);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(&payload[..payload.len().min(MOST_PAYLOAD)]);
        self.bytes += buffer.capacity();
        self.waiting += buffer.len();
        self.pacer.queued(buffer.len(), now);
        self.message_number = self.message_number % MESSAGES + 1;
        self.kept.push_back(Kept {
            payload: buffer,
            timestamp,
            queued: now,
            message_number: self.message_number,
            key: 0,
            resent: None,
        });
    }

    /// Sends what may leave and the peer has room for.
    pub(crate) fn pump(
        &mut self,
        destination: u32,
        now: Moment,
        outbox: &mut Outbox,
        counts: &mut Statistics,
    ) {
        if self.sent >= self.kept.len().min(self.window) {
            self.note_blocked(now);
            return;
        }
        self.pacer.advance(self.waiting, self.kept.back().map_or(now, |newest| newest.queued), now);
        while self.sent < self.kept.len().min(self.window) && !outbox.is_full() {
            let number = self.start.plus(self.sent as u32);
            let packet = &mut self.kept[self.sent];
            if !self.pacer.allows(packet.queued) {
                return;
            }
            self.waiting -= packet.payload.len();
            self.pacer.sent(packet.payload.len());
            let mut is_ready = true;
            if let Some(keys) = &mut self.keys {
                packet.key = keys.next_key(counts);
                is_ready = keys.keys.apply(packet.key, number, &mut packet.payload);
            }
            if is_ready {
                counts.sent += 1;
                write(packet, number, false, destination, outbox);
            } else {
                // Without a key nothing leaves: it would be readable. The peer finds it missing, and gets nothing either.
                packet.payload.clear();
                packet.key = 0;
                counts.send_discarded += 1;
            }
            self.sent += 1;
            self.progress = now;
        }
        self.note_blocked(now);
    }

    fn note_blocked(&mut self, now: Moment) {
        if self.sent >= self.window && self.sent < self.kept.len() {
            self.blocked_at = Some(now);
        }
    }

    /// This side's socket did not take what was to leave.
    pub(crate) fn on_refused(&mut self, now: Moment) {
        self.refused_at = Some(now);
    }

    /// An acknowledgement came: everything before `next` is there.
    pub(crate) fn on_acknowledgement(&mut self, next: SequenceNumber, room: Option<u32>, now: Moment) {
        let count = next.since(self.start);
        // What was never sent cannot be acknowledged.
        if count < 0 || count as usize > self.sent {
            return;
        }
        if count > 0 {
            (self.progress, self.probes) = (now, 0);
        }
        for _ in 0..count {
            self.release();
        }
        if let Some(room) = room {
            self.window = (room as usize).min(MOST_WINDOW);
        }
    }

    fn release(&mut self) {
        if let Some(packet) = self.kept.pop_front() {
            self.start = self.start.plus(1);
            if self.sent == 0 {
                self.waiting -= packet.payload.len();
            }
            self.sent = self.sent.saturating_sub(1);
            self.bytes -= packet.payload.capacity();
            if self.spare.len() < MOST_SPARE {
                self.spare.push(packet.payload);
            }
            if self.kept.is_empty() {
                self.kept.shrink_to(KEPT_PLACES);
            }
        }
    }

    fn drop_front(&mut self, counts: &mut Statistics) {
        // One that was never sent has a number all the same, which the peer finds missing.
        if let Some(packet) = self.kept.front() {
            let since_queued = |at: Option<Moment>| at.is_some_and(|at| at >= packet.queued);
            let was_held_here = self.sent == 0 && !since_queued(self.blocked_at);
            if packet.payload.is_empty() {
                // Counted when no key was there for it.
            } else if was_held_here || since_queued(self.refused_at) {
                counts.send_discarded += 1;
            } else {
                counts.send_dropped += 1;
            }
        }
        self.release();
    }

    /// Sends again what the peer reports missing.
    pub(crate) fn on_loss_report(
        &mut self,
        report: LossReport<'_>,
        to: (u32, u32),
        round_trip: &RoundTrip,
        now: Moment,
        outbox: &mut Outbox,
        counts: &mut Statistics,
    ) {
        let (timestamp, destination) = to;
        // What was sent again less than a round trip ago may be on its way, and a peer that reports periodically asks again.
        let apart = if round_trip.is_measured() {
            round_trip.time().saturating_sub(4 * round_trip.variance())
        } else {
            SYN
        };
        // A peer that does not repeat its reports names a packet twice if its second copy was lost as well, which it learns a round trip
        // later; but each of its reports may name the whole window.
        let apart = if self.has_periodic_reports { apart.max(LEAST_APART) } else { SYN };
        let mut reached = -(MOST_WINDOW as i32);
        for (first, last) in report {
            let (from, to) = (first.since(self.start), last.since(self.start));
            // Lists are in order. One that is not would have each packet looked at again and again.
            if from < reached || to < from {
                return;
            }
            reached = to;
            counts.reported_missing += (to - from + 1).min(MOST_WINDOW as i32) as u64;
            if to < 0 {
                //= draft-sharabayko-srt-01, section 3.2.9
                //# A Message Drop Request control packet is sent by the sender to the receiver
                //# when a retransmission of an unacknowledged packet (forming a whole or a part
                //# of a message) which is not present in the sender's buffer is requested.
                let header = ControlHeader { timestamp, destination };
                outbox.add(|out| header.drop_request(first, last, out));
                continue;
            }
            for place in from.max(0) as usize..self.sent.min(to as usize + 1) {
                let number = self.start.plus(place as u32);
                let packet = &mut self.kept[place];
                if packet.payload.is_empty() || packet.resent.is_some_and(|at| now < at + apart) {
                    continue;
                }
                if outbox.is_full() {
                    // It is not counted as a copy, so that the peer's next report has it sent again at once.
                    return;
                }
                packet.resent = Some(now);
                //= draft-sharabayko-srt-01, section 5.1.2
                //# On sending a data packet (either original or retransmitted)
                self.pacer.sent(packet.payload.len());
                write(packet, number, true, destination, outbox);
                counts.retransmitted += 1;
            }
        }
    }

    /// Gives up what is too late, and asks about the last packet if nothing is heard of it.
    pub(crate) fn handle_timeout(
        &mut self,
        destination: u32,
        round_trip: &RoundTrip,
        now: Moment,
        outbox: &mut Outbox,
        counts: &mut Statistics,
    ) {
        while self.kept.front().is_some_and(|packet| packet.queued + self.keep_for <= now) {
            self.drop_front(counts);
        }
        if self.sent > 0 && self.probe_at(round_trip) <= now && !outbox.is_full() {
            self.probes = (self.probes + 1).min(16);
            self.progress = now;
            // Reports of the peer name what is missing before a packet that came, so that the last one is enough.
            let from = if self.has_periodic_reports { self.sent - 1 } else { 0 };
            for place in from..self.sent {
                let number = self.start.plus(place as u32);
                let packet = &mut self.kept[place];
                if packet.payload.is_empty() {
                    continue;
                }
                if outbox.is_full() {
                    return;
                }
                packet.resent = Some(now);
                //= draft-sharabayko-srt-01, section 5.1.2
                //# On sending a data packet (either original or retransmitted)
                self.pacer.sent(packet.payload.len());
                write(packet, number, true, destination, outbox);
                counts.retransmitted += 1;
            }
        }
    }

    fn probe_at(&self, round_trip: &RoundTrip) -> Moment {
        //= draft-sharabayko-srt-01, section 5.1.2
        //# RTO = RexmitCount * (RTT + 4 * RTTVar + 2 * SYN) + SYN
        self.progress + (round_trip.patience() + 2 * SYN) * (self.probes + 1) + SYN
    }

    pub(crate) fn poll_timeout(&self, round_trip: &RoundTrip) -> Option<Moment> {
        let drop = self.kept.front().map(|packet| packet.queued + self.keep_for);
        let probe = (self.sent > 0).then(|| self.probe_at(round_trip));
        let announce = self.keys.as_ref().and_then(|keys| match keys.announcement {
            Announcement::Waiting(at) => Some(at + ANNOUNCE_AGAIN),
            _ => None,
        });
        let may_leave = self.kept.get(self.sent).filter(|_| self.sent < self.window);
        let paced = may_leave.map(|packet| self.pacer.next(packet.queued));
        [drop, probe, announce, paced].into_iter().flatten().min()
    }

    /// A message that announces the next key, if it is time to.
    pub(crate) fn announcement(&mut self, now: Moment) -> Option<Vec<u8>> {
        let keys = self.keys.as_mut()?;
        match keys.announcement {
            Announcement::None if keys.used >= keys.refresh_after - keys.announce_before => {
                keys.keys.renew(keys.other())?;
            }
            Announcement::Waiting(at) if at + ANNOUNCE_AGAIN <= now => {}
            _ => return None,
        }
        keys.announcement = Announcement::Waiting(now);
        let mut message = Vec::new();
        keys.keys.write(&mut message);
        Some(message)
    }

    /// The peer has taken the keys of this message.
    pub(crate) fn on_key_material_response(&mut self, message: &[u8]) {
        let Some(keys) = &mut self.keys else { return };
        let mut ours = Vec::new();
        keys.keys.write(&mut ours);
        if matches!(keys.announcement, Announcement::Waiting(_)) && ours == message {
            keys.announcement = Announcement::Taken;
        }
    }
}

impl OutgoingKeys {
    fn other(&self) -> u8 {
        if self.active == EVEN { ODD } else { EVEN }
    }

    /// The key of the next packet.
    fn next_key(&mut self, counts: &mut Statistics) -> u8 {
        //= draft-sharabayko-srt-01, section 6.1.6
        //# Once the sender gets to the 2^25th packet using the odd key (key #1), it will then start to
        //# send packets with the even key (key #2), knowing that the receiver has what it needs to
        //# decrypt them.
        if self.used >= self.refresh_after && self.announcement == Announcement::Taken {
            (self.active, self.used, self.announcement) = (self.other(), 0, Announcement::None);
            counts.key_refreshes += 1;
        }
        self.used = self.used.saturating_add(1);
        self.active
    }
}

fn write(packet: &Kept, number: SequenceNumber, retransmitted: bool, destination: u32, outbox: &mut Outbox) {
    let header = DataHeader {
        sequence_number: number,
        is_whole: true,
        key: packet.key,
        retransmitted,
        message_number: packet.message_number,
        timestamp: packet.timestamp,
        destination,
    };
    outbox.add(|out| {
        header.write(out);
        out.extend_from_slice(&packet.payload);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_report;

    const START: Moment = Moment::from_nanos(1_000_000_000_000);
    const TO: (u32, u32) = (0, 7);

    struct Bench {
        sender: Sender,
        outbox: Outbox,
        counts: Statistics,
    }

    impl Bench {
        /// With a latency of nothing, so that the pace holds nothing back.
        fn new(has_periodic_reports: bool) -> Self {
            let sender = Sender::new(
                SequenceNumber::new(0),
                MOST_WINDOW as u32,
                Duration::ZERO,
                has_periodic_reports,
                START,
            );
            Self { sender, outbox: Outbox::default(), counts: Statistics::default() }
        }

        fn queue(&mut self, packets: usize, now: Moment) {
            (0..packets).for_each(|_| self.sender.queue(&[1; 100], 0, now, &mut self.counts));
            self.pump(now);
        }

        fn pump(&mut self, now: Moment) {
            self.sender.pump(TO.1, now, &mut self.outbox, &mut self.counts);
        }

        fn report(&mut self, first: u32, last: u32, now: Moment) {
            let mut list = Vec::new();
            loss_report::write(SequenceNumber::new(first), SequenceNumber::new(last), &mut list);
            let report = LossReport::new(&list);
            let round_trip = RoundTrip::default();
            self.sender.on_loss_report(report, TO, &round_trip, now, &mut self.outbox, &mut self.counts);
        }

        fn handle_timeout(&mut self, now: Moment) {
            let round_trip = RoundTrip::default();
            self.sender.handle_timeout(TO.1, &round_trip, now, &mut self.outbox, &mut self.counts);
        }

        /// Datagrams that leave.
        fn flush(&mut self) -> u64 {
            let mut sent = 0;
            self.outbox.flush(&mut |bytes, length| sent += bytes.len().div_ceil(length) as u64);
            sent
        }
    }

    #[test]
    fn what_a_full_outbox_does_not_take_stays_in_the_window_and_is_not_counted() {
        let mut bench = Bench::new(true);
        bench.queue(10_000, START);
        let mut left = 0;
        for _ in 0..3 {
            left += bench.flush();
            assert_eq!(bench.counts.sent, left, "what is counted has left");
            assert!(
                bench
                    .sender
                    .poll_timeout(&RoundTrip::default())
                    .is_some_and(|at| left == 10_000 || at <= START)
            );
            bench.pump(START);
        }
        assert_eq!((left, bench.counts.sent, bench.counts.send_dropped), (10_000, 10_000, 0));
        // Copies as well: those that found no room leave when the next report names them.
        for expected in [4_096, 8_192, 10_000] {
            bench.report(0, 9_999, START);
            bench.report(0, 9_999, START);
            left = bench.flush();
            assert!(left <= 4_096);
            assert_eq!(bench.counts.retransmitted, expected);
        }
    }

    #[test]
    fn what_is_given_up_is_the_peers_unless_it_was_held_here() {
        let late = START + Duration::from_secs(2);
        let given_up = |bench: &mut Bench| {
            bench.handle_timeout(late);
            (bench.counts.send_dropped, bench.counts.send_discarded)
        };
        // Sent, and not acknowledged.
        let mut bench = Bench::new(true);
        bench.queue(10, START);
        assert_eq!(given_up(&mut bench), (10, 0));
        // Of these eight were never sent, for the peer has room for two.
        let mut bench = Bench::new(true);
        bench.sender.window = 2;
        bench.queue(10, START);
        assert_eq!((bench.counts.sent, given_up(&mut bench)), (2, (10, 0)));
        // The outbox was full, and the thread late.
        let mut bench = Bench::new(true);
        bench.queue(5_000, START);
        assert_eq!(given_up(&mut bench), (4_096, 904));
        // The system refused datagrams while the first were kept, and none since the others were queued.
        let mut bench = Bench::new(true);
        bench.queue(10, START);
        bench.sender.on_refused(START + Duration::from_millis(1));
        bench.queue(5, START + Duration::from_millis(2));
        assert_eq!(given_up(&mut bench), (5, 10));
    }

    #[test]
    fn a_last_packet_that_finds_no_room_is_sent_again_later() {
        for has_periodic_reports in [true, false] {
            let mut bench = Bench::new(has_periodic_reports);
            bench.queue(1, START);
            bench.flush();
            while !bench.outbox.is_full() {
                bench.outbox.add(|bytes| bytes.push(1));
            }
            let now = bench.sender.poll_timeout(&RoundTrip::default()).unwrap();
            bench.handle_timeout(now);
            assert_eq!((bench.counts.retransmitted, bench.flush()), (0, 4_096));
            bench.handle_timeout(now);
            assert_eq!((bench.counts.retransmitted, bench.flush()), (1, 1));
        }
    }

    #[test]
    fn reports_of_a_peer_that_does_not_repeat_them_have_a_packet_copied_once_in_ten_milliseconds() {
        let mut bench = Bench::new(false);
        bench.queue(1_000, START);
        for millis in 0..100 {
            (0..5).for_each(|_| bench.report(0, 999, START + Duration::from_millis(millis)));
            bench.flush();
        }
        assert_eq!(bench.counts.retransmitted, 10 * 1_000);
    }
}
