#![doc = include_str!("../README.md")]

mod address;
mod error;

pub use address::{Address as HttpAddress, shown_text};
pub use error::{HttpError, refusal};

use address::Address;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use weir_address::networks;

/// Longest wait for a whole answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for a connection, its TLS included, of an answer that may take longer.
const CONNECT: Duration = Duration::from_secs(10);
/// Most bytes of an answer. A node_exporter with everything switched on comes to a tenth of it.
pub(crate) const MOST_BYTES: u64 = 8 << 20;

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

/// Sends requests to one server over one link that is kept.
#[derive(Clone, Debug)]
pub struct Http {
    agent: ureq::Agent,
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
    ///
    /// # Errors
    /// See [`HttpError`].
    pub fn get(&self, address: &Address, accept: &str) -> Result<Vec<u8>, HttpError> {
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
