//! RTSP with RTP as datagrams, on virtual time: of which track each of them is, and where those of a publisher go.

use std::net::SocketAddr;
use std::time::Duration;
use weir_clients::{
    Ending, PlannedStart, PlayOptions, PublishOptions, RtspTransport, ShardRecorder, Timeouts, Turn,
    Workload, rtsp,
};
use weir_metrics::{Counter, Failure};
use weir_rtc::rtcp::{self, ReportBlock};
use weir_rtc::rtp::Header;
use weir_shard::{Event, Rig, Session};

const URL: &str = "rtsp://127.0.0.1:9/live/a";
const H264: &str =
    "H264/90000\r\na=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg==";
/// The sources of pictures and of sound.
const PICTURES: u32 = 0x11;
const SOUND: u32 = 0x22;

/// A client of a server of a few lines.
struct Stage {
    rig: Rig<ShardRecorder>,
    client: Box<dyn Session<ShardRecorder>>,
    workload: Workload,
    requests: usize,
}

impl Stage {
    /// A client whose link is there.
    fn of(workload: Workload) -> Self {
        let mut rig = Rig::new(ShardRecorder::new([workload.schema]).keeping_endings());
        let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let client = workload.start(planned, rig.now, &mut rig.world);
        let mut stage = Self { rig, client, workload, requests: 0 };
        stage.dispatch(Event::Opening);
        stage.dispatch(Event::Connected);
        stage
    }

    /// A viewer that plays: pictures of payload type 96, and sound of this one. The server answers its SETUPs with these.
    fn playing(sound: u8, transports: [&str; 2]) -> Self {
        let options =
            PlayOptions { timeouts: Timeouts::all(Duration::from_secs(10)), ..PlayOptions::default() };
        let mut stage = Self::of(rtsp::play(&[URL.to_owned()], &options, RtspTransport::Udp).unwrap());
        stage.answer("OPTIONS", "Public: GET_PARAMETER\r\n", "");
        let description = format!(
            "v=0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 {H264}\r\na=control:1\r\n\
             m=audio 0 RTP/AVP {sound}\r\na=rtpmap:{sound} PCMA/8000\r\na=control:2\r\n"
        );
        stage.answer("DESCRIBE", "Content-Type: application/sdp\r\n", &description);
        for transport in transports {
            let transport = if transport.is_empty() {
                String::new()
            } else {
                format!("Transport: RTP/AVP;unicast;client_port=40000-40000;{transport}\r\n")
            };
            stage.answer("SETUP", &format!("Session: 1;timeout=60\r\n{transport}"), "");
        }
        stage.answer("PLAY", "Session: 1\r\n", "");
        stage
    }

    fn dispatch(&mut self, event: Event<'_>) {
        self.rig.dispatch(&mut *self.client, event);
    }

    /// Answers the one request that has come, of this method. What was asked.
    fn answer(&mut self, method: &str, fields: &str, body: &str) -> String {
        let asked = String::from_utf8(self.rig.take_sent()).unwrap();
        self.requests += 1;
        let (number, length) = (self.requests, body.len());
        assert!(asked.starts_with(method) && asked.contains(&format!("CSeq: {number}\r\n")), "{asked}");
        let response =
            format!("RTSP/1.0 200 OK\r\nCSeq: {number}\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        self.dispatch(Event::Bytes(response.as_bytes()));
        asked
    }

    /// The server sends this from a port.
    fn datagram(&mut self, port: u16, bytes: &[u8]) {
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        self.rig.tell_datagram(&mut *self.client, from, bytes);
    }

    /// A second of the stream: 25 pictures, and sound in 50 packets of this payload type, from these ports.
    fn second(&mut self, sound: u8, ports: [u16; 2], second: u16) {
        for number in second * 50..(second + 1) * 50 {
            if number.is_multiple_of(2) {
                let picture = number / 2;
                let unit = if picture.is_multiple_of(25) { 0x65 } else { 0x41 };
                let payload = [&[unit, 0x88][..], &[0x55; 60]].concat();
                let timestamp = u32::from(picture) * 3_600;
                self.datagram(ports[0], &packet(PICTURES, 96, picture, timestamp, true, &payload));
            }
            let sound = packet(SOUND, sound, number, u32::from(number) * 160, false, &[0x55; 160]);
            self.datagram(ports[1], &sound);
            self.rig.advance(&mut *self.client, Duration::from_millis(20));
        }
    }

    fn counts<const N: usize>(&mut self, names: [&str; N]) -> [u64; N] {
        self.dispatch(Event::Stop);
        if !self.rig.closed {
            self.dispatch(Event::Bytes(&[]));
        }
        let figures = self.rig.world.take_figures().remove(0);
        let schema = self.workload.schema;
        names.map(|name| figures.counter(Counter(schema.position(name).unwrap() as u16)))
    }

    /// How the client has failed, if it has.
    fn failure(&mut self) -> Option<Failure> {
        match self.rig.world.take_ended().pop() {
            Some((_, Ending::Failed(failure))) => Some(failure),
            _ => None,
        }
    }
}

fn packet(ssrc: u32, payload_type: u8, number: u16, timestamp: u32, marker: bool, payload: &[u8]) -> Vec<u8> {
    let header = Header { marker, payload_type, sequence_number: number, timestamp, ssrc };
    let mut bytes = Vec::new();
    header.append(&[], &mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

fn goodbye(source: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    rtcp::append_receiver_report(source, &[], &mut bytes);
    rtcp::append_bye(source, &mut bytes);
    bytes
}

/// MediaMTX has one pair of ports for all tracks of all sessions; others have one a track; of those behind a gateway neither is
/// seen. Two tracks may be described with one payload type.
#[test]
fn each_datagram_is_of_its_track_whatever_ports_the_server_has() {
    let own = ["server_port=8000-8001", "server_port=8002-8003"];
    let one = ["server_port=8000-8001", "server_port=8000-8001"];
    let announced = ["server_port=8000-8001;ssrc=00000011", "server_port=8000-8001;ssrc=00000022"];
    for (what, sound, transports, ports) in [
        ("a pair a track", 8, own, [8000, 8002]),
        ("one pair", 8, one, [8000, 8000]),
        ("one pair, with sources", 8, announced, [8000, 8000]),
        ("ports that are not said", 8, ["", ""], [8000, 8000]),
        ("a gateway", 8, own, [51_000, 52_000]),
        ("one payload type, a pair a track", 96, own, [8000, 8002]),
        ("one payload type, one pair", 96, one, [8000, 8000]),
        ("one payload type, one pair, with sources", 96, announced, [8000, 8000]),
    ] {
        let mut stage = Stage::playing(sound, transports);
        (0..4).for_each(|second| stage.second(sound, ports, second));
        let counts = stage.counts(["frames", "rtsp.audio_frames", "rtsp.packets"]);
        assert_eq!(counts, [100, 200, 300], "{what}");
    }
}

/// What was said of the first of all tracks made the rest of a healthy server's packets strays, and its sound missing.
#[test]
fn no_packet_of_a_server_with_one_pair_of_ports_is_a_stray_or_lost() {
    let ports = ["server_port=8000-8001"; 2];
    let mut stage = Stage::playing(8, ports);
    (0..4).for_each(|second| stage.second(8, [8000; 2], second));
    let zeros = ["rtsp.strays", "rtsp.malformed", "rtsp.restarts", "lost", "rtsp.broken_frames", "reordered"];
    assert_eq!(stage.counts(zeros), [0; 6]);
}

/// One picture of two packets.
fn picture(number: u16) -> [Vec<u8>; 2] {
    let timestamp = u32::from(number) * 3_600;
    let kind = if number == 0 { 5 } else { 1 };
    // FU-A (RFC 6184 section 5.8): the start of a NAL unit, and its end.
    [(0x80, 2 * number), (0x40, 2 * number + 1)].map(|(flag, at)| {
        let payload = [&[0x7C, flag | kind][..], &[0x88; 90]].concat();
        packet(PICTURES, 96, at, timestamp, flag == 0x40, &payload)
    })
}

/// Players put into order what networks deliver out of it (GStreamer's `rtpjitterbuffer`, ffmpeg's `reorder_queue_size`).
#[test]
fn packets_that_overtake_others_break_no_picture() {
    let mut stage = Stage::playing(8, ["server_port=8000-8001"; 2]);
    picture(0).iter().for_each(|packet| stage.datagram(8000, packet));
    for pair in 0..50 {
        let [one, other] = [2 * pair + 1, 2 * pair + 2].map(picture);
        let packets = match pair % 4 {
            0 => [&one[1], &one[0], &other[0], &other[1]],
            1 => [&other[0], &other[1], &one[0], &one[1]],
            2 => [&one[0], &other[1], &other[0], &one[1]],
            _ => [&one[0], &one[1], &other[0], &other[1]],
        };
        for packet in packets {
            stage.datagram(8000, packet);
            stage.rig.advance(&mut *stage.client, Duration::from_millis(20));
        }
    }
    let counts = stage.counts(["frames", "rtsp.broken_frames", "lost", "rtsp.packets"]);
    assert_eq!(counts, [101, 0, 0, 202]);
}

#[test]
fn what_is_behind_a_lost_packet_waits_for_a_tenth_of_a_second_and_not_for_the_next_packet() {
    let mut stage = Stage::playing(8, ["server_port=8000-8001"; 2]);
    picture(0).iter().for_each(|packet| stage.datagram(8000, packet));
    stage.datagram(8000, &picture(1)[0]);
    picture(2).iter().for_each(|packet| stage.datagram(8000, packet));
    let frames = |stage: &mut Stage| {
        let schema = stage.workload.schema;
        let planned =
            PlannedStart { client: 0, workload: 0, cell: 0, at: stage.rig.now, turn: Turn::default() };
        stage.rig.world.of(planned).counter(Counter(schema.position("frames").unwrap() as u16))
    };
    stage.rig.advance(&mut *stage.client, Duration::from_millis(99));
    assert_eq!(frames(&mut stage), 1);
    stage.rig.advance(&mut *stage.client, Duration::from_millis(2));
    assert_eq!(frames(&mut stage), 3);
    // What is missing may be of either picture.
    assert_eq!(stage.counts(["frames", "rtsp.broken_frames", "lost"]), [3, 2, 1]);
}

#[test]
fn a_goodbye_is_that_of_the_track_with_its_source() {
    let mut stage = Stage::playing(8, ["server_port=8000-8001"; 2]);
    stage.second(8, [8000; 2], 0);
    stage.datagram(8001, &goodbye(SOUND));
    stage.rig.advance(&mut *stage.client, Duration::from_secs(5));
    assert_eq!(stage.failure(), None, "pictures may go on");
    stage.datagram(8001, &goodbye(PICTURES));
    stage.rig.advance(&mut *stage.client, Duration::from_secs(5));
    assert_eq!(stage.failure(), Some(Failure::StreamEnded));
}

#[test]
fn a_datagram_of_no_track_is_a_stray() {
    let mut stage = Stage::playing(8, ["server_port=8000-8001"; 2]);
    stage.second(8, [8000; 2], 0);
    stage.datagram(8000, &packet(PICTURES, 97, 40, 0, true, &[0x65; 9]));
    stage.datagram(9000, &packet(7, 98, 40, 0, true, &[0x65; 9]));
    stage.datagram(9001, &goodbye(0x33));
    assert_eq!(stage.counts(["rtsp.strays"]), [3]);
}

#[test]
fn reports_go_to_the_port_of_each_track_and_nowhere_if_none_is_known() {
    for (transports, to) in [(["server_port=8000-8001"; 2], Some(8001)), ([""; 2], None)] {
        let mut stage = Stage::playing(8, transports);
        (0..5).for_each(|second| stage.second(8, [8000; 2], second));
        let sent: Vec<_> = stage.rig.take_datagrams().into_iter().map(|(to, _)| to.port()).collect();
        match to {
            Some(port) => assert!(sent.len() >= 2 && sent.iter().all(|it| *it == port), "{sent:?}"),
            None => assert!(sent.is_empty(), "{sent:?}"),
        }
    }
}

#[test]
fn a_viewer_whose_connection_ends_plays_on_as_long_as_datagrams_come() {
    let hang_up = Event::HungUp { failure: Failure::ClosedByPeer, words: "" };
    let mut stage = Stage::playing(8, ["server_port=8000-8001"; 2]);
    stage.second(8, [8000; 2], 0);
    stage.dispatch(hang_up);
    stage.rig.take_sent();
    // For longer than the session's time, half of which has a request in it otherwise.
    (1..40).for_each(|second| stage.second(8, [8000; 2], second));
    assert_eq!((stage.failure(), stage.rig.take_sent()), (None, Vec::new()));
    stage.rig.advance(&mut *stage.client, Duration::from_millis(1_900));
    assert_eq!(stage.failure(), None);
    stage.rig.advance(&mut *stage.client, Duration::from_millis(200));
    assert_eq!(stage.failure(), Some(Failure::ClosedByPeer));
}

#[test]
fn a_connection_that_ends_after_the_goodbye_of_all_tracks_ends_the_stream() {
    let mut stage = Stage::playing(8, ["server_port=8000-8001"; 2]);
    stage.second(8, [8000; 2], 0);
    [PICTURES, SOUND].into_iter().for_each(|source| stage.datagram(8001, &goodbye(source)));
    stage.dispatch(Event::HungUp { failure: Failure::ClosedByPeer, words: "" });
    assert_eq!(stage.failure(), Some(Failure::StreamEnded));
}

#[test]
fn a_connection_that_ends_before_the_response_to_play_is_the_end() {
    let options = PlayOptions::default();
    let mut stage = Stage::of(rtsp::play(&[URL.to_owned()], &options, RtspTransport::Udp).unwrap());
    stage.answer("OPTIONS", "", "");
    stage.dispatch(Event::HungUp { failure: Failure::Reset, words: "" });
    assert_eq!(stage.failure(), Some(Failure::Reset));
}

/// A publisher of pictures and sound, and what the server was asked; it names these ports for each track.
fn publishing(server_ports: [&str; 2]) -> (Stage, [String; 2]) {
    let workload = rtsp::publish(&[URL.to_owned()], &PublishOptions::default(), RtspTransport::Udp).unwrap();
    let mut stage = Stage::of(workload);
    stage.answer("OPTIONS", "", "");
    stage.answer("ANNOUNCE", "", "");
    let asked = server_ports.map(|ports| {
        let fields =
            format!("Session: 1\r\nTransport: RTP/AVP;unicast;{ports}source=192.0.2.1;mode=record\r\n");
        stage.answer("SETUP", &fields, "")
    });
    stage.answer("RECORD", "Session: 1\r\n", "");
    (stage, asked)
}

/// A server that has one pair of ports for all publishers, as MediaMTX has, knows each track by the address that it comes from.
#[test]
fn a_publisher_has_a_pair_of_ports_for_each_track_and_sends_to_the_server_where_it_was_found() {
    let (mut stage, asked) = publishing(["server_port=8000-8001;"; 2]);
    for (asked, ports) in asked.iter().zip(["40000-40001", "40002-40003"]) {
        assert!(asked.contains(&format!("RTP/AVP;unicast;client_port={ports};mode=record")), "{asked}");
    }
    stage.rig.advance(&mut *stage.client, Duration::from_secs(6));
    let sent = stage.rig.take_datagrams();
    let to = |port| sent.iter().filter(move |(to, _)| *to == SocketAddr::from(([127, 0, 0, 1], port)));
    let of = |payload_type: u8| to(8000).filter(move |(_, bytes)| bytes[1] & 0x7F == payload_type).count();
    assert!(of(96) >= 150 && of(97) >= 250, "{} and {}", of(96), of(97));
    assert!(to(8001).count() >= 4 && to(8001).all(|(_, bytes)| bytes[1] == 200), "reports of both tracks");
    assert_eq!(to(8000).count() + to(8001).count(), sent.len());
    let counts = stage.counts(["rtsp.packets", "sent", "rtsp.reported_lost"]);
    assert_eq!(counts[0] as usize, of(96) + of(97));
    let bytes: usize = sent.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(counts[1] as usize > bytes, "and the dialogue: {counts:?}, {bytes}");
    assert_eq!(counts[2], 0);
}

#[test]
fn what_the_last_report_says_of_a_track_was_lost_by_it() {
    let (mut stage, _) = publishing(["server_port=8000-8001;", "server_port=8002-8003;"]);
    stage.rig.advance(&mut *stage.client, Duration::from_secs(1));
    let sent = stage.rig.take_datagrams();
    let source = |port| {
        let (_, bytes) = sent.iter().find(|(to, _)| to.port() == port).unwrap();
        u32::from_be_bytes(bytes[8..12].try_into().unwrap())
    };
    for (port, source, lost) in [
        (8001, source(8000), 3),
        (8001, source(8000), 5),
        (8003, source(8002), 2),
        (8003, 0x77, 1_000),
        (8003, source(8002), -4),
    ] {
        let block = ReportBlock {
            source,
            fraction_lost: 0,
            cumulative_lost: lost,
            highest_sequence_number: 0,
            jitter: 0,
            last_sender_report: 0,
            delay_since_last_sender_report: 0,
        };
        let mut report = Vec::new();
        rtcp::append_receiver_report(9, &[block], &mut report);
        stage.datagram(port, &report);
    }
    assert_eq!(stage.counts(["rtsp.reported_lost", "rtsp.receiver_reports"]), [5, 5]);
}

#[test]
fn a_publisher_that_is_told_no_ports_or_whose_connection_ends_has_failed() {
    let (mut stage, _) = publishing(["server_port=8000-8001;"; 2]);
    stage.rig.advance(&mut *stage.client, Duration::from_secs(1));
    stage.dispatch(Event::HungUp { failure: Failure::ClosedByPeer, words: "" });
    assert_eq!(stage.failure(), Some(Failure::ClosedByPeer));
    for transport in ["RTP/AVP;unicast", "RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/SAVP;server_port=8-9"] {
        let mut stage = Stage::of(
            rtsp::publish(&[URL.to_owned()], &PublishOptions::default(), RtspTransport::Udp).unwrap(),
        );
        stage.answer("OPTIONS", "", "");
        stage.answer("ANNOUNCE", "", "");
        stage.answer("SETUP", &format!("Session: 1\r\nTransport: {transport}\r\n"), "");
        assert_eq!(stage.failure(), Some(Failure::Rejected), "{transport}");
    }
}
