//! The links of one client to servers of HTTP: where each leads, and what is spoken there. Connections of the client that go to the
//! same server share one where it speaks HTTP/2.

use std::cell::RefCell;
use std::rc::Rc;
use std::str::FromStr;
use weir_web::http2::Http2Client;

/// The version of HTTP that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// Over TLS the one that the server picks of both, and HTTP/1.1 without it: as browsers do.
    #[default]
    Auto,
    /// HTTP/1.1.
    One,
    /// HTTP/2; without TLS too, where the server is known to speak it (RFC 9113, section 3.3).
    Two,
}

impl HttpVersion {
    /// What it offers by ALPN, the most wanted first.
    pub fn offered(self) -> &'static [&'static [u8]] {
        match self {
            Self::Auto => &[b"h2", b"http/1.1"],
            Self::One => &[b"http/1.1"],
            Self::Two => &[b"h2"],
        }
    }
}

impl FromStr for HttpVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "1.1" | "1" => Ok(Self::One),
            "2" | "2.0" => Ok(Self::Two),
            "3" | "3.0" => Err("weir does not speak HTTP/3 yet; write 2, 1.1 or auto".to_owned()),
            _ => Err(format!("{text} is no version of HTTP; write 2, 1.1 or auto")),
        }
    }
}

/// A link, and the server that it leads to.
#[derive(Default)]
pub(crate) struct HttpLink {
    /// Scheme, host and port.
    pub(crate) server: String,
    pub(crate) phase: LinkPhase,
    /// An answer has ended on it: what is asked next may cross with the server closing it.
    pub(crate) is_used: bool,
    /// It ended in the present event, in which no other can be opened in its place.
    pub(crate) just_ended: bool,
    /// Since it is established, if HTTP/2 is spoken there.
    pub(crate) http2: Option<Box<Http2Client>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LinkPhase {
    Opening,
    Up,
    #[default]
    Down,
}

/// The session's own link, and the one beside it.
pub(crate) type HttpLinks = Rc<RefCell<[HttpLink; 2]>>;

/// Whether a request can go on a link that may be another connection's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Now.
    Ready,
    /// Perhaps soon: it is being established.
    Wait,
    /// When another request there has ended: the server takes no more at a time.
    Full,
    /// No: it leads elsewhere, is HTTP/1.1, or takes no more.
    No,
}

impl HttpLink {
    /// It is being established again, to this server.
    pub(crate) fn begin(&mut self, server: String) {
        *self = Self { server, phase: LinkPhase::Opening, ..Self::default() };
    }

    /// Whether HTTP/1.1 is spoken there, with this server.
    pub(crate) fn is_http1(&self, server: &str) -> bool {
        self.phase == LinkPhase::Up && self.http2.is_none() && self.server == server
    }

    /// Whether it is being established to this server, and may speak HTTP/2.
    pub(crate) fn is_awaited(&self, server: &str, version: HttpVersion) -> bool {
        self.phase == LinkPhase::Opening && self.server == server && may_be_http2(server, version)
    }

    /// Whether a request for this server can go there by HTTP/2.
    pub(crate) fn sharing(&mut self, server: &str, version: HttpVersion) -> Sharing {
        if self.is_awaited(server, version) {
            return Sharing::Wait;
        }
        if self.server != server {
            return Sharing::No;
        }
        match (self.phase, &mut self.http2) {
            (LinkPhase::Up, Some(http2)) => match http2.may_request() {
                Ok(true) => Sharing::Ready,
                Ok(false) => Sharing::Full,
                Err(_) => Sharing::No,
            },
            _ => Sharing::No,
        }
    }

    /// Whether it carries what another connection of the client has asked for.
    pub(crate) fn is_in_use(&self) -> bool {
        self.phase == LinkPhase::Up && self.http2.as_ref().is_some_and(|http2| !http2.is_idle())
    }

    /// Whether it is there and of no more use.
    pub(crate) fn is_spent(&self) -> bool {
        self.phase == LinkPhase::Up && self.http2.as_ref().is_some_and(|http2| !http2.is_open())
    }
}

/// Whether HTTP/2 may be spoken on a link to this server.
pub(crate) fn may_be_http2(server: &str, version: HttpVersion) -> bool {
    match version {
        HttpVersion::Auto => is_secure(server),
        HttpVersion::One => false,
        HttpVersion::Two => true,
    }
}

/// Whether a server is asked over TLS.
fn is_secure(server: &str) -> bool {
    server.starts_with("https:")
}

/// Whether HTTP/2 is spoken on a link that has just been established; `None` if it must be, and is not.
pub(crate) fn speaks_http2(server: &str, version: HttpVersion, alpn: Option<&[u8]>) -> Option<bool> {
    let is_chosen = alpn == Some(weir_web::http2::ALPN);
    match version {
        HttpVersion::Auto => Some(is_chosen),
        HttpVersion::One => Some(false),
        HttpVersion::Two => (is_chosen || !is_secure(server)).then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_was_chosen_or_is_asked_for() {
        let (secure, plain, h2) = ("https://a", "http://a", Some(&b"h2"[..]));
        for (version, server, alpn, expected) in [
            (HttpVersion::Auto, secure, h2, Some(true)),
            (HttpVersion::Auto, secure, Some(&b"http/1.1"[..]), Some(false)),
            (HttpVersion::Auto, secure, None, Some(false)),
            (HttpVersion::Auto, plain, None, Some(false)),
            (HttpVersion::One, secure, None, Some(false)),
            (HttpVersion::Two, secure, h2, Some(true)),
            (HttpVersion::Two, secure, None, None),
            (HttpVersion::Two, plain, None, Some(true)),
        ] {
            assert_eq!(speaks_http2(server, version, alpn), expected, "{version:?} {server} {alpn:?}");
        }
    }

    #[test]
    fn versions_are_written_as_people_write_them() {
        for (text, version) in
            [("auto", HttpVersion::Auto), ("1.1", HttpVersion::One), ("2", HttpVersion::Two)]
        {
            assert_eq!(text.parse(), Ok(version));
        }
        assert!("3".parse::<HttpVersion>().unwrap_err().contains("not speak HTTP/3 yet"));
        assert!("0.9".parse::<HttpVersion>().unwrap_err().contains("2, 1.1 or auto"));
    }
}
