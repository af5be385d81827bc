//! Hostile servers of HTTP/2, each for viewers of HLS.

use super::{ROW, Row, flood};
use std::io::{Read, Write};
use std::net::TcpStream;

const VIEWER: Row = Row {
    arguments: &[
        "play",
        "http://127.0.0.1:PORT/live/a.m3u8",
        "--http-version",
        "2",
        "-c",
        "2",
        "-d",
        "2s",
        "--warmup",
        "0s",
        "--timeout",
        "1s",
        "--no-tui",
        "-o",
        "run",
    ],
    ..ROW
};

/// A frame (RFC 9113, section 4.1).
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Reads a request, and sends the SETTINGS of the server.
fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.read(&mut [0; 4_096]).map(drop)?;
    stream.write_all(&frame(4, 0, 0, &[]))
}

/// The head of an answer on the first stream: `:status: 200`.
fn answer(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    stream.write_all(&frame(1, 4, 1, &[0x88]))
}

/// Each is acknowledged, and no acknowledgement is read.
fn settings(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    flood(stream, &frame(4, 0, 0, &[0, 1, 0, 0, 16, 0]).repeat(5_000))
}

fn pings(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    flood(stream, &frame(6, 0, 0, &[7; 8]).repeat(5_000))
}

/// A literal field of 12 KiB, again and again.
fn continuations(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    stream.write_all(&frame(1, 0, 1, &[0x88]))?;
    let mut field = vec![0, 1, b'a', 0x7F, 0x81, 0x5F];
    field.resize(6 + 12 * 1_024, b'b');
    flood(stream, &frame(9, 0, 1, &field))
}

fn empty_continuations(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    stream.write_all(&frame(1, 0, 1, &[0x88]))?;
    flood(stream, &frame(9, 0, 1, &[]).repeat(5_000))
}

/// References to one long field of the table: a few bytes that are megabytes when they are expanded.
fn references(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    // A literal field of 3 KiB that is kept (RFC 7541, section 6.2.1), then the first of the table.
    let mut block = vec![0x88, 0x40, 1, b'a', 0x7F, 0x81, 0x17];
    block.resize(block.len() + 3 * 1_024, b'b');
    block.resize(16_384, 0xBE);
    flood(stream, &frame(1, 4, 1, &block))
}

fn windows(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    flood(stream, &frame(8, 0, 0, &0x7FFF_FFFF_u32.to_be_bytes()))
}

/// More than the windows hold, whatever the client says of them.
fn body(stream: &mut TcpStream) -> std::io::Result<()> {
    answer(stream)?;
    flood(stream, &frame(0, 0, 1, &[0x47; 16_384]))
}

fn empty_data(stream: &mut TcpStream) -> std::io::Result<()> {
    answer(stream)?;
    flood(stream, &frame(0, 0, 1, &[]).repeat(5_000))
}

/// Frames of which one byte in 257 is of the answer.
fn padding(stream: &mut TcpStream) -> std::io::Result<()> {
    answer(stream)?;
    let mut payload = vec![255, b'#'];
    payload.resize(257, 0);
    flood(stream, &frame(0, 8, 1, &payload).repeat(200))
}

/// Each request that is reset as not begun with (REFUSED_STREAM) is sent again, twice.
fn refusals(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    for number in 0..1_000_u32 {
        stream.write_all(&frame(3, 0, 2 * number + 1, &[0, 0, 0, 7]))?;
        stream.read(&mut [0; 4_096]).map(drop)?;
    }
    Ok(())
}

/// Heads before that of the answer, each of a few bytes and kept until they are read (`:status: 103`).
fn interim(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    flood(stream, &frame(1, 4, 1, &[0x08, 3, b'1', b'0', b'3']).repeat(5_000))
}

/// Takes no request at all.
fn no_streams(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    stream.write_all(&frame(4, 0, 0, &[0, 3, 0, 0, 0, 0]))?;
    stream.write_all(&frame(3, 0, 1, &[0, 0, 0, 7]))
}

/// Ends each connection without an error before it has answered.
fn departures(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    stream.write_all(&frame(7, 0, 0, &[0; 8]))
}

fn pushes(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    flood(stream, &frame(5, 4, 1, &[0, 0, 0, 2, 0x82]))
}

fn unknown_frames(stream: &mut TcpStream) -> std::io::Result<()> {
    begin(stream)?;
    flood(stream, &frame(0xEE, 0xFF, 1, &[0; 16_384]))
}

const ROWS: &[Row] = &[
    Row { name: "HTTP/2: garbage", serve: super::garbage, ..VIEWER },
    Row { name: "HTTP/2: silence", ..VIEWER },
    Row { name: "HTTP/2: settings without end", serve: settings, ..VIEWER },
    Row { name: "HTTP/2: pings without end", serve: pings, ..VIEWER },
    Row { name: "HTTP/2: a head that never ends", serve: continuations, ..VIEWER },
    Row { name: "HTTP/2: a head that goes on with nothing", serve: empty_continuations, ..VIEWER },
    Row { name: "HTTP/2: a head that is long when it is expanded", serve: references, ..VIEWER },
    Row { name: "HTTP/2: windows that overflow", serve: windows, ..VIEWER },
    Row { name: "HTTP/2: a playlist that never ends", serve: body, ..VIEWER },
    Row { name: "HTTP/2: a body of nothing", serve: empty_data, ..VIEWER },
    Row { name: "HTTP/2: a body of padding", serve: padding, ..VIEWER },
    Row { name: "HTTP/2: a server that refuses each request", serve: refusals, ..VIEWER },
    Row { name: "HTTP/2: a server that always goes away", serve: departures, ..VIEWER },
    Row { name: "HTTP/2: interim answers without end", serve: interim, ..VIEWER },
    Row { name: "HTTP/2: a server that takes no request", serve: no_streams, ..VIEWER },
    Row { name: "HTTP/2: pushes", serve: pushes, ..VIEWER },
    Row { name: "HTTP/2: frames of no known kind", serve: unknown_frames, ..VIEWER },
];

#[test]
fn hostile_servers_of_http_2_end_a_run_in_good_order_and_cost_it_little() {
    crate::all(ROWS, |row| row.name, super::run);
}
