//! How links over TLS fail to be, and how they end.

use crate::bench::{Bench, Happened, Papers, React, accept, echo, pattern, say, silent};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use weir_metrics::Failure;
use weir_shard::tls::{self, ClientTls, ServerName, Trust};
use weir_shard::{Endpoint, Event, Transport};

#[test]
fn a_certificate_for_another_name_fails_on_both_sides() {
    let papers = Papers::new();
    let mut bench = Bench::new();
    let address = bench.listen("server", Some(papers.server()), silent);
    bench.open("client", &papers.endpoint(address, "example.org"), silent());
    bench.run_until(|diary| diary.closed("client").is_some() && diary.closed("server").is_some());
    assert_eq!(bench.diary().of("client"), [Happened::Opening, Happened::Closed(Failure::TlsFailed)]);
    assert_eq!(bench.diary().of("server"), [Happened::Closed(Failure::TlsFailed)]);
}

#[test]
fn a_certificate_of_a_stranger_fails_unless_anyone_is_trusted() {
    let (papers, others) = (Papers::new(), Papers::new());
    let mut bench = Bench::new();
    let address = bench.listen("server", Some(papers.server()), echo);
    bench.open("client", &others.endpoint(address, "localhost"), say(b"hello".to_vec()));
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().closed("client"), Some(Failure::TlsFailed));
    let anyone = tls::client_config(&ClientTls { trust: Trust::Anyone, identity: None }).unwrap();
    let transport = Transport::Tls(anyone, ServerName::try_from("example.org").unwrap());
    let endpoint = Endpoint { transport, ..Endpoint::tcp(address) };
    bench.open("trusting", &endpoint, say(b"hello".to_vec()));
    bench.run_until(|diary| diary.bytes("trusting") == b"hello");
}

#[test]
fn a_plain_server_is_no_tls_peer() {
    let papers = Papers::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bench = Bench::new();
    bench.open("client", &papers.endpoint(listener.local_addr().unwrap(), "localhost"), silent());
    let mut peer = accept(&listener);
    peer.write_all(b"220 ready when you are\r\n").unwrap();
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().of("client"), [Happened::Opening, Happened::Closed(Failure::TlsFailed)]);
}

#[test]
fn a_plain_client_is_no_tls_peer() {
    let papers = Papers::new();
    let mut bench = Bench::new();
    let address = bench.listen("server", Some(papers.server()), silent);
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    bench.run_until(|diary| diary.closed("server").is_some());
    assert_eq!(bench.diary().of("server"), [Happened::Closed(Failure::TlsFailed)]);
}

#[test]
fn a_server_that_closes_in_the_middle_of_the_handshake_has_closed() {
    let papers = Papers::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut bench = Bench::new();
    bench.open("client", &papers.endpoint(listener.local_addr().unwrap(), "localhost"), silent());
    let mut peer = accept(&listener);
    let closing = std::thread::spawn(move || {
        // All of the hello is read, so that the close is no reset.
        let mut head = [0; 5];
        peer.read_exact(&mut head).unwrap();
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        peer.read_exact(&mut vec![0; length]).unwrap();
    });
    bench.run_beside(closing);
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().of("client"), [Happened::Opening, Happened::Closed(Failure::ClosedByPeer)]);
}

/// A TLS server made of the library alone: shakes hands, then does as it is told.
fn peer<T: Send + 'static>(
    config: Arc<rustls::ServerConfig>,
    then: impl FnOnce(&mut rustls::ServerConnection, &mut TcpStream) -> T + Send + 'static,
) -> (std::net::SocketAddr, std::thread::JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let mut tls = rustls::ServerConnection::new(config).unwrap();
        let mut stream = accept(&listener);
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).unwrap();
        }
        then(&mut tls, &mut stream)
    });
    (address, serving)
}

/// Sends what TLS has to say, in one piece with what follows it.
fn flush_with(tls: &mut rustls::ServerConnection, stream: &mut TcpStream, more: &[u8]) {
    let mut bytes = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut bytes).unwrap();
    }
    bytes.extend_from_slice(more);
    stream.write_all(&bytes).unwrap();
}

#[test]
fn a_peer_that_says_goodbye_has_closed_though_its_connection_stays_open() {
    let papers = Papers::new();
    let (address, serving) = peer(papers.server(), |tls, stream| {
        tls.writer().write_all(b"last words").unwrap();
        tls.send_close_notify();
        flush_with(tls, stream, b"");
        // It waits for the session's own end.
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    });
    let mut bench = Bench::new();
    bench.open("client", &papers.endpoint(address, "localhost"), silent());
    bench.run_until(|diary| diary.closed("client").is_some());
    let end = [Happened::Bytes(b"last words".to_vec()), Happened::Closed(Failure::ClosedByPeer)];
    assert_eq!(bench.diary().of("client")[2..], end);
    bench.run_beside(serving);
}

#[test]
fn what_was_given_back_comes_again_before_the_goodbye_that_came_with_it() {
    let papers = Papers::new();
    let (address, serving) = peer(papers.server(), |tls, stream| {
        tls.writer().write_all(b"last words").unwrap();
        tls.send_close_notify();
        flush_with(tls, stream, b"");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    });
    let mut bench = Bench::new();
    let one_at_a_time: React = Box::new(|event, context| {
        if let Event::Bytes([_, rest @ ..]) = event {
            context.give_back(rest);
        }
    });
    bench.open("client", &papers.endpoint(address, "localhost"), one_at_a_time);
    bench.run_until(|diary| diary.closed("client").is_some());
    let firsts: Vec<u8> = bench.diary().reads("client").iter().map(|bytes| bytes[0]).collect();
    assert_eq!(firsts, b"last words");
    assert_eq!(bench.diary().closed("client"), Some(Failure::ClosedByPeer));
    bench.run_beside(serving);
}

#[test]
fn what_a_peer_sends_after_its_goodbye_is_not_looked_at() {
    let papers = Papers::new();
    let (address, serving) = peer(papers.server(), |tls, stream| {
        tls.send_close_notify();
        flush_with(tls, stream, &pattern(100_000));
    });
    let mut bench = Bench::new();
    bench.open("client", &papers.endpoint(address, "localhost"), silent());
    bench.run_until(|diary| diary.closed("client").is_some());
    assert_eq!(bench.diary().of("client")[2..], [Happened::Closed(Failure::ClosedByPeer)]);
    bench.run_beside(serving);
}

#[test]
fn what_came_before_a_record_that_is_none_is_told() {
    let papers = Papers::new();
    let (address, serving) = peer(papers.server(), |tls, stream| {
        tls.writer().write_all(b"good").unwrap();
        flush_with(tls, stream, &[0x17, 3, 3, 0, 32].into_iter().chain([0; 32]).collect::<Vec<u8>>());
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut bench = Bench::new();
    bench.open("client", &papers.endpoint(address, "localhost"), silent());
    bench.run_until(|diary| diary.closed("client").is_some());
    let end = [Happened::Bytes(b"good".to_vec()), Happened::Closed(Failure::TlsFailed)];
    assert_eq!(bench.diary().of("client")[2..], end);
    bench.run_beside(serving);
}

#[test]
fn a_session_that_closes_says_goodbye_to_its_peer() {
    let papers = Papers::new();
    let (address, serving) = peer(papers.server(), |tls, stream| {
        let mut heard = String::new();
        // Without a close_notify (RFC 8446, section 6.1) this is an error: the words may be cut short.
        rustls::Stream::new(tls, stream).read_to_string(&mut heard).map(|_| heard)
    });
    let mut bench = Bench::new();
    bench.open(
        "client",
        &papers.endpoint(address, "localhost"),
        Box::new(|event, context| {
            if matches!(event, Event::Connected) {
                context.send(b"that is all");
                context.close();
            }
        }),
    );
    assert_eq!(bench.run_beside(serving).unwrap(), "that is all");
}
