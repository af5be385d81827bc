//! Simple readers of MPEG-TS over HTTP on blocking sockets, and helpers around them.

use crate::peers::TEST_TIMEOUT;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use weir_metrics::BitRate;
use weir_origin::{ANY_PORT, ChannelType, HTTP, Material, Origin, OriginConfig, Service, Tuners};
use weir_ts::{Analyser, Counts, Options, Report};

/// Bytes of a packet.
pub(crate) const PACKET: usize = 188;

/// `count` made services of this rate.
pub(crate) fn services(count: u16, rate: u64) -> Vec<Service> {
    let material = Material::Synthetic(BitRate::from_bps(rate as f64));
    (1..=count).map(|number| Service::numbered(number, ChannelType::Gr, material.clone())).collect()
}

/// A tuner server with one service of this rate, that sends each piece at once, with these faults.
pub(crate) fn tuner(rate: u64, faults: &[&str]) -> Origin {
    tuners(Tuners { services: services(1, rate), merge: Duration::ZERO, ..Tuners::default() }, faults)
}

/// A tuner server on a port that the system chooses.
pub(crate) fn tuners(tuners: Tuners, faults: &[&str]) -> Origin {
    serve(OriginConfig {
        tuners,
        faults: faults.iter().map(|line| line.parse().unwrap()).collect(),
        ..OriginConfig::default()
    })
}

/// The same with other settings.
pub(crate) fn serve(config: OriginConfig) -> Origin {
    Origin::start(&config.listening(&HTTP, ANY_PORT)).unwrap()
}

pub(crate) fn address(origin: &Origin) -> SocketAddr {
    origin.address("http").unwrap()
}

/// One connection, what it was answered, and the stream that came after.
pub(crate) struct Reader {
    pub(crate) stream: TcpStream,
    /// Status line and fields.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// All bytes that came over the connection.
    pub(crate) received: u64,
    /// How the connection ended.
    pub(crate) end: Option<ErrorKind>,
    chunked: bool,
    /// What was received and is not in the body yet.
    raw: Vec<u8>,
}

impl Reader {
    /// Asks for a path and waits for the head of the answer.
    pub(crate) fn get(address: SocketAddr, path: &str) -> Self {
        Self::ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
    }

    /// Says this and waits for the head of the answer.
    pub(crate) fn ask(address: SocketAddr, request: &str) -> Self {
        Self::ask_for(address, request, TEST_TIMEOUT)
    }

    /// Says this and waits for so long for the head of the answer, if one comes.
    pub(crate) fn ask_for(address: SocketAddr, request: &str, patience: Duration) -> Self {
        let stream = TcpStream::connect_timeout(&address, TEST_TIMEOUT).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut reader = Self {
            stream,
            head: String::new(),
            body: Vec::new(),
            received: 0,
            end: None,
            chunked: false,
            raw: Vec::new(),
        };
        reader.stream.write_all(request.as_bytes()).unwrap();
        let began = Instant::now();
        while reader.head.is_empty() && reader.end.is_none() && began.elapsed() < patience {
            reader.step();
        }
        reader
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// The status, if there was an answer.
    pub(crate) fn status(&self) -> Option<u16> {
        self.head.split(' ').nth(1)?.parse().ok()
    }

    /// Reads once.
    pub(crate) fn step(&mut self) {
        let mut buffer = [0; 256 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => {
                self.end.get_or_insert(ErrorKind::UnexpectedEof);
            }
            Ok(n) => {
                self.received += n as u64;
                self.raw.extend_from_slice(&buffer[..n]);
                self.take();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => {
                self.end.get_or_insert(error.kind());
            }
        }
    }

    fn take(&mut self) {
        if self.head.is_empty() {
            let Some(end) = self.raw.windows(4).position(|four| four == b"\r\n\r\n") else { return };
            self.head = String::from_utf8(self.raw[..end].to_vec()).unwrap();
            self.raw.drain(..end + 4);
            self.chunked = self.head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        }
        if !self.chunked {
            self.body.append(&mut self.raw);
            return;
        }
        let mut rest = &self.raw[..];
        while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
            let length = std::str::from_utf8(&rest[..end]).unwrap();
            let length = usize::from_str_radix(length, 16).unwrap_or_else(|_| panic!("chunk of '{length}'"));
            let Some(chunk) = rest.get(end + 2..end + 2 + length + 2) else { break };
            assert_eq!(&chunk[length..], b"\r\n");
            self.body.extend_from_slice(&chunk[..length]);
            rest = &rest[end + 2 + length + 2..];
        }
        self.raw = rest.to_vec();
    }

    /// Reads until the body has `count` packets, or the connection has ended.
    pub(crate) fn packets(&mut self, count: usize) {
        let began = Instant::now();
        while self.body.len() < count * PACKET && self.end.is_none() {
            assert!(began.elapsed() < TEST_TIMEOUT, "waited in vain: {} bytes", self.body.len());
            self.step();
        }
    }

    /// Reads until the connection ends.
    pub(crate) fn until_end(&mut self) {
        let began = Instant::now();
        while self.end.is_none() {
            assert!(began.elapsed() < TEST_TIMEOUT, "waited in vain: {} bytes", self.body.len());
            self.step();
        }
    }

    /// The body as JSON.
    pub(crate) fn json(mut self) -> serde_json::Value {
        let length = self.head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
        let length: usize = length.parse().unwrap();
        while self.body.len() < length && self.end.is_none() {
            self.step();
        }
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What the analyser has to say of a stream.
pub(crate) fn report(stream: &[u8]) -> Report {
    let mut analyser = Analyser::new(Options::default());
    analyser.feed(stream);
    analyser.finish();
    analyser.report()
}

/// The counts of what can be wrong, the end of the stream apart: it is cut wherever the reader stopped.
pub(crate) fn wrongs(stream: &[u8]) -> Counts {
    let counts = report(stream).counts;
    Counts {
        bytes: 0,
        packets: 0,
        null_packets: 0,
        pcrs: 0,
        random_access_indicators: 0,
        truncated_ends: 0,
        trailing_bytes: 0,
        ..counts
    }
}
