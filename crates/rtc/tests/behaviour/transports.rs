//! Two transports find each other and agree on keys: on virtual time, with a network that may lose, and over UDP.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use weir_metrics::Moment;
use weir_rtc::rtp::Header;
use weir_rtc::srtp::{Inbound, Outbound};
use weir_rtc::transport::{
    Certificate, Clock, DtlsRole, Event, Fingerprint, Output, Reception, Remote, Transport, TransportError,
    TransportSettings,
};

/// One side, and what it has reached.
struct Side {
    transport: Transport,
    address: SocketAddr,
    fingerprint: Fingerprint,
    keys: Option<(Inbound, Outbound)>,
    failed: Option<TransportError>,
    path: Option<SocketAddr>,
    closed: bool,
}

impl Side {
    fn new(address: SocketAddr, controlling: bool, lite: bool, clock: Clock) -> Self {
        let certificate = Certificate::generate().unwrap();
        let fingerprint = certificate.fingerprint();
        let settings = TransportSettings { local: address, certificate, lite, controlling, clock };
        let transport = Transport::new(settings).unwrap();
        Self { transport, address, fingerprint, keys: None, failed: None, path: None, closed: false }
    }

    fn description(&self) -> (Remote, Vec<String>) {
        let remote = Remote {
            user_fragment: self.transport.user_fragment().to_owned(),
            password: self.transport.password().to_owned(),
            fingerprint: self.fingerprint.clone(),
        };
        (remote, self.transport.candidates().collect())
    }

    /// Sorts what came out; what is to be sent goes to `send`.
    fn drain(&mut self, mut send: impl FnMut(SocketAddr, Vec<u8>)) {
        while let Some(output) = self.transport.poll() {
            match output {
                Output::Send { destination, datagram } => send(destination, datagram),
                Output::Event(Event::Path(path)) => self.path = Some(path),
                Output::Event(Event::PathLost) => self.path = None,
                Output::Event(Event::Keys { inbound, outbound, .. }) => {
                    self.keys = Some((Inbound::new(&inbound).unwrap(), Outbound::new(&outbound).unwrap()));
                }
                Output::Event(Event::Closed) => self.closed = true,
                Output::Event(Event::Failed(error)) => self.failed = Some(error),
            }
        }
    }
}

fn introduce(sides: &mut [Side; 2], now: Moment, first: DtlsRole) {
    let second = if first == DtlsRole::Client { DtlsRole::Server } else { DtlsRole::Client };
    let descriptions = [sides[0].description(), sides[1].description()];
    for (at, role) in [first, second].into_iter().enumerate() {
        let (remote, candidates) = descriptions[1 - at].clone();
        // A lite side makes no checks of its own.
        for candidate in candidates {
            sides[at].transport.add_candidate(&candidate).unwrap();
        }
        sides[at].transport.connect(now, remote, role);
    }
}

/// What one protects the other opens, both ways.
fn media_flows(sides: &mut [Side; 2]) {
    for (from, to) in [(0, 1), (1, 0)] {
        let header =
            Header { marker: true, payload_type: 98, sequence_number: 9, timestamp: 1, ssrc: from as u32 };
        let mut packet = Vec::new();
        header.append(&[], &mut packet).unwrap();
        packet.extend(b"a picture");
        sides[from].keys.as_mut().unwrap().1.protect_rtp(&mut packet, 0).unwrap();
        let opened = sides[to].keys.as_mut().unwrap().0.open_rtp(&mut packet).unwrap();
        assert_eq!(&opened[12..], b"a picture");
    }
}

/// A network with a delay of 5 ms that loses what it is told to. Returns the time that it took to agree on keys.
fn simulate(sides: &mut [Side; 2], first: DtlsRole, loses: impl FnMut(usize) -> bool) -> Duration {
    simulate_with(sides, first, loses, |_, _| ())
}

/// The same; `meddles` is called whenever time has passed.
fn simulate_with(
    sides: &mut [Side; 2],
    first: DtlsRole,
    mut loses: impl FnMut(usize) -> bool,
    mut meddles: impl FnMut(&mut [Side; 2], Moment),
) -> Duration {
    let start = Moment::from_nanos(1_000_000_000);
    let mut now = start;
    introduce(sides, now, first);
    let mut wire: VecDeque<(Moment, usize, Vec<u8>)> = VecDeque::new();
    let mut sent = 0;
    while now.since(start) < Duration::from_secs(30) {
        for (at, side) in sides.iter_mut().enumerate() {
            side.transport.handle_timeout(now);
            side.drain(|_, datagram| {
                if !loses(sent) {
                    wire.push_back((now + Duration::from_millis(5), 1 - at, datagram));
                }
                sent += 1;
            });
        }
        if sides.iter().all(|side| side.keys.is_some()) || sides.iter().any(|side| side.failed.is_some()) {
            return now.since(start);
        }
        let arrival = wire.front().map(|(due, ..)| *due);
        let timers = sides.iter_mut().filter_map(|side| side.transport.due()).min();
        now = arrival.into_iter().chain(timers).min().unwrap().max(now + Duration::from_micros(100));
        while wire.front().is_some_and(|(due, ..)| *due <= now) {
            let (_, to, datagram) = wire.pop_front().unwrap();
            let source = sides[1 - to].address;
            sides[to].transport.receive(now, source, &datagram);
        }
        meddles(sides, now);
    }
    now.since(start)
}

fn pair(lite: bool) -> [Side; 2] {
    let clock = Clock::new(Moment::from_nanos(0), Instant::now());
    [
        Side::new("127.0.0.1:4000".parse().unwrap(), true, false, clock),
        Side::new("127.0.0.1:5000".parse().unwrap(), false, lite, clock),
    ]
}

#[test]
fn keys_are_agreed_on_in_both_roles_with_a_full_and_with_a_lite_peer() {
    for lite in [false, true] {
        for role in [DtlsRole::Client, DtlsRole::Server] {
            let mut sides = pair(lite);
            let taken = simulate(&mut sides, role, |_| false);
            let failed = [&sides[0].failed, &sides[1].failed];
            assert!(failed.iter().all(|failed| failed.is_none()), "{failed:?}, lite {lite}, {role:?}");
            media_flows(&mut sides);
            assert!(taken < Duration::from_secs(1), "{taken:?}, lite {lite}, {role:?}");
            assert_eq!(sides[0].path, Some(sides[1].address));
        }
    }
}

#[test]
fn loss_delays_the_handshake_and_does_not_break_it() {
    for (role, seed) in [(DtlsRole::Client, 1), (DtlsRole::Server, 2)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut sides = pair(false);
        simulate(&mut sides, role, |_| random.u8(0..10) < 2);
        assert!(sides.iter().all(|side| side.failed.is_none()));
        media_flows(&mut sides);
    }
}

#[test]
fn another_certificate_than_described_is_refused() {
    for role in [DtlsRole::Client, DtlsRole::Server] {
        let mut sides = pair(false);
        sides[1].fingerprint = Certificate::generate().unwrap().fingerprint();
        simulate(&mut sides, role, |_| false);
        assert!(matches!(sides[0].failed, Some(TransportError::Fingerprint)), "{:?}", sides[0].failed);
        assert!(sides[0].keys.is_none());
    }
}

#[test]
fn floods_and_strangers_are_passed_over() {
    let mut sides = pair(false);
    let now = Moment::from_nanos(1_000_000_000);
    let stranger = "127.0.0.9:9".parse().unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let mut flood = |side: &mut Side| {
        for _ in 0..2_000 {
            let mut datagram: Vec<u8> = (0..random.usize(0..120)).map(|_| random.u8(..)).collect();
            if let Some(first) = datagram.first_mut() {
                *first = [0, 1, 20, 22, 23, 128][usize::from(*first) % 6];
            }
            side.transport.receive(now, stranger, &datagram);
        }
    };
    flood(&mut sides[0]);
    assert!(sides[0].transport.poll().is_none());
    introduce(&mut sides, now, DtlsRole::Server);
    flood(&mut sides[0]);
    assert!(sides[0].failed.is_none());
}

/// An alert in a record that nothing protects: fatal, handshake_failure.
const FORGED_ALERT: [u8; 15] = [21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40];

#[test]
fn a_forged_alert_ends_nobody_from_wherever_it_comes() {
    for role in [DtlsRole::Client, DtlsRole::Server] {
        // From a port of its own, from that of a candidate that no check has proven, and under the peer's address.
        for source in ["127.0.0.1:9", "127.0.0.1:6000", "127.0.0.1:5000"] {
            let mut sides = pair(false);
            let unproven = "1 1 UDP 50 127.0.0.1 6000 typ host";
            sides[0].transport.add_candidate(unproven).unwrap();
            let source: SocketAddr = source.parse().unwrap();
            let mut taken = 0;
            simulate_with(
                &mut sides,
                role,
                |_| false,
                |sides, now| {
                    let reception = sides[0].transport.receive(now, source, &FORGED_ALERT);
                    taken += u32::from(reception == Reception::Taken && source.port() == 9);
                },
            );
            let failed = [&sides[0].failed, &sides[1].failed];
            assert!(failed.iter().all(|failed| failed.is_none()), "{role:?} {source}: {failed:?}");
            media_flows(&mut sides);
            // With keys there is protection, and what has none is nothing.
            let now = Moment::from_nanos(40_000_000_000);
            sides[0].transport.receive(now, source, &FORGED_ALERT);
            sides[0].drain(|_, _| ());
            assert!(sides[0].failed.is_none() && !sides[0].closed);
            assert_eq!(taken, 0, "of a stranger nothing is taken");
        }
    }
}

#[test]
fn a_handshake_from_an_address_that_is_not_proven_is_not_answered() {
    let [mut side, stranger] = pair(false);
    let now = Moment::from_nanos(1_000_000_000);
    let (remote, _) = stranger.description();
    // The server of DTLS, whose peer has not been found yet.
    side.transport.add_candidate("1 1 UDP 50 127.0.0.1 5000 typ host").unwrap();
    side.transport.connect(now, remote, DtlsRole::Server);
    side.drain(|_, _| ());
    // A piece of a ClientHello in a record: type, version, epoch, number, length.
    let body = [[1, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 4].as_slice(), &[254, 253, 0, 0]].concat();
    let record = [&[22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, body.len() as u8][..], &body].concat();
    for port in [9, 5000] {
        for _ in 0..100 {
            side.transport.receive(now, SocketAddr::from(([127, 0, 0, 1], port)), &record);
        }
        let mut answers = 0;
        side.drain(|_, datagram| answers += usize::from(datagram[0] >= 20));
        assert!(answers == 0 && side.failed.is_none(), "port {port}");
    }
}

#[test]
fn a_peer_that_begins_before_our_check_is_answered_is_not_made_to_wait() {
    let undisturbed = simulate(&mut pair(false), DtlsRole::Server, |_| false);
    let mut sides = pair(false);
    let mut held = 0;
    let taken = simulate_with(
        &mut sides,
        DtlsRole::Server,
        |_| false,
        |sides, now| {
            // Out of order: DTLS of the candidate, before any check was answered.
            if held == 0 {
                let reception = sides[0].transport.receive(now, sides[1].address, &[22, 254, 253, 0, 0]);
                held += u32::from(reception == Reception::Taken);
            }
        },
    );
    assert!(held > 0 && taken < undisturbed + Duration::from_millis(500), "{taken:?} {undisturbed:?}");
    media_flows(&mut sides);
}

/// Whoever sends under a candidate's address before the peer does cannot take the room in which its first word waits.
#[test]
fn what_came_first_under_an_unproven_address_does_not_keep_the_peer_out() {
    let mut sides = pair(false);
    let start = Moment::from_nanos(1_000_000_000);
    introduce(&mut sides, start, DtlsRole::Client);
    let (client, server) = (sides[0].address, 1);
    for _ in 0..100 {
        sides[server].transport.receive(start, client, &[22, 254, 253, 0, 0]);
    }
    let mut now = start;
    let (answers_come, mut hellos) = (start + Duration::from_millis(200), 0);
    while sides.iter().any(|side| side.keys.is_none()) {
        assert!(now.since(start) < Duration::from_millis(900), "the client's first word was lost: {hellos}");
        for from in [0, 1] {
            let mut sent = Vec::new();
            sides[from].transport.handle_timeout(now);
            sides[from].drain(|_, datagram| sent.push(datagram));
            let source = sides[from].address;
            for datagram in sent {
                // Answers to the server's own checks, by which it knows that the client is there (RFC 8489, section 5).
                let is_answer = datagram.starts_with(&[1, 1]);
                if from == 0 && is_answer && now < answers_come {
                    continue;
                }
                hellos += usize::from(from == 0 && datagram[0] == 22 && now < answers_come);
                sides[1 - from].transport.receive(now, source, &datagram);
            }
        }
        now = now + Duration::from_millis(1);
    }
    assert!(hellos > 0, "the client began before the server had proven its address");
    media_flows(&mut sides);
}

#[test]
fn a_lost_check_is_repeated_after_20_40_and_80_ms() {
    // A lite server, as OvenMediaEngine is one: it drops checks that come right behind the answer.
    let path_after = |lost: usize| {
        let mut sides = pair(true);
        let mut found = None;
        let start = Moment::from_nanos(1_000_000_000);
        simulate_with(
            &mut sides,
            DtlsRole::Client,
            |sent| sent < lost,
            |sides, now| {
                if sides[0].path.is_some() {
                    found.get_or_insert(now.since(start));
                }
            },
        );
        media_flows(&mut sides);
        found.unwrap()
    };
    let undisturbed = path_after(0);
    for (lost, later) in [(1, 20), (2, 60), (3, 140)] {
        let more = path_after(lost) - undisturbed;
        let expected = Duration::from_millis(later);
        assert!(
            more >= expected && more <= expected + Duration::from_millis(25),
            "{lost} lost: {more:?} later"
        );
    }
}

#[test]
fn a_peer_that_never_answers_is_not_given_up_sooner_than_before() {
    let [mut side, other] = pair(false);
    let start = Moment::from_nanos(1_000_000_000);
    let (remote, candidates) = other.description();
    side.transport.add_candidate(&candidates[0]).unwrap();
    side.transport.connect(start, remote, DtlsRole::Client);
    let (mut now, mut checks, mut lost) = (start, 0, None);
    while now.since(start) < Duration::from_secs(30) && lost.is_none() {
        side.transport.handle_timeout(now);
        while let Some(output) = side.transport.poll() {
            match output {
                Output::Send { .. } => checks += 1,
                Output::Event(Event::PathLost) => lost = Some(now.since(start)),
                Output::Event(_) => {}
            }
        }
        now = side.transport.due().unwrap().max(now + Duration::from_millis(1));
    }
    assert!((8..=20).contains(&checks), "{checks} checks");
    assert!(lost.is_some_and(|lost| lost > Duration::from_secs(18)), "{lost:?}");
}

#[test]
fn candidates_that_make_no_sense_are_refused_and_bounded() {
    let [mut side, other] = pair(false);
    assert!(matches!(side.transport.add_candidate("1 1 UDP what"), Err(TransportError::Candidate(_))));
    let (_, candidates) = other.description();
    for _ in 0..32 {
        side.transport.add_candidate(&format!("a=candidate:{}", candidates[0])).unwrap();
    }
    let refused = side.transport.add_candidate(&candidates[0]);
    assert!(matches!(refused, Err(TransportError::TooManyCandidates)));
    // As OvenMediaEngine writes it.
    let [mut side, _] = pair(false);
    side.transport.add_candidate("candidate:0 1 UDP 50 127.0.0.1 10000 typ host").unwrap();
}

#[test]
fn keys_are_agreed_on_over_udp() {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let begin = Instant::now();
    let clock = Clock::new(Moment::from_nanos(1), begin);
    let moment = || Moment::from_nanos(1) + begin.elapsed();
    let mut sides = [0, 1].map(|at| Side::new(sockets[at].local_addr().unwrap(), at == 0, false, clock));
    introduce(&mut sides, moment(), DtlsRole::Client);
    let mut buffer = [0; 2048];
    while begin.elapsed() < Duration::from_secs(60) && !sides.iter().all(|side| side.keys.is_some()) {
        for (side, socket) in sides.iter_mut().zip(&sockets) {
            side.transport.handle_timeout(moment());
            socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
            side.drain(|destination, datagram| {
                socket.send_to(&datagram, destination).unwrap();
            });
            while let Ok((length, source)) = socket.recv_from(&mut buffer) {
                side.transport.receive(moment(), source, &buffer[..length]);
            }
        }
    }
    media_flows(&mut sides);
    // A goodbye is heard.
    sides[0].transport.close();
    sides[0].drain(|destination, datagram| {
        sockets[0].send_to(&datagram, destination).unwrap();
    });
    while begin.elapsed() < Duration::from_secs(60) && !sides[1].closed {
        if let Ok((length, source)) = sockets[1].recv_from(&mut buffer) {
            sides[1].transport.receive(moment(), source, &buffer[..length]);
            sides[1].drain(|_, _| ());
        }
    }
    assert!(sides[1].closed);
}
