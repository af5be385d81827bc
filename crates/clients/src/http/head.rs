//! The head of a response: status, reason, and how the body is framed (RFC 9112, sections 4 to 6).

use super::body::{Body, Chunks};

/// The longest head, interim responses (1xx) included.
const LONGEST: usize = 16 * 1_024;
/// The most fields of a head.
const MOST_FIELDS: usize = 64;
/// How each head begins.
const BEGINNING: &[u8] = b"HTTP/";

/// What a server answers before the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The server's words, which may be none.
    pub(crate) reason: String,
    /// Where a redirect leads.
    pub(crate) location: Option<String>,
    /// All fields by name, those above included.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Body,
}

impl Answer {
    /// The server's own words.
    pub(crate) fn said(&self) -> String {
        format!("{} {}", self.status, self.reason).trim_end().to_owned()
    }
}

/// A head that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("the answer is not HTTP: it begins with {0:?}")]
    NotHttp(String),
    #[error("the head of the answer is longer than 16 KiB")]
    TooLong,
    #[error("the head of the answer is no HTTP head: {0}")]
    Malformed(#[from] httparse::Error),
    #[error("the length of the answer is not a number: {0:?}")]
    Length(String),
    #[error("the transfer coding is not one that was asked for: {0:?}")]
    Coding(String),
}

/// Gathers a head, in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    /// Bytes of interim responses before the present one.
    passed: usize,
    /// The present line has nothing in it so far.
    line_is_empty: bool,
}

impl Head {
    /// Takes bytes off the front until the head is whole.
    pub(crate) fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Answer>, HeadError> {
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.bytes.push(byte);
            let length = self.bytes.len();
            if length <= BEGINNING.len() && byte != BEGINNING[length - 1] {
                let shown = self.bytes.iter().chain(rest.iter().take(20));
                let shown: Vec<u8> = shown.copied().collect();
                return Err(HeadError::NotHttp(String::from_utf8_lossy(&shown).into_owned()));
            }
            if length + self.passed > LONGEST {
                return Err(HeadError::TooLong);
            }
            let ends = byte == b'\n' && self.line_is_empty;
            self.line_is_empty = byte == b'\n' || byte == b'\r' && self.line_is_empty;
            if !ends {
                continue;
            }
            let answer = read(&self.bytes)?;
            // An interim response has no body and is followed by another (RFC 9110, section 15.2).
            if (100..200).contains(&answer.status) && answer.status != 101 {
                self.passed += length;
                self.bytes.clear();
                self.line_is_empty = false;
                continue;
            }
            return Ok(Some(answer));
        }
        Ok(None)
    }

    /// Whether nothing has come yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.passed == 0
    }
}

fn read(bytes: &[u8]) -> Result<Answer, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    if response.parse(bytes)?.is_partial() {
        return Err(httparse::Error::NewLine.into());
    }
    let status = response.code.unwrap_or(0);
    let named = |name: &'static str| {
        response
            .headers
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value)
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    let mut body = Body::UntilClose;
    for value in named("content-length") {
        // Several that agree are one (RFC 9110, section 8.6).
        for part in value.split(|byte| *byte == b',') {
            let part = text(part);
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let length = part.parse().ok().filter(|_| digits).map(Body::Length);
            match length {
                Some(length) if body == Body::UntilClose || body == length => body = length,
                _ => return Err(HeadError::Length(part)),
            }
        }
    }
    // The transfer coding overrides the length (section 6.3). The only one that was not declined is chunked.
    for value in named("transfer-encoding") {
        let coding = text(value);
        if body == Body::Chunked(Chunks::START) || !coding.eq_ignore_ascii_case("chunked") {
            return Err(HeadError::Coding(coding));
        }
        body = Body::Chunked(Chunks::START);
    }
    if body == Body::Length(0) || matches!(status, 204 | 304) {
        body = Body::Over;
    }
    let location = named("location").next().map(text);
    let fields = response.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect();
    Ok(Answer { status, reason: response.reason.unwrap_or("").to_owned(), location, fields, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(wire: &[u8]) -> Result<Option<Answer>, HeadError> {
        Head::default().take(&mut { wire })
    }

    fn body_of(fields: &str) -> Result<Body, HeadError> {
        answer(format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes()).map(|answer| answer.unwrap().body)
    }

    #[test]
    fn the_body_ends_as_the_head_says() {
        let chunked = Body::Chunked(Chunks::START);
        for (fields, expected) in [
            ("", Body::UntilClose),
            ("Content-Length: 12\r\n", Body::Length(12)),
            ("content-length: 12, 12\r\nContent-Length: 12\r\n", Body::Length(12)),
            ("Content-Length: 0\r\n", Body::Over),
            ("Transfer-Encoding: chunked\r\n", chunked),
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
    fn a_head_that_is_none_ends_the_reading() {
        assert!(matches!(answer(b"SSH-2.0-x\r\n"), Err(HeadError::NotHttp(_))));
        assert!(matches!(answer(b"HTTP/1.1 abc\r\n\r\n"), Err(HeadError::Malformed(_))));
        assert!(matches!(answer(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), Err(HeadError::Malformed(_))));
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(65));
        assert!(matches!(answer(many.as_bytes()), Err(HeadError::Malformed(_))));
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(20_000));
        assert_eq!(answer(long.as_bytes()), Err(HeadError::TooLong));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
        assert_eq!(answer(interim.as_bytes()), Err(HeadError::TooLong));
    }

    proptest! {
        #[test]
        fn any_split_of_a_head_reads_the_same(first in 0usize..120, second in 0usize..120) {
            let wire = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 No such service\nServer: a\r\n\
                Location: /b\r\nContent-Length: 3\r\n\r\nabc";
            let (first, second) = (first.min(second).min(wire.len()), first.max(second).min(wire.len()));
            let mut head = Head::default();
            let mut answers = Vec::new();
            let mut left = 0;
            for piece in [&wire[..first], &wire[first..second], &wire[second..]] {
                let mut piece = piece;
                if answers.is_empty() {
                    answers.extend(head.take(&mut piece).unwrap());
                }
                left += piece.len();
            }
            let reason = "No such service".to_owned();
            let location = Some("/b".to_owned());
            let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            let fields = vec![field("Server", "a"), field("Location", "/b"), field("Content-Length", "3")];
            let answer = Answer { status: 404, reason, location, fields, body: Body::Length(3) };
            prop_assert_eq!(answers, vec![answer]);
            prop_assert_eq!(left, 3);
        }

        #[test]
        fn nothing_that_comes_can_break_it(wire in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = answer(&wire);
            let _ = answer(&[b"HTTP/1.1 200 OK\r\n", &wire[..]].concat());
        }
    }
}
