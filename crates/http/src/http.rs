//! One request at a time, bounded in time and size, to a server that knows the machine, or what a consumer has saved.
//!
//! Secrets of a URL (user, password, query) are sent and never shown: [`Address`] displays without them, and
//! no error carries more than [`Address`] shows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use url::Url;
use weir_address::networks;
use weir_web::credentials;

/// Longest wait for a whole answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a connection, its TLS included, of an answer that may take longer.
const CONNECT: Duration = Duration::from_secs(10);
/// Most bytes of an answer. A node_exporter with everything switched on comes to a tenth of it.
const MOST_BYTES: u64 = 8 << 20;
/// What is shown of a server's own words.
const WORDS: usize = 160;

/// Which certificates an `https://` server may show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HttpTrust {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those of a PEM file.
    File(PathBuf),
    /// Any: the link is encrypted, the server is not known.
    Anyone,
}

/// Why a server gave no answer that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HttpError {
    /// The PEM file of certificates could not be read.
    #[error("{}: {words}; give a PEM file with certificates", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        words: String,
    },
    /// The host's name has no address.
    #[error("the host has no address; check its name")]
    NoAddress,
    /// No link could be made, or it broke.
    #[error("{0}")]
    Link(String),
    /// Certificate, name or version of TLS.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The answer was not whole in time.
    #[error("no whole answer within {seconds} s")]
    Timeout {
        /// Seconds that it had.
        seconds: u64,
    },
    /// The answer was longer than anything that is asked for here.
    #[error("the answer is longer than {} MiB", MOST_BYTES >> 20)]
    TooLong,
    /// The server refused.
    #[error("HTTP status {status}{words}")]
    Status {
        /// Its status.
        status: u16,
        /// What to do about it, or its own first words.
        words: String,
    },
}

/// A URL, and what of it may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    authorization: Option<String>,
}

/// Sends requests to one server over one link that is kept.
#[derive(Clone, Debug)]
pub struct Http {
    agent: ureq::Agent,
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

    pub(crate) fn has_query(&self) -> bool {
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
    pub(crate) fn public(&self) -> Url {
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
    shown.chars().filter(|character| !character.is_control()).take(WORDS).collect()
}

/// Leaves out the addresses of a name that this process may not connect to: those that are connected to are those that were looked at.
#[derive(Debug)]
struct PermittedResolver(DefaultResolver);

impl Resolver for PermittedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        let permitted = networks::permitted(found.iter().copied());
        let mut addresses = self.empty();
        for address in permitted.map_err(|forbidden| ureq::Error::Io(forbidden.into()))? {
            addresses.push(address);
        }
        Ok(addresses)
    }
}

impl Http {
    /// For this server, with these certificates.
    ///
    /// # Errors
    /// Certificates that cannot be read.
    pub fn new(address: &Address, trust: &HttpTrust) -> Result<Self, HttpError> {
        let mut tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        if address.url.scheme() == "https" {
            tls = match trust {
                HttpTrust::Anyone => tls.disable_verification(true),
                HttpTrust::File(path) => tls.root_certs(RootCerts::Specific(Arc::new(certificates(path)?))),
                HttpTrust::System => tls.root_certs(RootCerts::Specific(Arc::new(of_system()))),
            };
        }
        let config = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A redirect mostly leads to a page to log in on; the status says more than that page.
            .max_redirects(0)
            // As weir's clients: straight to the server.
            .proxy(None)
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections(1)
            .build();
        let resolver = PermittedResolver(DefaultResolver::default());
        Ok(Self { agent: ureq::Agent::with_parts(config, DefaultConnector::new(), resolver) })
    }

    /// The answer's body, whatever its status below 300.
    pub(crate) fn get(&self, address: &Address, accept: &str) -> Result<Vec<u8>, HttpError> {
        accepted(self.answer(address, accept)?)
    }

    /// The body of the answer to a POST of nothing, which may take as long as this.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn post(&self, address: &Address, timeout: Duration) -> Result<Vec<u8>, HttpError> {
        accepted(self.exchange(address, &[("Accept", "application/json")], &[], timeout)?)
    }

    /// A POST of this body with these fields. Of the answer only the status counts.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn send(&self, address: &Address, fields: &[(&str, &str)], body: &[u8]) -> Result<(), HttpError> {
        accepted(self.exchange(address, fields, body, TIMEOUT)?).map(drop)
    }

    /// A POST of this body with these fields, whose whole answer may take as long as this: status and body.
    ///
    /// # Errors
    /// See [`HttpError`]; a status is none.
    pub fn exchange(
        &self,
        address: &Address,
        fields: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<(u16, Vec<u8>), HttpError> {
        let mut request = self.agent.post(address.url.as_str());
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        if let Some(authorization) = &address.authorization {
            request = request.header("Authorization", authorization);
        }
        let config = request.config().timeout_global(Some(timeout)).timeout_connect(Some(CONNECT));
        read(config.build().send(body), timeout)
    }

    /// Status and body.
    ///
    /// # Errors
    /// See [`HttpError`]; a status is none.
    pub fn answer(&self, address: &Address, accept: &str) -> Result<(u16, Vec<u8>), HttpError> {
        let mut request = self.agent.get(address.url.as_str()).header("Accept", accept);
        if let Some(authorization) = &address.authorization {
            request = request.header("Authorization", authorization);
        }
        read(request.call(), TIMEOUT)
    }
}

/// The body of an answer whose status says that all is well.
fn accepted((status, body): (u16, Vec<u8>)) -> Result<Vec<u8>, HttpError> {
    if (200..300).contains(&status) { Ok(body) } else { Err(refusal(status, &body)) }
}

/// Status and body of an answer that had this long.
fn read(
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    timeout: Duration,
) -> Result<(u16, Vec<u8>), HttpError> {
    let failure = |error| failure(error, timeout);
    let mut response = response.map_err(failure)?;
    let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(failure)?;
    Ok((response.status().as_u16(), body))
}

/// A status that is no answer, with what to do.
pub(crate) fn refusal(status: u16, body: &[u8]) -> HttpError {
    let words = match status {
        401 | 403 => {
            " (not allowed): put user and password into the URL, http://user:password@host".to_owned()
        }
        404 => " (not found): check the path".to_owned(),
        300..=399 => " (it leads elsewhere): give the URL that it leads to".to_owned(),
        _ => words(body),
    };
    HttpError::Status { status, words }
}

/// The first line of a server's plain answer.
fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('<'));
    let line: String =
        line.unwrap_or_default().chars().filter(|character| !character.is_control()).take(WORDS).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// ureq's own words may hold the URL; only those that cannot are passed on.
fn failure(error: ureq::Error, timeout: Duration) -> HttpError {
    let late = HttpError::Timeout { seconds: timeout.as_secs() };
    match error {
        ureq::Error::Timeout(_) => late,
        ureq::Error::BodyExceedsLimit(_) => HttpError::TooLong,
        ureq::Error::HostNotFound => HttpError::NoAddress,
        ureq::Error::Rustls(error) => HttpError::Tls(error.to_string()),
        ureq::Error::Tls(words) => HttpError::Tls(words.to_owned()),
        ureq::Error::Io(error) => match error.kind() {
            std::io::ErrorKind::TimedOut => late,
            std::io::ErrorKind::ConnectionRefused => {
                HttpError::Link("connection refused: nothing listens there".to_owned())
            }
            // The resolver's failures have no kind of their own.
            _ if error.to_string().starts_with("failed to lookup address") => HttpError::NoAddress,
            _ => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                Some(error) => HttpError::Tls(error.to_string()),
                None => HttpError::Link(error.to_string()),
            },
        },
        ureq::Error::ConnectionFailed => HttpError::Link("no connection could be made".to_owned()),
        _ => HttpError::Link("the answer is no HTTP".to_owned()),
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, HttpError> {
    let refused = |words: String| HttpError::Certificates { path: path.to_owned(), words };
    let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&bytes) {
        if let PemItem::Certificate(certificate) =
            item.map_err(|_| refused("it is no PEM file".to_owned()))?
        {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        Err(refused("there is no certificate in it".to_owned()))
    } else {
        Ok(certificates)
    }
}

fn of_system() -> Vec<Certificate<'static>> {
    let found = rustls_native_certs::load_native_certs().certs;
    found.iter().map(|certificate| Certificate::from_der(certificate.as_ref()).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_password_and_query_are_sent_and_never_shown() {
        let address = Address::parse("http://us%40er:se%2Fcret@h:9100/x?token=t0p").unwrap();
        // us@er:se/cret
        assert_eq!(address.authorization.as_deref(), Some("Basic dXNAZXI6c2UvY3JldA=="));
        assert_eq!(address.url.as_str(), "http://h:9100/x?token=t0p");
        assert_eq!(address.to_string(), "http://h:9100/x?…");
        assert_eq!(format!("{address:?}"), "Address(http://h:9100/x?…)");
        assert_eq!(address.public().as_str(), "http://h:9100/x");
        assert_eq!(Address::parse("http://h:9100").unwrap().to_string(), "http://h:9100");
    }

    #[test]
    fn what_is_no_url_of_a_server_is_none_and_is_shown_without_its_secrets() {
        for text in ["h:9100", "ftp://h/", "http://", "", "http://h:99999/"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
        assert_eq!(shown_text("htp://me:se/cr@et@h:x/y?key=1"), "htp://h:x/y?…");
        assert_eq!(shown_text("me:secret@h"), "h");
    }

    #[test]
    fn a_path_before_the_api_is_kept() {
        let below = |text: &str| Address::parse(text).unwrap().below("api/v1/query").url.to_string();
        assert_eq!(below("http://h/prometheus/"), "http://h/prometheus/api/v1/query");
        assert_eq!(below("http://h:9090"), "http://h:9090/api/v1/query");
    }

    #[test]
    fn a_refusal_says_what_to_do_or_what_the_server_said() {
        assert!(refusal(401, b"").to_string().contains("user:password@host"));
        assert!(refusal(302, b"<a href>").to_string().contains("leads"));
        assert_eq!(refusal(503, b"\n  starting\nup").to_string(), "HTTP status 503: starting");
        assert_eq!(refusal(500, b"<html>").to_string(), "HTTP status 500");
    }
}
