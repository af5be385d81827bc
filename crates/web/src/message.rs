//! Requests and answers as they are sent. No value can end its line, and there is no `Debug`: some are secrets.

use crate::{GivenFields, PRODUCT, uri};
use std::fmt::{Display, Write as _};

/// A message under way: first the fields, then [`Self::end`].
#[derive(Clone)]
pub struct Message {
    head: String,
    body: Vec<u8>,
}

impl Message {
    /// A request for a path with its query, at a host with its port, unless that is the scheme's own.
    pub fn request(method: &str, target: &str, authority: &str) -> Self {
        let head = format!("{method} {} HTTP/1.1\r\n", uri::origin_form(target));
        Self { head, body: Vec::new() }.field("Host", authority).field("User-Agent", PRODUCT)
    }

    /// An answer, in the usual words of its status.
    pub fn response(status: u16) -> Self {
        Self::response_in(status, reason(status))
    }

    /// An answer in other words.
    pub fn response_in(status: u16, words: &str) -> Self {
        Self { head: format!("HTTP/1.1 {status} {words}\r\n"), body: Vec::new() }
    }

    /// Adds a field. What would end the line is left out of the value.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Display) -> Self {
        let at = self.head.len() + name.len() + 2;
        // A string takes all.
        let _ = write!(self.head, "{name}: {value}");
        if self.head[at..].contains(char::is_control) {
            let value = self.head.split_off(at);
            self.head.extend(value.chars().filter(|character| !character.is_control()));
        }
        self.head.push_str("\r\n");
        self
    }

    /// Adds a field whose value need not be there.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds what a person gave, in the place of the fields of the same names.
    #[must_use]
    pub fn given(mut self, fields: &GivenFields) -> Self {
        let is_given = |line: &str| {
            let name = line.split(':').next().unwrap_or_default();
            fields.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
        };
        if let Some((first, rest)) = self.head.split_once("\r\n") {
            let kept = rest.split_terminator("\r\n").filter(|line| !is_given(line));
            self.head = [first].into_iter().chain(kept).flat_map(|line| [line, "\r\n"]).collect();
        }
        fields.iter().fold(self, |message, (name, value)| message.field(name, value))
    }

    /// Whether the connection goes on behind it.
    #[must_use]
    pub fn keep_alive(self, keep_alive: bool) -> Self {
        self.field("Connection", if keep_alive { "keep-alive" } else { "close" })
    }

    /// Gives it this body, and says its length.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len();
        self.field("Content-Length", length)
    }

    /// All of it.
    pub fn end(mut self) -> Vec<u8> {
        let body = std::mem::take(&mut self.body);
        let mut bytes = self.end_of_head();
        bytes.extend_from_slice(&body);
        bytes
    }

    /// The head alone: the answer to HEAD, or of a stream that follows.
    pub fn end_of_head(mut self) -> Vec<u8> {
        self.head.push_str("\r\n");
        self.head.into_bytes()
    }
}

/// The usual words of a status (RFC 9110, section 15; RFC 6585).
pub fn reason(status: u16) -> &'static str {
    match status {
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        204 => "No Content",
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
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_its_head_and_its_body() {
        let message = Message::request("POST", "/a b", "host:81").field("X", 1).body("v=0").keep_alive(false);
        let sent = String::from_utf8(message.end()).unwrap();
        let head = format!("POST /a%20b HTTP/1.1\r\nHost: host:81\r\nUser-Agent: {PRODUCT}\r\nX: 1\r\n");
        assert_eq!(sent, format!("{head}Content-Length: 3\r\nConnection: close\r\n\r\nv=0"));
        let answer = Message::response(404).field("Server", PRODUCT).keep_alive(true).body("gone");
        let head = format!(
            "HTTP/1.1 404 Not Found\r\nServer: {PRODUCT}\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\n"
        );
        assert_eq!(answer.clone().end_of_head(), head.as_bytes());
        assert_eq!(answer.end(), [head.as_bytes(), b"gone"].concat());
    }

    #[test]
    fn no_value_ends_its_line() {
        let sent = Message::request("GET", "/\r\nX: y", "h").maybe("A", Some("b\r\nC: d\u{85}e\0")).end();
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.starts_with("GET /%0D%0AX:%20y HTTP/1.1\r\nHost: h\r\n"), "{sent}");
        assert!(sent.ends_with("\r\nA: bC: de\r\n\r\n"), "{sent}");
    }
}
