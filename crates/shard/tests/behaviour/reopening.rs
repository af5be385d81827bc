//! A session that leaves its peer for another one.

use crate::bench::{Bench, Happened, Papers, React, accept, deserted, endpoint, say};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};
use weir_metrics::Failure;
use weir_shard::{Endpoint, Event, Transport};

/// Goes to these endpoints, one after the other, at the first bytes from each peer.
fn wanderer(mut endpoints: Vec<Endpoint>) -> React {
    endpoints.reverse();
    Box::new(move |event, context| {
        if matches!(event, Event::Bytes(_))
            && let Some(next) = endpoints.pop()
        {
            context.set_low_water(4_000);
            context.reopen(next);
        }
    })
}

#[test]
fn the_next_peer_is_reached_from_the_same_address_and_the_one_before_is_let_go() {
    let (first, second) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let from = IpAddr::from([127, 0, 0, 78]);
    let mut bench = Bench::new();
    let start = Endpoint { from: Some(from), ..endpoint(first.local_addr().unwrap()) };
    let id = bench.open("client", &start, wanderer(vec![endpoint(second.local_addr().unwrap())]));
    let mut before = accept(&first);
    before.write_all(b"go").unwrap();
    bench.run_until(|diary| diary.count("client", &Happened::Connected) == 2);
    assert_eq!(before.read(&mut [0]).unwrap(), 0, "it has gone");
    let mut after = accept(&second);
    assert_eq!(after.peer_addr().unwrap().ip(), from);
    // It reads at every event again, and is the session that it was.
    after.write_all(b"on").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"goon");
    bench.shard.stop(id);
    drop(after);
    bench.run_until(|diary| diary.closed("client").is_some());
    let told = [
        Happened::Opening,
        Happened::Connected,
        Happened::Bytes(b"go".to_vec()),
        Happened::Connected,
        Happened::Bytes(b"on".to_vec()),
        Happened::Stop,
        Happened::Closed(Failure::ClosedByPeer),
    ];
    assert_eq!(bench.diary().of("client"), told);
    assert!(bench.shard.is_empty());
}

#[test]
fn the_end_of_the_link_before_is_no_end_of_the_next() {
    // Last words and end come in one read, in clear and over TLS; the next peer speaks the other one.
    let papers = Papers::new();
    let mut bench = Bench::new();
    let goodbye = || -> React {
        Box::new(|event, context| {
            if matches!(event, Event::Connected) {
                context.send(b"go");
                context.close();
            }
        })
    };
    let plain = bench.listen("plain", None, goodbye);
    let secure = bench.listen("secure", Some(papers.server()), goodbye);
    let last = bench.listen("last", Some(papers.server()), || say(b"on".to_vec()));
    let endpoints = vec![papers.endpoint(secure, "localhost"), papers.endpoint(last, "localhost")];
    bench.open("client", &endpoint(plain), wanderer(endpoints));
    bench.run_until(|diary| diary.bytes("client") == b"gogoon");
    assert_eq!(bench.diary().count("client", &Happened::Connected), 3);
    assert_eq!(bench.diary().closed("client"), None);
}

#[test]
fn a_next_peer_that_is_not_there_ends_the_session() {
    let first = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bench = Bench::new();
    bench.open("client", &endpoint(first.local_addr().unwrap()), wanderer(vec![endpoint(deserted())]));
    accept(&first).write_all(b"go").unwrap();
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().closed("client"), Some(Failure::ConnectionRefused));
    assert!(bench.shard.is_empty());
}

/// Stands by whenever its link ends, and connects to `endpoint` when its time has come.
fn patient(endpoint: Endpoint) -> React {
    Box::new(move |event, context| match event {
        Event::Closed { .. } => {
            context.stand_by();
            context.set_timer(context.now + std::time::Duration::from_millis(5));
        }
        Event::Timer => context.reopen(endpoint.clone()),
        Event::Stop => context.close(),
        _ => {}
    })
}

#[test]
fn a_session_that_stands_by_outlives_its_links_and_peers_that_are_not_there() {
    let mut bench = Bench::new();
    let address = deserted();
    let first = TcpListener::bind("127.0.0.1:0").unwrap();
    let id = bench.open("client", &endpoint(first.local_addr().unwrap()), patient(endpoint(address)));
    drop(accept(&first));
    let refused = Happened::Closed(Failure::ConnectionRefused);
    bench.run_until(|diary| diary.count("client", &refused) >= 3);
    assert_eq!(bench.shard.len(), 1);
    let second = TcpListener::bind(address).unwrap();
    bench.run_until(|diary| diary.count("client", &Happened::Connected) == 2);
    accept(&second).write_all(b"on").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"on");
    // It may stand by when it is told to stop, and then there is no link to say goodbye on.
    bench.run_until(|diary| diary.of("client").last() == Some(&Happened::Closed(Failure::ClosedByPeer)));
    bench.shard.stop(id);
    assert!(bench.shard.is_empty());
}

#[test]
fn a_session_of_datagrams_that_stands_by_has_others_from_the_same_address() {
    let mut bench = Bench::new();
    let from = IpAddr::from([127, 0, 0, 79]);
    let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let way =
        Endpoint { from: Some(from), transport: Transport::Udp, ..endpoint(peer.local_addr().unwrap()) };
    let again = way.clone();
    let mut stands_by = false;
    let react: React = Box::new(move |event, context| match event {
        Event::Connected => {
            context.send_datagram(again.address, b"here");
            context.set_timer(context.now + std::time::Duration::from_millis(5));
        }
        Event::Timer if stands_by => {
            stands_by = false;
            context.reopen(again.clone());
        }
        Event::Timer => {
            stands_by = true;
            context.stand_by();
            context.set_timer(context.now + std::time::Duration::from_millis(5));
        }
        Event::Stop => context.close(),
        _ => {}
    });
    let id = bench.open("client", &way, react);
    bench.run_until(|diary| diary.count("client", &Happened::Connected) >= 2);
    let seen: Vec<_> = (0..2).map(|_| peer.recv_from(&mut [0; 9]).unwrap().1).collect();
    assert_eq!((seen[0].ip(), seen[1].ip()), (from, from));
    assert_ne!(seen[0].port(), seen[1].port());
    bench.shard.stop(id);
    assert!(bench.shard.is_empty());
}

#[test]
fn a_session_that_is_bound_gets_what_anyone_sends() {
    let mut bench = Bench::new();
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bound = Endpoint { transport: Transport::BoundUdp, ..endpoint(free) };
    bench.open("server", &bound, Box::new(|_, _| {}));
    for _ in 0..2 {
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.set_nonblocking(true).unwrap();
        peer.send_to(b"?here", free).unwrap();
        bench.run_until(|_| {
            peer.recv_from(&mut [0; 9]).is_ok_and(|(length, from)| (length, from) == (5, free))
        });
    }
}
