//! Over HTTP/2, to the listener of HLS, which takes it without TLS from who knows that it is spoken (RFC 9113, section 3.3).

use super::{OpenConnections, Origin, ROW, Row, ends, hears, send};
use crate::process::{Process, TEST_TIMEOUT};
use crate::servers::http2::frame;
use crate::witness;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A connection on which the client's preface and these settings were sent.
fn open(origin: &Origin, settings: &[u8]) -> TcpStream {
    let stream = origin.connect("http+hls");
    send(&stream, &[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat());
    stream
}

/// GET by literal fields that no table keeps: `:method`, `:scheme`, `:path`, `:authority`.
fn block(path: &str) -> Vec<u8> {
    [&[0x82, 0x86, 0x04, path.len() as u8], path.as_bytes(), &[0x01, 1, b'x']].concat()
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(path))
}

/// Sends the same again and again, as long as the origin takes it, but 16 MiB at the most.
fn flood(stream: &TcpStream, bytes: &[u8]) {
    for _ in 0..(16 << 20) / bytes.len() {
        if !send(stream, bytes) {
            return;
        }
    }
}

/// A flood behind these frames, over a connection of its own, which the origin ends.
fn flooded(origin: &Origin, begin: &[u8], bytes: &[u8]) {
    ends(&flooded_and_left(origin, begin, bytes));
}

/// The same of what RFC 9113 allows, on a connection whose request is answered when its stream is there: it stays.
fn flooded_and_left(origin: &Origin, begin: &[u8], bytes: &[u8]) -> TcpStream {
    let stream = open(origin, &[]);
    send(&stream, begin);
    flood(&stream, bytes);
    stream
}

/// A head that is never said to have ended: of long fields, of short ones, and of nothing.
fn continuations(origin: &Origin) -> OpenConnections {
    let begin = frame(HEADERS, END_STREAM, 1, &block("/live/none/1.ts"));
    let mut field = vec![0, 1, b'a', 0x7F, 0x81, 0x5F];
    field.resize(6 + 12 * 1_024, b'b');
    flooded(origin, &begin, &frame(CONTINUATION, 0, 1, &field));
    flooded(origin, &begin, &frame(CONTINUATION, 0, 1, &[0, 1, b'a', 1, b'b']).repeat(5_000));
    flooded(origin, &begin, &frame(CONTINUATION, 0, 1, &[]).repeat(5_000));
    OpenConnections::new()
}

/// References to one long field of the table: a few bytes each that are megabytes when they are expanded.
fn references(origin: &Origin) -> OpenConnections {
    // A literal field of 3 KiB that is kept (RFC 7541, section 6.2.1), then the first of the table.
    let mut long = block("/live/none/1.ts");
    long.extend([0x40, 1, b'a', 0x7F, 0x81, 0x17]);
    long.resize(long.len() + 3 * 1_024, b'b');
    long.resize(16_384, 0xBE);
    let stream = open(origin, &[]);
    for number in 0..2_000 {
        if !send(&stream, &frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &long)) {
            break;
        }
    }
    ends(&stream);
    OpenConnections::new()
}

/// Tables of the largest size that there is: as the client wants to refer to, and as it says that the origin may.
fn tables(origin: &Origin) -> OpenConnections {
    // RFC 7541, section 6.3: a size above the limit "MUST be treated as a decoding error".
    let grown = [&[0x3F, 0xE0, 0xFF, 0xFF, 0xFF, 0x0F], &*block("/live/none/1.ts")].concat();
    flooded(origin, &[], &frame(HEADERS, END_STREAM | END_HEADERS, 1, &grown));
    let stream = open(origin, &[0, 1, 0xFF, 0xFF, 0xFF, 0xFF]);
    (0..5_000)
        .take_while(|number| send(&stream, &get(2 * number + 1, &format!("/live/none/{number}.ts"))))
        .count();
    ends(&stream);
    OpenConnections::new()
}

/// Of the connection, and of a stream, which has room for 2^31 − 1 at the most.
fn windows(origin: &Origin) -> OpenConnections {
    let most = 0x7FFF_FFFF_u32.to_be_bytes();
    flooded(origin, &[], &frame(WINDOW_UPDATE, 0, 0, &most));
    let waits = get(1, "/live/none.m3u8");
    // One of nothing is an error too (section 6.9).
    flooded(origin, &waits, &frame(WINDOW_UPDATE, 0, 0, &[0; 4]));
    // The stream is reset alone, and what comes for it behind that is passed over (section 5.1).
    vec![flooded_and_left(origin, &waits, &frame(WINDOW_UPDATE, 0, 1, &most))]
}

/// Frames of streams that were answered, that were given up, and that were never begun.
fn closed_streams(origin: &Origin) -> OpenConnections {
    let asked = get(5, "/live/none/1.ts");
    let given_up = [get(5, "/live/none.m3u8"), frame(RST_STREAM, 0, 5, &[0, 0, 0, 8])].concat();
    for stream in [5, 3] {
        for begin in [&asked, &given_up] {
            flooded(origin, begin, &frame(HEADERS, END_HEADERS, stream, &block("/live/none/2.ts")));
        }
        flooded(origin, &asked, &frame(DATA, 0, stream, &[7; 16_384]));
    }
    flooded(origin, &asked, &frame(WINDOW_UPDATE, 0, 5, &[0, 0, 0, 1]).repeat(1_000));
    // The stream is reset (STREAM_CLOSED) once, and what comes for it behind that is passed over (RFC 9113, section 5.1).
    [frame(DATA, 0, 5, &[7; 16_384]), frame(WINDOW_UPDATE, 0, 5, &[0, 0, 0, 1]).repeat(1_000)]
        .iter()
        .map(|bytes| flooded_and_left(origin, &given_up, bytes))
        .collect()
}

/// Who says half of a preface, or all of it and asks for nothing, is not waited for.
fn silence(origin: &Origin) -> OpenConnections {
    let whole = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let half_head = [&*whole, &get(1, "/live/none/1.ts")[..12]].concat();
    let streams: Vec<_> = [&PREFACE[..3], &PREFACE[..16], &PREFACE[..20], PREFACE, &whole, &half_head]
        .iter()
        .map(|begin| {
            let stream = origin.connect("http+hls");
            send(&stream, begin);
            stream
        })
        .collect();
    streams.iter().for_each(ends);
    OpenConnections::new()
}

/// Each wants an answer that is never read.
fn settings(origin: &Origin) -> OpenConnections {
    flooded(origin, &[], &frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 16, 0]).repeat(5_000));
    OpenConnections::new()
}

fn pings(origin: &Origin) -> OpenConnections {
    flooded(origin, &[], &frame(PING, 0, 0, &[7; 8]).repeat(5_000));
    OpenConnections::new()
}

/// Requests that are given up at once (CVE-2023-44487), of what is there, what is not, and what is waited for.
fn resets(origin: &Origin) -> OpenConnections {
    for path in ["/live/none/1.ts", "/live/none.m3u8"] {
        let stream = open(origin, &[]);
        for number in 0..100_000 {
            let id = 2 * number + 1;
            if !send(&stream, &[get(id, path), frame(RST_STREAM, 0, id, &[0, 0, 0, 8])].concat()) {
                break;
            }
        }
        ends(&stream);
    }
    OpenConnections::new()
}

/// Streams that the client resets by breaking the rules (CVE-2025-8671): the origin's own resets count as well.
fn broken_streams(origin: &Origin) -> OpenConnections {
    let stream = open(origin, &[]);
    for number in 0..100_000 {
        let id = 2 * number + 1;
        let frames = [get(id, "/live/none.m3u8"), frame(WINDOW_UPDATE, 0, id, &[0; 4])].concat();
        if !send(&stream, &frames) {
            break;
        }
    }
    ends(&stream);
    OpenConnections::new()
}

/// Requests that never end, more of them than may be under way.
fn endless_requests(origin: &Origin) -> OpenConnections {
    let stream = open(origin, &[]);
    for number in 0..20_000 {
        if !send(&stream, &frame(HEADERS, END_HEADERS, 2 * number + 1, &block("/live/none.m3u8"))) {
            break;
        }
    }
    ends(&stream);
    OpenConnections::new()
}

/// A body of a request that has none, which is passed over, and one of empty frames, which is an attack.
fn bodies(origin: &Origin) -> OpenConnections {
    let begin = frame(HEADERS, END_HEADERS, 1, &block("/live/none.m3u8"));
    flooded(origin, &begin, &frame(DATA, 0, 1, &[]).repeat(5_000));
    vec![flooded_and_left(origin, &begin, &frame(DATA, 0, 1, &[7; 16_384]))]
}

fn malformed(origin: &Origin) -> OpenConnections {
    flooded(origin, &[], &super::noise(200_000));
    // Kinds that nobody has defined are passed over; 16 MiB is more than a frame may have.
    flooded(origin, &[], &frame(0xEE, 0xFF, 1, &[0; 16_384]));
    flooded(origin, &[0xFF, 0xFF, 0xFF, DATA, 0, 0, 0, 0, 1], &[7; 16_384]);
    OpenConnections::new()
}

/// Fifty viewers that ask for all segments of a stream and read nothing: half of them give no window, the others do not read the link.
fn standing_readers(origin: &Origin) -> OpenConnections {
    let url = format!("rtmp://{}/live/a", origin.addresses["rtmp"]);
    let _publisher =
        Process::start(&["publish", &url, "-d", "40s", "--bitrate", "2mbps", "--gop", "1s", "--no-tui"]);
    let began = Instant::now();
    loop {
        let stream = origin.connect("http+hls");
        send(&stream, b"GET /live/a/2.ts HTTP/1.1\r\nHost: x\r\n\r\n");
        if hears(&stream, "\r\n\r\n").contains(" 200 ") {
            break;
        }
        assert!(began.elapsed() < TEST_TIMEOUT, "there are no segments");
        std::thread::sleep(Duration::from_millis(200));
    }
    (0..50)
        .map(|number| {
            let settings: &[u8] =
                if number % 2 == 0 { &[0, 4, 0, 0, 0, 0] } else { &[0, 4, 0x7F, 0xFF, 0xFF, 0xFF] };
            let stream = open(origin, settings);
            send(&stream, &frame(WINDOW_UPDATE, 0, 0, &0x7FFF_0000_u32.to_be_bytes()));
            for request in 0..100 {
                send(&stream, &get(2 * request + 1, &format!("/live/a/{}.ts", request % 3)));
            }
            stream
        })
        .collect()
}

const HTTP2: Row =
    Row { flags: &["--hls", "127.0.0.1:0", "--request-timeout", "2s"], witness: witness::HLS, ..ROW };

pub(super) const ROWS: &[Row] = &[
    Row { name: "HTTP/2: heads that never end", attack: continuations, ..HTTP2 },
    Row { name: "HTTP/2: heads that are long when they are expanded", attack: references, ..HTTP2 },
    Row { name: "HTTP/2: tables of four gigabytes", attack: tables, ..HTTP2 },
    Row { name: "HTTP/2: windows that overflow", attack: windows, ..HTTP2 },
    Row { name: "HTTP/2: frames of streams that are closed", attack: closed_streams, ..HTTP2 },
    Row { name: "HTTP/2: half a preface, and silence", attack: silence, ..HTTP2 },
    Row { name: "HTTP/2: settings without end", attack: settings, ..HTTP2 },
    Row { name: "HTTP/2: pings without end", attack: pings, ..HTTP2 },
    Row { name: "HTTP/2: requests that are given up", attack: resets, ..HTTP2 },
    Row { name: "HTTP/2: streams that the origin has to reset", attack: broken_streams, ..HTTP2 },
    Row { name: "HTTP/2: requests that never end", attack: endless_requests, ..HTTP2 },
    Row { name: "HTTP/2: bodies that never end", attack: bodies, ..HTTP2 },
    Row { name: "HTTP/2: what is no frame", attack: malformed, ..HTTP2 },
    Row { name: "HTTP/2: fifty viewers that stand still", attack: standing_readers, ..HTTP2 },
];
