//! RTMP as an attacker writes it.

use std::io::Write;
use std::net::TcpStream;
use weir_rtmp::chunk::MessageHeader;
use weir_rtmp::message::MessageKind;
use weir_rtmp::{Client, ClientOptions};

/// C0, C1 and C2 in one go: servers do not look at what C2 repeats.
pub(crate) fn handshake() -> Vec<u8> {
    let mut bytes = vec![3];
    bytes.resize(1 + 2 * 1536, 0);
    bytes
}

/// A message in chunks of `chunk_size`, with a full header.
pub(crate) fn message(
    chunk_stream_id: u32,
    kind: MessageKind,
    timestamp: u32,
    payload: &[u8],
    chunk_size: u32,
) -> Vec<u8> {
    let length = payload.len() as u32;
    let header = MessageHeader { chunk_stream_id, kind, timestamp, length, message_stream_id: 1 };
    let mut bytes = Vec::new();
    weir_rtmp::chunk::frame(&header, payload, chunk_size, &mut bytes);
    bytes
}

/// A publisher or a player whose media begin.
pub(crate) fn established(mut stream: TcpStream, options: ClientOptions) -> (TcpStream, u32) {
    let mut client = Client::new(options, 1);
    let mut buffer = vec![0; 65_536];
    loop {
        stream.write_all(&std::mem::take(client.output())).unwrap();
        if client.is_streaming() {
            let chunk_size = client.framing().map_or(128, |framing| framing.chunk_size);
            return (stream, chunk_size);
        }
        let n = std::io::Read::read(&mut stream, &mut buffer).unwrap();
        assert!(n > 0, "the server has hung up");
        client.input(&buffer[..n], &mut |_| ()).unwrap();
    }
}

pub(crate) fn publisher(stream: TcpStream, name: &str) -> (TcpStream, u32) {
    established(stream, ClientOptions::publish("rtmp://127.0.0.1/live", "live", name))
}

pub(crate) fn player(stream: TcpStream, name: &str) -> (TcpStream, u32) {
    established(stream, ClientOptions::play("rtmp://127.0.0.1/live", "live", name))
}
