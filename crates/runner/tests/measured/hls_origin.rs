//! HLS of the origin: ffmpeg plays every frame that was published, and weir reports exactly the faults that are scripted.

use crate::hls::nothing_is_missing;
use crate::support::{Air, Publishing, Run, air, config, measure};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_origin::{ANY_PORT, HLS, HlsSettings, Identity, OriginConfig, SegmentContainer, SegmentKey};
use weir_runner::ErrorKind::{Invalid, Thresholds};
use weir_testing::{Nginx, program, self_signed, soon, undisturbed};

/// A stream on air that is cut each second, with these faults; the URL of its playlist.
fn on_air(hls: HlsSettings, faults: &[&str]) -> (Air, String) {
    let config = OriginConfig { hls, ..config(faults) };
    let air = air(&config.listening(&HLS, ANY_PORT));
    let url = format!("http://{}/live/a.m3u8", air.origin.address("hls").unwrap());
    (air, url)
}

fn settings() -> HlsSettings {
    HlsSettings { segment: Duration::from_secs(1), ..HlsSettings::default() }
}

#[test]
fn ffmpeg_plays_every_frame_of_each_container() {
    for (container, part, key) in [
        (SegmentContainer::TransportStream, None, None),
        (SegmentContainer::FragmentedMp4, None, None),
        (SegmentContainer::FragmentedMp4, Some(Duration::from_millis(200)), None),
        (SegmentContainer::TransportStream, Some(Duration::from_millis(200)), Some(key())),
        (SegmentContainer::FragmentedMp4, None, Some(key())),
    ] {
        // A window that holds the whole stream: ffmpeg reads it from its first segment on, to its end.
        let hls = HlsSettings { container, part, key, segments: 100, ..settings() };
        let (air, url) = on_air(hls, &[]);
        let received = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
        soon("four seconds are there", || received().is_some_and(|frames| frames >= 110));
        air.end_publisher();
        soon("the publisher has gone", || {
            air.origin.counts().stream("live/a").is_some_and(|stream| !stream.live)
        });
        let counts = air.origin.counts().stream("live/a").unwrap().received;
        let mut ffmpeg = program("ffmpeg", "ffmpeg");
        ffmpeg.args(["-v", "warning", "-live_start_index", "0", "-i", &url]);
        ffmpeg.args(["-map", "0", "-c", "copy", "-f", "framecrc", "-"]);
        let output = ffmpeg.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && err.is_empty(), "{err}");
        let frames = |kind: &str| {
            let header = out.lines().find(|line| line.starts_with("#media_type") && line.ends_with(kind));
            let track =
                header.unwrap_or_else(|| panic!("no {kind} in\n{out}")).split([' ', ':']).nth(1).unwrap();
            out.lines().filter(|line| line.starts_with(&format!("{track},"))).count() as u64
        };
        assert_eq!(
            (frames("video"), frames("audio")),
            (counts.video, counts.audio),
            "{container:?} {part:?} {key:?}"
        );
    }
}

#[test]
fn weir_plays_what_the_origin_cuts() {
    let (air, url) = on_air(settings(), &[]);
    let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 5, duration: 8s}}]"));
    assert_eq!(run.total("played"), 5.0, "{:#}", run.summary["verdict"]);
    for figure in ["hls.stale", "hls.refused", "hls.not_found", "hls.gaps", "hls.skipped", "hls.went_back"] {
        assert_eq!(run.total(figure), 0.0, "{figure}");
    }
    assert_eq!(run.total("hls.connections"), 5.0, "each viewer keeps its connection");
    assert_eq!(run.total("hls.target_exceeded"), 0.0);
    // What weir has taken as media is what the origin has sent as such, but for what was under way at the end.
    let sent = air.origin.counts().sent();
    let (loaded, sent) = (run.total("hls.segments"), sent.data as f64);
    assert!(loaded >= 5.0 * 6.0 && loaded <= sent && sent <= loaded + 5.0, "{loaded} of {sent}");
    nothing_is_missing(&run);
}

#[test]
fn weir_reports_the_faults_that_are_scripted() {
    let faults = ["status unit=2 code=404 viewers=1..3", "status unit=4 code=500 viewer=2"];
    let (_air, url) = on_air(settings(), &faults);
    let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 4, duration: 8s}}]"));
    assert_eq!(numbers(&run, ["hls.not_found", "hls.refused", "hls.stale"]), [3.0, 4.0, 0.0]);
}

#[test]
fn weir_reports_packets_and_frames_that_are_missing_inside_of_segments() {
    let faults = ["lose unit=4 packets=3 viewer=1", "lose unit=6 viewer=2"];
    let (_air, url) = on_air(settings(), &faults);
    let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 2, duration: 8s}}]"));
    assert_eq!(numbers(&run, ["hls.lost_packets", "hls.time_jumps", "hls.refused"]), [4.0, 0.0, 0.0]);
    assert!(run.summary["warnings"].to_string().contains("hls.lost_packets"), "{}", run.summary["warnings"]);
    for container in [SegmentContainer::TransportStream, SegmentContainer::FragmentedMp4] {
        for part in [None, Some(Duration::from_millis(200))] {
            // Late enough for all viewers to be there, and none is the last of its segment, whose end the next one shows.
            let faults =
                ["drop unit=285..287 kind=video stream=live/a", "drop unit=310 kind=video stream=live/a"];
            let (air, url) = on_air(HlsSettings { container, part, ..settings() }, &faults);
            let received = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
            soon("four seconds are there", || received().is_some_and(|frames| frames >= 120));
            let run = measure(&format!(
                "warmup: 0s\nthresholds: ['frames.ratio >= 99.9%']\nworkloads: [{{play: '{url}', clients: 2, duration: 11s}}]"
            ));
            let [frames, announced] = numbers(&run, ["frames", "frames_announced"]);
            assert_eq!(announced - frames, 2.0 * 4.0, "{container:?} {part:?}: {frames} of {announced}");
            assert_eq!(run.missed, Some(Thresholds), "{:?}", run.failures());
            assert_eq!(numbers(&run, ["hls.lost_packets", "hls.time_jumps", "hls.fragment_gaps"]), [0.0; 3]);
        }
    }
}

/// Parts are encrypted each on its own, and whole segments as a whole: witnesses read all of them.
#[test]
fn segments_and_parts_that_the_origin_encrypts_are_decrypted_by_witnesses() {
    for container in [SegmentContainer::TransportStream, SegmentContainer::FragmentedMp4] {
        for part in [None, Some(Duration::from_millis(200))] {
            let (air, url) = on_air(HlsSettings { container, part, key: Some(key()), ..settings() }, &[]);
            let received = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
            soon("four seconds are there", || received().is_some_and(|frames| frames >= 120));
            let run =
                measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 2, duration: 7s}}]"));
            assert_eq!(
                numbers(&run, ["played", "hls.keys", "hls.undecrypted", "stalls"]),
                [2.0, 2.0, 0.0, 0.0]
            );
            let [decrypted, inspected, segments, parts] =
                numbers(&run, ["hls.decrypted", "hls.inspected", "hls.segments", "hls.parts"]);
            assert_eq!(
                (decrypted, inspected),
                (segments + parts, segments + parts),
                "{container:?} {part:?}"
            );
            assert!(part.is_none() || parts >= 2.0 * 20.0, "{parts} parts");
            assert!(run.total("stamped") > 100.0, "{} frames had a stamp", run.total("stamped"));
            nothing_is_missing(&run);
        }
    }
}

fn key() -> SegmentKey {
    "307369787465656e2073656372657473".parse().unwrap()
}

#[test]
fn weir_reports_gaps_and_asks_for_none() {
    // Late enough for all viewers to be there, and all of them are told.
    let (air, url) = on_air(settings(), &["gap unit=10..11 stream=live/a"]);
    let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 3, duration: 16s}}]"));
    assert_eq!(numbers(&run, ["hls.gaps", "hls.not_found", "hls.refused"]), [6.0, 0.0, 0.0]);
    assert_eq!(air.origin.effects().len(), 2);
}

#[test]
fn a_playlist_that_stands_still_is_stale() {
    let (_air, url) = on_air(settings(), &["stale at=3s for=6s viewer=1"]);
    let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 2, duration: 14s}}]"));
    let stale = run.total("hls.stale");
    // Of 6 s the last 3.5 to 4.5 are stale, and the playlist is loaded every half second.
    assert!((4.0..=10.0).contains(&stale), "{stale}");
    assert_eq!(numbers(&run, ["hls.went_back", "hls.refused", "hls.not_found"]), [0.0; 3]);
}

/// Parts of 200 ms: each is asked for before it is there, and loaded once; a reload that is answered too early is counted, and harms nobody.
#[test]
fn viewers_of_parts_wait_for_each_and_count_answers_that_come_too_early() {
    for (container, faults, early) in [
        (SegmentContainer::FragmentedMp4, &[][..], 0.0),
        // Of each connection that playlists are asked for on.
        (SegmentContainer::TransportStream, &["early unit=5", "early unit=9"][..], 6.0),
    ] {
        let hls = HlsSettings { container, part: Some(Duration::from_millis(200)), ..settings() };
        let (air, url) = on_air(hls, faults);
        let parts = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
        soon("two seconds are there", || parts().is_some_and(|frames| frames >= 60));
        let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 3, duration: 8s}}]"));
        assert_eq!(numbers(&run, ["played", "hls.low_latency", "hls.early"]), [3.0, 3.0, early]);
        assert_eq!(numbers(&run, ["hls.refused", "hls.not_found", "hls.skipped", "hls.stale"]), [0.0; 4]);
        let [announced, loaded] = numbers(&run, ["hls.announced", "hls.loaded"]);
        assert!(
            loaded >= 3.0 * 7.0 && (0.0..=3.0 * 0.5).contains(&(announced - loaded)),
            "{announced} {loaded}"
        );
        // The same without parts.
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{url}', clients: 1, duration: 6s, low_latency: 'off'}}]"
        ));
        assert_eq!(numbers(&run, ["played", "hls.low_latency", "hls.parts"]), [1.0, 0.0, 0.0]);
    }
}

/// What the server holds, playlists and parts, is asked for beside each other on one connection of HTTP/2: of the origin's own, and
/// through nginx.
#[test]
fn viewers_of_parts_have_one_connection_by_http_2_and_two_by_http_1_1() {
    let hls = HlsSettings { part: Some(Duration::from_millis(200)), ..settings() };
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = self_signed(folder.path());
    let identity = Identity { chain: chain.clone().into(), key: key.into() };
    undisturbed(|| {
        let nginx = Nginx::start();
        let config = OriginConfig { hls: hls.clone(), ..config(&[]) }.listening(&HLS, ANY_PORT);
        let air = air(&config.listening_secure(&HLS, ANY_PORT, identity.clone()));
        let parts = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
        soon("two seconds are there", || parts().is_some_and(|frames| frames >= 60));
        let through = nginx.secure_way_to(air.origin.address("hls").unwrap(), "/live/a.m3u8");
        let own = format!("https://{}/live/a.m3u8", air.origin.address("hlss").unwrap());
        for (url, certificate) in [(through, nginx.certificate()), (own, chain.clone())] {
            for (version, connections) in [("2", 3.0), ("1.1", 6.0)] {
                let run = measure(&format!(
                    "warmup: 0s\ncacert: '{certificate}'\nworkloads: [{{play: '{url}', http_version: '{version}', clients: 3, duration: 8s}}]"
                ));
                let played = numbers(&run, ["played", "hls.low_latency", "hls.early"]);
                assert_eq!(played, [3.0, 3.0, 0.0], "{url} {version}: {:?}", run.failures());
                assert_eq!(
                    numbers(&run, ["hls.refused", "hls.not_found", "hls.skipped", "hls.stale"]),
                    [0.0; 4]
                );
                let [announced, loaded] = numbers(&run, ["hls.announced", "hls.loaded"]);
                assert!(
                    loaded >= 3.0 * 7.0 && (0.0..=3.0 * 0.5).contains(&(announced - loaded)),
                    "{url} {version}: {announced} {loaded}"
                );
                // By HTTP/1.1 a hint that is given up costs a connection.
                let begun = run.total("hls.connections");
                assert!(
                    begun == connections || version == "1.1" && begun > connections,
                    "{version}: {begun}"
                );
                let by_http2 = if version == "2" { run.total("hls.requests") } else { 0.0 };
                assert_eq!(run.total("hls.http2_requests"), by_http2, "{url} {version}");
            }
        }
    });
}

/// Faults are of requests, whichever stream of a connection they come by: each is found by HTTP/2 as by HTTP/1.1.
#[test]
fn the_faults_that_are_scripted_are_found_by_http_2() {
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = self_signed(folder.path());
    let identity = Identity { chain: chain.clone().into(), key: key.into() };
    let faults = [
        "status unit=2 code=404 viewers=1..3",
        "status unit=4 code=500 viewer=2",
        "lose unit=5 packets=3 viewer=1",
        // Late enough for all viewers to be there, and all of them are told.
        "gap unit=12..13 stream=live/a",
        // Not so late that what is named behind it has left the playlist.
        "stall unit=10 for=4s viewer=4",
    ];
    for version in ["2", "1.1"] {
        let config = OriginConfig { hls: settings(), ..config(&faults) };
        let air = air(&config.listening_secure(&HLS, ANY_PORT, identity.clone()));
        let url = format!("https://{}/live/a.m3u8", air.origin.address("hlss").unwrap());
        let run = measure(&format!(
            "warmup: 0s\ncacert: '{chain}'\nworkloads: [{{play: '{url}', clients: 4, duration: 22s, http_version: '{version}'}}]"
        ));
        assert_eq!(
            numbers(&run, ["hls.not_found", "hls.refused", "hls.stale"]),
            [3.0, 4.0, 0.0],
            "{version}"
        );
        assert_eq!(
            numbers(&run, ["hls.lost_packets", "hls.gaps", "hls.connections"]),
            [3.0, 8.0, 4.0],
            "{version}"
        );
        let by_http2 = if version == "2" { run.total("hls.requests") } else { 0.0 };
        assert_eq!(run.total("hls.http2_requests"), by_http2, "{version}");
        let slowest = run.spread("hls.segment_time")["max"].as_f64().unwrap();
        assert!((4.0..4.5).contains(&slowest), "{version}: a segment that is late by 4 s took {slowest} s");
        assert_eq!(air.origin.effects().len(), 4 + 1 + 2 + 1, "{version}: {:?}", air.origin.effects());
    }
}

/// A part that is late, and a reload that is answered too early.
#[test]
fn the_faults_of_parts_are_found_by_http_2() {
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = self_signed(folder.path());
    let identity = Identity { chain: chain.clone().into(), key: key.into() };
    let hls = HlsSettings { part: Some(Duration::from_millis(200)), ..settings() };
    for version in ["2", "1.1"] {
        let config = OriginConfig {
            hls: hls.clone(),
            ..config(&["early unit=9", "stall unit=20 for=2500ms viewer=1"])
        };
        let air = air(&config.listening_secure(&HLS, ANY_PORT, identity.clone()));
        let parts = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
        soon("two seconds are there", || parts().is_some_and(|frames| frames >= 60));
        let url = format!("https://{}/live/a.m3u8", air.origin.address("hlss").unwrap());
        let run = measure(&format!(
            "warmup: 0s\ncacert: '{chain}'\nworkloads: [{{play: '{url}', clients: 2, duration: 10s, http_version: '{version}'}}]"
        ));
        let found = numbers(&run, ["played", "hls.low_latency", "hls.early", "stalls"]);
        assert_eq!(found, [2.0, 2.0, 2.0, 1.0], "{version}: {:?}", run.failures());
        // Three parts of 200 ms are buffered, and at the most what lies between two pictures to begin with.
        let stalled = run.total("stalled");
        assert!((0.9..2.5).contains(&stalled), "{version}: a part that is late by 2.5 s cost {stalled} s");
        assert_eq!(numbers(&run, ["hls.refused", "hls.skipped", "hls.hints_unused"]), [0.0; 3], "{version}");
        assert_eq!(air.origin.effects().len(), 3, "{version}: {:?}", air.origin.effects());
    }
}

/// nginx ends a connection of HTTP/2 by GOAWAY (NO_ERROR) after `keepalive_requests`, while it still holds what it has taken before.
#[test]
fn connections_that_nginx_ends_after_twenty_requests_cost_viewers_of_parts_nothing() {
    undisturbed(|| {
        let nginx = Nginx::start();
        let hls = HlsSettings { part: Some(Duration::from_millis(200)), ..settings() };
        let (air, _) = on_air(hls, &[]);
        let parts = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
        soon("two seconds are there", || parts().is_some_and(|frames| frames >= 60));
        let url = nginx.briefly(&nginx.secure_way_to(air.origin.address("hls").unwrap(), "/live/a.m3u8"));
        let certificate = nginx.certificate();
        let run = measure(&format!(
            "warmup: 0s\ncacert: '{certificate}'\nworkloads: [{{play: '{url}', clients: 3, duration: 12s}}]"
        ));
        assert_eq!(
            numbers(&run, ["played", "hls.low_latency", "hls.early"]),
            [3.0, 3.0, 0.0],
            "{:?}",
            run.failures()
        );
        assert_eq!(numbers(&run, ["hls.refused", "hls.not_found", "hls.skipped", "hls.stale"]), [0.0; 4]);
        assert_eq!(numbers(&run, ["stalls", "starved", "hls.http2_waits"]), [0.0; 3], "{:?}", run.failures());
        let [announced, loaded] = numbers(&run, ["hls.announced", "hls.loaded"]);
        assert!(
            loaded >= 3.0 * 11.0 && (0.0..=3.0 * 0.5).contains(&(announced - loaded)),
            "{announced} {loaded}"
        );
        // 98: weir was the limit, and the run says nothing of nginx.
        assert!(
            [None, Some(Invalid)].contains(&run.missed) && run.slots("failed") == 0,
            "{:?}",
            run.failures()
        );
        let seen = nginx.take_versions();
        assert!(seen.iter().all(|[_, version, _]| version == "HTTP/2.0"), "{seen:?}");
        let mut by_port = BTreeMap::new();
        for [port, ..] in &seen {
            *by_port.entry(port).or_insert(0_u32) += 1;
        }
        // Ten requests a second and viewer.
        assert!(by_port.len() >= 3 * 4 && by_port.values().all(|requests| *requests <= 20), "{by_port:?}");
        assert_eq!(run.total("hls.connections"), by_port.len() as f64, "{by_port:?}");
    });
}

/// Streams of one folder are variants of one; a viewer plays what its link brings.
#[test]
fn viewers_change_to_the_variant_that_their_link_can_bring() {
    let (air, url) = on_air(settings(), &[]);
    let publish = |name: &str, rate: &str| {
        let url = air.url.replace("/live/a", &format!("/live/{name}"));
        Publishing::start(&url, &format!("gop: 1s, bitrate: {rate}"))
    };
    let _publishing = [publish("low", "300kbps"), publish("high", "2mbps")];
    for name in ["live/low", "live/high"] {
        let received = || air.origin.counts().stream(name).map(|stream| stream.received.video);
        soon("three seconds are there", || received().is_some_and(|frames| frames >= 90));
    }
    for (names, bandwidth, switches) in [("low,high", "50mbps", 1.0), ("high,low", "800kbps", 1.0)] {
        let url = url.replace("/a.m3u8", &format!("/{names}.m3u8"));
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{url}', clients: 2, duration: 9s, variant: auto, bandwidth: {bandwidth}}}]"
        ));
        assert_eq!(numbers(&run, ["played", "hls.switches"]), [2.0, 2.0 * switches], "{names}");
        assert_eq!(numbers(&run, ["hls.refused", "hls.skipped", "hls.went_back", "hls.stale"]), [0.0; 4]);
        // Most of what is played is of the last variant.
        let watched = run.spread("hls.variant_bandwidth")["p50"].as_f64().unwrap();
        assert_eq!(watched > 1e6, names == "low,high", "{watched}");
    }
}

/// By IPv6; and a witness reads the clock stamps of weir's publisher, whichever container they are in.
#[test]
fn witnesses_tell_the_latency_of_stamped_pictures_and_the_playlists_dates_agree() {
    for container in [SegmentContainer::TransportStream, SegmentContainer::FragmentedMp4] {
        let hls = HlsSettings { container, ..settings() };
        let config = OriginConfig { hls, ..config(&[]) };
        let air = air(&config.listening(&HLS, "[::1]:0".parse().unwrap()));
        let url = format!("http://{}/live/a.m3u8", air.origin.address("hls").unwrap());
        assert!(url.starts_with("http://[::1]:"), "{url}");
        let received = || air.origin.counts().stream("live/a").map(|stream| stream.received.video);
        soon("four seconds are there", || received().is_some_and(|frames| frames >= 110));
        let run = measure(&format!("warmup: 0s\nworkloads: [{{play: '{url}', clients: 2, duration: 8s}}]"));
        assert_eq!(numbers(&run, ["played", "stalls", "wall_latencies"]), [2.0, 0.0, 0.0]);
        let value = |figure: &str, statistic: &str| run.spread(figure)[statistic].as_f64().unwrap();
        // A frame comes with its segment, a second and a reload behind its capture at the most; those of the beginning are older.
        let latency = value("latency", "p50");
        assert!(run.total("stamped") >= 2.0 * 200.0 && (0.0..=2.5).contains(&latency), "{latency}");
        // What the playlist's dates say of the newest frame is no other clock's.
        let edge = value("hls.edge_latency", "p50");
        assert!((0.0..=2.5).contains(&edge), "{edge}");
        let shown = value("hls.latency", "p50");
        assert!((3.0..=4.6).contains(&shown), "{shown}");
    }
}

fn numbers<const COUNT: usize>(run: &Run, figures: [&str; COUNT]) -> [f64; COUNT] {
    figures.map(|figure| run.total(figure))
}
