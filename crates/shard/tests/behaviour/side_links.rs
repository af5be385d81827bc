//! The link beside a session's own: it comes, carries, and goes apart from it.

use crate::bench::{Bench, Diary, Happened, Papers, React, accept, deserted, endpoint, pattern, silent};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use weir_metrics::Failure;
use weir_shard::{Context, Endpoint, Event, Side};

/// A session that opens a link beside its own when that is there, says this on it at once, and sends back on its own
/// what comes there.
fn opens(side: Endpoint, words: &'static [u8]) -> React {
    Box::new(move |event, context: &mut Context<'_, Diary>| match event {
        Event::Connected => {
            context.open_side(&side).unwrap();
            context.send_side(words);
        }
        Event::Side(Side::Bytes(bytes)) => {
            bytes.reverse();
            context.send(bytes);
        }
        Event::Woken => context.close_side(),
        Event::Stop => context.close(),
        _ => {}
    })
}

fn side_bytes(diary: &Diary, who: &str) -> Vec<u8> {
    let bytes = |what| if let Happened::SideBytes(bytes) = what { Some(bytes) } else { None };
    diary.of(who).into_iter().filter_map(bytes).flatten().collect()
}

fn start(words: &'static [u8]) -> (Bench, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let side = endpoint(listener.local_addr().unwrap());
    let (mut bench, first) = Bench::with("client", opens(side, words));
    let beside = accept(&listener);
    bench.run_until(|diary| diary.count("client", &Happened::SideConnected) == 1);
    (bench, first, beside)
}

#[test]
fn both_links_of_a_session_carry_at_once_and_are_told_apart() {
    let (mut bench, mut first, mut beside) = start(b"before it was there");
    let mut heard = [0; 19];
    beside.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"before it was there");
    beside.write_all(b"abc").unwrap();
    first.write_all(b"own").unwrap();
    bench.run_until(|diary| !side_bytes(diary, "client").is_empty() && !diary.bytes("client").is_empty());
    assert_eq!(side_bytes(bench.diary(), "client"), b"abc");
    assert_eq!(bench.diary().bytes("client"), b"own");
    let mut back = [0; 3];
    first.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"cba", "what came may be changed where it lay");
    // More than one buffer.
    let (much, written) = (
        pattern(2_000_000),
        std::thread::spawn(move || beside.write_all(&pattern(2_000_000)).map(|()| beside)),
    );
    let drained = std::thread::spawn(move || first.read_exact(&mut vec![0; 2_000_000]).map(|()| first));
    bench.run_until(|diary| side_bytes(diary, "client").len() == 2_000_003);
    assert_eq!(side_bytes(bench.diary(), "client")[3..], much);
    drop((written.join().unwrap().unwrap(), bench.run_beside(drained).unwrap()));
}

#[test]
fn either_link_may_end_without_the_other() {
    let (mut bench, first, mut beside) = start(b"");
    drop(first);
    bench.run_until(|diary| diary.count("client", &Happened::HungUp(Failure::ClosedByPeer)) == 1);
    beside.write_all(b"still there").unwrap();
    bench.run_until(|diary| side_bytes(diary, "client") == b"still there");

    let (mut bench, mut first, beside) = start(b"");
    drop(beside);
    bench.run_until(|diary| diary.count("client", &Happened::SideClosed(Failure::ClosedByPeer)) == 1);
    first.write_all(b"so is this").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"so is this");
    let id = bench.diary().id("client");
    bench.shard.stop(id);
    assert!(bench.shard.is_empty());
}

#[test]
fn a_session_takes_its_side_link_with_it() {
    let (mut bench, _first, mut beside) = start(b"");
    let id = bench.diary().id("client");
    bench.shard.stop(id);
    assert!(bench.shard.is_empty());
    assert_eq!(beside.read(&mut [0]).unwrap(), 0, "it was closed");
}

#[test]
fn a_session_may_let_go_of_its_side_link_alone() {
    let (mut bench, mut first, mut beside) = start(b"");
    let id = bench.diary().id("client");
    bench.shard.wake_all([id]);
    bench.run_until(|diary| diary.count("client", &Happened::Woken) == 1);
    assert_eq!(beside.read(&mut [0]).unwrap(), 0, "it was closed");
    first.write_all(b"own").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"own");
    assert!(!bench.diary().of("client").iter().any(|what| matches!(what, Happened::SideClosed(_))));
}

#[test]
fn a_side_link_that_is_refused_may_be_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (nowhere, there) = (endpoint(deserted()), endpoint(listener.local_addr().unwrap()));
    let react: React = Box::new(move |event, context| match event {
        Event::Connected => context.open_side(&nowhere).unwrap(),
        Event::Side(Side::Closed { .. }) => context.open_side(&there).unwrap(),
        _ => {}
    });
    let (mut bench, _first) = Bench::with("client", react);
    bench.run_until(|diary| diary.count("client", &Happened::SideConnected) == 1);
    assert_eq!(bench.diary().count("client", &Happened::SideClosed(Failure::ConnectionRefused)), 1);
}

#[test]
fn a_side_link_over_tls_is_opened_in_clear() {
    let papers = Papers::new();
    let mut bench = Bench::new();
    let echo = bench.listen("server", Some(papers.server()), crate::bench::echo);
    let side = papers.endpoint(echo, "localhost");
    let own = bench.listen("own", None, silent);
    bench.open("client", &endpoint(own), opens(side, b"secret"));
    bench.run_until(|diary| side_bytes(diary, "client") == b"secret");
    let (connected, came) = (Happened::SideConnected, Happened::SideBytes(b"secret".to_vec()));
    assert_eq!(
        bench.diary().of("client").into_iter().filter(|it| *it == connected || *it == came).count(),
        2
    );
}
