//! Playlists as clients read them.

use super::super::window::Map;
use super::*;

/// 2023-11-14T22:13:20Z.
const DATE: i64 = 1_700_000_000_000_000_000;

fn settings(part: Option<u64>) -> HlsSettings {
    HlsSettings { part: part.map(Duration::from_millis), segments: 3, ..HlsSettings::default() }
}

/// A window with whole segments of two seconds in four parts, and parts of the next.
fn window(settings: &HlsSettings, segments: u64, parts: u64) -> Window {
    let mut window = Window::new(settings.clone());
    for number in 0..=segments {
        if number == segments && parts == 0 {
            break;
        }
        let date = DATE + number as i64 * 2_000_000_000;
        window.begin(Segment::new(date, number == 1, number == 2, map(settings)));
        for part in 0..if number == segments { parts } else { 4 } {
            window.push(vec![7], Duration::from_millis(500), part == 0);
        }
        if number < segments {
            window.finish();
        }
    }
    window
}

fn map(settings: &HlsSettings) -> Option<Arc<Map>> {
    let is_mp4 = settings.container == SegmentContainer::FragmentedMp4;
    is_mp4.then(|| Arc::new(Map { id: 0, bytes: [1].into() }))
}

fn text(window: &Window, skips: bool, settings: &HlsSettings) -> String {
    String::from_utf8(write(window, "live/a", skips, settings).unwrap().to_vec()).unwrap()
}

#[test]
fn a_playlist_names_the_latest_segments() {
    let settings = settings(None);
    let mut window = window(&settings, 4, 0);
    let expected = "#EXTM3U\n\
        #EXT-X-VERSION:3\n\
        #EXT-X-TARGETDURATION:2\n\
        #EXT-X-MEDIA-SEQUENCE:1\n\
        #EXT-X-DISCONTINUITY\n\
        #EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:22.000Z\n\
        #EXTINF:2.000,\n\
        a/1.ts\n\
        #EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:24.000Z\n\
        #EXT-X-GAP\n\
        #EXTINF:2.000,\n\
        a/2.ts\n\
        #EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:26.000Z\n\
        #EXTINF:2.000,\n\
        a/3.ts\n";
    assert_eq!(text(&window, false, &settings), expected);
    assert_eq!(text(&window, true, &settings), expected, "nothing is skipped without parts");
    window.end();
    assert_eq!(text(&window, false, &settings), format!("{expected}#EXT-X-ENDLIST\n"));
}

#[test]
fn a_discontinuity_that_has_gone_is_counted() {
    let settings = settings(None);
    let text = text(&window(&settings, 5, 0), false, &settings);
    assert!(text.contains("#EXT-X-MEDIA-SEQUENCE:2\n#EXT-X-DISCONTINUITY-SEQUENCE:1\n"), "{text}");
}

#[test]
fn a_playlist_of_low_latency_names_parts_and_the_one_to_come() {
    let container = SegmentContainer::FragmentedMp4;
    let settings = HlsSettings { container, ..settings(Some(500)) };
    let window = window(&settings, 4, 2);
    let text = text(&window, false, &settings);
    assert!(text.contains("#EXT-X-VERSION:9\n"), "{text}");
    let control = "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.506,CAN-SKIP-UNTIL=12\n";
    assert!(text.contains(control), "{text}");
    assert!(text.contains("#EXT-X-PART-INF:PART-TARGET=0.502\n"), "{text}");
    assert_eq!(text.matches("#EXT-X-MAP:URI=\"a/init-0.mp4\"\n").count(), 1);
    // Three whole segments of four parts each, and the two parts of the next.
    assert_eq!(text.matches("#EXT-X-PART:").count(), 14);
    assert!(text.contains("#EXT-X-PART:DURATION=0.500,URI=\"a/part-8.m4s\",INDEPENDENT=YES,GAP=YES\n"));
    let end = "#EXT-X-PROGRAM-DATE-TIME:2023-11-14T22:13:28.000Z\n\
        #EXT-X-PART:DURATION=0.500,URI=\"a/part-16.m4s\",INDEPENDENT=YES\n\
        #EXT-X-PART:DURATION=0.500,URI=\"a/part-17.m4s\"\n\
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"a/part-18.m4s\"\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn a_delta_update_skips_what_lies_before_the_boundary() {
    let settings = HlsSettings { segments: 20, ..settings(Some(500)) };
    let window = window(&settings, 12, 2);
    let delta = text(&window, true, &settings);
    // 25 s, of which those that begin 12 s before the end and earlier are skipped: segments 0 to 5.
    assert!(delta.contains("#EXT-X-SKIP:SKIPPED-SEGMENTS=6\n"), "{delta}");
    assert!(!delta.contains("a/5.ts\n") && delta.contains("a/6.ts\n"), "{delta}");
    assert!(delta.contains("#EXT-X-MEDIA-SEQUENCE:0\n"));
    let whole = text(&window, false, &settings);
    assert_eq!(whole.split_once("a/5.ts\n").unwrap().1, delta.split_once("SEGMENTS=6\n").unwrap().1);
    let short = text(&self::window(&settings, 4, 2), true, &settings);
    assert!(!short.contains("EXT-X-SKIP"));
}

#[test]
fn a_reload_waits_for_what_it_names_and_not_for_what_is_far_ahead() {
    let settings = settings(Some(500));
    let window = window(&settings, 4, 2);
    let of = |query: &str| {
        let bytes = format!("GET /live/a.m3u8?{query} HTTP/1.1\r\n\r\n");
        let request = weir_web::Requests::new(0).take(&mut bytes.as_bytes()).unwrap().unwrap();
        Directives::read(&request).map(|directives| directives.readiness(&window, &settings))
    };
    for (query, expected) in [
        ("", Some(Readiness::Ready)),
        ("_HLS_msn=0", Some(Readiness::Ready)),
        ("_HLS_msn=3&_HLS_part=9", Some(Readiness::Ready)),
        ("_HLS_msn=4&_HLS_part=0", Some(Readiness::Ready)),
        ("_HLS_msn=4&_HLS_part=1", Some(Readiness::Ready)),
        ("_HLS_msn=4&_HLS_part=2", Some(Readiness::NotYet)),
        ("_HLS_msn=4&_HLS_part=7", Some(Readiness::NotYet)),
        ("_HLS_msn=4&_HLS_part=8", Some(Readiness::TooFarAhead)),
        ("_HLS_msn=4", Some(Readiness::NotYet)),
        ("_HLS_msn=5&_HLS_part=0", Some(Readiness::NotYet)),
        ("_HLS_msn=6", Some(Readiness::TooFarAhead)),
        ("_HLS_msn=18446744073709551615", Some(Readiness::TooFarAhead)),
        ("_HLS_part=1", None),
        ("_HLS_msn=x", None),
    ] {
        assert_eq!(of(query), expected, "{query}");
    }
    // Bis, section 6.2.5.2: beyond the last part of a segment it is the first of the next one that is asked for.
    let window = self::window(&settings, 4, 0);
    let bytes = "GET /live/a.m3u8?_HLS_msn=3&_HLS_part=4 HTTP/1.1\r\n\r\n";
    let request = weir_web::Requests::new(0).take(&mut bytes.as_bytes()).unwrap().unwrap();
    assert_eq!(Directives::read(&request).unwrap().readiness(&window, &settings), Readiness::NotYet);
}

#[test]
fn nothing_is_waited_for_behind_the_end_or_without_parts() {
    let settings = settings(Some(500));
    let mut window = window(&settings, 4, 0);
    window.end();
    let directives = Directives { wanted: Some((9, None)), skips: false };
    assert_eq!(directives.readiness(&window, &settings), Readiness::Ready);
    let plain = HlsSettings { part: None, ..settings };
    let window = self::window(&plain, 4, 0);
    assert_eq!(directives.readiness(&window, &plain), Readiness::Ready);
    assert_eq!(Directives::default().readiness(&Window::new(plain.clone()), &plain), Readiness::NotYet);
}

#[test]
fn dates_are_those_of_the_calendar() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400, "2000-02-29T00:00:00.000Z"),
        (1_709_251_199, "2024-02-29T23:59:59.000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000Z"),
    ] {
        assert_eq!(date_time(seconds * 1_000_000_000), expected);
    }
    assert_eq!(date_time(DATE + 40_999_999), "2023-11-14T22:13:20.040Z");
}

#[test]
fn a_key_is_named_before_what_it_encrypts_and_no_map_is_encrypted() {
    let key = Some("000102030405060708090a0b0c0d0e0f".parse().unwrap());
    let plain = HlsSettings { key, ..settings(None) };
    let of_segments = text(&window(&plain, 4, 0), false, &plain);
    assert_eq!(of_segments.matches("#EXT-X-KEY:METHOD=AES-128,URI=\"a/segments.key\"\n").count(), 1);
    assert!(of_segments.find("#EXT-X-KEY") < of_segments.find("#EXTINF"), "{of_segments}");
    let container = SegmentContainer::FragmentedMp4;
    let parts = HlsSettings { key, container, segments: 20, ..settings(Some(500)) };
    let window = window(&parts, 9, 2);
    for skips in [false, true] {
        let of_parts = text(&window, skips, &parts);
        let place = |of: &str| of_parts.find(of);
        assert_eq!(of_parts.matches("#EXT-X-KEY").count(), 1, "{of_parts}");
        assert!(place("#EXT-X-MAP") < place("#EXT-X-KEY") && place("#EXT-X-KEY") < place("#EXT-X-PART:"));
        assert!(place("#EXT-X-KEY") < place("#EXTINF"), "{of_parts}");
    }
}
