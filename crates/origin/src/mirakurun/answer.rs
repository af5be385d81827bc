//! Answers in the words of Mirakurun and mirakc.

use serde::Serialize;
use weir_web::{Message, PRODUCT, reason};

/// The body of an error.
#[derive(Serialize)]
struct ErrorBody<'a> {
    code: u16,
    reason: &'a str,
    errors: [u8; 0],
}

/// 200, with this JSON.
pub(super) fn document(value: &impl Serialize) -> Message {
    with_json(Message::response(200), value)
}

/// An error, in the words of the status unless others are given.
pub(super) fn error(status: u16, words: Option<&str>) -> Message {
    let usual = if status == 503 { "Tuner Resource Unavailable" } else { reason(status) };
    let body = ErrorBody { code: status, reason: words.unwrap_or(usual), errors: [] };
    with_json(Message::response_in(status, usual), &body)
}

/// The head of an answer that a stream follows. Without the chunked coding the stream ends with the
/// connection.
pub(super) fn stream_head(user: &str, chunked: bool) -> Vec<u8> {
    let (name, value) = if chunked { ("Transfer-Encoding", "chunked") } else { ("Connection", "close") };
    Message::response(200)
        .field("Server", PRODUCT)
        .field("Content-Type", "video/MP2T")
        .field("Accept-Ranges", "none")
        .field("X-Mirakurun-Tuner-User-ID", user)
        .field(name, value)
        .end()
}

fn with_json(message: Message, value: &impl Serialize) -> Message {
    // Values of numbers, texts and lists have a JSON each.
    let body = serde_json::to_vec(value).unwrap_or_default();
    message.field("Server", PRODUCT).field("Content-Type", "application/json; charset=utf-8").body(body)
}
