//! TLS settings for links: which certificates to trust, which to show. All of weir's TLS clients but those that ask
//! Prometheus and gateways are made here.

pub use rustls::pki_types::ServerName;
pub use rustls::{ClientConfig, ClientConnection, Error, StreamOwned};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, OtherError, RootCertStore, ServerConfig,
    SignatureScheme,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_setting::{CACERT, CERT, INSECURE, KEY};

/// How a client secures its links.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    /// The certificates that it trusts.
    pub trust: Trust,
    /// What it shows of itself to a server that asks.
    pub identity: Option<Identity>,
}

/// A certificate of one's own (`--cert`, `--key`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PEM file of the certificate, and of those between it and one that the server trusts.
    pub chain: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
}

/// The servers that a client trusts, by their certificates.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The certificates that the system trusts.
    #[default]
    System,
    /// The certificates of a PEM file (`--cacert`), and those that they have signed. A server's own certificate in that file is trusted
    /// even if it is marked as an authority's, as `openssl req -x509` marks it.
    File(PathBuf),
    /// Those of a PEM file, or of the system, whatever name a certificate has (`sslmode=verify-ca`).
    AnyName(Option<PathBuf>),
    /// Anyone (`--insecure`): the link is encrypted, the peer is not known.
    Anyone,
}

/// Settings that could not be made; says which file and why.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file could not be read.
    #[error("{path}: {source}; give a PEM file with certificates")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: rustls::pki_types::pem::Error,
    },
    /// A key could not be read.
    #[error("{path}: {source}; give a PEM file with the certificate's private key")]
    Key {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        source: rustls::pki_types::pem::Error,
    },
    /// A key is encrypted, and nothing here asks for a passphrase.
    #[error("{path}: the key is encrypted; decrypt it: openssl pkey -in '{path}' -out KEY")]
    Encrypted {
        /// The file.
        path: PathBuf,
    },
    /// The library refused the settings.
    #[error("TLS settings were refused: {}", words(.0))]
    Refused(#[from] Error),
}

/// Settings of clients.
///
/// # Errors
/// A certificate or a key that cannot be read, or that do not fit each other.
pub fn client_config(tls: &ClientTls) -> Result<Arc<ClientConfig>, TlsError> {
    client_config_offering(tls, &[])
}

/// The same of clients that offer these protocols, the most wanted first (ALPN, RFC 7301).
///
/// # Errors
/// As [`client_config`].
pub fn client_config_offering(tls: &ClientTls, protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let (given, checks_name) = match &tls.trust {
        Trust::Anyone => (None, false),
        Trust::AnyName(path) => (Some(path.as_deref()), false),
        Trust::File(path) => (Some(Some(path.as_path())), true),
        Trust::System => (Some(None), true),
    };
    let anchors = given.map(Anchors::of).transpose()?;
    let verifier = Arc::new(Verifier { anchors, checks_name, provider: provider.clone() });
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { chain, key }) => {
            builder.with_client_auth_cert(certificates(chain)?, private_key(key)?)?
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

/// What went wrong with TLS, for a person.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("the server asks for a certificate of the client; give one with {CERT} and {KEY}")
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks none of the protocols that were offered (ALPN), perhaps another version of HTTP only".to_owned()
        }
        Error::InvalidCertificate(CertificateError::Other(other)) if other.0.is::<SelfSigned>() => {
            other.0.to_string()
        }
        Error::InvalidCertificate(CertificateError::Other(other))
            if other.0.downcast_ref() == Some(&webpki::Error::UnsupportedCertVersion) =>
        {
            "the certificate is one of X.509 version 1, which has no names that could be checked; make one of version 3 (openssl x509 -req \
             -extfile, with a subjectAltName)"
                .to_owned()
        }
        error => error.to_string(),
    }
}

/// The peer's certificate is signed by itself, and was not given as one to be trusted.
#[derive(Debug, thiserror::Error)]
#[error(
    "the server's certificate is self-signed: {} with that certificate trusts it, {} takes any",
    CACERT.to("FILE"),
    INSECURE
)]
struct SelfSigned;

impl SelfSigned {
    /// What is wrong with a certificate that no authority vouches for, by its names of issuer and subject.
    fn or(error: Error, certificate: &CertificateDer<'_>) -> Error {
        let is_unknown = matches!(error, Error::InvalidCertificate(CertificateError::UnknownIssuer))
            || is_marked_as_authority(&error);
        let names_itself = webpki::EndEntityCert::try_from(certificate)
            .is_ok_and(|certificate| certificate.issuer() == certificate.subject());
        match is_unknown && names_itself {
            true => CertificateError::Other(OtherError(Arc::new(Self))).into(),
            false => error,
        }
    }
}

/// Settings of a server with a certificate chain and its key, both PEM files.
///
/// # Errors
/// A file that cannot be read, or a key that does not fit the certificate.
pub fn server_config(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    server_config_offering(chain, key, &[])
}

/// The same of a server that speaks these protocols, the most wanted first (ALPN, RFC 7301). A client that names none of them is
/// refused, and one that names none at all is not.
///
/// # Errors
/// As [`server_config`].
pub fn server_config_offering(
    chain: &Path,
    key: &Path,
    protocols: &[&[u8]],
) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = (certificates(chain)?, private_key(key)?);
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem { path: path.to_owned(), source };
    let found: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(pem)?.collect::<Result<_, _>>().map_err(pem)?;
    if found.is_empty() {
        return Err(pem(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|source| match is_encrypted(path) {
        true => TlsError::Encrypted { path: path.to_owned() },
        false => TlsError::Key { path: path.to_owned(), source },
    })
}

/// Whether a file that has no key that can be used has one that is encrypted (RFC 7468 section 11), or one in OpenSSL's older form (RFC 1421
/// section 4.6.1.1).
fn is_encrypted(path: &Path) -> bool {
    // The parser has read it: it is no pipe and no device.
    let text = std::fs::read(path).unwrap_or_default();
    let has = |mark: &[u8]| text.windows(mark.len()).any(|bytes| bytes == mark);
    has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED")
}

/// Certificates that are trusted.
#[derive(Debug)]
struct Anchors {
    roots: RootCertStore,
    /// Those of a file that the user named: one of these may be the server's own certificate.
    given: Vec<CertificateDer<'static>>,
}

impl Anchors {
    /// Those of a PEM file, or of the system.
    fn of(path: Option<&Path>) -> Result<Self, TlsError> {
        let given = path.map_or(Ok(Vec::new()), certificates)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(match path {
            Some(_) => given.clone(),
            None => rustls_native_certs::load_native_certs().certs,
        });
        Ok(Self { roots, given })
    }

    /// Whether a certificate is one that was given, byte for byte.
    fn is_given(&self, certificate: &CertificateDer<'_>) -> bool {
        self.given.iter().any(|given| **given == **certificate)
    }
}

/// Checks certificates as rustls does, with two allowances for one that was given byte for byte, which OpenSSL's users
/// know: it may be marked as an authority's, and its only name may be a common name. `checks_name` not set: it may have
/// any name; without anchors: every certificate is taken. That the peer holds its key is always checked.
#[derive(Debug)]
struct Verifier {
    anchors: Option<Anchors>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

/// Whether the only fault is that it is marked as an authority's (RFC 5280 section 4.2.1.9). webpki checks the
/// certificate's time before that.
fn is_marked_as_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// The last common name in a certificate: the subject stands behind the issuer. Only for one that was given, whose bytes
/// are not the peer's choice.
fn common_name<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a [u8]> {
    // OBJECT IDENTIFIER 2.5.4.3, then a string of up to 64 characters (RFC 5280 appendix A.1).
    const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let place = certificate.windows(COMMON_NAME.len()).rposition(|bytes| bytes == COMMON_NAME)?;
    let [_tag, length, text @ ..] = &certificate[place + COMMON_NAME.len()..] else { return None };
    text.get(..usize::from(*length))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(anchors) = &self.anchors else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let is_given = anchors.is_given(end_entity);
        match verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &anchors.roots,
            intermediates,
            now,
            algorithms,
        ) {
            Err(error) if is_given && is_marked_as_authority(&error) => {}
            checked => checked.map_err(|error| SelfSigned::or(error, end_entity))?,
        }
        if !self.checks_name {
            return Ok(ServerCertVerified::assertion());
        }
        match verify_server_name(&certificate, server_name) {
            Err(Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                presented, ..
            })) if is_given
                && presented.is_empty()
                && common_name(end_entity)
                    .is_some_and(|name| name.eq_ignore_ascii_case(server_name.to_str().as_bytes())) => {}
            checked => checked?,
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, date_time_ymd,
    };

    /// A certificate that has signed itself and is marked as an authority's, as `openssl req -x509` makes it.
    fn self_signed(name: &str, common_name: &str, until: i32) -> rcgen::Certificate {
        let names: Vec<String> = Some(name.to_owned()).filter(|name| !name.is_empty()).into_iter().collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    /// What a client that was given `given` says to a server at `host` that shows `shown`.
    fn judge(
        given: &rcgen::Certificate,
        shown: &rcgen::Certificate,
        host: &str,
        any_name: bool,
    ) -> Result<(), Error> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), given.pem()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let anchors = Some(Anchors::of(Some(file.path())).unwrap());
        let verifier = Verifier { anchors, checks_name: !any_name, provider };
        let name = ServerName::try_from(host.to_owned()).unwrap();
        // 2026-01-01
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_767_225_600));
        verifier.verify_server_cert(shown.der(), &[], &name, &[], now).map(|_| ())
    }

    fn is_refused_as(judged: &Result<(), Error>, fits: impl Fn(&CertificateError) -> bool) -> bool {
        matches!(judged, Err(Error::InvalidCertificate(error)) if fits(error))
    }

    #[test]
    fn a_certificate_that_was_given_is_taken_though_it_is_marked_as_an_authoritys() {
        let server = self_signed("server.example", "server", 2030);
        for any_name in [false, true] {
            assert_eq!(judge(&server, &server, "server.example", any_name), Ok(()));
        }
        let elsewhere = judge(&server, &server, "elsewhere.example", false);
        assert!(is_refused_as(&elsewhere, |it| matches!(
            it,
            CertificateError::NotValidForNameContext { .. }
        )));
        assert_eq!(judge(&server, &server, "elsewhere.example", true), Ok(()));
        // The same names, and another key.
        let forged = self_signed("server.example", "server", 2030);
        for any_name in [false, true] {
            assert!(judge(&server, &forged, "server.example", any_name).is_err());
        }
    }

    #[test]
    fn a_certificate_that_has_signed_itself_is_named_so() {
        let [given, server] = [2030, 2030].map(|until| self_signed("server.example", "server", until));
        let mut params = CertificateParams::new(vec!["server.example".to_owned()]).unwrap();
        params.is_ca = IsCa::NoCa;
        let plain = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        for shown in [server, plain] {
            let refused = judge(&given, &shown, "server.example", false).unwrap_err();
            assert!(words(&refused).contains("self-signed"), "{refused:?}");
        }
        // Its time is what is wrong first.
        let late = judge(&given, &self_signed("server.example", "server", 2025), "server.example", false);
        assert!(!words(&late.unwrap_err()).contains("self-signed"));
    }

    #[test]
    fn a_certificate_of_version_1_is_named_so() {
        let old = CertificateError::Other(OtherError(Arc::new(webpki::Error::UnsupportedCertVersion)));
        assert!(words(&old.into()).contains("X.509 version 1"));
    }

    #[test]
    fn a_certificate_that_was_given_is_refused_when_its_time_is_over() {
        let server = self_signed("server.example", "server", 2025);
        for any_name in [false, true] {
            let late = judge(&server, &server, "server.example", any_name);
            assert!(
                is_refused_as(&late, |it| matches!(it, CertificateError::ExpiredContext { .. })),
                "{late:?}"
            );
        }
    }

    #[test]
    fn a_common_name_is_the_name_of_a_given_certificate_that_has_no_other() {
        let server = self_signed("", "Server.example", 2030);
        assert_eq!(judge(&server, &server, "server.example", false), Ok(()));
        assert!(judge(&server, &server, "elsewhere.example", false).is_err());
        let address = self_signed("", "127.0.0.1", 2030);
        assert_eq!(judge(&address, &address, "127.0.0.1", false), Ok(()));
        let both = self_signed("other.example", "server.example", 2030);
        assert!(judge(&both, &both, "server.example", false).is_err());
    }

    #[test]
    fn a_key_that_does_not_fit_its_certificate_is_refused_with_both_files_at_hand() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let chain = file("me.pem", &self_signed("me", "me", 2030).pem());
        let other = KeyPair::generate().unwrap();
        let of = |key: PathBuf| {
            let identity = Some(Identity { chain: chain.clone(), key });
            client_config(&ClientTls { trust: Trust::Anyone, identity }).map(|_| ())
        };
        let unfit = of(file("other.key", &other.serialize_pem())).unwrap_err();
        assert!(matches!(unfit, TlsError::Refused(_)), "{unfit}");
        for text in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
        ] {
            let refused = of(file("secret.key", text)).unwrap_err().to_string();
            assert!(refused.contains("the key is encrypted; decrypt it: openssl pkey"), "{refused}");
        }
        let missing = of(directory.path().join("none.key")).unwrap_err();
        assert!(
            matches!(&missing, TlsError::Key { .. }) && missing.to_string().contains("none.key"),
            "{missing}"
        );
    }
}
