//! Viewers by HTTP/2: what they ask for beside each other on one link, and what a server ends.

use super::low_latency::hinting;
use super::*;
use weir_web::http2::Http2Server;

/// A viewer, and the servers that it asks by HTTP/2: one on its own link, one on the link beside it.
struct Http2Bench {
    bench: Bench,
    servers: [Http2Server; 2],
    /// What is asked for and not answered: on which link, the key of its answer there, and its path.
    asked: Vec<(usize, u32, String)>,
}

fn viewer(url: &str, http_version: HttpVersion, alpn: Option<&[u8]>) -> Bench {
    let fields = HlsFields {
        variant: VariantChoice::First,
        bandwidth: None,
        cmcd: false,
        low_latency: true,
        start_at: None,
        seek: None,
        http_version,
    };
    let (options, http) = (PlayOptions::default(), HttpOptions::default());
    let workload = play(&[url.to_owned()], &options, &http, &fields).unwrap();
    let mut rig = Rig::new(ShardRecorder::new([workload.schema]));
    rig.alpn = alpn.map(<[u8]>::to_vec);
    let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
    let viewer = workload.start(planned, rig.now, &mut rig.world);
    let mut bench = Bench { rig, viewer };
    bench.tell(Event::Opening);
    bench.tell(Event::Connected);
    bench
}

/// Path and query of a request.
fn target(request: &weir_web::Request) -> String {
    let pairs: Vec<_> = request.query.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    format!("{}{query}", request.path)
}

impl Http2Bench {
    fn start() -> Self {
        Self::start_at([Http2Server::new(), Http2Server::new()])
    }

    fn start_at(servers: [Http2Server; 2]) -> Self {
        let bench = viewer("http://127.0.0.1:8080/live/a.m3u8?token=1", HttpVersion::Two, None);
        let mut bench = Self { bench, servers, asked: Vec::new() };
        bench.settle();
        bench
    }

    /// Carries what either says to the other until both are silent.
    fn settle(&mut self) {
        loop {
            let sent = [self.bench.rig.take_sent(), std::mem::take(&mut self.bench.rig.side_sent)];
            let mut is_silent = sent.iter().all(Vec::is_empty);
            for (place, sent) in sent.iter().enumerate() {
                let server = &mut self.servers[place];
                server.take(sent);
                while let Ok(Some((key, request))) = server.poll_request() {
                    self.asked.push((place, key, target(&request)));
                }
                let output = server.output();
                is_silent &= output.is_empty();
                match place {
                    _ if output.is_empty() => {}
                    0 => self.bench.tell(Event::Bytes(&output)),
                    _ => self.bench.rig.dispatch_side(&mut *self.bench.viewer, &output),
                }
            }
            if is_silent {
                return;
            }
        }
    }

    /// The viewer's own link is established again, to a server that knows nothing of the one before.
    fn reconnect(&mut self) {
        assert!(self.bench.rig.reopened.take().is_some(), "another link is asked for");
        self.servers[0] = Http2Server::new();
        self.asked.retain(|(place, ..)| *place != 0);
        self.bench.tell(Event::Connected);
        self.settle();
    }

    /// The same of the link beside it.
    fn connect_beside(&mut self) {
        assert!(self.bench.rig.side.is_some(), "a link beside it is asked for");
        self.servers[1] = Http2Server::new();
        self.asked.retain(|(place, ..)| *place != 1);
        self.bench.tell(Event::Side(Side::Connected));
        self.settle();
    }

    fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.asked.iter().map(|(.., path)| &**path).collect();
        paths.sort_unstable();
        paths
    }

    /// The link and the key of the answer to what begins so, which is answered now.
    fn key(&mut self, path: &str) -> (usize, u32) {
        let at = self.asked.iter().position(|(.., it)| it.starts_with(path));
        let at = at.unwrap_or_else(|| panic!("{path} is not asked for: {:?}", self.paths()));
        let (place, key, _) = self.asked.remove(at);
        (place, key)
    }

    fn answer(&mut self, path: &str, status: &str, body: &str) {
        let (place, key) = self.key(path);
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        let server = &mut self.servers[place];
        server.answer(key, head.as_bytes(), body.is_empty()).unwrap();
        if !body.is_empty() {
            server.send(key, body.to_owned().into(), true).unwrap();
        }
        self.settle();
    }

    fn reset(&mut self, path: &str, code: u32) {
        let (place, key) = self.key(path);
        self.servers[place].reset(key, code);
        self.settle();
    }

    fn wait(&mut self, seconds: f64) {
        self.bench.wait(seconds);
        self.settle();
    }

    fn playlist(&mut self, numbers: std::ops::Range<u64>) {
        let segments: String = numbers.clone().map(|it| format!("#EXTINF:2.0,\n{it}.ts\n")).collect();
        let head = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MEDIA-SEQUENCE:{}\n", numbers.start);
        self.answer("/live/a.m3u8", "200 OK", &format!("{head}{segments}"));
    }

    /// A viewer that has all that the first playlist, of segments 0 to 2, named.
    fn playing() -> Self {
        let mut bench = Self::start();
        assert_eq!(bench.paths(), ["/live/a.m3u8?token=1"]);
        bench.playlist(0..3);
        for number in 0..3 {
            bench.answer(&format!("/live/{number}.ts"), "200 OK", "media");
        }
        assert!(bench.asked.is_empty());
        bench
    }

    /// A viewer of parts that has all there is, and has asked for the part that is hinted at and for the next playlist.
    fn playing_parts() -> Self {
        let mut bench = Self::start();
        bench.answer("/live/a.m3u8", "200 OK", &hinting(2, 6, 1));
        for uri in ["/live/5.mp4", "/live/6.0.mp4"] {
            bench.answer(uri, "200 OK", "media");
        }
        bench.wait(0.05);
        bench
    }

    fn end(self) -> (Recorder, Option<(Failure, String)>) {
        self.bench.end()
    }
}

#[test]
fn a_viewer_by_http_2_loads_each_segment_once_on_one_link() {
    let mut bench = Http2Bench::playing();
    for number in 3..8 {
        bench.wait(2.0);
        bench.playlist(number - 2..number + 1);
        bench.answer(&format!("/live/{number}.ts"), "200 OK", "media");
    }
    assert!(bench.bench.rig.side.is_none() && bench.bench.rig.reopened.is_none());
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PLAYED, SEGMENTS, RELOADS, CONNECTIONS]), [1, 8, 5, 1]);
    assert_eq!(counts(&figures, [REQUESTS, HTTP2_REQUESTS, STALLS, REFUSED, MEDIA]), [14, 14, 0, 0, 40]);
}

#[test]
fn parts_and_the_playlist_that_the_server_holds_are_asked_for_beside_each_other_on_one_link() {
    let mut bench = Http2Bench::playing_parts();
    for part in 1..3 {
        let held = format!("/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part={part}&_HLS_skip=YES");
        assert_eq!(bench.paths(), [format!("/live/6.{part}.mp4"), held]);
        bench.wait(0.5);
        bench.answer(&format!("/live/6.{part}.mp4"), "200 OK", "media");
        bench.answer("/live/a.m3u8", "200 OK", &hinting(2, 6, part + 1));
    }
    assert!(bench.bench.rig.side.is_none(), "there is no second link");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PARTS, SEGMENTS, HINTS_UNUSED, CONNECTIONS, LOW_LATENCY]), [3, 1, 0, 1, 1]);
    assert_eq!(counts(&figures, [REQUESTS]), counts(&figures, [HTTP2_REQUESTS]));
    assert_eq!(figures.spread(HINT_TIME).len(), 2);
}

#[test]
fn a_hint_that_is_given_up_costs_a_stream_and_no_link() {
    let mut bench = Http2Bench::playing_parts();
    // The segment ends without the part that was hinted at.
    let end = hinting(2, 7, 1).replace("#EXT-X-PART:DURATION=0.5,URI=\"6.1.mp4\"\n", "");
    bench.answer("/live/a.m3u8", "200 OK", &end);
    assert!(
        bench.bench.rig.reopened.is_none() && bench.paths().iter().any(|path| path.ends_with("/6.2.mp4"))
    );
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [HINTS_UNUSED, CONNECTIONS]), [1, 1]);
}

#[test]
fn a_stream_that_the_server_resets_is_a_failure_unless_it_was_a_hints() {
    let mut bench = Http2Bench::playing_parts();
    bench.reset("/live/6.1.mp4", 2);
    assert!(!bench.bench.rig.closed);
    bench.reset("/live/a.m3u8", 2);
    assert!(bench.bench.rig.closed);
    let (figures, failure) = bench.end();
    assert_eq!(counts(&figures, [HINTS_UNUSED]), [1]);
    let words = "the server reset the stream of the request: INTERNAL_ERROR (RST_STREAM)";
    assert_eq!(failure, Some((Failure::Reset, words.to_owned())));
}

#[test]
fn what_the_server_refuses_to_begin_with_is_asked_twice_more() {
    let mut bench = Http2Bench::start();
    for _ in 0..2 {
        bench.reset("/live/a.m3u8", 7);
        assert_eq!(bench.paths(), ["/live/a.m3u8?token=1"]);
    }
    bench.reset("/live/a.m3u8", 7);
    let (figures, failure) = bench.end();
    assert_eq!(counts(&figures, [REQUESTS, HTTP2_REQUESTS, CONNECTIONS]), [1, 1, 1]);
    let (failure, words) = failure.unwrap();
    assert_eq!(failure, Failure::Reset);
    assert!(words.contains("REFUSED_STREAM") && words.contains("3 times in a row"), "{words}");
}

#[test]
fn a_server_that_goes_away_in_peace_is_asked_on_another_link() {
    let mut bench = Http2Bench::playing();
    bench.servers[0].end(None);
    bench.settle();
    bench.wait(2.0);
    bench.reconnect();
    assert_eq!(bench.paths(), ["/live/a.m3u8?token=1"]);
    bench.playlist(1..4);
    bench.answer("/live/3.ts", "200 OK", "media");
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [PLAYED, SEGMENTS, CONNECTIONS, STALLS]), [1, 4, 2, 0]);
}

/// As nginx does at the end of its `keepalive_requests`: what it has taken it answers, of which one may be held for seconds.
#[test]
fn a_server_that_goes_away_while_it_holds_a_playlist_is_asked_beside_that_at_once() {
    let mut bench = Http2Bench::start();
    bench.answer("/live/a.m3u8", "200 OK", &hinting(2, 6, 1));
    bench.wait(0.05);
    let held = "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=1&_HLS_skip=YES";
    assert_eq!(bench.paths(), ["/live/5.mp4", held]);
    bench.servers[0].end(None);
    bench.settle();
    bench.answer("/live/5.mp4", "200 OK", "media");
    assert_eq!(bench.paths(), [held]);
    bench.connect_beside();
    assert_eq!(bench.paths(), ["/live/6.0.mp4", held]);
    bench.answer("/live/6.0.mp4", "200 OK", "media");
    bench.wait(0.4);
    bench.answer("/live/a.m3u8", "200 OK", &hinting(2, 6, 2));
    assert!(bench.bench.rig.reopened.is_none(), "the link beside it carries all");
    assert_eq!(bench.paths().len(), 2, "{:?}", bench.paths());
    // The other goes away in the same way, before it has begun with either.
    bench
        .bench
        .rig
        .dispatch_side(&mut *bench.bench.viewer, &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
    bench.asked.clear();
    bench.reconnect();
    assert_eq!(bench.paths().len(), 2, "{:?}", bench.paths());
    assert!(bench.asked.iter().all(|(place, ..)| *place == 0));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [CONNECTIONS, HINTS_UNUSED, HTTP2_WAITS, PLAYED]), [3, 0, 0, 1]);
    assert_eq!(counts(&figures, [REQUESTS]), counts(&figures, [HTTP2_REQUESTS]));
}

/// The part that is hinted at is held, and the playlist cannot be asked for meanwhile.
#[test]
fn a_wait_for_the_end_of_another_request_is_counted_and_is_not_in_the_times_of_the_server() {
    let mut bench = Http2Bench::start_at([Http2Server::taking(1), Http2Server::new()]);
    bench.answer("/live/a.m3u8", "200 OK", &hinting(2, 6, 1));
    for uri in ["/live/5.mp4", "/live/6.0.mp4"] {
        assert_eq!(bench.paths(), [uri]);
        bench.answer(uri, "200 OK", "media");
    }
    bench.wait(0.05);
    assert_eq!(bench.paths(), ["/live/6.1.mp4"]);
    let request = PlayOptions::default().timeouts.request.as_secs_f64();
    bench.wait(request + 5.0);
    assert!(!bench.bench.rig.closed, "a request that the server does not know of is not late");
    bench.answer("/live/6.1.mp4", "200 OK", "media");
    let held = "/live/a.m3u8?token=1&_HLS_msn=6&_HLS_part=1";
    assert!(bench.paths()[0].starts_with(held) && bench.paths().len() == 1, "{:?}", bench.paths());
    bench.wait(0.01);
    bench.answer("/live/a.m3u8", "200 OK", &hinting(2, 6, 2));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [CONNECTIONS, EARLY]), [1, 0]);
    assert!(figures.counter(HTTP2_WAITS) >= 1, "{}", figures.counter(HTTP2_WAITS));
    assert_eq!(figures.spread(BLOCK_TIME).len(), 1);
    assert!(figures.spread(BLOCK_TIME).max() < 100_000, "{}", figures.spread(BLOCK_TIME).max());
}

#[test]
fn a_link_that_is_closed_between_requests_is_opened_again_and_one_in_the_middle_is_a_failure() {
    let closed = Event::Closed { failure: Failure::ClosedByPeer, words: "" };
    let mut bench = Http2Bench::playing();
    bench.bench.tell(closed);
    bench.wait(2.0);
    bench.reconnect();
    let (_, key) = bench.key("/live/a.m3u8");
    bench.servers[0].answer(key, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", false).unwrap();
    bench.servers[0].send(key, "#EXT".into(), false).unwrap();
    bench.settle();
    bench.bench.tell(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    let (failure, words) = bench.end().1.unwrap();
    let expected = "the server closed the link after 4 bytes, before the end of their stream";
    assert_eq!((failure, &*words), (Failure::ClosedByPeer, expected));
}

#[test]
fn both_streams_of_a_link_that_is_closed_are_asked_for_again_on_one() {
    let mut bench = Http2Bench::playing_parts();
    assert_eq!(bench.paths().len(), 2);
    bench.bench.tell(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
    bench.wait(0.01);
    let is_beside = bench.bench.rig.side.is_some();
    assert!(!bench.bench.rig.closed && (is_beside || bench.bench.rig.reopened.is_some()));
    let (figures, failure) = bench.end();
    assert_eq!(failure, None);
    assert_eq!(counts(&figures, [CONNECTIONS]), [2]);
}

#[test]
fn a_redirect_to_another_server_leads_to_another_link() {
    let mut bench = Http2Bench::playing();
    bench.wait(2.0);
    let (_, key) = bench.key("/live/a.m3u8");
    let head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:8081/b.m3u8\r\nContent-Length: 0\r\n\r\n";
    bench.servers[0].answer(key, head, true).unwrap();
    bench.settle();
    let address = bench.bench.rig.reopened.as_ref().map(|it| it.address.to_string());
    assert_eq!(address.as_deref(), Some("127.0.0.2:8081"));
    bench.reconnect();
    assert_eq!(bench.paths(), ["/b.m3u8"]);
    let (figures, _) = bench.end();
    assert_eq!(counts(&figures, [REQUESTS, HTTP2_REQUESTS, CONNECTIONS]), [5, 5, 2]);
}

#[test]
fn over_tls_the_server_picks_the_version_unless_one_is_asked_for() {
    let url = "https://127.0.0.1:8443/live/a.m3u8";
    for (version, alpn, by_http2) in [
        (HttpVersion::Auto, Some(&b"h2"[..]), true),
        (HttpVersion::Auto, Some(b"http/1.1"), false),
        (HttpVersion::Auto, None, false),
        (HttpVersion::One, None, false),
        (HttpVersion::Two, Some(b"h2"), true),
    ] {
        let mut bench = viewer(url, version, alpn);
        let sent = bench.rig.take_sent();
        let begins: &[u8] =
            if by_http2 { b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" } else { b"GET /live/a.m3u8 HTTP/1.1\r\n" };
        assert!(sent.starts_with(begins), "{version:?} {alpn:?}: {}", String::from_utf8_lossy(&sent));
    }
    for (alpn, chosen) in [(Some(&b"http/1.1"[..]), "http/1.1"), (None, "nothing")] {
        let (failure, words) = viewer(url, HttpVersion::Two, alpn).end().1.unwrap();
        assert_eq!(failure, Failure::TlsFailed);
        assert!(words.contains("does not speak HTTP/2") && words.contains(chosen), "{words}");
    }
}
