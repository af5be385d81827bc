//! Connections of HTTP/2.

use super::*;
use std::collections::HashMap;
use weir_web::http2::{Http2Client, Http2Part, MOST_AT_ONCE};

/// A connection and a client of it, with what came of each request: status, body, and whether it has ended.
struct Http2Bench {
    bench: Bench,
    client: Http2Client,
    came: HashMap<usize, (u16, Vec<u8>, bool)>,
}

impl Http2Bench {
    fn new(faults: &[&str]) -> Self {
        Self::on(Bench::speaking(Some(ALPN), faults))
    }

    fn on(bench: Bench) -> Self {
        let mut bench = Self { bench, client: Http2Client::new().unwrap(), came: HashMap::new() };
        bench.settle();
        bench
    }

    fn ask(&mut self, key: usize, path: &str) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        self.came.insert(key, (0, Vec::new(), false));
        self.client.request(key, "https", head.as_bytes()).unwrap();
        self.settle();
    }

    /// Carries what either side says until both are silent.
    fn settle(&mut self) {
        loop {
            let (up, down) = (self.client.output(), self.bench.rig.take_sent());
            if up.is_empty() && down.is_empty() {
                return;
            }
            if !up.is_empty() {
                self.bench.rig.dispatch(&mut self.bench.session, Event::Bytes(&up));
            }
            for piece in down.chunks(MOST_AT_ONCE) {
                self.client.take(piece);
                for (key, came) in &mut self.came {
                    while let Ok(Some(part)) = self.client.poll(*key) {
                        match part {
                            Http2Part::Head(head) => came.0 = head.status,
                            Http2Part::Piece(piece) => came.1.extend_from_slice(&piece),
                            Http2Part::End => came.2 = true,
                        }
                    }
                }
            }
        }
    }

    fn wake(&mut self) {
        self.bench.wake();
        self.settle();
    }

    fn advance(&mut self, milliseconds: u64) {
        self.bench.advance(milliseconds);
        self.settle();
    }

    /// The status of what was answered in full, or 0.
    fn status(&self, key: usize) -> u16 {
        let (status, _, ended) = self.came[&key];
        if ended { status } else { 0 }
    }

    fn body(&self, key: usize) -> String {
        String::from_utf8(self.came[&key].1.clone()).unwrap()
    }
}

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, 0], &stream.to_be_bytes(), payload].concat()
}

/// What a client begins with, and these settings.
fn begun(settings: &[u8]) -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, settings)].concat()
}

/// GET of a segment on the first stream: a head that ends the request, all of it literal but method and scheme.
fn get(path: &str) -> Vec<u8> {
    let block = [&[0x82, 0x87, 0x04, path.len() as u8], path.as_bytes(), &[0x01, 1, b'x']].concat();
    let mut head = frame(1, 1, &block);
    head[4] = 5;
    head
}

/// Kinds and streams of the frames in what was sent.
fn kinds(mut bytes: &[u8]) -> Vec<(u8, u32)> {
    let mut kinds = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(9) {
        kinds.push((head[3], u32::from_be_bytes(head[5..9].try_into().unwrap())));
        bytes = &rest[usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])..];
    }
    kinds
}

#[test]
fn what_waits_holds_up_nothing_that_is_asked_beside_it() {
    let mut bench = Http2Bench::new(&[]);
    bench.bench.begin();
    bench.ask(0, "/live/a.m3u8?_HLS_msn=2&_HLS_part=0");
    bench.ask(1, "/live/a/part-8.ts");
    bench.ask(2, "/live/a/1.ts");
    bench.ask(3, "/live/a/99.ts");
    assert_eq!([0, 1, 2, 3].map(|key| bench.status(key)), [0, 0, 200, 404]);
    assert_eq!(bench.body(2), "partpartpartpart");
    bench.wake();
    assert_eq!([0, 1].map(|key| bench.status(key)), [0, 0], "it was woken for nothing");
    bench.bench.part();
    bench.wake();
    assert_eq!([0, 1].map(|key| bench.status(key)), [200, 200]);
    assert!(bench.body(0).contains("a/part-8.ts") && bench.body(1) == "part");
    assert!(bench.bench.rig.established && !bench.bench.rig.closed);
}

#[test]
fn a_client_that_knows_that_it_is_spoken_needs_no_tls() {
    let mut bench = Http2Bench::on(Bench::new(&[]));
    bench.ask(0, "/live/a.m3u8");
    assert_eq!(bench.status(0), 200);
}

#[test]
fn faults_are_those_of_the_connection_and_befall_requests_in_their_order() {
    let mut bench =
        Http2Bench::new(&["status unit=2 code=500", "drop unit=3", "stall unit=4 for=1s", "close unit=6"]);
    (1..=5).for_each(|key| bench.ask(key, "/live/a/0.ts"));
    assert_eq!([1, 2, 3, 4, 5].map(|key| bench.status(key)), [200, 500, 404, 0, 200]);
    bench.advance(1_100);
    assert_eq!(bench.status(4), 200);
    bench.ask(6, "/live/a/0.ts");
    assert!(bench.bench.rig.closed);
}

#[test]
fn a_stale_playlist_and_an_early_answer_are_as_by_http_1() {
    let mut bench = Http2Bench::new(&["stale at=1s for=5s"]);
    bench.ask(0, "/live/a.m3u8");
    bench.advance(1_500);
    bench.bench.segment();
    bench.ask(1, "/live/a.m3u8");
    bench.ask(2, "/live/a.m3u8?_HLS_msn=2");
    assert_eq!((bench.body(1), bench.status(2)), (bench.body(0), 0));
    bench.advance(4_600);
    assert!(bench.body(2).contains("a/2.ts"));
    let mut bench = Http2Bench::new(&["early unit=1"]);
    bench.bench.begin();
    bench.ask(0, "/live/a.m3u8?_HLS_msn=2&_HLS_part=0");
    assert_eq!(bench.status(0), 200);
}

#[test]
fn a_reload_in_vain_ends_alone() {
    let mut bench = Http2Bench::new(&[]);
    bench.ask(0, "/live/a.m3u8?_HLS_msn=2");
    bench.advance(6_100);
    assert_eq!(bench.status(0), 503);
    bench.ask(1, "/live/a.m3u8");
    assert_eq!(bench.status(1), 200);
}

#[test]
fn who_gives_up_and_leaves_leaves_nothing_behind() {
    let mut bench = Http2Bench::new(&[]);
    bench.ask(0, "/live/none.m3u8");
    bench.ask(1, "/live/none.m3u8");
    bench.client.cancel(0);
    bench.settle();
    bench.client.cancel(1);
    bench.settle();
    bench
        .bench
        .rig
        .dispatch(&mut bench.bench.session, Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    assert_eq!((bench.bench.rig.world.clients().viewers, bench.bench.rig.world.present()), (0, 0));
}

#[test]
fn who_asks_and_gives_up_without_end_is_cut_off() {
    let mut bench = Http2Bench::new(&[]);
    for key in 0..1_000 {
        if !bench.client.is_open() {
            assert!((200..=202).contains(&key), "{key}");
            bench.advance(2_100);
            assert!(bench.bench.rig.closed);
            return;
        }
        bench.ask(key, "/live/none.m3u8");
        bench.client.cancel(key);
        bench.settle();
    }
    panic!("it goes on");
}

#[test]
fn a_window_that_stays_closed_costs_its_stream_and_a_link_that_takes_nothing_the_connection() {
    let mut bench = Bench::speaking(Some(ALPN), &[]);
    // SETTINGS_INITIAL_WINDOW_SIZE: 0.
    let bytes = [begun(&[0, 4, 0, 0, 0, 0]), get("/live/a/0.ts")].concat();
    bench.rig.dispatch(&mut bench.session, Event::Bytes(&bytes));
    assert!(!kinds(&bench.rig.take_sent()).contains(&(0, 1)), "there is no window for the body");
    bench.advance(31_000);
    assert!(kinds(&bench.rig.take_sent()).contains(&(3, 1)) && !bench.rig.closed);
    let mut bench = Bench::speaking(Some(ALPN), &[]);
    bench.rig.room = 10;
    bench.rig.dispatch(&mut bench.session, Event::Bytes(&[begun(&[]), get("/live/a/0.ts")].concat()));
    bench.advance(31_000);
    assert!(bench.rig.reset);
}

#[test]
fn who_wants_answers_and_reads_none_is_not_read_from() {
    for flood in [frame(6, 0, &[7; 8]), frame(4, 0, &[0, 1, 0, 0, 16, 0])] {
        let mut bench = Bench::speaking(Some(ALPN), &[]);
        bench.rig.room = 0;
        bench.rig.dispatch(&mut bench.session, Event::Bytes(&[begun(&[]), flood.repeat(100_000)].concat()));
        assert!(bench.rig.paused && bench.rig.left.len() > 1_300_000, "{}", bench.rig.left.len());
        bench.rig.make_room(&mut bench.session, usize::MAX);
        assert!(!bench.rig.paused && bench.rig.left.is_empty() && !bench.rig.closed);
        let answers = kinds(&bench.rig.take_sent()).len();
        assert!(answers > 100_000, "{answers}");
    }
}

#[test]
fn what_is_not_http_2_ends_the_connection() {
    for bytes in [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), [begun(&[]), frame(0, 0, b"x")].concat()] {
        let mut bench = Bench::speaking(Some(ALPN), &[]);
        bench.rig.dispatch(&mut bench.session, Event::Bytes(&bytes));
        bench.advance(2_100);
        assert!(bench.rig.closed);
    }
}
