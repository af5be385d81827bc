//! A request with its body, out of bytes that may be anything.

use percent_encoding::percent_decode_str;

/// Bytes of a head.
const HEAD_LIMIT: usize = 16 * 1024;
/// Fields of a head.
const FIELDS: usize = 64;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path without slashes at its ends, decoded.
    pub(super) path: String,
    query: Vec<(String, String)>,
    /// What stands behind `Authorization: Bearer`.
    pub(super) token: Option<String>,
    /// The key of who wants a WebSocket.
    pub(super) socket_key: Option<String>,
    pub(super) body: String,
    /// Whether the connection goes on after the answer.
    pub(super) keep_alive: bool,
}

/// A request that is not waited for any longer: the status that says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadRequest(pub(super) u16);

impl Request {
    /// The request at the front of `bytes`, and its length; `None` while its end has not come.
    pub(super) fn parse(bytes: &[u8], most: usize) -> Result<Option<(Self, usize)>, BadRequest> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut head = httparse::Request::new(&mut fields);
        let length = match head.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= HEAD_LIMIT => length,
            Ok(httparse::Status::Partial) if bytes.len() < HEAD_LIMIT => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(BadRequest(431)),
            Err(_) => return Err(BadRequest(400)),
        };
        let field = |name: &str| {
            let field = head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(field.value).ok().map(str::trim)
        };
        if field("transfer-encoding").is_some() {
            return Err(BadRequest(411));
        }
        let body = field("content-length").map_or(Ok(0), str::parse::<usize>).map_err(|_| BadRequest(400))?;
        if body > most {
            return Err(BadRequest(413));
        }
        let Some(body) = bytes.get(length..length + body) else { return Ok(None) };
        let connection = field("connection").unwrap_or_default().to_ascii_lowercase();
        let (path, query) = split(head.path.unwrap_or_default());
        let wants_socket = field("upgrade").is_some_and(|it| it.eq_ignore_ascii_case("websocket"));
        let request = Self {
            method: head.method.unwrap_or_default().to_owned(),
            path,
            query,
            token: field("authorization").and_then(bearer),
            socket_key: field("sec-websocket-key").filter(|_| wants_socket).map(str::to_owned),
            body: String::from_utf8_lossy(body).into_owned(),
            keep_alive: head.version == Some(1) && !connection.contains("close"),
        };
        Ok(Some((request, length + body.len())))
    }

    /// Whether media is to come by a relay, as players of OvenMediaEngine ask for it.
    pub(super) fn wants_relay(&self) -> bool {
        self.query.iter().any(|(key, value)| key == "transport" && value.eq_ignore_ascii_case("tcp"))
    }

    /// The stream that is meant: `/APP/STREAM`, the same behind `/whep/` or before `/whep`, or as SRS has it,
    /// `/rtc/v1/whep/?app=APP&stream=STREAM`. For publishers each of them with `whip`; see [`Self::publishes`].
    pub(super) fn stream(&self) -> Option<String> {
        let name = match (self.asks("app"), self.asks("stream")) {
            (Some(app), Some(stream)) => format!("{app}/{stream}"),
            _ => {
                let path = ["whep/", "whip/"].iter().find_map(|way| self.path.strip_prefix(way));
                let path = path.unwrap_or(&self.path);
                let shorter = ["/whep", "/whip"].iter().find_map(|way| path.strip_suffix(way));
                shorter.unwrap_or(path).to_owned()
            }
        };
        let is_name = !["", "whep", "whip"].contains(&&*name);
        (is_name && name.len() <= 1_024).then_some(name)
    }

    /// Whether it is about publishing (WHIP): `whip` stands around the path where `whep` could, or behind it
    /// `?direction=whip`, as OvenMediaEngine has it.
    pub(super) fn publishes(&self) -> bool {
        let mut parts = self.path.split('/');
        let ends = [parts.next(), parts.next_back()];
        let of_srs = self.asks("app").is_some() && self.path.split('/').any(|part| part == "whip");
        of_srs || ends.contains(&Some("whip")) || self.asks("direction") == Some("whip")
    }

    fn asks(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str())
    }
}

fn bearer(authorization: &str) -> Option<String> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

fn split(target: &str) -> (String, Vec<(String, String)>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = percent_decode_str(path.trim_matches('/')).decode_utf8_lossy().into_owned();
    (path, url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Request>, BadRequest> {
        Request::parse(text.as_bytes(), 100).map(|parsed| parsed.map(|(request, _)| request))
    }

    #[test]
    fn a_request_is_read_when_its_body_is_whole() {
        let text =
            "POST /live/a%20b/whep HTTP/1.1\r\nContent-Length: 3\r\nAuthorization: Bearer t\r\n\r\nv=0";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Ok(None), "{end}");
        }
        let request = parse(text).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.body, request.token.as_deref()), ("POST", "v=0", Some("t")));
        assert_eq!(request.stream().as_deref(), Some("live/a b"));
        assert!(request.keep_alive && request.socket_key.is_none());
    }

    #[test]
    fn a_stream_has_many_names() {
        for target in ["/live/a", "/whep/live/a", "/live/a/whep", "/rtc/v1/whep/?app=live&stream=a"] {
            let request = parse(&format!("GET {target} HTTP/1.1\r\n\r\n")).unwrap().unwrap();
            assert_eq!(request.stream().as_deref(), Some("live/a"), "{target}");
            assert!(!request.publishes(), "{target}");
            let target = target.replace("whep", "whip");
            let target = if target == "/live/a" { "/live/a?direction=whip".to_owned() } else { target };
            let request = parse(&format!("POST {target} HTTP/1.1\r\n\r\n")).unwrap().unwrap();
            assert_eq!(
                (request.stream().as_deref(), request.publishes()),
                (Some("live/a"), true),
                "{target}"
            );
        }
        for target in ["/", "/whep", "/whip/"] {
            let request = parse(&format!("GET {target} HTTP/1.1\r\n\r\n")).unwrap().unwrap();
            assert_eq!(request.stream(), None, "{target}");
        }
    }

    #[test]
    fn what_is_too_long_or_no_request_is_refused() {
        assert_eq!(parse("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), Err(BadRequest(413)));
        assert_eq!(parse("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"), Err(BadRequest(400)));
        assert_eq!(parse("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(BadRequest(411)));
        assert_eq!(parse("\0\0"), Err(BadRequest(400)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_request_or_none(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        ) {
            for bytes in [&bytes[..], &[b"POST /", &bytes[..], b"\r\n\r\n"].concat()] {
                if let Ok(Some((request, length))) = Request::parse(bytes, 100) {
                    assert!(length <= bytes.len());
                    let _ = request.stream();
                }
            }
        }
    }
}
