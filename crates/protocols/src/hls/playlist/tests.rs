use super::*;
use proptest::prelude::*;

fn parse(bytes: &[u8]) -> Result<Playlist, PlaylistError> {
    Playlist::parse(bytes, &Variables::default(), "")
}

fn media(text: &str) -> MediaPlaylist {
    match parse(text.as_bytes()) {
        Ok(Playlist::Media(media)) => media,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_playlist_of_nginx_is_read() {
    let read = media(
        "#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-MEDIA-SEQUENCE:7\r\n#EXT-X-TARGETDURATION:2\r\n#EXT-X-DISCONTINUITY\r\n#EXTINF:2.000,\r\ns-7.ts\r\n\r\n#EXTINF:1.960,title\r\ns-8.ts?a=b\r\n",
    );
    assert_eq!((read.target, read.first, read.has_ended), (Duration::from_secs(2), 7, false));
    let segments: Vec<_> =
        read.segments.iter().map(|it| (&*it.resource.uri, it.duration.as_millis())).collect();
    assert_eq!(segments, [("s-7.ts", 2_000), ("s-8.ts?a=b", 1_960)]);
}

#[test]
fn variants_are_told_from_segments_whatever_else_stands_between() {
    // A group may be described behind the variants that name it.
    let text = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"b\"\n# a comment\nlow.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO=\"a\"\nmiddle.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=3,AUDIO=\"c\"\nhigh.m3u8\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"b\",NAME=\"n\"\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"c\",NAME=\"n\",URI=\"c.m3u8\"\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"b\",NAME=\"n\",URI=\"b.m3u8\"\n";
    let variants =
        [("low.m3u8", 1, None), ("middle.m3u8", 2, Some("a.m3u8")), ("high.m3u8", 3, Some("c.m3u8"))];
    let variants = variants.map(|(uri, bandwidth, audio)| Variant {
        uri: uri.to_owned(),
        bandwidth,
        audio: audio.map(str::to_owned),
    });
    let (variants, variables) = (variants.to_vec(), Variables::default());
    assert_eq!(parse(text.as_bytes()), Ok(Playlist::Multivariant(Multivariant { variants, variables })));
}

#[test]
fn ranges_maps_gaps_and_the_end_are_read() {
    let read = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MAP:URI=\"init.mp4\",BYTERANGE=\"10@0\"\n#EXT-X-BYTERANGE:100@10\n#EXTINF:4,\na.mp4\n#EXT-X-BYTERANGE:50\n#EXTINF:4,\na.mp4\n#EXT-X-GAP\n#EXTINF:4,\nb.mp4\n#EXT-X-ENDLIST\n",
    );
    let ranges: Vec<_> = read.segments.iter().map(|it| it.resource.range).collect();
    assert_eq!(ranges, [Some((10, 100)), Some((110, 50)), None]);
    assert_eq!(read.segments.iter().map(|it| it.is_gap).collect::<Vec<_>>(), [false, false, true]);
    let map = read.segments[0].map.as_ref().unwrap();
    assert_eq!((&*map.uri, map.range, read.has_ended), ("init.mp4", Some((0, 10)), true));
}

#[test]
fn parts_are_numbered_in_their_segments_and_what_is_left_out_is_counted() {
    let read = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5,CAN-SKIP-UNTIL=24.0\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:100\n#EXT-X-SKIP:SKIPPED-SEGMENTS=7\n#EXT-X-PART:DURATION=0.5,URI=\"a.mp4\",BYTERANGE=\"10@0\",INDEPENDENT=YES\n#EXT-X-PART:DURATION=0.4,URI=\"a.mp4\",BYTERANGE=\"20\"\n#EXTINF:0.9,\na.mp4\n#EXT-X-PART:DURATION=0.5,URI=\"b.0.mp4\",GAP=YES\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"b.1.mp4\"\n",
    );
    let parts: Vec<_> = read
        .parts
        .iter()
        .map(|it| (it.segment, it.index, it.media.resource.range, it.is_independent))
        .collect();
    assert_eq!(
        parts,
        [(107, 0, Some((0, 10)), true), (107, 1, Some((10, 20)), false), (108, 0, None, false)]
    );
    assert_eq!((read.first, read.left_out, read.segments.len()), (107, 7, 1));
    assert!(read.can_block && read.parts[2].media.is_gap && read.parts[2].media.is_part);
    let [part_target, hold_back] = [500, 1_500].map(Duration::from_millis);
    assert_eq!(read.low_latency, Some(LowLatency { part_target, hold_back }));
    assert_eq!(read.skip_until, Some(Duration::from_secs(24)));
    // Without a hold-back of its own, three parts.
    let bare = media("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PART-INF:PART-TARGET=0\n");
    assert_eq!(bare.low_latency.unwrap().hold_back, 3 * SHORTEST_PART);
}

#[test]
fn what_is_no_playlist_is_named() {
    for (text, expected) in [
        ("<html>", PlaylistError::Page),
        ("\u{FEFF}\r\n<!DOCTYPE HTML><title>", PlaylistError::Page),
        ("<é", PlaylistError::NoPlaylist),
        ("", PlaylistError::NoPlaylist),
        ("#EXTM3U\n", PlaylistError::Empty),
        ("#EXTM3U\n#EXTINF:2,\na.ts\n", PlaylistError::NoTargetDuration),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\na.ts\n", PlaylistError::Duration),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:-1,\na.ts\n", PlaylistError::Duration),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1e300,\na.ts\n", PlaylistError::Duration),
    ] {
        assert_eq!(parse(text.as_bytes()), Err(expected), "{text}");
    }
    assert_eq!(parse(b"#EXTM3U\n\xFF"), Err(PlaylistError::NotText));
    let beyond =
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:18446744073709551614\n#EXTINF:2,\na.ts\n";
    assert_eq!(parse(beyond.as_bytes()), Err(PlaylistError::Sequence));
    let never = media("#EXTM3U\n#EXT-X-TARGETDURATION:0\n");
    assert_eq!((never.target, never.segments.len()), (Duration::from_secs(1), 0));
}

proptest! {
    #[test]
    fn nothing_that_comes_can_break_it(lines in prop::collection::vec(prop::sample::select(vec![
        "#EXTINF:2,", "#EXTINF:nan,", "#EXTINF:", "a.ts", "#EXT-X-TARGETDURATION:2", "#EXT-X-BYTERANGE:18446744073709551615@9",
        "#EXT-X-BYTERANGE:9", "#EXT-X-MAP:URI=\"a\"", "#EXT-X-MAP:", "#EXT-X-STREAM-INF:BANDWIDTH=1", "#EXT-X-STREAM-INF:AUDIO=\"a\"",
        "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"\",URI=\"a\"", "#EXT-X-GAP", "#", "\u{e9}",
        "#EXT-X-MEDIA-SEQUENCE:99999999999999999999", "#EXT-X-MEDIA-SEQUENCE:18446744073709551615",
        "#EXT-X-PART-INF:PART-TARGET=0.2", "#EXT-X-PART:DURATION=0.2,URI=\"a\"", "#EXT-X-PART:DURATION=-1,URI=\"a\"",
        "#EXT-X-PART:DURATION=0.2,URI=\"a\",BYTERANGE=\"18446744073709551615\"", "#EXT-X-SKIP:SKIPPED-SEGMENTS=18446744073709551615",
        "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=nan,CAN-SKIP-UNTIL=1e308",
        "#EXT-X-PROGRAM-DATE-TIME:2262-04-11T23:47:16Z", "#EXT-X-PROGRAM-DATE-TIME:1-1-1T", "#EXT-X-START:TIME-OFFSET=-1e300",
        "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"", "#EXT-X-KEY:METHOD=SAMPLE-AES", "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{$a}\"",
        "#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"a\",BYTERANGE-START=18446744073709551615", "#EXT-X-RENDITION-REPORT:URI=\"a\"",
    ]), 0..40)) {
        let _ = parse(format!("#EXTM3U\n{}", lines.join("\n")).as_bytes());
    }
}

#[test]
fn dates_are_carried_on_to_segments_and_parts_and_back_to_those_before() {
    let read = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=1\n#EXTINF:2,\na.ts\n#EXT-X-PART:DURATION=1,URI=\"b.0.ts\"\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:01:00+0000\n#EXT-X-PART:DURATION=1,URI=\"b.1.ts\"\n#EXTINF:2,\nb.ts\n#EXTINF:1.5,\nc.ts\n#EXT-X-PART:DURATION=1,URI=\"d.0.ts\"\n",
    );
    let seconds = |date: Option<Date>| date.unwrap() as f64 / 1e9;
    assert_eq!(read.segments.iter().map(|it| seconds(it.date)).collect::<Vec<_>>(), [58.0, 60.0, 62.0]);
    assert_eq!(read.parts.iter().map(|it| seconds(it.media.date)).collect::<Vec<_>>(), [60.0, 61.0, 63.5]);
    assert_eq!(seconds(read.parts[2].media.end_date()), 64.5);
    assert_eq!(media("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n").segments[0].date, None);
}

#[test]
fn keys_hints_reports_and_the_start_are_read() {
    let read = media(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-START:TIME-OFFSET=-7.5\n#EXT-X-PART-INF:PART-TARGET=1\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://\",KEYFORMAT=\"com.apple.streamingkeydelivery\"\n#EXTINF:2,\na.ts\n#EXT-X-KEY:METHOD=NONE\n#EXTINF:2,\nb.ts\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"k\"\n#EXTINF:2,\nc.ts\n#EXT-X-PRELOAD-HINT:TYPE=MAP,URI=\"m\"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"d.ts\",BYTERANGE-START=5,BYTERANGE-LENGTH=9\n#EXT-X-RENDITION-REPORT:URI=\"../x.m3u8\",LAST-MSN=7,LAST-PART=2\n",
    );
    let keys: Vec<_> =
        read.segments.iter().map(|it| (it.key.as_ref().map(|key| &*key.uri), it.is_sealed)).collect();
    assert_eq!(keys, [(Some("k"), false), (None, false), (None, true)]);
    let offset = Duration::from_millis(7_500);
    assert_eq!(read.start, Some(StartOffset { offset, from_end: true }));
    let hint = read.hint.unwrap();
    assert_eq!((&*hint.resource.uri, hint.resource.range), ("d.ts", Some((5, 9))));
    let report = RenditionReport { uri: "../x.m3u8".to_owned(), segment: 7, part: Some(2) };
    assert_eq!(read.reports, [report]);
    // To the end of a resource that has more than the part in it: what of it is the part is unknown.
    let hint =
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"d.ts\",BYTERANGE-START=5\n";
    assert_eq!(media(hint).hint, None);
}

#[test]
fn a_range_without_an_offset_that_follows_on_nothing_is_noted() {
    let range = |tag: &str| {
        media(&format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{tag}\n#EXTINF:2,\na.ts\n")).lacks_offset
    };
    assert!(range("#EXT-X-BYTERANGE:9") && range("#EXT-X-PART:DURATION=1,URI=\"a.ts\",BYTERANGE=\"9\""));
    assert!(!range("#EXT-X-BYTERANGE:9@0"));
}

#[test]
fn the_parts_of_each_segment_are_dated_from_its_beginning() {
    let part = |name: &str| format!("#EXT-X-PART:DURATION=0.5,URI=\"{name}\"\n");
    let segments: String = (0..3)
        .map(|it| format!("{}{}#EXTINF:1,\n{it}\n", part(&format!("{it}.0")), part(&format!("{it}.1"))))
        .collect();
    let read = media(&format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:10Z\n{segments}{}",
        part("3.0")
    ));
    let dates: Vec<_> = read.parts.iter().map(|it| it.media.date.unwrap() / 500_000_000).collect();
    assert_eq!(dates, [20, 21, 22, 23, 24, 25, 26]);
}

/// Draft-pantos-hls-rfc8216bis-22, section 6.2.2: parts leave a playlist three target durations behind its end, whatever their segment.
#[test]
fn parts_whose_segment_has_lost_its_first_ones_are_numbered_and_dated_behind_them() {
    let part = |name: &str| format!("#EXT-X-PART:DURATION=0.33,URI=\"{name}\"\n");
    let (first, second) =
        (part("0.4") + &part("0.5"), (0..6).map(|it| part(&format!("1.{it}"))).collect::<String>());
    let read = media(&format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PART-INF:PART-TARGET=0.34\n#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:10Z\n{first}#EXTINF:2,\n0\n{second}#EXTINF:2,\n1\n{}",
        part("2.0")
    ));
    let numbers: Vec<_> = read.parts.iter().map(|it| (it.segment, it.index, it.begin.as_millis())).collect();
    assert_eq!(numbers[..3], [(0, 4, 1_340), (0, 5, 1_670), (1, 0, 0)], "durations are rounded");
    assert_eq!(numbers[7..], [(1, 5, 1_650), (2, 0, 0)]);
    let dates: Vec<_> = read.parts.iter().map(|it| it.media.date.unwrap() / 1_000_000).collect();
    assert_eq!((dates[0], dates[2], dates[8]), (11_340, 12_000, 14_000));
}

#[test]
fn viewers_of_one_thread_share_what_was_read_of_the_same_bytes_unless_it_depends_on_more() {
    let shared = |text: &str, imports: &Variables, query: &str| {
        Playlist::parse_shared(text.as_bytes(), imports, query).unwrap()
    };
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n";
    let (none, first) = (Variables::default(), shared(text, &Variables::default(), ""));
    assert!(Arc::ptr_eq(&first, &shared(text, &none, "a=1")));
    assert_ne!(first, shared(&text.replace("a.ts", "b.ts"), &none, ""));
    assert!(Arc::ptr_eq(&first, &shared(text, &none, "")), "it is kept beside another");
    let of_query = "#EXTM3U\n#EXT-X-DEFINE:QUERYPARAM=\"q\"\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{$q}.ts\n";
    assert_ne!(shared(of_query, &none, "q=1"), shared(of_query, &none, "q=2"));
    assert_eq!(Playlist::parse_shared(b"x", &none, ""), Err(PlaylistError::NoPlaylist));
}
