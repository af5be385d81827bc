//! Links of datagrams: alone, and beside a link that comes and goes.

use crate::bench::{Bench, Diary, Happened, accept, endpoint, pattern, silent};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_metrics::Failure;
use weir_shard::{Endpoint, Event, Transport};

/// A peer that does not wait for ever.
fn peer() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn heard(bench: &Bench, who: &str) -> Vec<Vec<u8>> {
    let bytes = |what| if let Happened::Datagram(_, bytes) = what { Some(bytes) } else { None };
    bench.diary().of(who).into_iter().filter_map(bytes).collect()
}

#[test]
fn a_session_of_datagrams_hears_who_sends_and_answers() {
    let mut bench = Bench::new();
    let (_, address) = bench.hear("port", silent());
    assert_eq!(bench.diary().of("port"), [Happened::Opening]);
    let (one, other) = (peer(), peer());
    one.send_to(b"?who", address).unwrap();
    other.send_to(b"news", address).unwrap();
    bench.run_until(|diary| diary.of("port").len() == 3);
    let of =
        |socket: &UdpSocket, bytes: &[u8]| Happened::Datagram(socket.local_addr().unwrap(), bytes.to_vec());
    assert_eq!(bench.diary().of("port")[1..], [of(&one, b"?who"), of(&other, b"news")]);
    let mut answer = [0; 10];
    assert_eq!(one.recv_from(&mut answer).unwrap(), (4, address));
}

#[test]
fn datagrams_of_one_length_go_in_one_call_and_come_one_by_one() {
    let sender = |to: SocketAddr, bytes: Vec<u8>| {
        Box::new(move |event: Event<'_>, context: &mut weir_shard::Context<'_, _>| {
            if matches!(event, Event::Opening) {
                assert_eq!(context.send_datagrams(to, &bytes, 1_000), 150);
            }
        })
    };
    let mut bench = Bench::new();
    let (_, address) = bench.hear("receiver", silent());
    // 150 of them: more than the kernel takes, or gives, at once.
    let bytes = pattern(149_700);
    bench.hear("sender", sender(address, bytes.clone()));
    bench.run_until(|diary| diary.of("receiver").len() == 151);
    let came = heard(&bench, "receiver");
    assert_eq!(came.iter().map(Vec::len).collect::<Vec<_>>()[..149], [1_000; 149]);
    assert_eq!(came.concat(), bytes);
}

#[test]
fn datagrams_outlive_the_link_that_they_were_opened_beside() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let next = TcpListener::bind("127.0.0.1:0").unwrap();
    let next_door = endpoint(next.local_addr().unwrap());
    let place = Arc::new(Mutex::new(None));
    let told = place.clone();
    let react = Box::new(move |event: Event<'_>, context: &mut weir_shard::Context<'_, _>| match event {
        Event::Connected => {
            told.lock().unwrap().get_or_insert_with(|| context.open_datagrams().unwrap());
        }
        Event::Woken => context.reopen(next_door.clone()),
        Event::Stop => context.close(),
        _ => {}
    });
    let mut bench = Bench::new();
    let id = bench.open("client", &endpoint(listener.local_addr().unwrap()), react);
    let stream = accept(&listener);
    bench.run_until(|diary| diary.count("client", &Happened::Connected) == 1);
    let address = place.lock().unwrap().unwrap();
    assert_eq!(address.ip(), listener.local_addr().unwrap().ip());
    // The server closes the link: that is no end.
    drop(stream);
    bench.run_until(|diary| diary.count("client", &Happened::HungUp(Failure::ClosedByPeer)) == 1);
    let peer = peer();
    peer.send_to(b"still there", address).unwrap();
    bench.run_until(|diary| diary.of("client").iter().any(|what| matches!(what, Happened::Datagram(..))));
    // Another link takes its place, and again datagrams are heard beside it.
    bench.shard.wake_all([id]);
    let stream = accept_beside(&mut bench, &next);
    bench.run_until(|diary| diary.count("client", &Happened::Connected) == 2);
    peer.send_to(b"?", address).unwrap();
    bench.run_until(|diary| diary.of("client").len() > 6);
    assert_eq!(heard(&bench, "client"), [&b"still there"[..], b"?"]);
    bench.shard.stop(id);
    assert!(bench.shard.is_empty());
    drop(stream);
}

#[test]
fn each_pair_has_an_even_port_and_the_next_and_all_of_them_are_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (peer, opened) = (peer(), Arc::new(Mutex::new(Vec::new())));
    let (to, told) = (peer.local_addr().unwrap(), opened.clone());
    let react = Box::new(move |event: Event<'_>, context: &mut weir_shard::Context<'_, _>| match event {
        Event::Connected => *told.lock().unwrap() = context.open_datagram_pairs(2).unwrap(),
        Event::Woken => {
            assert_eq!(context.peer_address().map(|it| it.ip()), Some(to.ip()));
            let mut link = context.split().1;
            for port in 0..4 {
                assert_eq!(link.send_datagrams_from(port, to, b"twice", 3), 2);
            }
            assert_eq!(link.send_datagrams_from(4, to, b"?", 1), 0);
        }
        _ => {}
    });
    let datagrams = |diary: &Diary| {
        diary.of("client").iter().filter(|what| matches!(what, Happened::Datagram(..))).count()
    };
    let mut bench = Bench::new();
    let id = bench.open("client", &endpoint(listener.local_addr().unwrap()), react);
    let _stream = accept(&listener);
    bench.run_until(|diary| diary.count("client", &Happened::Connected) == 1);
    let firsts = opened.lock().unwrap().clone();
    assert!(firsts.len() == 2 && firsts[0] != firsts[1], "{firsts:?}");
    assert!(firsts.iter().all(|port| port % 2 == 0), "{firsts:?}");
    let ports: Vec<u16> = firsts.iter().flat_map(|first| [*first, first + 1]).collect();
    // One alone, the last first, and all at once.
    let mut sent = 0;
    for port in ports.iter().rev().chain(&ports).chain(&ports) {
        peer.send_to(b"hello", (to.ip(), *port)).unwrap();
        sent += 1;
        if sent <= 4 {
            bench.run_until(|diary| datagrams(diary) == sent);
        }
    }
    bench.run_until(|diary| datagrams(diary) == 12);
    bench.shard.wake_all([id]);
    bench.run_until(|diary| diary.count("client", &Happened::Woken) == 1);
    let mut buffer = [0; 10];
    for port in ports.iter().flat_map(|port| [*port; 2]) {
        assert_eq!(peer.recv_from(&mut buffer).unwrap().1, SocketAddr::new(to.ip(), port));
    }
}

fn accept_beside(bench: &mut Bench, listener: &TcpListener) -> std::net::TcpStream {
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    bench.run_until(|_| {
        accepted = accepted.take().or_else(|| listener.accept().ok());
        accepted.is_some()
    });
    accepted.unwrap().0
}

#[test]
fn what_a_full_socket_drops_is_counted() {
    let dropped = Arc::new(Mutex::new(0));
    let told = dropped.clone();
    let react = Box::new(move |event: Event<'_>, context: &mut weir_shard::Context<'_, _>| {
        if matches!(event, Event::Woken) {
            *told.lock().unwrap() = context.dropped_datagrams();
        }
    });
    let mut bench = Bench::new();
    let (id, address) = bench.hear("port", react);
    let peer = peer();
    // Nobody reads meanwhile: far more than any socket holds.
    const SENT: u64 = 20_000;
    for _ in 0..SENT {
        peer.send_to(&[7; 1_200], address).unwrap();
    }
    bench.shard.wake_all([id]);
    bench.run_until(|diary| diary.count("port", &Happened::Woken) == 1);
    // On the loopback interface all of them have come, or found no room, when the last call to send has returned.
    let dropped = *dropped.lock().unwrap();
    assert!(dropped > 0);
    bench.run_until(|diary| {
        let came = diary.of("port").into_iter().filter(|what| matches!(what, Happened::Datagram(..))).count();
        came as u64 + dropped == SENT
    });
}

#[test]
fn what_no_way_out_takes_is_counted_and_what_goes_before_it_has_left() {
    let peer = peer();
    let to = peer.local_addr().unwrap();
    let mut bench = Bench::new();
    bench.hear(
        "sender",
        Box::new(move |event, context| {
            if matches!(event, Event::Opening) {
                // No datagram of IP is longer than 65,535 bytes.
                assert_eq!(context.send_datagrams(to, &vec![1; 2 * 65_530], 65_530), 0);
                assert_eq!(context.dropped_datagrams(), 2);
                assert!(context.send_datagram(to, b"short"));
                assert_eq!(context.dropped_datagrams(), 2);
                // Over the loopback interface nothing waits.
                assert_eq!(context.split().1.unsent_datagrams(), 0);
            }
        }),
    );
    let mut buffer = [0; 10];
    assert_eq!(peer.recv_from(&mut buffer).unwrap().0, 5);
}

#[test]
fn a_link_over_udp_is_there_at_once_and_ends_with_its_peer() {
    let server = peer();
    let address = server.local_addr().unwrap();
    let endpoint = Endpoint { transport: Transport::Udp, ..endpoint(address) };
    let mut bench = Bench::new();
    bench.open(
        "client",
        &endpoint,
        Box::new(move |event, context| {
            if matches!(event, Event::Connected) {
                assert!(context.send_datagram(address, b"hello"));
            }
        }),
    );
    let mut buffer = [0; 10];
    let (length, client) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"hello");
    server.send_to(b"?welcome", client).unwrap();
    // The answer finds nobody, and the machine says so (RFC 1122 section 4.1.3.3).
    drop(server);
    bench.run_until(|diary| diary.closed("client").is_some());
    let welcome = Happened::Datagram(address, b"?welcome".to_vec());
    let refused = Happened::Closed(Failure::ConnectionRefused);
    assert_eq!(bench.diary().of("client"), [Happened::Opening, Happened::Connected, welcome, refused]);
}
