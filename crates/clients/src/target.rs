//! A URL, read once: where to connect, what to ask for there, and what of it may be shown.

use crate::suggest::meant;
use std::fmt;
use std::net::Ipv6Addr;
use weir_address::{KeyNumbers, SecretUrl, has_unescaped_password, shown};
use weir_setting::STREAMS;
use weir_shard::tls::ServerName;

/// What a URL says, template expanded.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Its scheme, one of those that its workload speaks.
    pub scheme: Scheme,
    /// Name or address of the server, without the brackets of an IPv6 literal.
    pub host: String,
    /// The port, the scheme's own if the URL names none.
    pub port: u16,
    /// What follows host and port, from its `/` on and with its query.
    pub path: String,
    /// User and password, to be used and never shown.
    pub credentials: Option<Credentials>,
    /// What a person calls it, if the URL does not say it.
    pub label: Option<String>,
}

/// User and password of a URL; their `Debug` shows neither.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The password, empty if none was given.
    pub password: String,
}

impl Credentials {
    /// What stands before the `@` of a URL: `user:password`.
    pub fn parse(text: &str) -> Self {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        Self { user: user.to_owned(), password: password.to_owned() }
    }
}

/// A scheme that a workload speaks, and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// The part before `://`.
    pub name: &'static str,
    /// The port of a URL that names none.
    pub port: u16,
    /// What carries its links.
    pub link: Link,
}

impl Scheme {
    /// One over TCP.
    pub const fn tcp(name: &'static str, port: u16) -> Self {
        Self { name, port, link: Link::Tcp }
    }

    /// One over TLS.
    pub const fn tls(name: &'static str, port: u16) -> Self {
        Self { name, port, link: Link::Tls }
    }
}

/// What carries the links of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// UDP, from the first event on.
    Udp,
}

/// A URL that leads nowhere. Names it without its secrets, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no `scheme://`.
    #[error("{url}: no scheme; write for example rtmp://host/app/stream")]
    NoScheme {
        /// The text.
        url: String,
    },
    /// The scheme is not one of the verb's.
    #[error("{url}: cannot {verb} {scheme}://{}; known: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownScheme {
        /// The URL up to its host. Only the scheme could tell where a secret stands behind it.
        url: String,
        /// What was asked for: play or publish.
        verb: &'static str,
        /// Its scheme.
        scheme: String,
        /// The one of them that was meant, if one resembles it.
        nearest: Option<String>,
        /// The schemes that would do.
        known: String,
    },
    /// There is no host.
    #[error("{url}: no host between :// and the path")]
    NoHost {
        /// The URL.
        url: String,
    },
    /// The host has a sign in it that no name and no address has.
    #[error("{url}: {host:?} is not a host; give a name, an IPv4 address, or an IPv6 address in brackets")]
    BadHost {
        /// The URL.
        url: String,
        /// What stands there.
        host: String,
    },
    /// The port is no number from 1 to 65535.
    #[error("{url}: '{port}' is not a port; give a number from 1 to 65535")]
    BadPort {
        /// The URL.
        url: String,
        /// What stands there.
        port: String,
    },
    /// A password ends the part of a URL that it is in.
    #[error("{url}: write / ? and # in a password as %2F, %3F and %23")]
    UnescapedPassword {
        /// The URL.
        url: String,
    },
    /// The path does not name what is needed.
    #[error("{url}: {missing}")]
    Incomplete {
        /// The URL.
        url: String,
        /// What is missing, and how it is written.
        missing: &'static str,
    },
    /// The name of the host has no address.
    #[error("{url}: {host} has no address ({words}); check the name, or give the address itself")]
    NotResolved {
        /// The URL.
        url: String,
        /// The host.
        host: String,
        /// The resolver's words.
        words: String,
    },
    /// The host cannot be the name in a certificate.
    #[error("{url}: no certificate can carry the name {host}; use the server's DNS name or address")]
    NoServerName {
        /// The URL.
        url: String,
        /// The host.
        host: String,
    },
    /// A template, and nothing says how many streams it stands for.
    #[error(
        "{url}: {{i}} stands for streams 0 to N - 1; say how many with {}",
        STREAMS.to("N").beside_flag(" (streams: in a scenario)")
    )]
    NoStreams {
        /// The URL.
        url: String,
    },
    /// Streams, and no template that would name them.
    #[error(
        "{streams} streams, and no {{i}} in a URL to tell them apart; write for example rtmp://host/app/stream{{i}}"
    )]
    NoTemplate {
        /// How many were asked for.
        streams: u32,
    },
    /// Braces hold something else than the one thing that is known.
    #[error(
        "{url}: {placeholder} stands for nothing; known here: {known} (%7B and %7D are the braces themselves)"
    )]
    UnknownPlaceholder {
        /// The URL.
        url: String,
        /// From the brace on.
        placeholder: String,
        /// What may stand there.
        known: &'static str,
    },
    /// No URL was given.
    #[error("no URL; give one such as rtmp://host/app/stream")]
    None,
}

impl TargetError {
    /// The error about a URL whose scheme is not among `known`, the schemes of a verb.
    pub fn unknown_scheme(
        url: &str,
        verb: &'static str,
        scheme: String,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> Self {
        let shown = shown(url);
        let host = scheme.len() + 3;
        let end = shown.get(host..).and_then(|rest| rest.find('/')).map_or(shown.len(), |at| host + at);
        let cut = if end < shown.len() { "/…" } else { "" };
        Self::UnknownScheme {
            url: format!("{}{cut}", &shown[..end]),
            verb,
            nearest: meant(&scheme, known.clone()).map(str::to_owned),
            known: known.map(|name| format!("{name}://")).collect::<Vec<_>>().join(", "),
            scheme,
        }
    }
}

fn did_you_mean(scheme: Option<&str>) -> String {
    scheme.map_or_else(String::new, |scheme| format!("; did you mean {scheme}://?"))
}

/// The URLs that a template stands for: `{i}` becomes 0 to `streams` − 1; a URL without it is itself.
pub fn expand(url: &str, streams: u32) -> Vec<String> {
    if url.contains("{i}") {
        (0..streams.max(1)).map(|i| url.replace("{i}", &i.to_string())).collect()
    } else {
        vec![url.to_owned()]
    }
}

/// What may stand in braces in the URLs of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders {
    /// All of them, for a person who has written something else.
    pub known: &'static str,
    /// A text without those that the protocol has beside `{i}`.
    pub removed: fn(&str) -> String,
}

impl Placeholders {
    /// `{i}`, which every protocol has, and no other.
    pub const STREAM: Self = Self { known: "{i}", removed: str::to_owned };
}

/// Checks that `{i}` and a number of streams come together, and that braces hold nothing else than the placeholders of the URL's
/// protocol (RFC 3986 has no braces in a URL).
///
/// # Errors
/// One without the other, or another placeholder.
pub fn check_templates(
    urls: &[String],
    streams: Option<u32>,
    placeholders_of: impl Fn(&str) -> Placeholders,
) -> Result<(), TargetError> {
    for url in urls {
        // Not what a query holds: it may be a secret. Of a key, only what is a placeholder is shown.
        let Placeholders { known, removed } = placeholders_of(url);
        let rest = removed(&SecretUrl::new(&**url).with_key().replace("{i}", ""));
        if let Some(at) = rest.find(['{', '}']) {
            let end = rest[at..].find('}').map_or(rest.len(), |length| at + length + 1);
            let placeholder = rest[at..end].to_owned();
            return Err(TargetError::UnknownPlaceholder { url: shown(url), placeholder, known });
        }
        if streams.is_none() && url.contains("{i}") {
            return Err(TargetError::NoStreams { url: shown(url) });
        }
    }
    match streams {
        Some(streams) if !urls.iter().any(|url| url.contains("{i}")) => {
            Err(TargetError::NoTemplate { streams })
        }
        _ => Ok(()),
    }
}

/// The scheme of a URL, in lower case.
///
/// # Errors
/// The text has no scheme.
pub fn scheme_of(url: &str) -> Result<String, TargetError> {
    match url.split_once("://") {
        Some((scheme, _)) if !scheme.is_empty() => Ok(scheme.to_ascii_lowercase()),
        _ => Err(TargetError::NoScheme { url: shown(url) }),
    }
}

impl Target {
    /// Reads a URL of one of `schemes`.
    ///
    /// # Errors
    /// Scheme, host or port are not what a URL has there.
    pub fn parse(url: &str, verb: &'static str, schemes: &[Scheme]) -> Result<Self, TargetError> {
        let name = scheme_of(url)?;
        let Some(scheme) = schemes.iter().find(|scheme| scheme.name == name) else {
            return Err(TargetError::unknown_scheme(url, verb, name, schemes.iter().map(|it| it.name)));
        };
        let rest = &url[name.len() + 3..];
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (credentials, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(Credentials::parse(user)), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place).ok_or_else(|| TargetError::NoHost { url: shown(url) })?;
        if host.is_empty() {
            return Err(TargetError::NoHost { url: shown(url) });
        }
        if !is_host(host) {
            return Err(match has_unescaped_password(url) {
                true => TargetError::UnescapedPassword { url: shown(url) },
                false => TargetError::BadHost { url: shown(url), host: host.to_owned() },
            });
        }
        let port = match port {
            None | Some("") => scheme.port,
            Some(text) => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
                if has_unescaped_password(url) {
                    TargetError::UnescapedPassword { url: shown(url) }
                } else {
                    TargetError::BadPort { url: shown(url), port: text.to_owned() }
                }
            })?,
        };
        Ok(Self {
            scheme: *scheme,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
            credentials,
            label: None,
        })
    }

    /// Scheme, host, and port if it is not the scheme's own: the beginning of a URL without user.
    pub fn base(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.port {
            format!("{}://{host}", self.scheme.name)
        } else {
            format!("{}://{host}:{}", self.scheme.name, self.port)
        }
    }

    /// All of it but user and password, as it goes to the server.
    pub fn url(&self) -> SecretUrl {
        SecretUrl::new(format!("{}{}", self.base(), self.path))
    }

    /// As it is called in reports, where streams are distinguished by the numbers of their keys.
    pub fn named(&self, numbers: &mut KeyNumbers) -> String {
        self.labelled(&numbers.show(&self.url()))
    }

    fn labelled(&self, url: &str) -> String {
        self.label.as_ref().map_or_else(|| url.to_owned(), |label| format!("{label}, {url}"))
    }

    /// The name that the server's certificate must carry.
    ///
    /// # Errors
    /// The host is no name or address that a certificate can carry.
    pub fn server_name(&self) -> Result<ServerName<'static>, TargetError> {
        ServerName::try_from(self.host.clone())
            .map_err(|_| TargetError::NoServerName { url: self.to_string(), host: self.host.clone() })
    }
}

/// Whether it may be a host: it goes into requests as it is, and into brackets if it is an IPv6 address, which alone has
/// colons, and may have a zone (RFC 4007, section 11).
fn is_host(text: &str) -> bool {
    let address = text.split('%').next().unwrap_or_default();
    let has_place = !text.contains(':') || address.parse::<Ipv6Addr>().is_ok();
    has_place && !text.contains(|sign: char| sign.is_control() || sign.is_whitespace() || "[]".contains(sign))
}

/// Host and port; `None` if brackets do not match. Two colons without brackets are an IPv6 literal.
fn split_port(place: &str) -> Option<(&str, Option<&str>)> {
    if let Some(inner) = place.strip_prefix('[') {
        let (host, rest) = inner.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match place.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Some((place, None)),
        Some((host, port)) => Some((host, Some(port))),
        None => Some((place, None)),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.labelled(&self.url().to_string()))
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// A password that stands in no URL. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: &[Scheme] = &[Scheme::tcp("rtmp", 1935), Scheme::tls("rtmps", 443)];

    fn parse(url: &str) -> Result<Target, TargetError> {
        Target::parse(url, "play", SCHEMES)
    }

    #[test]
    fn the_parts_of_a_url_are_told_apart() {
        for (url, host, port, path) in [
            ("rtmp://host/live/a", "host", 1935, "/live/a"),
            ("RTMPS://host/live/a", "host", 443, "/live/a"),
            ("rtmp://10.0.0.1:2935/live/a?t=1", "10.0.0.1", 2935, "/live/a?t=1"),
            ("rtmp://[::1]/live/a", "::1", 1935, "/live/a"),
            ("rtmp://[fe80::1]:1936/live/a", "fe80::1", 1936, "/live/a"),
            ("rtmp://::1/live/a", "::1", 1935, "/live/a"),
            ("rtmp://u:p@ss@host:1/x", "host", 1, "/x"),
            ("rtmp://host", "host", 1935, ""),
            ("rtmp://[fe80::1%eth0]/x", "fe80::1%eth0", 1935, "/x"),
        ] {
            let target = parse(url).unwrap();
            assert_eq!((&*target.host, target.port, &*target.path), (host, port, path), "{url}");
        }
    }

    #[test]
    fn a_wrong_url_says_what_to_do() {
        for (url, words) in [
            ("host/live", "no scheme"),
            ("http://host/live", "known: rtmp://, rtmps://"),
            (
                "rtpm://host/live/s3cret",
                "rtpm://host/…: cannot play rtpm://; did you mean rtmp://?; known: rtmp://",
            ),
            ("rtmp:///live/a", "no host"),
            ("rtmp://[::1/live/a", "no host"),
            ("rtmp://ho\u{17}st/a", "\"ho\\u{17}st\" is not a host"),
            ("rtmp://ho st/a", "is not a host"),
            ("rtmp://a:b::1]:8x]/a", "is not a host"),
            ("rtmp://[[a]/a", "is not a host"),
            ("rtmp://a:b:c/a", "is not a host"),
            ("rtmp://host:0/a", "'0' is not a port"),
            ("rtmp://host:99999/a", "'99999' is not a port"),
        ] {
            let said = parse(url).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        for url in ["rtmp://me:s3/cr3t@h/a", "rtmp://me:s3:x/cr3t@h/a", "rtmp://me:s3:x]/cr3t@h/a"] {
            let said = parse(url).unwrap_err().to_string();
            assert!(said.contains("%2F") && !said.contains("s3"), "{said}");
        }
        let target = parse("rtmp://me:secret@[::1]:1/live/a?token=secret").unwrap();
        for shown in [target.to_string(), format!("{target:?}"), format!("{:?}", target.credentials)] {
            assert!(!shown.contains("secret") && !shown.contains("me:"), "{shown}");
        }
        assert_eq!(target.to_string(), "rtmp://[::1]:1/live/…?…");
        assert_eq!(target.named(&mut KeyNumbers::default()), "rtmp://[::1]:1/live/…1?…");
        assert_eq!(target.named(&mut KeyNumbers::new(true)), "rtmp://[::1]:1/live/a?…");
        let said = parse("rtmp://me:secret@host:x/live/a?token=secret").unwrap_err().to_string();
        assert!(!said.contains("secret"), "{said}");
    }

    #[test]
    fn a_template_stands_for_its_streams() {
        assert_eq!(expand("rtmp://h/l/s{i}?k={i}", 2), ["rtmp://h/l/s0?k=0", "rtmp://h/l/s1?k=1"]);
        assert_eq!(expand("rtmp://h/l/s", 3), ["rtmp://h/l/s"]);
    }

    #[test]
    fn a_template_and_a_number_of_streams_come_together() {
        let check = |url: &str, streams| {
            check_templates(&[url.to_owned()], streams, |_| Placeholders::STREAM)
                .map_err(|error| error.to_string())
        };
        assert_eq!(check("rtmp://h/l/s{i}", Some(3)), Ok(()));
        assert_eq!(check("rtmp://h/l/s?k={i}", Some(3)), Ok(()));
        assert_eq!(check("rtmp://h/l/s", None), Ok(()));
        for (url, streams, words) in [
            ("rtmp://h/l/s", Some(3), "3 streams, and no {i} in a URL"),
            ("rtmp://h/l/s{i}", None, "`streams: N`"),
            ("rtmp://h/l/s{x}", Some(3), "{x} stands for nothing"),
            ("rtmp://h/l/{i}{", Some(3), "{ stands for nothing"),
            ("rtmp://h/l/s3cret{x}", Some(3), "rtmp://h/l/…: {x} stands"),
        ] {
            let said = check(url, streams).unwrap_err();
            assert!(said.contains(words), "{said}");
        }
    }
}
