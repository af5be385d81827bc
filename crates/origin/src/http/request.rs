//! The head of a request, out of bytes that may be anything.

use base64::prelude::{BASE64_STANDARD, Engine};
use percent_encoding::percent_decode_str;

/// Bytes of a head. Browsers send one or two thousand.
pub(super) const HEAD_LIMIT: usize = 16 * 1024;
/// Fields of a head.
const FIELDS: usize = 64;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    /// The parts of the path between its slashes, decoded.
    pub(super) path: Vec<String>,
    pub(super) query: Vec<(String, String)>,
    /// `USER:PASSWORD` of the basic scheme (RFC 7617).
    credentials: Option<String>,
    /// HTTP/1.1, which has the chunked coding.
    pub(super) modern: bool,
    /// Whether the connection goes on after the answer.
    pub(super) keep_alive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Other,
}

/// A head that is not waited for any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadHead {
    /// It is none.
    Malformed,
    /// It is longer than anyone's.
    TooLong,
    /// A body follows, which nothing here takes.
    Body,
}

impl Request {
    /// The request at the front of `bytes`, and its length; `None` while its end has not come.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadHead> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut head = httparse::Request::new(&mut fields);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= HEAD_LIMIT => length,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_LIMIT => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(BadHead::TooLong),
            Err(_) => return Err(BadHead::Malformed),
        };
        let field = |name: &str| {
            let field = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(field.value).ok().map(str::trim)
        };
        let has_body = field("transfer-encoding").is_some()
            || field("content-length").is_some_and(|length| length.parse() != Ok(0_u8));
        if has_body {
            return Err(BadHead::Body);
        }
        let modern = head.version == Some(1);
        let connection = field("connection").unwrap_or_default().to_ascii_lowercase();
        let keep_alive = if modern { connection != "close" } else { connection == "keep-alive" };
        let method = match head.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            _ => Method::Other,
        };
        let (path, query) = split(head.path.unwrap_or_default());
        let credentials = field("authorization").and_then(basic);
        Ok(Some((Self { method, path, query, credentials, modern, keep_alive }, length)))
    }

    /// `USER:PASSWORD`, if they were offered.
    pub(super) fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }

    /// The value of a key of the query.
    pub(super) fn asks(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == key).map(|(_, value)| &**value)
    }
}

fn basic(authorization: &str) -> Option<String> {
    let (scheme, code) = authorization.split_once(' ')?;
    let code = scheme.eq_ignore_ascii_case("basic").then(|| code.trim())?;
    String::from_utf8(BASE64_STANDARD.decode(code).ok()?).ok()
}

/// Path and query of a request's target, which may be a whole URL (RFC 9112 section 3.2).
fn split(target: &str) -> (Vec<String>, Vec<(String, String)>) {
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts = path.split('/').filter(|part| !part.is_empty());
    let path = parts.map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect();
    (path, url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Result<Option<Request>, BadHead> {
        Request::parse(head.as_bytes()).map(|parsed| parsed.map(|(request, _)| request))
    }

    #[test]
    fn a_request_is_read_when_its_head_is_whole() {
        let head = "GET /api/channels/GR/B%20S?decode=1&name=a+b HTTP/1.1\r\nHost: x\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(parse(&head[..end]), Ok(None), "{end}");
        }
        let request = parse(head).unwrap().unwrap();
        assert_eq!(request.path, ["api", "channels", "GR", "B S"]);
        assert_eq!((request.asks("decode"), request.asks("name")), (Some("1"), Some("a b")));
        assert!(request.modern && request.keep_alive && request.method == Method::Get);
        let next = format!("{head}GET");
        assert_eq!(Request::parse(next.as_bytes()).unwrap().unwrap().1, head.len());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(
            begin in ".{0,40}",
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        ) {
            let head = [b"GET /", begin.as_bytes(), &bytes, b"\r\n\r\n"].concat();
            for bytes in [&bytes[..], &head] {
                if let Ok(Some((_, length))) = Request::parse(bytes) {
                    assert!(length <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn an_old_or_a_last_request_ends_the_connection() {
        for (head, keep_alive) in [
            ("GET / HTTP/1.0\r\n\r\n", false),
            ("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", false),
            ("GET http://host:1/x HTTP/1.1\r\n\r\n", true),
        ] {
            assert_eq!(parse(head).unwrap().unwrap().keep_alive, keep_alive, "{head}");
        }
        assert_eq!(parse("GET http://host:1/x HTTP/1.1\r\n\r\n").unwrap().unwrap().path, ["x"]);
    }

    #[test]
    fn a_head_that_never_ends_is_not_waited_for() {
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_LIMIT));
        assert_eq!(parse(&long), Err(BadHead::TooLong));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS + 1));
        assert_eq!(parse(&many), Err(BadHead::TooLong));
        assert_eq!(parse("\0\0"), Err(BadHead::Malformed));
        assert_eq!(parse("PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), Err(BadHead::Body));
    }
}
