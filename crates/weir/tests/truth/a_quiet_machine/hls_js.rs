//! hls.js in Chromium plays weir's origin, and sees of it what weir sees.

use crate::support::{
    Air, Browser, Run, air, config, measure, npm_folder, quiet, self_signed, soon, undisturbed,
};
use std::time::Duration;
use weir_origin::{ANY_PORT, HLS, HlsSettings, Identity, OriginConfig, SegmentContainer};

/// Length of a segment, and of a part where there are some.
const SEGMENT: Duration = Duration::from_secs(1);
const PART: Duration = Duration::from_millis(200);

/// A stream that is cut each second, with four seconds of it there; the URL of its playlist. Over TLS browsers and weir ask for HTTP/2.
fn on_air(
    container: SegmentContainer,
    part: Option<Duration>,
    faults: &[&str],
    identity: Option<Identity>,
) -> (Air, String) {
    let hls = HlsSettings { container, part, segment: SEGMENT, ..HlsSettings::default() };
    let config = OriginConfig { hls, ..config(faults) };
    let (listener, scheme) = if identity.is_some() { ("hlss", "https") } else { ("hls", "http") };
    let air = air(&match identity {
        Some(identity) => config.listening_secure(&HLS, ANY_PORT, identity),
        None => config.listening(&HLS, ANY_PORT),
    });
    let url = format!("{scheme}://{}/live/a.m3u8", air.origin.address(listener).unwrap());
    let received = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
    soon("four seconds are there", || received().is_some_and(|frames| frames >= 110));
    (air, url)
}

fn player(part: Option<Duration>, url: &str) -> Browser {
    let page = npm_folder("hls-js").join("player.html");
    let how = if part.is_some() { "parts" } else { "segments" };
    Browser::open(&format!("file://{}#{how}|{url}", page.display()))
}

/// A player that has made up for its own start. One that could not, because the machine held it up for seconds, is opened
/// again: what is compared is where two players are, not how fast one starts.
fn player_on_time(part: Option<Duration>, url: &str) -> Browser {
    for _ in 0..2 {
        let browser = player(part, url);
        if browser.says_within(Duration::from_secs(30), " latency, ", 1, " on time").is_ok() {
            return browser;
        }
    }
    let browser = player(part, url);
    browser.says(" latency, ", 1, " on time");
    browser
}

/// A number of a line of the page.
fn number(line: &str, before: &str, after: &str) -> f64 {
    line.split(before).nth(1).and_then(|rest| rest.split(after).next()).unwrap().parse().unwrap()
}

fn seconds(run: &Run, figure: &str) -> f64 {
    run.spread(figure)["p50"].as_f64().unwrap()
}

#[test]
fn hls_js_is_as_far_behind_as_weir_says() {
    // Chromium has to decode in time.
    let _machine = quiet();
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = self_signed(folder.path());
    let identity = Identity { chain: chain.into(), key: key.into() };
    for (container, part, identity) in [
        (SegmentContainer::TransportStream, None, None),
        (SegmentContainer::FragmentedMp4, None, Some(identity.clone())),
        (SegmentContainer::FragmentedMp4, Some(PART), None),
        (SegmentContainer::FragmentedMp4, Some(PART), Some(identity)),
    ] {
        undisturbed(|| {
            let (_air, url) = on_air(container, part, &[], identity.clone());
            let browser = player_on_time(part, &url);
            let run = measure(["play", &url, "-c", "3", "-d", "8s", "--warmup", "0s", "--insecure"]);
            let (_, line) = browser.says(" on time, ", 150, " frames");
            assert!(line.contains(" 0 stalls") && line.contains("troubles {}"), "{line}");
            assert_eq!(
                [run.total("played"), run.total("stalls")],
                [3.0, 0.0],
                "{:#}",
                run.summary["verdict"]
            );
            assert_eq!(run.total("hls.low_latency"), if part.is_some() { 3.0 } else { 0.0 });
            let by_http2 = if identity.is_some() { run.total("hls.requests") } else { 0.0 };
            assert_eq!(run.total("hls.http2_requests"), by_http2);
            let theirs = number(&line, "weir: ", " ms latency") / 1e3;
            let ours = seconds(&run, "hls.latency");
            // They began at other moments of a segment, or of a part; the page looks every 20 ms.
            let apart = part.unwrap_or(SEGMENT).as_secs_f64() + 0.05;
            assert!(
                (ours - theirs).abs() <= apart,
                "weir {ours} s, hls.js {theirs} s: {container:?} {part:?}"
            );
            // The origin's clock is weir's.
            assert!(seconds(&run, "hls.clock_ahead").abs() <= 1.0 && run.total("hls.clocks_apart") == 0.0);
            assert_eq!(run.total("hls.hints_unused"), 0.0);
        });
    }
}

#[test]
fn a_source_that_stands_still_for_six_seconds_is_one_stall_in_hls_js_and_in_weir() {
    // Two players are timed against each other.
    let _machine = quiet();
    undisturbed(|| {
        let part = Some(PART);
        let (_air, url) =
            on_air(SegmentContainer::FragmentedMp4, part, &["stall at=24s for=6s stream=live/a"], None);
        let browser = player(part, &url);
        let (_, before) = browser.says(" latency, ", 1, " on time");
        assert!(before.contains(" 0 stalls"), "{before}");
        let run = measure(["play", &url, "-c", "3", "-d", "30s", "--warmup", "0s"]);
        // What the page has said meanwhile comes first.
        let (_, line) = browser.says(" stalls, ", 1, " ms stalled");
        let frames = number(&line, " on time, ", " frames") as u64;
        let (_, line) = browser.says(" on time, ", frames + 60, " frames");
        assert!(line.contains(" 1 stalls"), "{line}");
        let theirs = number(&line, " stalls, ", " ms stalled") / 1e3;
        let ours = run.total("stalled") / 3.0;
        assert_eq!(run.total("stalls"), 3.0, "{:#}", run.summary["verdict"]);
        assert!((ours - theirs).abs() <= 0.5, "weir {ours} s, hls.js {theirs} s: {line}");
    });
}
