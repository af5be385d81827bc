//! Viewers of long segments, between which as much time passes as a viewer waits for media.

use super::*;

/// A playlist of these segments, each of `seconds`.
fn playlist(seconds: u64, numbers: std::ops::Range<u64>) -> String {
    let segments: String = numbers.clone().map(|it| format!("#EXTINF:{seconds},\n{it}.ts\n")).collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:{seconds}\n#EXT-X-MEDIA-SEQUENCE:{}\n{segments}", numbers.start)
}

#[test]
fn a_viewer_begins_with_what_is_left_of_its_first_segments_and_does_not_starve_where_that_suffices() {
    // As nginx-rtmp does with keyframes every ten seconds: it deletes by age what its playlist still names.
    let mut bench = Bench::start();
    bench.asked();
    bench.answer("200 OK", &playlist(10, 0..3));
    assert_eq!(bench.asked(), "/live/0.ts");
    bench.answer("404 Not Found", "");
    for number in [1, 2] {
        assert_eq!(bench.asked(), format!("/live/{number}.ts"));
        bench.answer("200 OK", "media");
    }
    // Twenty seconds are there, and the playlist is loaded after ten.
    bench.wait(10.0);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.answer("200 OK", &playlist(10, 0..3));
    bench.wait(5.0);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.answer("200 OK", &playlist(10, 1..4));
    assert_eq!(bench.asked(), "/live/3.ts");
    bench.answer("200 OK", "media");
    bench.wait(4.0);
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PLAYED, NOT_FOUND, SEGMENTS]), [1, 1, 3]);
    assert_eq!(counts(&figures, [STARVED, STALLS]), [0, 0]);
}

#[test]
fn a_viewer_that_stands_still_for_less_than_its_timeout_has_stalled_and_not_starved() {
    // Its player has shown all after eight seconds, and has lacked media for ten after eighteen.
    for (seconds, starved) in [(17, 0), (19, 1)] {
        let mut bench = Bench::start();
        bench.asked();
        bench.answer("200 OK", &playlist(8, 0..1));
        assert_eq!(bench.asked(), "/live/0.ts");
        bench.answer("200 OK", "media");
        bench.wait(8.0);
        assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
        bench.answer("200 OK", &playlist(8, 0..1));
        // Twelve seconds after its only segment, and four after the end of that.
        bench.wait(4.0);
        assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
        bench.answer("200 OK", &playlist(8, 0..2));
        assert_eq!(bench.asked(), "/live/1.ts");
        bench.answer("200 OK", "media");
        for _ in 0..seconds {
            bench.wait(1.0);
            if !bench.asked().is_empty() {
                bench.answer("200 OK", &playlist(8, 0..2));
            }
        }
        let (figures, failure) = bench.end();
        assert_eq!(failure, None);
        assert_eq!(counts(&figures, [STARVED, STALLS]), [starved, 2], "after {seconds} s");
    }
}
