//! HTTP-FLV: weir plays it from its own origin, whose counts are the truth; ffmpeg plays it from the origin.

use crate::support::{Air, air, config, play, refusal};
use weir_origin::{ANY_PORT, MissingStream, OriginConfig};
use weir_protocols::{Serve, of_scheme};
use weir_runner::ErrorKind;
use weir_testing::program;

/// A stream on air that is served as HTTP-FLV, too, with these faults.
fn on_air(faults: &[&str]) -> (Air, String) {
    let Serve { server, .. } = of_scheme("http+flv").unwrap().serve.unwrap();
    let air = air(&config(faults).listening(server, ANY_PORT));
    let url = format!("http+flv://{}/live/a.flv", air.origin.address("http-flv").unwrap());
    (air, url)
}

#[test]
fn viewers_count_what_the_origin_has_sent() {
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
    let (_air, url) = on_air(&["drop unit=every:10 viewers=1..2"]);
    let http = url.replace("http+flv://", "http://");
    let run = play(&http, "clients: 2, duration: 4s");
    assert_eq!(run.total("played"), 2.0);
    assert!(run.workloads()[0]["targets"][0].as_str().unwrap().starts_with("http+flv://"));
    assert!(run.total("lost") >= 10.0, "{}", run.total("lost"));
    let error = refusal(&format!("workloads: [{{play: '{http}', services: 2, duration: 1s}}]"));
    assert_eq!(error.kind(), ErrorKind::Scenario);
    assert!(error.to_string().contains("means nothing to http+flv://"), "{error}");
}

#[test]
fn a_stream_that_nobody_publishes_is_not_there_if_the_origin_says_so() {
    let Serve { server, .. } = of_scheme("http+flv").unwrap().serve.unwrap();
    let refusing = OriginConfig { missing_stream: MissingStream::Refuse, ..config(&[]) };
    let origin = weir_origin::Origin::start(&refusing.listening(server, ANY_PORT)).unwrap();
    let address = origin.address("http-flv").unwrap();
    for path in ["live/none.flv", "live/none"] {
        let run = play(&format!("http+flv://{address}/{path}"), "clients: 2, duration: 1s");
        let (kind, clients, _, said) = run.failure();
        assert_eq!((kind.as_str(), clients), ("stream_not_found", 2), "{said}");
        assert!(said.contains("404"), "{said}");
    }
}

#[test]
fn what_a_fault_has_requests_answered_with_is_what_is_told() {
    for (fault, expected, word) in [
        ("reject phase=play code=429 words=full", "rejected", "429"),
        ("unauthorized phase=play", "unauthorized", "401"),
    ] {
        let (_air, url) = on_air(&[fault]);
        let run = play(&url, "clients: 2, duration: 1s");
        let (kind, clients, _, said) = run.failure();
        assert_eq!((kind.as_str(), clients), (expected, 2), "{fault}: {said}");
        assert!(said.contains(word), "{fault}: {said}");
    }
}

#[test]
fn ffmpeg_plays_what_the_origin_serves() {
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
