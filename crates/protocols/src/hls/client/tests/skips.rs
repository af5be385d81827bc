//! What a viewer left out, or was refused: what comes behind it jumps by the viewer's doing, and its pictures are announced once.

use super::*;
use crate::hls::inspector::tests::{Transport, fragment, map};
use weir_metrics::common::{FRAMES, FRAMES_ANNOUNCED};

/// Segments of a second, of 25 pictures each.
fn segments(numbers: std::ops::Range<u64>) -> String {
    let segments: String = numbers.clone().map(|it| format!("#EXTINF:1.0,\n{it}.ts\n")).collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:{}\n{segments}", numbers.start)
}

fn answer_bytes(bench: &mut Bench, body: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    bench.tell(Event::Bytes(&[head.as_bytes(), body].concat()));
}

fn load(bench: &mut Bench, stream: &mut Transport, number: u64) {
    assert_eq!(bench.asked(), format!("/live/{number}.ts"));
    answer_bytes(bench, &stream.segment(&[]));
}

#[test]
fn what_left_the_playlist_before_a_late_viewer_came_is_announced_once_and_no_jump() {
    let (mut bench, mut stream) = (Bench::start(), Transport::new());
    bench.asked();
    bench.answer("200 OK", &segments(0..3));
    (0..3).for_each(|number| load(&mut bench, &mut stream, number));
    bench.wait(1.0);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    // Segments 3 and 4 were there meanwhile.
    bench.answer("200 OK", &segments(5..8));
    (3..5).for_each(|_| drop(stream.segment(&[])));
    (5..8).for_each(|number| load(&mut bench, &mut stream, number));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [SKIPPED, INSPECTED, TIME_JUMPS, LOST_PACKETS]), [2, 6, 0, 0]);
    assert_eq!(counts(&figures, [FRAMES, FRAMES_ANNOUNCED]), [6 * 25, 8 * 25]);
}

/// `EXT-X-MEDIA-SEQUENCE` may begin with the seconds of a clock: behind a restart it is far beyond the segments that were there.
#[test]
fn numbers_that_a_restarted_server_goes_on_with_announce_nothing_that_cannot_have_been_there() {
    let (mut bench, mut stream) = (Bench::start(), Transport::new());
    bench.asked();
    bench.answer("200 OK", &segments(0..3));
    (0..3).for_each(|number| load(&mut bench, &mut stream, number));
    bench.wait(1.0);
    bench.asked();
    bench.answer("200 OK", &segments(1_800..1_803));
    (1_800..1_803).for_each(|number| load(&mut bench, &mut stream, number));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [INSPECTED, TIME_JUMPS]), [6, 0]);
    assert_eq!(counts(&figures, [FRAMES, FRAMES_ANNOUNCED]), [6 * 25, 6 * 25]);
}

#[test]
fn a_segment_that_was_refused_is_announced_once_and_what_comes_behind_it_is_no_jump() {
    let (mut bench, mut stream) = (Bench::start(), Transport::new());
    bench.asked();
    bench.answer("200 OK", &segments(0..3));
    (0..3).for_each(|number| load(&mut bench, &mut stream, number));
    bench.wait(1.0);
    bench.asked();
    bench.answer("200 OK", &segments(1..6));
    for status in ["404 Not Found", "200 OK"] {
        bench.asked();
        bench.answer(status, "");
        drop(stream.segment(&[]));
    }
    load(&mut bench, &mut stream, 5);
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [REFUSED, SKIPPED, INSPECTED, TIME_JUMPS, LOST_PACKETS]), [2, 0, 4, 0, 0]);
    assert_eq!(counts(&figures, [FRAMES, FRAMES_ANNOUNCED]), [4 * 25, 6 * 25]);
}

/// Segments of four parts of half a second, of ten pictures each, of which those of the first are not listed any more.
fn parts(first: u64, whole: u64, listed_from: u64, behind: u32) -> String {
    let part = |segment: u64, index: u32| {
        let independent = if index == 0 { ",INDEPENDENT=YES" } else { "" };
        format!("#EXT-X-PART:DURATION=0.5,URI=\"{segment}.{index}.mp4\"{independent}\n")
    };
    let segments = (first..whole).map(|segment| {
        let parts: String =
            (0..4).filter(|_| segment >= listed_from).map(|index| part(segment, index)).collect();
        format!("{parts}#EXTINF:2.0,\n{segment}.mp4\n")
    });
    let behind: String = (0..behind).map(|index| part(whole, index)).collect();
    format!(
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.5\n#EXT-X-PART-INF:PART-TARGET=0.5\n#EXT-X-MEDIA-SEQUENCE:{first}\n#EXT-X-MAP:URI=\"map.mp4\"\n{}{behind}",
        segments.collect::<String>()
    )
}

/// Fragments of half a second from this part of the stream on.
fn fragments(from: u64, count: u64) -> Vec<u8> {
    (from..from + count).flat_map(|it| fragment(it as u32 + 1, it * 6_400, &[640; 10])).collect()
}

/// The playlist by which a viewer goes on elsewhere comes on a link of its own, while parts of before are under way and queued.
#[test]
fn a_part_that_was_under_way_when_its_viewer_skipped_does_not_make_a_jump_of_what_follows() {
    // Either the segment is there without its parts, or it has gone too.
    for (gone, skipped_frames) in [(parts(3, 9, 7, 0), 20), (parts(7, 9, 7, 0), 20)] {
        let mut bench = Bench::start();
        bench.asked();
        bench.answer("200 OK", &parts(2, 6, 2, 1));
        assert_eq!(bench.asked(), "/live/map.mp4");
        answer_bytes(&mut bench, &map());
        assert_eq!(bench.asked(), "/live/5.mp4");
        answer_bytes(&mut bench, &fragments(0, 4));
        assert_eq!(bench.asked(), "/live/6.0.mp4");
        answer_bytes(&mut bench, &fragments(4, 1));
        bench.wait(0.5);
        assert_eq!(bench.asked_beside(), "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=1");
        bench.answer_beside("200 OK", &parts(2, 6, 2, 2));
        assert_eq!(bench.asked(), "/live/6.1.mp4");
        bench.wait(0.5);
        assert_eq!(bench.asked_beside(), "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=2");
        bench.wait(3.0);
        bench.answer_beside("200 OK", &gone);
        answer_bytes(&mut bench, &fragments(5, 1));
        for number in 7..9 {
            assert_eq!(bench.asked(), format!("/live/{number}.mp4"));
            answer_bytes(&mut bench, &fragments(number * 4 - 20, 4));
        }
        let (figures, failure) = bench.end();
        assert_eq!(failure, None);
        assert_eq!(counts(&figures, [SKIPPED, INSPECTED, TIME_JUMPS, FRAGMENT_GAPS]), [1, 5, 0, 0]);
        let [frames, announced] = counts(&figures, [FRAMES, FRAMES_ANNOUNCED]);
        assert_eq!((frames, announced), (14 * 10, 14 * 10 + skipped_frames));
    }
}
