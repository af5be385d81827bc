//! Requests as a server receives them: one after the other, each with its body, which is bounded.

use crate::body::Body;
use crate::head::{Head, MOST_FIELDS};
use crate::{Fields, HttpError, credentials, uri};
use std::borrow::Cow;

/// What is asked. Its `Debug` shows neither body nor values of fields.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Such as `GET`.
    pub method: String,
    /// The path, percent-encoded as it came.
    pub path: String,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// All fields.
    pub fields: Fields,
    /// What stands behind the head.
    pub body: Vec<u8>,
    /// HTTP/1.1, which has the chunked coding.
    pub modern: bool,
    /// Whether the connection goes on after the answer.
    pub keep_alive: bool,
}

/// A server's side of a connection.
#[derive(Debug)]
pub struct Requests {
    head: Head,
    /// The request whose body is under way.
    under_way: Option<(Request, Body)>,
    longest_body: usize,
}

impl Request {
    /// The parts of the path between its slashes, decoded.
    pub fn segments(&self) -> Vec<Cow<'_, str>> {
        self.path.split('/').filter(|part| !part.is_empty()).map(uri::decoded).collect()
    }

    /// The value of a key of the query.
    pub fn asks(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == key).map(|(_, value)| &**value)
    }

    /// `USER:PASSWORD`, if they were offered.
    pub fn basic(&self) -> Option<String> {
        self.fields.get("authorization").and_then(credentials::basic_in)
    }

    /// The token, if one was offered.
    pub fn bearer(&self) -> Option<&str> {
        self.fields.get("authorization").and_then(credentials::bearer_in)
    }
}

impl Requests {
    /// A connection that was just accepted, whose requests may have bodies of this length.
    pub fn new(longest_body: usize) -> Self {
        Self { head: Head::new(b""), under_way: None, longest_body }
    }

    /// Whether nothing has come of the next request.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.under_way.is_none()
    }

    /// Takes bytes off the front until a request is whole. What is left is of the next: it is for the caller to say how many
    /// are answered before others have their turn.
    ///
    /// # Errors
    /// What came is no request that can be answered.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Request>, HttpError> {
        if self.under_way.is_none() {
            match self.head.take(bytes) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                // It may be no head at all.
                Err(HttpError::HeadTooLong) => {
                    return Err(read(self.head.bytes()).err().unwrap_or(HttpError::HeadTooLong));
                }
                Err(error) => return Err(error),
            }
            let (request, body) = read(self.head.bytes())?;
            self.head.clear();
            let is_taken = match body {
                Body::Length(length) => length <= self.longest_body as u64,
                _ => body == Body::Over || self.longest_body > 0,
            };
            if !is_taken {
                return Err(HttpError::BodyTooLong);
            }
            self.under_way = Some((request, body));
        }
        let Some((request, body)) = &mut self.under_way else { return Ok(None) };
        while let Some(piece) = body.take(bytes)? {
            if request.body.len() + piece.len() > self.longest_body {
                return Err(HttpError::BodyTooLong);
            }
            request.body.extend_from_slice(piece);
        }
        Ok(self.under_way.take_if(|(_, body)| *body == Body::Over).map(|(request, _)| request))
    }
}

fn read(bytes: &[u8]) -> Result<(Request, Body), HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    if head.parse(bytes)?.is_partial() {
        return Err(HttpError::HeadTooLong);
    }
    let fields = Fields::read(head.headers);
    let modern = head.version == Some(1);
    let body = match fields.framing()? {
        (None, false) => Body::Over,
        (Some(length), false) => Body::of_length(length),
        (None, true) if modern => Body::chunked(),
        // A proxy between client and server may have read the one, and the server the other (RFC 9112, section 11.2).
        (_, true) => return Err(HttpError::Ambiguous("framing")),
    };
    // Two hosts can be read in two ways as well (RFC 9112, section 3.2). None at all is borne: weir's servers have one
    // host, and people ask them with what is at hand.
    let mut hosts = fields.all("host");
    if hosts.next().is_some_and(|host| !host.is_empty() && !uri::is_authority(host)) || hosts.next().is_some()
    {
        return Err(HttpError::Ambiguous("host"));
    }
    drop(hosts);
    let (path, query) = uri::split(head.path.unwrap_or_default());
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: url::form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        body: Vec::new(),
        keep_alive: fields.keep_alive(modern),
        fields,
        modern,
    };
    Ok((request, body))
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bodies that are taken in these tests.
    const MOST: usize = 100;

    /// A request, or the status that refuses it.
    fn parse(text: &str) -> Result<Option<Request>, u16> {
        Requests::new(MOST).take(&mut text.as_bytes()).map_err(|error| error.status())
    }

    fn whole(text: &str) -> Request {
        parse(text).unwrap().unwrap()
    }

    #[test]
    fn a_request_is_read_when_it_is_whole() {
        let text = "POST /live/a%2Fb%20c//x?decode=1&name=a+b HTTP/1.1\r\nHost: x:80\r\nContent-Length: 3\r\n\
            Authorization: Bearer t\r\n\r\nv=0";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
        let request = whole(text);
        assert_eq!((&*request.method, &*request.path), ("POST", "/live/a%2Fb%20c//x"));
        assert_eq!(request.segments(), ["live", "a/b c", "x"]);
        assert_eq!((request.asks("decode"), request.asks("name")), (Some("1"), Some("a b")));
        assert_eq!((request.asks("x"), request.bearer(), request.basic()), (None, Some("t"), None));
        assert_eq!(request.body, b"v=0");
        assert!(request.modern && request.keep_alive && !format!("{request:?}").contains("v=0"));
    }

    #[test]
    fn a_target_may_be_a_whole_url() {
        let request = whole("GET http://host:1/x/y?a=b HTTP/1.1\r\n\r\n");
        assert_eq!((&*request.path, request.asks("a")), ("/x/y", Some("b")));
        assert_eq!(whole("GET http://host HTTP/1.1\r\n\r\n").path, "/");
        assert_eq!(whole("GET /x?u=http://h/ HTTP/1.1\r\n\r\n").path, "/x");
    }

    #[test]
    fn an_old_or_a_last_request_ends_the_connection() {
        for (head, keep_alive) in [
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nConnection: TE, Close\r\n\r\n", false),
            ("\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n", true),
        ] {
            assert_eq!(whole(head).keep_alive, keep_alive, "{head}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for fields in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            "Content-Length: 0\r\nContent-Length: 4\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: 3 4\r\n",
            "Content-Length : 3\r\n",
            "Host: a\r\nHost: b\r\n",
            "Host: a\r\nHost: a\r\n",
            "Host: me@a\r\n",
            "Host: a/b\r\n",
            " folded: b\r\n",
            "a\0: b\r\n",
        ] {
            let said = parse(&format!("POST / HTTP/1.1\r\n{fields}\r\n3\r\nabc\r\n0\r\n\r\n"));
            assert_eq!(said, Err(400), "{fields}");
        }
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(parse(old), Err(400));
        for coding in ["gzip", "gzip, chunked", "chunked\r\nTransfer-Encoding: chunked"] {
            let said = parse(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: {coding}\r\n\r\n"));
            assert_eq!(said, Err(501), "{coding}");
        }
    }

    #[test]
    fn what_never_ends_is_not_waited_for() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000));
        assert_eq!(parse(&long), Err(431));
        let fields = |number| format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(number));
        assert_eq!(parse(&fields(65)), Err(431));
        assert_eq!(parse(&fields(64)), Ok(None));
        assert!(matches!(parse(&(fields(64) + "\r\n")), Ok(Some(_))));
        assert_eq!(parse(&"(GET".repeat(5_000)), Err(400));
        assert_eq!(parse(&"\r\n".repeat(20_000)), Err(431));
        assert_eq!(parse("\0\0"), Err(400));
        assert_eq!(parse("\x16\x03\x01"), Err(400));
        assert_eq!(parse("PUT / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), Err(413));
        let chunks = format!(
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{}",
            "9\r\n123456789\r\n".repeat(12)
        );
        assert_eq!(parse(&chunks), Err(413));
        for field in ["Content-Length: 1", "Transfer-Encoding: chunked"] {
            let head = format!("PUT / HTTP/1.1\r\n{field}\r\n\r\n");
            assert_eq!(Requests::new(0).take(&mut head.as_bytes()), Err(HttpError::BodyTooLong));
        }
    }

    const REQUESTS: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n\r\nPOST /b HTTP/1.1\nContent-Length: 3\r\n\r\nabc\
        PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\nGET /d HTTP/1.0\r\n\r\n";

    proptest! {
        #[test]
        fn any_split_of_requests_reads_the_same(cuts in prop::collection::vec(0..=REQUESTS.len(), 0..40)) {
            let mut cuts: Vec<usize> = cuts.into_iter().chain([0, REQUESTS.len()]).collect();
            cuts.sort_unstable();
            let (mut requests, mut heard) = (Requests::new(MOST), Vec::new());
            for cut in cuts.windows(2) {
                let mut piece = &REQUESTS[cut[0]..cut[1]];
                while let Some(request) = requests.take(&mut piece).unwrap() {
                    heard.push((request.path, String::from_utf8(request.body).unwrap(), request.keep_alive));
                }
                prop_assert!(piece.is_empty());
            }
            let expected = [("/a", "", true), ("/b", "abc", true), ("/c", "abcd", true), ("/d", "", false)];
            let expected = expected.map(|(path, body, goes_on)| (path.to_owned(), body.to_owned(), goes_on));
            prop_assert_eq!((heard, requests.is_empty()), (expected.to_vec(), true));
        }

        #[test]
        fn any_bytes_are_requests_or_none(
            begin in ".{0,40}", wire in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let head = [b"POST /", begin.as_bytes(), &wire, b"\r\n\r\n"].concat();
            for mut bytes in [&wire[..], &head] {
                let mut requests = Requests::new(MOST);
                while let Ok(Some(request)) = requests.take(&mut bytes) {
                    let _ = (request.segments(), request.basic());
                }
            }
        }
    }
}
