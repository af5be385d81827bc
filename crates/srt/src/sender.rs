//! The sending side: packets are kept until they are acknowledged or too late, and sent again when they are reported missing
//! (draft-sharabayko-srt-01, sections 4.6 and 4.8).

mod outgoing_keys;
mod peer_room;

use crate::departures::{Departure, Departures};
use crate::encryption::{Encryption, Keys};
use crate::loss_report::LossReport;
use crate::outbox::{Content, Outbox};
use crate::pacer::Pacer;
use crate::packet::{ControlHeader, DataHeader, MOST_PAYLOAD};
use crate::receiver::{MOST_BYTES, MOST_WINDOW, SYN};
use crate::round_trip::RoundTrip;
use crate::sequence::SequenceNumber;
use crate::statistics::Statistics;
use outgoing_keys::OutgoingKeys;
use peer_room::PeerRoom;
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
/// What is not acknowledged for longer may lie in this side's socket.
const UNACKNOWLEDGED_FOR: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct UnacknowledgedPacket {
    payload: Vec<u8>,
    timestamp: u32,
    queued: Moment,
    /// When it could have left: when it was queued, later by the time for which the peer had no room. While it waits, by the clock of
    /// [`PeerRoom`]; when it is written that time is over.
    due: Moment,
    message_number: u32,
    key: u8,
    /// When it was sent again last.
    resent: Option<Moment>,
    /// Where its first copy stands in all that the socket has taken, and its last one; 0 while it has taken none.
    position: u64,
    last_position: u64,
    /// A copy was written that the socket has not taken.
    is_refused: bool,
}

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    /// The number of the first packet that is kept.
    start: SequenceNumber,
    kept: VecDeque<UnacknowledgedPacket>,
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
    peer_room: PeerRoom,
    departures: Departures,
    /// When the peer acknowledged or missed something last.
    heard: Option<Moment>,
    /// What was queued up to this moment may be kept because the peer lacks one before it that never left.
    lacking_until: Option<Moment>,
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
            peer_room: PeerRoom::default(),
            departures: Departures::default(),
            heard: None,
            lacking_until: None,
        }
    }

    pub(crate) fn encrypt(&mut self, keys: Keys, encryption: &Encryption) {
        self.keys = Some(OutgoingKeys::new(keys, encryption));
    }

    /// Bytes that are held for packets which wait to be sent or acknowledged, and for those to come.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
            + self.spare.iter().map(Vec::capacity).sum::<usize>()
            + self.kept.capacity() * size_of::<UnacknowledgedPacket>()
    }

    /// Packets that wait to be sent or acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Takes a payload, to be sent when its turn has come and the peer has room for it.
    pub(crate) fn queue(
        &mut self,
        payload: &[u8],
        timestamp: u32,
        round_trip: &RoundTrip,
        now: Moment,
        counts: &mut Statistics,
    ) {
        self.note_room(now);
        while self.kept.len() >= MOST_WINDOW || self.bytes + payload.len() > MOST_BYTES {
            self.drop_front(round_trip, now, counts);
        }
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(&payload[..payload.len().min(MOST_PAYLOAD)]);
        self.bytes += buffer.capacity();
        self.waiting += buffer.len();
        self.pacer.queued(buffer.len(), now);
        self.message_number = self.message_number % MESSAGES + 1;
        self.kept.push_back(UnacknowledgedPacket {
            payload: buffer,
            timestamp,
            queued: now,
            due: self.peer_room.by_own_clock(now),
            message_number: self.message_number,
            key: 0,
            resent: None,
            position: 0,
            last_position: 0,
            is_refused: false,
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
        self.note_room(now);
        if self.sent >= self.kept.len().min(self.window) {
            return;
        }
        self.pacer.advance(self.waiting, self.kept.back().map_or(now, |newest| newest.queued), now);
        while self.sent < self.kept.len().min(self.window) && !outbox.is_full() {
            let number = self.start.plus(self.sent as u32);
            let packet = &mut self.kept[self.sent];
            if !self.pacer.allows(packet.queued) {
                return;
            }
            packet.due = self.peer_room.by_true_clock(packet.due);
            self.waiting -= packet.payload.len();
            self.pacer.sent(packet.payload.len());
            let mut is_ready = true;
            if let Some(keys) = &mut self.keys {
                (packet.key, is_ready) = keys.apply(number, &mut packet.payload, counts);
            }
            if is_ready {
                write(packet, number, destination, outbox);
            } else {
                // Without a key nothing leaves: it would be readable. The peer finds it missing, and gets nothing either.
                packet.payload.clear();
                packet.key = 0;
                counts.send_discarded += 1;
            }
            self.sent += 1;
            self.progress = now;
        }
        self.note_room(now);
    }

    /// Notes up to now whether the peer has room.
    fn note_room(&mut self, now: Moment) {
        let is_full = self.sent >= self.window && self.sent < self.kept.len();
        // The peer makes room when it has the first packet that it lacks.
        let front = self.kept.front().filter(|_| self.sent > 0);
        let is_here = || {
            front.is_some_and(|packet| {
                packet.position == 0 || self.departures.of(packet.position, now) == Departure::Waits
            })
        };
        self.peer_room.note(is_full, is_here, now);
    }

    /// This side's socket has taken a datagram.
    pub(crate) fn on_taken(&mut self, content: Content, length: usize, counts: &mut Statistics) {
        let position = self.departures.give(length);
        let (Content::Original(number) | Content::Copy(number)) = content else { return };
        let place = usize::try_from(number.since(self.start)).ok();
        let Some(packet) = place.and_then(|place| self.kept.get_mut(place)) else {
            return counts.count_packet(content);
        };
        // Two copies of one that had not left may be on their way out together.
        if packet.position > 0 {
            counts.retransmitted += 1;
        } else {
            packet.position = position;
            counts.sent += 1;
        }
        (packet.last_position, packet.is_refused) = (position, false);
    }

    /// Whether the socket is to be asked what it holds: what is not acknowledged may not have left.
    pub(crate) fn asks_for_unsent(&self, now: Moment) -> bool {
        let is_old = |packet: &UnacknowledgedPacket| packet.queued + UNACKNOWLEDGED_FOR <= now;
        self.sent > 0 && self.kept.front().is_some_and(is_old) && self.departures.asks(now)
    }

    /// What this side's socket was given by all that share it.
    pub(crate) fn on_given(&mut self, bytes: u64) {
        self.departures.given_by_all(bytes);
    }

    /// What this side's socket holds.
    pub(crate) fn on_unsent(&mut self, bytes: u64, now: Moment) {
        self.departures.answer(bytes, now, self.keep_for);
    }

    /// An acknowledgement came: everything before `next` is there.
    pub(crate) fn on_acknowledgement(&mut self, next: SequenceNumber, room: Option<u32>, now: Moment) {
        self.heard = Some(now);
        self.note_room(now);
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

    fn drop_front(&mut self, round_trip: &RoundTrip, now: Moment, counts: &mut Statistics) {
        // One that never left has a number all the same, which the peer finds missing.
        if let Some(packet) = self.kept.front().filter(|packet| !packet.payload.is_empty()) {
            let is_lacking = self.lacking_until.is_some_and(|until| packet.queued <= until);
            if self.was_held_here(packet, now) {
                if packet.position == 0 {
                    // The peer acknowledges what is behind it when it has it, or when its time is over; and says so a round trip later.
                    let until = packet.queued + round_trip.patience().min(self.keep_for);
                    self.lacking_until = self.lacking_until.max(Some(until));
                }
                counts.send_discarded += 1;
            } else if is_lacking {
                counts.send_discarded += 1;
            } else {
                counts.send_dropped += 1;
            }
        }
        self.release();
    }

    /// Whether the first packet that is kept is given up for a reason of this side: it has not left, or had too little time left when it
    /// did, or what was to go out in its place has not left.
    fn was_held_here(&self, packet: &UnacknowledgedPacket, now: Moment) -> bool {
        let due = if self.sent == 0 { self.peer_room.by_true_clock(packet.due) } else { packet.due };
        let is_mostly_ours = 2 * due.since(packet.queued) <= now.since(packet.queued);
        if self.sent == 0 {
            return is_mostly_ours;
        }
        if packet.position == 0 || packet.is_refused {
            return true;
        }
        // A peer of which nothing was heard all the while has not been waiting: what is for a machine that is gone lies in the kernel, too.
        if self.heard.is_none_or(|at| at < packet.queued) {
            return false;
        }
        let is_late = match self.departures.of(packet.position, now) {
            Departure::Left(not_before) => not_before.is_some_and(|at| at.since(due) > self.keep_for / 2),
            Departure::Waits => is_mostly_ours,
            Departure::Unknown => false,
        };
        let is_repeated = packet.last_position != packet.position;
        is_late || is_repeated && self.departures.of(packet.last_position, now) == Departure::Waits
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
        self.heard = Some(now);
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
                outbox.add(Content::Other, |out| header.drop_request(first, last, out));
                continue;
            }
            for place in from.max(0) as usize..self.sent.min(to as usize + 1) {
                let number = self.start.plus(place as u32);
                let packet = &mut self.kept[place];
                if packet.payload.is_empty() || packet.resent.is_some_and(|at| now < at + apart) {
                    continue;
                }
                if outbox.is_full() {
                    // It does not count as sent again, so that the peer's next report has that done at once.
                    break;
                }
                packet.resent = Some(now);
                //= draft-sharabayko-srt-01, section 5.1.2
                //# On sending a data packet (either original or retransmitted)
                self.pacer.sent(packet.payload.len());
                write(packet, number, destination, outbox);
            }
        }
    }

    /// Gives up what is too late, and asks about the last packet if nothing is heard of it. Whether something is sent.
    pub(crate) fn handle_timeout(
        &mut self,
        destination: u32,
        round_trip: &RoundTrip,
        now: Moment,
        outbox: &mut Outbox,
        counts: &mut Statistics,
    ) -> bool {
        self.note_room(now);
        while self.kept.front().is_some_and(|packet| packet.queued + self.keep_for <= now) {
            self.drop_front(round_trip, now, counts);
        }
        let mut has_sent = false;
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
                    break;
                }
                packet.resent = Some(now);
                //= draft-sharabayko-srt-01, section 5.1.2
                //# On sending a data packet (either original or retransmitted)
                self.pacer.sent(packet.payload.len());
                write(packet, number, destination, outbox);
                has_sent = true;
            }
        }
        has_sent
    }

    fn probe_at(&self, round_trip: &RoundTrip) -> Moment {
        //= draft-sharabayko-srt-01, section 5.1.2
        //# RTO = RexmitCount * (RTT + 4 * RTTVar + 2 * SYN) + SYN
        self.progress + (round_trip.patience() + 2 * SYN) * (self.probes + 1) + SYN
    }

    pub(crate) fn poll_timeout(&self, round_trip: &RoundTrip) -> Option<Moment> {
        let drop = self.kept.front().map(|packet| packet.queued + self.keep_for);
        let probe = (self.sent > 0).then(|| self.probe_at(round_trip));
        let announce = self.keys.as_ref().and_then(OutgoingKeys::poll_timeout);
        let may_leave = self.kept.get(self.sent).filter(|_| self.sent < self.window);
        let paced = may_leave.map(|packet| self.pacer.next(packet.queued));
        [drop, probe, announce, paced].into_iter().flatten().min()
    }

    /// A message that announces the next key, if it is time to.
    pub(crate) fn announcement(&mut self, now: Moment) -> Option<Vec<u8>> {
        self.keys.as_mut()?.announcement(now)
    }

    /// The peer has taken the keys of this message.
    pub(crate) fn on_key_material_response(&mut self, message: &[u8]) {
        if let Some(keys) = &mut self.keys {
            keys.on_response(message);
        }
    }
}

fn write(packet: &mut UnacknowledgedPacket, number: SequenceNumber, destination: u32, outbox: &mut Outbox) {
    packet.is_refused = true;
    // One that this side's socket has refused goes out as it would have the first time.
    let retransmitted = packet.position > 0;
    let header = DataHeader {
        sequence_number: number,
        is_whole: true,
        key: packet.key,
        retransmitted,
        message_number: packet.message_number,
        timestamp: packet.timestamp,
        destination,
    };
    let content = if retransmitted { Content::Copy(number) } else { Content::Original(number) };
    outbox.add(content, |out| {
        header.write(out);
        out.extend_from_slice(&packet.payload);
    });
}

#[cfg(test)]
mod tests;
