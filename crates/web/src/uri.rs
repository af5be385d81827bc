//! Places: as they are asked for, as a server is asked for them, where a redirect leads, and what of it may be shown.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt::Display;
use url::Url;
use weir_address::shown;

/// What may not stand in the first line of a request.
const BREAKS_A_LINE: &AsciiSet = &CONTROLS.add(b' ');
/// What may not stand in the value of a query (RFC 3986, sections 2.3 and 3.4).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Path and query as they may stand in a request (RFC 9112, section 3.2.1): without fragment, and with nothing that would
/// end the line.
pub fn origin_form(text: &str) -> String {
    let text = text.split('#').next().unwrap_or("");
    let slash = if text.starts_with('/') { "" } else { "/" };
    format!("{slash}{}", utf8_percent_encode(text, BREAKS_A_LINE))
}

/// A value as it may stand in a query.
pub fn query_value(text: &str) -> impl Display {
    utf8_percent_encode(text, RESERVED)
}

/// A part of a path, decoded.
pub fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// Host and port of a URL as the field `Host` has them: without the scheme's own port.
pub fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether a text is host and port, and nothing else (RFC 9110, section 7.2).
pub(crate) fn is_authority(text: &str) -> bool {
    let plain = !text.contains(['/', '\\', '?', '#', '@']) && !text.contains(char::is_whitespace);
    plain && Url::parse(&format!("http://{text}")).is_ok()
}

/// Path and query of a request's target, which may be a whole URL (RFC 9112, section 3.2).
pub(crate) fn split(target: &str) -> (&str, &str) {
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    target.split_once('?').unwrap_or((target, ""))
}

/// The URL that a reference in the answer to `base` stands for, without its fragment.
///
/// # Errors
/// It stands for none; the words show nothing of it.
pub fn resolve(base: &str, location: &str) -> Result<Url, url::ParseError> {
    let mut url = Url::parse(base)?.join(location)?;
    url.set_fragment(None);
    Ok(url)
}

/// Whether two URLs are of one server: a secret for the one may be sent to the other.
pub fn is_same_server(one: &Url, other: &Url) -> bool {
    (one.scheme(), one.host(), one.port_or_known_default())
        == (other.scheme(), other.host(), other.port_or_known_default())
}

/// A reference as it may be shown: without user and password, and without what a query holds.
pub fn shown_location(location: &str) -> String {
    let text = if location.starts_with("//") { shown(&format!("http:{location}")) } else { shown(location) };
    // Whatever stands before an @ elsewhere is not needed to find the place.
    match text.rsplit_once('@') {
        Some((_, rest)) if !location.contains("://") => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_from_where_it_was_met() {
        // The examples of RFC 3986, section 5.4, that stay with HTTP.
        for (location, expected) in [
            ("http://g", "http://g/"),
            ("//g/x", "http://g/x"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("/g?u=http://h/", "http://a/g?u=http://h/"),
        ] {
            assert_eq!(resolve("http://a/b/c/d;p?q", location).unwrap().as_str(), expected, "{location}");
        }
        assert_eq!(resolve("https://a:8443/x", "y").unwrap().as_str(), "https://a:8443/y");
        let said = resolve("http://a/x", "http://me:s3cret@a:x/").unwrap_err().to_string();
        assert!(!said.contains("s3cret"), "{said}");
    }

    #[test]
    fn a_reference_is_shown_without_its_secrets() {
        for (location, shown) in [
            ("http://other:81/y.ts", "http://other:81/y.ts"),
            ("https://me:secret@other/y.ts?token=secret", "https://other/y.ts?…"),
            ("//me:secret@other/y.ts", "http://other/y.ts"),
            ("/y.ts?token=secret", "/y.ts?…"),
            ("me:secret@other/y", "other/y"),
        ] {
            assert_eq!(shown_location(location), shown);
        }
    }

    #[test]
    fn a_place_is_asked_for_without_what_would_end_the_line() {
        for (text, asked) in [
            ("", "/"),
            ("?a=1", "/?a=1"),
            ("/a b\r\nX: y\u{e9}\0", "/a%20b%0D%0AX:%20y%C3%A9%00"),
            ("/a%20b{0}?c=[1]|\"#d", "/a%20b{0}?c=[1]|\""),
        ] {
            assert_eq!(origin_form(text), asked);
        }
        assert_eq!(query_value("a b&c=d/é-._~").to_string(), "a%20b%26c%3Dd%2F%C3%A9-._~");
    }

    #[test]
    fn a_server_is_host_and_port() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(authority(&url("http://h:80/x")), "h");
        assert_eq!(authority(&url("https://[::1]:80/x")), "[::1]:80");
        assert!(is_same_server(&url("http://h/a"), &url("http://H:80/b")));
        assert!(!is_same_server(&url("http://h/a"), &url("http://h:81/a")));
        assert!(!is_same_server(&url("http://h/a"), &url("https://h/a")));
        assert!(!is_same_server(&url("http://h/a"), &url("https://h:80/a")));
        for text in ["h", "h:81", "[::1]:81", "10.0.0.1"] {
            assert!(is_authority(text), "{text}");
        }
        for text in ["", "h/x", "me@h", "h:x", "a b", "h,g:1:2", "[::1"] {
            assert!(!is_authority(text), "{text}");
        }
    }
}
