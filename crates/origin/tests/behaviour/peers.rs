//! Simple clients on blocking sockets that write down everything they see, and helpers around them.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use weir_origin::{ANY_PORT, Identity, Origin, OriginConfig, RTMP};
use weir_rtmp::message::{MediaKind, Status};
use weir_rtmp::{Client, ClientEvent, ClientOptions, flv};

/// Longest wait for anything in these tests.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// An origin that sends each packet as it comes, with these faults.
pub(crate) fn origin(faults: &[&str]) -> Origin {
    start(OriginConfig {
        merge: Duration::ZERO,
        faults: faults.iter().map(|line| line.parse().unwrap()).collect(),
        ..OriginConfig::default()
    })
}

/// An origin on a port that the system chooses.
pub(crate) fn start(config: OriginConfig) -> Origin {
    Origin::start(&config.listening(&RTMP, ANY_PORT)).unwrap()
}

pub(crate) fn address(origin: &Origin) -> SocketAddr {
    origin.address("rtmp").unwrap()
}

/// A listener with TLS on a port that the system chooses, with a certificate for `localhost` in this folder.
pub(crate) fn identity(folder: &Path) -> Identity {
    let (chain, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Identity { chain, key }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TEST_TIMEOUT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A media message that came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) at: Instant,
    pub(crate) kind: MediaKind,
    pub(crate) timestamp: u32,
    pub(crate) length: u32,
    pub(crate) head: Vec<u8>,
}

impl Unit {
    pub(crate) fn is_keyframe(&self) -> bool {
        self.kind == MediaKind::Video && flv::VideoTag::parse(&self.head).is_ok_and(|tag| tag.is_keyframe())
    }

    /// The number that [`Publisher::frame`] put into a frame.
    pub(crate) fn number(&self) -> Option<u32> {
        if self.kind != MediaKind::Video {
            return None;
        }
        let tag = flv::VideoTag::parse(&self.head).ok().filter(flv::VideoTag::is_frame)?;
        let start = tag.payload_offset + 4;
        Some(u32::from_be_bytes(self.head.get(start..start + 4)?.try_into().unwrap()))
    }
}

/// One connection and what came over it.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    pub(crate) client: Client,
    pub(crate) units: Vec<Unit>,
    pub(crate) statuses: Vec<(String, String)>,
    pub(crate) received: u64,
    pub(crate) began: bool,
    pub(crate) ended: bool,
    /// How the connection ended.
    pub(crate) end: Option<ErrorKind>,
}

impl Peer {
    pub(crate) fn connect(address: SocketAddr, options: ClientOptions) -> Self {
        let stream = TcpStream::connect_timeout(&address, TEST_TIMEOUT).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            client: Client::new(options, 1),
            units: Vec::new(),
            statuses: Vec::new(),
            received: 0,
            began: false,
            ended: false,
            end: None,
        }
    }

    /// A player of `live/NAME`.
    pub(crate) fn player(address: SocketAddr, name: &str) -> Self {
        Self::connect(address, ClientOptions::play(format!("rtmp://{address}/live"), "live", name))
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.stream.local_addr().unwrap()
    }

    /// Sends what waits, and reads once.
    pub(crate) fn step(&mut self) {
        let words = std::mem::take(self.client.output());
        if let Err(error) = self.stream.write_all(&words) {
            self.end.get_or_insert(error.kind());
            return;
        }
        let mut buffer = [0; 64 * 1024];
        let n = match self.stream.read(&mut buffer) {
            Ok(0) => {
                self.end.get_or_insert(ErrorKind::UnexpectedEof);
                return;
            }
            Ok(n) => n,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return,
            Err(error) => {
                self.end.get_or_insert(error.kind());
                return;
            }
        };
        self.received += n as u64;
        let Self { client, units, statuses, began, ended, .. } = self;
        client
            .input(&buffer[..n], &mut |event| match event {
                ClientEvent::Playing | ClientEvent::Publishing => *began = true,
                ClientEvent::Status(Status { code, description, .. }) => {
                    statuses.push((code.into_owned(), description.into_owned()));
                }
                ClientEvent::StreamEof { .. } => *ended = true,
                ClientEvent::Media(media) => units.push(Unit {
                    at: Instant::now(),
                    kind: media.kind,
                    timestamp: media.timestamp,
                    length: media.length,
                    head: media.head.to_vec(),
                }),
                _ => {}
            })
            .unwrap();
    }

    /// Steps until something holds.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            let (units, statuses) = (self.units.len(), &self.statuses);
            assert!(
                began.elapsed() < TEST_TIMEOUT,
                "waited in vain: {what}; {units} units, {statuses:?}, {:?}",
                self.end
            );
            self.step();
        }
    }

    /// Steps for a while.
    pub(crate) fn watch(&mut self, span: Duration) {
        let began = Instant::now();
        while began.elapsed() < span && self.end.is_none() {
            self.step();
        }
    }

    pub(crate) fn has_status(&self, code: &str) -> bool {
        self.statuses.iter().any(|(other, _)| other == code)
    }

    /// Numbers of the frames that came, in order.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.units.iter().filter_map(Unit::number).collect()
    }

    /// The unit that carries frame `number`.
    pub(crate) fn frame(&self, number: u32) -> &Unit {
        self.units.iter().find(|unit| unit.number() == Some(number)).unwrap()
    }
}

/// A publisher whose frames carry numbers from 1.
pub(crate) struct Publisher {
    pub(crate) peer: Peer,
    next: u32,
}

/// Milliseconds from one frame to the next.
pub(crate) const FRAME: u32 = 40;

impl Publisher {
    /// Begins to publish `live/NAME`, with metadata and settings.
    pub(crate) fn begin(address: SocketAddr, name: &str) -> Self {
        let options = ClientOptions::publish(format!("rtmp://{address}/live"), "live", name);
        let mut peer = Peer::connect(address, options);
        peer.until("consent to publish", |peer| peer.began);
        let mut payload = Vec::new();
        let properties = weir_rtmp::amf0::Object::new().with("width", 320.0).with("height", 180.0);
        weir_rtmp::message::data::set_metadata(properties, &mut payload);
        peer.client.send(MediaKind::Data, 0, &payload).unwrap();
        payload.clear();
        flv::avc_sequence_header(&[1, 100, 0, 30, 255], &mut payload);
        peer.client.send(MediaKind::Video, 0, &payload).unwrap();
        peer.step();
        Self { peer, next: 1 }
    }

    /// Sends the next frame, `bytes` long.
    pub(crate) fn frame(&mut self, keyframe: bool, bytes: usize) -> u32 {
        let number = self.next;
        self.next += 1;
        let mut unit = Vec::with_capacity(bytes + 8);
        unit.extend((bytes as u32 + 4).to_be_bytes());
        unit.extend(number.to_be_bytes());
        unit.resize(bytes + 8, 0);
        let mut payload = Vec::new();
        flv::avc_frame(keyframe, 0, &unit, &mut payload);
        self.peer.client.send(MediaKind::Video, (number - 1) * FRAME, &payload).unwrap();
        let words = std::mem::take(self.peer.client.output());
        if let Err(error) = self.peer.stream.write_all(&words) {
            self.peer.end = Some(error.kind());
        }
        number
    }

    /// Sends `count` frames of 500 bytes, a keyframe first and every `gop`, with pauses.
    pub(crate) fn frames(&mut self, count: u32, gop: u32, pause: Duration) {
        for _ in 0..count {
            self.frame((self.next - 1).is_multiple_of(gop), 500);
            std::thread::sleep(pause);
        }
    }

    /// Says goodbye.
    pub(crate) fn end(mut self) {
        self.peer.client.close();
        self.peer.step();
    }
}
