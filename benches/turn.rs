//! What a relayed datagram costs a viewer before it is looked at, beside `turn-client-proto`: bytes of the link to the
//! TURN server in, datagram and peer out.
//!
//! Both sides have made the same allocation and the same channel. Over TCP, reads have 16 datagrams, and the last one of a
//! read is cut as often as not; over UDP each datagram is one. The library is driven in two ways: given what was read, as
//! its documentation says; and given one whole frame at a time, which weir has cut out of what was read. Printed are
//! medians of the rounds, which take turns, in CPU time of this thread, and allocations counted in a round of their own.
//! Last comes how many datagrams arrive whose length is no multiple of four, which channel data over TCP is filled up to
//! (RFC 8656 section 12.5).

use std::hint::black_box;
use std::net::SocketAddr;

use rustix::time::{ClockId, clock_gettime};
use turn_client_proto::api::{TurnConfig, TurnRecvRet};
use turn_client_proto::prelude::TurnClientApi;
use turn_client_proto::stun::Instant;
use turn_client_proto::stun::agent::Transmit;
use turn_client_proto::tcp::TurnClientTcp;
use turn_client_proto::types::attribute::{Lifetime, XorRelayedAddress};
use turn_client_proto::types::message::ALLOCATE;
use turn_client_proto::types::stun::attribute::{ErrorCode, Nonce, Realm, Username};
use turn_client_proto::types::stun::message::{IntegrityAlgorithm, Message, MessageWriteVec};
use turn_client_proto::types::stun::prelude::{MessageWrite, MessageWriteExt};
use turn_client_proto::types::{TransportType, TurnCredentials};
use turn_client_proto::udp::TurnClientUdp;
use weir_metrics::Moment;
use weir_rtc::turn::{Carrier, Client, Frame, Frames};

const PACKETS: usize = 400_000;
const ROUNDS: usize = 9;
/// Of a stream of 1 Mbit/s, protected.
const LENGTH: usize = 1064;
/// Datagrams of a read.
const TOGETHER: usize = 16;
const CHANNEL: [u8; 2] = [0x40, 0];

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (packets, rounds) = if quick { (PACKETS / 100, 1) } else { (PACKETS, ROUNDS) };
    let mut rows: Vec<Row> = vec![
        ("TCP, weir", Box::new(|packets| ours(&reads(LENGTH), packets, Carrier::Tcp))),
        ("TCP, library", Box::new(|packets| theirs(&reads(LENGTH), packets, false))),
        ("TCP, weir's frames, library", Box::new(|packets| theirs(&reads(LENGTH), packets, true))),
        ("UDP, weir", Box::new(|packets| ours(&datagrams(LENGTH), packets, Carrier::Udp))),
        ("UDP, library", Box::new(|packets| theirs_by_datagram(&datagrams(LENGTH), packets))),
    ];
    let mut seconds = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for ((_, row), seconds) in rows.iter_mut().zip(&mut seconds) {
            let round = row(packets);
            assert_eq!(round.received, packets);
            seconds.push(round.seconds);
        }
    }
    println!("{:<32} {:>10} {:>20}", "", "ns/packet", "allocations/packet");
    for ((name, row), mut seconds) in rows.iter_mut().zip(seconds) {
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2] * 1e9 / packets as f64;
        let allocations = row(packets.min(PACKETS / 10)).allocations / packets.min(PACKETS / 10) as f64;
        println!("{name:<32} {median:>10.1} {allocations:>20.2}");
    }
    let (link, sent) = (reads(LENGTH + 1), 1_600);
    println!(
        "of {sent} datagrams of {} bytes over TCP arrive: weir {}, library {}",
        LENGTH + 1,
        ours(&link, sent, Carrier::Tcp).received,
        theirs(&link, sent, false).received
    );
}

/// A name, and what receives a number of packets.
type Row = (&'static str, Box<dyn FnMut(usize) -> Round>);

/// What came of a round.
struct Round {
    received: usize,
    seconds: f64,
    allocations: f64,
}

impl Round {
    fn of(work: impl FnOnce() -> usize) -> Self {
        let (mut received, mut seconds) = (0, 0.0);
        let info = allocation_counter::measure(|| {
            let started = thread_cpu();
            received = work();
            seconds = thread_cpu() - started;
        });
        Self { received, seconds, allocations: info.count_total as f64 }
    }
}

fn channel_data(length: usize, number: usize) -> Vec<u8> {
    let mut bytes = CHANNEL.to_vec();
    bytes.extend((length as u16).to_be_bytes());
    bytes.resize(4 + length, number as u8);
    bytes
}

/// Two reads, which together have 32 datagrams: the first ends within one.
fn reads(length: usize) -> Vec<Vec<u8>> {
    let mut first = Vec::new();
    for number in 0..2 * TOGETHER {
        first.extend(channel_data(length, number));
        first.resize(first.len().next_multiple_of(4), 0);
    }
    let second = first.split_off(first.len() / 2 + length / 2);
    vec![first, second]
}

fn datagrams(length: usize) -> Vec<Vec<u8>> {
    (0..TOGETHER).map(|number| channel_data(length, number)).collect()
}

/// By weir's client.
fn ours(reads: &[Vec<u8>], packets: usize, carrier: Carrier) -> Round {
    let (now, mut out) = (Moment::from_nanos(1), Vec::new());
    let (mut client, mut frames) = (Client::new("user", "word", carrier), Frames::default());
    client.begin(now, &mut out);
    for step in 0..4 {
        let asked = std::mem::take(&mut out);
        let mut answers = messages(&asked);
        for answer in &mut answers {
            client.receive(now, answer, &mut out).expect("an answer");
        }
        if step == 1 {
            client.bind(now, peer(), &mut out);
        }
    }
    let mut room: Vec<Vec<u8>> = reads.to_vec();
    Round::of(|| {
        let mut received = 0;
        let mut give = |frame: Frame<'_>| {
            let Frame::Channel(number, bytes) = frame else { return };
            let Some(peer) = client.peer_of(number) else { return };
            black_box((peer, bytes));
            received += 1;
        };
        for _ in 0..packets / TOGETHER / if carrier == Carrier::Udp { 1 } else { room.len() } {
            for read in &mut room {
                if carrier == Carrier::Udp {
                    Frame::of_datagram(read).map(&mut give);
                    continue;
                }
                let mut input = &mut read[..];
                while let Ok(Some(frame)) = frames.take(&mut input) {
                    give(frame);
                }
            }
        }
        received
    })
}

/// Answers to all messages that stand there.
fn messages(asked: &[u8]) -> Vec<Vec<u8>> {
    let (mut bytes, mut frames) = (asked.to_vec(), Frames::default());
    let (mut input, mut answers) = (&mut bytes[..], Vec::new());
    while let Some(Frame::Message(message)) = frames.take(&mut input).expect("frames") {
        answers.push(answer(message));
    }
    answers
}

fn theirs(reads: &[Vec<u8>], packets: usize, framed: bool) -> Round {
    let config = TurnConfig::new(TurnCredentials::new("user", "word"));
    let mut client = TurnClientTcp::allocate(local(), server(), config);
    bind(&mut client, TransportType::Tcp);
    let (now, mut passes) = (Instant::ZERO, packets / (2 * TOGETHER));
    let mut kept = Vec::new();
    Round::of(|| {
        let mut received = 0;
        while passes > 0 {
            passes -= 1;
            for read in reads {
                if framed {
                    each_frame(&mut kept, read, |frame| {
                        received += receive(&mut client, TransportType::Tcp, frame, now);
                    });
                    continue;
                }
                received += receive(&mut client, TransportType::Tcp, read, now);
                while let Some(data) = client.poll_recv(now) {
                    black_box((data.peer, data.data()));
                    received += 1;
                }
            }
        }
        received
    })
}

/// Gives whole frames with their headers, cut out as [`Frames`] would.
fn each_frame(kept: &mut Vec<u8>, mut input: &[u8], mut give: impl FnMut(&[u8])) {
    let lengths = |bytes: &[u8]| {
        let length = 4 + usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
        Some((length, length.next_multiple_of(4)))
    };
    while !input.is_empty() {
        if kept.is_empty()
            && let Some((length, padded)) = lengths(input)
            && padded <= input.len()
        {
            give(&input[..length]);
            input = &input[padded..];
            continue;
        }
        let wanted = lengths(kept).map_or(4, |(_, padded)| padded);
        let (taken, rest) = input.split_at((wanted - kept.len()).min(input.len()));
        kept.extend_from_slice(taken);
        input = rest;
        if let Some((length, padded)) = lengths(kept)
            && kept.len() == padded
        {
            give(&kept[..length]);
            kept.clear();
        }
    }
}

fn theirs_by_datagram(datagrams: &[Vec<u8>], packets: usize) -> Round {
    let config = TurnConfig::new(TurnCredentials::new("user", "word"));
    let mut client = TurnClientUdp::allocate(local(), server(), config);
    bind(&mut client, TransportType::Udp);
    Round::of(|| {
        (0..packets)
            .map(|number| {
                let datagram = &datagrams[number % datagrams.len()];
                receive(&mut client, TransportType::Udp, datagram, Instant::ZERO)
            })
            .sum()
    })
}

#[inline]
fn receive(client: &mut impl TurnClientApi, transport: TransportType, bytes: &[u8], now: Instant) -> usize {
    match client.recv(Transmit::new(bytes, transport, server(), local()), now) {
        TurnRecvRet::PeerData(data) => {
            black_box((data.peer, data.data()));
            1
        }
        _ => 0,
    }
}

/// Makes an allocation with one channel.
fn bind(client: &mut impl TurnClientApi, transport: TransportType) {
    let mut now = Instant::ZERO;
    for step in 0..6 {
        now += std::time::Duration::from_millis(100);
        let _ = client.poll(now);
        while let Some(transmit) = client.poll_transmit(now) {
            let answer = answer(&transmit.data);
            let _ = client.recv(Transmit::new(&answer[..], transport, server(), local()), now);
        }
        if step == 3 {
            client.bind_channel(TransportType::Udp, peer(), now).expect("an allocation");
        }
    }
}

/// What a server says to a request.
fn answer(asked: &[u8]) -> Vec<u8> {
    let asked = Message::from_bytes(asked).expect("a message");
    if asked.attribute::<Username>().is_err() {
        let mut refusal = Message::builder_error(&asked, MessageWriteVec::new());
        let code = ErrorCode::builder(ErrorCode::UNAUTHORIZED).build().expect("a code");
        refusal.add_attribute(&Realm::new("weir").expect("a realm")).expect("room");
        refusal.add_attribute(&Nonce::new("nonce").expect("a nonce")).expect("room");
        refusal.add_attribute(&code).expect("room");
        return refusal.finish();
    }
    let mut consent = Message::builder_success(&asked, MessageWriteVec::new());
    if asked.method() == ALLOCATE {
        let relayed =
            XorRelayedAddress::new("192.0.2.1:49152".parse().expect("an address"), asked.transaction_id());
        consent.add_attribute(&relayed).expect("room");
        consent.add_attribute(&Lifetime::new(600)).expect("room");
    }
    let key = TurnCredentials::new("user", "word").into_long_term_credentials("weir");
    consent.add_message_integrity(&key.into(), IntegrityAlgorithm::Sha1).expect("room");
    consent.finish()
}

fn server() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 3478))
}

fn local() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 4000))
}

fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 3], 5000))
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
