//! What a request of signalling is answered over HTTP.

use weir_rtc::signalling::oven::IceServer;
use weir_web::{Message, PRODUCT, reason};

/// An answer in plain text.
///
/// Like all others it is not for pages of other origins (CORS): the origin's own pages need no leave, and whatever else is
/// open in a browser has no business with a server on loopback.
pub(super) fn plain(status: u16, words: impl Into<Vec<u8>>) -> Message {
    of_kind("text/plain; charset=utf-8", status, words)
}

/// An answer in the usual words of its status.
pub(super) fn usual(status: u16) -> Message {
    plain(status, reason(status))
}

/// An answer of another kind.
pub(super) fn of_kind(kind: &str, status: u16, body: impl Into<Vec<u8>>) -> Message {
    Message::response(status).field("Server", PRODUCT).field("Content-Type", kind).body(body)
}

/// The same, with a TURN server (RFC 9725 section 4.6).
pub(super) fn with_links(answer: Message, server: Option<&IceServer>) -> Message {
    let Some(IceServer { urls, username, credential }) = server else { return answer };
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (username, credential) = (quoted(username), quoted(credential));
    urls.iter().fold(answer, |answer, url| {
        let link = format!(
            "<{url}>; rel=\"ice-server\"; username=\"{username}\"; credential=\"{credential}\"; credential-type=\"password\""
        );
        answer.field("Link", link)
    })
}
