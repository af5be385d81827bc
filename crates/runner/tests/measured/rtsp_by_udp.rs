//! RTSP with RTP as datagrams: weir plays from its own origin and publishes to it, and so do ffmpeg's programs; each packet that one
//! side has sent is found in the other's count.

use crate::rtsp::{listening, on_air, wait_for};
use crate::support::{Publishing, Run, play, start};
use std::time::Duration;
use weir_origin::ANY_PORT;
use weir_testing::{KilledOnDrop, program, soon};

/// Figures that are zero where nothing is wrong.
const ZEROS: [&str; 6] =
    ["lost", "rtsp.malformed", "rtsp.strays", "rtsp.broken_frames", "rtsp.restarts", "socket_drops"];

fn zeros(run: &Run) -> [f64; 6] {
    ZEROS.map(|figure| run.total(figure))
}

#[test]
fn viewers_count_every_packet_that_the_origin_has_sent() {
    let (air, url) = on_air(&[]);
    let viewers = format!("play: '{url}', transport: udp, clients: 3, duration: 60s");
    let watching = start(&format!("drain: 200ms\nworkloads: [{{{viewers}}}]"));
    soon("all play", || air.origin.counts().present() == 3);
    std::thread::sleep(Duration::from_millis(2_500));
    air.end_publisher();
    let run = watching.finish();
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("stream_ended", 3), "{words}");
    assert_eq!(zeros(&run), [0.0; 6]);
    let (counts, rtsp) = (air.origin.counts(), air.origin.rtsp());
    let sent = counts.sent();
    assert!(sent.video >= 3 * 40, "{sent:?}");
    assert_eq!((run.total("frames") as u64, run.total("rtsp.audio_frames") as u64), (sent.video, sent.audio));
    assert_eq!(run.total("rtsp.packets") as u64, rtsp.datagrams, "{rtsp:?}");
    assert!(run.total("stamped") > 0.0 && run.total("rtsp.sender_reports") >= 6.0);
}

#[test]
fn what_a_fault_takes_away_is_lost() {
    let (air, url) = on_air(&["drop unit=every:10 viewers=1..2"]);
    let run = play(&url, "transport: udp, clients: 2, duration: 4s");
    assert_eq!(run.total("played"), 2.0);
    assert!(run.total("lost") >= 10.0 && run.total("rtsp.gaps") >= 10.0, "{}", run.total("lost"));
    let dropped: u64 = air.origin.counts().viewers.iter().map(|viewer| viewer.dropped.units()).sum();
    // The last ones have no packet behind them.
    assert!(run.total("rtsp.gaps") as u64 <= dropped, "{} of {dropped}", run.total("rtsp.gaps"));
    assert!(run.total("lost") as u64 + 20 >= dropped, "{} of {dropped}", run.total("lost"));
}

#[test]
fn a_stream_that_is_published_as_datagrams_arrives_whole_and_is_reported_on() {
    let (origin, url) = listening(ANY_PORT);
    let publishing = Publishing::start(&url, "gop: 1s, transport: udp");
    wait_for(&origin);
    for transport in ["udp", "tcp"] {
        let run = play(&url, &format!("transport: {transport}, clients: 2, duration: 4s"));
        assert_eq!((run.total("played"), run.total("stalls")), (2.0, 0.0), "{transport}");
        assert_eq!(zeros(&run), [0.0; 6], "{transport}");
        assert!(run.total("stamped") > 0.0 && run.total("rtsp.audio_frames") > 100.0, "{transport}");
    }
    let sent = publishing.finish();
    soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
    let (rtsp, received) = (origin.rtsp(), origin.counts().streams[0].received);
    assert_eq!((rtsp.publishers, rtsp.lost), (1, 0), "{rtsp:?}");
    // TEARDOWN goes by the connection and may overtake what was sent last.
    let (packets, frames) = (sent.total("rtsp.packets") as u64, sent.total("frames") as u64);
    assert!(rtsp.packets <= packets && rtsp.packets + 10 >= packets, "{rtsp:?} of {packets}");
    assert!(received.video <= frames && received.video + 2 >= frames, "{} of {frames}", received.video);
    assert!(sent.total("rtsp.receiver_reports") >= 2.0);
    assert_eq!((sent.total("rtsp.reported_lost"), sent.total("socket_drops")), (0.0, 0.0));
}

#[test]
fn ipv6_is_spoken() {
    let (origin, url) = listening("[::1]:0".parse().unwrap());
    let _publishing = Publishing::start(&url, "gop: 1s, transport: udp");
    wait_for(&origin);
    let run = play(&url, "transport: udp, clients: 1, duration: 2s");
    assert_eq!((run.total("played"), zeros(&run)), (1.0, [0.0; 6]));
}

#[test]
fn a_viewer_whose_connection_ends_has_lost_its_session() {
    let (air, url) = on_air(&["close viewers=1..2 at=2s"]);
    let run = play(&url, "transport: udp, clients: 2, duration: 20s");
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("closed_by_peer", 2), "{words}");
    assert_eq!(air.origin.counts().present(), 0);
}

#[test]
fn ffmpeg_plays_what_the_origin_sends() {
    let (_air, url) = on_air(&[]);
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-rtsp_transport", "udp", "-i", &url, "-t", "3"]);
    let output = ffmpeg.args(["-c", "copy", "-f", "framecrc", "-"]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let frames = |stream: &str| out.lines().filter(|line| line.starts_with(stream)).count();
    assert!(frames("0,") >= 60 && frames("1,") >= 100, "{} and {}: {err}", frames("0,"), frames("1,"));
    assert!(!err.contains("missed"), "{err}");
}

#[test]
fn ffmpeg_publishes_as_datagrams_and_all_of_it_is_played() {
    let (origin, url) = listening(ANY_PORT);
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25"]);
    ffmpeg.args([
        "-f",
        "lavfi",
        "-i",
        "sine",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-bf",
        "2",
        "-g",
        "25",
    ]);
    ffmpeg.args(["-pix_fmt", "yuv420p", "-c:a", "aac", "-f", "rtsp", "-rtsp_transport", "udp", &url]);
    let _ffmpeg = KilledOnDrop::start(&mut ffmpeg);
    wait_for(&origin);
    let run = play(&url, "transport: udp, clients: 3, duration: 6s");
    assert_eq!((run.total("played"), run.total("timestamp_jumps")), (3.0, 0.0));
    assert_eq!(zeros(&run), [0.0; 6]);
    assert!(run.total("keyframes") >= 12.0 && run.total("rtsp.audio_frames") >= 300.0);
    let rtsp = origin.rtsp();
    assert!(rtsp.publishers == 1 && rtsp.packets > 150 && rtsp.lost == 0, "{rtsp:?}");
}
