//! HTTP-FLV: weir plays it from its own origin, whose counts are the truth, and from node-media-server; ffmpeg plays it from
//! the origin.

use crate::support::{Air, NodeMediaServer, Publishing, air, config, measure, program, says, shared};
use weir_origin::{ANY_PORT, MissingStream, OriginConfig};
use weir_protocols::{Serve, of_scheme};

/// A stream on air that is served as HTTP-FLV, too, with these faults.
fn on_air(faults: &[&str]) -> (Air, String) {
    let Serve { server, .. } = of_scheme("http+flv").unwrap().serve.unwrap();
    let air = air(&config(faults).listening(server, ANY_PORT));
    let url = format!("http+flv://{}/live/a.flv", air.origin.address("http-flv").unwrap());
    (air, url)
}

#[test]
fn viewers_count_what_the_origin_has_sent() {
    let _machine = shared();
    let (air, url) = on_air(&[]);
    let run = air.play_to_its_end(&url, 5, std::time::Duration::from_millis(2_500));
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("stream_ended", 5), "{words}");
    let counts = air.origin.counts();
    let sent = counts.sent();
    assert!(sent.video >= 5 * 40, "{sent:?}");
    assert_eq!((run.total("frames") as u64, run.total("flv.audio_frames") as u64), (sent.video, sent.audio));
    assert_eq!(run.total("media") as u64, sent.payload_bytes);
    let link_bytes: u64 = counts.viewers.iter().map(|viewer| viewer.link_bytes).sum();
    assert_eq!(run.total("received") as u64, link_bytes);
    assert_eq!((run.total("lost"), run.total("flv.unreadable_tags")), (0.0, 0.0));
    assert!(run.total("stamped") > 0.0);
}

#[test]
fn what_a_fault_takes_away_is_lost_and_a_url_that_ends_in_flv_is_one() {
    let _machine = shared();
    let (_air, url) = on_air(&["drop unit=every:10 viewers=1..2"]);
    let http = url.replace("http+flv://", "http://");
    let run = measure(["play", &http, "-c", "2", "-d", "4s", "--warmup", "0s"]);
    assert_eq!(run.total("played"), 2.0);
    assert!(run.workloads()[0]["targets"][0].as_str().unwrap().starts_with("http+flv://"));
    assert!(run.total("lost") >= 10.0, "{}", run.total("lost"));
    let said = says(["play", &http, "--services", "2"]);
    assert!(said.code == Some(2) && said.err.contains("means nothing to http+flv://"), "{}", said.err);
}

#[test]
fn a_stream_that_nobody_publishes_is_not_there_if_the_origin_says_so() {
    let _machine = shared();
    let Serve { server, .. } = of_scheme("http+flv").unwrap().serve.unwrap();
    let refusing = OriginConfig { missing_stream: MissingStream::Refuse, ..config(&[]) };
    let origin = weir_origin::Origin::start(&refusing.listening(server, ANY_PORT)).unwrap();
    let address = origin.address("http-flv").unwrap();
    for path in ["live/none.flv", "live/none"] {
        let run = measure(["play", &format!("http+flv://{address}/{path}"), "-c", "2", "-d", "1s"]);
        let (kind, clients, _, said) = run.failure();
        assert_eq!((kind.as_str(), clients), ("stream_not_found", 2), "{said}");
        assert!(said.contains("404"), "{said}");
    }
}

#[test]
fn ffmpeg_plays_what_the_origin_serves() {
    let _machine = shared();
    let (_air, url) = on_air(&[]);
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    let url = url.replace("http+flv://", "http://");
    ffmpeg.args(["-v", "error", "-i", &url, "-t", "3", "-c", "copy", "-f", "framecrc", "-"]);
    let output = ffmpeg.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{err}");
    let frames = |stream: &str| out.lines().filter(|line| line.starts_with(stream)).count();
    assert!(frames("0,") >= 70 && frames("1,") >= 100, "{} and {} in\n{out}", frames("0,"), frames("1,"));
}

#[test]
fn a_server_of_others_is_played() {
    let _machine = shared();
    let server = NodeMediaServer::start();
    let [publish, play] = server.urls("a");
    let _publishing = Publishing::start(&publish, &["--gop", "1s", "--bitrate", "1mbps"]);
    let arguments = ["-c", "10", "-d", "6s", "--warmup", "1s", "--expect", "1mbps"];
    let run = measure(["play", &play].into_iter().chain(arguments));
    assert_eq!((run.code, run.well(), run.total("played")), (0, 10, 10.0), "{}", run.err);
    assert_eq!((run.total("lost"), run.total("flv.unreadable_tags")), (0.0, 0.0));
    assert!(run.total("flv.sequence_headers") >= 20.0 && run.total("flv.script_tags") >= 10.0);
    let nobody = play.replace("/a.flv", "/none.flv");
    let missing = measure(["play", &nobody, "-c", "1", "-d", "3s", "--timeout", "2s"]);
    assert_eq!(missing.slots("failed"), 1);
}
