//! A transport stream of known content, and a small HTTP server that sends it, paced or at once.
#![allow(dead_code, unreachable_pub)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};
use weir_ts::packet::{Header, PACKET_LENGTH};

/// Of the stream, null packets included.
pub const BIT_RATE: u64 = 1_504_000;
/// Packets a second.
pub const PACKETS: usize = 1_000;
/// Where its pictures are.
pub const VIDEO_PID: u16 = 0x0101;

/// SPS and PPS of H.264, in front of each keyframe.
pub const PARAMETER_SETS: &[u8] = &[0, 0, 0, 1, 0x67, 66, 0, 30, 0, 0, 0, 1, 0x68, 0xCE, 0, 0, 0, 1];

/// So many seconds of 25 pictures a second, a random access point in each second, at a constant rate.
pub fn stream(seconds: u64) -> Vec<u8> {
    let mut muxer =
        Muxer::new(MuxSettings { bit_rate: Some(BIT_RATE), audio: None, ..MuxSettings::default() });
    // No two packets near each other are the same, so that none passes for a repetition.
    let content: Vec<u8> = (0..4_500).map(|at| (at / 16) as u8 | 0x40).collect();
    let begun = [PARAMETER_SETS, &content[PARAMETER_SETS.len()..]].concat();
    let mut bytes = Vec::new();
    for picture in 0..=seconds * 25 {
        let time = 90_000 + picture * 3_600;
        let key = picture % 25 == 0;
        let unit = AccessUnit {
            pts: time,
            dts: time,
            random_access: key,
            bytes: if key { &begun } else { &content },
        };
        muxer.video(&unit, &mut bytes);
    }
    bytes.truncate(seconds as usize * PACKETS * PACKET_LENGTH);
    assert_eq!(bytes.len(), seconds as usize * PACKETS * PACKET_LENGTH);
    bytes
}

/// The stream without `count` packets of video, from the first one at or behind packet `from` on; one pair a place.
pub fn without(stream: &[u8], losses: &[(usize, usize)]) -> Vec<u8> {
    let mut left: Vec<(usize, usize)> = losses.to_vec();
    let mut kept = Vec::new();
    for (number, packet) in stream.chunks(PACKET_LENGTH).enumerate() {
        let header = Header(u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]));
        let loss = left.iter_mut().find(|(from, count)| *from <= number && *count > 0);
        match loss {
            Some((_, count)) if header.pid() == VIDEO_PID && header.has_payload() => *count -= 1,
            _ => kept.extend_from_slice(packet),
        }
    }
    kept
}

/// How an answer's body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    Close,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status and reason.
    pub status: &'static str,
    /// More fields, each with its line end.
    pub fields: String,
    pub framing: Framing,
    pub body: Arc<Vec<u8>>,
    /// Bits a second; `None`: at once.
    pub pace: Option<u64>,
    /// Ends this many bytes before the body's end, which were announced.
    pub short: usize,
}

impl Response {
    pub fn ok(framing: Framing, body: Vec<u8>) -> Self {
        Self { status: "200 OK", fields: String::new(), framing, body: Arc::new(body), pace: None, short: 0 }
    }

    pub fn refusal(status: &'static str) -> Self {
        Self { status, ..Self::ok(Framing::Length, Vec::new()) }
    }

    pub fn head(&self) -> String {
        let framing = match self.framing {
            Framing::Length => format!("Content-Length: {}\r\n", self.body.len()),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Framing::Close => String::new(),
        };
        format!("HTTP/1.1 {}\r\nContent-Type: video/mp2t\r\n{}{framing}\r\n", self.status, self.fields)
    }

    /// A piece of the body as it goes on the wire.
    pub fn framed(&self, piece: &[u8]) -> Vec<u8> {
        match self.framing {
            Framing::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
            Framing::Length | Framing::Close => piece.to_vec(),
        }
    }

    /// What stands behind the body.
    pub fn end(&self) -> &'static [u8] {
        if self.framing == Framing::Chunked { b"0\r\n\r\n" } else { b"" }
    }

    fn send(&self, link: &mut TcpStream) -> std::io::Result<()> {
        link.write_all(self.head().as_bytes())?;
        let body = &self.body[..self.body.len() - self.short];
        // Pieces that have nothing to do with packets.
        let (began, mut sent) = (Instant::now(), 0);
        for piece in body.chunks(5_000) {
            link.write_all(&self.framed(piece))?;
            sent += piece.len() as u64;
            if let Some(pace) = self.pace {
                let due = Duration::from_micros(sent * 8_000_000 / pace);
                std::thread::sleep(due.saturating_sub(began.elapsed()));
            }
        }
        if self.short == 0 { link.write_all(self.end()) } else { Ok(()) }
    }
}

/// A server on a free loopback port, a thread a connection.
pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Answers each request, which it is shown whole, with what `answer` says.
    pub fn start(answer: impl Fn(&str) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, answer) = (stop.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for link in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let answer = answer.clone();
                std::thread::spawn(move || {
                    let mut link = link.unwrap();
                    // A viewer that has gone is no fault of the server's.
                    let _ = serve(&mut link, &*answer);
                });
            }
        });
        Self { address, stop }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(link: &mut TcpStream, answer: &dyn Fn(&str) -> Response) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        link.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    answer(&String::from_utf8_lossy(&request)).send(link)
}
