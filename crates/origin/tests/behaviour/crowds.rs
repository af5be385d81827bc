//! Readers that are many, slow, or mean no good.

use crate::peers::{TEST_TIMEOUT, until};
use crate::readers::{PACKET, Reader, address, report, serve, services, tuner, tuners, wrongs};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_origin::{OriginConfig, Patience, Tuners};
use weir_testing::undisturbed;
use weir_ts::Counts;
use weir_ts::packet::{AdaptationField, Packet};

/// Place in the stream and in what was received of the last packet with a clock reference. At a constant
/// rate, a packet's reference says how many came before it.
fn last_reference(received: &[u8], rate: u64) -> (u64, u64) {
    let (packets, _) = received.as_chunks::<PACKET>();
    let references = packets.iter().enumerate().filter_map(|(place, packet)| {
        let pcr = Packet::new(packet).adaptation_field().and_then(AdaptationField::pcr)?;
        Some((place as u64, pcr))
    });
    let references: Vec<_> = references.collect();
    let [(first, begin), .., (last, end)] = references[..] else { panic!("two references") };
    let bits = u128::from(end.since(begin) as u64) * u128::from(rate) / 27_000_000;
    (first + ((bits + 752) / 1_504) as u64, last)
}

#[test]
fn a_slow_reader_loses_whole_packets_and_the_count_is_exact() {
    undisturbed(|| {
        const RATE: u64 = 80_000_000;
        for path in ["/1.ts", "/1.ts?chunked=0"] {
            let origin = tuners(
                Tuners { services: services(1, RATE), queue_bytes: 4_000_000, ..Tuners::default() },
                &[],
            );
            let mut slow = Reader::get(address(&origin), path);
            let done = Arc::new(AtomicBool::new(false));
            let prompt = std::thread::spawn({
                let (mut prompt, done) = (Reader::get(address(&origin), path), done.clone());
                move || {
                    while !done.load(Ordering::Relaxed) {
                        prompt.step();
                    }
                    prompt
                }
            });
            slow.packets(1_000);
            let skipped = |reader: &Reader| origin.counts().viewer(reader.local()).unwrap().skipped;
            // The kernel's buffers take several megabytes before the origin feels anything.
            std::thread::sleep(Duration::from_secs(3));
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(1) || skipped(&slow) == 0 {
                assert!(began.elapsed() < TEST_TIMEOUT, "30 MB fitted into the kernel's buffers");
                slow.step();
            }
            let lost = skipped(&slow);
            let more = slow.body.len() / PACKET + 2_000;
            slow.packets(more);
            assert_eq!(skipped(&slow), lost, "it keeps up now");
            let (in_stream, in_body) = last_reference(&slow.body, RATE);
            assert_eq!(in_stream - in_body, lost, "{path}");
            assert_eq!(wrongs(&slow.body).resyncs, 0, "what it lost were whole packets");
            assert!(wrongs(&slow.body).gap_events > 0);

            done.store(true, Ordering::Relaxed);
            let prompt = prompt.join().unwrap();
            let counts = origin.counts();
            assert_eq!(counts.viewer(prompt.local()).unwrap().skipped, 0);
            assert_eq!(wrongs(&prompt.body), Counts::default(), "{:?}", report(&prompt.body).findings);
        }
    });
}

#[test]
fn hundreds_read_and_none_misses_a_packet() {
    let tuners = Tuners { services: services(2, 2_000_000), ..Tuners::default() };
    let origin = serve(OriginConfig { tuners, workers: 2, ..OriginConfig::default() });
    let mut readers: Vec<_> = (0..200)
        .map(|n| Reader::get(address(&origin), if n % 2 == 0 { "/1.ts" } else { "/2.ts?chunked=0" }))
        .collect();
    while readers.iter().any(|reader| reader.body.len() < 1_000 * PACKET) {
        readers.iter_mut().for_each(Reader::step);
    }
    for reader in &readers {
        assert_eq!(wrongs(&reader.body), Counts::default());
        assert_eq!(origin.counts().viewer(reader.local()).unwrap().skipped, 0);
    }
}

/// Reads what is there until the connection ends.
fn ends(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    all
}

#[test]
fn heads_that_are_none_are_told_so_and_let_go() {
    let origin = tuner(1_000_000, &[]);
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(100));
    let noise: String = (0..30_000_u32).map(|n| char::from((n * 7 % 90) as u8 + 33)).collect();
    for (head, status) in [
        (&*long, "431"),
        (&*many, "431"),
        (&*noise, "400"),
        ("\u{16}\u{3}\u{1}", "400"),
        ("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n", "413"),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "413"),
        ("DELETE /1.ts HTTP/1.1\r\nConnection: close\r\n\r\n", "405"),
    ] {
        let mut stream = TcpStream::connect(address(&origin)).unwrap();
        // The answer may come, and the connection go, before all of it is written.
        let _ = stream.write_all(head.as_bytes());
        let answer = String::from_utf8_lossy(&ends(&mut stream)).into_owned();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{}: {answer}",
            &head[..10.min(head.len())]
        );
    }
    assert_eq!(Reader::get(address(&origin), "/api/version").status(), Some(200));
}

#[test]
fn who_never_asks_is_let_go() {
    let patience = Patience { request: Duration::from_millis(300), ..Patience::default() };
    let tuners = Tuners { services: services(1, 1_000_000), ..Tuners::default() };
    let origin = serve(OriginConfig { tuners, patience, ..OriginConfig::default() });
    let silent = TcpStream::connect(address(&origin)).unwrap();
    let mut half = TcpStream::connect(address(&origin)).unwrap();
    half.write_all(b"GET /1.ts HT").unwrap();
    let mut idle = TcpStream::connect(address(&origin)).unwrap();
    idle.write_all(b"GET /api/version HTTP/1.1\r\n\r\n").unwrap();
    for mut stream in [silent, half, idle] {
        ends(&mut stream);
    }
}

#[test]
fn answers_that_are_never_read_fill_no_memory() {
    let origin = tuner(1_000_000, &[]);
    let mut stream = TcpStream::connect(address(&origin)).unwrap();
    stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
    let requests = "GET /api/status HTTP/1.1\r\n\r\n".repeat(1_000);
    let mut sent = 0_u64;
    while stream.write_all(requests.as_bytes()).is_ok() {
        sent += requests.len() as u64;
        assert!(sent < 1 << 30, "a gigabyte of requests was taken");
    }
}

#[test]
fn a_reader_that_takes_nothing_is_let_go() {
    let patience = Patience { viewer: Duration::from_millis(500), ..Patience::default() };
    let tuners = Tuners { services: services(1, 80_000_000), ..Tuners::default() };
    let origin = serve(OriginConfig { tuners, patience, ..OriginConfig::default() });
    let _dead = Reader::get(address(&origin), "/1.ts");
    until("the reader is let go", || origin.counts().present() == 0);
}
