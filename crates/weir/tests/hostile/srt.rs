//! Hostile listeners of SRT: they answer the handshake, or do not, and then say what no sender says.

use crate::process::Process;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_metrics::Moment;
use weir_srt::{ConnectionOptions, Listener, ListenerAnswer};

/// What a listener does, and what weir is told.
struct Row {
    name: &'static str,
    verb: &'static str,
    /// Whether the handshake is answered.
    accepts: bool,
    comes_from: Sender,
    /// Further flags of weir's.
    flags: &'static [&'static str],
    /// The n-th datagram of the flood, for this socket of weir's.
    says: fn(u32, u32) -> Vec<u8>,
}

/// From where the flood comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sender {
    Listener,
    /// Another address, of which weir takes nothing.
    Stranger,
}

/// MiB of memory: a window of 8,192 packets is 12 of them.
const MEMORY: u64 = 128;
const PROCESSOR: Duration = Duration::from_secs(12);
/// Datagrams that are sent at a time, a millisecond apart.
const BURST: u32 = 20;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn control(kind: u32, information: u32, socket: u32, field: &[u32]) -> Vec<u8> {
    words(&[&[0x8000_0000 | kind << 16, information, 0, socket], field].concat())
}

fn data(sequence_number: u32, timestamp: u32, socket: u32) -> Vec<u8> {
    let mut packet = words(&[sequence_number & 0x7FFF_FFFF, 0xC000_0001, timestamp, socket]);
    packet.resize(16 + 1_316, 0x47);
    packet
}

const ROWS: &[Row] = &[
    Row {
        name: "handshakes without an end",
        verb: "play",
        accepts: false,
        comes_from: Sender::Listener,
        flags: &[],
        says: |n, socket| {
            let mut field = vec![5, 0x4A17, n, 1_500, 8_192, 1, 7, n | 1];
            field.resize(12, 0);
            control(0, 0, socket, &field)
        },
    },
    Row {
        name: "sequence jumps",
        verb: "play",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |n, socket| data(n.wrapping_mul(0x1001_0001), n, socket),
    },
    Row {
        name: "every second packet missing",
        verb: "play",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |n, socket| data(n * 2, n * 50, socket),
    },
    Row {
        name: "times far ahead",
        verb: "play",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |n, socket| data(n, 0x7000_0000, socket),
    },
    Row {
        name: "a million lost packets in one report",
        verb: "publish",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |_, socket| control(3, 0, socket, &[0x8000_0000, 1_000_000]),
    },
    Row {
        name: "the same packets missing in every report",
        verb: "publish",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |_, socket| control(3, 0, socket, &[[0x8000_0000, 0x3FFF_FFFF]; 180].concat()),
    },
    Row {
        name: "acknowledgements of what was never sent",
        verb: "publish",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |n, socket| {
            control(2, n, socket, &[n.wrapping_mul(77_777) & 0x7FFF_FFFF, u32::MAX, u32::MAX, 0, 0, 0, 0])
        },
    },
    Row {
        name: "keys without an end",
        verb: "play",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &[],
        says: |n, socket| {
            let mut packet = control(0x7FFF, 0, socket, &[0x1220_2901, 0, 0x0200_0200, 0x0404, n, n, n, n]);
            packet[3] = 3;
            packet.resize(16 + 56, 1);
            packet
        },
    },
    Row {
        name: "datagrams for sockets that do not exist",
        verb: "play",
        accepts: true,
        comes_from: Sender::Listener,
        flags: &["--sockets", "1"],
        says: |n, socket| data(n, n * 50, socket ^ (n | 1)),
    },
    Row {
        name: "packets for a client from a foreign address",
        verb: "publish",
        accepts: true,
        comes_from: Sender::Stranger,
        flags: &["--sockets", "1"],
        says: |_, socket| control(5, 0, socket, &[0]),
    },
];

/// Answers weir until it has gone.
fn serve(row: &Row, socket: &UdpSocket, over: &AtomicBool) {
    let listener = Listener::new(ConnectionOptions::default(), &[1; 32]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let flooding = if row.comes_from == Sender::Stranger { &stranger } else { socket };
    let (began, mut buffer) = (Instant::now(), [0; 2_048]);
    let now = || Moment::from_nanos(1_000_000_000) + began.elapsed();
    let (mut connection, mut caller, mut n) = (None, None, 0);
    while !over.load(Ordering::Relaxed) {
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let mut out = Vec::new();
            let bytes = &buffer[..length];
            // The caller's socket stands in its handshake.
            if caller.is_none() && bytes.len() >= 44 && bytes[..4] == [0x80, 0, 0, 0] {
                caller = Some((from, u32::from_be_bytes([bytes[40], bytes[41], bytes[42], bytes[43]])));
            }
            if !row.accepts || connection.is_some() {
                continue;
            }
            match listener.handle_datagram(from, bytes, now(), &mut out) {
                ListenerAnswer::Respond => drop(socket.send_to(&out, from)),
                ListenerAnswer::Request(request) => {
                    let mut accepted = listener.accept(&request, 9 << 32, now()).unwrap();
                    accepted.flush(&mut |bytes, _| usize::from(socket.send_to(bytes, from).is_ok()));
                    connection = Some(accepted);
                }
                ListenerAnswer::Nothing => {}
            }
        }
        if let Some((from, number)) = caller.filter(|_| connection.is_some() || !row.accepts) {
            for _ in 0..BURST {
                n += 1;
                // What the kernel does not take is lost.
                let _ = flooding.send_to(&(row.says)(n, number), from);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn run(row: &Row) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let url = format!("srt://127.0.0.1:{}", socket.local_addr().unwrap().port());
    let flags = ["-c", "1", "-d", "4s", "--warmup", "0s", "--timeout", "2s", "--no-tui"];
    let mut process = Process::start(&[&[row.verb, &url], &flags[..], row.flags].concat());
    let over = AtomicBool::new(false);
    let (mut memory, mut processor, mut code) = (0, Duration::ZERO, None);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(row, &socket, &over));
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            code = process.wait(|spent| {
                memory = memory.max(spent.memory);
                processor = processor.max(spent.processor);
            });
        }));
        over.store(true, Ordering::Relaxed);
        waited.unwrap_or_else(|_| panic!("{}: see above", row.name));
    });
    println!("{}: {memory} MiB, {processor:?}, {code:?}", row.name);
    let err = process.err();
    assert!(code.is_some_and(|code| [0, 97, 98, 99].contains(&code)), "{}: {code:?}: {err}", row.name);
    assert!(!err.contains("panicked"), "{}: {err}", row.name);
    if row.comes_from == Sender::Stranger {
        assert!(!err.contains("SHUTDOWN"), "{}: {err}", row.name);
    }
    assert!(memory <= MEMORY, "{}: {memory} MiB", row.name);
    assert!(processor <= PROCESSOR, "{}: {processor:?}", row.name);
}

#[test]
fn hostile_listeners_of_srt_end_a_run_in_good_order_and_cost_it_little() {
    crate::all(ROWS, |row| row.name, run);
}
