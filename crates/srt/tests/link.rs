//! A caller and a listener on made-up time, with a seeded link between them that loses, delays and reorders.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;
use weir_emulator::{EmulatedLink, Impairment, Passage};
use weir_metrics::Moment;
use weir_srt::packet::Packet;
use weir_srt::{
    Connection, ConnectionEvent, ConnectionOptions, Disconnect, Encryption, KeyLength, Listener,
    ListenerAnswer, Passphrase, Rejection, Statistics,
};

const CALLER: &str = "127.0.0.1:5000";
const LISTENER: &str = "127.0.0.1:9000";

#[derive(Clone, Copy)]
struct Link {
    loss: f64,
    /// Packets that are lost in a row.
    burst: u32,
    /// One packet in this many is overtaken by three others; 0 for none.
    overtaken: u32,
    round_trip: Duration,
}

const CLEAN: Link = Link { loss: 0.0, burst: 1, overtaken: 0, round_trip: Duration::from_millis(20) };

impl Link {
    fn impairment(self) -> Impairment {
        let overtaken = if self.overtaken > 0 { 1.0 / f64::from(self.overtaken) } else { 0.0 };
        let delay = self.round_trip / 2;
        Impairment { loss: self.loss, burst: self.burst, overtaken, delay, ..Impairment::default() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    /// The caller sends.
    Publish,
    /// The listener sends.
    Play,
}

struct Bench {
    now: Moment,
    emulated: EmulatedLink,
    /// By arrival: what is on its way to the caller (true) or to the listener.
    on_its_way: BTreeMap<(Moment, u64), (bool, Vec<u8>)>,
    serial: u64,
    listener: Listener,
    caller: Connection,
    accepted: Option<Connection>,
    /// Numbers of payloads, of which the link has lost the first copy.
    lost: BTreeSet<u32>,
    delivered: Vec<(u32, Moment)>,
    events: [Vec<ConnectionEvent>; 2],
}

impl Bench {
    fn new(link: Link, caller: ConnectionOptions, listener: ConnectionOptions, random: u64) -> Self {
        let now = Moment::from_nanos(1_000_000_000_000);
        let peer: SocketAddr = LISTENER.parse().unwrap();
        Self {
            now,
            emulated: EmulatedLink::new(link.impairment(), random),
            on_its_way: BTreeMap::new(),
            serial: 0,
            listener: Listener::new(listener, &[7; 32]),
            caller: Connection::call(caller, peer.ip(), random, now),
            accepted: None,
            lost: BTreeSet::new(),
            delivered: Vec::new(),
            events: [Vec::new(), Vec::new()],
        }
    }

    fn flush(&mut self) {
        let mut sent = Vec::new();
        let mut flush = |connection: &mut Connection, to_caller: bool| {
            connection.flush(&mut |bytes, length| {
                sent.extend(bytes.chunks(length).map(|it| (to_caller, it.to_vec())));
                bytes.len().div_ceil(length)
            });
        };
        flush(&mut self.caller, false);
        if let Some(accepted) = &mut self.accepted {
            flush(accepted, true);
        }
        sent.into_iter().for_each(|(to_caller, bytes)| self.carry(to_caller, bytes));
    }

    fn carry(&mut self, to_caller: bool, bytes: Vec<u8>) {
        let passage = self.emulated.carry(bytes.len(), self.now);
        let Passage::Arrives(arrival) = passage else {
            if let Ok(Packet::Data(header, _)) = Packet::parse(&bytes)
                && !header.retransmitted
            {
                // Message numbers begin at 1 and are one a packet.
                self.lost.insert(header.message_number - 1);
            }
            return;
        };
        self.serial += 1;
        self.on_its_way.insert((arrival, self.serial), (to_caller, bytes));
    }

    fn arrive(&mut self, to_caller: bool, bytes: &[u8]) {
        if to_caller {
            return self.caller.handle_datagram(bytes, self.now);
        }
        if let Some(accepted) = &mut self.accepted {
            return accepted.handle_datagram(bytes, self.now);
        }
        let from: SocketAddr = CALLER.parse().unwrap();
        let mut out = Vec::new();
        match self.listener.handle_datagram(from, bytes, self.now, &mut out) {
            ListenerAnswer::Nothing => {}
            ListenerAnswer::Respond => self.carry(true, out),
            ListenerAnswer::Request(request) => match self.listener.accept(&request, 99 << 32, self.now) {
                Ok(accepted) => self.accepted = Some(accepted),
                Err(why) => {
                    self.listener.reject(&request, why, &mut out);
                    self.carry(true, out);
                }
            },
        }
    }

    fn settle(&mut self) {
        let (now, delivered) = (self.now, &mut self.delivered);
        let mut take = |payload: &[u8]| {
            delivered.push((u32::from_be_bytes(*payload.first_chunk().unwrap()), now));
        };
        self.caller.deliver(now, &mut take);
        self.events[0].extend(std::iter::from_fn(|| self.caller.poll_event()));
        if let Some(accepted) = &mut self.accepted {
            accepted.deliver(now, &mut take);
            self.events[1].extend(std::iter::from_fn(|| accepted.poll_event()));
        }
        self.flush();
    }

    /// Lets time pass.
    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        loop {
            let arrival = self.on_its_way.first_key_value().map(|((at, _), _)| *at);
            let deadlines =
                [self.caller.poll_timeout(), self.accepted.as_ref().and_then(Connection::poll_timeout)];
            let next = deadlines.into_iter().flatten().chain(arrival).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            match self.on_its_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                Some(entry) => {
                    let (to_caller, bytes) = entry.remove();
                    self.arrive(to_caller, &bytes);
                }
                None => {
                    self.caller.handle_timeout(self.now);
                    if let Some(accepted) = &mut self.accepted {
                        accepted.handle_timeout(self.now);
                    }
                }
            }
            self.settle();
        }
    }

    fn is_connected(&self) -> bool {
        self.caller.agreement().is_some() && self.accepted.as_ref().is_some_and(|it| it.agreement().is_some())
    }

    /// Sends numbered payloads, one in 5 ms, and waits for the last of them.
    fn transfer(&mut self, direction: Direction, count: u32, length: usize) {
        for number in 0..count {
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(length, 0xA5);
            let sender = match direction {
                Direction::Publish => &mut self.caller,
                Direction::Play => self.accepted.as_mut().unwrap(),
            };
            assert!(sender.send(&payload, self.now));
            self.run(Duration::from_millis(5));
        }
        self.run(Duration::from_secs(4));
    }

    fn statistics(&self, direction: Direction) -> (Statistics, Statistics) {
        let (caller, accepted) = (*self.caller.statistics(), *self.accepted.as_ref().unwrap().statistics());
        match direction {
            Direction::Publish => (caller, accepted),
            Direction::Play => (accepted, caller),
        }
    }
}

fn options(latency: u64) -> ConnectionOptions {
    ConnectionOptions { receive_latency: Duration::from_millis(latency), ..ConnectionOptions::default() }
}

fn secret(text: &str, key_length: KeyLength, refresh_after: u32) -> Option<Encryption> {
    let passphrase = Passphrase::new(text).unwrap();
    Some(Encryption {
        key_length,
        refresh_after,
        announce_before: refresh_after / 4,
        ..Encryption::new(passphrase)
    })
}

#[test]
fn what_is_recovered_and_what_is_dropped_is_what_the_link_has_lost() {
    let mut seed = 1;
    for direction in [Direction::Publish, Direction::Play] {
        for (loss, burst) in [(0.001, 1), (0.01, 1), (0.05, 5), (0.1, 1), (0.2, 1), (0.2, 5)] {
            for overtaken in [0, 50] {
                for round_trip in [5, 40, 300] {
                    // Enough for three tries; and too little for even one.
                    for latency in [4 * round_trip + 120, round_trip / 2] {
                        seed += 1;
                        let round_trip = Duration::from_millis(round_trip);
                        let link = Link { loss, burst, overtaken, round_trip };
                        compare(direction, link, latency, seed);
                    }
                }
            }
        }
    }
}

fn compare(direction: Direction, link: Link, latency: u64, seed: u64) {
    const COUNT: u32 = 600;
    let case = format!(
        "{direction:?}, loss {} in bursts of {}, overtaken {}, RTT {:?}, latency {latency} ms, seed {seed}",
        link.loss, link.burst, link.overtaken, link.round_trip
    );
    // A number that wraps on the way.
    let random = seed << 32 | (0x7FFF_FFFF - 100);
    let mut bench = Bench::new(link, options(latency), options(latency), random);
    for _ in 0..40 {
        bench.run(Duration::from_millis(250));
        if bench.is_connected() {
            break;
        }
    }
    assert!(bench.is_connected(), "{case}");
    bench.lost.clear();
    bench.transfer(direction, COUNT, 1_316);
    let (sender, receiver) = bench.statistics(direction);
    let numbers: Vec<u32> = bench.delivered.iter().map(|(number, _)| *number).collect();
    assert!(numbers.is_sorted() && numbers.windows(2).all(|pair| pair[0] != pair[1]), "{case}");
    let delivered: BTreeSet<u32> = numbers.iter().copied().collect();
    let recovered = bench.lost.iter().filter(|number| delivered.contains(number)).count() as u64;
    // Whatever lies behind the last packet that came is missing, and nothing tells the receiver of it.
    let last = delivered.last().copied().unwrap_or(0);
    let dropped = (0..last).filter(|number| !delivered.contains(number)).count() as u64;
    assert_eq!(sender.sent, u64::from(COUNT), "{case}");
    assert_eq!((receiver.recovered, receiver.dropped), (recovered, dropped), "{case}: {receiver:?}");
    assert_eq!(receiver.missing, receiver.recovered + receiver.reordered + receiver.dropped, "{case}");
    if link.overtaken == 0 {
        assert_eq!(receiver.reordered, 0, "{case}");
    }
    assert_eq!((receiver.undecrypted, receiver.discarded, receiver.malformed), (0, 0, 0), "{case}");
    if link.loss <= 0.01 && u128::from(latency) >= 4 * link.round_trip.as_millis() {
        assert_eq!(receiver.dropped, 0, "{case}: {receiver:?}");
    }
}

#[test]
fn the_greater_latency_holds_and_packets_are_delivered_after_it() {
    let caller = ConnectionOptions { send_latency: Duration::from_millis(400), ..options(50) };
    let mut bench = Bench::new(CLEAN, caller, options(200), 3);
    bench.run(Duration::from_millis(200));
    let (ours, theirs) =
        (bench.caller.agreement().unwrap(), bench.accepted.as_ref().unwrap().agreement().unwrap());
    assert_eq!((ours.receive_latency.as_millis(), ours.send_latency.as_millis()), (50, 400));
    assert_eq!((theirs.receive_latency.as_millis(), theirs.send_latency.as_millis()), (400, 50));
    let began = bench.now;
    bench.transfer(Direction::Publish, 50, 100);
    for (number, at) in &bench.delivered {
        let after = at.since(began + Duration::from_millis(5) * *number);
        assert!((405..=435).contains(&after.as_millis()), "{number}: {after:?}");
    }
    let round_trip = bench.accepted.as_ref().unwrap().round_trip();
    assert!(round_trip.time().abs_diff(CLEAN.round_trip) < Duration::from_millis(1), "{round_trip:?}");
}

#[test]
fn both_sides_know_the_passphrase_or_there_is_no_connection() {
    let refused = [
        (Some("correct horse"), Some("incorrect horse"), Rejection::BAD_SECRET),
        (Some("correct horse"), None, Rejection::UNSECURE),
        (None, Some("correct horse"), Rejection::UNSECURE),
    ];
    for (ours, theirs, why) in refused {
        let with = |text: Option<&str>| ConnectionOptions {
            encryption: text.and_then(|text| secret(text, KeyLength::Aes128, 1 << 24)),
            ..options(120)
        };
        let mut bench = Bench::new(CLEAN, with(ours), with(theirs), 5);
        bench.run(Duration::from_secs(1));
        assert_eq!(bench.events[0].last(), Some(&ConnectionEvent::Ended(Disconnect::Rejected(why))));
        assert!(bench.accepted.is_none() && bench.caller.is_over());
    }
}

#[test]
fn keys_are_refreshed_on_the_way_and_everything_stays_readable() {
    for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
        for direction in [Direction::Publish, Direction::Play] {
            let with = ConnectionOptions { encryption: secret("correct horse", length, 100), ..options(300) };
            let link = Link { loss: 0.05, ..CLEAN };
            let mut bench = Bench::new(link, with.clone(), with, 8);
            bench.run(Duration::from_secs(3));
            assert_eq!(bench.caller.agreement().unwrap().encryption, Some(length));
            bench.transfer(direction, 1_000, 1_316);
            let (sender, receiver) = bench.statistics(direction);
            assert_eq!((bench.delivered.len(), receiver.undecrypted), (1_000, 0), "{receiver:?}");
            assert!(sender.key_refreshes >= 8 && receiver.key_refreshes >= sender.key_refreshes);
        }
    }
}

#[test]
fn a_shutdown_and_a_silence_end_a_connection() {
    let mut bench = Bench::new(CLEAN, options(120), options(120), 9);
    bench.run(Duration::from_secs(30));
    assert!(bench.is_connected(), "keep-alives hold an idle connection");
    bench.caller.close(bench.now);
    bench.run(Duration::from_millis(100));
    assert_eq!(bench.events[1].last(), Some(&ConnectionEvent::Ended(Disconnect::Shutdown)));
    let mut bench = Bench::new(CLEAN, options(120), options(120), 9);
    bench.run(Duration::from_secs(1));
    bench.emulated.change(|link| link.loss = 1.0);
    bench.run(Duration::from_secs(6));
    assert_eq!(bench.events[0].last(), Some(&ConnectionEvent::Ended(Disconnect::Silent)));
}

#[test]
fn the_stream_id_reaches_the_listener() {
    let listener = Listener::new(options(120), &[7; 32]);
    let from: SocketAddr = CALLER.parse().unwrap();
    let now = Moment::from_nanos(5_000_000_000);
    let asked = ConnectionOptions { stream_id: "#!::r=live/a,m=publish".to_owned(), ..options(120) };
    let mut caller = Connection::call(asked, from.ip(), 11, now);
    let (mut request, mut out) = (None, Vec::new());
    for _ in 0..2 {
        let mut sent = Vec::new();
        caller.flush(&mut |bytes, _| {
            sent.push(bytes.to_vec());
            1
        });
        out.clear();
        match listener.handle_datagram(from, &sent[0], now, &mut out) {
            ListenerAnswer::Respond => caller.handle_datagram(&out, now),
            ListenerAnswer::Request(it) => request = Some((it, sent[0].clone())),
            ListenerAnswer::Nothing => panic!("it is a handshake"),
        }
    }
    let (request, conclusion) = request.unwrap();
    assert_eq!((request.access().resource, request.access().mode), (Some("live/a"), Some("publish")));
    // Another address, and a time when the cookie is stale.
    let other: SocketAddr = "127.0.0.2:5000".parse().unwrap();
    for (from, now) in [(other, now), (from, now + Duration::from_secs(200))] {
        assert!(matches!(
            listener.handle_datagram(from, &conclusion, now, &mut out),
            ListenerAnswer::Nothing
        ));
    }
    for why in [Rejection::NOT_FOUND, Rejection::CONFLICT, Rejection(3_007)] {
        out.clear();
        listener.reject(&request, why, &mut out);
        let mut caller = Connection::call(options(120), from.ip(), 11, now);
        caller.handle_datagram(&out, now);
        assert_eq!(caller.poll_event(), Some(ConnectionEvent::Ended(Disconnect::Rejected(why))));
    }
}

#[test]
fn a_burst_is_spread_over_a_part_of_the_latency_and_is_whole_at_its_time() {
    let mut bench = Bench::new(CLEAN, options(400), options(400), 21);
    bench.run(Duration::from_millis(200));
    // Two seconds of 100 packets a second, so that the rate is known; then a keyframe of 200 packets.
    bench.transfer(Direction::Publish, 400, 1_316);
    let sent = bench.caller.statistics().sent;
    let burst = bench.now;
    for number in 400..600u32 {
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(1_316, 0xA5);
        assert!(bench.caller.send(&payload, burst));
    }
    bench.flush();
    let at_once = bench.caller.statistics().sent - sent;
    assert!((1..40).contains(&at_once), "{at_once} packets of the burst left at once");
    let mut most = at_once;
    for _ in 0..10 {
        let before = bench.caller.statistics().sent;
        bench.run(Duration::from_millis(10));
        most = most.max(bench.caller.statistics().sent - before);
    }
    assert_eq!(bench.caller.statistics().sent - sent, 200, "a quarter of the latency is the longest wait");
    assert!(most < 50, "{most} packets left in 10 ms");
    bench.run(Duration::from_millis(500));
    let late = |(_, at): &&(u32, Moment)| at.since(burst) > Duration::from_millis(430);
    assert_eq!(bench.delivered.len(), 600);
    assert_eq!(bench.delivered[400..].iter().filter(late).count(), 0);
}

#[test]
fn a_window_holds_the_latency_of_a_fast_stream_and_its_bytes_are_bounded() {
    let mut bench = Bench::new(CLEAN, options(1_000), options(1_000), 22);
    bench.run(Duration::from_millis(200));
    // 12,000 packets a second: more than 8,192 of them wait for their time.
    for number in 0..24_000u32 {
        assert!(bench.caller.send(&[&number.to_be_bytes()[..], &[0; 96]].concat(), bench.now));
        bench.run(Duration::from_nanos(83_333));
    }
    bench.run(Duration::from_secs(2));
    let (sender, receiver) = bench.statistics(Direction::Publish);
    assert_eq!((sender.send_dropped, receiver.discarded, receiver.dropped), (0, 0, 0), "{receiver:?}");
    assert_eq!(bench.delivered.len(), 24_000);
    // Nothing is acknowledged any more: what is kept stays below 32 MiB.
    bench.emulated.change(|link| link.loss = 1.0);
    for _ in 0..30 {
        (0..1_000).for_each(|_| assert!(bench.caller.send(&[0; 1_456], bench.now)));
        bench.flush();
    }
    assert!(bench.caller.unacknowledged() * 1_456 <= 32 << 20);
    assert!(bench.caller.statistics().send_dropped > 0);
    // The caller holds what it has sent, the listener what has its time to come; and nothing of it stays.
    let held = bench.caller.held_bytes();
    assert!((25 << 20..40 << 20).contains(&held), "{held}");
    bench.flush();
    bench.run(Duration::from_secs(4));
    let held = [bench.caller.held_bytes(), bench.accepted.as_ref().unwrap().held_bytes()];
    assert!(held.iter().all(|held| *held < 512 << 10), "{held:?}");
}

#[test]
fn hostile_packets_cost_a_bound_of_memory_and_time() {
    let mut bench = Bench::new(CLEAN, options(120), options(120), 12);
    bench.run(Duration::from_millis(200));
    let accepted = bench.accepted.as_mut().unwrap();
    let socket = accepted.socket();
    let now = bench.now;
    // 10⁶ lost packets in one report, ranges that are not in order, and acknowledgements of what was never sent.
    for number in 0..100u32 {
        assert!(accepted.send(&number.to_be_bytes(), now));
    }
    let control = |kind: u32, information: u32, words: &[u32]| {
        let head = [0x8000_0000 | kind << 16, information, 0, socket];
        head.iter().chain(words).flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>()
    };
    let first = 12u32;
    let flush = |connection: &mut Connection| {
        connection.flush(&mut |bytes, length| bytes.len().div_ceil(length));
    };
    flush(accepted);
    let sent = accepted.statistics().sent;
    accepted
        .handle_datagram(&control(3, 0, &[first | 1 << 31, first + 1_000_000]), now + Duration::from_secs(1));
    let storm: Vec<u32> = (0..180).flat_map(|_| [first | 1 << 31, first + 90]).collect();
    accepted.handle_datagram(&control(3, 0, &storm), now + Duration::from_secs(1));
    flush(accepted);
    assert_eq!((accepted.statistics().sent, accepted.statistics().retransmitted), (sent, 100));
    accepted.handle_datagram(&control(2, 1, &[first + 5_000]), now);
    assert_eq!(accepted.unacknowledged(), 100);
    // Sequence jumps.
    for jump in [8_191, 8_192, 1 << 20, 1 << 29, 1 << 30] {
        let head = [first.wrapping_add(jump) & 0x7FFF_FFFF, 0xC000_0001, 0, socket];
        let bytes: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).chain([1; 10]).collect();
        accepted.handle_datagram(&bytes, now);
    }
    let counts = *accepted.statistics();
    assert_eq!((counts.received, counts.missing), (5, 8_191), "{counts:?}");
}
