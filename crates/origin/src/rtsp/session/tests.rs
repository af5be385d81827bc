//! Sessions on the bench: requests, and streams that go from one session to another as datagrams.

use super::{RtspSession, name_of};
use crate::harness::settings;
use crate::rtsp::counts::RtspCounts;
use crate::worker::Worker;
use std::net::SocketAddr;
use weir_shard::{Event, Rig};

#[test]
fn a_stream_goes_by_its_path() {
    for (uri, expected) in [
        ("rtsp://h:8554/live/a", Some("live/a")),
        ("rtsp://h/live/a/?token=x", Some("live/a")),
        ("/live", Some("live")),
        ("rtsp://h", None),
        ("*", Some("*")),
    ] {
        assert_eq!(name_of(uri).as_deref(), expected, "{uri}");
    }
}

#[test]
fn requests_are_answered_in_turn_and_what_is_not_rtsp_ends_the_link() {
    let mut rig = Rig::new(Worker::new(settings()));
    let mut session = RtspSession::new(&mut rig.world, SocketAddr::from(([127, 0, 0, 1], 50_000)));
    rig.dispatch(&mut session, Event::Connected);
    rig.dispatch(
        &mut session,
        Event::Bytes(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\nPLAY rtsp://h/a RTSP/1.0\r\nCSeq: 2\r\n\r\n"),
    );
    let sent = String::from_utf8_lossy(&rig.sent).into_owned();
    assert!(sent.contains("CSeq: 1\r\n") && sent.contains("Public: OPTIONS"), "{sent}");
    assert!(sent.contains("455 Method Not Valid in This State\r\nCSeq: 2"), "{sent}");
    assert!(!rig.closed);
    let description = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:1\r\n";
    let publish = format!(
        "ANNOUNCE rtsp://h/a RTSP/1.0\r\nCSeq: 3\r\nContent-Length: {}\r\n\r\n{description}\
         SETUP rtsp://h/a/7 RTSP/1.0\r\nCSeq: 4\r\nTransport: RTP/AVP/TCP;interleaved=0-1;mode=record\r\n\r\n\
         SETUP rtsp://h/a/1 RTSP/1.0\r\nCSeq: 5\r\nTransport: RTP/AVP/TCP;interleaved=0-1;mode=record\r\n\r\n\
         RECORD rtsp://h/a RTSP/1.0\r\nCSeq: 6\r\n\r\nDESCRIBE rtsp://h/a RTSP/1.0\r\nCSeq: 7\r\n\r\n",
        description.len()
    );
    rig.dispatch(&mut session, Event::Bytes(publish.as_bytes()));
    let sent = String::from_utf8_lossy(&rig.sent).into_owned();
    for (number, status) in [(3, 200), (4, 404), (5, 200), (6, 200), (7, 455)] {
        let words = format!("{status} {}\r\nCSeq: {number}\r\n", weir_rtsp::reason(status));
        assert!(sent.contains(&words), "{words} in {sent}");
    }
    rig.dispatch(&mut session, Event::Bytes(b"\x16\x03\x01"));
    assert!(rig.closed);
}

const DESCRIPTION: &str = "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n\
    a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==\r\na=control:1\r\n";

/// The ports of the peers on the bench, and the origin's, which every session on it has.
const PUBLISHER: u16 = 5_000;
const VIEWER: u16 = 6_000;

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Sessions of one worker.
struct Bench {
    rig: Rig<Worker>,
    requests: u32,
}

impl Bench {
    fn new() -> Self {
        Self { rig: Rig::new(Worker::new(settings())), requests: 0 }
    }

    fn connect(&mut self) -> RtspSession {
        let mut session = RtspSession::new(&mut self.rig.world, at(50_000));
        self.rig.dispatch(&mut session, Event::Connected);
        session
    }

    /// The response to a request: its status, and all of it.
    fn ask(&mut self, session: &mut RtspSession, request: &str, fields: &str, body: &str) -> (u16, String) {
        self.requests += 1;
        let (number, length) = (self.requests, body.len());
        let text =
            format!("{request} RTSP/1.0\r\nCSeq: {number}\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        self.rig.take_sent();
        self.rig.dispatch(session, Event::Bytes(text.as_bytes()));
        let response = String::from_utf8_lossy(&self.rig.take_sent()).into_owned();
        let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{request}: {response}")), response)
    }

    /// A publisher that sends its pictures as datagrams.
    fn publisher(&mut self) -> RtspSession {
        let mut session = self.connect();
        assert_eq!(self.ask(&mut session, "ANNOUNCE rtsp://h/a", "", DESCRIPTION).0, 200);
        let transport =
            format!("Transport: RTP/AVP;unicast;client_port={PUBLISHER}-{};mode=record\r\n", PUBLISHER + 1);
        let (status, response) = self.ask(&mut session, "SETUP rtsp://h/a/1", &transport, "");
        assert!(status == 200 && response.contains("server_port=40000-40001;mode=record"), "{response}");
        assert_eq!(self.ask(&mut session, "RECORD rtsp://h/a", "", "").0, 200);
        session
    }

    /// A viewer that has set up the pictures as datagrams.
    fn viewer(&mut self) -> RtspSession {
        let mut session = self.connect();
        assert_eq!(self.ask(&mut session, "DESCRIBE rtsp://h/a", "", "").0, 200);
        // Multicast comes first, and nothing goes to where the peer is not.
        let transport = format!(
            "Transport: RTP/AVP;multicast, RTP/AVP;unicast;destination=192.0.2.1;client_port={VIEWER}-{}\r\n",
            VIEWER + 1
        );
        let (status, response) = self.ask(&mut session, "SETUP rtsp://h/a/trackID=0", &transport, "");
        assert!(status == 200 && response.contains(";server_port=40000-40001"), "{response}");
        session
    }

    /// The publisher sends a picture in one packet.
    fn picture(&mut self, publisher: &mut RtspSession, number: u16, from: u16) {
        let unit = if number.is_multiple_of(5) { 0x65 } else { 0x41 };
        let [high, low] = number.to_be_bytes();
        let time = (u32::from(number) * 3_600).to_be_bytes();
        let header = [&[0x80, 0xE0, high, low][..], &time, &[0, 0, 0, 9]].concat();
        let packet = [&header[..], &[unit, 0x88], &[low; 40]].concat();
        self.rig.tell_datagram(publisher, at(from), &packet);
    }

    /// What a viewer is sent when it is woken: the numbers of its RTP packets, all to its port.
    fn packets(&mut self, viewer: &mut RtspSession) -> Vec<u16> {
        self.rig.dispatch(viewer, Event::Woken);
        let mut numbers = Vec::new();
        for (to, bytes) in self.rig.take_datagrams() {
            if to == at(VIEWER) {
                numbers.push(u16::from_be_bytes([bytes[2], bytes[3]]));
            } else {
                assert_eq!(to, at(VIEWER + 1), "reports go to the other port");
            }
        }
        numbers
    }
}

/// Whether these follow each other.
fn in_a_row(numbers: &[u16]) -> bool {
    numbers.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1))
}

#[test]
fn pictures_go_from_a_publisher_to_a_viewer_as_datagrams() {
    let mut bench = Bench::new();
    let mut publisher = bench.publisher();
    bench.picture(&mut publisher, 100, PUBLISHER);
    let mut viewer = bench.viewer();
    assert_eq!(bench.ask(&mut viewer, "PLAY rtsp://h/a", "", "").0, 200);
    let mut numbers = bench.packets(&mut viewer);
    // Of a stranger, of a gateway that has changed the port, and not in order.
    bench.rig.tell_datagram(&mut publisher, SocketAddr::from(([127, 0, 0, 2], PUBLISHER)), &[0x80; 60]);
    for (number, from) in
        [(101, PUBLISHER), (103, PUBLISHER), (102, PUBLISHER + 7), (104, PUBLISHER), (106, PUBLISHER)]
    {
        bench.picture(&mut publisher, number, from);
    }
    numbers.extend(bench.packets(&mut viewer));
    assert!(numbers.len() == 5 && in_a_row(&numbers), "all but the last, which waits: {numbers:?}");
    let counts = *bench.rig.world.state::<RtspCounts>().unwrap();
    assert_eq!((counts.publishers, counts.packets, counts.lost), (1, 6, 1), "{counts:?}");
    // It is told so.
    assert_eq!(bench.ask(&mut publisher, "GET_PARAMETER rtsp://h/a", "", "").0, 200);
    bench.rig.advance(&mut publisher, std::time::Duration::from_secs(4));
    let reports = bench.rig.take_datagrams();
    assert!(reports.iter().any(|(to, bytes)| *to == at(PUBLISHER + 1) && bytes[1] == 201), "{reports:?}");
    // The session ends with its connection, and its stream with it: a goodbye in each track.
    bench
        .rig
        .dispatch(&mut publisher, Event::HungUp { failure: weir_metrics::Failure::ClosedByPeer, words: "" });
    bench.rig.closed = false;
    bench.rig.dispatch(&mut viewer, Event::Woken);
    let sent = bench.rig.take_datagrams();
    assert!(sent.iter().any(|(to, bytes)| *to == at(VIEWER + 1) && bytes.contains(&203)), "{sent:?}");
}

#[test]
fn a_viewer_that_pauses_is_sent_nothing_and_plays_on_with_the_next_number() {
    let mut bench = Bench::new();
    let mut publisher = bench.publisher();
    bench.picture(&mut publisher, 100, PUBLISHER);
    let mut viewer = bench.viewer();
    assert_eq!(bench.ask(&mut viewer, "PAUSE rtsp://h/a", "", "").0, 455);
    assert_eq!(bench.ask(&mut viewer, "PLAY rtsp://h/a", "", "").0, 200);
    let mut numbers = bench.packets(&mut viewer);
    assert!(!numbers.is_empty());
    for _ in 0..2 {
        assert_eq!(bench.ask(&mut viewer, "PAUSE rtsp://h/a", "", "").0, 200);
    }
    (101..112).for_each(|number| bench.picture(&mut publisher, number, PUBLISHER));
    assert_eq!(bench.packets(&mut viewer), [0_u16; 0]);
    for (request, status) in [("DESCRIBE rtsp://h/a", 455), ("GET_PARAMETER rtsp://h/a", 200)] {
        assert_eq!(bench.ask(&mut viewer, request, "", "").0, status, "{request}");
    }
    let (status, response) = bench.ask(&mut viewer, "PLAY rtsp://h/a", "", "");
    let next = numbers.last().unwrap().wrapping_add(1);
    assert!(status == 200 && response.contains(&format!("trackID=0;seq={next}")), "{response}");
    let after = bench.packets(&mut viewer);
    // From the latest keyframe on, the 110th.
    numbers.extend(&after);
    assert!(after.len() >= 2 && in_a_row(&numbers), "{numbers:?}");
    assert_eq!(bench.rig.world.state::<RtspCounts>().unwrap().lost, 0);
}

#[test]
fn tracks_of_a_session_are_carried_in_one_way() {
    let mut bench = Bench::new();
    let mut publisher = bench.publisher();
    bench.picture(&mut publisher, 100, PUBLISHER);
    let mut viewer = bench.viewer();
    let track = "SETUP rtsp://h/a/trackID=0";
    for (transport, status) in [
        ("RTP/AVP/TCP;unicast;interleaved=0-1", 461),
        ("RTP/AVP;unicast", 461),
        ("RTP/SAVP;unicast;client_port=7000-7001", 461),
        ("RTP/AVP;unicast;client_port=7000-7001", 200),
    ] {
        let field = format!("Transport: {transport}\r\n");
        assert_eq!(bench.ask(&mut viewer, track, &field, "").0, status, "{transport}");
    }
    // Asked again, it may choose again.
    assert_eq!(bench.ask(&mut viewer, "DESCRIBE rtsp://h/a", "", "").0, 200);
    let interleaved = "Transport: RTP/AVP/TCP;unicast;interleaved=4-5\r\n";
    assert_eq!(bench.ask(&mut viewer, track, interleaved, "").0, 200);
    bench.rig.take_datagrams();
    let (_, response) = bench.ask(&mut viewer, "PLAY rtsp://h/a", "", "");
    assert!(response.contains("$\u{4}"), "{response}");
    assert!(bench.rig.take_datagrams().is_empty());
}
