//! Over RTMP.

use super::{OpenConnections, Origin, ROW, Row, ends, send};
use crate::rtmp::{handshake, message, player, publisher};
use std::time::Duration;
use weir_rtmp::message::MessageKind;

/// Settings of as many tracks as are kept, each as long as may be, and then keyframes of a few bytes; a viewer takes none
/// of it.
fn settings(origin: &Origin) -> OpenConnections {
    let (stream, chunk_size) = publisher(origin.connect("rtmp"), "a");
    let (viewer, _) = player(origin.connect("rtmp"), "a");
    let mut bytes = Vec::new();
    for track in 0..32 {
        let mut payload = vec![0x96, 0x00, b'a', b'v', b'c', b'1', track];
        payload.resize(250_000, track);
        bytes.extend(message(6, MessageKind::Video, 0, &payload, chunk_size));
    }
    for timestamp in 0..20_000 {
        bytes.extend(message(6, MessageKind::Video, timestamp, &[0x17, 1, 0, 0, 0, 1], chunk_size));
    }
    send(&stream, &bytes);
    vec![stream, viewer]
}

/// Messages of one byte, each with a header of one byte, behind a keyframe that keeps them all.
fn short_messages(origin: &Origin) -> OpenConnections {
    let (stream, chunk_size) = publisher(origin.connect("rtmp"), "a");
    let (viewer, _) = player(origin.connect("rtmp"), "a");
    let mut bytes = message(6, MessageKind::Video, 0, &[0x17, 1, 0, 0, 0, 1], chunk_size);
    bytes.extend(message(4, MessageKind::Audio, 0, &[0xAF], chunk_size));
    for _ in 0..2_000_000 {
        bytes.extend([0xC4, 0xAF]);
    }
    send(&stream, &bytes);
    vec![stream, viewer]
}

/// Long messages that are begun on many chunk streams and never ended.
fn unfinished(origin: &Origin) -> OpenConnections {
    let (stream, chunk_size) = publisher(origin.connect("rtmp"), "a");
    let payload = vec![0; 8 << 20];
    for chunk_stream_id in 10..60 {
        let bytes = message(chunk_stream_id, MessageKind::Video, 0, &payload, 65_536.max(chunk_size));
        if !send(&stream, &bytes[..bytes.len() - 1]) {
            break;
        }
    }
    ends(&stream);
    OpenConnections::new()
}

/// The same from clients that have not even said `connect`.
fn unfinished_before_connect(origin: &Origin) -> OpenConnections {
    let streams: Vec<_> = (0..20).map(|_| origin.connect("rtmp")).collect();
    for stream in &streams {
        send(stream, &handshake());
        // Set Chunk Size, so that a message is one chunk.
        send(stream, &message(2, MessageKind::SetChunkSize, 0, &(8_u32 << 20).to_be_bytes(), 128));
        let bytes = message(6, MessageKind::Video, 0, &vec![0; 8 << 20], 8 << 20);
        send(stream, &bytes[..bytes.len() - 1]);
    }
    streams.iter().for_each(ends);
    OpenConnections::new()
}

/// Ping requests whose answers are never read.
fn pings(origin: &Origin) -> OpenConnections {
    let (stream, _) = player(origin.connect("rtmp"), "a");
    let ping = message(2, MessageKind::UserControl, 0, &[0, 6, 0, 0, 0, 1], 128);
    let pings = ping.repeat(50_000);
    for _ in 0..100 {
        if !send(&stream, &pings) {
            return vec![stream];
        }
    }
    panic!("90 MB of pings were taken");
}

/// A player that waits for a stream of nobody, and says nothing.
fn idle(origin: &Origin) -> OpenConnections {
    let (stream, _) = player(origin.connect("rtmp"), "nobody");
    ends(&stream);
    OpenConnections::new()
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "RTMP: long settings and short keyframes", attack: settings, memory: 200, ..ROW },
    Row {
        name: "RTMP: two million messages of one byte",
        attack: short_messages,
        memory: 256,
        processor: Duration::from_secs(20),
        ..ROW
    },
    Row {
        name: "RTMP: the same with two workers",
        flags: &["--workers", "2"],
        attack: short_messages,
        memory: 400,
        processor: Duration::from_secs(30),
        ..ROW
    },
    Row { name: "RTMP: fifty unfinished messages of 8 MiB", attack: unfinished, ..ROW },
    Row { name: "RTMP: unfinished messages before connect", attack: unfinished_before_connect, ..ROW },
    Row { name: "RTMP: pings whose answers nobody reads", attack: pings, ..ROW },
    Row { name: "RTMP: a player that is silent", flags: &["--idle-timeout", "1s"], attack: idle, ..ROW },
];
