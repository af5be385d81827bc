//! What an answer says of the caches that it came through.

use std::time::Duration;
use weir_web::Fields;

/// The longest age that is believed: a year, as in `max-age` (RFC 9111, section 1.2.2 has 2^31 s as the most).
const LONGEST_AGE: u64 = 365 * 86_400;

/// Whether a cache had it; `None` if the answer says nothing of caches.
pub(super) fn was_hit(fields: &Fields) -> Option<bool> {
    // RFC 9211, section 2.1: "The value of 'hit' is a boolean; when true, it indicates that the request was satisfied by the cache". Any
    // of the caches in the list may have had it.
    let mut members = fields.all("cache-status").flat_map(|value| value.split(',')).peekable();
    if members.peek().is_some() {
        let is_hit = |parameter: &str| matches!(parameter.trim(), "hit" | "hit=?1");
        return Some(members.any(|member| member.split(';').skip(1).any(is_hit)));
    }
    // No standard has these; the words are `HIT` and `MISS`, alone or with others around them (`TCP_HIT`, `Hit from cloudfront`).
    let named = ["x-cache", "x-cache-status", "cf-cache-status"];
    let words = named.into_iter().flat_map(|name| fields.all(name)).collect::<Vec<_>>().join(",");
    if !words.is_empty() {
        return Some(words.to_ascii_lowercase().contains("hit"));
    }
    // RFC 9111, section 5.1: "The presence of an Age header field implies that the response was not generated or validated by the origin
    // server for this request."
    age(fields).map(|_| true)
}

/// How long ago the origin server made it or vouched for it, if a cache says so.
pub(super) fn age(fields: &Fields) -> Option<Duration> {
    let seconds = fields.get("age")?.trim().parse::<u64>().ok()?;
    Some(Duration::from_secs(seconds.min(LONGEST_AGE)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_web::{Part, Responses};

    fn fields(lines: &str) -> Fields {
        let mut responses = Responses::new();
        responses.on_request("GET");
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{lines}\r\n");
        match responses.take(&mut text.as_bytes()) {
            Ok(Some(Part::Head(response))) => response.fields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn caches_say_whether_they_had_it() {
        for (lines, expected) in [
            ("", None),
            ("Cache-Status: ExampleCache; hit; ttl=376\r\n", Some(true)),
            ("Cache-Status: OriginCache; hit; ttl=1100, \"CDN\"; fwd=uri-miss\r\n", Some(true)),
            ("Cache-Status: ExampleCache; fwd=uri-miss; stored\r\nAge: 3\r\n", Some(false)),
            ("X-Cache: MISS, HIT\r\n", Some(true)),
            ("X-Cache: Hit from cloudfront\r\n", Some(true)),
            ("X-Cache: TCP_MISS\r\n", Some(false)),
            ("X-Cache-Status: EXPIRED\r\n", Some(false)),
            ("CF-Cache-Status: HIT\r\n", Some(true)),
            ("Age: 0\r\n", Some(true)),
            ("Age: soon\r\n", None),
        ] {
            assert_eq!(was_hit(&fields(lines)), expected, "{lines}");
        }
        assert_eq!(age(&fields("Age: 7\r\n")), Some(Duration::from_secs(7)));
    }
}
