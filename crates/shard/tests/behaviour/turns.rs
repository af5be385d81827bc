//! What one turn of the loop reads of a peer that floods: its share and no more, however long it goes on.

use crate::bench::{Bench, Diary, Happened, React, TEST_TIMEOUT, accept, echo, endpoint, silent};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use weir_shard::{Context, Event, clock};

/// Bytes of an accepted link in one turn.
const SHARE: usize = 64 * 1024;
/// Bytes of a link that its session has opened in one turn: four buffers of 256 KiB.
const SHARE_OF_OPENED: usize = 4 * 256 * 1024;
/// Datagrams in one turn when the kernel puts none together: four reads of eight.
const DATAGRAMS: usize = 32;
/// Turns of a flood.
const TURNS: usize = 60;
/// Answers that a second peer gets meanwhile, at least.
const ANSWERS: usize = 10;

/// What a peer sends before each turn. More than its share, so that something is always left for the next one.
fn flood(peer: &mut TcpStream) {
    peer.set_nonblocking(true).unwrap();
    // What the kernel does not take is not sent: then enough is waiting.
    let _ = peer.write(&vec![7; 3 * SHARE]);
}

/// Turns the loop once, without sleeping; what was read of one meanwhile.
fn turn(bench: &mut Bench, read: impl Fn(&Diary) -> usize) -> usize {
    let before = read(bench.diary());
    bench.shard.turn(clock::now()).unwrap();
    read(bench.diary()) - before
}

#[test]
fn a_flood_is_read_for_one_share_a_turn_however_long_it_lasts() {
    let mut bench = Bench::new();
    let (busy, quiet) = (bench.listen("flood", None, silent), bench.listen("quiet", None, echo));
    let mut peer = TcpStream::connect(busy).unwrap();
    let mut other = TcpStream::connect(quiet).unwrap();
    bench.run_until(|diary| ["flood", "quiet"].iter().all(|who| diary.count(who, &Happened::Connected) == 1));
    other.write_all(&[1]).unwrap();
    other.set_nonblocking(true).unwrap();
    let (began, mut answers) = (clock::now(), 0);
    // A second peer asks again whenever it was answered.
    while bench.diary().bytes_read("flood") < TURNS * SHARE || answers < ANSWERS {
        assert!(clock::now().since(began) < TEST_TIMEOUT, "the second peer was answered {answers} times");
        flood(&mut peer);
        let read = turn(&mut bench, |diary| diary.bytes_read("flood"));
        assert!(read <= SHARE, "{read} bytes in one turn");
        if matches!(other.read(&mut [0]), Ok(1)) {
            answers += 1;
            other.write_all(&[1]).unwrap();
        }
    }
}

#[test]
fn a_session_that_gives_bytes_back_is_told_them_once_a_turn() {
    // It takes one byte of each read and asks for the rest again.
    let sparing = || -> React {
        Box::new(|event, context: &mut Context<'_, Diary>| {
            if let Event::Bytes([_, rest @ ..]) = event {
                context.give_back(rest);
            }
        })
    };
    let mut bench = Bench::new();
    let address = bench.listen("flood", None, sparing);
    let mut peer = TcpStream::connect(address).unwrap();
    bench.run_until(|diary| diary.count("flood", &Happened::Connected) == 1);
    peer.write_all(&[7; 2 * TURNS]).unwrap();
    bench.run_until(|diary| !diary.reads("flood").is_empty());
    for _ in 0..TURNS {
        peer.write_all(b"more").unwrap();
        let told = turn(&mut bench, |diary| diary.reads("flood").len());
        assert_eq!(told, 1);
    }
}

#[test]
fn a_link_beside_is_read_for_one_share_a_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let side = endpoint(listener.local_addr().unwrap());
    let (mut bench, _first) = Bench::with(
        "flood",
        Box::new(move |event, context| {
            if let Event::Connected = event {
                context.open_side(&side).unwrap();
            }
        }),
    );
    let mut beside = accept(&listener);
    bench.run_until(|diary| diary.count("flood", &Happened::SideConnected) == 1);
    beside.set_nonblocking(true).unwrap();
    let bytes = |what: &Happened| if let Happened::SideBytes(bytes) = what { bytes.len() } else { 0 };
    let read = |diary: &Diary| diary.of("flood").iter().map(bytes).sum::<usize>();
    for _ in 0..TURNS {
        // Again and again until the kernel takes no more.
        while beside.write(&vec![7; 1 << 20]).is_ok() {}
        let read = turn(&mut bench, read);
        assert!(read <= SHARE_OF_OPENED, "{read} bytes in one turn");
        bench.forget("flood");
    }
}

#[test]
fn datagrams_are_read_for_one_share_a_turn() {
    let mut bench = Bench::new();
    let (_, address) = bench.hear("flood", silent());
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..TURNS {
        for _ in 0..3 * DATAGRAMS {
            peer.send_to(b"datagram", address).unwrap();
        }
        let read = turn(&mut bench, |diary| diary.of("flood").len());
        assert!(read <= DATAGRAMS, "{read} datagrams in one turn");
    }
}
