//! HTTP as its clients see it: requests go out, the head and the body of an answer come in, in pieces of any size.

mod body;
mod head;

pub(crate) use body::Body;
pub(crate) use head::{Answer, Head};

use std::fmt::Write as _;

/// Path and query as they may stand in a request: without fragment, and with nothing that would end the line.
pub(crate) fn path(text: &str) -> String {
    let text = text.split('#').next().unwrap_or("");
    let mut path = String::from(if text.starts_with('/') { "" } else { "/" });
    for byte in text.bytes() {
        if byte.is_ascii_graphic() {
            path.push(byte.into());
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}
