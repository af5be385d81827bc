mod encrypted;
mod http2;
mod low_latency;
mod recording;
mod skips;
mod standstill;

use super::*;
use crate::hls::date;
use crate::hls::figures::*;
use crate::hls::playlist::LONGEST_PLAYLIST;
use std::time::Duration;
use weir_clients::{HttpVersion, PlannedStart, Turn};
use weir_metrics::Counter;
use weir_metrics::common::{MEDIA, PLAYED, STALLED, STALLS, STARVED};
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
        let (start_at, seek) = (None, None);
        Self::start_of(&HlsFields {
            variant,
            bandwidth: None,
            cmcd: false,
            low_latency: true,
            start_at,
            seek,
            http_version: HttpVersion::Auto,
        })
    }

    /// The same, with these options.
    fn start_of(fields: &HlsFields) -> Self {
        let url = "http://127.0.0.1:8080/live/a.m3u8?token=1".to_owned();
        let workload = play(&[url], &PlayOptions::default(), &HttpOptions::default(), fields).unwrap();
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

    /// The same of the link beside it, which is there from its first request on.
    fn asked_beside(&mut self) -> String {
        if self.rig.side.is_some() && self.rig.side_sent.is_empty() {
            self.tell(Event::Side(Side::Connected));
        }
        let sent = String::from_utf8(std::mem::take(&mut self.rig.side_sent)).unwrap();
        let line = sent.lines().next().unwrap_or_default();
        line.trim_start_matches("GET ").trim_end_matches(" HTTP/1.1").to_owned()
    }

    fn answer_beside(&mut self, status: &str, body: &str) {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        self.rig.dispatch_side(&mut *self.viewer, head.as_bytes());
    }

    /// Answers with fields and a body.
    fn answer_with(&mut self, fields: &str, body: &str) {
        let length = body.len();
        self.tell(Event::Bytes(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{body}").as_bytes(),
        ));
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
fn a_viewer_whose_segments_are_refused_before_it_has_enough_to_begin_starves() {
    let mut bench = Bench::start();
    bench.asked();
    bench.playlist(0..3);
    bench.asked();
    bench.answer("200 OK", "media");
    for _ in 0..2 {
        bench.asked();
        bench.answer("404 Not Found", "");
    }
    for _ in 0..20 {
        bench.wait(1.0);
        if !bench.asked().is_empty() {
            bench.playlist(0..3);
        }
    }
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [PLAYED, STARVED, NOT_FOUND]), [1, 1, 2]);
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
    for _ in 0..200 {
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
fn the_highest_variant_is_played_if_that_is_asked_for_and_its_sound_is_loaded_beside_it() {
    let mut bench = Bench::start_with(VariantChoice::Highest);
    bench.asked();
    bench.wait(0.25);
    bench.answer(
        "200 OK",
        "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"n\",URI=\"a.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/v.m3u8?a=1\n#EXT-X-STREAM-INF:BANDWIDTH=2,AUDIO=\"a\"\nhigh/v.m3u8?b=2\n",
    );
    // The query is that of the URI, and not the one of the playlist that names it.
    assert_eq!(bench.asked(), "/live/high/v.m3u8?b=2");
    assert_eq!(bench.asked_beside(), "/live/a.m3u8");
    bench.wait(0.5);
    bench.playlist(0..1);
    assert_eq!(bench.asked(), "/live/high/0.ts");
    bench.answer("200 OK", "media");
    let sound = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\ns0.aac\n#EXTINF:2,\ns1.aac\n";
    bench.answer_beside("200 OK", sound);
    assert_eq!(bench.asked_beside(), "/live/s0.aac");
    // Nothing is shown before there is sound: no stall, however long that takes.
    bench.wait(1.4);
    bench.answer_beside("200 OK", "sound");
    assert_eq!(bench.asked_beside(), "/live/s1.aac");
    bench.wait(1.0);
    assert_eq!(bench.asked(), "/live/high/v.m3u8?b=2");
    bench.playlist(0..2);
    assert_eq!(bench.asked(), "/live/high/1.ts");
    bench.answer("200 OK", "media");
    bench.wait(2.0);
    bench.answer_beside("200 OK", "sound");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [MULTIVARIANT, AUDIO_APART, SEGMENTS, CONNECTIONS]), [1, 1, 4, 2]);
    // Two seconds of both are there for three: the pictures wait for the sound.
    assert_eq!(counts(&figures, [STALLS, STALLED]), [1, 1_000_000]);
    let times =
        [MULTIVARIANT_TIME, PLAYLIST_TIME].map(|spread| (figures.spread(spread).min() + 5_000) / 10_000);
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

#[test]
fn latency_is_told_by_the_dates_of_the_playlist_and_grows_by_each_stall() {
    let mut bench = Bench::start();
    bench.asked();
    // The playlist ends with what was captured a second ago.
    let wall = HostClock::read().at(bench.rig.now).wall_nanos as i64;
    let begin = date::write(wall - 7_000_000_000);
    let playlist = |count: u64| {
        let segments: String = (0..count).map(|it| format!("#EXTINF:2.0,\n{it}.ts\n")).collect();
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-PROGRAM-DATE-TIME:{begin}\n{segments}")
    };
    bench.answer_with("Age: 1\r\n", &playlist(3));
    for _ in 0..3 {
        bench.asked();
        bench.answer_with("X-Cache: MISS\r\n", "media");
    }
    bench.wait(2.0);
    bench.asked();
    bench.answer("200 OK", &playlist(4));
    bench.asked();
    // Six seconds were there, and two are gone: it comes a second after they have been shown.
    bench.wait(5.0);
    bench.answer("200 OK", "media");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [STALLS, CACHE_HITS, CACHE_MISSES]), [1, 1, 3]);
    let seconds = |signed| {
        let values = figures.signed(signed);
        let round = |micros: i64| (micros as f64 / 1e6).round();
        (round(values.min()), round(values.value_at_quantile(1.0)), values.len())
    };
    assert_eq!(seconds(LATENCY), (7.0, 8.0, 2));
    assert_eq!(seconds(EDGE_LATENCY), (1.0, 1.0, 2));
}

#[test]
fn a_key_is_loaded_before_the_first_segment_that_needs_it() {
    let mut bench = Bench::start();
    bench.asked();
    let playlist = |count: u64| {
        let segments: String = (0..count).map(|it| format!("#EXTINF:2.0,\n{it}.ts\n")).collect();
        format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=AES-128,URI=\"key?a=1\"\n{segments}#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://x\",KEYFORMAT=\"com.apple.streamingkeydelivery\"\n#EXT-X-KEY:METHOD=AES-128,URI=\"other\"\n#EXTINF:2.0,\nlast.ts\n#EXT-X-ENDLIST\n"
        )
    };
    bench.answer("200 OK", &playlist(2));
    assert_eq!(bench.asked(), "/live/key?a=1");
    bench.answer("200 OK", "0123456789abcdef");
    for number in 0..2 {
        assert_eq!(bench.asked(), format!("/live/{number}.ts"));
        bench.answer("200 OK", "media");
    }
    assert_eq!(bench.asked(), "/live/other");
    // What is no key is of no use.
    bench.answer("200 OK", "short");
    assert_eq!(bench.asked(), "");
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [KEYS, REFUSED, SEGMENTS, SEALED, MEDIA]), [1, 1, 2, 0, 10]);
    assert_eq!(counts(&figures, [DECRYPTED, UNDECRYPTED]), [0, 2], "no block is whole");
}

#[test]
fn a_viewer_changes_to_the_variant_that_its_link_can_bring_and_goes_on_where_it_was() {
    let mut bench = Bench::start_with(VariantChoice::Auto);
    bench.asked();
    // Five bytes in a millisecond are 40 kbit/s.
    bench.answer(
        "200 OK",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9000\nlow/v.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=20000\nhigh/v.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=39000\nhighest/v.m3u8\n",
    );
    assert_eq!(bench.asked(), "/live/low/v.m3u8");
    bench.playlist(0..3);
    assert_eq!(bench.asked(), "/live/low/0.ts");
    bench.answer("200 OK", "media");
    assert_eq!(bench.asked(), "/live/high/v.m3u8");
    // It is one segment behind.
    bench.playlist(0..2);
    assert_eq!(bench.asked(), "/live/high/1.ts");
    bench.answer("200 OK", "media");
    bench.wait(1.0);
    assert_eq!(bench.asked(), "/live/high/v.m3u8");
    bench.playlist(0..4);
    for number in 2..4 {
        assert_eq!(bench.asked(), format!("/live/high/{number}.ts"));
        // The last takes nine seconds.
        bench.wait(if number == 3 { 9.0 } else { 0.0 });
        bench.answer("200 OK", "media");
    }
    assert_eq!(bench.asked(), "/live/low/v.m3u8");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [SWITCHES, SEGMENTS, WENT_BACK, SKIPPED, STALE]), [2, 4, 0, 0, 0]);
    assert_eq!(counts(&figures, [ANNOUNCED, LOADED]), [8_000_000; 2]);
    assert_eq!(figures.spread(VARIANT_BANDWIDTH).len(), 4);
}

#[test]
fn a_viewer_of_a_narrow_link_reads_no_faster() {
    let url = "http://127.0.0.1:8080/live/a.m3u8".to_owned();
    let fields = HlsFields {
        variant: VariantChoice::First,
        bandwidth: Some("80kbps".parse().unwrap()),
        cmcd: true,
        low_latency: true,
        start_at: None,
        seek: None,
        http_version: HttpVersion::Auto,
    };
    let workload = play(&[url], &PlayOptions::default(), &HttpOptions::default(), &fields).unwrap();
    let mut rig = Rig::new(ShardRecorder::new([workload.schema]));
    let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
    let viewer = workload.start(planned, rig.now, &mut rig.world);
    let mut bench = Bench { rig, viewer };
    bench.tell(Event::Opening);
    bench.tell(Event::Connected);
    let sent = String::from_utf8(bench.rig.take_sent()).unwrap();
    assert!(
        sent.contains("\r\nCMCD-Object: ot=m\r\n") && sent.contains("\r\nCMCD-Request: su\r\n"),
        "{sent}"
    );
    bench.playlist(0..3);
    let sent = String::from_utf8(bench.rig.take_sent()).unwrap();
    assert!(
        sent.starts_with("GET /live/0.ts ") && sent.contains("\r\nCMCD-Object: d=2000,ot=av\r\n"),
        "{sent}"
    );
    assert_eq!(sent.matches("CMCD-Object").count(), 1, "{sent}");
    bench.wait(1.0);
    assert!(!bench.rig.paused);
    bench.answer("200 OK", &"x".repeat(10_000));
    assert!(bench.rig.paused, "it takes a second to come");
    bench.wait(0.99);
    assert!(bench.rig.paused);
    bench.wait(0.1);
    assert!(!bench.rig.paused);
}

#[test]
fn a_viewer_sends_back_the_cookies_that_it_was_given_and_no_other_viewers() {
    let url = "http://127.0.0.1:8080/live/a.m3u8".to_owned();
    let fields = HlsFields {
        variant: VariantChoice::First,
        bandwidth: None,
        cmcd: false,
        low_latency: true,
        start_at: None,
        seek: None,
        http_version: HttpVersion::Auto,
    };
    let workload = play(&[url], &PlayOptions::default(), &HttpOptions::default(), &fields).unwrap();
    // Viewers of one thread, who share their requests.
    let mut benches = [0, 1, 2].map(|client| {
        let mut rig = Rig::new(ShardRecorder::new([workload.schema]));
        let planned = PlannedStart { client, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let viewer = workload.start(planned, rig.now, &mut rig.world);
        let mut bench = Bench { rig, viewer };
        bench.tell(Event::Opening);
        bench.tell(Event::Connected);
        bench
    });
    let mut sent = Vec::new();
    for (bench, set) in benches.iter_mut().zip(["", "Set-Cookie: s=1; Path=/live\r\n", "Set-Cookie: s=2\r\n"])
    {
        assert!(!String::from_utf8(bench.rig.take_sent()).unwrap().contains("Cookie"));
        bench.answer_with(set, "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n0.ts\n#EXTINF:2,\n1.ts\n");
        sent.push(String::from_utf8(bench.rig.take_sent()).unwrap());
    }
    for (sent, cookie) in sent.iter().zip([None, Some("s=1"), Some("s=2")]) {
        assert!(sent.starts_with("GET /live/0.ts "), "{sent}");
        assert_eq!(sent.lines().find_map(|line| line.strip_prefix("Cookie: ")), cookie, "{sent}");
    }
    // A redirect sets one for where it leads to, where the other does not belong.
    let bench = &mut benches[1];
    bench.tell(Event::Bytes(
        b"HTTP/1.1 302 Found\r\nLocation: /b/0.ts\r\nSet-Cookie: b=2; Path=/b\r\nContent-Length: 0\r\n\r\n",
    ));
    let sent = String::from_utf8(bench.rig.take_sent()).unwrap();
    assert!(sent.starts_with("GET /b/0.ts ") && sent.contains("\r\nCookie: b=2\r\n"), "{sent}");
}
