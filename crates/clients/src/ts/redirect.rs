//! Where a redirect leads (RFC 9110, section 10.2.2; RFC 3986, section 5.2).

use super::SCHEMES;
use super::request::Request;
use crate::target::{Target, shown};

/// So many redirects in a row are followed.
pub(super) const MOST: u32 = 5;

/// The request that follows from the answer to `request`. Credentials go along to the same server only.
///
/// # Errors
/// The place is none that a viewer can go to; says why.
pub(super) fn follow(request: &Request, location: Option<&str>) -> Result<Request, String> {
    let location = location.ok_or("it does not say where to")?;
    let before = request.target();
    let text = resolve(before, location);
    let mut target = Target::parse(&text, "play", SCHEMES).map_err(|error| error.to_string())?;
    if target.credentials.is_none() && target.base() == before.base() {
        target.credentials.clone_from(&before.credentials);
    }
    Ok(request.to(target))
}

/// The URL that a reference stands for, seen from a target.
fn resolve(base: &Target, location: &str) -> String {
    let location = location.split('#').next().unwrap_or("");
    let (path, _) = base.path.split_once('?').unwrap_or((&base.path, ""));
    if location.contains("://") && !location.starts_with(['/', '?', '.']) {
        return location.to_owned();
    }
    if location.starts_with("//") {
        return format!("{}:{location}", base.scheme);
    }
    let path = match location.as_bytes().first() {
        Some(b'/') => location.to_owned(),
        Some(b'?') => format!("{path}{location}"),
        Some(_) => format!("{}/{location}", path.rsplit_once('/').map_or("", |(directory, _)| directory)),
        None => base.path.clone(),
    };
    format!("{}{}", base.base(), without_dots(&path))
}

/// A path without `.` and `..` (RFC 3986, section 5.2.4); its query stays as it is.
fn without_dots(path: &str) -> String {
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if segments.peek().is_none() {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

/// A reference as it may be shown: without user and password, and without what a query holds.
pub(super) fn shown_location(location: &str) -> String {
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
    use crate::ts::HttpOptions;

    fn request(url: &str) -> Request {
        Request::new(Target::parse(url, "play", SCHEMES).unwrap(), &HttpOptions::default())
    }

    /// Where the answer of this URL leads.
    fn led(url: &str, location: &str) -> String {
        let target = follow(&request(url), Some(location)).unwrap().target().clone();
        format!("{}{}", target.base(), target.path)
    }

    #[test]
    fn a_reference_is_read_from_where_it_was_met() {
        // The examples of RFC 3986, section 5.4, as far as they stay with HTTP.
        for (location, expected) in [
            ("http://g", "http://g"),
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
            assert_eq!(led("http://a/b/c/d;p?q", location), expected, "{location}");
        }
        assert_eq!(led("https://a:8443/x", "y"), "https://a:8443/y");
    }

    #[test]
    fn credentials_go_along_to_the_same_server_only() {
        let request = request("http://me:secret@a/x");
        for (location, expected) in [
            ("/y", true),
            ("http://a:80/y", true),
            ("http://b/y", false),
            ("https://a/y", false),
            ("//a:81/", false),
        ] {
            let led = follow(&request, Some(location)).unwrap();
            assert_eq!(led.target().credentials.is_some(), expected, "{location}");
            assert_eq!(
                String::from_utf8_lossy(led.bytes()).contains("Authorization"),
                expected,
                "{location}"
            );
        }
    }

    #[test]
    fn a_place_that_is_none_says_so_without_secrets() {
        for location in [None, Some("ftp://me:secret@a/x"), Some("http://"), Some("http://me:secret@a:x/")] {
            let said = follow(&request("http://a/x"), location).err().unwrap();
            assert!(!said.contains("secret"), "{said}");
        }
        for (location, shown) in [
            ("http://other:81/y.ts", "http://other:81/y.ts"),
            ("https://me:secret@other/y.ts?token=secret", "https://other/y.ts?…"),
            ("//me:secret@other/y.ts", "http://other/y.ts"),
            ("/y.ts?token=secret", "/y.ts?…"),
        ] {
            assert_eq!(shown_location(location), shown);
        }
    }
}
