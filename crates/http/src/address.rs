//! The URL of a server, and what of it may be shown: its [`Display`](fmt::Display) has neither user, password nor query.

use std::fmt;
use url::Url;
use weir_web::credentials;

/// Characters of a text of others that are shown.
pub(crate) const SHOWN_CHARACTERS: usize = 160;

/// A URL, and what of it may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) url: Url,
    pub(crate) authorization: Option<String>,
}

impl Address {
    /// Reads an `http://` or `https://` URL; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut url = Url::parse(text.trim()).ok()?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return None;
        }
        let (user, password) = (url.username(), url.password());
        let authorization = (!user.is_empty() || password.is_some())
            .then(|| credentials::basic(user, password.unwrap_or_default()));
        // Neither fails: the URL has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Some(Self { url, authorization })
    }

    /// The same server and user, another path below this one's.
    pub fn below(&self, path: &str) -> Self {
        let mut below = self.clone();
        below.url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        below
    }

    /// The same with this user, unless it has one.
    #[must_use]
    pub fn with_user(mut self, user: &str, password: &str) -> Self {
        self.authorization.get_or_insert_with(|| credentials::basic(user, password));
        self
    }

    /// The name or address of the server, without the brackets of an IPv6 literal.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// Whether a user and a password are sent there without TLS.
    pub fn shows_secret(&self) -> bool {
        self.authorization.is_some() && self.url.scheme() == "http"
    }

    /// Whether it names a server, and no place on it.
    pub fn is_bare(&self) -> bool {
        matches!(self.url.path(), "" | "/")
    }

    /// Whether it has a query.
    pub fn has_query(&self) -> bool {
        self.url.query().is_some()
    }

    /// The same with these parameters after its own.
    #[must_use]
    pub fn with(&self, parameters: &[(&str, &str)]) -> Self {
        let mut with = self.clone();
        with.url.query_pairs_mut().extend_pairs(parameters);
        with
    }

    /// The URL without user, password and query, for a person to open.
    pub fn public(&self) -> Url {
        let mut url = self.url.clone();
        url.set_query(None);
        url
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `http://host:9100/` reads better as people write it.
        let url = if self.is_bare() && !self.has_query() {
            self.url.as_str().trim_end_matches('/')
        } else {
            self.url.as_str()
        };
        weir_address::SecretUrl::new(url).fmt(f)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// A text that should have been a URL, as it may be shown, and on one line.
pub fn shown_text(text: &str) -> String {
    let shown = weir_address::shown(text);
    shown.chars().filter(|character| !character.is_control()).take(SHOWN_CHARACTERS).collect()
}
