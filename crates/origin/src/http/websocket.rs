//! What a request for a WebSocket says.

use weir_web::Request;

/// The key of a client that wants a WebSocket (RFC 6455 section 4.2.1).
pub(crate) fn socket_key(request: &Request) -> Option<&str> {
    request.fields.get("sec-websocket-key").filter(|_| request.fields.lists("upgrade", "websocket"))
}

/// Whether a page of another site asks (RFC 6454 section 7): browsers send such requests for a WebSocket without asking the
/// server first, and tell it the page's origin. Programs that are not browsers name none.
pub(crate) fn is_of_another_site(request: &Request) -> bool {
    let authority =
        |origin: &str| origin.split_once("://").map(|(_, authority)| authority.to_ascii_lowercase());
    let host = request.fields.get("host").map(str::to_ascii_lowercase);
    request.fields.get("origin").is_some_and(|origin| authority(origin) != host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_web::Requests;

    fn parse(text: &str) -> Request {
        Requests::new(0).take(&mut text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_websocket_is_wanted_by_two_fields() {
        for (fields, key) in [
            ("Upgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n", Some("k")),
            ("Sec-WebSocket-Key: k\r\n", None),
            ("Upgrade: websocket\r\n", None),
        ] {
            let request = parse(&format!("GET /live/a HTTP/1.1\r\n{fields}\r\n"));
            assert_eq!(socket_key(&request), key, "{fields}");
        }
    }

    #[test]
    fn a_page_of_another_site_names_itself() {
        for (origin, is_other) in [
            ("", false),
            ("Origin: http://127.0.0.1:8080\r\n", false),
            ("Origin: http://127.0.0.1\r\n", true),
            ("Origin: https://elsewhere.example\r\n", true),
            ("Origin: null\r\n", true),
        ] {
            let request = parse(&format!("GET /live/a HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n{origin}\r\n"));
            assert_eq!(is_of_another_site(&request), is_other, "{origin}");
        }
    }
}
