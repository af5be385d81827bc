//! How links end, and what their sessions are told of it.

use crate::bench::{
    A_WHILE, Bench, Happened, accept, deserted, endpoint, lone_listener, patient, pattern, silent,
};
use socket2::{SockFilter, SockRef};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use weir_metrics::Failure;
use weir_shard::{Endpoint, Event};

#[test]
fn a_port_that_nobody_listens_on_refuses() {
    let mut bench = Bench::new();
    bench.open("client", &endpoint(deserted()), silent());
    bench.run_until(|diary| diary.closed("client").is_some());
    let told = [Happened::Opening, Happened::Closed(Failure::ConnectionRefused)];
    assert_eq!(bench.diary().of("client"), told);
    assert!(bench.shard.is_empty());
}

#[test]
fn an_address_without_a_way_to_it_is_unreachable() {
    // The broadcast address of the loopback network: the kernel connects no stream to it (tcp_v4_connect).
    let mut bench = Bench::new();
    let error = bench.try_open("client", &endpoint(SocketAddr::from(([127, 255, 255, 255], 9)))).unwrap_err();
    assert_eq!(error.failure, Failure::Unreachable, "{error}");
    assert_eq!(bench.diary().of("client"), [Happened::Closed(Failure::Unreachable)]);
}

#[test]
fn an_address_that_is_not_of_this_machine_is_no_place_to_connect_from() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // TEST-NET-3, RFC 5737.
    let from = Some(IpAddr::from([203, 0, 113, 7]));
    let endpoint = Endpoint { from, ..endpoint(listener.local_addr().unwrap()) };
    let error = Bench::new().try_open("client", &endpoint).unwrap_err();
    assert_eq!(error.failure, Failure::OutOfPorts, "{error}");
}

#[test]
fn a_session_connects_from_the_address_that_it_was_given() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let from = IpAddr::from([127, 0, 0, 77]);
    let mut bench = Bench::new();
    bench.open(
        "client",
        &Endpoint { from: Some(from), ..endpoint(listener.local_addr().unwrap()) },
        silent(),
    );
    let peer = accept(&listener);
    bench.run_until(|diary| diary.count("client", &Happened::Connected) > 0);
    assert_eq!(peer.peer_addr().unwrap().ip(), from);
}

#[test]
fn a_peer_that_closes_is_told_as_such_after_its_last_words() {
    let (mut bench, mut peer) = Bench::with("client", silent());
    let writing = std::thread::spawn(move || peer.write_all(&pattern(1_000_000)).unwrap());
    bench.run_beside(writing);
    bench.run_until(|diary| diary.closed("client").is_some());
    assert!(bench.diary().bytes("client") == pattern(1_000_000));
    assert_eq!(bench.diary().of("client").last(), Some(&Happened::Closed(Failure::ClosedByPeer)));
    assert!(bench.shard.is_empty());
}

#[test]
fn a_peer_that_closes_one_half_still_hears_the_answer_to_its_last_words() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, || {
        Box::new(|event, context| match event {
            Event::Bytes(bytes) => context.send(bytes),
            Event::Closed { .. } => context.send(b"goodbye"),
            _ => {}
        })
    });
    let peer = std::thread::spawn(move || {
        let mut peer = patient(TcpStream::connect(address).unwrap());
        peer.write_all(b"last words, ").unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let mut heard = String::new();
        peer.read_to_string(&mut heard).unwrap();
        heard
    });
    assert_eq!(bench.run_beside(peer), "last words, goodbye");
    let told = bench.diary().of("server");
    assert_eq!(told.last(), Some(&Happened::Closed(Failure::ClosedByPeer)));
}

#[test]
fn a_peer_that_resets_is_told_as_such() {
    let (mut bench, peer) = Bench::with("client", silent());
    SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
    drop(peer);
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().of("client")[2..], [Happened::Closed(Failure::Reset)]);
}

#[test]
fn a_peer_that_resets_while_a_session_pours_is_told_as_such() {
    let (mut bench, peer) = Bench::with("client", crate::bench::pour(pattern(20_000_000)));
    bench.run_for(A_WHILE);
    // Closing with unread bytes resets (RFC 2525, section 2.17).
    drop(peer);
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().closed("client"), Some(Failure::Reset));
}

#[test]
fn a_session_that_resets_fails_its_peers_read() {
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(|event, context| {
            if matches!(event, Event::Bytes(_)) {
                context.reset();
            }
        }),
    );
    peer.write_all(b"please").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"please");
    assert_eq!(peer.read(&mut [0; 16]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(bench.shard.is_empty());
}

#[test]
fn a_session_that_closes_is_told_nothing_more() {
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(|event, context| {
            if matches!(event, Event::Bytes(_)) {
                context.set_timer(context.now);
                context.pull();
                let id = context.id();
                context.wake(id);
                context.send(b"goodbye");
                context.close();
            }
        }),
    );
    peer.write_all(b"first").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"first");
    let id = bench.diary().id("client");
    // The peer may meet the end of the link here.
    let _ = peer.write_all(b"second");
    bench.shard.stop(id);
    bench.shard.message_sender().post("client");
    bench.run_for(A_WHILE);
    let told = [Happened::Opening, Happened::Connected, Happened::Bytes(b"first".to_vec())];
    assert_eq!(bench.diary().of("client"), told);
    assert!(bench.shard.is_empty());
}

#[test]
fn what_a_session_says_as_it_closes_arrives() {
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(|event, context| {
            if matches!(event, Event::Woken) {
                context.send(b"goodbye");
                context.close();
            }
        }),
    );
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.count("client", &Happened::Woken) > 0);
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "goodbye");
}

#[test]
fn a_session_may_close_before_its_link_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bench = Bench::new();
    bench.open("client", &endpoint(listener.local_addr().unwrap()), Box::new(|_, context| context.close()));
    bench.run_for(A_WHILE);
    assert_eq!(bench.diary().of("client"), [Happened::Opening]);
    assert!(bench.shard.is_empty());
}

#[test]
fn the_place_of_a_session_that_is_gone_is_taken_by_another_under_another_name() {
    let (mut bench, peer) = Bench::with("first", silent());
    let first = bench.diary().id("first");
    drop(peer);
    bench.run_until(|diary| diary.closed("first").is_some());
    let _peer = bench.connect("second", silent());
    assert_ne!(bench.diary().id("second"), first);
    bench.shard.stop(first);
    assert_eq!(bench.diary().count("second", &Happened::Stop), 0);
}

#[test]
fn a_peer_that_vanishes_from_an_established_link_is_a_loss_and_no_connect_timeout() {
    // Accepted sockets inherit the listener's TCP_USER_TIMEOUT (tcp(7)), so that the kernel gives up soon.
    let listener = lone_listener();
    SockRef::from(&listener).set_tcp_user_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut bench = Bench::new();
    let address = bench.listen_at("server", listener, None, || {
        Box::new(|event, context| {
            if matches!(event, Event::Woken) {
                context.send(b"are you there?");
            }
        })
    });
    let peer = patient(TcpStream::connect(address).unwrap());
    bench.run_until(|diary| diary.count("server", &Happened::Connected) > 0);
    // A filter that takes nothing (BPF_RET | BPF_K, 0): segments to the peer are dropped before they are
    // acknowledged, as if its cable had been cut.
    SockRef::from(&peer).attach_filter(&[SockFilter::new(0x06, 0, 0, 0)]).unwrap();
    bench.shard.message_sender().post("server");
    bench.run_until(|diary| diary.closed("server").is_some());
    assert_eq!(bench.diary().closed("server"), Some(Failure::Reset));
    assert!(bench.diary().words.contains("timed out"), "{}", bench.diary().words);
}
