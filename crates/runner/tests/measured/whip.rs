//! WHIP into the origin: what publishers have sent, to the last packet, and what viewers get of it.

use crate::support::{Air, Publishing, Run, config, measure, publish};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use weir_origin::{ANY_PORT, Origin, OriginConfig, RTC};
use weir_testing::{program, soon};

/// An origin with these faults that takes and gives WebRTC, and RTMP.
pub(crate) fn origin(faults: &[&str]) -> Origin {
    Origin::start(&config(faults).listening(&RTC, ANY_PORT)).unwrap()
}

fn at(origin: &Origin) -> SocketAddr {
    origin.address("rtc").unwrap()
}

/// Where a stream of an origin is published, and where it is played, by WebRTC.
pub(crate) fn places(origin: &Origin) -> (String, String) {
    let at = at(origin);
    (format!("whip+http://{at}/whip/live/a"), format!("whep+http://{at}/live/a"))
}

/// Puts `live/a` on air by WHIP, with a keyframe a second.
pub(crate) fn on_air(faults: &[&str]) -> Air {
    on_air_with(faults, "")
}

/// The same with more keys.
fn on_air_with(faults: &[&str], more: &str) -> Air {
    let origin = origin(faults);
    let url = places(&origin).0;
    let publishing = Publishing::start(&url, &format!("gop: 1s{more}"));
    is_on_air(&origin);
    Air::of(origin, url, publishing)
}

/// Waits until `live/a` is there.
pub(crate) fn is_on_air(origin: &Origin) {
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
}

fn play(url: &str, keys: &str) -> Run {
    measure(&format!("drain: 500ms\nworkloads: [{{play: '{url}', {keys}}}]"))
}

#[test]
fn what_is_published_by_whip_is_played_whole_by_every_protocol() {
    let air = on_air(&[]);
    let (address, rtmp) = (at(&air.origin), air.origin.address("rtmp").unwrap());
    for url in [places(&air.origin).1, format!("ws://{address}/live/a"), format!("rtmp://{rtmp}/live/a")] {
        let run = play(&url, "clients: 3, duration: 4s");
        assert_eq!(run.well(), 3, "{url}: {:?}", run.failures());
        let total = |figure: &str| run.total(figure);
        assert!(total("frames") > 3.0 * 60.0 && total("keyframes") >= 3.0, "{url}: {}", total("frames"));
        // The stamp in each frame came through two conversions; the origin and weir have one clock.
        let latency = run.spread("latency");
        assert!(latency["count"].as_f64().unwrap() > 100.0, "{url}: witnesses find the stamps: {latency}");
        assert!(latency["min"].as_f64().unwrap() >= 0.0, "{url}: {latency}");
        assert_eq!(run.workloads()[0]["clock_uncertainty_seconds"], 0.0, "one clock");
        if !url.starts_with("rtmp") {
            let zeros = ["lost", "reordered", "duplicate", "rtc.frames_broken", "rtc.unauthentic"];
            assert_eq!(zeros.map(total), [0.0; 5], "{url}");
            // 50 packets of sound a second.
            assert!(total("rtc.audio_packets") > 3.0 * 4.0 * 40.0, "{url}: {}", total("rtc.audio_packets"));
        }
    }
    let (origin, published) = air.end();
    assert_eq!(published.well(), 1, "{:?}", published.failures());
    soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
    let (rtc, counts) = (origin.rtc(), origin.counts());
    let (total, intake) = (|figure: &str| published.total(figure) as u64, rtc.intake);
    assert_eq!((intake.publishers, intake.lost, intake.broken), (1, 0, 0), "{intake:?}");
    assert_eq!(intake.packets, total("units"), "every packet, and each once");
    let stream = counts.stream("live/a").unwrap();
    assert_eq!(intake.frames, total("frames") + stream.received.audio);
    assert_eq!((stream.received.video, stream.undecodable.video), (total("frames"), 0));
    // It was told so, and asked for keyframes when viewers came.
    assert!(total("rtc.reports_heard") >= 10 && total("rtc.bandwidth_reports") >= 10);
    assert_eq!((total("rtc.reported_lost"), total("rtc.unauthentic")), (0, 0));
    assert!(intake.sender_reports >= 10 && rtc.unauthentic == 0, "{rtc:?}");
    assert_eq!(intake.keyframes_asked, total("rtc.plis_heard"));
    assert!(intake.keyframes_asked >= 2, "{intake:?}");
}

/// ffmpeg of Debian 12 knows no sound of Enhanced RTMP.
#[test]
fn a_decoder_of_others_finds_no_fault_with_pictures_that_came_by_whip() {
    let air = on_air_with(&[], ", audio_bitrate: 0");
    let url = format!("rtmp://{}/live/a", air.origin.address("rtmp").unwrap());
    let mut decoder = program("ffmpeg", "ffmpeg");
    decoder.args(["-v", "error", "-t", "3", "-i", &url, "-f", "null", "-"]);
    let decoded = decoder.output().unwrap();
    assert!(decoded.status.success() && decoded.stderr.is_empty(), "{decoded:?}");
    air.end();
}

#[test]
fn publisher_and_viewers_may_be_with_any_worker() {
    let origin =
        Origin::start(&OriginConfig { workers: 3, ..config(&[]) }.listening(&RTC, ANY_PORT)).unwrap();
    let (publish, watch) = places(&origin);
    for publications in 1..=2 {
        let publishing = Publishing::start(&publish, "gop: 10s");
        is_on_air(&origin);
        // A group of pictures lasts longer than this: whoever plays has had the publisher asked for a keyframe.
        let run = play(&watch, "clients: 6, arrival: 3/s, duration: 4s");
        assert_eq!(run.well(), 6, "{:?}", run.failures());
        assert_eq!(["lost", "rtc.frames_broken"].map(|figure| run.total(figure)), [0.0; 2]);
        let published = publishing.finish();
        soon("the stream is off air", || {
            let counts = origin.counts();
            let stream = counts.stream("live/a").unwrap();
            !stream.live && stream.publications == publications
        });
        assert!(published.total("rtc.plis_heard") >= 2.0, "{}", published.total("rtc.plis_heard"));
    }
}

#[test]
fn faults_of_a_stream_by_whip_are_counted_to_the_packet() {
    let bursts = (0..10).map(|n| format!("drop unit={}..{} kind=video", 100 + 25 * n, 104 + 25 * n));
    let others = ["drop unit=400 kind=video", "delay 300ms stream=live/a"];
    let faults: Vec<String> = bursts.chain(others.map(str::to_owned)).collect();
    let air = on_air(&faults.iter().map(String::as_str).collect::<Vec<_>>());
    let run = play(&places(&air.origin).1, "clients: 4, duration: 5s, rtcp_off: [nack, pli]");
    assert_eq!(run.well(), 4, "{:?}", run.failures());
    let total = |figure: &str| run.total(figure) as u64;
    assert_eq!((total("lost"), total("rtc.gaps"), total("reordered")), (4 * 51, 4 * 11, 0));
    let latency = ["min", "p50"].map(|key| run.spread("latency")[key].as_f64().unwrap());
    assert!(latency[0] >= 0.3 && latency[1] < 0.6, "held back for 300 ms, not more: {latency:?}");
}

/// What the origin answers: its head and its body.
fn ask(origin: &Origin, method: &str, path: &str, body: &str) -> (String, String) {
    let mut link = TcpStream::connect(at(origin)).unwrap();
    let length = body.len();
    write!(
        link,
        "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/sdp\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut said = String::new();
    link.read_to_string(&mut said).unwrap();
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// An offer of one encoding of pictures.
fn offer(encoding: &str, parameters: &str) -> String {
    let fingerprint = ["AB"; 32].join(":");
    format!(
        "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n\
         m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\n\
         a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:sha-256 {fingerprint}\r\n\
         a=setup:actpass\r\na=rtpmap:96 {encoding}/90000\r\na=fmtp:96 {parameters}\r\n\
         a=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 transport-cc\r\n"
    )
}

#[test]
fn offers_are_answered_or_refused_with_the_status_that_says_why() {
    let origin = origin(&["unauthorized phase=publish publisher=9"]);
    let status = |said: &(String, String)| said.0.split(' ').nth(1).unwrap().to_owned();
    let post = |path: &str, body: &str| ask(&origin, "POST", path, body);
    let good = offer("H264", "packetization-mode=1;profile-level-id=42e01f");
    for (path, offer, expected) in [
        ("/whip/live/x", "hello".to_owned(), "400"),
        ("/whip/live/x", good.replace("a=ice-ufrag:abcd\r\n", ""), "400"),
        ("/whip/live/x", offer("H264", "packetization-mode=0"), "406"),
        ("/whip/live/x", offer("H266", "x=1"), "406"),
        ("/whip/live/x", offer("rtx", "apt=96"), "406"),
        ("/whip/live/x", good.replace("sendonly", "recvonly"), "406"),
        ("/whip", good.clone(), "405"),
    ] {
        assert_eq!(status(&post(path, &offer)), expected, "{path} {offer}");
    }
    let (_, words) = post("/whip/live/x", &offer("H265", "sprop-max-don-diff=2"));
    let expected = "the origin takes H.264 with packetization-mode=1, VP8, VP9, AV1, H.265, and the offer has codecs that are not known here";
    assert_eq!(words, expected);
    assert!(origin.counts().streams.is_empty(), "who was refused has taken no name");
    // Each of the paths that servers of others have; the name is taken, whichever was used.
    let ways = ["/live/x?direction=whip", "/whip/live/x", "/live/x/whip", "/rtc/v1/whip/?app=live&stream=x"];
    let answered = post(ways[0], &good);
    assert_eq!(status(&answered), "201", "{answered:?}");
    let field = |name: &str| {
        let found = answered.0.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {answered:?}")).trim().to_owned()
    };
    assert!(!field("ETag:").is_empty() && field("Content-Type:") == "application/sdp");
    for line in
        ["a=ice-lite", "a=recvonly", "a=setup:passive", "a=rtcp-fb:96 transport-cc", "a=rtcp-fb:96 nack pli"]
    {
        assert!(answered.1.contains(line), "{line}: {}", answered.1);
    }
    assert_eq!(status(&post("/whip/live/y", &good)), "401", "the ninth who asks is not let in");
    for way in &ways[1..] {
        assert_eq!(status(&post(way, &good)), "409", "{way}");
    }
    // Who opens the same place in a browser gets a page.
    let (play, publish) =
        (ask(&origin, "GET", "/live/x", ""), ask(&origin, "GET", "/live/x?direction=whip", ""));
    assert!(play.0.contains("text/html") && play.1.contains("href=\"?direction=whip\""), "{play:?}");
    assert!(publish.0.contains("text/html") && publish.1.contains("getUserMedia"), "{publish:?}");
    // One track of a kind is a stream; more are not taken.
    let cameras = |n: &str| good.split("m=video").nth(1).unwrap().replace("a=mid:0", &format!("a=mid:{n}"));
    let three = format!("{good}m=video{}m=video{}", cameras("1"), cameras("2"));
    let (_, answer) = post("/whip/live/z", &three);
    let taken: Vec<&str> =
        answer.lines().filter(|line| line.starts_with("m=video")).map(|it| &it[8..10]).collect();
    assert_eq!(taken, ["9 ", "0 ", "0 "], "{answer}");
    let resource = field("Location:");
    assert_eq!(status(&ask(&origin, "PATCH", &resource, "")), "405");
    assert_eq!(status(&ask(&origin, "DELETE", &resource, "")), "200");
    soon("the name is free", || origin.counts().stream("live/x").is_some_and(|stream| !stream.live));
    assert_eq!(status(&post(ways[1], &good)), "201");
    assert_eq!((origin.rtc().connected, origin.rtc().intake.publishers), (0, 3));
}

#[test]
fn a_fault_that_ends_a_publisher_is_named_and_its_stream_is_over() {
    let origin =
        origin(&["close at=1s publisher=1", "reject phase=publish publisher=2 code=403 words=not now"]);
    let url = places(&origin).0;
    let end = || publish(&url, "duration: 4s").failure();
    let (kind, clients, side, words) = end();
    assert_eq!((&*kind, clients, &*side), ("stream_ended", 1, "remote"), "{words}");
    assert!(!origin.counts().stream("live/a").unwrap().live);
    let (kind, _, _, words) = end();
    assert_eq!(&*kind, "unauthorized");
    assert!(words.contains("403") && words.contains("not now"), "{words}");
}

#[test]
fn whatever_strangers_send_is_counted_and_harms_no_one() {
    let origin = origin(&[]);
    let (publish, watch) = places(&origin);
    let _publishing = Publishing::start(&publish, "gop: 1s");
    is_on_air(&origin);
    let (_, answer) = ask(&origin, "POST", "/whip/live/x", &offer("H264", "packetization-mode=1"));
    let candidate = answer.lines().find_map(|line| line.strip_prefix("a=candidate:")).unwrap();
    let words: Vec<&str> = candidate.split(' ').collect();
    let port: u16 = words[5].parse().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    // The first bytes of STUN, DTLS, RTP and RTCP, and of nothing that is known (RFC 7983).
    for first in [0_u8, 1, 20, 22, 64, 80, 128, 200, 255] {
        for length in [1_usize, 2, 12, 20, 100, 1_200] {
            for second in [0_u8, 96, 200, 206] {
                let bytes: Vec<u8> =
                    [first, second].into_iter().chain(2..=255).cycle().take(length).collect();
                stranger.send_to(&bytes, ("127.0.0.1", port)).unwrap();
            }
        }
    }
    soon("all of it is counted", || origin.rtc().strange >= 9 * 6 * 4);
    let run = play(&watch, "clients: 2, duration: 3s");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    assert_eq!(["lost", "rtc.frames_broken"].map(|figure| run.total(figure)), [0.0; 2]);
    assert_eq!(origin.rtc().unauthentic, 0);
}

#[test]
fn a_file_with_b_frames_is_published_with_a_warning_and_one_without_is_not_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    for (b_frames, is_warned) in [("2", true), ("0", false)] {
        let file = folder.path().join("recording.flv");
        let mut ffmpeg = program("ffmpeg", "ffmpeg");
        ffmpeg.args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=3"]);
        ffmpeg.args(["-c:v", "libx264", "-bf", b_frames, "-pix_fmt", "yuv420p", "-f", "flv"]);
        assert!(ffmpeg.arg(&file).status().unwrap().success());
        let origin = origin(&[]);
        let run = publish(&places(&origin).0, &format!("file: '{}', duration: 2s", file.display()));
        assert_eq!(run.well(), 1, "{:?}", run.failures());
        let warnings = run.summary["warnings"].to_string();
        assert_eq!(warnings.contains("has B-frames"), is_warned, "{warnings}");
    }
}
