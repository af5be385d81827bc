//! A WebRTC viewer on the rig, and a server of a few lines, on virtual time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use weir_clients::{
    Ending, PlannedStart, PlayOptions, Return, RtcOptions, ShardRecorder, Timeouts, Turn, Workload, rtc,
};
use weir_metrics::{Failure, Moment, Recorder};
use weir_rtc::rtcp::{self, SenderFigures};
use weir_rtc::rtp::Header;
use weir_rtc::sdp::{Agreement, Description, Local, MediaKind, OfferOptions, Setup, agree};
use weir_rtc::signalling::http::trickle;
use weir_rtc::srtp::{Inbound, MasterKey, Outbound};
use weir_rtc::transport::{
    Certificate, Clock, Event as Reached, NewCredentials, Output, Remote, Transport, TransportSettings,
};
use weir_rtc::{NtpTime, VideoCodec};
use weir_shard::{Event, Rig, Session, clock};

const SERVER: &str = "127.0.0.1:5000";
/// Parameter sets in a session description: keyframes of this server have none in front of them.
const DESCRIBED: &str = ";sprop-parameter-sets=Z0IAHg==,aM4=";
/// How long a viewer waits in each phase.
pub(crate) const PHASE_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn server_address() -> SocketAddr {
    SERVER.parse().unwrap()
}

/// Where the signalling is.
pub(crate) const WHEP: &str = "whep+http://127.0.0.1:9/live/a";

fn workload(url: &str, rtc: &RtcOptions, returns: Return) -> Workload {
    let options = PlayOptions { timeouts: Timeouts::all(PHASE_TIMEOUT), returns, ..PlayOptions::default() };
    let play = if url.starts_with("ws:") { rtc::oven } else { rtc::whep };
    play(&[url.to_owned()], &options, rtc).unwrap()
}

/// A viewer, and what it is told.
pub(crate) struct Stage {
    pub(crate) rig: Rig<ShardRecorder>,
    pub(crate) viewer: Box<dyn Session<ShardRecorder>>,
    pub(crate) server: Option<Server>,
    /// The viewer's `a=ice-ufrag`.
    pub(crate) user_fragment: String,
    /// Where the server is reached.
    pub(crate) addresses: Vec<SocketAddr>,
}

/// A server with one viewer.
pub(crate) struct Server {
    pub(crate) transport: Transport,
    offer: Description,
    agreed: Vec<Agreement>,
    pub(crate) keys: Option<(Outbound, MasterKey)>,
    /// What opens the viewer's packets.
    pub(crate) heard: Option<Inbound>,
    pub(crate) number: u16,
    pub(crate) timestamp: u32,
    /// Packets of pictures and bytes of their payload so far.
    sent: (u32, u32),
    /// The number of the last packet of sound.
    sounds: u16,
}

impl Stage {
    /// Client `client`, whose link is there and whose offer was posted.
    pub(crate) fn new(client: u32) -> (Self, String) {
        let (mut stage, words) = Self::of(client, WHEP, &RtcOptions::default());
        let (head, offer) = words.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /live/a HTTP/1.1\r\n"), "{head}");
        stage.rig.sent.clear();
        (stage, offer.to_owned())
    }

    /// Client `client` of a server, whose link is there; and what it said.
    pub(crate) fn of(client: u32, url: &str, options: &RtcOptions) -> (Self, String) {
        Self::returning(client, url, options, Return::default())
    }

    /// The same of a client that comes back.
    pub(crate) fn returning(client: u32, url: &str, options: &RtcOptions, returns: Return) -> (Self, String) {
        Self::started(client, &workload(url, options, returns), None)
    }

    /// Client `client` of a workload, on the thread of those that this recorder has been of.
    fn started(client: u32, workload: &Workload, recorder: Option<ShardRecorder>) -> (Self, String) {
        let recorder = recorder.unwrap_or_else(|| ShardRecorder::new([workload.schema]).keeping_endings());
        let mut rig = Rig::new(recorder);
        let planned = PlannedStart { client, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let viewer = workload.start(planned, rig.now, &mut rig.world);
        let addresses = vec![server_address()];
        let mut stage = Self { rig, viewer, server: None, user_fragment: String::new(), addresses };
        stage.dispatch(Event::Opening);
        stage.dispatch(Event::Connected);
        let said = stage.said();
        let fragment = said.lines().find_map(|line| line.strip_prefix("a=ice-ufrag:"));
        stage.user_fragment = fragment.unwrap_or_default().to_owned();
        (stage, said)
    }

    /// What it has said on its link since it was last asked.
    pub(crate) fn said(&mut self) -> String {
        String::from_utf8_lossy(&self.rig.take_sent()).into_owned()
    }

    pub(crate) fn dispatch(&mut self, event: Event<'_>) {
        self.rig.dispatch(&mut *self.viewer, event);
    }

    pub(crate) fn answer(&mut self, status: &str, fields: &str, body: &str) {
        let text = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len());
        self.dispatch(Event::Bytes(text.as_bytes()));
    }

    /// The server answers as servers do, and the two agree on keys.
    pub(crate) fn playing(client: u32) -> Self {
        Self::playing_with(client, Setup::Passive, "Location: /session/1\r\n")
    }

    /// The same with a server that describes no parameter sets.
    pub(crate) fn undescribed(client: u32) -> Self {
        let (mut stage, offer) = Self::new(client);
        let (server, answer) = Server::answering(&offer, stage.rig.now, Setup::Passive);
        stage.server = Some(server);
        stage.answer("201 Created", "Location: /session/1\r\n", &answer.replace(DESCRIBED, ""));
        stage.agree_on_keys();
        stage
    }

    /// The same of a viewer of one codec whose parameter sets are not described, on the thread of those that this recorder has been of.
    pub(crate) fn of_codec(client: u32, codec: VideoCodec, recorder: Option<ShardRecorder>) -> Self {
        let options = RtcOptions { codec: Some(codec), ..RtcOptions::default() };
        let (mut stage, said) = Self::started(client, &workload(WHEP, &options, Return::default()), recorder);
        let offer = said.split_once("\r\n\r\n").unwrap().1;
        let answers = OfferOptions { setup: Setup::Passive, ..OfferOptions::PUBLISHER };
        let answers = answers.of_codec(Some(codec));
        let (server, answer) = Server::answering_with(offer, stage.rig.now, &answers);
        stage.server = Some(server);
        stage.answer("201 Created", "Location: /session/1\r\n", &answer.replace(DESCRIBED, ""));
        stage.agree_on_keys();
        stage
    }

    /// The same with a server that begins with DTLS or not, and says this in its answer.
    pub(crate) fn playing_with(client: u32, setup: Setup, fields: &str) -> Self {
        let (mut stage, offer) = Self::new(client);
        let (server, answer) = Server::answering(&offer, stage.rig.now, setup);
        stage.server = Some(server);
        stage.answer("201 Created", fields, &answer);
        stage.agree_on_keys();
        stage
    }

    /// ICE and DTLS.
    pub(crate) fn agree_on_keys(&mut self) {
        for _ in 0..200 {
            self.exchange();
            if self.server.as_ref().is_some_and(|server| server.keys.is_some()) {
                break;
            }
            self.handle_timeout(Duration::from_millis(5));
        }
        self.exchange();
        assert!(self.server.as_ref().is_some_and(|server| server.keys.is_some()), "no keys");
    }

    pub(crate) fn handle_timeout(&mut self, span: Duration) {
        self.rig.advance(&mut *self.viewer, span);
    }

    /// Carries datagrams to and fro.
    pub(crate) fn exchange(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        loop {
            let sent = self.rig.take_datagrams();
            let viewer = self.rig.datagram_address;
            let mut said = false;
            for (to, bytes) in &sent {
                if !self.addresses.contains(to) {
                    continue;
                }
                server.transport.receive(self.rig.now, viewer, bytes);
                said |= self.hand_over(&mut server, *to);
            }
            server.transport.handle_timeout(self.rig.now);
            said |= self.hand_over(&mut server, server_address());
            if sent.is_empty() && !said {
                break;
            }
        }
        self.server = Some(server);
    }

    /// Gives the viewer what the server says, from this address of the server's. Whether it said anything.
    fn hand_over(&mut self, server: &mut Server, from: SocketAddr) -> bool {
        let mut said = false;
        while let Some(output) = server.transport.poll() {
            match output {
                Output::Send { datagram, .. } => {
                    self.rig.tell_datagram(&mut *self.viewer, from, &datagram);
                    said = true;
                }
                Output::Event(Reached::Keys { inbound, outbound, .. }) => {
                    server.heard = Some(Inbound::new(&inbound).unwrap());
                    server.keys = Some((Outbound::new(&outbound).unwrap(), outbound));
                }
                Output::Event(_) => {}
            }
        }
        said
    }

    /// A whole keyframe of this many packets comes from `source`.
    pub(crate) fn keyframe(&mut self, packets: usize, source: SocketAddr) -> Vec<Vec<u8>> {
        let server = self.server.as_mut().unwrap();
        let datagrams = server.keyframe(packets);
        for datagram in &datagrams {
            self.rig.tell_datagram(&mut *self.viewer, source, datagram);
        }
        datagrams
    }

    /// So many frames of two packets each come at once.
    pub(crate) fn burst(&mut self, frames: usize) {
        let server = self.server.as_mut().unwrap();
        let datagrams: Vec<_> = (0..frames).flat_map(|_| server.keyframe(2)).collect();
        let (bytes, length) = (datagrams.concat(), datagrams[0].len());
        self.rig.tell_datagrams(&mut *self.viewer, server_address(), &bytes, length);
    }

    pub(crate) fn figures(&mut self) -> Recorder {
        self.rig.world.take_figures().remove(0)
    }

    pub(crate) fn failure(&mut self) -> (Failure, String) {
        let ended = self.rig.world.take_ended();
        let [(_, Ending::Failed(failure))] = ended[..] else { panic!("{ended:?}") };
        let remarks = self.rig.world.take_failures();
        (failure, remarks[0].words.clone())
    }
}

impl Server {
    pub(crate) fn answer(offer: &str, now: Moment) -> (Self, String) {
        Self::answering(offer, now, Setup::Passive)
    }

    pub(crate) fn answering(offer: &str, now: Moment, setup: Setup) -> (Self, String) {
        Self::answering_with(offer, now, &OfferOptions { setup, ..OfferOptions::PUBLISHER })
    }

    fn answering_with(offer: &str, now: Moment, options: &OfferOptions<'_>) -> (Self, String) {
        let offer: Description = offer.parse().expect("an offer of weir's");
        let (mut server, local) = Self::new();
        let mut answer = local.answer(&offer, options);
        describe(&mut answer);
        server.agreed = agree(&offer, &answer, true);
        server.connect(&offer, now);
        (server, answer.to_string())
    }

    /// A server that offers, and what it offers.
    pub(crate) fn offering() -> (Self, String) {
        let (mut server, local) = Self::new();
        let mut offer = local.offer(&OfferOptions::PUBLISHER);
        describe(&mut offer);
        let text = offer.to_string();
        server.offer = offer;
        (server, text)
    }

    /// Its offer was answered.
    pub(crate) fn accept(&mut self, answer: &str, now: Moment) {
        let answer: Description = answer.parse().expect("an answer of weir's");
        self.agreed = agree(&self.offer, &answer, false);
        self.connect(&answer, now);
    }

    /// Knows its peer by what it has described.
    fn connect(&mut self, theirs: &Description, now: Moment) {
        let theirs = &theirs.media[0];
        let remote = Remote {
            user_fragment: theirs.user_fragment.clone().unwrap(),
            password: theirs.password.clone().unwrap(),
            fingerprint: theirs.fingerprint.clone().unwrap(),
        };
        self.transport.connect(now, remote, self.agreed[0].role);
    }

    fn new() -> (Self, Local) {
        let certificate = Certificate::generate().unwrap();
        let transport = Transport::new(TransportSettings {
            local: server_address(),
            certificate: certificate.clone(),
            lite: true,
            controlling: false,
            clock: Clock::new(clock::now(), Instant::now()),
        })
        .unwrap();
        let local = Local {
            user_fragment: transport.user_fragment().to_owned(),
            password: transport.password().to_owned(),
            fingerprint: certificate.fingerprint(),
            candidates: transport.candidates().collect(),
            lite: true,
        };
        let server = Self {
            transport,
            offer: Description::default(),
            agreed: Vec::new(),
            keys: None,
            heard: None,
            number: 65_533,
            timestamp: 90_000,
            sent: (0, 0),
            sounds: 0,
        };
        (server, local)
    }

    /// Agrees to a restart of ICE with these credentials of the viewer; what it says of its own.
    pub(crate) fn restart(&mut self, now: Moment, user_fragment: &str, password: &str) -> String {
        let ours = NewCredentials::new();
        let body = trickle(ours.user_fragment(), ours.password(), "0", &[]);
        self.transport.restart(now, ours, user_fragment, password, &[]);
        body
    }

    /// The number of a header extension that was agreed on for the pictures.
    pub(crate) fn extension(&self, name: &str) -> u8 {
        let video = self.agreed.iter().find(|it| it.kind == MediaKind::Video).unwrap();
        video.extensions.iter().find(|it| it.name == name).unwrap().identifier
    }

    pub(crate) fn video_payload_type(&self) -> u8 {
        let video = self.agreed.iter().find(|it| it.kind == MediaKind::Video).unwrap();
        video.format.payload_type
    }

    pub(crate) fn keyframe(&mut self, packets: usize) -> Vec<Vec<u8>> {
        let payload_type = self.video_payload_type();
        let (keys, _) = self.keys.as_mut().unwrap();
        let timestamp = self.timestamp;
        let packet = |at: usize| {
            let sequence_number = self.number.wrapping_add(at as u16);
            let marker = at + 1 == packets;
            let header = Header { marker, payload_type, sequence_number, timestamp, ssrc: 7 };
            let mut packet = Vec::new();
            header.append(&[], &mut packet).unwrap();
            // Fragments of one IDR slice.
            let bits = if at == 0 { 0x80 } else { 0 } | if marker { 0x40 } else { 0 };
            packet.extend([0x7C, bits | 5, 0x88]);
            packet.resize(200, 1);
            keys.protect_rtp(&mut packet, 0).unwrap();
            packet
        };
        let datagrams: Vec<Vec<u8>> = (0..packets).map(packet).collect();
        // Of 200 bytes, 12 are the header.
        self.sent = (self.sent.0 + packets as u32, self.sent.1 + packets as u32 * 188);
        self.number = self.number.wrapping_add(packets as u16);
        // A tenth of a second a frame.
        self.timestamp += 9_000;
        datagrams
    }
}

/// Adds the parameter sets of the pictures.
fn describe(description: &mut Description) {
    let formats = description.media.iter_mut().flat_map(|media| &mut media.formats);
    formats.filter(|format| format.is("H264")).for_each(|format| format.parameters.push_str(DESCRIBED));
}

impl Server {
    /// The packets of a picture with these payloads.
    pub(crate) fn picture(&mut self, payloads: &[&[u8]]) -> Vec<Vec<u8>> {
        let payload_type = self.video_payload_type();
        let timestamp = self.timestamp;
        self.timestamp += 9_000;
        let last = payloads.len() - 1;
        let mut packet = |(at, payload): (usize, &&[u8])| {
            let (marker, sequence_number) = (at == last, self.number);
            self.number = self.number.wrapping_add(1);
            self.sent = (self.sent.0 + 1, self.sent.1 + payload.len() as u32);
            let mut packet = Vec::new();
            let header = Header { marker, payload_type, sequence_number, timestamp, ssrc: 7 };
            header.append(&[], &mut packet).unwrap();
            packet.extend_from_slice(payload);
            self.keys.as_mut().unwrap().0.protect_rtp(&mut packet, 0).unwrap();
            packet
        };
        payloads.iter().enumerate().map(&mut packet).collect()
    }

    /// A sender report of the pictures.
    pub(crate) fn report(&mut self) -> Vec<u8> {
        let figures = SenderFigures {
            ntp_time: NtpTime::default(),
            rtp_timestamp: self.timestamp,
            packets: self.sent.0,
            payload_bytes: self.sent.1,
        };
        let mut out = Vec::new();
        rtcp::append_sender_report(7, &figures, &[], &mut out);
        self.keys.as_mut().unwrap().0.protect_rtcp(&mut out, 0).unwrap();
        out
    }

    /// Another publication comes through, whose packets have other numbers and times.
    pub(crate) fn begin_again(&mut self) {
        self.number = self.number.wrapping_add(20_000);
        self.timestamp = self.timestamp.wrapping_add(1_000_000_000);
    }

    /// 20 ms of sound.
    pub(crate) fn sound(&mut self) -> Vec<u8> {
        let audio = self.agreed.iter().find(|it| it.kind == MediaKind::Audio).unwrap();
        self.sounds += 1;
        let header = Header {
            marker: false,
            payload_type: audio.format.payload_type,
            sequence_number: self.sounds,
            timestamp: u32::from(self.sounds) * 960,
            ssrc: 8,
        };
        let mut packet = Vec::new();
        header.append(&[], &mut packet).unwrap();
        packet.resize(92, 1);
        self.keys.as_mut().unwrap().0.protect_rtp(&mut packet, 0).unwrap();
        packet
    }
}

pub(crate) fn counter(recorder: &Recorder, name: &str) -> u64 {
    let position = rtc::SCHEMA.position(name).unwrap();
    recorder.counter(weir_metrics::Counter(position as u16))
}
