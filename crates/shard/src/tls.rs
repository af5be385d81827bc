//! TLS settings for links: which certificates to trust, which to show.

pub use rustls::ClientConfig;
pub use rustls::pki_types::ServerName;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
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
    Refused(#[from] rustls::Error),
}

/// Settings of clients.
///
/// # Errors
/// A certificate file that cannot be read.
pub fn client_config(trust: &Trust) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let config = match trust {
        Trust::Anyone => builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))),
        Trust::File(path) => builder.with_root_certificates(roots(certificates(path)?)),
        Trust::System => {
            builder.with_root_certificates(roots(rustls_native_certs::load_native_certs().certs))
        }
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

fn roots(certificates: Vec<CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    store
}

/// Takes every certificate, but still checks that the peer holds its key.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
