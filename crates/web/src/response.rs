//! Responses as a client receives them: one after the other, each a head and the pieces of its body.

use crate::body::Body;
use crate::head::{Head, MOST_FIELDS};
use crate::{Fields, HttpError};
use std::collections::VecDeque;
use std::fmt;

/// How many requests may wait for their answers on one connection.
const MOST_ASKED: usize = 64;

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Such as 200.
    pub status: u16,
    /// The server's words, which may be none.
    pub reason: String,
    /// All of its fields.
    pub fields: Fields,
}

/// What comes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Its head. Interim answers (1xx) are passed over, but for 101.
    Head(Response),
    /// The next piece of its body, as it lay in what came.
    Piece(&'a [u8]),
    /// It has ended as it had been announced.
    End,
}

/// How far an answer has come when its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// To nothing.
    Unanswered,
    /// Not to the end of its head.
    InHead,
    /// To its end: the connection's end is the body's (RFC 9112, section 6.3).
    Whole,
    /// This many bytes are missing.
    Short(u64),
    /// The last chunk is missing.
    Unfinished,
}

/// A client's side of a connection.
#[derive(Debug)]
pub struct Responses {
    /// The requests that are not answered: whether each was one for a head alone.
    asked: VecDeque<bool>,
    head: Head,
    /// The body under way.
    body: Option<Body>,
    /// The connection goes on behind the answers so far.
    is_open: bool,
}

impl Response {
    /// The server's own words.
    pub fn said(&self) -> String {
        format!("{} {}", self.status, self.reason).trim_end().to_owned()
    }

    /// Where a redirect leads (RFC 9110, section 10.2.2).
    pub fn location(&self) -> Option<&str> {
        self.fields.get("location")
    }

    /// Whether the client is sent elsewhere (RFC 9110, section 15.4).
    pub fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308)
    }
}

impl Responses {
    /// A connection on which nothing has been asked for.
    pub fn new() -> Self {
        Self { asked: VecDeque::new(), head: Head::new(b"HTTP/"), body: None, is_open: true }
    }

    /// A connection on which something other than a head alone has been asked for.
    pub fn asked() -> Self {
        Self { asked: [false].into(), ..Self::new() }
    }

    /// Whether another request may be sent: the server has not said that it closes, and not too many wait.
    pub fn may_request(&self) -> bool {
        self.is_open && self.asked.len() < MOST_ASKED
    }

    /// A request with this method has been sent.
    pub fn on_request(&mut self, method: &str) {
        self.asked.push_back(method == "HEAD");
    }

    /// Takes the next part off the front of `bytes`; `None` when they are used up. After a
    /// response 101 the bytes that are left belong to another protocol.
    ///
    /// # Errors
    /// What came is no answer, or may be read in two ways: the connection is of no more use.
    pub fn take<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Part<'a>>, HttpError> {
        if let Some(body) = &mut self.body {
            if let Some(piece) = body.take(bytes)? {
                return Ok(Some(Part::Piece(piece)));
            }
            return Ok(self.body.take_if(|body| *body == Body::Over).map(|_| Part::End));
        }
        loop {
            if self.asked.is_empty() && !bytes.is_empty() {
                return Err(HttpError::Unasked);
            }
            if !self.head.take(bytes)? {
                return Ok(None);
            }
            let (response, body, keep_alive) = read(self.head.bytes())?;
            // An interim answer has no body and is followed by another (RFC 9110, section 15.2).
            if (100..200).contains(&response.status) && response.status != 101 {
                self.head.continue_with_next();
                continue;
            }
            self.head.clear();
            let is_for_head = self.asked.pop_front() == Some(true);
            self.body = Some(if is_for_head { Body::Over } else { body });
            self.is_open &= keep_alive && self.body != Some(Body::UntilClose);
            return Ok(Some(Part::Head(response)));
        }
    }

    /// What the end of the connection means for the answer under way: whether it is whole.
    pub fn ending(&self) -> Ending {
        match &self.body {
            Some(Body::UntilClose | Body::Over) => Ending::Whole,
            Some(Body::Length(left)) => Ending::Short(*left),
            Some(Body::Chunked(_)) => Ending::Unfinished,
            None if self.head.is_empty() => Ending::Unanswered,
            None => Ending::InHead,
        }
    }
}

impl Default for Responses {
    fn default() -> Self {
        Self::new()
    }
}

fn read(bytes: &[u8]) -> Result<(Response, Body, bool), HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    if head.parse(bytes)?.is_partial() {
        return Err(httparse::Error::NewLine.into());
    }
    let fields = Fields::read(head.headers);
    let status = head.code.unwrap_or(0);
    let body = match (status, fields.framing()?) {
        (101 | 204 | 304, _) => Body::Over,
        // The transfer coding overrides the length (RFC 9112, section 6.3). The only one that was not declined is chunked.
        (_, (_, true)) => Body::chunked(),
        (_, (Some(length), false)) => Body::of_length(length),
        (_, (None, false)) => Body::UntilClose,
    };
    let keep_alive = fields.keep_alive(head.version == Some(1));
    Ok((Response { status, reason: head.reason.unwrap_or("").to_owned(), fields }, body, keep_alive))
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("before it answered"),
            Self::InHead => f.write_str("in the head of its answer"),
            Self::Whole => f.write_str("at the end of its answer"),
            Self::Short(left) => write!(f, "{left} bytes before its announced end"),
            Self::Unfinished => f.write_str("before its last chunk"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The head of an answer, and how the body behind it ends.
    fn answer(wire: &[u8]) -> Result<(Response, Option<Body>), HttpError> {
        let mut responses = Responses::asked();
        match responses.take(&mut { wire })? {
            Some(Part::Head(response)) => Ok((response, responses.body)),
            other => panic!("{other:?}"),
        }
    }

    fn body_of(fields: &str) -> Result<Body, HttpError> {
        answer(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes()).map(|(_, body)| body.unwrap())
    }

    #[test]
    fn the_body_ends_as_the_head_says() {
        let chunked = Body::chunked();
        for (fields, expected) in [
            ("", Body::UntilClose),
            ("Content-Length: 12\r\n", Body::Length(12)),
            ("content-length: 12, 12\r\nContent-Length: 12\r\n", Body::Length(12)),
            ("Content-Length: 0\r\n", Body::Over),
            ("Transfer-Encoding: chunked\r\n", chunked.clone()),
            ("Content-Length: 5\r\ntransfer-encoding: Chunked\r\n", chunked),
        ] {
            assert_eq!(body_of(fields), Ok(expected), "{fields}");
        }
    }

    #[test]
    fn a_head_that_can_be_read_in_two_ways_is_not_read() {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert!(body_of(fields).is_err(), "{fields}");
        }
    }

    #[test]
    fn a_server_of_http_2_is_named_however_its_frame_is_cut() {
        // SETTINGS with one value, and GOAWAY.
        let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
        let goaway = b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
        for frame in [&settings[..], goaway] {
            for cut in 0..9 {
                let mut responses = Responses::asked();
                let (mut first, mut rest) = frame.split_at(cut);
                assert_eq!(responses.take(&mut first), Ok(None));
                assert_eq!(responses.take(&mut rest), Err(HttpError::Http2));
            }
        }
        let other = Responses::asked().take(&mut &b"\0\0\x06\x01\0\0\0\0\x01rest"[..]).unwrap_err();
        assert!(matches!(other, HttpError::NotHttp(_)));
    }

    #[test]
    fn a_head_that_is_none_ends_the_reading() {
        let failed = |wire: &[u8]| Responses::asked().take(&mut { wire }).unwrap_err();
        assert_eq!(failed(b"SSH-2.0-x\r\n"), HttpError::NotHttp("SSH-2.0-x\r\n".to_owned()));
        assert!(matches!(failed(b"HTTP/1.1 200\0"), HttpError::Malformed(_)));
        assert!(matches!(failed(b"HTTP/1.1 abc\r\n\r\n"), HttpError::Malformed(_)));
        assert!(matches!(failed(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), HttpError::Malformed(_)));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(65));
        assert!(matches!(failed(many.as_bytes()), HttpError::Malformed(_)));
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(20_000));
        assert_eq!(failed(long.as_bytes()), HttpError::HeadTooLong);
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        assert_eq!(failed(interim.as_bytes()), HttpError::HeadTooLong);
    }

    #[test]
    fn nobody_is_answered_who_has_not_asked() {
        let mut responses = Responses::asked();
        let wire = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let mut twice = &wire.repeat(2)[..];
        assert!(matches!(responses.take(&mut twice), Ok(Some(Part::Head(_)))));
        assert_eq!(responses.take(&mut twice), Ok(Some(Part::End)));
        assert_eq!(responses.take(&mut twice), Err(HttpError::Unasked));
        assert_eq!(Responses::new().take(&mut &b"x"[..]), Err(HttpError::Unasked));
        assert_eq!(Responses::new().take(&mut &b""[..]), Ok(None));
    }

    #[test]
    fn a_connection_goes_on_unless_the_server_says_otherwise() {
        for (head, goes_on) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: foo\r\n", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: foo, Close\r\n", false),
            ("HTTP/1.1 200 OK\r\n", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n", true),
        ] {
            let mut responses = Responses::asked();
            responses.take(&mut format!("{head}\r\n").as_bytes()).unwrap();
            assert_eq!(responses.may_request(), goes_on, "{head}");
        }
        let mut responses = Responses::new();
        (0..MOST_ASKED).for_each(|_| responses.on_request("GET"));
        assert!(!responses.may_request());
    }

    #[test]
    fn what_is_missing_is_said() {
        for (wire, ending) in [
            ("", Ending::Unanswered),
            ("HTTP/1.1 2", Ending::InHead),
            ("HTTP/1.1 100 Continue\r\n\r\n", Ending::InHead),
            ("HTTP/1.1 200 OK\r\n\r\nabc", Ending::Whole),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Ending::Short(2)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc", Ending::Unfinished),
        ] {
            let mut responses = Responses::asked();
            let mut bytes = wire.as_bytes();
            while responses.take(&mut bytes).unwrap().is_some() {}
            assert_eq!(responses.ending(), ending, "{wire}");
        }
    }

    #[test]
    fn no_value_of_a_field_is_in_a_debug_text() {
        let (response, _) = answer(b"HTTP/1.1 201 Created\r\nLocation: /session/s3cret\r\n\r\n").unwrap();
        let said = format!("{response:?}");
        assert!(said.contains("Location") && !said.contains("s3cret"), "{said}");
    }

    /// Answers to GET, HEAD, GET, GET and GET, of every kind.
    const ANSWERS: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No such service\nServer: a\r\n\
        Location: /b\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\
        HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n1\r\nd\r\n0\r\nE: f\r\n\r\n\
        HTTP/1.1 204 \r\nContent-Length: 9\r\n\r\nHTTP/1.0 200 OK\r\n\r\nto the end";

    proptest! {
        #[test]
        fn any_split_of_answers_reads_the_same(cuts in prop::collection::vec(0..=ANSWERS.len(), 0..40)) {
            let mut cuts: Vec<usize> = cuts.into_iter().chain([0, ANSWERS.len()]).collect();
            cuts.sort_unstable();
            let mut responses = Responses::new();
            ["GET", "HEAD", "GET", "GET", "GET"].iter().for_each(|method| responses.on_request(method));
            let mut heard: Vec<(Response, Vec<u8>, bool)> = Vec::new();
            for cut in cuts.windows(2) {
                let mut piece = &ANSWERS[cut[0]..cut[1]];
                while let Some(part) = responses.take(&mut piece).unwrap() {
                    match part {
                        Part::Head(response) => heard.push((response, Vec::new(), false)),
                        Part::Piece(piece) => heard.last_mut().unwrap().1.extend_from_slice(piece),
                        Part::End => heard.last_mut().unwrap().2 = true,
                    }
                }
                prop_assert!(piece.is_empty());
            }
            let fields = |fields: &[(&str, &str)]| fields.iter().copied().collect::<Fields>();
            let expected = [
                (404, "No such service", fields(&[("Server", "a"), ("Location", "/b"), ("Content-Length", "3")]), "abc"),
                (200, "OK", fields(&[("Content-Length", "9")]), ""),
                (200, "OK", fields(&[("Transfer-Encoding", "chunked")]), "abcd"),
                (204, "", fields(&[("Content-Length", "9")]), ""),
                (200, "OK", fields(&[]), "to the end"),
            ];
            let last = expected.len() - 1;
            for (number, (status, reason, fields, body)) in expected.into_iter().enumerate() {
                let response = Response { status, reason: reason.to_owned(), fields };
                prop_assert_eq!(&heard[number], &(response, body.as_bytes().to_vec(), number < last));
            }
            prop_assert_eq!((heard.len(), responses.ending()), (last + 1, Ending::Whole));
            prop_assert!(!responses.may_request());
        }

        #[test]
        fn nothing_that_comes_can_break_it(wire in prop::collection::vec(any::<u8>(), 0..400)) {
            for front in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
                let wire = [front, &wire].concat();
                let (mut responses, mut bytes) = (Responses::asked(), &wire[..]);
                while let Ok(Some(_)) = responses.take(&mut bytes) {}
            }
        }
    }
}
