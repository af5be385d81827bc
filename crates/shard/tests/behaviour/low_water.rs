//! A low-water mark holds events back until as many bytes wait.

use crate::bench::{A_WHILE, Bench, Happened, Papers, React, pattern, pour, silent};
use std::io::{Read, Write};
use weir_metrics::Failure;
use weir_shard::{Event, clock};

/// Waits for `bytes` before it reads; pulls when it is woken.
fn waits_for(bytes: usize) -> React {
    Box::new(move |event, context| match event {
        Event::Connected => context.set_low_water(bytes),
        Event::Woken => context.pull(),
        _ => {}
    })
}

#[test]
fn fewer_bytes_than_the_mark_wait_and_come_together() {
    let (mut bench, mut peer) = Bench::with("client", waits_for(10_000));
    let words = pattern(12_000);
    for piece in words[..9_000].chunks(3_000) {
        peer.write_all(piece).unwrap();
        bench.run_for(A_WHILE / 3);
    }
    assert_eq!(bench.diary().reads("client").len(), 0);
    peer.write_all(&words[9_000..]).unwrap();
    bench.run_until(|diary| diary.bytes("client") == words);
    assert_eq!(bench.diary().reads("client").len(), 1);
}

#[test]
fn bytes_below_the_mark_come_when_the_peer_closes() {
    let (mut bench, mut peer) = Bench::with("client", waits_for(10_000));
    peer.write_all(b"last words").unwrap();
    bench.run_for(A_WHILE);
    assert_eq!(bench.diary().bytes("client"), b"");
    drop(peer);
    bench.run_until(|diary| diary.closed("client").is_some());
    let end = [Happened::Bytes(b"last words".to_vec()), Happened::Closed(Failure::ClosedByPeer)];
    assert_eq!(bench.diary().of("client")[2..], end);
}

#[test]
fn a_pull_reads_what_waits_below_the_mark() {
    let (mut bench, mut peer) = Bench::with("client", waits_for(10_000));
    peer.write_all(b"a few").unwrap();
    bench.run_for(A_WHILE);
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.count("client", &Happened::Woken) > 0);
    let end = [Happened::Woken, Happened::Bytes(b"a few".to_vec())];
    assert_eq!(bench.diary().of("client")[2..], end);
}

#[test]
fn a_pull_that_finds_nothing_says_so_at_once() {
    let (mut bench, _peer) = Bench::with("client", waits_for(10_000));
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.count("client", &Happened::Woken) > 0);
    assert_eq!(bench.diary().of("client")[2..], [Happened::Woken, Happened::Bytes(Vec::new())]);
}

#[test]
fn a_session_may_ask_how_much_waits_below_the_mark_without_reading_it() {
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(|event, context| match event {
            Event::Connected => context.set_low_water(10_000),
            Event::Woken => {
                let unread = context.unread();
                context.send(&unread.to_be_bytes());
            }
            _ => {}
        }),
    );
    for expected in [0, 700, 1_400usize] {
        bench.run_for(A_WHILE);
        bench.shard.message_sender().post("client");
        bench.run_until(|diary| diary.count("client", &Happened::Woken) > expected / 700);
        let mut unread = [0; size_of::<usize>()];
        peer.read_exact(&mut unread).unwrap();
        assert_eq!(usize::from_be_bytes(unread), expected);
        peer.write_all(&[1; 700]).unwrap();
    }
    assert_eq!(bench.diary().bytes("client"), b"");
}

#[test]
fn a_pull_while_bytes_closing_or_opening_are_told_changes_nothing() {
    let (mut bench, mut peer) = Bench::with("client", Box::new(|_, context| context.pull()));
    peer.write_all(b"words").unwrap();
    bench.run_until(|diary| diary.bytes("client") == b"words");
    drop(peer);
    bench.run_until(|diary| diary.closed("client").is_some());
    let told = bench.diary().of("client");
    let said: Vec<_> = told.iter().filter(|what| **what != Happened::Bytes(Vec::new())).cloned().collect();
    let expected = [
        Happened::Opening,
        Happened::Connected,
        Happened::Bytes(b"words".to_vec()),
        Happened::Closed(Failure::ClosedByPeer),
    ];
    assert_eq!(said, expected);
    assert_eq!(told.last(), Some(&Happened::Closed(Failure::ClosedByPeer)));
}

#[test]
fn a_mark_that_is_lowered_uncovers_what_waits() {
    let mut low = false;
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(move |event, context| {
            if matches!(event, Event::Connected | Event::Woken) {
                context.set_low_water(if std::mem::replace(&mut low, true) { 1 } else { 10_000 });
            }
        }),
    );
    peer.write_all(b"a few").unwrap();
    bench.run_for(A_WHILE);
    assert_eq!(bench.diary().bytes("client"), b"");
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.bytes("client") == b"a few");
}

#[test]
fn a_sweep_reads_every_link_below_its_mark() {
    let (mut bench, mut one) = Bench::with("one", waits_for(10_000));
    let mut two = bench.connect("two", waits_for(20_000));
    one.write_all(b"of one").unwrap();
    two.write_all(b"of two").unwrap();
    bench.run_for(A_WHILE);
    assert_eq!((bench.diary().bytes("one"), bench.diary().bytes("two")), (vec![], vec![]));
    bench.shard.sweep(clock::now());
    assert_eq!(bench.diary().bytes("one"), b"of one");
    assert_eq!(bench.diary().bytes("two"), b"of two");
    bench.shard.sweep(clock::now());
    assert_eq!(bench.diary().reads("one").len(), 1, "an empty sweep tells nothing");
}

#[test]
fn what_waits_below_the_marks_is_known_without_reading_it() {
    let (mut bench, mut one) = Bench::with("one", waits_for(10_000));
    let mut two = bench.connect("two", waits_for(20_000));
    let mut all = bench.connect("reads all", silent());
    one.write_all(&[1; 300]).unwrap();
    two.write_all(&[2; 500]).unwrap();
    all.write_all(&[3; 700]).unwrap();
    bench.run_for(A_WHILE);
    let unread = |bench: &Bench, most: usize| {
        let mut told = Vec::new();
        bench.shard.unread(most, |id, bytes, stands_for| told.push((id, bytes, stands_for)));
        told
    };
    let (one, two) = (bench.diary().id("one"), bench.diary().id("two"));
    assert_eq!(unread(&bench, 10), [(one, 300, 1), (two, 500, 1)]);
    assert_eq!(unread(&bench, 1), [(one, 300, 2)], "one is asked for both");
    assert_eq!(bench.diary().bytes("one"), b"");
    bench.shard.sweep(clock::now());
    assert_eq!(unread(&bench, 10), [(one, 0, 1), (two, 0, 1)]);
}

#[test]
fn over_tls_the_mark_holds_and_a_pull_brings_what_is_whole() {
    let papers = Papers::new();
    let mut bench = Bench::new();
    let address = bench.listen("server", Some(papers.server()), || {
        Box::new(|event, context| {
            if matches!(event, Event::Bytes(_)) {
                context.send(b"a few");
            }
        })
    });
    bench.open(
        "client",
        &papers.endpoint(address, "localhost"),
        Box::new(|event, context| match event {
            Event::Connected => {
                context.set_low_water(10_000);
                context.send(b"go on");
            }
            Event::Woken => context.pull(),
            _ => {}
        }),
    );
    bench.run_until(|diary| diary.bytes("server") == b"go on");
    bench.run_for(A_WHILE);
    assert_eq!(bench.diary().bytes("client"), b"");
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.bytes("client") == b"a few");
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.count("client", &Happened::Woken) == 2);
    assert_eq!(bench.diary().of("client").last(), Some(&Happened::Bytes(Vec::new())));
}

#[test]
fn a_stream_through_a_mark_is_whole() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, || pour(pattern(2_000_000)));
    bench.open("client", &crate::bench::endpoint(address), waits_for(65_536));
    bench.open("other", &crate::bench::endpoint(address), silent());
    bench.run_until(|diary| diary.bytes_read("other") == 2_000_000);
    bench.run_for(A_WHILE);
    bench.shard.sweep(clock::now());
    assert!(bench.diary().bytes("client") == pattern(2_000_000));
    let small = bench.diary().reads("client").iter().filter(|read| read.len() < 65_536).count();
    assert!(small <= 1, "only what is left at the end is less than the mark: {small}");
}
