//! Chromium publishes its fake camera and microphone: an independent peer in ICE, DTLS, SRTP, RTP and RTCP, in both
//! DTLS roles, with a session description of its own making.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use weir_metrics::Moment;
use weir_rtc::account::{Hints, Kind, Track};
use weir_rtc::rtp::Packet;
use weir_rtc::sdp::{Agreement, Description, Local, MediaKind, OfferOptions, Setup, agree};
use weir_rtc::srtp::{Inbound, Outbound};
use weir_rtc::transport::{
    Certificate, Clock, DtlsRole, Event, Output, Remote, Transport, TransportSettings,
};
use weir_rtc::{Datagram, account, nack, rtcp, rtx};

/// On a machine that has other things to do.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

const OUR_SSRC: u32 = 77;

/// Offers its camera to `/offer`, once for each role that the server may take, and keeps both sessions.
const PAGE: &str = "<html><script>
(async () => {
  const media = await navigator.mediaDevices.getUserMedia({video: {width: 640, height: 360, frameRate: 30}, audio: true});
  window.sessions = [];
  for (const role of ['passive', 'active']) {
    const peer = new RTCPeerConnection({bundlePolicy: 'max-bundle'});
    sessions.push(peer);
    for (const track of media.getTracks()) {
      const transceiver = peer.addTransceiver(track, {direction: 'sendonly', streams: [media]});
      if (track.kind == 'video') {
        const codecs = RTCRtpSender.getCapabilities('video').codecs;
        transceiver.setCodecPreferences(codecs.filter(codec => /H264|rtx/.test(codec.mimeType)));
      }
    }
    await peer.setLocalDescription();
    while (peer.iceGatheringState != 'complete') await new Promise(done => setTimeout(done, 20));
    const response = await fetch('/offer?' + role, {method: 'POST', body: peer.localDescription.sdp});
    await peer.setRemoteDescription({type: 'answer', sdp: await response.text()});
  }
})().catch(error => fetch('/error', {method: 'POST', body: String(error)}));
</script></html>";

/// What the page says: which role it wants us to take, its offer, and where the answer goes.
type Offer = (Setup, String, Sender<String>);

/// A process that ends with the test.
struct Browser {
    process: Child,
    _profile: tempdir::Directory,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The whole group: the browser is many processes.
        let group = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.process.wait();
    }
}

mod tempdir {
    //! A directory that ends with the test.

    pub(super) struct Directory(pub(super) std::path::PathBuf);

    impl Directory {
        pub(super) fn new() -> Self {
            let path = std::env::temp_dir().join(format!("weir-chromium-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn browse(address: SocketAddr) -> Browser {
    use std::os::unix::process::CommandExt;
    let profile = tempdir::Directory::new();
    let process = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"])
        .args(["--allow-loopback-in-peer-connection", "--no-first-run", "--disable-background-networking"])
        .arg(format!("--user-data-dir={}", profile.0.display()))
        .arg(format!("http://{address}/"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("chromium; on Debian: apt install chromium");
    Browser { process, _profile: profile }
}

/// Serves the page and hands on what it posts.
fn serve(listener: &TcpListener, offers: &Sender<Offer>) {
    for stream in listener.incoming() {
        let (Ok(stream), offers) = (stream, offers.clone()) else { return };
        std::thread::spawn(move || respond(&stream, &offers));
    }
}

fn respond(mut stream: &TcpStream, offers: &Sender<Offer>) {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request).unwrap();
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body = String::from_utf8(body).unwrap();
    let (kind, answer) = if request.starts_with("POST /offer") {
        let (reply, answer) = channel();
        let role = if request.contains("passive") { Setup::Passive } else { Setup::Active };
        offers.send((role, body, reply)).unwrap();
        ("application/sdp", answer.recv().unwrap())
    } else if request.starts_with("POST /error") {
        panic!("the page failed: {body}");
    } else {
        ("text/html", PAGE.to_owned())
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", answer.len());
    write!(stream, "{head}Connection: close\r\n\r\n{answer}").unwrap();
}

/// A receiver of one session.
struct Session {
    socket: UdpSocket,
    transport: Transport,
    begin: Instant,
    agreed: Vec<Agreement>,
    tracks: Vec<Track>,
    keys: Option<(Inbound, Outbound)>,
    reports: usize,
}

impl Session {
    fn answer((setup, offer, reply): Offer) -> Self {
        let offer: Description = offer.parse().expect("a description by Chromium");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let begin = Instant::now();
        let certificate = Certificate::generate().unwrap();
        let fingerprint = certificate.fingerprint();
        let mut transport = Transport::new(TransportSettings {
            local: socket.local_addr().unwrap(),
            certificate,
            lite: setup == Setup::Active,
            controlling: false,
            clock: Clock::new(Moment::from_nanos(0), begin),
        })
        .unwrap();
        let local = Local {
            user_fragment: transport.user_fragment().to_owned(),
            password: transport.password().to_owned(),
            fingerprint,
            candidates: transport.candidates().collect(),
            lite: setup == Setup::Active,
        };
        let answer = local.answer(&offer, &OfferOptions { setup, ..OfferOptions::VIEWER });
        let agreed = agree(&offer, &answer, true);
        let theirs = &offer.media[0];
        let remote = Remote {
            user_fragment: theirs.user_fragment.clone().unwrap(),
            password: theirs.password.clone().unwrap(),
            fingerprint: theirs.fingerprint.clone().unwrap(),
        };
        // Nothing leaves this machine.
        for candidate in theirs.candidates.iter().filter(|candidate| candidate.contains(" 127.0.0.1 ")) {
            if candidate.to_ascii_lowercase().contains(" udp ") {
                transport.add_candidate(candidate).unwrap();
            }
        }
        let role = if setup == Setup::Active { DtlsRole::Client } else { DtlsRole::Server };
        assert!(agreed.iter().all(|agreed| agreed.role == role), "{agreed:?}");
        transport.connect(Moment::from_nanos(0), remote, role);
        reply.send(answer.to_string()).unwrap();
        let tracks = agreed
            .iter()
            .map(|agreed| {
                let kind = if agreed.kind == MediaKind::Video { Kind::Video } else { Kind::Audio };
                Track::new(account::TrackSettings {
                    kind,
                    clock_rate: agreed.format.clock_rate,
                    nack: nack::NackSettings::default(),
                })
            })
            .collect();
        Self { socket, transport, begin, agreed, tracks, keys: None, reports: 0 }
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(0) + self.begin.elapsed()
    }

    fn video(&self) -> &Track {
        let at = self.agreed.iter().position(|agreed| agreed.kind == MediaKind::Video).unwrap();
        &self.tracks[at]
    }

    fn audio(&self) -> &Track {
        let at = self.agreed.iter().position(|agreed| agreed.kind == MediaKind::Audio).unwrap();
        &self.tracks[at]
    }

    /// Receives until `done`, with a report, requests for what is lost and, if wanted, a keyframe every 200 ms.
    fn receive(&mut self, wants_keyframe: bool, done: impl Fn(&Self) -> bool) {
        let mut report_at = self.begin.elapsed();
        let mut buffer = [0; 2048];
        while !done(self) {
            assert!(self.begin.elapsed() < TEST_TIMEOUT, "{:?} {:?}", self.transport, self.tracks);
            let now = self.now();
            self.transport.handle_timeout(now);
            while let Some(output) = self.transport.poll() {
                match output {
                    Output::Send { destination, datagram } => {
                        self.socket.send_to(&datagram, destination).unwrap();
                    }
                    Output::Event(Event::Keys { inbound, outbound, .. }) => {
                        self.keys =
                            Some((Inbound::new(&inbound).unwrap(), Outbound::new(&outbound).unwrap()));
                    }
                    Output::Event(Event::Path(path)) => self.socket.connect(path).unwrap(),
                    Output::Event(Event::PathLost) => {}
                    Output::Event(other) => panic!("{other:?}"),
                }
            }
            while let Ok((length, source)) = self.socket.recv_from(&mut buffer) {
                let now = self.now();
                match Datagram::of(&buffer[..length]) {
                    Datagram::Stun | Datagram::Dtls => {
                        self.transport.receive(now, source, &buffer[..length]);
                    }
                    Datagram::Rtp => self.media(now, &mut buffer[..length]),
                    Datagram::Rtcp => self.control(now, &mut buffer[..length]),
                    other => panic!("{other:?}"),
                }
                if self.begin.elapsed() >= report_at {
                    break;
                }
            }
            if self.keys.is_some() && self.begin.elapsed() >= report_at {
                report_at = self.begin.elapsed() + Duration::from_millis(200);
                self.report(wants_keyframe);
            }
        }
    }

    fn media(&mut self, now: Moment, datagram: &mut [u8]) {
        // Media may overtake the last flight of the handshake.
        let Some((inbound, _)) = &mut self.keys else { return };
        let opened = match inbound.open_rtp(datagram) {
            Ok(opened) => &*opened,
            Err(error) => panic!("{error}"),
        };
        let packet = Packet::parse(opened).unwrap();
        let payload = packet.payload().unwrap();
        let payload_type = packet.payload_type();
        for (agreed, track) in self.agreed.iter().zip(&mut self.tracks) {
            let hints = |payload| match agreed.kind {
                MediaKind::Video => weir_rtc::VideoCodec::H264.hints(payload),
                _ => Hints::default(),
            };
            if agreed.format.payload_type == payload_type {
                track.receive(now, &packet, hints(payload));
            } else if agreed.repair == Some(payload_type)
                && let Some((number, original)) = rtx::parse(payload)
            {
                track.repair(now, number, packet.timestamp(), packet.marker(), hints(original));
            }
        }
    }

    fn control(&mut self, now: Moment, datagram: &mut [u8]) {
        let Some((inbound, _)) = &mut self.keys else { return };
        let opened = inbound.open_rtcp(datagram).expect("authentic RTCP");
        for packet in rtcp::Compound::new(opened) {
            if let rtcp::Packet::SenderReport(report) = packet.expect("RTCP by Chromium") {
                self.reports += 1;
                for track in &mut self.tracks {
                    track.sender_report(now, report.sender, report.figures);
                }
            }
        }
    }

    fn report(&mut self, wants_keyframe: bool) {
        let now = self.now();
        let blocks: Vec<_> = self.tracks.iter_mut().filter_map(|track| track.report_block(now)).collect();
        let mut out = Vec::new();
        rtcp::append_receiver_report(OUR_SSRC, &blocks, &mut out);
        rtcp::append_canonical_name(OUR_SSRC, "weir", &mut out);
        let mut numbers = Vec::new();
        for (agreed, track) in self.agreed.iter().zip(&mut self.tracks) {
            let Some(media) = track.ssrc() else { continue };
            track.nack().poll(now, &mut numbers);
            if agreed.kind == MediaKind::Video {
                rtcp::append_nack(OUR_SSRC, media, &numbers, &mut out);
                if wants_keyframe {
                    rtcp::append_picture_loss(OUR_SSRC, media, &mut out);
                }
            }
        }
        let Some((_, outbound)) = &mut self.keys else { return };
        outbound.protect_rtcp(&mut out, 0).unwrap();
        let _ = self.socket.send(&out);
    }
}

#[test]
fn chromium_publishes_in_both_dtls_roles_to_a_full_and_to_a_lite_peer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, offers): (_, Receiver<Offer>) = channel();
    std::thread::spawn(move || serve(&listener, &sender));
    let _browser = browse(address);
    for role in [Setup::Passive, Setup::Active] {
        let offer = offers.recv_timeout(TEST_TIMEOUT).expect("an offer by Chromium");
        assert_eq!(offer.0, role);
        let mut session = Session::answer(offer);
        session.receive(true, |session| session.video().keyframes().count() >= 1);
        session.receive(false, |session| {
            session.video().frames().complete >= 60
                && session.audio().counts().packets >= 100
                && session.reports >= 2
        });
        // A keyframe that is asked for comes.
        let before = session.video().keyframes().count();
        session.receive(true, |session| session.video().keyframes().count() > before);
        let now = session.now();
        let mut blocks = session.tracks.iter_mut().filter_map(|track| track.report_block(now));
        assert!(
            blocks.any(|block| block.last_sender_report != 0),
            "reports were heard, of one track at least"
        );
        for track in &session.tracks {
            let (loss, counts) = (track.loss(), track.counts());
            assert!(loss.lost() * 20 <= loss.expected, "{loss:?} {counts:?}");
            assert_eq!((counts.strays, counts.restarts), (0, 0));
        }
        session.transport.close();
    }
}
