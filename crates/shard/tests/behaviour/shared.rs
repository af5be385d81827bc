//! Sessions that share sockets of datagrams. The first byte of each datagram says whom it is for.

use crate::bench::{Bench, Happened, React, endpoint, silent};
use std::collections::HashSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_metrics::Failure;
use weir_shard::{Endpoint, Event, Sharing, Transport};

fn peer() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn shared(sockets: u32) -> Transport {
    let recipient = |bytes: &[u8]| bytes.first().map(|first| u32::from(*first));
    Transport::SharedUdp(Arc::new(Sharing { sockets, recipient, short: 4 }))
}

/// Claims a number and says it, in a long datagram.
fn claims(number: u8, to: SocketAddr) -> React {
    Box::new(move |event, context| {
        if matches!(event, Event::Connected) {
            assert!(context.claim_datagrams(number.into()));
            assert_eq!(context.send_datagrams(to, &[number; 10], 10), 1);
        } else if matches!(event, Event::Stop) {
            context.close();
        }
    })
}

/// What sessions have sent when they began leaves with the next turn.
fn turn(bench: &mut Bench) {
    bench.shard.turn(weir_shard::clock::now()).unwrap();
}

/// The next datagram and where it came from.
fn next(peer: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 100];
    let (length, from) = peer.recv_from(&mut buffer).unwrap();
    (buffer[..length].to_vec(), from)
}

fn heard(bench: &Bench, who: &str) -> Vec<Vec<u8>> {
    let bytes = |what| if let Happened::Datagram(_, bytes) = what { Some(bytes) } else { None };
    bench.diary().of(who).into_iter().filter_map(bytes).collect()
}

#[test]
fn each_session_hears_what_is_for_it_and_none_what_is_for_others_or_from_a_foreign_address() {
    let peer = peer();
    let to = peer.local_addr().unwrap();
    let way = Endpoint { transport: shared(1), ..endpoint(to) };
    let mut bench = Bench::new();
    bench.open("one", &way, claims(1, to));
    let two = bench.open("two", &way, claims(2, to));
    turn(&mut bench);
    let (first, from) = next(&peer);
    assert_eq!((first, next(&peer)), (vec![1; 10], (vec![2; 10], from)), "from one port");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(b"\x01foreign", from).unwrap();
    for said in [&b"\x02a"[..], b"\x01b", b"\x09c", b"", b"\x02d", b"\x01e"] {
        peer.send_to(said, from).unwrap();
    }
    let all = [&b"\x01b"[..], b"\x01e"];
    bench.run_until(|diary| diary.of("one").len() == 4);
    assert_eq!(
        (heard(&bench, "one"), heard(&bench, "two")),
        (all.map(<[u8]>::to_vec).to_vec(), vec![b"\x02a".to_vec(), b"\x02d".to_vec()])
    );
    // What comes for one that is gone is for no other, and its number is free again.
    bench.shard.stop(two);
    turn(&mut bench);
    peer.send_to(b"\x02late", from).unwrap();
    peer.send_to(b"\x01f", from).unwrap();
    bench.run_until(|diary| diary.of("one").len() == 5);
    bench.open("three", &way, claims(2, to));
    peer.send_to(b"\x02g", from).unwrap();
    bench.run_until(|diary| diary.of("three").len() == 3);
    assert_eq!(heard(&bench, "three"), [b"\x02g"]);
}

#[test]
fn a_number_is_one_sessions_until_it_takes_another() {
    let peer = peer();
    let way = Endpoint { transport: shared(1), ..endpoint(peer.local_addr().unwrap()) };
    let mut bench = Bench::new();
    let react = |answers: Vec<(u32, bool)>| -> React {
        let mut answers = answers.into_iter();
        Box::new(move |event, context| {
            if matches!(event, Event::Connected | Event::Woken) {
                let (number, is_free) = answers.next().unwrap();
                assert_eq!(context.claim_datagrams(number), is_free);
            }
        })
    };
    let one = bench.open("one", &way, react(vec![(1, true), (2, true)]));
    let two = bench.open("two", &way, react(vec![(1, false), (1, true)]));
    for id in [one, two] {
        bench.shard.wake_all([id]);
        turn(&mut bench);
    }
    bench.run_until(|diary| diary.count("two", &Happened::Woken) == 1);
}

#[test]
fn sessions_are_spread_over_the_sockets_of_their_workload_and_short_datagrams_leave_behind_long_ones() {
    let peer = peer();
    let to = peer.local_addr().unwrap();
    let way = Endpoint { transport: shared(3), ..endpoint(to) };
    let other = Endpoint { transport: shared(3), ..endpoint(to) };
    let mut bench = Bench::new();
    let speaker = |number: u8| -> React {
        Box::new(move |event, context| {
            if matches!(event, Event::Connected) {
                assert!(context.claim_datagrams(number.into()));
                assert_eq!(context.send_datagrams(to, &[number; 2], 2), 1);
                assert_eq!(context.send_datagrams(to, &[number; 25], 10), 3);
                let link = context.split().1;
                assert!(link.given_datagrams().unwrap() >= 27 && link.unsent_datagrams() >= 27);
            }
        })
    };
    for number in 0..9 {
        bench.open("speaker", &way, speaker(number));
    }
    bench.open("speaker", &other, speaker(9));
    turn(&mut bench);
    let mut came = Vec::new();
    (0..40).for_each(|_| came.push(next(&peer)));
    let ports: HashSet<_> = came.iter().map(|(_, from)| *from).collect();
    assert_eq!(ports.len(), 4, "three of one workload, one of the other");
    for port in ports {
        let of_one = came.iter().filter(|(_, from)| *from == port);
        let lengths: Vec<_> = of_one.map(|(bytes, _)| bytes.len()).collect();
        let sessions = lengths.len() / 4;
        let expected = [[10, 10, 5].repeat(sessions), vec![2; sessions]].concat();
        assert_eq!(lengths, expected);
    }
}

#[test]
fn a_datagram_that_is_too_long_is_counted_once_and_none_of_its_length_is_taken_again() {
    let peer = peer();
    let to = peer.local_addr().unwrap();
    let way = Endpoint { transport: shared(1), ..endpoint(to) };
    let mut bench = Bench::new();
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let react = || -> React {
        let dropped = dropped.clone();
        Box::new(move |event, context| match event {
            // No datagram of IP is longer than 65,535 bytes.
            Event::Connected => {
                context.send_datagrams(to, &[1; 65_530], 65_530);
            }
            Event::Woken => {
                assert_eq!(context.send_datagrams(to, &[1; 65_530], 65_530), 0);
                dropped.lock().unwrap().push(context.dropped_datagrams());
            }
            _ => {}
        })
    };
    let ids = [bench.open("one", &way, react()), bench.open("two", &way, react())];
    turn(&mut bench);
    for id in ids {
        bench.shard.wake_all([id]);
        turn(&mut bench);
    }
    bench.run_until(|diary| diary.count("two", &Happened::Woken) == 1);
    // Two that were tried and one that was not; then another one. Each is said to one session.
    assert_eq!(*dropped.lock().unwrap(), [3, 1]);
}

#[test]
fn all_sessions_of_a_socket_end_with_their_peer_and_come_back_on_another() {
    let server = peer();
    let to = server.local_addr().unwrap();
    let way = Endpoint { transport: shared(1), ..endpoint(to) };
    let mut bench = Bench::new();
    bench.open("one", &way, claims(1, to));
    let again = way.clone();
    let mut is_second = false;
    let two = bench.open(
        "two",
        &way,
        Box::new(move |event, context| match event {
            Event::Connected => assert!(context.claim_datagrams(2)),
            Event::Closed { .. } if !is_second => context.stand_by(),
            Event::Woken => {
                is_second = true;
                context.reopen(again.clone());
            }
            _ => {}
        }),
    );
    turn(&mut bench);
    let (_, before) = next(&server);
    server.send_to(b"\x01?", before).unwrap();
    bench.run_until(|diary| diary.of("one").len() == 3);
    drop(server);
    // The machine says that nothing listens there (RFC 1122 section 4.1.3.3).
    bench.open("three", &way, claims(3, to));
    bench.run_until(|diary| ["one", "two", "three"].iter().all(|who| diary.closed(who).is_some()));
    for who in ["one", "two", "three"] {
        assert_eq!(bench.diary().closed(who), Some(Failure::ConnectionRefused));
    }
    assert_eq!(bench.shard.len(), 1);
    let server = UdpSocket::bind(to).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    bench.shard.wake_all([two]);
    bench.run_until(|diary| diary.count("two", &Happened::Connected) == 2);
    bench.open("four", &way, claims(4, to));
    turn(&mut bench);
    let (bytes, from) = next(&server);
    assert_eq!(bytes, [4; 10]);
    server.send_to(b"\x02back", from).unwrap();
    bench.run_until(|diary| diary.of("two").contains(&Happened::Datagram(to, b"\x02back".to_vec())));
}

#[test]
fn the_last_words_leave_when_the_shard_is_gone() {
    let peer = peer();
    let to = peer.local_addr().unwrap();
    let way = Endpoint { transport: shared(1), ..endpoint(to) };
    let mut bench = Bench::new();
    let react: React = Box::new(move |event, context| {
        if matches!(event, Event::Stop) {
            context.send_datagram(to, b"bye");
        }
    });
    let id = bench.open("one", &way, react);
    bench.open("two", &way, silent());
    bench.shard.stop(id);
    drop(bench);
    assert_eq!(next(&peer).0, b"bye");
}
