//! aiortc as a server, and as a client of the origin. It shares nothing with weir: its own ICE (full), DTLS by OpenSSL in
//! the active role, SRTP of libsrtp, H.264 of x264 and libavcodec.

use crate::support::webrtc::{count, is_on_air, origin, places};
use crate::support::{KilledOnDrop, Publishing, measure, play, program, shared, soon};
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Stdio};
use weir_testing::Coturn;

struct Server {
    process: KilledOnDrop,
    said: BufReader<ChildStdout>,
    address: String,
}

/// What the server says at its end.
struct ServerReport {
    peers: f64,
    sent: f64,
    reported_lost: f64,
    reporters: f64,
    came: f64,
    missing: f64,
    decoded: f64,
}

impl Server {
    fn start() -> Self {
        Self::with(&[])
    }

    /// One that is unusual in these ways: `rsa`, `passive`, `link=…`.
    fn with(ways: &[&str]) -> Self {
        let mut command = program("/usr/bin/python3", "python3-aiortc");
        command.args(["-c", include_str!("support/aiortc_server.py")]).args(ways);
        let mut process = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut said = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().expect("aiortc; on Debian: apt install python3-aiortc");
        Self { process, said, address: format!("127.0.0.1:{port}") }
    }

    fn end(mut self) -> ServerReport {
        drop(self.process.0.stdin.take());
        let mut line = String::new();
        self.said.read_to_string(&mut line).unwrap();
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [peers, sent, reported_lost, reporters, came, missing, decoded] = numbers[..] else {
            panic!("{line}")
        };
        ServerReport { peers, sent, reported_lost, reporters, came, missing, decoded }
    }
}

#[test]
fn viewers_of_a_server_of_others_agree_with_what_it_has_sent() {
    let _machine = shared();
    // It begins with DTLS, or waits for it.
    for (ways, codec, name) in [(&[][..], "", "VP8"), (&["passive"], "--codec h264", "H.264")] {
        viewers_agree(Server::with(ways), codec, name);
    }
}

/// The server sends the first codec of the offer that it has.
fn viewers_agree(server: Server, codec: &str, name: &str) {
    let url = format!("whep+http://{}/whep", server.address);
    let run = play(&url, format!("-c 4 -d 5s --warmup 0s --drain 1s {codec}").trim());
    let tracks = run.summary["workloads"][0]["tracks"].to_string();
    assert!(tracks.contains(name) && tracks.contains("[160,120]"), "{tracks}");
    assert_eq!(run.well(), 4, "{:?}", run.failures());
    let seen = server.end();
    assert_eq!((seen.peers, seen.reporters, seen.reported_lost), (4.0, 4.0, 0.0), "it heard our reports");
    let total = |figure: &str| run.total(figure);
    assert_eq!((total("played"), total("lost"), total("rtc.frames_broken")), (4.0, 0.0, 0.0));
    assert!(total("rtc.sender_reports") >= 4.0 && total("keyframes") >= 4.0);
    assert_eq!((total("rtc.unauthentic"), total("rtc.malformed"), total("rtc.strange")), (0.0, 0.0, 0.0));
    // What was under way at the end was sent, and came to nobody.
    let (came, sent) = (total("units"), seen.sent);
    assert!(came <= sent && came >= sent * 0.9 && came > 2.0 * total("frames"), "{came} of {sent}");
}

#[test]
fn a_server_of_others_decodes_what_publishers_send() {
    let _machine = shared();
    let server = Server::start();
    let url = format!("whip+http://{}/whip", server.address);
    let run =
        measure(["publish", &url, "-c", "2", "-d", "5s", "--warmup", "0s", "--drain", "1s", "--gop", "1s"]);
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let seen = server.end();
    let total = |figure: &str| run.total(figure);
    assert_eq!((seen.peers, seen.missing), (2.0, 0.0));
    assert!(seen.came <= total("units") && seen.came >= total("units") * 0.95, "{} came", seen.came);
    // It begins with a keyframe, and what has come last may still wait for its decoder.
    assert!(seen.decoded >= total("frames") * 0.8 && seen.decoded > 100.0, "{} decoded", seen.decoded);
    assert!(total("rtc.reports_heard") >= 2.0 && total("rtc.sender_reports_sent") >= 6.0);
    assert_eq!((total("rtc.reported_lost"), total("rtc.unauthentic")), (0.0, 0.0));
}

/// A client, connected.
struct Client {
    process: KilledOnDrop,
    said: BufReader<ChildStdout>,
}

impl Client {
    /// `publish` or `play`, and where.
    fn start(verb: &str, url: &str) -> Self {
        let mut command = program("/usr/bin/python3", "python3-aiortc");
        command.args(["-c", include_str!("support/aiortc_client.py"), verb]);
        command.arg(url.split_once('+').unwrap().1);
        let mut process = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut said = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready", "aiortc; on Debian: apt install python3-aiortc");
        Self { process, said }
    }

    /// Packets, packets lost, and frames, when it has ended.
    fn end(mut self) -> [u64; 3] {
        drop(self.process.0.stdin.take());
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        self.process.ended();
        numbers.try_into().unwrap_or_else(|numbers| panic!("{numbers:?}"))
    }
}

#[test]
fn a_publisher_of_others_is_played_as_it_was_sent() {
    let _machine = shared();
    let origin = origin(&[]);
    let (publish, watch) = places(&origin);
    let client = Client::start("publish", &publish);
    is_on_air(&origin);
    let run = play(&watch, "-c 3 -d 5s --warmup 0s --drain 1s");
    assert_eq!(run.well(), 3, "{:?}", run.failures());
    let total = |figure: &str| run.total(figure);
    let zeros = ["lost", "reordered", "rtc.frames_broken", "rtc.unauthentic"];
    assert_eq!(zeros.map(total), [0.0; 4]);
    assert!(total("frames") > 3.0 * 60.0 && total("keyframes") >= 3.0, "{}", total("frames"));
    assert!(total("rtc.audio_packets") > 3.0 * 100.0, "its silence is sound: {}", total("rtc.audio_packets"));
    let [packets, lost, frames] = client.end();
    soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
    let (rtc, counts) = (origin.rtc(), origin.counts());
    assert_eq!((rtc.intake.packets, rtc.intake.lost, rtc.intake.broken), (packets, 0, 0), "{rtc:?}");
    assert_eq!((lost, rtc.unauthentic), (0, 0), "it was told of no loss");
    let received = counts.stream("live/a").unwrap().received;
    // What was being encoded when it was told to stop has not left.
    assert!(received.video <= frames && received.video + 3 >= frames, "{} of {frames}", received.video);
    assert_eq!(rtc.intake.frames, received.video + received.audio, "{rtc:?} {received:?}");
}

#[test]
fn a_viewer_of_others_gets_every_packet_and_decodes_the_pictures() {
    let _machine = shared();
    let origin = origin(&[]);
    let (publish, watch) = places(&origin);
    let _publishing = Publishing::start(&publish, &["--gop", "1s"]);
    is_on_air(&origin);
    let client = Client::start("play", &watch);
    std::thread::sleep(std::time::Duration::from_secs(5));
    let [packets, lost, frames] = client.end();
    let counts = origin.counts();
    let [viewer] = &counts.viewers[..] else { panic!("{:?}", counts.viewers) };
    assert_eq!((packets, lost), (viewer.sent.units(), 0));
    assert!(frames > 60, "{frames} frames decoded");
    let rtc = origin.rtc();
    assert!(rtc.receiver_reports >= 2 && rtc.unauthentic == 0, "{rtc:?}");
    assert!(!viewer.present, "it has said goodbye");
}

#[test]
fn a_server_of_others_is_played_and_published_to_by_a_relay_that_it_links_to() {
    let _machine = shared();
    let turn = Coturn::start(&["--allow-loopback-peers"]);
    let (user, password) = Coturn::USER;
    let link = format!(
        "link=<turn:127.0.0.1:{}?transport=tcp>; rel=\"ice-server\"; username=\"{user}\"; credential=\"{password}\"",
        turn.port
    );
    // Its ICE is full, and it begins with DTLS.
    let server = Server::with(&[&link]);
    let url = format!("whep+http://{}/whep?transport=tcp", server.address);
    let run = play(&url, "-c 2 -d 5s --warmup 0s --drain 500ms");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let (played, lost, came) = (count(&run, "played"), count(&run, "lost"), count(&run, "units"));
    let seen = server.end();
    assert_eq!((played, lost, seen.reporters), (2, 0, 2.0));
    // What the relay dropped between the two was asked for again.
    let recovered = count(&run, "rtc.recovered") as f64;
    assert!(seen.reported_lost <= recovered, "{} of {recovered}", seen.reported_lost);
    assert!(
        came as f64 <= seen.sent && came as f64 >= seen.sent * 0.9 && came > 300,
        "{came} of {}",
        seen.sent
    );

    let server = Server::with(&[&link]);
    let url = format!("whip+http://{}/whip?transport=tcp", server.address);
    let run =
        measure(["publish", &url, "-c", "1", "-d", "5s", "--warmup", "0s", "--drain", "1s", "--gop", "1s"]);
    assert_eq!(run.well(), 1, "{:?}", run.failures());
    let (sent, seen) = (count(&run, "units") as f64, server.end());
    assert_eq!((seen.peers, seen.missing), (1.0, 0.0));
    assert!(seen.came <= sent && seen.came >= sent * 0.95 && seen.decoded > 50.0, "{} of {sent}", seen.came);
    let made = turn.log().matches("ALLOCATE processed, success").count();
    assert_eq!(made, 3, "all went by the relay");
}

#[test]
fn a_certificate_of_rsa_is_said_with_its_remedy() {
    let _machine = shared();
    for role in ["passive", "active"] {
        let server = Server::with(&["rsa", role]);
        let url = format!("whep+http://{}/whep", server.address);
        let run = play(&url, "-c 1 -d 30s --timeout 25s --warmup 0s --drain 200ms");
        let (kind, clients, side, words) = run.failure();
        assert_eq!((&*kind, clients, &*side), ("dtls_failed", 1, "protocol"), "{role}: {words}");
        assert!(words.contains("RSA") && words.contains("ECDSA"), "{role}: {words}");
    }
}
