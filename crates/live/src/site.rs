//! What all connections of the listener share: its address, the page, its tabs, and which connection has to make room.

use crate::board::Board;
use crate::encode::Exposition;
use crate::page::{Page, Part};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_metrics::Moment;
use weir_shard::{SessionId, World};
use weir_web::Message;

/// Tabs at once. One more, and the one that is furthest behind goes.
const MOST_TABS: usize = 16;
/// Connections at once that are no tabs. Prometheus needs one.
const MOST_ASKING: usize = 32;

/// What the page runs. It is sent inside the page, and the policy names its digest: nothing else runs there.
const SCRIPT: &str = include_str!("live.js");

/// What a page is made of beside its body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// The title of the page.
    pub title: &'a str,
    /// The style sheet.
    pub style: &'a str,
    /// A script that runs beside the one that receives the body.
    pub script: &'a str,
}

/// Makes the page's body, on the listener's thread.
pub(crate) type Render = Box<dyn FnOnce() -> Vec<Part> + Send>;

/// What the run sends to the listener.
pub(crate) enum Update {
    Body(Render),
    End(String),
    /// All tabs are sent what there is, then the listener ends.
    Leave,
}

pub(crate) struct Site {
    address: SocketAddr,
    /// Names that the machine may be asked by, beside addresses.
    names: Vec<String>,
    token: String,
    shell: String,
    policy: String,
    board: Arc<Board>,
    /// Answers to `/metrics` that are still true, by their form.
    answers: Vec<(Exposition, u64, Arc<[u8]>)>,
    pub(crate) page: Page,
    /// What each tab has seen.
    pub(crate) tabs: BTreeMap<SessionId, Option<u64>>,
    /// The number of tabs, so that nothing is rendered without one.
    pub(crate) tab_count: Arc<AtomicUsize>,
    /// Bodies that were posted and not rendered yet.
    pub(crate) under_way: Arc<AtomicUsize>,
    /// Connections that are no tabs, the oldest first, and whether each was answered.
    asking: VecDeque<(SessionId, bool)>,
    /// Connections that have to be closed.
    pub(crate) condemned: BTreeSet<SessionId>,
    pub(crate) is_leaving: bool,
}

impl Site {
    pub(crate) fn new(address: SocketAddr, token: String, look: Look<'_>, board: Arc<Board>) -> Self {
        let script = format!("{SCRIPT}{}", look.script);
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script.as_bytes());
        let digest = STANDARD.encode(digest);
        Self {
            address,
            names: [Some("localhost".to_owned()), machine_name()].into_iter().flatten().collect(),
            token,
            shell: shell(look, &script),
            policy: format!(
                "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            ),
            board,
            answers: Vec::new(),
            page: Page::default(),
            tabs: BTreeMap::new(),
            tab_count: Arc::default(),
            under_way: Arc::default(),
            asking: VecDeque::new(),
            condemned: BTreeSet::new(),
            is_leaving: false,
        }
    }

    /// Whether a `Host` field may have led here: a page of another site, whose name was made to resolve to this machine, has a
    /// host of its own.
    pub(crate) fn is_host(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':').filter(|(name, _)| !name.ends_with(':')) else {
            return self.is_name(host) && self.address.port() == 80;
        };
        port.parse() == Ok(self.address.port()) && self.is_name(name)
    }

    fn is_name(&self, name: &str) -> bool {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let (bound, is_any) = (self.address.ip(), self.address.ip().is_unspecified());
        match bare.parse::<IpAddr>() {
            Ok(address) => is_any || address == bound,
            Err(_) if is_any => self.names.iter().any(|it| it.eq_ignore_ascii_case(name)),
            Err(_) => bound.is_loopback() && name.eq_ignore_ascii_case("localhost"),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is left of a path behind the token; none if it has not this one.
    pub(crate) fn behind_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        // Compared in the same time wherever they differ.
        let is_ours =
            aws_lc_rs::constant_time::verify_slices_are_equal(token.as_bytes(), self.token.as_bytes())
                .is_ok();
        is_ours.then_some(rest)
    }

    pub(crate) fn shell(&self) -> Message {
        self.guarded(200).field("Content-Type", "text/html; charset=utf-8").body(self.shell.as_str())
    }

    /// An answer with what keeps other pages away from it.
    pub(crate) fn guarded(&self, status: u16) -> Message {
        Message::response(status)
            .field("Content-Security-Policy", &self.policy)
            .field("X-Content-Type-Options", "nosniff")
            .field("Referrer-Policy", "no-referrer")
            .field("Cross-Origin-Resource-Policy", "same-origin")
            .field("Cache-Control", "no-store")
    }

    /// Metrics in a form, encoded once for all requests until they change.
    pub(crate) fn metrics(&mut self, form: Exposition) -> Arc<[u8]> {
        let version = self.board.version();
        self.answers.retain(|(_, of, _)| *of == version);
        if let Some((.., bytes)) = self.answers.iter().find(|(known, ..)| *known == form) {
            return bytes.clone();
        }
        let bytes: Arc<[u8]> = form.encode(self.board.families()).into();
        self.answers.push((form, version, bytes.clone()));
        bytes
    }

    /// Adds a connection without a request; returns the connection that has to make room for it: the oldest that has never been
    /// answered, so that a Prometheus keeps its link beside any number of peers that ask for nothing.
    pub(crate) fn enter(&mut self, id: SessionId) -> Option<SessionId> {
        let leaves = (self.asking.len() >= MOST_ASKING).then(|| {
            let silent = self.asking.iter().position(|(_, is_answered)| !is_answered);
            self.asking.remove(silent.unwrap_or(0))
        });
        self.asking.push_back((id, false));
        let (leaves, _) = leaves.flatten()?;
        self.condemned.insert(leaves);
        Some(leaves)
    }

    /// A connection was answered, and may ask again.
    pub(crate) fn answered(&mut self, id: SessionId) {
        self.asking.iter_mut().filter(|(other, _)| *other == id).for_each(|(_, answered)| *answered = true);
    }

    /// Turns a connection into a tab; returns the tab that has to make room for it.
    pub(crate) fn open_tab(&mut self, id: SessionId, seen: Option<u64>) -> Option<SessionId> {
        self.asking.retain(|(other, _)| *other != id);
        self.tabs.insert(id, seen);
        let others = self.tabs.iter().filter(|(other, _)| **other != id);
        let slowest = others.min_by_key(|(_, seen)| **seen).map(|(other, _)| *other);
        let slowest = slowest.filter(|_| self.tabs.len() > MOST_TABS);
        if let Some(slowest) = slowest {
            self.tabs.remove(&slowest);
            self.condemned.insert(slowest);
        }
        self.tab_count.store(self.tabs.len(), Relaxed);
        slowest
    }

    pub(crate) fn leave(&mut self, id: SessionId) {
        self.asking.retain(|(other, _)| *other != id);
        self.condemned.remove(&id);
        self.tabs.remove(&id);
        self.tab_count.store(self.tabs.len(), Relaxed);
    }

    /// What a tab has not been sent yet. It counts as seen.
    pub(crate) fn news(&mut self, id: SessionId) -> Option<String> {
        let seen = self.tabs.get_mut(&id)?;
        let events = self.page.events_since(*seen)?;
        *seen = Some(self.page.number());
        Some(events)
    }
}

impl World for Site {
    type Message = Update;

    fn receive(&mut self, update: Update, _: Moment, wake: &mut Vec<SessionId>) {
        match update {
            Update::Body(render) => {
                self.page.show(render());
                self.under_way.fetch_sub(1, Relaxed);
            }
            Update::End(words) => self.page.end(words),
            Update::Leave => self.is_leaving = true,
        }
        wake.extend(self.tabs.keys());
    }
}

/// The page without its body.
fn shell(Look { title, style, .. }: Look<'_>, script: &str) -> String {
    let title: String = title.chars().filter(|character| !"<>&".contains(*character)).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n\
         <p id=\"live-state\" class=\"note\" role=\"status\">waiting for the first second</p>\n<main id=\"live\"></main>\n<script>{script}</script>\n</body>\n</html>\n"
    )
}

/// What the machine calls itself.
fn machine_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(address: &str) -> Site {
        Site::new(address.parse().unwrap(), "t0ken".to_owned(), Look::default(), Arc::default())
    }

    #[test]
    fn only_names_of_what_it_is_bound_to_lead_here() {
        let loopback = site("127.0.0.1:4000");
        for (host, leads) in [
            ("127.0.0.1:4000", true),
            ("localhost:4000", true),
            ("LocalHost:4000", true),
            ("127.0.0.1:4001", false),
            ("127.0.0.1", false),
            ("127.0.0.2:4000", false),
            ("evil.example:4000", false),
            ("localhost.evil.example:4000", false),
        ] {
            assert_eq!(loopback.is_host(host), leads, "{host}");
        }
        let everywhere = site("0.0.0.0:4000");
        for (host, leads) in [("10.1.2.3:4000", true), ("[::1]:4000", true), ("evil.example:4000", false)] {
            assert_eq!(everywhere.is_host(host), leads, "{host}");
        }
        assert!(site("[::1]:4000").is_host("[::1]:4000") && !site("[::1]:4000").is_host("[::2]:4000"));
        assert!(site("127.0.0.1:80").is_host("127.0.0.1"));
    }

    #[test]
    fn only_paths_with_the_token_lead_to_the_page() {
        let site = site("127.0.0.1:4000");
        assert_eq!(site.behind_token("/t0ken/events"), Some("events"));
        assert_eq!(site.behind_token("/t0ken/"), Some(""));
        for path in ["/t0ken", "/t0kem/", "//", "/", "", "/t0kent0ken/"] {
            assert_eq!(site.behind_token(path), None, "{path}");
        }
    }

    #[test]
    fn one_tab_too_many_and_the_one_furthest_behind_goes() {
        let mut site = site("127.0.0.1:4000");
        for key in 0..MOST_TABS as u32 {
            let seen = if key == 3 { Some(1) } else { Some(7) };
            assert_eq!(site.open_tab(SessionId::made_up(key), seen), None);
        }
        assert_eq!(site.open_tab(SessionId::made_up(99), None), Some(SessionId::made_up(3)));
        assert_eq!(site.tab_count.load(Relaxed), MOST_TABS);
    }

    #[test]
    fn a_connection_that_was_answered_stays_beside_those_that_ask_for_nothing() {
        let mut site = site("127.0.0.1:4000");
        let [prometheus, others] = [0, 1].map(SessionId::made_up);
        site.enter(prometheus);
        site.answered(prometheus);
        let left = (1..200).filter_map(|key| site.enter(SessionId::made_up(key))).collect::<Vec<_>>();
        assert!(left.starts_with(&[others]) && !left.contains(&prometheus), "{left:?}");
        assert_eq!(site.asking.len(), MOST_ASKING);
        // Where all were answered the oldest goes.
        site.asking.iter_mut().for_each(|(_, is_answered)| *is_answered = true);
        assert_eq!(site.enter(SessionId::made_up(999)), Some(prometheus));
    }

    #[test]
    fn one_connection_too_many_and_the_oldest_that_is_no_tab_goes() {
        let mut site = site("127.0.0.1:4000");
        for key in 0..=MOST_ASKING as u32 {
            assert_eq!(site.enter(SessionId::made_up(key)).is_some(), key == MOST_ASKING as u32);
            if key == 0 {
                site.open_tab(SessionId::made_up(key), None);
                site.enter(SessionId::made_up(1_000));
            }
        }
        assert!(site.condemned.contains(&SessionId::made_up(1_000)));
        assert_eq!(site.asking.len(), MOST_ASKING);
    }
}
