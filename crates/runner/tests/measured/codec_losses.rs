//! What a lossy link takes of each codec between the origin and a viewer by WebRTC, as the link itself knows it: a relay in this process
//! that reads the headers of RTP, which are not encrypted.

use crate::support::{CODECS, clip, config, publish, start};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_origin::{ANY_PORT, Origin, RTC};
use weir_testing::{soon, undisturbed};

/// Frames of which nothing is taken: those with which the viewer begins, and those that show the end of a gap.
const WHOLE_UNTIL: usize = 12;
const WHOLE_FROM: usize = 85;

/// What became of the packets of a source.
#[derive(Default)]
struct Link {
    /// By time stamp in the order of their coming: packets, and how many of them were taken.
    frames: Vec<(u32, u64, u64)>,
    /// By sequence number: whether it has passed.
    packets: BTreeMap<u16, bool>,
    withheld: u64,
    /// Packets that came again, and those of them that had been taken.
    repeated: u64,
    repaired: u64,
}

impl Link {
    /// Whether a packet passes.
    fn passes(&mut self, number: u16, timestamp: u32) -> bool {
        if let Some(passed) = self.packets.get_mut(&number) {
            self.repeated += 1;
            self.repaired += u64::from(!std::mem::replace(passed, true));
            return true;
        }
        if self.frames.last().is_none_or(|last| last.0 != timestamp) {
            self.frames.push((timestamp, 0, 0));
        }
        let (frame, ordinal) = (self.frames.len(), self.packets.len());
        let is_taken =
            (WHOLE_UNTIL..WHOLE_FROM).contains(&frame) && (ordinal.is_multiple_of(13) || frame % 23 == 5);
        let last = self.frames.last_mut().unwrap();
        last.1 += 1;
        last.2 += u64::from(is_taken);
        self.withheld += u64::from(is_taken);
        self.packets.insert(number, !is_taken);
        !is_taken
    }

    fn gone(&self) -> u64 {
        self.frames.iter().filter(|(_, packets, taken)| packets == taken).count() as u64
    }

    fn hit(&self) -> u64 {
        self.frames.iter().filter(|(_, packets, taken)| *taken > 0 && packets > taken).count() as u64
    }
}

/// Stands between one viewer and the origin: hands on what both say over HTTP with its own port as the server's candidate, and datagrams
/// unless it takes them.
struct Relay {
    address: SocketAddr,
    /// By source.
    links: Arc<Mutex<HashMap<u32, Link>>>,
}

impl Relay {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self { address: listener.local_addr().unwrap(), links: Arc::default() };
        let links = Arc::clone(&relay.links);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let links = Arc::clone(&links);
                std::thread::spawn(move || exchange(client, server, &links));
            }
        });
        relay
    }

    /// What is known of the pictures: the source with the most packets.
    fn pictures<T>(&self, read: impl Fn(&Link) -> T) -> T {
        let links = self.links.lock().unwrap();
        read(links.values().max_by_key(|link| link.packets.len()).unwrap())
    }
}

/// A message of HTTP: its head and its body.
fn message(stream: &mut TcpStream) -> (String, String) {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return (head.to_owned(), body.to_owned());
            }
        }
        match stream.read(&mut piece).unwrap_or(0) {
            0 => return (text, String::new()),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

fn exchange(mut client: TcpStream, server: SocketAddr, links: &Arc<Mutex<HashMap<u32, Link>>>) {
    let (head, body) = message(&mut client);
    let mut upstream = TcpStream::connect(server).unwrap();
    upstream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    let (head, mut body) = message(&mut upstream);
    if let Some(candidate) = body.lines().find(|line| line.starts_with("a=candidate:")).map(str::to_owned) {
        let words: Vec<&str> = candidate.split(' ').collect();
        let origin: SocketAddr = format!("{}:{}", words[4], words[5]).parse().unwrap();
        let port = relay_datagrams(origin, links).to_string();
        let own: Vec<&str> =
            words.iter().enumerate().map(|(at, word)| if at == 5 { &*port } else { *word }).collect();
        body = body.replace(&candidate, &own.join(" "));
    }
    let head: Vec<String> = head
        .lines()
        .map(|line| match line.strip_prefix("Content-Length: ") {
            Some(_) => format!("Content-Length: {}", body.len()),
            None => line.to_owned(),
        })
        .collect();
    let _ = client.write_all(format!("{}\r\n\r\n{body}", head.join("\r\n")).as_bytes());
}

/// Hands datagrams on until the test is over; the port for the viewer.
fn relay_datagrams(origin: SocketAddr, links: &Arc<Mutex<HashMap<u32, Link>>>) -> u16 {
    let sockets = || UdpSocket::bind("127.0.0.1:0").unwrap();
    let (near, far) = (Arc::new(sockets()), Arc::new(sockets()));
    let port = near.local_addr().unwrap().port();
    let viewer: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
    let (from_viewer, from_origin) = ((near.clone(), far.clone()), (far, near));
    let heard = Arc::clone(&viewer);
    std::thread::spawn(move || {
        let mut bytes = [0; 2_048];
        while let Ok((n, source)) = from_viewer.0.recv_from(&mut bytes) {
            *heard.lock().unwrap() = Some(source);
            let _ = from_viewer.1.send_to(&bytes[..n], origin);
        }
    });
    let links = Arc::clone(links);
    std::thread::spawn(move || {
        let mut bytes = [0; 2_048];
        while let Ok((n, _)) = from_origin.0.recv_from(&mut bytes) {
            let Some(viewer) = *viewer.lock().unwrap() else { continue };
            let bytes = &bytes[..n];
            // RFC 7983 and RFC 5761 section 4: RTP, not RTCP.
            let is_rtp = n > 12 && (128..192).contains(&bytes[0]) && !(192..224).contains(&bytes[1]);
            let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
            let passes = !is_rtp || {
                let number = u16::from_be_bytes([bytes[2], bytes[3]]);
                links.lock().unwrap().entry(word(8)).or_default().passes(number, word(4))
            };
            if passes {
                let _ = from_origin.1.send_to(bytes, viewer);
            }
        }
    });
    port
}

#[test]
fn what_a_link_takes_of_each_codec_is_lost_or_recovered_as_the_link_knows() {
    let folder = tempfile::tempdir().unwrap();
    // Of H.264 a lost unit in front of the slice does not show: what pion sends of it is in the tests of the program.
    for (codec, _) in CODECS.into_iter().filter(|(codec, _)| *codec != "h264") {
        let file = clip(folder.path(), codec);
        for repairs in [false, true] {
            undisturbed(|| {
                let origin = Origin::start(&config(&[]).listening(&RTC, ANY_PORT)).unwrap();
                let at = origin.address("rtc").unwrap();
                let relay = Relay::before(at);
                let keys = if repairs { "" } else { ", rtcp_off: [nack, pli]" };
                let url = format!("whep+http://{}/live/a", relay.address);
                let watching = start(&format!(
                    "drain: 2s\nworkloads: [{{play: '{url}', duration: 8s, witness_every: 1{keys}}}]"
                ));
                soon("the viewer is there", || origin.rtc().connected == 1);
                // By RTMP nobody asks for keyframes, so that the file is sent as it is.
                let rtmp = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
                let published =
                    publish(&rtmp, &format!("file: '{}', duration: 4s, no_stamp: true", file.display()));
                std::thread::sleep(Duration::from_secs(1));
                let run = watching.finish();
                assert_eq!(run.well(), 1, "{codec}: {:?}", run.failures());
                let total = |figure: &str| run.figure_of(0, figure);
                let (withheld, repeated, repaired) =
                    relay.pictures(|link| (link.withheld, link.repeated, link.repaired));
                let (gone, hit, frames) = relay.pictures(|link| (link.gone(), link.hit(), link.frames.len()));
                assert_eq!(frames as u64, published.figure_of(0, "frames"), "{codec}");
                assert!(withheld > 5 && hit > 1 && gone > 0, "{codec}: {withheld}, {hit}, {gone}");
                if repairs {
                    assert_eq!((total("rtc.recovered"), total("lost")), (withheld, 0), "{codec}");
                    assert_eq!((repaired, origin.rtc().repeated), (withheld, repeated), "{codec}");
                    assert_eq!((total("rtc.frames_broken"), total("frames")), (0, frames as u64), "{codec}");
                    return;
                }
                assert_eq!((total("lost"), repeated, total("duplicate")), (withheld, 0, 0), "{codec}");
                assert_eq!(total("frames"), frames as u64 - gone, "{codec}");
                let (broken, unproven) = (total("rtc.frames_broken"), total("rtc.frames_unproven"));
                // A frame of AV1 does not say that it begins: behind a loss it may have lost its beginning.
                assert_eq!(broken - unproven, hit, "{codec}: {unproven} unproven");
                assert!(unproven == 0 || codec == "av1", "{codec}: {unproven} unproven");
            });
        }
    }
}
