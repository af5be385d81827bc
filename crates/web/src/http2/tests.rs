use super::*;
use crate::Request;
use proptest::prelude::*;

const HEAD: &[u8] =
    b"GET /live/a%20b.m3u8?x=1 HTTP/1.1\r\nHost: host:81\r\nAccept: */*\r\nX-Token: secret\r\n\
    Authorization: Basic bWU6bWluZQ==\r\nConnection: keep-alive\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nConnection: keep-alive\r\n\r\n";

/// A client and a server in memory.
struct Pair {
    client: Http2Client,
    server: Http2Server,
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self { client: Http2Client::new().unwrap(), server: Http2Server::new() };
        pair.settle();
        pair
    }

    /// Carries what either says to the other until both are silent.
    fn settle(&mut self) -> Vec<(u32, Request)> {
        let mut requests = Vec::new();
        loop {
            let (up, down) = (self.client.output(), self.server.output());
            if up.is_empty() && down.is_empty() {
                return requests;
            }
            self.server.take(&up);
            while let Ok(Some(request)) = self.server.poll_request() {
                requests.push(request);
            }
            self.client.take(&down);
        }
    }

    /// Asks by this key: the server's key of the request.
    fn ask(&mut self, key: usize) -> u32 {
        self.client.request(key, "https", HEAD).unwrap();
        let requests = self.settle();
        assert_eq!(requests.len(), 1);
        requests[0].0
    }

    /// The answer to a key: its status and its body, if it has ended.
    fn answer(&mut self, key: usize) -> (u16, Vec<u8>, bool) {
        let (mut status, mut body) = (0, Vec::new());
        loop {
            match self.client.poll(key).unwrap() {
                Some(Http2Part::Head(response)) => status = response.status,
                Some(Http2Part::Piece(piece)) => body.extend_from_slice(&piece),
                Some(Http2Part::End) => return (status, body, true),
                None => return (status, body, false),
            }
        }
    }
}

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What a client says that has asked for something and was sent this.
fn told(frames: &[u8]) -> (Http2Client, Result<Option<Http2Part>, Http2Error>) {
    let mut client = Http2Client::new().unwrap();
    client.request(0, "https", HEAD).unwrap();
    client.output();
    client.take(&frame(4, 0, 0, &[]));
    client.take(frames);
    let said = client.poll(0);
    (client, said)
}

fn failed(frames: &[u8]) -> Http2Error {
    told(frames).1.unwrap_err()
}

#[test]
fn a_request_has_the_fields_of_http_1_but_for_those_of_its_connection() {
    let mut pair = Pair::new();
    pair.client.request(7, "https", HEAD).unwrap();
    let (_, request) = pair.settle().remove(0);
    assert_eq!((&*request.method, &*request.path), ("GET", "/live/a%20b.m3u8"));
    assert_eq!(request.asks("x"), Some("1"));
    assert_eq!(request.fields.get("x-token"), Some("secret"));
    assert_eq!(request.basic().as_deref(), Some("me:mine"));
    assert_eq!((request.fields.get("connection"), request.fields.get("host")), (None, None));
}

#[test]
fn answers_beside_each_other_are_told_apart() {
    let mut pair = Pair::new();
    let (first, second) = (pair.ask(0), pair.ask(1));
    pair.server.answer(second, OK, false).unwrap();
    pair.server.send(second, Bytes::from_static(b"second"), true).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (0, Vec::new(), false));
    assert_eq!(pair.answer(1), (200, b"second".to_vec(), true));
    pair.server.answer(first, OK, false).unwrap();
    pair.server.send(first, Bytes::from_static(b"fi"), false).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (200, b"fi".to_vec(), false));
    assert!(!pair.client.is_idle());
    pair.server.send(first, Bytes::from_static(b"rst"), true).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (0, b"rst".to_vec(), true));
    assert!(pair.client.is_idle() && pair.client.is_open());
}

#[test]
fn an_answer_without_a_body_is_whole() {
    let mut pair = Pair::new();
    let key = pair.ask(0);
    pair.server.answer(key, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (404, Vec::new(), true));
}

#[test]
fn more_than_the_windows_hold_comes_while_it_is_read() {
    let mut pair = Pair::new();
    let key = pair.ask(0);
    pair.server.answer(key, OK, false).unwrap();
    let piece = Bytes::from(vec![7; 1 << 20]);
    for number in 0..40 {
        pair.server.send(key, piece.clone(), number == 39).unwrap();
    }
    let mut came = 0;
    // Each round brings no less than half of the smaller window.
    for _ in 0..40 {
        pair.settle();
        let (_, body, ends) = pair.answer(0);
        came += body.len();
        if ends {
            break;
        }
    }
    assert_eq!(came, 40 << 20);
}

#[test]
fn a_server_sends_no_more_than_the_windows_to_a_client_that_does_not_read() {
    let mut pair = Pair::new();
    let keys = [0, 1, 2, 3].map(|key| pair.ask(key));
    for key in keys {
        pair.server.answer(key, OK, false).unwrap();
        pair.server.send(key, Bytes::from(vec![7; 8 << 20]), true).unwrap();
    }
    let mut sent = 0;
    loop {
        let bytes = pair.server.output();
        if bytes.is_empty() {
            break;
        }
        sent += bytes.len();
        pair.client.take(&bytes);
        let up = pair.client.output();
        pair.server.take(&up);
        assert!(matches!(pair.server.poll_request(), Ok(None)));
    }
    let window = CONNECTION_WINDOW as usize;
    assert!((window..window + (64 << 10)).contains(&sent), "{sent}");
}

#[test]
fn a_request_beyond_those_that_the_server_takes_at_a_time_waits() {
    let mut pair = Pair { client: Http2Client::new().unwrap(), server: Http2Server::taking(1) };
    pair.settle();
    let key = pair.ask(0);
    assert_eq!(pair.client.may_request(), Ok(false));
    pair.server.answer(key, OK, true).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (200, Vec::new(), true));
    assert_eq!(pair.client.may_request(), Ok(true));
    pair.ask(1);
    pair.client.cancel(1);
    pair.settle();
    assert_eq!(pair.client.may_request(), Ok(true), "one that is given up takes no place");
    pair.ask(2);
}

#[test]
fn interim_answers_are_passed_over_however_many_there_are() {
    // `:status: 103`, which has no place in the table (RFC 7541, section 6.2.2).
    let interim = frame(1, 4, 1, &[0x08, 3, b'1', b'0', b'3']).repeat(MOST_AT_ONCE / 14);
    let (mut client, said) = told(&interim);
    assert!(matches!(said, Ok(None)));
    for _ in 0..200 {
        client.take(&interim);
        assert!(matches!(client.poll(0), Ok(None)));
    }
    client.take(&frame(1, 5, 1, &[0x89]));
    assert!(matches!(client.poll(0), Ok(Some(Http2Part::Head(Response { status: 204, .. })))));
    assert!(matches!(client.poll(0), Ok(Some(Http2Part::End))));
}

#[test]
fn a_reset_is_of_one_request_and_says_why() {
    let mut pair = Pair::new();
    let (first, second) = (pair.ask(0), pair.ask(1));
    pair.server.reset(first, 2);
    pair.server.reset(second, 7);
    pair.settle();
    let error = pair.client.poll(0).unwrap_err();
    assert_eq!(error.kind, Http2Failure::Reset);
    assert_eq!(error.to_string(), "the server reset the stream of the request: INTERNAL_ERROR (RST_STREAM)");
    assert_eq!(pair.client.poll(1).unwrap_err().kind, Http2Failure::NotProcessed);
    assert!(pair.client.is_open() && pair.client.may_request().unwrap());
}

#[test]
fn a_server_that_goes_away_in_peace_answers_what_it_has_taken_and_takes_no_more() {
    let mut pair = Pair::new();
    let key = pair.ask(0);
    pair.server.end(None);
    pair.settle();
    assert!(pair.client.may_request().is_err());
    pair.server.answer(key, OK, false).unwrap();
    pair.server.send(key, Bytes::from_static(b"whole"), true).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (200, b"whole".to_vec(), true));
    pair.settle();
    assert!(!pair.client.is_open());
}

#[test]
fn a_server_that_goes_away_over_something_says_what() {
    // Its last stream is none: ENHANCE_YOUR_CALM.
    let error = failed(&frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]));
    assert_eq!(error.kind, Http2Failure::Ended);
    assert_eq!(error.to_string(), "the server ended the connection: ENHANCE_YOUR_CALM (GOAWAY)");
    // The same of a server that has begun with it: what is under way has no answer either.
    let mut pair = Pair::new();
    pair.ask(0);
    pair.server.end(Some(11));
    pair.settle();
    assert_eq!(pair.client.poll(0).unwrap_err(), error);
    // The request was not begun with.
    assert_eq!(failed(&frame(7, 0, 0, &[0; 8])).kind, Http2Failure::NotProcessed);
}

#[test]
fn a_request_that_is_given_up_is_cancelled_and_what_still_comes_of_it_is_passed_over() {
    let mut pair = Pair::new();
    let key = pair.ask(0);
    pair.server.answer(key, OK, false).unwrap();
    pair.server.send(key, Bytes::from_static(b"too late"), false).unwrap();
    pair.client.cancel(0);
    // RST_STREAM of stream 1 with CANCEL.
    let sent = pair.client.output();
    assert!(sent.windows(13).any(|it| it == [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]), "{sent:?}");
    pair.server.take(&sent);
    pair.settle();
    assert!(pair.client.is_idle() && pair.client.is_open());
    let second = pair.ask(0);
    pair.server.answer(second, OK, true).unwrap();
    pair.settle();
    assert_eq!(pair.answer(0), (200, Vec::new(), true));
}

#[test]
fn what_is_not_http_2_ends_the_connection_with_one_line() {
    let http1 = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let overflow = frame(8, 0, 0, &0x7fff_ffff_u32.to_be_bytes());
    let settings_on_a_stream = frame(4, 0, 1, &[]);
    let window_of_zero = frame(8, 0, 0, &[0; 4]);
    let push = frame(5, 4, 1, &[0, 0, 0, 2, 0x82]);
    let headers_of_nothing = frame(1, 4, 3, &[0x88]);
    let beyond_the_table = frame(1, 4, 1, &[0xff, 0xff, 0xff, 0x7f]);
    let data_before_a_head = frame(0, 0, 5, b"data");
    for frames in [
        &http1[..],
        &overflow,
        &settings_on_a_stream,
        &window_of_zero,
        &push,
        &headers_of_nothing,
        &beyond_the_table,
        &data_before_a_head,
    ] {
        let (mut client, said) = told(frames);
        let error = said.unwrap_err();
        assert_eq!(error.kind, Http2Failure::Malformed, "{frames:?}");
        assert!(error.to_string().lines().count() == 1, "{error}");
        assert!(!client.is_open() && client.may_request().is_err());
    }
}

#[test]
fn a_head_without_end_is_bounded() {
    // `:status: 200`, and a literal field of 12 KiB, again and again.
    let mut field = vec![0, 1, b'a', 0x7f, 0x81, 0x5f];
    field.resize(6 + 12 * 1_024, b'b');
    let mut client = Http2Client::new().unwrap();
    client.request(0, "https", HEAD).unwrap();
    client.take(&frame(4, 0, 0, &[]));
    client.take(&frame(1, 0, 1, &[0x88]));
    let mut frames = 0;
    let error = loop {
        client.take(&frame(9, 0, 1, &field));
        frames += 1;
        assert!(frames < 20, "a head of {frames} frames is still taken");
        if let Err(error) = client.poll(0) {
            break error;
        }
    };
    assert_eq!(error.kind, Http2Failure::Malformed);
    // Continuations of nothing (RFC 9113, section 10.5).
    let empty = [frame(1, 0, 1, &[0x88]), frame(9, 0, 1, &[]).repeat(1_000)].concat();
    assert_eq!(failed(&empty).kind, Http2Failure::Malformed);
    // One that is whole, and too long.
    let long = [frame(1, 0, 1, &[0x88]), frame(9, 0, 1, &field), frame(9, 4, 1, &field)].concat();
    let error = failed(&long);
    assert!(error.to_string().contains("longer than 16 KiB"), "{error}");
}

#[test]
fn floods_cost_no_more_than_what_answers_them() {
    for flood in [frame(4, 0, 0, &[]), frame(6, 0, 0, &[7; 8]), frame(4, 0, 0, &[0, 1, 0, 0, 16, 0])] {
        let mut client = Http2Client::new().unwrap();
        client.request(0, "https", HEAD).unwrap();
        client.output();
        for _ in 0..100 {
            let bytes = flood.repeat(1_000);
            client.take(&bytes);
            let answers = client.output().len();
            assert!(answers <= bytes.len() + 100, "{answers} bytes answer {}", bytes.len());
            assert!(matches!(client.poll(0), Ok(None)));
        }
    }
}

proptest! {
    #[test]
    fn any_split_of_what_comes_reads_the_same(size in 1..400_usize) {
        let mut pair = Pair::new();
        let key = pair.ask(0);
        pair.server.answer(key, OK, false).unwrap();
        let body: Vec<u8> = (0..40_000_u32).map(|at| at as u8).collect();
        pair.server.send(key, Bytes::from(body.clone()), true).unwrap();
        let wire = pair.server.output();
        let mut came = (0, Vec::new(), false);
        for piece in wire.chunks(size) {
            pair.client.take(piece);
            let (status, body, ends) = pair.answer(0);
            came.0 = came.0.max(status);
            came.1.extend_from_slice(&body);
            came.2 |= ends;
        }
        prop_assert_eq!(came, (200, body, true));
    }

    #[test]
    fn nothing_that_comes_can_break_it(
        frames in prop::collection::vec((0..12_u8, any::<u8>(), 0..6_u32, prop::collection::vec(any::<u8>(), 0..40)), 0..30)
    ) {
        let wire: Vec<u8> =
            frames.iter().flat_map(|(kind, flags, stream, payload)| frame(*kind, *flags, *stream, payload)).collect();
        let (mut client, _) = told(&wire);
        while let Ok(Some(_)) = client.poll(0) {}
        prop_assert!(client.output().len() <= wire.len() + 1_000);
    }
}
