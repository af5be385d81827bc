//! One connection: the caller's handshake, and what both roles do once it is established (draft-sharabayko-srt-01, section 4).

mod call;

use crate::agreement::{Agreement, ConnectionEvent, ConnectionOptions, Disconnect};
use crate::encryption::Keys;
use crate::handshake::{
    self, CONCLUSION, Capabilities, FLAG_HSREQ, FLAG_KMREQ, Handshake, SRT_VERSION, capability,
};
use crate::outbox::{Content, Outbox};
use crate::packet::{Control, ControlHeader, HEADER_LENGTH, MOST_PAYLOAD, Packet};
use crate::receiver::{FIRST_WINDOW, MOST_WINDOW, Receiver, SYN};
use crate::round_trip::RoundTrip;
use crate::sender::Sender;
use crate::sequence::SequenceNumber;
use crate::statistics::Statistics;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;
use weir_metrics::Moment;

/// When a handshake is said again that was not answered, as libsrt does.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// "The default timeout for a keep-alive packet to be sent is 1 second" (section 3.2.3).
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Bytes of IP and UDP in a packet, which the MTU contains.
const IP_AND_UDP: u32 = 28;
/// The smallest MTU that libsrt takes.
const LEAST_MTU: u32 = 76;

#[derive(Debug)]
enum Phase {
    /// Asks for a cookie.
    Induction,
    /// Has one.
    Conclusion,
    Connected(Box<Transfer>),
    Over,
}

/// What there is once a connection is established.
#[derive(Debug)]
struct Transfer {
    agreement: Agreement,
    receiver: Receiver,
    sender: Sender,
    /// Keys of what comes.
    keys: Option<Keys>,
    /// When to acknowledge and to deliver next.
    tick: Moment,
}

/// A connection, as a state machine.
#[derive(Debug)]
pub struct Connection {
    options: ConnectionOptions,
    phase: Phase,
    /// When it began: its timestamps count from here.
    began: Moment,
    socket: u32,
    peer_socket: u32,
    initial: SequenceNumber,
    peer_address: [u8; 16],
    cookie: u32,
    /// Keys that a caller has made.
    offered: Option<Keys>,
    /// The answer of a listener, which is said again when it is asked again.
    answer: Vec<u8>,
    said_at: Moment,
    heard_at: Moment,
    round_trip: RoundTrip,
    outbox: Outbox,
    events: VecDeque<ConnectionEvent>,
    counts: Statistics,
    /// Whether acknowledgements are kept back, as a server with a fault does.
    withholds: bool,
    scratch: Vec<u8>,
}

impl Connection {
    /// A caller. `random` makes its socket and its first number: equal ones make equal handshakes.
    pub fn call(options: ConnectionOptions, peer: IpAddr, random: u64, now: Moment) -> Self {
        let offered = options.encryption.as_ref().and_then(Keys::generate);
        let mut caller = Self {
            phase: Phase::Induction,
            began: now,
            //= draft-sharabayko-srt-01, section 4.3.1.1
            //# The Destination Socket ID in this message is 0, which is interpreted as a connection request.
            peer_socket: 0,
            socket: socket_of(random),
            initial: SequenceNumber::new(random as u32),
            peer_address: handshake::address_field(peer),
            cookie: 0,
            offered,
            answer: Vec::new(),
            said_at: now,
            heard_at: now,
            round_trip: RoundTrip::default(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            counts: Statistics::default(),
            withholds: false,
            scratch: Vec::new(),
            options,
        };
        caller.ask(now);
        caller
    }

    /// The connection that a listener has accepted: the capabilities of the caller, its handshake's timestamp, and its keys.
    pub(crate) fn accepted(
        options: ConnectionOptions,
        socket: u32,
        request: &Handshake,
        timestamp: u32,
        keys: Option<Keys>,
        now: Moment,
    ) -> Self {
        let said = request.capabilities.unwrap_or_default();
        let mut accepted = Self {
            phase: Phase::Over,
            began: now,
            socket,
            peer_socket: request.socket,
            // As libsrt's listeners, which send with the caller's number.
            initial: request.initial_sequence_number,
            peer_address: request.address,
            cookie: 0,
            offered: None,
            answer: Vec::new(),
            said_at: now,
            heard_at: now,
            round_trip: RoundTrip::default(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            counts: Statistics::default(),
            withholds: false,
            scratch: Vec::new(),
            options,
        };
        let (receive, send) = accepted.latencies(&said);
        let response = Handshake {
            version: 5,
            encryption: request.encryption,
            extension: FLAG_HSREQ | if keys.is_some() { FLAG_KMREQ } else { 0 },
            initial_sequence_number: accepted.initial,
            mtu: accepted.options.mtu.min(request.mtu),
            flow_window: FIRST_WINDOW,
            handshake_type: CONCLUSION,
            socket,
            address: request.address,
            capabilities: Some(Capabilities {
                version: SRT_VERSION,
                flags: capability::OURS,
                receive_delay: millis(receive),
                send_delay: millis(send),
            }),
            //= draft-sharabayko-srt-01, section 6.1.5
            //# The responder returns the same KM message to show that it has the same information as the initiator
            key_material: keys.as_ref().and(request.key_material.clone()),
            ..Handshake::default()
        };
        response.write(false, &mut accepted.answer);
        accepted.establish(request, timestamp, keys, (receive, send), now);
        accepted.repeat_answer(now);
        accepted
    }

    /// The socket that [`Self::call`] makes of a random number.
    pub fn socket_of(random: u64) -> u32 {
        socket_of(random)
    }

    /// This side's socket: where datagrams of this connection go.
    pub fn socket(&self) -> u32 {
        self.socket
    }

    /// The caller's socket, of a connection that was accepted.
    pub fn peer_socket(&self) -> u32 {
        self.peer_socket
    }

    /// What was agreed on, once it is established.
    pub fn agreement(&self) -> Option<Agreement> {
        match &self.phase {
            Phase::Connected(transfer) => Some(transfer.agreement),
            _ => None,
        }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// What it has counted.
    pub fn statistics(&self) -> &Statistics {
        &self.counts
    }

    /// The round trip, as it is known here.
    pub fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }

    /// Media that is held and not yet due.
    pub fn held(&self) -> Duration {
        match &self.phase {
            Phase::Connected(transfer) => transfer.receiver.held(),
            _ => Duration::ZERO,
        }
    }

    /// Bytes that are held for packets in both directions and for datagrams that wait to be sent.
    pub fn held_bytes(&self) -> usize {
        let windows = match &self.phase {
            Phase::Connected(transfer) => transfer.sender.bytes() + transfer.receiver.bytes(),
            _ => 0,
        };
        windows + self.outbox.bytes()
    }

    /// Packets that wait to be sent or acknowledged.
    pub fn unacknowledged(&self) -> usize {
        match &self.phase {
            Phase::Connected(transfer) => transfer.sender.len(),
            _ => 0,
        }
    }

    /// A datagram of the peer came.
    pub fn handle_datagram(&mut self, bytes: &[u8], now: Moment) {
        let Ok(packet) = Packet::parse(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        let is_handshake = matches!(packet, Packet::Control(_, Control::Handshake(_)));
        if packet.destination() != self.socket && !(is_handshake && packet.destination() == 0) {
            self.counts.malformed += 1;
            return;
        }
        self.heard_at = now;
        match packet {
            Packet::Data(header, payload) => {
                let Phase::Connected(transfer) = &mut self.phase else { return };
                let keys = transfer.keys.as_ref();
                let reaction = transfer.receiver.take(&header, payload, now, &mut self.counts, |payload| {
                    keys.is_some_and(|keys| keys.apply(header.key, header.sequence_number, payload))
                });
                let header = self.header(now);
                let Phase::Connected(transfer) = &mut self.phase else { return };
                if let Some((first, last)) = reaction.gap {
                    //= draft-sharabayko-srt-01, section 4.8.2
                    //# The NAK packet sending can be triggered immediately after a gap in sequence numbers of
                    //# data packets is detected.
                    self.outbox.add(Content::LossReport, |out| {
                        header.nak(out);
                        crate::loss_report::write(first, last, out);
                    });
                    transfer.receiver.on_loss_reported(now, &self.round_trip);
                    self.said_at = now;
                }
                if reaction.light_ack && !self.withholds {
                    let ack = transfer.receiver.light_acknowledgement();
                    self.outbox.add(Content::Other, |out| header.ack(&ack, out));
                    self.said_at = now;
                }
            }
            Packet::Control(header, control) => self.on_control(header, control, now),
        }
    }

    fn on_control(&mut self, from: ControlHeader, control: Control<'_>, now: Moment) {
        if let Control::Handshake(field) = control {
            return match Handshake::parse(field) {
                Ok(said) => self.on_handshake(&said, from.timestamp, now),
                Err(_) => self.counts.malformed += 1,
            };
        }
        let header = self.header(now);
        let Phase::Connected(transfer) = &mut self.phase else { return };
        transfer.receiver.on_timestamp(from.timestamp);
        let (counts, outbox) = (&mut self.counts, &mut self.outbox);
        match control {
            Control::Ack(ack) => {
                counts.acknowledgements_received += 1;
                let [time, variance, room] = ack.state.map_or([None; 3], |state| state.map(Some));
                transfer.sender.on_acknowledgement(ack.next, room, now);
                if ack.number != 0 {
                    //= draft-sharabayko-srt-01, section 4.8
                    //# Upon receiving the full acknowledgment (ACK) control packet, the SRT sender SHOULD acknowledge
                    //# its reception to the receiver by sending an ACKACK control packet
                    outbox.add(Content::Other, |out| header.ack_ack(ack.number, out));
                    self.said_at = now;
                    // Who receives data measures by its own acknowledgements.
                    if let (Some(time), Some(variance), 0) = (time, variance, counts.received) {
                        self.round_trip.set(time, variance);
                    }
                }
                transfer.sender.pump(header.destination, now, outbox, counts);
            }
            Control::AckAck(number) => {
                if let Some(round_trip) = transfer.receiver.on_ack_ack(number, from.timestamp, now) {
                    self.round_trip.measure(round_trip);
                }
            }
            Control::Nak(report) => {
                counts.loss_reports_received += 1;
                let to = (header.timestamp, header.destination);
                transfer.sender.on_loss_report(report, to, &self.round_trip, now, outbox, counts);
                self.said_at = now;
            }
            Control::DropRequest { last, .. } => transfer.receiver.on_drop_request(last),
            Control::Shutdown => self.end(Disconnect::Shutdown),
            Control::KeyMaterialRequest(message) => {
                let taken = transfer.keys.as_mut().and_then(|keys| keys.refresh(message).ok());
                if let Some(new) = taken {
                    counts.key_refreshes += new;
                    outbox.add(Content::Other, |out| header.key_material(false, message, out));
                    self.said_at = now;
                } else {
                    counts.malformed += 1;
                }
            }
            Control::KeyMaterialResponse(message) => transfer.sender.on_key_material_response(message),
            Control::KeepAlive | Control::CongestionWarning | Control::PeerError(_) | Control::Unknown(_) => {
            }
            Control::Handshake(_) => {}
        }
    }

    /// How long what is received and what is sent is held: "the maximum value of latencies proposed by the initiator and responder"
    /// (section 4.4).
    fn latencies(&self, said: &Capabilities) -> (Duration, Duration) {
        let of = |millis: u16| Duration::from_millis(u64::from(millis));
        let receive = self.options.receive_latency.max(of(said.send_delay));
        let send = self.options.send_latency.max(of(said.receive_delay));
        (receive, send)
    }

    fn establish(
        &mut self,
        said: &Handshake,
        timestamp: u32,
        keys: Option<Keys>,
        (receive_latency, send_latency): (Duration, Duration),
        now: Moment,
    ) {
        let capabilities = said.capabilities.unwrap_or_default();
        let mtu = self.options.mtu.min(said.mtu).max(LEAST_MTU);
        let agreement = Agreement {
            receive_latency,
            send_latency,
            peer_version: capabilities.version,
            encryption: keys.as_ref().map(Keys::length),
            most_payload: (mtu as usize - IP_AND_UDP as usize - HEADER_LENGTH).min(MOST_PAYLOAD),
        };
        let has_reports = capabilities.flags & capability::PERIODIC_NAK != 0;
        let window = said.flow_window.clamp(2, MOST_WINDOW as u32);
        let mut sender = Sender::new(self.initial, window, send_latency, has_reports, now);
        if let (Some(keys), Some(encryption)) = (&keys, &self.options.encryption) {
            sender.encrypt(keys.clone(), encryption);
        }
        let receiver = Receiver::new(said.initial_sequence_number, timestamp, receive_latency, now);
        let tick = now + SYN;
        self.phase = Phase::Connected(Box::new(Transfer { agreement, receiver, sender, keys, tick }));
        self.events.push_back(ConnectionEvent::Connected(agreement));
    }

    /// Sends a payload. Whether it was taken: the connection is established, and the payload is no longer than was agreed on.
    pub fn send(&mut self, payload: &[u8], now: Moment) -> bool {
        let header = self.header(now);
        let Phase::Connected(transfer) = &mut self.phase else { return false };
        if payload.is_empty() || payload.len() > transfer.agreement.most_payload {
            return false;
        }
        transfer.sender.queue(payload, header.timestamp, &self.round_trip, now, &mut self.counts);
        transfer.sender.pump(header.destination, now, &mut self.outbox, &mut self.counts);
        self.announce(now);
        self.said_at = now;
        true
    }

    fn announce(&mut self, now: Moment) {
        let header = self.header(now);
        let Phase::Connected(transfer) = &mut self.phase else { return };
        if let Some(message) = transfer.sender.announcement(now) {
            self.outbox.add(Content::Other, |out| header.key_material(true, &message, out));
        }
    }

    /// Keeps acknowledgements back from now on, or no more. The peer is told of nothing else.
    pub fn withhold_acknowledgements(&mut self, withholds: bool) {
        self.withholds = withholds;
    }

    /// Hands out the payloads that are due, in order. Called after each event.
    pub fn deliver(&mut self, now: Moment, take: &mut dyn FnMut(&[u8])) {
        if let Phase::Connected(transfer) = &mut self.phase {
            transfer.receiver.deliver(now, &mut self.counts, take);
        }
    }

    /// Ends the connection: the peer is told, and nothing more is said or heard.
    pub fn close(&mut self, now: Moment) {
        if let Phase::Connected(_) = self.phase {
            let header = self.header(now);
            self.outbox.add(Content::Other, |out| header.shutdown(out));
        }
        self.phase = Phase::Over;
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Moment) {
        match self.phase {
            Phase::Induction | Phase::Conclusion if self.said_at + ASK_AGAIN <= now => self.ask(now),
            Phase::Induction | Phase::Conclusion | Phase::Over => {}
            //= draft-sharabayko-srt-01, section 4.3
            //# or when it receives no packets at all for some predefined time (connection broken on timeout).
            Phase::Connected(_) if self.heard_at + self.options.idle_timeout <= now => {
                self.end(Disconnect::Silent);
            }
            Phase::Connected(_) => self.work(now),
        }
    }

    fn work(&mut self, now: Moment) {
        let header = self.header(now);
        let Phase::Connected(transfer) = &mut self.phase else { return };
        let (counts, outbox) = (&mut self.counts, &mut self.outbox);
        let mut has_said = false;
        if transfer.tick <= now {
            transfer.tick = (transfer.tick + SYN).max(now + SYN / 2);
            if let Some(ack) = transfer.receiver.acknowledge(now, &self.round_trip) {
                if self.withholds {
                    counts.acknowledgements_withheld += 1;
                } else {
                    outbox.add(Content::FullAcknowledgement, |out| header.ack(&ack, out));
                    has_said = true;
                }
            }
            if transfer.receiver.nak_is_due(now, &self.round_trip) {
                self.scratch.clear();
                transfer.receiver.write_losses(&mut self.scratch);
                if !self.scratch.is_empty() {
                    outbox.add(Content::LossReport, |out| {
                        header.nak(out);
                        out.extend_from_slice(&self.scratch);
                    });
                    has_said = true;
                }
            }
        }
        has_said |= transfer.sender.handle_timeout(header.destination, &self.round_trip, now, outbox, counts);
        transfer.sender.pump(header.destination, now, outbox, counts);
        if has_said {
            self.said_at = now;
        } else if self.said_at + KEEP_ALIVE <= now {
            outbox.add(Content::Other, |out| header.keep_alive(out));
            self.said_at = now;
        }
        self.announce(now);
    }

    /// When [`Self::handle_timeout`] and [`Self::deliver`] are to be called.
    pub fn poll_timeout(&self) -> Option<Moment> {
        match &self.phase {
            Phase::Over => None,
            Phase::Induction | Phase::Conclusion => Some(self.said_at + ASK_AGAIN),
            Phase::Connected(transfer) => {
                let tick = transfer.receiver.needs_time().then_some(transfer.tick);
                let alive = Some(self.said_at + KEEP_ALIVE);
                let idle = Some(self.heard_at + self.options.idle_timeout);
                [tick, transfer.sender.poll_timeout(&self.round_trip), alive, idle]
                    .into_iter()
                    .flatten()
                    .min()
            }
        }
    }

    /// What has happened.
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.pop_front()
    }

    /// Hands out what is to be sent to the peer: datagrams of one length each, of which the last may be shorter. `send` says how many of
    /// them the system took, the first ones. The others are lost, as on any link; they are counted nowhere as sent, and what is lost of
    /// them to the stream is no fault of the peer.
    pub fn flush(&mut self, send: &mut dyn FnMut(&[u8], usize) -> usize) {
        let (phase, counts) = (&mut self.phase, &mut self.counts);
        self.outbox.flush(send, &mut |content, length| {
            match content {
                Content::LossReport => counts.loss_reports_sent += 1,
                Content::FullAcknowledgement => counts.acknowledgements_sent += 1,
                Content::Original(_) | Content::Copy(_) | Content::Other => {}
            }
            match phase {
                Phase::Connected(transfer) => transfer.sender.on_taken(content, length, counts),
                // The last words of a connection.
                _ => counts.count_packet(content),
            }
        });
    }

    /// Whether the caller should ask its socket what it still holds, and say so by [`Self::on_unsent`]: something that was sent was not
    /// acknowledged for a while, and may not even have left.
    pub fn asks_for_unsent(&self, now: Moment) -> bool {
        match &self.phase {
            Phase::Connected(transfer) => transfer.sender.asks_for_unsent(now),
            _ => false,
        }
    }

    /// The socket holds this many bytes that it has taken and not sent. What is given up while it lies there, or was there for most of its
    /// time, is no fault of the peer.
    pub fn on_unsent(&mut self, bytes: u64, now: Moment) {
        if let Phase::Connected(transfer) = &mut self.phase {
            transfer.sender.on_unsent(bytes, now);
        }
    }

    /// The socket has taken this many bytes in all, of all connections that share it. Called before [`Self::flush`] and [`Self::on_unsent`] of a
    /// socket that is shared.
    pub fn on_given(&mut self, bytes: u64) {
        if let Phase::Connected(transfer) = &mut self.phase {
            transfer.sender.on_given(bytes);
        }
    }

    fn header(&self, now: Moment) -> ControlHeader {
        ControlHeader { timestamp: now.since(self.began).as_micros() as u32, destination: self.peer_socket }
    }

    fn end(&mut self, why: Disconnect) {
        self.phase = Phase::Over;
        self.events.push_back(ConnectionEvent::Ended(why));
    }

    fn repeat_answer(&mut self, now: Moment) {
        let header = self.header(now);
        self.outbox.add(Content::Other, |out| {
            header.handshake(out);
            out.extend_from_slice(&self.answer);
        });
        self.said_at = now;
    }
}

/// A socket's number: not 0, which means a listener, and with the bit clear that libsrt has for groups.
pub(crate) fn socket_of(random: u64) -> u32 {
    ((random >> 32) as u32 & 0x3FFF_FFFF).max(1)
}

fn millis(span: Duration) -> u16 {
    span.as_millis().min(u128::from(u16::MAX)) as u16
}
