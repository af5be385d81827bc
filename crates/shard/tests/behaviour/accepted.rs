//! Links that others opened: they share turns, and end when their peers do not go on.

use crate::bench::{Bench, Papers, React, echo, silent};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use weir_metrics::Failure;
use weir_shard::{Deadlines, Event};

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(600);

fn bench(request: Duration, idle: Duration) -> Bench {
    let mut bench = Bench::new();
    bench.shard.set_deadlines(Deadlines { request, idle });
    bench
}

/// Says at once that its peer has said what it wants, and sends it `bytes` at a time for each of its own.
fn established() -> React {
    Box::new(|event, context| match event {
        Event::Connected => context.established(),
        Event::Bytes(bytes) => context.send(&[7].repeat(bytes.len())),
        _ => {}
    })
}

#[test]
fn a_handshake_of_tls_that_stands_still_is_ended() {
    let mut bench = bench(SHORT, LONG);
    let address = bench.listen("server", Some(Papers::new().server()), silent);
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]).unwrap();
    bench.run_until(|diary| diary.closed("server").is_some());
    assert_eq!(bench.diary().closed("server"), Some(Failure::RequestTimeout));
    assert_eq!(half.read(&mut [0; 100]).unwrap_or(0), 0, "the peer's link is gone as well");
}

#[test]
fn who_sends_and_asks_for_nothing_is_ended_and_who_has_asked_stays() {
    let mut bench = bench(SHORT, LONG);
    let (asks_for_nothing, has_asked) =
        (bench.listen("waiting", None, echo), bench.listen("established", None, established));
    let mut waiting = TcpStream::connect(asks_for_nothing).unwrap();
    let _established = TcpStream::connect(has_asked).unwrap();
    bench.run_until(|diary| {
        let _ = waiting.write_all(b"still here");
        diary.closed("waiting").is_some()
    });
    assert_eq!(bench.diary().closed("waiting"), Some(Failure::RequestTimeout));
    assert_eq!(bench.diary().closed("established"), None);
}

#[test]
fn who_is_silent_is_ended_after_a_while() {
    let mut bench = bench(LONG, SHORT);
    let address = bench.listen("server", None, established);
    let _silent = TcpStream::connect(address).unwrap();
    bench.run_until(|diary| diary.closed("server").is_some());
}

#[test]
fn who_may_be_silent_for_longer_is_not_ended_with_the_others() {
    let mut bench = bench(LONG, SHORT);
    let promised = || -> React {
        Box::new(|event, context| {
            if let Event::Connected = event {
                context.established();
                context.allow_silence(LONG);
            }
        })
    };
    let (patient, usual) =
        (bench.listen("promised", None, promised), bench.listen("usual", None, established));
    let _promised = TcpStream::connect(patient).unwrap();
    bench.run_until(|diary| !diary.of("promised").is_empty());
    let _usual = TcpStream::connect(usual).unwrap();
    bench.run_until(|diary| diary.closed("usual").is_some());
    assert_eq!(bench.diary().closed("promised"), None);
}

#[test]
fn what_is_given_back_comes_again_whole_and_others_have_their_turns_between() {
    let mut bench = Bench::new();
    let one_at_a_time = || -> React {
        Box::new(|event, context| {
            if let Event::Bytes([_, rest @ ..]) = event {
                context.give_back(rest);
            }
        })
    };
    let (slow, quick) = (bench.listen("slow", None, one_at_a_time), bench.listen("quick", None, echo));
    let mut streams = [TcpStream::connect(slow).unwrap(), TcpStream::connect(quick).unwrap()];
    bench.run_until(|diary| ["slow", "quick"].iter().all(|who| !diary.of(who).is_empty()));
    for stream in &mut streams {
        stream.write_all(b"0123456789").unwrap();
    }
    bench.run_until(|diary| !diary.reads("slow").is_empty());
    streams[0].write_all(b"abc").unwrap();
    bench.run_until(|diary| {
        diary.reads("slow").last().is_some_and(|last| last == b"c") && !diary.reads("quick").is_empty()
    });
    // Each read begins one byte later than the one before it, and nothing is read from the link in between.
    let firsts: Vec<u8> = bench.diary().reads("slow").iter().map(|bytes| bytes[0]).collect();
    assert_eq!(firsts, b"0123456789abc");
    let lines: Vec<_> = bench.diary().lines.iter().map(|line| line.who).collect();
    let last_of = |who| lines.iter().rposition(|it| *it == who).unwrap();
    assert!(last_of("quick") < last_of("slow"), "{:?}", bench.diary().lines.len());
}

#[test]
fn what_is_given_back_waits_while_the_session_does_not_read() {
    let mut bench = Bench::new();
    let pausing = || -> React {
        let mut paused = false;
        Box::new(move |event, context| match event {
            Event::Bytes(bytes) if !paused => {
                paused = true;
                context.give_back(bytes);
                context.pause_reading(true);
                context.set_timer(context.now + SHORT / 4);
            }
            Event::Timer => context.pause_reading(false),
            _ => {}
        })
    };
    let address = bench.listen("server", None, pausing);
    let mut peer = TcpStream::connect(address).unwrap();
    peer.write_all(b"hello").unwrap();
    bench.run_until(|diary| diary.reads("server").len() == 2);
    assert_eq!(bench.diary().reads("server"), [b"hello", b"hello"]);
}

#[test]
fn a_flood_of_one_is_read_in_pieces_that_others_come_between() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, silent);
    let mut peer = TcpStream::connect(address).unwrap();
    let writing = std::thread::spawn(move || peer.write_all(&vec![7; 1 << 20]).map(|()| peer));
    bench.run_until(|diary| diary.bytes_read("server") == 1 << 20);
    let longest = bench.diary().reads("server").iter().map(Vec::len).max();
    assert!(longest <= Some(64 * 1024), "{longest:?} bytes at a time");
    drop(writing.join());
}
