//! A session is woken by another, by another thread, or told to stop.

use crate::bench::{A_WHILE, Bench, Happened, React, endpoint, silent};
use std::io::{Read, Write};
use weir_shard::Event;

/// Wakes the session of this name at every read.
fn wakes(other: &'static str) -> React {
    Box::new(move |event, context| {
        if matches!(event, Event::Bytes(_)) {
            let id = context.world.id(other);
            context.wake(id);
        }
    })
}

#[test]
fn a_session_wakes_another() {
    let (mut bench, mut peer) = Bench::with("first", wakes("second"));
    let mut other = bench.connect(
        "second",
        Box::new(|event, context| {
            if matches!(event, Event::Woken) {
                context.send(b"good morning");
            }
        }),
    );
    peer.write_all(b"now").unwrap();
    let mut heard = [0; 12];
    let reading = std::thread::spawn(move || {
        other.read_exact(&mut heard).unwrap();
        heard
    });
    assert_eq!(&bench.run_beside(reading), b"good morning");
    assert_eq!(bench.diary().count("first", &Happened::Woken), 0);
}

#[test]
fn two_that_wake_each_other_leave_the_others_their_turn() {
    let ping_pong = |other: &'static str| -> React {
        Box::new(move |event, context| {
            if matches!(event, Event::Bytes(_) | Event::Woken) {
                let id = context.world.id(other);
                context.wake(id);
            }
        })
    };
    let (mut bench, mut first) = Bench::with("first", ping_pong("second"));
    let _second = bench.connect("second", ping_pong("first"));
    let mut third = bench.connect("third", silent());
    first.write_all(b"begin").unwrap();
    bench.run_until(|diary| diary.count("first", &Happened::Woken) > 10);
    third.write_all(b"me too").unwrap();
    bench.run_until(|diary| diary.bytes("third") == b"me too");
}

#[test]
fn one_that_is_gone_is_not_woken_and_neither_is_who_has_its_place() {
    let (mut bench, mut peer) = Bench::with("first", wakes("second"));
    let second = bench.connect("second", silent());
    drop(second);
    bench.run_until(|diary| diary.closed("second").is_some());
    let _third = bench.connect("third", silent());
    peer.write_all(b"now").unwrap();
    bench.run_until(|diary| diary.bytes("first") == b"now");
    bench.run_for(A_WHILE);
    for who in ["second", "third"] {
        assert_eq!(bench.diary().count(who, &Happened::Woken), 0, "{who}");
    }
}

#[test]
fn a_message_from_another_thread_ends_the_sleep() {
    let (mut bench, _peer) = Bench::with("client", silent());
    let message_sender = bench.shard.message_sender();
    let posting = std::thread::spawn(move || message_sender.post("client"));
    bench.run_until(|diary| diary.count("client", &Happened::Woken) > 0);
    posting.join().unwrap();
    assert_eq!(bench.diary().count("client", &Happened::Woken), 1);
}

#[test]
fn no_message_is_lost_however_many_come_at_once() {
    let (mut bench, _peer) = Bench::with("client", silent());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let message_sender = bench.shard.message_sender();
            std::thread::spawn(move || (0..250).for_each(|_| message_sender.post("client")))
        })
        .collect();
    bench.run_until(|diary| diary.count("client", &Happened::Woken) == 1_000);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_stop_reaches_each_session_whatever_its_link_is_at() {
    let (full, _guard) = crate::bench::full_listener();
    let goodbye = || -> React {
        Box::new(|event, context| {
            if matches!(event, Event::Stop) {
                context.send(b"goodbye");
                context.close();
            }
        })
    };
    let (mut bench, mut peer) = Bench::with("connected", goodbye());
    let opening = bench.open("opening", &endpoint(full), goodbye());
    let connected = bench.diary().id("connected");
    for id in [connected, opening] {
        bench.shard.stop(id);
        bench.shard.stop(id);
    }
    assert!(bench.shard.is_empty());
    assert_eq!(bench.diary().of("opening"), [Happened::Opening, Happened::Stop]);
    assert_eq!(bench.diary().of("connected")[2..], [Happened::Stop]);
    let mut heard = String::new();
    peer.read_to_string(&mut heard).unwrap();
    assert_eq!(heard, "goodbye");
}
