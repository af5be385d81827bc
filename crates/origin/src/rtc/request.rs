//! What a request of signalling is about.

use std::borrow::Cow;
use weir_rtc::signalling::http::SDP;
use weir_web::{Request, uri};

/// The path without slashes at its ends, decoded.
pub(super) fn path(request: &Request) -> Cow<'_, str> {
    uri::decoded(request.path.trim_matches('/'))
}

/// Whether media is to come by a relay, as players of OvenMediaEngine ask for it.
pub(super) fn wants_relay(request: &Request) -> bool {
    let mut query = request.query.iter();
    query.any(|(key, value)| key == "transport" && value.eq_ignore_ascii_case("tcp"))
}

/// Whether the body is a session description (RFC 9725 section 4.2).
pub(super) fn has_description(request: &Request) -> bool {
    let kind = request.fields.get("content-type").unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(SDP)
}

/// The stream that is meant: `/APP/STREAM`, the same behind `/whep/` or before `/whep`, or as SRS has it,
/// `/rtc/v1/whep/?app=APP&stream=STREAM`. For publishers each of them with `whip`; see [`publishes`].
pub(super) fn stream(request: &Request) -> Option<String> {
    let name = match (request.asks("app"), request.asks("stream")) {
        (Some(app), Some(stream)) => format!("{app}/{stream}"),
        _ => {
            let path = path(request);
            let path = ["whep/", "whip/"].iter().find_map(|way| path.strip_prefix(way)).unwrap_or(&path);
            let shorter = ["/whep", "/whip"].iter().find_map(|way| path.strip_suffix(way));
            shorter.unwrap_or(path).to_owned()
        }
    };
    let is_name = !["", "whep", "whip"].contains(&&*name);
    (is_name && name.len() <= 1_024).then_some(name)
}

/// Whether it is about publishing (WHIP): `whip` stands around the path where `whep` could, or behind it
/// `?direction=whip`, as OvenMediaEngine has it.
pub(super) fn publishes(request: &Request) -> bool {
    let path = path(request);
    let mut parts = path.split('/');
    let ends = [parts.next(), parts.next_back()];
    let of_srs = request.asks("app").is_some() && path.split('/').any(|part| part == "whip");
    of_srs || ends.contains(&Some("whip")) || request.asks("direction") == Some("whip")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_web::Requests;

    fn parse(text: &str) -> Request {
        Requests::new(0).take(&mut text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_stream_has_many_names() {
        for target in ["/live/a", "/whep/live/a", "/live/a/whep", "/rtc/v1/whep/?app=live&stream=a"] {
            let request = parse(&format!("GET {target} HTTP/1.1\r\n\r\n"));
            assert_eq!(stream(&request).as_deref(), Some("live/a"), "{target}");
            assert!(!publishes(&request), "{target}");
            let target = target.replace("whep", "whip");
            let target = if target == "/live/a" { "/live/a?direction=whip".to_owned() } else { target };
            let request = parse(&format!("POST {target} HTTP/1.1\r\n\r\n"));
            let said = (stream(&request), publishes(&request));
            assert_eq!(said, (Some("live/a".to_owned()), true), "{target}");
        }
        for target in ["/", "/whep", "/whip/"] {
            assert_eq!(stream(&parse(&format!("GET {target} HTTP/1.1\r\n\r\n"))), None, "{target}");
        }
        let request = parse("GET /live/a%20b/whep?transport=TCP HTTP/1.1\r\n\r\n");
        assert_eq!((stream(&request).as_deref(), wants_relay(&request)), (Some("live/a b"), true));
    }

    #[test]
    fn a_description_is_known_by_its_type() {
        for (field, is_one) in [
            ("Content-Type: application/sdp\r\n", true),
            ("content-type: Application/SDP; charset=utf-8\r\n", true),
            ("Content-Type: text/plain\r\n", false),
            ("", false),
        ] {
            let request = parse(&format!("POST /live/a HTTP/1.1\r\n{field}\r\n"));
            assert_eq!(has_description(&request), is_one, "{field}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_target_names_a_stream_or_none(target in "[!-~]{0,60}") {
            if let Ok(Some(request)) = Requests::new(0).take(&mut format!("GET /{target} HTTP/1.1\r\n\r\n").as_bytes()) {
                let _ = (stream(&request), publishes(&request), wants_relay(&request));
            }
        }
    }
}
