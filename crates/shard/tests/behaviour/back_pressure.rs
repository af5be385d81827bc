//! A peer that does not read, and a session that does not: whoever sends waits, and nothing is lost.

use crate::bench::{A_WHILE, Bench, Happened, Papers, React, endpoint, patient, pattern, pour, silent};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use weir_shard::{Endpoint, Event, UNSENT_LIMIT};

/// More than two kernels hold on loopback with the receive buffer of [`narrow`].
const MUCH: usize = 12_000_000;

/// A listener whose connections have a small receive buffer.
fn narrow() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    socket2::SockRef::from(&listener).set_recv_buffer_size(65_536).unwrap();
    listener
}

/// Sends this in one go as soon as the link is there, and watches how much waits.
fn send_all(bytes: Vec<u8>) -> React {
    Box::new(move |event, context| match event {
        Event::Connected => {
            context.send(&bytes);
            assert!(context.unsent() > 0);
        }
        Event::Writable => assert_eq!(context.unsent(), 0),
        _ => {}
    })
}

#[test]
fn a_peer_that_does_not_read_makes_writes_wait_and_gets_every_byte_when_it_does() {
    for send in [pour, send_all] {
        let listener = narrow();
        let mut bench = Bench::new();
        bench.open("client", &endpoint(listener.local_addr().unwrap()), send(pattern(MUCH)));
        let mut peer = crate::bench::accept(&listener);
        bench.run_until(|diary| diary.count("client", &Happened::Connected) > 0);
        bench.run_for(A_WHILE);
        assert_eq!(bench.diary().count("client", &Happened::Writable), 0, "nothing has drained");
        let reading = std::thread::spawn(move || {
            let mut heard = vec![0; MUCH];
            peer.read_exact(&mut heard).unwrap();
            heard
        });
        assert!(bench.run_beside(reading) == pattern(MUCH));
        bench.run_until(|diary| diary.count("client", &Happened::Writable) > 0);
    }
}

/// A peer over TLS that reads only when it is told, and all that comes then.
fn secure_peer(
    papers: &Papers,
) -> (SocketAddr, std::sync::mpsc::Sender<()>, std::thread::JoinHandle<Vec<u8>>) {
    let listener = narrow();
    let address = listener.local_addr().unwrap();
    let config = papers.server();
    let (go, wait) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut tls = rustls::ServerConnection::new(config).unwrap();
        let mut stream = crate::bench::accept(&listener);
        while tls.is_handshaking() {
            tls.complete_io(&mut stream).unwrap();
        }
        wait.recv().unwrap();
        let mut heard = vec![0; MUCH];
        rustls::Stream::new(&mut tls, &mut stream).read_exact(&mut heard).unwrap();
        heard
    });
    (address, go, reading)
}

#[test]
fn over_tls_as_well() {
    let papers = Papers::new();
    for send in [pour, send_all] {
        let (address, go, reading) = secure_peer(&papers);
        let mut bench = Bench::new();
        bench.open("client", &papers.endpoint(address, "localhost"), send(pattern(MUCH)));
        bench.run_until(|diary| diary.count("client", &Happened::Connected) > 0);
        bench.run_for(A_WHILE);
        go.send(()).unwrap();
        assert!(bench.run_beside(reading) == pattern(MUCH));
        bench.run_until(|diary| diary.count("client", &Happened::Writable) > 0);
    }
}

#[test]
fn a_write_that_is_taken_in_part_is_followed_by_writable_even_if_the_kernel_has_room() {
    // One that TLS keeps no more than a part of, and one of more slices than a system call takes.
    let papers = Papers::new();
    for tls in [true, false] {
        let mut bench = Bench::new();
        let address = bench.listen("server", tls.then(|| papers.server()), silent);
        let words = pattern(300_000);
        let mut sent = 0;
        let react: React = Box::new(move |event, context| {
            if matches!(event, Event::Connected | Event::Writable) {
                let slices: Vec<_> = words[sent..].chunks(100).map(IoSlice::new).collect();
                sent += context.write(&slices);
            }
        });
        let endpoint = if tls { papers.endpoint(address, "localhost") } else { endpoint(address) };
        bench.open("client", &endpoint, react);
        bench.run_until(|diary| diary.bytes_read("server") == 300_000);
        assert!(bench.diary().bytes("server") == pattern(300_000), "over TLS: {tls}");
    }
}

#[test]
fn writable_is_told_only_after_something_was_refused() {
    let papers = Papers::new();
    for tls in [false, true] {
        let mut bench = Bench::new();
        let address = bench.listen("server", tls.then(|| papers.server()), crate::bench::echo);
        let endpoint: Endpoint = if tls { papers.endpoint(address, "localhost") } else { endpoint(address) };
        let mut rounds = 0;
        let react: React = Box::new(move |event, context| {
            if matches!(event, Event::Connected | Event::Bytes(_)) && rounds < 20 {
                rounds += 1;
                context.send(b"a word");
                assert_eq!(context.unsent(), 0);
            }
        });
        bench.open("client", &endpoint, react);
        bench.run_until(|diary| diary.bytes_read("client") == 20 * b"a word".len());
        for who in ["client", "server"] {
            assert_eq!(bench.diary().count(who, &Happened::Writable), 0, "{who} over TLS: {tls}");
        }
    }
}

#[test]
fn a_session_that_pauses_reading_makes_its_peer_wait_and_loses_nothing() {
    let mut paused = false;
    let (mut bench, peer) = Bench::with(
        "client",
        Box::new(move |event, context| match event {
            Event::Bytes(_) if !paused => {
                paused = true;
                context.pause_reading(true);
            }
            Event::Woken => context.pause_reading(false),
            _ => {}
        }),
    );
    let stuck = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let noticed = stuck.clone();
    let writing = std::thread::spawn(move || {
        let words = pattern(30_000_000);
        let mut peer = &peer;
        // Once it has taken nothing for a while the session is known to hold it back.
        peer.set_write_timeout(Some(A_WHILE)).unwrap();
        let mut sent = 0;
        while sent < words.len() {
            match peer.write(&words[sent..]) {
                Ok(n) => sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    noticed.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                Err(error) => panic!("{error}"),
            }
        }
        words
    });
    bench.run_until(|_| stuck.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(bench.diary().reads("client").len(), 1);
    bench.shard.message_sender().post("client");
    let words = bench.run_beside(writing);
    bench.run_until(|diary| diary.bytes_read("client") == words.len());
    assert!(bench.diary().bytes("client") == words);
}

#[test]
fn a_session_that_reads_again_and_pulls_is_answered_at_once() {
    let mut wakes = 0;
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(move |event, context| match event {
            Event::Connected => context.pause_reading(true),
            Event::Woken => {
                wakes += 1;
                context.pause_reading(wakes == 1);
                context.pull();
            }
            _ => {}
        }),
    );
    peer.write_all(b"words").unwrap();
    bench.run_for(A_WHILE);
    for _ in 0..2 {
        bench.shard.message_sender().post("client");
    }
    bench.run_until(|diary| diary.count("client", &Happened::Woken) == 2);
    // While it pauses, a pull finds nothing.
    let end =
        [Happened::Woken, Happened::Bytes(Vec::new()), Happened::Woken, Happened::Bytes(b"words".to_vec())];
    assert_eq!(bench.diary().of("client")[2..], end);
}

#[test]
fn what_a_paused_session_was_sent_comes_before_the_end_of_its_link() {
    let (mut bench, mut peer) = Bench::with(
        "client",
        Box::new(|event, context| match event {
            Event::Connected => context.pause_reading(true),
            Event::Woken => context.pause_reading(false),
            _ => {}
        }),
    );
    peer.write_all(&pattern(50_000)).unwrap();
    drop(peer);
    bench.run_for(A_WHILE);
    assert_eq!((bench.diary().bytes_read("client"), bench.diary().closed("client")), (0, None));
    bench.shard.message_sender().post("client");
    bench.run_until(|diary| diary.closed("client").is_some());
    assert!(bench.diary().bytes("client") == pattern(50_000));
}

#[test]
fn a_session_that_limits_its_reads_gets_no_more_at_a_time_and_all_in_the_end() {
    let mut bench = Bench::new();
    let address = bench.listen("server", None, || {
        Box::new(|event, context| {
            if matches!(event, Event::Connected) {
                context.limit_reads(1_000);
            }
        })
    });
    let writing = std::thread::spawn(move || {
        let mut peer = patient(TcpStream::connect(address).unwrap());
        peer.write_all(&pattern(100_500)).unwrap();
    });
    bench.run_beside(writing);
    bench.run_until(|diary| diary.closed("server").is_some());
    assert!(bench.diary().bytes("server") == pattern(100_500));
    assert!(bench.diary().reads("server").iter().all(|read| read.len() <= 1_000));
}

#[test]
fn what_the_peer_reads_is_seen_while_the_kernel_takes_nothing_more() {
    let listener = narrow();
    let mut bench = Bench::new();
    let seen = Arc::new(std::sync::Mutex::new((0, 0)));
    let note = seen.clone();
    let bytes = pattern(MUCH);
    let react: React = Box::new(move |event, context| {
        if let Event::Connected = event {
            context.send(&bytes);
        }
        *note.lock().unwrap() = (context.acknowledged(), context.unsent());
        context.set_timer(context.now + std::time::Duration::from_millis(5));
    });
    bench.open("client", &endpoint(listener.local_addr().unwrap()), react);
    let mut peer = crate::bench::accept(&listener);
    bench.run_until(|diary| diary.count("client", &Happened::Connected) > 0);
    let look = |bench: &mut Bench| {
        bench.run_for(A_WHILE);
        *seen.lock().unwrap()
    };
    let (before, waiting) = look(&mut bench);
    peer.read_exact(&mut [0; 262_144]).unwrap();
    let (after, still_waiting) = look(&mut bench);
    assert!(after > before, "{before} and then {after} bytes acknowledged");
    assert_eq!(waiting, still_waiting, "the kernel has taken nothing");
}

/// The most that one read brings.
const ONE_READ: usize = 256 * 1024;

#[test]
fn a_peer_that_does_not_read_its_answers_is_not_read_either_until_it_does() {
    let most = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = most.clone();
    let answering: React = Box::new(move |event, context| {
        if let Event::Bytes(bytes) = event {
            context.send(bytes);
            seen.fetch_max(context.unsent(), std::sync::atomic::Ordering::Relaxed);
        }
    });
    let (mut bench, mut peer) = Bench::with("client", answering);
    peer.set_nonblocking(true).unwrap();
    // More than both kernels hold in both directions.
    let words = pattern(5 * MUCH);
    let mut asked = 0;
    // It asks as long as there is anybody who listens, and reads nothing.
    for _ in 0..2_000 {
        asked += peer.write(&words[asked..]).unwrap_or(0);
        bench.shard.turn(weir_shard::clock::now()).unwrap();
    }
    let most = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!(most <= UNSENT_LIMIT + ONE_READ, "{most} bytes of answers are kept");
    assert!(asked < words.len(), "{asked} bytes were taken of it");
    // Then it reads, and gets all.
    let mut answer = vec![0; words.len()];
    let mut heard = 0;
    bench.run_until(|_| {
        asked += peer.write(&words[asked..]).unwrap_or(0);
        heard += peer.read(&mut answer[heard..]).unwrap_or(0);
        heard == words.len()
    });
    assert!(answer == words);
}

#[test]
fn a_peer_that_goes_without_having_read_its_answers_ends_its_session() {
    let (mut bench, mut peer) = Bench::with("client", crate::bench::echo());
    peer.set_nonblocking(true).unwrap();
    let words = pattern(MUCH);
    let mut asked = 0;
    for _ in 0..1_000 {
        asked += peer.write(&words[asked..]).unwrap_or(0);
        bench.shard.turn(weir_shard::clock::now()).unwrap();
    }
    drop(peer);
    bench.run_until(|diary| diary.closed("client").is_some());
    assert!(bench.shard.is_empty());
}
