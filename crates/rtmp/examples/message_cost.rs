//! What one message costs to receive: nanoseconds through the chunk reader alone, and through a whole client.
//!
//! `cargo run --release -p weir-rtmp --example message_cost`

use std::hint::black_box;
use std::time::Instant;

use weir_rtmp::chunk::{Event, Limits, MediaFraming, Reader, Writer};
use weir_rtmp::message::MediaKind;
use weir_rtmp::{Client, ClientEvent, ClientOptions, Server, ServerEvent, ServerOptions};

const MESSAGES: u32 = 20_000;
const ROUNDS: u32 = 50;

fn main() {
    println!("{:>8} {:>8} {:>8} {:>14} {:>14}", "message", "chunk", "read", "reader ns/msg", "client ns/msg");
    for (length, chunk_size, read) in [
        (430, 4096, 65_536),
        (430, 4096, 16_384),
        (430, 128, 65_536),
        (430, 4096, 1_448),
        (4_000, 4096, 65_536),
        (4_000, 60_000, 16_384),
    ] {
        let stream = stream(length, chunk_size);
        let reader = reader_cost(&stream, chunk_size, read);
        let client = client_cost(&stream, chunk_size, read);
        println!("{length:>8} {chunk_size:>8} {read:>8} {reader:>14.1} {client:>14.1}");
    }
}

/// Two video messages to one of audio, as a 0.2 Mbit/s stream has them.
fn stream(length: usize, chunk_size: u32) -> Vec<u8> {
    let framing = MediaFraming { chunk_size, message_stream_id: 1 };
    let payload = vec![0x27; length];
    let mut bytes = Vec::new();
    for number in 0..MESSAGES {
        let kind = if number % 3 == 0 { MediaKind::Audio } else { MediaKind::Video };
        framing.frame(kind, number * 15, &payload, &mut bytes);
    }
    bytes
}

fn reader_cost(stream: &[u8], chunk_size: u32, read: usize) -> f64 {
    let mut reader = Reader::new(Limits::default());
    let mut set_chunk_size = Vec::new();
    Writer::new().set_chunk_size(chunk_size, &mut set_chunk_size);
    reader.read(&set_chunk_size, |_| ()).expect("a chunk size");
    per_message(|| {
        let mut ended = 0;
        for input in stream.chunks(read) {
            let read = reader.read(input, |event| {
                ended += u32::from(matches!(event, Event::End { .. }));
                black_box(event);
            });
            read.expect("a chunk stream");
        }
        ended
    })
}

fn client_cost(stream: &[u8], chunk_size: u32, read: usize) -> f64 {
    let mut client = playing_client(chunk_size);
    per_message(|| {
        let mut media = 0;
        for input in stream.chunks(read) {
            let read = client.input(input, &mut |event| {
                media += u32::from(matches!(event, ClientEvent::Media(_)));
                black_box(event);
            });
            read.expect("a stream");
            client.output().clear();
        }
        media
    })
}

fn per_message(mut round: impl FnMut() -> u32) -> f64 {
    let best = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        assert_eq!(round(), MESSAGES);
        start.elapsed()
    });
    best.min().unwrap_or_default().as_nanos() as f64 / f64::from(MESSAGES)
}

fn playing_client(chunk_size: u32) -> Client {
    let mut client = Client::new(ClientOptions::play("rtmp://localhost/live", "live", "x"), 1);
    let mut server = Server::new(ServerOptions { chunk_size, ..ServerOptions::default() }, 2);
    while !client.is_streaming() {
        let (mut connect, mut play) = (false, None);
        let said = std::mem::take(client.output());
        let heard = server.input(&said, &mut |event| match event {
            ServerEvent::Connect(_) => connect = true,
            ServerEvent::Play { message_stream_id, .. } => play = Some(message_stream_id),
            _ => {}
        });
        heard.expect("our own client");
        if connect {
            server.accept_connect();
        }
        if let Some(message_stream_id) = play {
            server.accept_play(message_stream_id);
        }
        let said = std::mem::take(server.output());
        client.input(&said, &mut |_| ()).expect("our own server");
    }
    client
}
