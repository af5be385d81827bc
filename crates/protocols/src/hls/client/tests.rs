use super::*;
use weir_clients::{PlannedStart, Turn};
use weir_metrics::Counter;
use weir_metrics::common::{PLAYED, STALLED, STALLS, STARVED};
use weir_shard::{Event, Rig, Session};

/// One viewer of a scripted server, on a made-up clock.
struct Bench {
    rig: Rig<ShardRecorder>,
    viewer: Box<dyn Session<ShardRecorder>>,
}

impl Bench {
    /// A viewer whose link is there.
    fn start() -> Self {
        Self::start_with(VariantChoice::First)
    }

    /// The same, that chooses so.
    fn start_with(variant: VariantChoice) -> Self {
        let url = "http://127.0.0.1:8080/live/a.m3u8?token=1".to_owned();
        let fields = HlsFields { variant, low_latency: true };
        let workload = play(&[url], &PlayOptions::default(), &HttpOptions::default(), &fields).unwrap();
        let mut rig = Rig::new(ShardRecorder::new([workload.schema]));
        let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let viewer = workload.start(planned, rig.now, &mut rig.world);
        let mut bench = Self { rig, viewer };
        bench.tell(Event::Opening);
        bench.tell(Event::Connected);
        bench
    }

    fn tell(&mut self, event: Event<'_>) {
        self.rig.dispatch(&mut *self.viewer, event);
    }

    fn wait(&mut self, seconds: f64) {
        self.rig.advance(&mut *self.viewer, Duration::from_secs_f64(seconds));
    }

    /// The path of the one request that was sent; nothing if none was.
    fn asked(&mut self) -> String {
        let sent = String::from_utf8(self.rig.take_sent()).unwrap();
        let line = sent.lines().next().unwrap_or_default();
        line.trim_start_matches("GET ").trim_end_matches(" HTTP/1.1").to_owned()
    }

    /// Answers with a status and a body.
    fn answer(&mut self, status: &str, body: &str) {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.tell(Event::Bytes(head.as_bytes()));
    }

    /// Answers with a playlist of segments of 2 s with these numbers.
    fn playlist(&mut self, numbers: std::ops::Range<u64>) {
        let segments: String = numbers.clone().map(|it| format!("#EXTINF:2.0,\n{it}.ts\n")).collect();
        let head = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{}\n", numbers.start);
        self.answer("200 OK", &format!("{head}{segments}"));
    }

    /// A viewer that has all that the first playlist, of segments 0 to 2, named.
    fn playing() -> Self {
        let mut bench = Self::start();
        assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
        bench.playlist(0..3);
        for number in 0..3 {
            // A query is not carried on to relative URIs (RFC 3986, section 5.2.2).
            assert_eq!(bench.asked(), format!("/live/{number}.ts"));
            bench.answer("200 OK", "media");
        }
        assert_eq!(bench.asked(), "");
        bench
    }

    /// Takes what was recorded, with what ended the viewer if something has.
    fn end(mut self) -> (Recorder, Option<(Failure, String)>) {
        if !self.rig.closed {
            self.tell(Event::Stop);
        }
        let failure = self.rig.world.take_failures().pop().map(|it| (it.failure, it.words));
        (self.rig.world.take_figures().remove(0), failure)
    }
}

fn counts<const N: usize>(recorder: &Recorder, counters: [Counter; N]) -> [u64; N] {
    counters.map(|counter| recorder.counter(counter))
}

#[test]
fn a_viewer_starts_with_three_segments_and_loads_each_new_one_once_on_one_link() {
    let mut bench = Bench::playing();
    for number in 3..8 {
        bench.wait(2.0);
        assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
        bench.playlist(number - 2..number + 1);
        assert_eq!(bench.asked(), format!("/live/{number}.ts"));
        bench.answer("200 OK", "media");
    }
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PLAYED, SEGMENTS, RELOADS, CONNECTIONS, REQUESTS]), [1, 8, 5, 1, 14]);
    assert_eq!(counts(&figures, [STALLS, STALE, REFUSED, SKIPPED]), [0; 4]);
    assert_eq!(counts(&figures, [LOADED, ANNOUNCED, MEDIA]), [16_000_000, 16_000_000, 40]);
}

#[test]
fn a_playlist_that_stands_still_is_stale_and_its_viewer_stalls_and_starves() {
    let mut bench = Bench::playing();
    for _ in 0..30 {
        bench.wait(1.0);
        if !bench.asked().is_empty() {
            bench.playlist(0..3);
        }
    }
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    // Six seconds were there at the beginning.
    assert_eq!(counts(&figures, [STALLS, STALLED, STARVED]), [1, 24_000_000, 1]);
    let reloads = figures.counter(RELOADS);
    // Reloads after 2, 3, 4 … 30 s; those of 5 s and later are stale.
    assert_eq!((reloads, figures.counter(STALE)), (29, 26));
}

#[test]
fn segments_that_are_not_there_are_counted_and_the_next_one_is_loaded() {
    let mut bench = Bench::playing();
    bench.wait(2.0);
    bench.asked();
    bench.playlist(0..5);
    assert_eq!(bench.asked(), "/live/3.ts");
    bench.answer("404 Not Found", "<html>none</html>");
    assert_eq!(bench.asked(), "/live/4.ts");
    bench.answer("200 OK", "<html>sorry</html>");
    bench.wait(2.0);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.answer("503 Service Unavailable", "");
    bench.wait(1.0);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [NOT_FOUND, REFUSED, SEGMENTS, LOADED]), [1, 3, 3, 6_000_000]);
}

#[test]
fn a_playlist_that_is_not_there_or_is_none_fails_its_viewer() {
    for (status, body, expected) in [
        ("404 Not Found", "", Failure::StreamNotFound),
        ("403 Forbidden", "", Failure::Unauthorized),
        ("200 OK", "<html>", Failure::MalformedInput),
    ] {
        let mut bench = Bench::start();
        bench.answer(status, body);
        assert_eq!(bench.end().1.unwrap().0, expected);
    }
}

#[test]
fn a_playlist_without_end_is_cut_off() {
    let mut bench = Bench::start();
    bench.tell(Event::Bytes(b"HTTP/1.1 200 OK\r\n\r\n#EXTM3U\n"));
    let lines = "#EXTINF:2,\na.ts\n".repeat(4_096);
    for _ in 0..100 {
        if !bench.rig.closed {
            bench.tell(Event::Bytes(lines.as_bytes()));
        }
    }
    let (figures, failure) = bench.end();
    assert_eq!(failure.unwrap().0, Failure::MalformedInput);
    assert!(figures.counter(PLAYLIST_BYTES) <= LONGEST_PLAYLIST as u64);
}

#[test]
fn redirects_are_followed_on_the_same_link_and_not_for_ever() {
    let mut bench = Bench::start();
    for number in 0..5 {
        bench.asked();
        let head =
            format!("HTTP/1.1 302 Found\r\nLocation: /b/{number}.m3u8\r\nContent-Length: 4\r\n\r\nthis");
        bench.tell(Event::Bytes(head.as_bytes()));
        assert_eq!(bench.asked(), format!("/b/{number}.m3u8"));
    }
    bench.playlist(0..3);
    // Relative to where the redirects led.
    assert_eq!(bench.asked(), "/b/0.ts");
    let mut bench = Bench::start();
    for _ in 0..6 {
        assert!(!bench.rig.closed);
        bench.tell(Event::Bytes(b"HTTP/1.1 302 Found\r\nLocation: /c\r\nContent-Length: 0\r\n\r\n"));
    }
    assert_eq!(bench.end().1.unwrap().0, Failure::RedirectFailed);
}

#[test]
fn a_segment_that_comes_slowly_stalls_its_viewer_until_it_is_whole() {
    let mut bench = Bench::playing();
    bench.wait(2.0);
    bench.asked();
    bench.playlist(0..4);
    bench.tell(Event::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"));
    for _ in 0..10 {
        bench.wait(1.0);
        bench.tell(Event::Bytes(b"x"));
    }
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    // Whole after twelve seconds; six were there.
    assert_eq!(counts(&figures, [STALLS, STALLED, STARVED, SEGMENTS]), [1, 6_000_000, 0, 4]);
}

#[test]
fn a_variant_is_chosen_and_the_chosen_playlist_is_the_one_that_is_loaded_again() {
    let mut bench = Bench::start();
    bench.asked();
    let first =
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/v.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nhigh/v.m3u8\n";
    bench.answer("200 OK", first);
    assert_eq!(bench.asked(), "/live/low/v.m3u8");
    bench.playlist(0..1);
    assert_eq!(bench.asked(), "/live/low/0.ts");
    bench.answer("200 OK", "media");
    bench.wait(2.0);
    assert_eq!(bench.asked(), "/live/low/v.m3u8");
    bench.answer("200 OK", first);
    assert_eq!(bench.end().1.unwrap().0, Failure::MalformedInput);
}

#[test]
fn the_highest_variant_is_played_if_that_is_asked_for_and_its_sound_apart_is_counted() {
    let mut bench = Bench::start_with(VariantChoice::Highest);
    bench.asked();
    bench.wait(0.25);
    bench.answer(
        "200 OK",
        "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/v.m3u8?a=1\n#EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO=\"a\"\nhigh/v.m3u8?b=2\n",
    );
    // The query is that of the URI, and not the one of the playlist that names it.
    assert_eq!(bench.asked(), "/live/high/v.m3u8?b=2");
    bench.wait(0.5);
    bench.playlist(0..1);
    assert_eq!(bench.asked(), "/live/high/0.ts");
    bench.answer("200 OK", "media");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [MULTIVARIANT, AUDIO_APART, SEGMENTS, CONNECTIONS]), [1, 1, 1, 1]);
    let times = [MULTIVARIANT_TIME, PLAYLIST_TIME].map(|spread| figures.spread(spread).max() / 10_000);
    assert_eq!(times, [25, 50]);
}

#[test]
fn a_link_that_the_server_closes_between_two_requests_is_opened_again() {
    let mut bench = Bench::playing();
    bench.tell(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    bench.wait(2.0);
    assert!(bench.rig.reopened.is_some() && !bench.rig.closed);
    bench.tell(Event::Connected);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    // The same while a request crosses with it: asked once more, and not for ever.
    bench.playlist(0..3);
    bench.wait(1.0);
    bench.asked();
    bench.tell(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    bench.wait(0.1);
    bench.tell(Event::Connected);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1");
    bench.tell(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    let (figures, failure) = bench.end();
    assert_eq!(failure.unwrap().0, Failure::ClosedByPeer);
    assert_eq!(figures.counter(CONNECTIONS), 3);
}

#[test]
fn a_recording_is_played_to_its_end_and_its_viewer_leaves_as_planned() {
    let mut bench = Bench::start();
    bench.answer(
        "200 OK",
        "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n0.ts\n#EXTINF:2,\n1.ts\n#EXT-X-ENDLIST\n",
    );
    bench.answer("200 OK", "media");
    bench.answer("200 OK", "media");
    bench.wait(3.9);
    assert!(!bench.rig.closed);
    bench.wait(0.2);
    assert!(bench.rig.closed);
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [STALLS, RELOADS, SEGMENTS]), [0, 0, 2]);
}

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
    bench.wait(0.05);
    bench
}

#[test]
fn a_viewer_of_parts_asks_for_what_is_to_come_and_loads_each_part_once() {
    let mut bench = playing_parts();
    for (whole, behind) in [(6, 1), (6, 2), (6, 3), (7, 0), (7, 1)] {
        assert_eq!(
            bench.asked(),
            format!("/live/a.m3u8?token=1&_HLS_msn={whole}&_HLS_part={behind}&_HLS_skip=YES")
        );
        // The server holds it until the part is there.
        bench.wait(0.5);
        let (segment, part) = (whole, behind);
        let (whole, behind) = if part == 3 { (whole + 1, 0) } else { (whole, part + 1) };
        bench.answer("200 OK", &low_latency(2, whole, behind, 2));
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
        assert_eq!(bench.asked(), blocking);
        bench.answer("200 OK", &low_latency(2, 6, 1, 0));
        assert_eq!(bench.asked(), "", "it is not asked at once again");
        bench.wait(0.5);
    }
    assert_eq!(bench.asked(), blocking);
    bench.answer("400 Bad Request", "");
    assert_eq!(bench.asked(), "");
    bench.wait(1.0);
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1", "as after a publisher came back");
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [EARLY, REFUSED, RELOADS, STALE]), [4, 1, 4, 0]);
}

#[test]
fn a_part_that_is_not_there_is_counted_and_a_held_request_may_take_three_target_durations_longer() {
    let mut bench = playing_parts();
    bench.asked();
    bench.wait(0.5);
    bench.answer("200 OK", &low_latency(2, 6, 2, 0));
    assert_eq!(bench.asked(), "/live/6.1.mp4");
    bench.answer("404 Not Found", "");
    assert_eq!(bench.asked(), "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=2&_HLS_skip=YES");
    let request = PlayOptions::default().timeouts.request.as_secs_f64();
    bench.wait(request + 5.9);
    assert!(!bench.rig.closed, "the source stands still, and the server says so in its time");
    bench.wait(0.2);
    assert!(bench.rig.closed);
    let (figures, failure) = bench.end();
    assert_eq!(counts(&figures, [NOT_FOUND, REFUSED, STALLS]), [1, 1, 1]);
    assert_eq!(failure.unwrap().0, Failure::RequestTimeout);
}
