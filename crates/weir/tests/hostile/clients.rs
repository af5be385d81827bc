//! Hostile clients of the origin.

mod http2;
mod mqtt;
mod rtc;
mod rtmp;
mod rtsp;
mod web;

use crate::process::{Process, TEST_TIMEOUT};
use crate::witness::{self, Question};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Connections that an attack leaves open: what was sent over them has still to be looked at.
type OpenConnections = Vec<TcpStream>;

/// An attack on a listener of the origin.
struct Row {
    name: &'static str,
    /// What the origin is told beside where to listen.
    flags: &'static [&'static str],
    /// Whether it listens with TLS.
    secure: bool,
    attack: fn(&Origin) -> OpenConnections,
    /// The witness that has to be served meanwhile.
    witness: Question,
    /// MiB of memory, and processor time, that the origin may use from its start on.
    memory: u64,
    processor: Duration,
}

/// What most rows may use: an origin that serves nobody has about 40 MiB.
const ROW: Row = Row {
    name: "",
    flags: &[],
    secure: false,
    attack: |_| OpenConnections::new(),
    witness: witness::HTTP,
    memory: 128,
    processor: Duration::from_secs(10),
};

/// Processor time within which a witness is answered: some turns of the origin's loop.
const ANSWERED: Duration = Duration::from_millis(1_500);

/// A running origin, as an attacker knows it.
pub(crate) struct Origin {
    process: Process,
    addresses: HashMap<String, SocketAddr>,
}

impl Origin {
    fn start(row: &Row) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut arguments: Vec<String> =
            ["origin", "--until-stdin-ends", "--services", "1", "--bitrate", "1mbps"]
                .iter()
                .chain(row.flags)
                .map(|it| (*it).to_owned())
                .collect();
        for listener in ["rtmp", "rtsp", "rtc", "http", "mqtt", "bulk"] {
            arguments.extend([format!("--{listener}"), "127.0.0.1:0".to_owned()]);
        }
        if row.secure {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            for (name, pem) in [("cert", made.cert.pem()), ("key", made.signing_key.serialize_pem())] {
                let path = folder.path().join(name);
                std::fs::write(&path, pem).unwrap();
                arguments.extend([format!("--{name}"), path.display().to_string()]);
            }
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let process = Process::start(&arguments);
        let began = Instant::now();
        loop {
            let out = process.out();
            if out.contains("bulk://") {
                let lines =
                    out.lines().filter_map(|line| line.strip_prefix("listening on ")?.split_once("://"));
                let addresses = lines.map(|(scheme, at)| (scheme.to_owned(), at.parse().unwrap())).collect();
                return Self { process, addresses };
            }
            assert!(began.elapsed() < TEST_TIMEOUT, "the origin does not listen: {}", process.err());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A connection to the listener of a scheme.
    fn connect(&self, scheme: &str) -> TcpStream {
        let stream = TcpStream::connect_timeout(&self.addresses[scheme], TEST_TIMEOUT).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        // Who is not read from any more stops: that is what back-pressure is for.
        stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        stream
    }
}

/// Sends until all is sent, the peer has ended the connection, or it takes nothing any more. Whether all was sent.
fn send(mut stream: &TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// Waits for the peer's end of the connection, whatever it says before.
fn ends(mut stream: &TcpStream) {
    let mut buffer = vec![0; 65_536];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the connection stays: {error}"),
        }
    }
}

/// Reads until `bytes` have come that hold `text`.
fn hears(mut stream: &TcpStream, text: &str) -> String {
    let (mut heard, mut buffer) = (Vec::new(), vec![0; 65_536]);
    loop {
        let n = stream.read(&mut buffer).expect("an answer");
        assert!(n > 0, "hung up after {:?}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&buffer[..n]);
        if String::from_utf8_lossy(&heard).contains(text) {
            return String::from_utf8_lossy(&heard).into_owned();
        }
    }
}

/// Waits until the origin has read what came over these connections, or reads no more of it.
fn settle(held: &[TcpStream]) {
    let ports =
        |it: &TcpStream| (it.peer_addr().ok().map(|at| at.port()), it.local_addr().ok().map(|at| at.port()));
    let held: Vec<_> = held.iter().map(ports).collect();
    // proc(5): local address, remote address and, behind a colon, the receive queue of each of this machine's sockets.
    let waiting = || -> u64 {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let of_line = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let port = |at: usize| u16::from_str_radix(fields.get(at)?.split_once(':')?.1, 16).ok();
            let is_held = held.contains(&(port(1), port(2)));
            let queue = u64::from_str_radix(fields.get(4)?.split_once(':')?.1, 16).ok()?;
            is_held.then_some(queue)
        };
        sockets.lines().skip(1).filter_map(of_line).sum()
    };
    let (began, mut last, mut since) = (Instant::now(), u64::MAX, Instant::now());
    while began.elapsed() < TEST_TIMEOUT {
        let now = waiting();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        // What was read last is at most a turn's worth, and has to be worked off.
        if since.elapsed() > Duration::from_secs(if now == 0 { 1 } else { 3 }) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn run(row: &Row) {
    let mut origin = Origin::start(row);
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watching = (!row.secure).then(|| {
            scope.spawn(|| {
                let address = origin.addresses[row.witness.scheme];
                witness::watch(&origin.process, address, row.witness, &done)
            })
        });
        let attack =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| settle(&(row.attack)(&origin))));
        done.store(true, Ordering::Relaxed);
        let seen = watching.map(|watching| watching.join().expect("a witness"));
        attack.unwrap_or_else(|_| panic!("{}: see above", row.name));
        seen.unwrap_or_default()
    });
    let spent = origin.process.spent().expect("the origin has ended");
    let code = origin.process.end();
    println!("{}: {spent:?}, {seen:?}", row.name);
    assert!(spent.memory <= row.memory, "{}: {} MiB of {}", row.name, spent.memory, row.memory);
    assert!(spent.processor <= row.processor, "{}: {:?} of {:?}", row.name, spent.processor, row.processor);
    assert!(seen.longest <= ANSWERED, "{}: a witness waited for {:?} of work", row.name, seen.longest);
    assert_eq!(code, Some(0), "{}: {}", row.name, origin.process.err());
    assert!(!origin.process.err().contains("panicked"), "{}: {}", row.name, origin.process.err());
}

/// Bytes that look like nothing in particular, the same each time.
fn noise(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn garbage(origin: &Origin) -> OpenConnections {
    for scheme in ["rtmp", "rtsp", "whep+http", "http", "mqtt", "bulk"] {
        for begin in
            [&b""[..], b"\x03", b"GET / HTTP/1.1\r\n", b"\x10\x80\x80\x80\x01", b"POST /live/a/whip "]
        {
            let stream = origin.connect(scheme);
            send(&stream, &[begin, &noise(200_000)].concat());
            let _ = stream.shutdown(std::net::Shutdown::Write);
            ends(&stream);
        }
    }
    OpenConnections::new()
}

/// Nobody is waited for that says nothing, or half of something.
fn silence(origin: &Origin) -> OpenConnections {
    let beginnings: &[(&str, &[u8])] = &[
        ("rtmp", b""),
        ("rtmp", &[3; 700]),
        ("rtmp", &[3; 3_073]),
        ("rtsp", b""),
        ("rtsp", b"DESCRIBE rtsp://h/a RTSP/1.0\r\nContent-Length: 5000\r\n\r\nv=0"),
        ("rtsp", b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n"),
        ("whep+http", b""),
        ("whep+http", b"POST /live/a/whep HTTP/1.1\r\nContent-Length: 5000\r\n\r\nv=0"),
        ("whep+http", b"OPTIONS / HTTP/1.1\r\n\r\n"),
        ("http", b""),
        ("http", b"GET /api/version HTTP/1.1\r\n"),
        ("http", b"GET /api/version HTTP/1.1\r\n\r\n"),
        ("mqtt", b""),
        ("mqtt", &[0x10, 13, 0, 4]),
        ("bulk", b""),
    ];
    let streams: Vec<TcpStream> = beginnings
        .iter()
        .map(|(scheme, begin)| {
            let stream = origin.connect(scheme);
            send(&stream, begin);
            stream
        })
        .collect();
    streams.iter().for_each(ends);
    OpenConnections::new()
}

/// TLS that is begun and never ended; the first bytes are those of a ClientHello's record.
fn half_open_tls(origin: &Origin) -> OpenConnections {
    let schemes = ["rtmps", "rtsps", "whep+https", "https", "mqtts"];
    let streams: Vec<TcpStream> = (0..200).map(|n| origin.connect(schemes[n % schemes.len()])).collect();
    streams.iter().step_by(2).for_each(|stream| {
        send(stream, &[22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]);
    });
    streams.iter().for_each(ends);
    OpenConnections::new()
}

const ROWS: &[Row] = &[
    Row { name: "garbage to every listener", attack: garbage, ..ROW },
    Row { name: "silence on every listener", flags: &["--request-timeout", "1s"], attack: silence, ..ROW },
    Row {
        name: "TLS that never ends its handshake",
        flags: &["--request-timeout", "1s"],
        secure: true,
        attack: half_open_tls,
        ..ROW
    },
];

#[test]
fn hostile_clients_cost_the_origin_little_and_others_nothing() {
    let rows: Vec<&Row> = [ROWS, rtmp::ROWS, rtsp::ROWS, rtc::ROWS, web::ROWS, http2::ROWS, mqtt::ROWS]
        .into_iter()
        .flatten()
        .collect();
    crate::all(&rows, |row| row.name, |row| run(row));
}
