//! Viewers of Partial Segments.

use super::*;

/// Playlists of segments of four parts of 500 ms; the first of each can be begun with.
fn low_latency(first: u64, whole: u64, behind: u32, left_out: u64) -> String {
    let part = |segment: u64, index: u32| {
        let independent = if index == 0 { ",INDEPENDENT=YES" } else { "" };
        format!("#EXT-X-PART:DURATION=0.5,URI=\"{segment}.{index}.mp4\"{independent}\n")
    };
    let skip =
        if left_out > 0 { format!("#EXT-X-SKIP:SKIPPED-SEGMENTS={left_out}\n") } else { String::new() };
    let segments = (first + left_out..whole).map(|segment| {
        let parts: String = (0..4).map(|index| part(segment, index)).collect();
        format!("{parts}#EXTINF:2.0,\n{segment}.mp4\n")
    });
    let behind: String = (0..behind).map(|index| part(whole, index)).collect();
    format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=12\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:{first}\n{skip}{}{behind}",
        segments.collect::<String>()
    )
}

/// A viewer of parts that has all there is: segment 5, and one part of segment 6.
fn playing_parts() -> Bench {
    let mut bench = Bench::start();
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.answer("200 OK", &low_latency(2, 6, 1, 0));
    for uri in ["5.mp4", "6.0.mp4"] {
        assert_eq!(bench.asked(), format!("/live/{uri}"));
        bench.answer("200 OK", "media");
    }
    assert_eq!(bench.asked(), "", "no playlist is asked for twice at once");
    assert_eq!(bench.asked_beside(), "");
    bench.wait(0.05);
    bench
}

#[test]
fn a_viewer_of_parts_asks_for_what_is_to_come_and_loads_each_part_once() {
    let mut bench = playing_parts();
    for (whole, behind) in [(6, 1), (6, 2), (6, 3), (7, 0), (7, 1)] {
        assert_eq!(
            bench.asked_beside(),
            format!("/live/a.m3u8?token=1&_HLS_msn={whole}&_HLS_part={behind}&_HLS_skip=YES")
        );
        // The server holds it until the part is there.
        bench.wait(0.5);
        let (segment, part) = (whole, behind);
        let (whole, behind) = if part == 3 { (whole + 1, 0) } else { (whole, part + 1) };
        bench.answer_beside("200 OK", &low_latency(2, whole, behind, 2));
        assert_eq!(bench.asked(), format!("/live/{segment}.{part}.mp4"));
        bench.answer("200 OK", "media");
    }
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PLAYED, LOW_LATENCY, SEGMENTS, PARTS, DELTAS]), [1, 1, 1, 6, 5]);
    assert_eq!(counts(&figures, [STALLS, STALE, REFUSED, EARLY, SKIPPED]), [0; 5]);
    assert_eq!(counts(&figures, [LOADED, ANNOUNCED]), [5_000_000; 2]);
    assert_eq!(figures.spread(BLOCK_TIME).len(), 5);
}

#[test]
fn a_server_that_answers_at_once_is_asked_once_a_part_and_one_that_refuses_is_asked_plainly() {
    let mut bench = playing_parts();
    let blocking = "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=1&_HLS_skip=YES";
    for _ in 0..4 {
        assert_eq!(bench.asked_beside(), blocking);
        bench.answer_beside("200 OK", &low_latency(2, 6, 1, 0));
        assert_eq!(bench.asked_beside(), "", "it is not asked at once again");
        bench.wait(0.5);
    }
    assert_eq!(bench.asked_beside(), blocking);
    bench.answer_beside("400 Bad Request", "");
    assert_eq!(bench.asked_beside(), "");
    bench.wait(1.0);
    assert_eq!(bench.asked_beside(), "/live/a.m3u8?token=1", "as after a publisher came back");
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [EARLY, REFUSED, RELOADS, STALE]), [4, 1, 4, 0]);
}

#[test]
fn a_part_that_is_not_there_is_counted_and_a_held_request_may_take_three_target_durations_longer() {
    let mut bench = playing_parts();
    bench.asked_beside();
    bench.wait(0.5);
    bench.answer_beside("200 OK", &low_latency(2, 6, 2, 0));
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.answer("404 Not Found", "");
    assert_eq!(bench.asked_beside(), "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=2&_HLS_skip=YES");
    let request = PlayOptions::default().timeouts.request.as_secs_f64();
    bench.wait(request + 5.9);
    assert!(!bench.rig.closed, "the source stands still, and the server says so in its time");
    bench.wait(0.2);
    assert!(bench.rig.closed);
    let (figures, failure) = bench.end();
    assert_eq!(counts(&figures, [NOT_FOUND, REFUSED, STALLS]), [1, 1, 1]);
    assert_eq!(failure.unwrap().0, Failure::RequestTimeout);
}

/// The same with the part that is to come as a hint.
pub(super) fn hinting(first: u64, whole: u64, behind: u32) -> String {
    let playlist = low_latency(first, whole, behind, 0);
    format!("{playlist}#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"{whole}.{behind}.mp4\"\n")
}

#[test]
fn a_part_that_is_hinted_at_is_asked_for_before_it_is_there_and_loaded_once() {
    let mut bench = Bench::start();
    bench.asked();
    bench.answer("200 OK", &hinting(2, 6, 1));
    for uri in ["5.mp4", "6.0.mp4"] {
        assert_eq!(bench.asked(), format!("/live/{uri}"));
        bench.answer("200 OK", "media");
    }
    bench.wait(0.05);
    for (part, first_comes) in [(1, "part"), (2, "playlist")] {
        assert_eq!(bench.asked(), format!("/live/6.{part}.mp4"), "the server holds it");
        assert_eq!(
            bench.asked_beside(),
            format!("/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part={part}&_HLS_skip=YES")
        );
        bench.wait(0.5);
        if first_comes == "part" {
            bench.answer("200 OK", "media");
            assert_eq!(bench.asked(), "");
        }
        bench.answer_beside("200 OK", &hinting(2, 6, part + 1));
        if first_comes == "playlist" {
            assert_eq!(bench.asked(), "", "it is under way");
            bench.answer("200 OK", "media");
        }
    }
    // The segment ends without the part that was hinted at: what the server goes on to hold is given up.
    assert_eq!(bench.asked(), "/live/6.3.mp4");
    bench.asked_beside();
    bench.wait(0.1);
    let end = low_latency(2, 7, 1, 0).replace("#EXT-X-PART:DURATION=0.5,URI=\"6.3.mp4\"\n", "");
    bench.answer_beside("200 OK", &end);
    assert!(bench.rig.reopened.is_some(), "its link goes with it");
    bench.tell(Event::Connected);
    assert_eq!(bench.asked(), "/live/7.0.mp4");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PARTS, SEGMENTS, HINTS_UNUSED, REFUSED, CONNECTIONS]), [3, 1, 1, 0, 3]);
    assert_eq!(figures.spread(HINT_TIME).len(), 2);
}

#[test]
fn a_hint_that_comes_to_nothing_harms_nobody() {
    let mut bench = Bench::start();
    bench.asked();
    bench.answer("200 OK", &hinting(2, 6, 1));
    for _ in ["5.mp4", "6.0.mp4"] {
        bench.asked();
        bench.answer("200 OK", "media");
    }
    bench.wait(0.05);
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.answer("404 Not Found", "");
    assert_eq!(bench.asked(), "", "it is not asked for again before it is named");
    bench.asked_beside();
    bench.answer_beside("200 OK", &hinting(2, 6, 2));
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.answer("200 OK", "media");
    assert_eq!(bench.asked(), "/live/6.2.mp4");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [HINTS_UNUSED, NOT_FOUND, REFUSED, PARTS]), [1, 0, 0, 2]);
}

/// A viewer of parts that has all there is, and has asked for the part that is hinted at.
fn waiting_for_a_hint() -> Bench {
    let mut bench = Bench::start();
    bench.asked();
    bench.answer("200 OK", &hinting(2, 6, 1));
    for _ in ["5.mp4", "6.0.mp4"] {
        bench.asked();
        bench.answer("200 OK", "media");
    }
    bench.wait(0.05);
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.asked_beside();
    bench
}

#[test]
fn a_hint_whose_link_is_closed_is_unused_and_its_part_loaded_as_it_is_named() {
    let mut bench = waiting_for_a_hint();
    // It is asked for once more, and then given up.
    for _ in 0..2 {
        bench.tell(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
        bench.wait(0.01);
        if bench.rig.reopened.take().is_some() {
            bench.tell(Event::Connected);
        }
        assert!(!bench.rig.closed);
    }
    bench.asked();
    bench.answer_beside("200 OK", &hinting(2, 6, 2));
    bench.wait(0.01);
    bench.tell(Event::Connected);
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.answer("200 OK", "media");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [HINTS_UNUSED, REFUSED, PARTS]), [1, 0, 2]);
}

#[test]
fn a_hint_that_has_been_named_may_be_held_as_long_as_before() {
    let mut bench = waiting_for_a_hint();
    bench.wait(0.5);
    bench.answer_beside("200 OK", &hinting(2, 6, 2));
    let request = PlayOptions::default().timeouts.request.as_secs_f64();
    bench.wait(request + 5.0);
    assert!(!bench.rig.closed, "it was asked for before it was there");
    bench.wait(0.6);
    assert_eq!(bench.end().1.unwrap().0, Failure::RequestTimeout);
}

/// A playlist without its lines of these parts.
fn without(playlist: &str, parts: &[&str]) -> String {
    let names = |line: &str| parts.iter().any(|part| line.contains(&format!("\"{part}.mp4\"")));
    playlist.lines().filter(|line| !names(line)).map(|line| format!("{line}\n")).collect()
}

/// A viewer that has loaded two parts of segment 6.
fn within_a_segment() -> Bench {
    let mut bench = playing_parts();
    bench.asked_beside();
    bench.answer_beside("200 OK", &low_latency(2, 6, 2, 0));
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.answer("200 OK", "media");
    bench.wait(0.1);
    assert!(bench.asked_beside().contains("_HLS_msn=6&_HLS_part=2"));
    bench
}

/// A late viewer is given this playlist. What it loads, and what that comes to.
fn late(playlist: &str, uris: [&str; 3], expected: [u64; 5]) {
    let mut bench = within_a_segment();
    bench.answer_beside("200 OK", playlist);
    for uri in uris {
        assert_eq!(bench.asked(), format!("/live/{uri}.mp4"));
        bench.answer("200 OK", "media");
    }
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [SKIPPED, SEGMENTS, PARTS, LOADED, ANNOUNCED]), expected);
}

#[test]
fn a_late_viewer_goes_on_with_the_part_that_is_next_where_those_that_it_has_left_the_playlist() {
    let playlist = without(&low_latency(2, 8, 0, 0), &["6.0", "6.1"]);
    late(&playlist, ["6.2", "6.3", "7"], [0, 2, 4, 6_000_000, 6_000_000]);
}

#[test]
fn a_part_that_left_the_playlist_before_its_viewer_came_is_skipped_and_none_is_loaded_in_its_place() {
    let playlist = without(&low_latency(2, 8, 1, 0), &["6.0", "6.1", "6.2"]);
    late(&playlist, ["6.3", "7", "8.0"], [1, 2, 4, 6_000_000, 6_500_000]);
}

#[test]
fn a_server_that_names_the_last_two_parts_alone_is_asked_for_the_one_behind_them() {
    let mut bench = within_a_segment();
    let cut = low_latency(2, 6, 3, 0);
    bench.answer_beside("200 OK", &without(&cut, &["6.0"]));
    assert_eq!(bench.asked(), "/live/6.2.mp4");
    bench.answer("200 OK", "media");
    bench.wait(0.1);
    assert!(bench.asked_beside().contains("_HLS_msn=6&_HLS_part=3"));
    bench.answer_beside("200 OK", &without(&low_latency(2, 7, 0, 0), &["6.0", "6.1"]));
    assert_eq!(bench.asked(), "/live/6.3.mp4");
    bench.answer("200 OK", "media");
    bench.wait(0.1);
    assert!(bench.asked_beside().contains("_HLS_msn=7&_HLS_part=0"));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(
        counts(&figures, [WENT_BACK, EARLY, SKIPPED, LOADED, ANNOUNCED]),
        [0, 0, 0, 4_000_000, 4_000_000]
    );
}

#[test]
fn a_viewer_that_begins_in_a_segment_whose_first_parts_left_the_playlist_is_announced_what_it_loads() {
    let mut bench = Bench::start();
    bench.asked();
    let begun = without(&low_latency(2, 6, 1, 0), &["5.0", "5.1"]);
    let begun = begun.replace("\"5.2.mp4\"", "\"5.2.mp4\",INDEPENDENT=YES");
    bench.answer("200 OK", &begun);
    for uri in ["5.2", "5.3", "6.0"] {
        assert_eq!(bench.asked(), format!("/live/{uri}.mp4"));
        bench.answer("200 OK", "media");
    }
    bench.wait(0.1);
    assert!(bench.asked_beside().contains("_HLS_msn=6&_HLS_part=1"));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [LOW_LATENCY, SKIPPED, LOADED, ANNOUNCED]), [1, 0, 1_500_000, 1_500_000]);
}

/// A queue takes sixteen of the parts at a time; those behind them are read off a playlist that has lost some of those.
#[test]
fn a_viewer_of_many_parts_loads_each_once_while_the_playlist_moves_on() {
    let part = |index: u32| {
        let independent = if index == 4 { ",INDEPENDENT=YES" } else { "" };
        format!("#EXT-X-PART:DURATION=0.25,URI=\"0.{index}.mp4\"{independent}\n")
    };
    let playlist = |from: u32| {
        let parts: String = (from..32).map(part).collect();
        format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:8\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=7\n#EXT-X-PART-INF:PART-TARGET=0.25\n{parts}#EXTINF:8,\n0.mp4\n"
        )
    };
    let mut bench = Bench::start();
    bench.asked();
    bench.answer("200 OK", &playlist(2));
    let mut loaded = Vec::new();
    for _ in 0..40 {
        let asked = bench.asked();
        if asked.ends_with(".mp4") {
            loaded
                .push(asked.trim_start_matches("/live/0.").trim_end_matches(".mp4").parse::<u32>().unwrap());
            bench.answer("200 OK", "media");
        }
        bench.wait(0.05);
        if !bench.asked_beside().is_empty() {
            bench.answer_beside("200 OK", &playlist(15));
        }
    }
    assert_eq!(loaded, (4..32).collect::<Vec<_>>());
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [SKIPPED, LOADED, ANNOUNCED]), [0, 7_000_000, 7_000_000]);
}
