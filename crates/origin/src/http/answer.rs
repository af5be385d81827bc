//! Answers, as they go onto the link.

use serde::Serialize;
use std::fmt::Write;

/// What the server calls itself.
const SERVER: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

/// What an error is told in, as Mirakurun and mirakc have it.
#[derive(Serialize)]
struct ErrorBody<'a> {
    code: u16,
    reason: &'a str,
    errors: [u8; 0],
}

/// An answer that is sent whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: u16,
    fields: String,
    body: String,
}

impl Answer {
    /// 200, with this JSON.
    pub(super) fn json(value: &impl Serialize) -> Self {
        // Values of numbers, texts and lists have a JSON each.
        let body = serde_json::to_string(value).unwrap_or_default();
        Self { status: 200, fields: String::new(), body }
    }

    /// An error, in the words of the status unless others are given.
    pub(super) fn error(status: u16, words: Option<&str>) -> Self {
        let reason = words.unwrap_or_else(|| reason(status));
        let body = serde_json::to_string(&ErrorBody { code: status, reason, errors: [] }).unwrap_or_default();
        Self { status, fields: String::new(), body }
    }

    /// The same with another field in its head. What would end the line is left out of the value.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(self.fields, "{name}: {value}\r\n");
        self
    }

    /// The bytes; of an answer to HEAD, those of the head.
    pub(super) fn bytes(&self, head_only: bool, keep_alive: bool) -> Vec<u8> {
        let Self { status, fields, body } = self;
        let connection = if keep_alive { "keep-alive" } else { "close" };
        let mut bytes = format!(
            "HTTP/1.1 {status} {}\r\nServer: {SERVER}\r\nConnection: {connection}\r\n{fields}\
             Content-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            reason(*status),
            body.len(),
        )
        .into_bytes();
        if !head_only {
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes
    }
}

/// The head of an answer that a stream follows. Without the chunked coding the stream ends with the
/// connection.
pub(super) fn stream_head(user: &str, chunked: bool) -> String {
    let coding = if chunked { "Transfer-Encoding: chunked" } else { "Connection: close" };
    format!(
        "HTTP/1.1 200 OK\r\nServer: {SERVER}\r\nContent-Type: video/MP2T\r\nAccept-Ranges: none\r\n\
         X-Mirakurun-Tuner-User-ID: {user}\r\n{coding}\r\n\r\n"
    )
}

/// The usual words of a status (RFC 9110 section 15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Tuner Resource Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}
