//! RTSP: weir plays from its own origin, whose counts and faults are the truth, and publishes to it; ffmpeg does both as well.

use crate::support::{Air, Publishing, air, config, play};
use std::net::SocketAddr;
use std::time::Duration;
use weir_origin::{ANY_PORT, MissingStream, Origin, OriginConfig, RTSP};
use weir_testing::{KilledOnDrop, program, soon};

/// A stream on air that is served by RTSP, too, with these faults.
pub(crate) fn on_air(faults: &[&str]) -> (Air, String) {
    let air = air(&config(faults).listening(&RTSP, ANY_PORT));
    let url = format!("rtsp://{}/live/a", air.origin.address("rtsp").unwrap());
    (air, url)
}

/// An origin that listens for RTSP here, and its streams' URL.
pub(crate) fn listening(address: SocketAddr) -> (Origin, String) {
    let origin = Origin::start(&config(&[]).listening(&RTSP, address)).unwrap();
    let url = format!("rtsp://{}/live/a", origin.address("rtsp").unwrap());
    (origin, url)
}

pub(crate) fn wait_for(origin: &Origin) {
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
}

#[test]
fn viewers_count_what_the_origin_has_sent() {
    let (air, url) = on_air(&[]);
    let run = air.play_to_its_end(&url, 5, Duration::from_millis(2_500));
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("stream_ended", 5), "{words}");
    let counts = air.origin.counts();
    let sent = counts.sent();
    assert!(sent.video >= 5 * 40, "{sent:?}");
    assert_eq!((run.total("frames") as u64, run.total("rtsp.audio_frames") as u64), (sent.video, sent.audio));
    assert_eq!((run.total("lost"), run.total("rtsp.malformed"), run.total("rtsp.strays")), (0.0, 0.0, 0.0));
    assert_eq!((run.total("rtsp.other_frames"), run.total("rtsp.broken_frames")), (0.0, 0.0));
    assert!(run.total("stamped") > 0.0 && run.total("rtsp.sender_reports") >= 10.0);
}

#[test]
fn what_a_fault_takes_away_is_lost() {
    let (_air, url) = on_air(&["drop unit=every:10 viewers=1..2"]);
    let run = play(&url, "clients: 2, duration: 4s");
    assert_eq!(run.total("played"), 2.0);
    assert!(run.total("lost") >= 10.0, "{}", run.total("lost"));
    assert!(run.total("rtsp.gaps") >= 10.0, "{}", run.total("rtsp.gaps"));
}

#[test]
fn a_stream_that_is_published_by_rtsp_is_played_by_rtsp_and_rtmp() {
    let (origin, url) = listening(ANY_PORT);
    let publishing = Publishing::start(&url, "gop: 1s");
    wait_for(&origin);
    let run = play(&url, "clients: 2, duration: 4s");
    assert_eq!((run.total("played"), run.total("lost"), run.total("stalls")), (2.0, 0.0, 0.0));
    assert!(run.total("stamped") > 0.0 && run.total("rtsp.audio_frames") > 100.0);
    let rtmp = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = play(&rtmp, "clients: 2, duration: 4s");
    assert_eq!((run.total("played"), run.total("lost"), run.total("stalls")), (2.0, 0.0, 0.0));
    let sent = publishing.finish();
    let received = origin.counts().streams[0].received;
    assert_eq!(sent.total("frames") as u64, received.video);
    assert_eq!(sent.total("rtsp.audio_frames") as u64, received.audio);
}

#[test]
fn ipv6_is_spoken() {
    let (origin, url) = listening("[::1]:0".parse().unwrap());
    assert!(url.contains("[::1]"), "{url}");
    let _publishing = Publishing::start(&url, "gop: 1s");
    wait_for(&origin);
    let run = play(&url, "clients: 1, duration: 2s");
    assert_eq!((run.total("played"), run.total("lost")), (1.0, 0.0));
}

#[test]
fn a_login_is_answered_and_a_wrong_one_is_the_clients_failure() {
    let (_air, url) = on_air(&["unauthorized phase=play unless=me:mine"]);
    let with = |login: &str| url.replace("rtsp://", &format!("rtsp://{login}@"));
    let run = play(&with("me:mine"), "clients: 2, duration: 2s");
    assert_eq!((run.total("played"), run.total("rtsp.logins")), (2.0, 2.0));
    for wrong in [url.clone(), with("me:yours")] {
        let (kind, clients, _, said) = play(&wrong, "clients: 1, duration: 1s").failure();
        assert_eq!((kind.as_str(), clients), ("unauthorized", 1), "{said}");
        assert!(!said.contains("yours"), "{said}");
    }
}

#[test]
fn a_redirect_is_followed() {
    let (_air, target) = on_air(&[]);
    let fault = format!("redirect phase=play to={target}");
    let (_other, url) = on_air(&[&fault]);
    let run = play(&url, "clients: 2, duration: 2s");
    assert_eq!(run.total("played"), 2.0);
}

#[test]
fn a_stream_that_no_one_publishes_is_not_there_if_the_origin_says_so_and_awaited_else() {
    let refusing = OriginConfig { missing_stream: MissingStream::Refuse, ..config(&[]) };
    let origin = Origin::start(&refusing.listening(&RTSP, ANY_PORT)).unwrap();
    let url = format!("rtsp://{}/live/none", origin.address("rtsp").unwrap());
    let (kind, clients, _, said) = play(&url, "clients: 2, duration: 1s").failure();
    assert_eq!((kind.as_str(), clients), ("stream_not_found", 2), "{said}");
    assert!(said.contains("DESCRIBE is answered with 404"), "{said}");
    let (origin, url) = listening(ANY_PORT);
    let late = url.clone();
    let publisher = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(1));
        Publishing::start(&late, "gop: 1s")
    });
    let run = play(&url, "clients: 2, duration: 4s");
    assert_eq!(run.total("played"), 2.0);
    drop(publisher.join().unwrap());
    assert!(origin.counts().sent().video > 0);
}

#[test]
fn ffmpeg_plays_what_the_origin_serves() {
    let (_air, url) = on_air(&[]);
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args([
        "-v",
        "error",
        "-rtsp_transport",
        "tcp",
        "-i",
        &url,
        "-t",
        "3",
        "-c",
        "copy",
        "-f",
        "framecrc",
        "-",
    ]);
    let output = ffmpeg.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let frames = |stream: &str| out.lines().filter(|line| line.starts_with(stream)).count();
    assert!(
        frames("0,") >= 60 && frames("1,") >= 100,
        "{} and {} in\n{out}{err}",
        frames("0,"),
        frames("1,")
    );
}

#[test]
fn ffmpeg_publishes_pictures_out_of_order_and_they_are_played_in_time() {
    let (origin, url) = listening(ANY_PORT);
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args([
        "-v",
        "error",
        "-re",
        "-f",
        "lavfi",
        "-i",
        "testsrc=size=320x240:rate=25",
        "-f",
        "lavfi",
        "-i",
        "sine",
    ]);
    ffmpeg.args([
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-bf",
        "2",
        "-g",
        "25",
        "-pix_fmt",
        "yuv420p",
        "-c:a",
        "aac",
    ]);
    ffmpeg.args(["-f", "rtsp", "-rtsp_transport", "tcp", &url]);
    let _ffmpeg = KilledOnDrop::start(&mut ffmpeg);
    wait_for(&origin);
    let run = play(&url, "clients: 3, duration: 6s");
    assert_eq!((run.total("played"), run.total("lost"), run.total("timestamp_jumps")), (3.0, 0.0, 0.0));
    assert!(run.total("keyframes") >= 12.0 && run.total("rtsp.audio_frames") >= 300.0);
    assert_eq!(run.total("stalls"), 0.0);
}
