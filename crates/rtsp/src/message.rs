//! Requests and responses as they are sent. No value can end its line, and there is no `Debug`: some are secrets.

use std::fmt::{Display, Write as _};
use weir_web::PRODUCT;

/// A message under way: first the fields, then [`Self::end`].
#[derive(Clone)]
pub struct Message {
    head: String,
    body: Vec<u8>,
}

impl Message {
    /// A request.
    pub fn request(method: &str, uri: &str, number: u32) -> Self {
        let uri: String = uri.chars().filter(|sign| !sign.is_control() && !sign.is_whitespace()).collect();
        let head = format!("{method} {uri} RTSP/1.0\r\n");
        Self { head, body: Vec::new() }.field("CSeq", number).field("User-Agent", PRODUCT)
    }

    /// A response to the request with this number, which is repeated as it came.
    pub fn response(status: u16, number: &str) -> Self {
        let head = format!("RTSP/1.0 {status} {}\r\n", reason(status));
        Self { head, body: Vec::new() }.field("CSeq", number).field("Server", PRODUCT)
    }

    /// Adds a field. What would end the line is left out of the value.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Display) -> Self {
        let at = self.head.len() + name.len() + 2;
        // A string takes all.
        let _ = write!(self.head, "{name}: {value}");
        if self.head[at..].contains(char::is_control) {
            let value = self.head.split_off(at);
            self.head.extend(value.chars().filter(|sign| !sign.is_control()));
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

    /// Gives it this body, and says its type and length.
    #[must_use]
    pub fn body(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len();
        self.field("Content-Type", kind).field("Content-Length", length)
    }

    /// All of it.
    pub fn end(mut self) -> Vec<u8> {
        self.head.push_str("\r\n");
        let mut bytes = self.head.into_bytes();
        bytes.append(&mut self.body);
        bytes
    }
}

/// Appends what stands in front of an interleaved packet of this length.
///
/// RFC 2326 section 10.12: "Stream data such as RTP packets is encapsulated by an ASCII dollar sign (24 hexadecimal), followed
/// by a one-byte channel identifier, followed by the length of the encapsulated binary data as a binary, two-byte integer."
pub fn append_frame_header(channel: u8, length: u16, out: &mut Vec<u8>) {
    out.extend([b'$', channel]);
    out.extend(length.to_be_bytes());
}

/// The usual words of a status (RFC 2326 section 7.1.1).
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Moved Temporarily",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Time-out",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        453 => "Not Enough Bandwidth",
        454 => "Session Not Found",
        455 => "Method Not Valid in This State",
        456 => "Header Field Not Valid for Resource",
        457 => "Invalid Range",
        459 => "Aggregate Operation Not Allowed",
        460 => "Only Aggregate Operation Allowed",
        461 => "Unsupported Transport",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "RTSP Version Not Supported",
        551 => "Option Not Supported",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_its_head_and_its_body() {
        let sent = Message::request("ANNOUNCE", "rtsp://h/a\r\nX: y", 2).body("application/sdp", "v=0").end();
        let head = format!("ANNOUNCE rtsp://h/aX:y RTSP/1.0\r\nCSeq: 2\r\nUser-Agent: {PRODUCT}\r\n");
        let expected = format!("{head}Content-Type: application/sdp\r\nContent-Length: 3\r\n\r\nv=0");
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
        let sent = Message::response(454, "7\r\n").maybe("Session", None::<&str>).field("A", "b\nc").end();
        let expected =
            format!("RTSP/1.0 454 Session Not Found\r\nCSeq: 7\r\nServer: {PRODUCT}\r\nA: bc\r\n\r\n");
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    }
}
