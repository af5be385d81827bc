//! Where streams are published again, and when the next try is.

use crate::OriginError;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use url::Url;
use weir_address::shown;
use weir_metrics::Moment;

/// The wait before the second try; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// After a connection that held this long the waits start from the first again.
const HELD: Duration = Duration::from_secs(10);

/// A server that streams are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// `rtmp://HOST[:PORT]`.
    pub(crate) server: String,
    pub(crate) addresses: Vec<SocketAddr>,
    app: Option<String>,
    stream: Option<String>,
}

impl Route {
    /// Reads a place to forward to, and looks its host up.
    pub(crate) fn parse(text: &str) -> Result<Self, OriginError> {
        let wrong = |cause: &str| OriginError::Forward { url: shown(text), cause: cause.to_owned() };
        let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.scheme() != "rtmp" {
            return Err(wrong("its scheme is not rtmp"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        let port = url.port().unwrap_or(1935);
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<_> =
            (name, port).to_socket_addrs().map_err(|error| wrong(&error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(wrong("its host has no address"));
        }
        let path = url.path().trim_matches('/');
        let (app, stream) = match path.split_once('/') {
            Some((app, stream)) => (Some(app), Some(stream)),
            None => (Some(path).filter(|app| !app.is_empty()), None),
        };
        let stream = stream.map(|stream| match url.query() {
            Some(query) => format!("{stream}?{query}"),
            None => stream.to_owned(),
        });
        Ok(Self { server: format!("rtmp://{host}:{port}"), addresses, app: app.map(str::to_owned), stream })
    }

    /// The application and stream that a stream of ours has there.
    pub(crate) fn destination(&self, name: &str) -> (String, String) {
        let (app, stream) = name.split_once('/').unwrap_or(("live", name));
        let app = self.app.as_deref().unwrap_or(app);
        let stream = self.stream.as_deref().unwrap_or(stream);
        (app.to_owned(), stream.to_owned())
    }
}

/// Another server that a stream is to be forwarded to, and does not get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardTrouble {
    /// `rtmp://HOST:PORT`.
    pub server: String,
    /// The stream's name here.
    pub stream: Arc<str>,
    /// What went wrong, without the stream's key.
    pub words: String,
}

/// One publication on its way to one server.
#[derive(Clone, Debug)]
pub(crate) struct Forwarding {
    pub(crate) route: usize,
    pub(crate) name: Arc<str>,
    pub(crate) publication: u64,
    pub(crate) tries: u32,
    pub(crate) not_before: Moment,
}

impl Forwarding {
    pub(crate) fn first(route: usize, name: Arc<str>, publication: u64) -> Self {
        Self { route, name, publication, tries: 0, not_before: Moment::default() }
    }

    /// What to say when a connection ends that did not hold: once a series of tries.
    pub(crate) fn trouble(&self, route: &Route, held: bool, words: &str) -> Option<ForwardTrouble> {
        if held || self.tries > 0 {
            return None;
        }
        let (app, stream) = route.destination(&self.name);
        let there = weir_address::SecretUrl::new(format!("{}/{app}/{stream}", route.server));
        let words = there.hide_in(words);
        Some(ForwardTrouble { server: route.server.clone(), stream: self.name.clone(), words })
    }

    /// The next try, after one whose connection began to carry the stream at `since`, if it did.
    pub(crate) fn again(&self, since: Option<Moment>, now: Moment) -> Self {
        let held = since.is_some_and(|since| now.since(since) >= HELD);
        let tries = if held { 0 } else { self.tries };
        let wait = FIRST_WAIT.saturating_mul(1 << tries.min(10)).min(LONGEST_WAIT);
        Self { tries: self.tries_after(held), not_before: now + wait, ..self.clone() }
    }

    fn tries_after(&self, held: bool) -> u32 {
        if held { 1 } else { self.tries + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_route_does_not_say_stays_as_it_is_here() {
        for (url, app, stream) in [
            ("rtmp://127.0.0.1:1936", "live", "a"),
            ("rtmp://127.0.0.1/other", "other", "a"),
            ("rtmp://[::1]/other/b/c?key=1", "other", "b/c?key=1"),
        ] {
            let route = Route::parse(url).unwrap();
            assert_eq!(route.destination("live/a"), (app.to_owned(), stream.to_owned()), "{url}");
        }
        assert!(Route::parse("http://127.0.0.1/live").is_err());
        assert!(Route::parse("rtmp:///live").is_err());
    }

    #[test]
    fn a_refused_route_is_named_without_its_secrets() {
        for (url, named) in [
            ("http://joe:pw@h/live/a?key=1", "'http://h/live/a?…'"),
            ("joe:p@w@h/live", "'h/live'"),
            ("rtmp://joe:pw@", "'rtmp://'"),
            ("rtmp://me:pw/cr3t@h/live/pwkey", "'rtmp://h/live/…'"),
        ] {
            let said = Route::parse(url).unwrap_err().to_string();
            assert!(said.contains(named) && !said.contains("pw") && !said.contains("key="), "{said}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_forwarded_to_is_told_of_once_without_the_key() {
        let route = Route::parse("rtmp://127.0.0.1:1936/app/s3cret").unwrap();
        let forwarding = Forwarding::first(0, "live/a".into(), 1);
        let said = forwarding.trouble(&route, false, "s3cret: already published").unwrap();
        assert_eq!((&*said.server, &*said.words), ("rtmp://127.0.0.1:1936", "…: already published"));
        assert_eq!(forwarding.trouble(&route, true, "gone"), None);
        let again = forwarding.again(None, Moment::from_nanos(0));
        assert_eq!(again.trouble(&route, false, "refused"), None);
    }

    #[test]
    fn tries_come_further_and_further_apart_up_to_a_limit() {
        let now = Moment::from_nanos(1_000_000_000_000);
        let mut forwarding = Forwarding::first(0, "live/a".into(), 1);
        let mut waits = Vec::new();
        for _ in 0..12 {
            forwarding = forwarding.again(None, now);
            waits.push(forwarding.not_before.since(now));
        }
        assert_eq!(waits[0], FIRST_WAIT);
        assert!(waits.is_sorted() && waits[11] == LONGEST_WAIT);
        let held = forwarding.again(Some(now), now + HELD);
        assert_eq!(held.not_before.since(now + HELD), FIRST_WAIT);
    }
}
