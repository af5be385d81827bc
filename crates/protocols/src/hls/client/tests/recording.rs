//! Viewers of a recording.

use super::*;

/// The playlist of a recording of segments of 2 s.
fn recording(segments: u64) -> String {
    let segments: String = (0..segments).map(|it| format!("#EXTINF:2.0,\n{it}.ts\n")).collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{segments}#EXT-X-ENDLIST\n")
}

fn start(start_at: Option<u64>, seek: Option<&str>) -> Bench {
    Bench::start_of(&HlsFields {
        variant: VariantChoice::First,
        bandwidth: None,
        cmcd: false,
        low_latency: true,
        start_at: start_at.map(Duration::from_secs),
        seek: seek.map(|text| text.parse().unwrap()),
        http_version: HttpVersion::Auto,
    })
}

impl Bench {
    /// Answers with segments as long as some are asked for. The numbers of the first and the last.
    fn serve(&mut self) -> (u64, u64) {
        let mut numbers = Vec::new();
        loop {
            let asked = self.asked();
            let Some(number) = asked.strip_prefix("/live/").and_then(|it| it.strip_suffix(".ts")) else {
                assert_eq!(asked, "");
                return (numbers[0], *numbers.last().unwrap());
            };
            numbers.push(number.parse().unwrap());
            self.answer("200 OK", "media");
        }
    }
}

#[test]
fn a_recording_is_begun_where_that_is_asked_for() {
    for (start_at, first) in [(None, 0), (Some(0), 0), (Some(7), 3), (Some(8), 4), (Some(900), 59)] {
        let mut bench = start(start_at, None);
        assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
        bench.answer("200 OK", &recording(60));
        assert_eq!(bench.serve().0, first, "{start_at:?}");
        assert_eq!(bench.end().1, None);
    }
}

#[test]
fn a_seek_drops_what_is_buffered_and_waits_for_one_segment() {
    let mut bench = start(None, Some("every:10s"));
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.answer("200 OK", &recording(100));
    let (first, last) = bench.serve();
    assert_eq!((first, last), (0, 15), "up to 30 s ahead");
    let mut places = Vec::new();
    for step in [1.98, 1.9, 1.9, 1.9, 1.9, 1.9] {
        // What was shown makes room for more meanwhile.
        for _ in 0..5 {
            bench.wait(step);
            if !bench.rig.sent.is_empty() {
                bench.serve();
            }
        }
        assert!(bench.rig.sent.is_empty());
        bench.wait(0.101);
        let asked = bench.asked();
        places.push(asked.clone());
        bench.wait(0.4);
        assert_eq!(bench.asked(), "", "nothing else is asked for meanwhile");
        bench.answer("200 OK", "media");
        // It plays, and loads on from there.
        bench.serve();
    }
    let distinct: std::collections::BTreeSet<_> = places.iter().collect();
    assert!(distinct.len() >= 4 && places.iter().all(|it| it.ends_with(".ts")), "{places:?}");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [SEEKS, STALLS, STARVED, REFUSED, CONNECTIONS]), [6, 0, 0, 0, 1]);
    let times = figures.spread(SEEK_TIME);
    assert_eq!(times.len(), 6);
    assert!((400_000..=520_000).contains(&times.max()), "{}", times.max());
}

#[test]
fn a_seek_that_meets_a_segment_under_way_drops_it() {
    let mut bench = start(None, Some("every:8s"));
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.answer("200 OK", &recording(100));
    for number in 0..3 {
        assert_eq!(bench.asked(), format!("/live/{number}.ts"));
        bench.answer("200 OK", "media");
    }
    assert_eq!(bench.asked(), "/live/3.ts");
    // The player stands still from 6 s on, and no longer when its viewer goes elsewhere.
    bench.wait(8.1);
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [SEEKS, STALLS]), [1, 1]);
    assert_eq!(figures.spread(SEEK_TIME).len(), 0, "it showed nothing there");
}

#[test]
fn a_live_stream_has_no_places_to_go_to() {
    let mut bench = start(Some(60), Some("every:2s"));
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.playlist(0..3);
    assert_eq!(bench.serve(), (0, 2), "three target durations before the end, whatever the option says");
    bench.wait(1.9);
    assert_eq!(bench.asked(), "");
    bench.wait(0.2);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [SEEKS]), [0]);
}
