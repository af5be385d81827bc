//! WebRTC viewers whose link is narrower than the stream, or wider: what is dropped is never lost, and what is asked of a run holds.

use crate::rtc::whep;
use crate::support::{Air, Publishing, Run, config, measure};
use weir_origin::{ANY_PORT, Origin, RTC};
use weir_testing::{soon, undisturbed};

/// A stream of a megabit a second, with a keyframe a second and without sound that WebRTC takes.
fn on_air() -> Air {
    let origin = Origin::start(&config(&[]).listening(&RTC, ANY_PORT)).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let publishing = Publishing::start(&url, "gop: 1s, bitrate: 1mbps");
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
    Air::of(origin, url, publishing)
}

fn play(air: &Air, keys: &str) -> Run {
    measure(&format!("drain: 500ms\nworkloads: [{{play: '{}', {keys}}}]", whep(air)))
}

#[test]
fn a_link_of_half_the_rate_drops_half_of_the_stream_and_none_is_lost() {
    undisturbed(|| {
        let air = on_air();
        // A witness, and viewers that read headers; a queue that the first keyframe fits into.
        let keys = "clients: 6, duration: 8s, bandwidth: 500kbps, queue: 500ms, rtcp_off: [nack]";
        let run = play(&air, keys);
        assert_eq!(run.well(), 6, "{:?}", run.failures());
        assert_eq!(["lost", "rtc.gaps", "rtc.nacks"].map(|figure| run.count(figure)), [0; 3]);
        let share = 1.0 - run.total("media") / run.total("received");
        assert!((0.42..=0.58).contains(&share), "{share} of the bytes");
        let [dropped, came] = ["link.dropped", "units"].map(|figure| run.count(figure));
        assert!(dropped > came / 3 && dropped < 2 * came, "{dropped} beside {came}");
        assert!(run.count("link.overloads") >= 6 && run.count("rtc.frames_broken") > 100);
        // The link is full: 62,500 bytes a second, and no more.
        let rate = run.spread("rtc.bytes_per_second")["p50"].as_f64().unwrap();
        assert!((58_000.0..=64_500.0).contains(&rate), "{rate}");
        // Neither bit rate nor frames are asked of such viewers, and a warning says why pictures are missing.
        assert_eq!(run.missed, None, "{}", run.summary["thresholds"]);
        let asked = run.summary["thresholds"].to_string();
        assert!(!asked.contains("bitrate.ratio") && !asked.contains("frames.ratio"), "{asked}");
        assert!(asked.contains("lost.ratio"), "{asked}");
        let warnings = run.summary["warnings"].to_string();
        assert!(warnings.contains("link.dropped"), "{warnings}");
    });
}

#[test]
fn a_link_of_twice_the_rate_drops_nothing() {
    undisturbed(|| {
        let air = on_air();
        // What the origin has kept of the stream comes at once.
        let run = play(&air, "clients: 6, duration: 5s, bandwidth: 2mbps, queue: 1s");
        assert_eq!((run.well(), run.missed), (6, None), "{:?}", run.failures());
        let zeros = ["link.dropped", "link.overloads", "lost", "rtc.frames_broken", "rtc.freezes"];
        assert_eq!(zeros.map(|figure| run.count(figure)), [0; 5]);
        assert!(run.count("link.delay") == run.count("units") + run.count("rtc.sender_reports"));
    });
}
