//! What a request of signalling is answered over HTTP.

use crate::fault::Why;
use std::fmt::Write as _;
use weir_rtc::signalling::oven::IceServer;

/// An answer over HTTP.
pub(super) struct Answer {
    status: u16,
    kind: &'static str,
    fields: String,
    body: String,
}

impl Answer {
    pub(super) fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", fields: String::new(), body: body.into() }
    }

    /// The same, of another kind than plain text.
    pub(super) fn of(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(self.fields, "{name}: {value}\r\n");
        self
    }

    /// Names a TURN server (RFC 9725 section 4.6).
    pub(super) fn with_links(self, server: Option<&IceServer>) -> Self {
        let Some(IceServer { urls, username, credential }) = server else { return self };
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let (username, credential) = (quoted(username), quoted(credential));
        urls.iter().fold(self, |answer, url| {
            let link = format!(
                "<{url}>; rel=\"ice-server\"; username=\"{username}\"; credential=\"{credential}\"; credential-type=\"password\""
            );
            answer.with("Link", &link)
        })
    }

    pub(super) fn bytes(&self, keep_alive: bool) -> Vec<u8> {
        let Self { status, kind, fields, body } = self;
        let connection = if keep_alive { "keep-alive" } else { "close" };
        // Pages of any origin may play: browsers ask before they let them.
        format!(
            "HTTP/1.1 {status} {}\r\nServer: weir/{}\r\nConnection: {connection}\r\n\
             Access-Control-Allow-Origin: *\r\nAccess-Control-Expose-Headers: *\r\n{fields}\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            reason(*status),
            env!("CARGO_PKG_VERSION"),
            body.len(),
        )
        .into_bytes()
    }
}

/// The status of a refusal for this reason.
pub(super) fn usual_status(why: &Why) -> u16 {
    match why {
        Why::Unauthorized { .. } => 401,
        Why::Rejected => 503,
        Why::Moved { .. } => 307,
    }
}

/// The usual words of a status (RFC 9110 section 15).
pub(super) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}
