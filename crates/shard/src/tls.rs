//! TLS settings for links: which certificates to trust, which to show.

pub use rustls::pki_types::ServerName;
pub use rustls::{ClientConfig, Error};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whom a client trusts.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// The certificates that the system trusts.
    #[default]
    System,
    /// Those of a PEM file (`--cacert`).
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
    /// The library refused the settings.
    #[error("TLS settings were refused: {0}")]
    Refused(#[from] Error),
}

/// Settings of clients.
///
/// # Errors
/// A certificate file that cannot be read.
pub fn client_config(trust: &Trust) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let lenient = |roots| Arc::new(Lenient { roots, provider });
    let config = match trust {
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(lenient(None)),
        Trust::AnyName(path) => {
            let roots = path.as_deref().map_or_else(|| Ok(of_system()), of_file)?;
            builder.dangerous().with_custom_certificate_verifier(lenient(Some(roots)))
        }
        Trust::File(path) => builder.with_root_certificates(of_file(path)?),
        Trust::System => builder.with_root_certificates(of_system()),
    }
    .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Settings of a server with a certificate chain and its key, both PEM files.
///
/// # Errors
/// A file that cannot be read, or a key that does not fit the certificate.
pub fn server_config(chain: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(chain)?;
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Key { path: key.to_owned(), source })?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
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

fn of_file(path: &Path) -> Result<RootCertStore, TlsError> {
    certificates(path).map(roots)
}

fn of_system() -> RootCertStore {
    roots(rustls_native_certs::load_native_certs().certs)
}

fn roots(certificates: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    store
}

/// Takes certificates of every name, and without roots every certificate, but still checks that the peer holds its key.
#[derive(Debug)]
struct Lenient {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
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
