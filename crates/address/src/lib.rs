#![doc = include_str!("../README.md")]

pub mod networks;
mod numbers;

pub use numbers::KeyNumbers;

use std::fmt;

/// Shortest secret that is looked for in the words of a server: of a shorter one, what is left out would tell more
/// than what is shown.
const SHORTEST_QUOTED: usize = 4;

/// What stands for a secret.
const HIDDEN: &str = "…";

/// Schemes of databases, which have no `@` in a path: whatever stands before the last one is user and password, even
/// if it was not escaped.
const DATABASES: [&str; 8] = [
    "postgres",
    "postgresql",
    "sql:postgres",
    "sql:postgresql",
    "clickhouse",
    "clickhouses",
    "kafka",
    "kafkas",
];

/// A URL as a person wrote it. `Display` and `Debug` show it without what may be secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SecretUrl {
    text: String,
}

/// Where the parts of a URL are in its text.
struct Parts<'a> {
    /// The scheme with its `://`, or nothing.
    scheme: &'a str,
    /// User and password, without their `@`.
    credentials: Option<&'a str>,
    /// Host, port and path.
    place: &'a str,
    /// What follows the `?`.
    query: Option<&'a str>,
    /// The table of a database with its `#`, or nothing.
    table: &'a str,
}

impl SecretUrl {
    /// Takes a text that is meant as a URL; nothing about it is checked.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The whole text, for the one place that connects with it.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// As `Display` shows it, but with the key of an RTMP stream: what `--show-keys` asks for.
    pub fn with_key(&self) -> String {
        let parts = self.parts();
        Self::shown(&parts, parts.place, "")
    }

    /// As `Display` shows it, with a number in the place of the key, which tells streams apart.
    fn with_number(&self, number: usize) -> String {
        let parts = self.parts();
        match key_in(&parts) {
            Some(key) => {
                let front = &parts.place[..parts.place.len() - key.len()];
                Self::shown(&parts, front, &format!("{HIDDEN}{number}"))
            }
            None => self.to_string(),
        }
    }

    /// The key of an RTMP stream: what stands behind the application, without the query.
    pub fn key(&self) -> Option<&str> {
        key_in(&self.parts())
    }

    /// A server's words without this URL's secrets, which it may quote: "stream KEY is already publishing".
    pub fn hide_in(&self, words: &str) -> String {
        let parts = self.parts();
        let password = parts.credentials.and_then(|it| it.split_once(':')).map(|(_, password)| password);
        let values = parts.query.into_iter().flat_map(|query| query.split('&'));
        let values = values.filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
        let secrets = [parts.credentials, password, parts.query, key_in(&parts)];
        let whole = secrets.into_iter().flatten().chain(values);
        // A server may quote the stream without the instance of its application.
        let secrets = whole.clone().chain(whole.filter_map(|it| it.rsplit_once('/')).map(|(_, last)| last));
        secrets
            .filter(|secret| secret.len() >= SHORTEST_QUOTED)
            .fold(words.to_owned(), |words, secret| without(&words, secret))
    }

    fn parts(&self) -> Parts<'_> {
        let start = self.text.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = self.text.split_at(start);
        let is_database = DATABASES
            .iter()
            .any(|known| scheme.strip_suffix("://").is_some_and(|scheme| scheme.eq_ignore_ascii_case(known)));
        // Without a scheme it is no URL, and a password may be anywhere before the last `@`: `http//me:secret@host`.
        let is_url = !scheme.is_empty();
        let host = if is_database || !is_url { rest.rfind('@').map(|at| at + 1) } else { host_in(rest) };
        let (credentials, rest) = match host {
            Some(at) => (Some(&rest[..at - 1]), &rest[at..]),
            None => (None, rest),
        };
        let (rest, table) = match rest.rfind('#').filter(|_| is_database) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        Parts { scheme, credentials, place, query, table }
    }

    fn shown(parts: &Parts<'_>, place: &str, key: &str) -> String {
        let query = if parts.query.is_some() { "?…" } else { "" };
        format!("{}{place}{key}{query}{}", parts.scheme, parts.table)
    }
}

/// The key at the end of the place of an RTMP URL: all that stands behind the first part of the path, which is the
/// application. An instance of the application (`live/inst/KEY`) looks like a key with a `/`, and is hidden,
/// too. A single part is an application without a stream.
fn key_in<'a>(parts: &Parts<'a>) -> Option<&'a str> {
    if !parts.scheme.to_ascii_lowercase().starts_with("rtmp") {
        return None;
    }
    let (slash, _) = parts.place.match_indices('/').nth(1)?;
    Some(&parts.place[slash + 1..]).filter(|key| !key.is_empty())
}

/// Where the host begins in what follows `://`, if there is a user before it. A `/`, `?` or `#` in a password ends the
/// authority too early: then what stands where the port would is no number.
fn host_in(rest: &str) -> Option<usize> {
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if let Some(at) = authority.rfind('@') {
        return Some(at + 1);
    }
    let (host, port) = authority.rsplit_once(':')?;
    let is_port = port.parse::<u16>().is_ok();
    // A host has a `:` only within brackets, and a bracket only at both of its ends: a password may have any.
    let is_address = match authority.starts_with('[') {
        true => is_port || port.ends_with(']'),
        false => is_port && !host.contains(':'),
    };
    let at = behind.rfind('@').filter(|_| !is_address)?;
    Some(authority.len() + at + 1)
}

/// Replaces a secret where it stands as a word of its own.
fn without(words: &str, secret: &str) -> String {
    let is_of_a_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut shown = String::with_capacity(words.len());
    let mut taken = 0;
    for (at, _) in words.match_indices(secret) {
        let behind = at + secret.len();
        if !is_of_a_word(words[..at].chars().next_back()) && !is_of_a_word(words[behind..].chars().next()) {
            shown.push_str(&words[taken..at]);
            shown.push_str(HIDDEN);
            taken = behind;
        }
    }
    shown + &words[taken..]
}

/// A URL as it may be shown: without user and password, without what a query holds, which is where tokens are, and
/// without the key of an RTMP stream.
pub fn shown(url: &str) -> String {
    SecretUrl::new(url).to_string()
}

/// Whether what stands behind a URL's `://` has a `/`, a `?` or a `#` in its password that should have been escaped.
pub fn has_unescaped_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    !authority.contains('@') && host_in(rest).is_some()
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts();
        let key = key_in(&parts);
        let place = &parts.place[..parts.place.len() - key.map_or(0, str::len)];
        f.write_str(&Self::shown(&parts, place, key.map_or("", |_| HIDDEN)))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretUrl({self})")
    }
}

impl From<&str> for SecretUrl {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn user_password_query_and_stream_key_are_not_shown() {
        for (url, shows) in [
            ("mqtt://me:s3/cr3t@h:1/t", "mqtt://h:1/t"),
            ("mqtt://me:s3?cr3t@h/t?x=1", "mqtt://h/t?…"),
            ("mqtt://me:s3#cr@3t@h/t", "mqtt://h/t"),
            ("mqtt://h/a/#", "mqtt://h/a/#"),
            ("http://h:1935/live/a@b", "http://h:1935/live/a@b"),
            ("http://[::1]/a@b", "http://[::1]/a@b"),
            ("http://me:s?3@h:8882/csp/mqtt/rest", "http://h:8882/csp/mqtt/rest"),
            ("http://h/x?token=a#b", "http://h/x?…"),
            ("htp://me:se/cr@et@h:x/y?key=1", "htp://h:x/y?…"),
            ("me:secret@h", "h"),
            ("http//me:secret@h:9090", "h:9090"),
            ("rtmp://me:s3cr3t:0#@h/live/x", "rtmp://h/live/…"),
            ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
            ("rtmp://me:s3cr3t]/x@h/live/x", "rtmp://h/live/…"),
            ("joe:p@w@h/live", "h/live"),
            ("rtmp://joe:pw@", "rtmp://"),
            ("rtmp://h/live/s3cret", "rtmp://h/live/…"),
            ("RTMPS://h:1936/live/inst/s3cret?x=1", "RTMPS://h:1936/live/…?…"),
            ("rtmp://me:s3/cr3t@h/live/s3cret/x", "rtmp://h/live/…"),
            ("rtmp://h/live?vhost=v/s3cret", "rtmp://h/live?…"),
            ("rtmp://h/live", "rtmp://h/live"),
            ("rtmp://h/live/", "rtmp://h/live/"),
            ("postgres://me:s3/cr3t@h:5/d?sslmode=disable", "postgres://h:5/d?…"),
            ("clickhouse://me:s3/c@r3t@h:5/d", "clickhouse://h:5/d"),
            ("kafkas://me:s3/c@r3t@h:5,i:6/t", "kafkas://h:5,i:6/t"),
            ("sql:postgres://me:33#c@3t@h/d#simple_{encoding}", "sql:postgres://h/d#simple_{encoding}"),
            ("", ""),
        ] {
            assert_eq!(shown(url), shows, "{url}");
            assert_eq!(format!("{:?}", SecretUrl::new(url)), format!("SecretUrl({shows})"));
        }
    }

    #[test]
    fn the_key_is_shown_when_it_is_asked_for_and_no_other_secret() {
        let url = SecretUrl::new("rtmp://me:pw@h/live/s3cret?token=t0p");
        assert_eq!((url.key(), &*url.with_key()), (Some("s3cret"), "rtmp://h/live/s3cret?…"));
    }

    #[test]
    fn what_a_server_quotes_of_a_url_is_left_out_of_its_words() {
        let url = SecretUrl::new("rtmp://h/live/s3cret?token=t0ps&x=1");
        for (said, shows) in [
            ("Stream s3cret already publishing", "Stream … already publishing"),
            ("live/s3cret?token=t0ps&x=1: denied", "live/…?…: denied"),
            ("t0ps is not a token; s3cretly", "… is not a token; s3cretly"),
        ] {
            assert_eq!(url.hide_in(said), shows);
        }
        // Too short to be a secret, and part of other words.
        assert_eq!(SecretUrl::new("rtmp://h/live/a").hide_in("a stream is missing"), "a stream is missing");
    }

    #[test]
    fn a_password_that_should_have_been_escaped_is_noticed() {
        assert!(has_unescaped_password("mqtt://me:s3/cr3t@h"));
        assert!(!has_unescaped_password("mqtt://me:s3cr3t@h/t"));
        assert!(!has_unescaped_password("http://h:80/a@b"));
    }

    proptest! {
        /// Whatever a password holds, it is not shown; nor is a token or a key.
        #[test]
        fn no_secret_is_shown(
            scheme in prop::sample::select(&["rtmp", "mqtt", "http", "postgres", "whip+https"][..]),
            password in "S3[a-zA-Z][a-zA-Z0-9/?#@:\\[\\]]{2,12}",
            token in "S3[a-zA-Z0-9+/=#@]{4,12}",
            key in "S3[a-zA-Z0-9/]{4,12}",
        ) {
            let with_password = format!("{scheme}://me:{password}@host/live/x");
            let said = shown(&with_password);
            prop_assert!(!said.contains("S3") && !said.contains("me:"), "{with_password} shows as {said}");
            let with_token = format!("{scheme}://host/live/x?token={token}");
            prop_assert!(!shown(&with_token).contains(&token), "{with_token}");
            let with_key = format!("rtmp://host/live/inst/{key}");
            prop_assert!(!shown(&with_key).contains("S3"), "{with_key}");
        }

        #[test]
        fn any_text_is_shown(text: String) {
            let url = SecretUrl::new(&*text);
            let _ = (url.to_string(), url.with_key(), url.hide_in(&text));
        }
    }
}
