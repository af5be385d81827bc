use super::*;
use crate::hls::playlist::{Key, PreloadHint, Resource, StartOffset};
use proptest::prelude::*;
use std::sync::Arc;

const PLAIN: Directives = Directives { until: None, skips: false };

fn at(seconds: f64) -> Moment {
    Moment::from_nanos((seconds * 1e9) as u64 + 1_000_000_000_000)
}

/// Segments of two seconds each with these numbers.
fn playlist(numbers: std::ops::Range<u64>) -> MediaPlaylist {
    let segment = |number: u64| Segment {
        resource: Resource { uri: format!("{number}.ts"), range: None },
        duration: Duration::from_secs(2),
        map: None,
        key: None,
        map_key: None,
        number: 0,
        is_sealed: false,
        names_key: true,
        date: None,
        is_gap: false,
        is_part: false,
        is_discontinuous: false,
        follows_skip: false,
    };
    MediaPlaylist {
        target: Duration::from_secs(2),
        first: numbers.start,
        segments: numbers.map(segment).collect(),
        ..MediaPlaylist::default()
    }
}

fn queued(schedule: &mut Schedule) -> Vec<String> {
    std::iter::from_fn(|| schedule.pop()).map(|it| it.resource.uri).collect()
}

proptest! {
    #[test]
    fn playlists_in_any_order_keep_little_and_are_not_asked_for_at_once(playlists in prop::collection::vec(
        (
            prop_oneof![0..20u64, Just(u64::MAX), Just(u64::MAX - 2)],
            0..40usize,
            any::<bool>(),
            prop::option::of((0..6usize, 0..3usize, any::<bool>())),
        ),
        0..12,
    )) {
        let text = |(first, count, has_ended, parts): &(u64, usize, bool, Option<(usize, usize, bool)>)| {
            let end = if *has_ended { "#EXT-X-ENDLIST" } else { "" };
            let part = |number: usize| {
                let independent = if number == 0 { ",INDEPENDENT=YES" } else { "" };
                format!("#EXT-X-PART:DURATION=0.5,URI=\"p\"{independent}\n")
            };
            let (head, each, behind) = parts.map_or_else(Default::default, |(behind, left_out, blocks)| {
                let control = if blocks { "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12\n" } else { "" };
                let head = format!("#EXT-X-PART-INF:PART-TARGET=0.5\n{control}#EXT-X-SKIP:SKIPPED-SEGMENTS={left_out}\n");
                ((head), (0..4).map(part).collect::<String>(), (0..behind).map(part).collect::<String>())
            });
            let segments = format!("{each}#EXTINF:2,\na.ts\n").repeat(*count);
            format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{first}\n{head}{segments}{behind}{end}")
        };
        crate::harness::playlists(playlists.iter().map(text).collect::<Vec<_>>().join("\0").as_bytes());
    }
}

#[test]
fn a_viewer_starts_three_target_durations_from_the_end_and_takes_what_follows_once() {
    let mut schedule = Schedule::new(at(0.0), true);
    let update = schedule.take(&playlist(10..16), PLAIN, at(0.0), at(0.1));
    assert_eq!(update.starts_with, Some(Duration::from_secs(6)));
    assert_eq!(update.announced, Duration::from_secs(6));
    assert_eq!(queued(&mut schedule), ["13.ts", "14.ts", "15.ts"]);
    let update = schedule.take(&playlist(11..17), PLAIN, at(2.0), at(2.1));
    assert_eq!((update.announced, update.starts_with), (Duration::from_secs(2), None));
    assert_eq!(queued(&mut schedule), ["16.ts"]);
}

#[test]
fn a_playlist_is_loaded_again_after_a_target_duration_or_half_of_one_if_it_has_not_changed() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&playlist(0..6), PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    assert_eq!(schedule.reload_at(at(0.1), false), Some(at(2.0)));
    schedule.take(&playlist(0..6), PLAIN, at(2.0), at(2.1));
    assert_eq!(schedule.reload_at(at(2.1), false), Some(at(3.0)));
}

#[test]
fn a_playlist_is_stale_that_was_asked_for_two_and_a_half_target_durations_after_its_last_change() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&playlist(0..6), PLAIN, at(0.0), at(0.1));
    for (asked, stale) in [(2.0, false), (3.0, false), (5.09, false), (5.1, true), (6.1, true)] {
        assert_eq!(
            schedule.take(&playlist(0..6), PLAIN, at(asked), at(asked + 5.0)).is_stale,
            stale,
            "{asked}"
        );
    }
    // It goes on, and is not stale any more; nor is one that has ended.
    assert!(!schedule.take(&playlist(0..7), PLAIN, at(7.0), at(7.1)).is_stale);
    let ended = || MediaPlaylist { has_ended: true, ..playlist(0..7) };
    schedule.take(&ended(), PLAIN, at(8.0), at(8.1));
    assert!(!schedule.take(&ended(), PLAIN, at(100.0), at(100.1)).is_stale);
    queued(&mut schedule);
    assert!(schedule.is_over() && !schedule.is_recording());
    assert_eq!(schedule.reload_at(at(101.0), false), None);
}

#[test]
fn segments_that_left_the_playlist_are_skipped_and_counted() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&playlist(0..3), PLAIN, at(0.0), at(0.0));
    queued(&mut schedule);
    let update = schedule.take(&playlist(5..8), PLAIN, at(9.0), at(9.0));
    assert_eq!((update.skipped, update.announced), (2, Duration::from_secs(6)));
    assert_eq!(queued(&mut schedule), ["5.ts", "6.ts", "7.ts"]);
}

#[test]
fn an_old_copy_changes_nothing_and_a_server_that_counts_from_the_beginning_is_joined_again() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&playlist(10..16), PLAIN, at(0.0), at(0.0));
    queued(&mut schedule);
    let update = schedule.take(&playlist(9..15), PLAIN, at(2.0), at(2.0));
    assert!(update.went_back && !update.is_stale && queued(&mut schedule).is_empty());
    schedule.take(&playlist(0..4), PLAIN, at(4.0), at(4.0));
    assert!(queued(&mut schedule).is_empty());
    let update = schedule.take(&playlist(0..5), PLAIN, at(5.0), at(5.0));
    assert!(update.went_back && !update.is_stale);
    assert_eq!(queued(&mut schedule), ["2.ts", "3.ts", "4.ts"]);
}

#[test]
fn a_recording_is_read_from_its_beginning_and_its_playlist_is_loaded_once() {
    let mut schedule = Schedule::new(at(0.0), true);
    let recording = |end| MediaPlaylist { has_ended: true, ..playlist(0..end) };
    schedule.take(&recording(40), PLAIN, at(0.0), at(0.0));
    assert_eq!(schedule.reload_at(at(1.0), false), None);
    assert_eq!(queued(&mut schedule).len(), 40);
    assert_eq!(schedule.reload_at(at(80.0), false), None);
    assert!(schedule.is_over() && schedule.is_recording());
    // A very long one, some thousands of segments at a time.
    let mut schedule = Schedule::new(at(0.0), true);
    let recording = || recording(10_000);
    let update = schedule.take(&recording(), PLAIN, at(0.0), at(0.0));
    assert_eq!((update.starts_with, update.announced.as_secs()), (Some(Duration::from_secs(6)), 20_000));
    assert_eq!(schedule.queued(), MOST_QUEUED_OF_ENDED);
    let mut all = queued(&mut schedule);
    while schedule.reload_at(at(1.0), false).is_some() {
        assert_eq!(schedule.take(&recording(), PLAIN, at(1.0), at(1.0)).announced, Duration::ZERO);
        all.extend(queued(&mut schedule));
    }
    assert_eq!(all.len(), 10_000);
    assert!(schedule.is_over() && schedule.is_recording());
}

#[test]
fn a_variant_that_lags_goes_back_nowhere_and_announces_nothing_twice() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&playlist(0..6), PLAIN, at(0.0), at(0.1));
    assert_eq!(queued(&mut schedule).len(), 3);
    schedule.switch(at(1.0));
    for (end, announced, new) in [(5, 0, 0), (5, 0, 0), (6, 0, 0), (7, 2, 1)] {
        let update = schedule.take(&playlist(0..end), PLAIN, at(end as f64), at(end as f64 + 0.1));
        assert_eq!((update.went_back, update.announced.as_secs(), update.skipped), (false, announced, 0));
        assert_eq!(queued(&mut schedule).len(), new, "{end}");
    }
    // The next one is not behind: an old copy of it is one.
    schedule.switch(at(8.0));
    assert!(!schedule.take(&playlist(2..8), PLAIN, at(8.0), at(8.1)).went_back);
    assert!(schedule.take(&playlist(1..7), PLAIN, at(9.0), at(9.1)).went_back);
}

#[test]
fn a_variant_with_other_numbers_is_gone_on_with_as_far_from_its_end() {
    for first in [5_000, 100_000_000, 0] {
        let mut schedule = Schedule::new(at(0.0), true);
        schedule.take(&playlist(100..110), PLAIN, at(0.0), at(0.1));
        assert_eq!(schedule.pop().unwrap().resource.uri, "107.ts");
        schedule.switch(at(1.0));
        let update = schedule.take(&playlist(first..first + 10), PLAIN, at(1.0), at(1.1));
        assert_eq!((update.went_back, update.skipped, update.starts_with), (false, 0, None));
        assert_eq!(update.announced, Duration::ZERO);
        assert_eq!(queued(&mut schedule), [format!("{}.ts", first + 8), format!("{}.ts", first + 9)]);
        let update = schedule.take(&playlist(first + 1..first + 11), PLAIN, at(3.0), at(3.1));
        assert_eq!((update.went_back, update.announced.as_secs()), (false, 2));
        assert_eq!(queued(&mut schedule), [format!("{}.ts", first + 10)]);
    }
    // A recording is over where its other variant is, though that has fewer segments.
    let recording = |numbers| MediaPlaylist { has_ended: true, ..playlist(numbers) };
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&recording(0..6), PLAIN, at(0.0), at(0.1));
    schedule.pop();
    schedule.switch(at(1.0));
    schedule.take(&recording(0..5), PLAIN, at(1.0), at(1.1));
    assert_eq!(queued(&mut schedule), ["1.ts", "2.ts", "3.ts", "4.ts"]);
    assert!(schedule.is_over());
}

#[test]
fn a_recording_whose_playlist_is_refused_or_shrinks_is_asked_for_at_the_usual_pace() {
    let recording = |end| MediaPlaylist { has_ended: true, ..playlist(0..end) };
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&recording(5_000), PLAIN, at(0.0), at(0.0));
    queued(&mut schedule);
    assert_eq!(schedule.reload_at(at(30.0), false), Some(at(30.0)));
    schedule.refused(at(30.0));
    assert_eq!(schedule.reload_at(at(30.1), false), Some(at(31.0)));
    assert!(schedule.take(&recording(8), PLAIN, at(31.0), at(31.1)).starts_with.is_some());
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&recording(5_000), PLAIN, at(0.0), at(0.0));
    queued(&mut schedule);
    assert!(schedule.take(&recording(8), PLAIN, at(1.0), at(1.1)).went_back);
    assert_eq!(schedule.reload_at(at(1.1), false), Some(at(2.0)));
    assert!(!schedule.is_over());
}

/// Segments of four parts of half a second, the first part of each with a picture to begin with; whole segments up to `whole`, and
/// parts behind them.
fn parts(first: u64, whole: u64, behind: u32) -> MediaPlaylist {
    let [half, hold_back] = [500, 1_500].map(Duration::from_millis);
    let part = |segment: u64, index: u32| Part {
        segment,
        index,
        begin: half * index,
        media: Segment {
            resource: Resource { uri: format!("{segment}.{index}"), range: None },
            duration: half,
            map: None,
            key: None,
            map_key: None,
            number: 0,
            is_sealed: false,
            names_key: true,
            date: None,
            is_gap: false,
            is_part: true,
            is_discontinuous: false,
            follows_skip: false,
        },
        is_independent: index == 0,
    };
    let listed =
        (whole.saturating_sub(2).max(first)..whole).flat_map(|segment| (0..4).map(move |it| (segment, it)));
    let listed = listed.chain((0..behind).map(|it| (whole, it)));
    MediaPlaylist {
        parts: listed.map(|(segment, index)| part(segment, index)).collect(),
        low_latency: Some(LowLatency { part_target: half, hold_back }),
        can_block: true,
        skip_until: Some(Duration::from_secs(12)),
        ..playlist(first..whole)
    }
}

#[test]
fn a_viewer_of_parts_starts_at_a_picture_behind_the_hold_back_and_asks_for_what_is_to_come() {
    let mut schedule = Schedule::new(at(0.0), true);
    let update = schedule.take(&parts(0, 6, 1), PLAIN, at(0.0), at(0.1));
    // 1.5 s before the end is in the middle of a segment: its beginning is 2.5 s before it.
    assert_eq!(update.starts_with, Some(Duration::from_millis(2_500)));
    assert!(update.starts_with_parts && update.announced == Duration::from_millis(2_500));
    // The segment is whole: one request instead of four.
    assert_eq!(schedule.reload_at(at(0.1), false), None, "what is there comes first");
    assert_eq!(queued(&mut schedule), ["5.ts", "6.0"]);
    assert_eq!(schedule.reload_at(at(0.1), false), Some(at(0.05)));
    let asked = schedule.directives(at(0.1));
    assert_eq!(asked, Directives { until: Some((6, Some(1))), skips: true });
    for (next, announced) in [(2, ["6.1"]), (3, ["6.2"])] {
        let update = schedule.take(&parts(0, 6, next), asked, at(0.1), at(0.5));
        assert_eq!((update.announced.as_millis(), update.is_early), (500, false));
        assert_eq!(queued(&mut schedule), announced);
    }
    // The segment is whole now, and its last part is all that is new of it.
    let update = schedule.take(&parts(0, 7, 0), asked, at(0.5), at(1.0));
    assert_eq!((update.announced.as_millis(), queued(&mut schedule)), (500, vec!["6.3".to_owned()]));
    assert_eq!(schedule.directives(at(1.0)).until, Some((7, Some(0))));
    let update = schedule.take(&parts(0, 7, 1), asked, at(1.0), at(1.5));
    assert_eq!((update.announced.as_millis(), queued(&mut schedule)), (500, vec!["7.0".to_owned()]));
}

#[test]
fn a_viewer_that_starts_within_a_segment_is_announced_the_rest_of_it() {
    let mut schedule = Schedule::new(at(0.0), true);
    let mut begun = parts(0, 6, 3);
    begun
        .parts
        .iter_mut()
        .filter(|it| it.segment == 5 && it.index == 2)
        .for_each(|it| it.is_independent = true);
    begun.low_latency = begun.low_latency.map(|it| LowLatency { hold_back: Duration::from_secs(2), ..it });
    let update = schedule.take(&begun, PLAIN, at(0.0), at(0.1));
    assert_eq!(update.announced, Duration::from_millis(2_500));
    assert_eq!(queued(&mut schedule), ["5.2", "5.3", "6.0", "6.1", "6.2"]);
}

#[test]
fn a_server_that_answers_before_there_is_anything_new_is_not_asked_at_once_again() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&parts(0, 6, 1), PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    let asked = schedule.directives(at(0.1));
    let update = schedule.take(&parts(0, 6, 1), asked, at(0.1), at(0.11));
    assert!(update.is_early && !update.is_stale);
    assert_eq!(schedule.reload_at(at(0.11), false), Some(at(0.6)), "a part later");
    // After a refusal the playlist is asked for as it is.
    schedule.refused(at(0.6));
    assert_eq!(schedule.directives(at(1.6)), PLAIN);
    assert!(!schedule.take(&parts(0, 6, 2), PLAIN, at(1.6), at(1.7)).is_early);
    assert_eq!(queued(&mut schedule), ["6.1"]);
    assert_eq!(schedule.directives(at(1.7)).until, Some((6, Some(2))));
    // What is old is not left out.
    assert!(!schedule.directives(at(8.0)).skips);
}

#[test]
fn what_a_delta_leaves_out_is_asked_for_and_parts_that_have_gone_are_skipped() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&parts(0, 6, 1), PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    let delta = |first, whole, behind| MediaPlaylist { left_out: first, ..parts(first, whole, behind) };
    assert!(schedule.take(&delta(4, 6, 2), PLAIN, at(0.2), at(0.3)).is_delta);
    assert_eq!(queued(&mut schedule), ["6.1"]);
    let update = schedule.take(&delta(8, 10, 0), PLAIN, at(0.4), at(0.5));
    assert_eq!((update.skipped, queued(&mut schedule).len()), (0, 0));
    assert!(!schedule.directives(at(0.5)).skips, "the next is whole");
    // Segment 6 is there, its parts are not any more: half of it was loaded, the rest is lost.
    let update = schedule.take(&parts(0, 10, 0), PLAIN, at(1.0), at(1.1));
    assert_eq!(queued(&mut schedule), ["7.ts", "8.ts", "9.ts"]);
    assert_eq!(update.skipped, 1);
}

#[test]
fn who_wants_no_parts_plays_whole_segments_and_asks_at_the_usual_pace() {
    let mut schedule = Schedule::new(at(0.0), false);
    let update = schedule.take(&parts(0, 6, 1), PLAIN, at(0.0), at(0.1));
    assert_eq!((update.starts_with, update.starts_with_parts), (Some(Duration::from_secs(6)), false));
    assert_eq!(queued(&mut schedule), ["3.ts", "4.ts", "5.ts"]);
    assert_eq!((schedule.directives(at(0.1)), schedule.reload_at(at(0.1), false)), (PLAIN, Some(at(2.0))));
}

#[test]
fn parts_of_a_server_that_holds_no_request_are_left_alone() {
    let mut schedule = Schedule::new(at(0.0), true);
    let update =
        schedule.take(&MediaPlaylist { can_block: false, ..parts(0, 6, 1) }, PLAIN, at(0.0), at(0.1));
    assert_eq!((update.starts_with, update.starts_with_parts), (Some(Duration::from_secs(6)), false));
    assert_eq!(queued(&mut schedule), ["3.ts", "4.ts", "5.ts"]);
}

#[test]
fn a_viewer_of_segments_begins_no_closer_to_the_end_than_the_server_says() {
    let mut schedule = Schedule::new(at(0.0), true);
    let held = MediaPlaylist { hold_back: Some(Duration::from_secs(9)), ..playlist(0..8) };
    assert_eq!(schedule.take(&held, PLAIN, at(0.0), at(0.1)).starts_with, Some(Duration::from_secs(10)));
}

#[test]
fn a_jump_that_no_playlist_can_bridge_is_another_stream_and_nothing_was_skipped() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&playlist(0..6), PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    let update = schedule.take(&playlist(1_795_000_000..1_795_000_006), PLAIN, at(2.0), at(2.1));
    assert_eq!((update.skipped, update.starts_with), (0, Some(Duration::from_secs(6))));
    assert_eq!(queued(&mut schedule).len(), 3);
}

#[test]
fn a_viewer_that_is_behind_asks_for_what_is_there_and_never_at_once_again() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&parts(0, 6, 1), PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    let asked = schedule.directives(at(0.1));
    assert!(asked.until.is_some());
    // It was away: more is named than is queued at a time.
    let long = MediaPlaylist { parts: Vec::new(), ..parts(0, 40, 0) };
    schedule.take(&long.clone(), asked, at(0.1), at(0.11));
    assert_eq!(queued(&mut schedule).len(), MOST_QUEUED);
    assert_eq!(schedule.directives(at(0.12)), PLAIN, "a request for what is to come would be held");
    assert_eq!(schedule.reload_at(at(0.12), false), Some(at(0.15)));
    schedule.take(&long, PLAIN, at(0.15), at(0.16));
    assert_eq!(schedule.reload_at(at(0.2), false), None, "what is there comes first");
}

#[test]
fn a_delta_has_the_map_that_it_leaves_out_and_an_answer_that_was_held_is_not_early() {
    let map = Arc::new(Resource { uri: "init.mp4".to_owned(), range: None });
    let mut whole = parts(0, 6, 1);
    whole.parts.iter_mut().for_each(|it| it.media.map = Some(Arc::clone(&map)));
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&whole, PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    let asked = schedule.directives(at(0.1));
    let mut delta = MediaPlaylist { left_out: 2, ..parts(2, 6, 2) };
    let resource = Resource { uri: "next".to_owned(), range: None };
    delta.hint = Some(PreloadHint { resource, map: None, is_encrypted: false, names_key: true });
    schedule.take(&delta, asked, at(0.1), at(0.6));
    assert_eq!(schedule.pop().unwrap().map.as_ref(), Some(&map));
    assert_eq!(schedule.hint.as_ref().unwrap().map, Some(map));
    // The source stands still: the server has held the request, and gives what it has.
    let asked = schedule.directives(at(0.6));
    let update = schedule.take(&parts(0, 6, 2), asked, at(0.6), at(6.6));
    assert!(!update.is_early && schedule.reload_at(at(6.6), false) == Some(at(1.1)));
}

#[test]
fn what_a_delta_names_has_the_key_that_it_leaves_out_unless_it_says_otherwise() {
    let key = Arc::new(Key { uri: "key".to_owned(), iv: None });
    let mut schedule = Schedule::new(at(0.0), true);
    let mut whole = parts(0, 6, 1);
    whole.parts.iter_mut().for_each(|it| it.media.key = Some(Arc::clone(&key)));
    schedule.take(&whole, PLAIN, at(0.0), at(0.1));
    queued(&mut schedule);
    let delta = |behind, names_key| {
        let mut delta = MediaPlaylist { left_out: 2, ..parts(2, 6, behind) };
        delta.parts.iter_mut().for_each(|it| it.media.names_key = names_key);
        let resource = Resource { uri: "next".to_owned(), range: None };
        delta.hint = Some(PreloadHint { resource, map: None, is_encrypted: false, names_key });
        delta
    };
    schedule.take(&delta(2, false), PLAIN, at(0.2), at(0.3));
    assert_eq!(schedule.pop().unwrap().key, Some(key));
    assert!(schedule.hint.as_ref().unwrap().is_encrypted);
    // `METHOD=NONE`.
    schedule.take(&delta(3, true), PLAIN, at(0.4), at(0.5));
    assert_eq!(schedule.pop().unwrap().key, None);
    assert!(!schedule.hint.as_ref().unwrap().is_encrypted);
}

#[test]
fn an_author_may_want_viewers_to_begin_elsewhere() {
    let start = |from_end: bool, seconds: u64, has_ended: bool| {
        let offset = Duration::from_secs(seconds);
        let start = Some(StartOffset { offset, from_end });
        let mut schedule = Schedule::new(at(0.0), true);
        let update = schedule.take(
            &MediaPlaylist { start, has_ended, ..playlist(10..20) },
            Directives::default(),
            at(0.0),
            at(0.0),
        );
        (schedule.pop().unwrap().resource.uri, update.starts_with.unwrap().as_secs())
    };
    // Of a live stream, never closer to the end than three target durations, of which no more are buffered first.
    assert_eq!(start(true, 1, false), ("17.ts".to_owned(), 6));
    assert_eq!(start(true, 9, false), ("15.ts".to_owned(), 6));
    assert_eq!(start(false, 4, false), ("12.ts".to_owned(), 6));
    assert_eq!(start(false, 19, false), ("17.ts".to_owned(), 6));
    assert_eq!(start(true, 900, false), ("10.ts".to_owned(), 6));
    // A recording is begun anywhere.
    assert_eq!(start(false, 5, true), ("12.ts".to_owned(), 6));
    assert_eq!(start(true, 3, true), ("18.ts".to_owned(), 4));
}

#[test]
fn segments_longer_than_the_target_duration_make_no_playlist_stale() {
    let mut schedule = Schedule::new(at(0.0), true);
    let long = |numbers| {
        let mut playlist = playlist(numbers);
        playlist.segments.iter_mut().for_each(|it| it.duration = Duration::from_secs(5));
        playlist
    };
    schedule.take(&long(0..3), Directives::default(), at(0.0), at(0.0));
    for (second, is_stale) in [(5.5, false), (12.0, false), (12.6, true)] {
        let update = schedule.take(&long(0..3), Directives::default(), at(second), at(second));
        assert_eq!(update.is_stale, is_stale, "{second}");
    }
}

#[test]
fn a_delta_whose_ranges_follow_on_what_it_leaves_out_is_asked_for_whole() {
    let mut schedule = Schedule::new(at(0.0), true);
    schedule.take(&parts(0, 6, 1), Directives::default(), at(0.0), at(0.0));
    while schedule.pop().is_some() {}
    let delta = MediaPlaylist { left_out: 2, lacks_offset: true, first: 2, ..parts(2, 6, 2) };
    let directives = schedule.directives(at(0.5));
    schedule.take(&delta, directives, at(0.0), at(0.5));
    assert!(!schedule.has_segment() && schedule.directives(at(1.0)) == Directives::default());
    schedule.take(&parts(0, 6, 2), Directives::default(), at(1.0), at(1.0));
    assert!(schedule.has_segment());
}
