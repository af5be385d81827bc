//! Connections on a made-up clock.

mod http2;

use super::super::settings::HlsSettings;
use super::super::shelf::{Shelf, Shelves};
use super::super::window::Segment;
use super::*;
use crate::harness::settings as usual;
use crate::hls::HlsSession;
use crate::worker::OriginSettings;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Failure;
use weir_shard::{Event, Rig};

/// A rig, a session, and the shelf of `live/a` with two segments of two seconds in four parts.
struct Bench {
    rig: Rig<Worker>,
    session: HlsSession,
    shelf: Arc<Shelf>,
}

impl Bench {
    fn new(faults: &[&str]) -> Self {
        Self::speaking(None, faults)
    }

    /// The same on a link whose ends have settled on this protocol.
    fn speaking(alpn: Option<&[u8]>, faults: &[&str]) -> Self {
        let settings = Arc::into_inner(usual()).unwrap();
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let hls = HlsSettings { part: Some(Duration::from_millis(500)), ..HlsSettings::default() };
        let settings = OriginSettings { faults, hls: Some(Shelves::new(hls)), ..settings };
        let mut rig = Rig::new(Worker::new(Arc::new(settings)));
        rig.alpn = alpn.map(<[u8]>::to_vec);
        let mut session = HlsSession::new(&mut rig.world, SocketAddr::from(([127, 0, 0, 1], 50_000)));
        let shelf = rig.world.settings().hls.as_ref().unwrap().begin(&"live/a".into());
        rig.dispatch(&mut session, Event::Connected);
        let mut bench = Self { rig, session, shelf };
        (0..2).for_each(|_| bench.segment());
        bench
    }

    fn part(&mut self) {
        self.shelf.change(|window| {
            window.push(b"part".to_vec(), Duration::from_millis(500), false);
            true
        });
    }

    fn begin(&mut self) {
        self.shelf.change(|window| {
            window.begin(Segment::new(0, false, false, None));
            false
        });
    }

    fn segment(&mut self) {
        self.begin();
        (0..4).for_each(|_| self.part());
        self.shelf.change(|window| {
            window.finish();
            true
        });
    }

    fn ask(&mut self, path: &str) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        self.rig.dispatch(&mut self.session, Event::Bytes(request.as_bytes()));
    }

    fn wake(&mut self) {
        self.rig.dispatch(&mut self.session, Event::Woken);
    }

    fn advance(&mut self, milliseconds: u64) {
        self.rig.advance(&mut self.session, Duration::from_millis(milliseconds));
    }

    /// What was answered since the last time.
    fn answers(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.rig.sent)).unwrap()
    }

    /// The status of the one answer since the last time, or 0.
    fn status(&mut self) -> u16 {
        let answers = self.answers();
        assert!(answers.matches("HTTP/1.1 ").count() <= 1, "{answers}");
        answers.split(' ').nth(1).map_or(0, |status| status.parse().unwrap())
    }
}

#[test]
fn requests_on_one_connection_are_answered_one_after_the_other() {
    let mut bench = Bench::new(&[]);
    let paths = ["/live/a.m3u8", "/live/a/0.ts", "/live/a/part-4.ts", "/live/a/9.ts", "/live/none.ts"];
    let requests: String = paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\n\r\n")).collect();
    bench.rig.dispatch(&mut bench.session, Event::Bytes(requests.as_bytes()));
    let answers = bench.answers();
    let statuses: Vec<_> =
        answers.split("HTTP/1.1 ").skip(1).map(|it| it.split(' ').next().unwrap()).collect();
    assert_eq!(statuses, ["200", "200", "200", "404", "404"], "{answers}");
    assert!(answers.contains("Content-Length: 16\r\n") && answers.contains("partpartpartpart"), "{answers}");
    assert!(bench.rig.established && !bench.rig.closed);
}

#[test]
fn a_reload_waits_for_its_part_and_what_was_asked_behind_it_waits_too() {
    let mut bench = Bench::new(&[]);
    bench.begin();
    bench.ask("/live/a.m3u8?_HLS_msn=2&_HLS_part=0");
    bench.ask("/live/a/1.ts");
    assert_eq!(bench.status(), 0);
    bench.wake();
    assert_eq!(bench.status(), 0, "it was woken for nothing");
    bench.part();
    bench.wake();
    let answers = bench.answers();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert!(answers.contains("a/part-8.ts") && answers.ends_with("partpartpartpart"), "{answers}");
}

#[test]
fn a_hint_is_answered_when_the_part_is_there_and_never_after_the_end() {
    let mut bench = Bench::new(&[]);
    bench.begin();
    bench.ask("/live/a/part-8.ts");
    assert_eq!(bench.status(), 0);
    bench.part();
    bench.wake();
    assert!(bench.answers().ends_with("\r\n\r\npart"));
    bench.ask("/live/a/part-9.ts");
    bench.shelf.change(|window| {
        window.finish();
        window.end();
        true
    });
    bench.wake();
    assert_eq!(bench.status(), 404);
}

#[test]
fn a_reload_that_is_too_far_ahead_is_refused_and_one_in_vain_ends() {
    let mut bench = Bench::new(&[]);
    bench.ask("/live/a.m3u8?_HLS_msn=9");
    assert_eq!(bench.status(), 400);
    bench.ask("/live/a.m3u8?_HLS_part=9");
    assert_eq!(bench.status(), 400);
    bench.ask("/live/a.m3u8?_HLS_msn=2");
    bench.advance(5_900);
    assert_eq!(bench.status(), 0);
    bench.advance(200);
    assert_eq!(bench.status(), 503);
    bench.ask("/live/a.m3u8");
    assert_eq!(bench.status(), 200);
}

#[test]
fn a_slow_peer_is_sent_all_of_a_segment_and_one_that_takes_nothing_is_reset() {
    let mut bench = Bench::new(&[]);
    bench.rig.room = 10;
    bench.ask("/live/a/0.ts");
    bench.advance(20_000);
    bench.rig.make_room(&mut bench.session, 20);
    bench.advance(20_000);
    assert!(!bench.rig.closed);
    bench.rig.make_room(&mut bench.session, 1 << 20);
    assert!(bench.answers().ends_with("partpartpartpart"));
    bench.rig.room = 10;
    bench.ask("/live/a/0.ts");
    bench.advance(31_000);
    assert!(bench.rig.reset);
}

#[test]
fn a_reader_of_a_few_bytes_a_second_keeps_no_segment_for_ever() {
    let mut bench = Bench::new(&[]);
    bench.rig.room = 10;
    bench.ask("/live/a/0.ts");
    let mut seconds = 0;
    while !bench.rig.closed && seconds < 200 {
        bench.rig.room += 1;
        bench.rig.dispatch(&mut bench.session, Event::Writable);
        bench.advance(1_000);
        seconds += 1;
    }
    assert!(bench.rig.reset && (119..=122).contains(&seconds), "{seconds}");
}

#[test]
fn ranges_of_media_are_answered_and_those_of_playlists_are_not() {
    let mut bench = Bench::new(&[]);
    let mut ask = |path: &str, range: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nRange: {range}\r\n\r\n");
        bench.rig.dispatch(&mut bench.session, Event::Bytes(request.as_bytes()));
        bench.answers()
    };
    let answer = ask("/live/a/0.ts", "bytes=2-5");
    assert!(answer.starts_with("HTTP/1.1 206 ") && answer.ends_with("\r\n\r\nrtpa"), "{answer}");
    assert!(answer.contains("\r\nContent-Range: bytes 2-5/16\r\n"), "{answer}");
    let answer = ask("/live/a/0.ts", "bytes=16-");
    assert!(
        answer.starts_with("HTTP/1.1 416 ") && answer.contains("Content-Range: bytes */16\r\n"),
        "{answer}"
    );
    assert!(ask("/live/a.m3u8", "bytes=0-3").starts_with("HTTP/1.1 200 "));
}

#[test]
fn streams_of_one_folder_are_variants_once_all_are_there() {
    let mut bench = Bench::new(&[]);
    bench.ask("/live/a,b.m3u8");
    assert_eq!(bench.status(), 0, "a stream may be called so, and is waited for");
    let mut bench = Bench::new(&[]);
    let shelf = bench.rig.world.settings().hls.as_ref().unwrap().begin(&"live/b".into());
    let first = std::mem::replace(&mut bench.shelf, shelf);
    bench.segment();
    bench.shelf = first;
    bench.ask("/live/a,b.m3u8");
    let answer = bench.answers();
    // Four parts of four bytes in two seconds.
    let variant = |name: &str| format!("#EXT-X-STREAM-INF:BANDWIDTH=64,AVERAGE-BANDWIDTH=64\n{name}.m3u8\n");
    assert!(answer.ends_with(&(variant("a") + &variant("b"))), "{answer}");
}

#[test]
fn who_asks_for_variants_too_early_waits_until_all_are_there_and_not_for_ever() {
    let mut bench = Bench::new(&[]);
    bench.ask("/live/a,b.m3u8");
    bench.advance(1_000);
    assert_eq!(bench.status(), 0);
    let shelf = bench.rig.world.settings().hls.as_ref().unwrap().begin(&"live/b".into());
    let first = std::mem::replace(&mut bench.shelf, shelf);
    bench.segment();
    bench.shelf = first;
    bench.advance(300);
    assert_eq!(bench.status(), 200);
    bench.ask("/live/a,c.m3u8");
    bench.advance(30_900);
    assert_eq!(bench.status(), 0);
    bench.advance(300);
    assert_eq!(bench.status(), 404);
}

#[test]
fn who_comes_before_the_first_segment_waits_as_long_as_one_may_take() {
    let mut bench = Bench::new(&[]);
    bench.shelf = bench.rig.world.settings().hls.as_ref().unwrap().begin(&"live/b".into());
    bench.ask("/live/b.m3u8");
    bench.advance(20_000);
    assert_eq!(bench.status(), 0);
    bench.segment();
    bench.wake();
    assert_eq!(bench.status(), 200);
    bench.shelf = bench.rig.world.settings().hls.as_ref().unwrap().begin(&"live/c".into());
    bench.ask("/live/c.m3u8");
    bench.advance(30_900);
    assert_eq!(bench.status(), 0);
    bench.advance(200);
    assert_eq!(bench.status(), 503);
}

#[test]
fn who_leaves_while_it_waits_leaves_nothing_behind() {
    let mut bench = Bench::new(&[]);
    bench.ask("/live/none.m3u8");
    assert_eq!(bench.status(), 0, "it waits for a publisher");
    bench.rig.dispatch(&mut bench.session, Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    assert_eq!((bench.rig.world.clients().viewers, bench.rig.world.present()), (0, 0));
}

#[test]
fn faults_answer_with_a_status_late_or_not_at_all() {
    let mut bench =
        Bench::new(&["status unit=2 code=500", "drop unit=3", "stall unit=4 for=1s", "close unit=5"]);
    let mut expect = |wait: u64, status: u16| {
        bench.ask("/live/a/0.ts");
        if wait > 0 {
            bench.advance(wait - 100);
            assert_eq!(bench.status(), 0);
            bench.advance(200);
        }
        assert_eq!(bench.status(), status);
    };
    expect(0, 200);
    expect(0, 500);
    expect(0, 404);
    expect(1_000, 200);
    expect(0, 0);
    assert!(bench.rig.closed);
}

#[test]
fn a_stale_playlist_is_the_one_before_and_goes_on_later() {
    let mut bench = Bench::new(&["stale at=1s for=5s"]);
    bench.ask("/live/a.m3u8");
    let body = |answer: String| answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    let before = body(bench.answers());
    bench.advance(1_500);
    bench.segment();
    bench.ask("/live/a.m3u8");
    assert_eq!(body(bench.answers()), before);
    bench.ask("/live/a.m3u8?_HLS_msn=2");
    assert_eq!(bench.status(), 0, "what it waits for is not there before");
    bench.advance(4_600);
    assert!(bench.answers().contains("a/2.ts"));
}

#[test]
fn an_early_answer_has_nothing_new() {
    let mut bench = Bench::new(&["early unit=2"]);
    bench.begin();
    bench.ask("/live/a.m3u8?_HLS_msn=2&_HLS_part=0");
    assert_eq!(bench.status(), 0);
    bench.part();
    bench.wake();
    assert_eq!(bench.status(), 200);
    bench.ask("/live/a.m3u8?_HLS_msn=2&_HLS_part=1");
    let answer = bench.answers();
    assert!(answer.contains("HINT:TYPE=PART,URI=\"a/part-9.ts\""), "{answer}");
}
