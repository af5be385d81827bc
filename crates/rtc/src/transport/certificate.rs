//! Certificates, and their fingerprints as descriptions carry them (RFC 8122 section 5).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use dimpl::DtlsCertificate;

/// A self-signed ECDSA certificate with its key. Copies are cheap.
#[derive(Clone)]
pub struct Certificate(Arc<DtlsCertificate>);

impl Certificate {
    /// A new one. It takes about as long as a handshake, so that clients should share one, as the tabs of a browser do
    /// not; servers do not tell viewers apart by it.
    ///
    /// # Errors
    ///
    /// When the cryptographic library fails, as without a source of randomness.
    pub fn generate() -> Result<Self, dimpl::certificate::CertificateError> {
        dimpl::certificate::generate_self_signed_certificate().map(|certificate| Self(Arc::new(certificate)))
    }

    /// Its fingerprint, by SHA-256.
    pub fn fingerprint(&self) -> Fingerprint {
        let digest = digest(&SHA256, &self.0.certificate);
        Fingerprint { function: Function::Sha256, bytes: digest.as_ref().to_vec() }
    }

    pub(super) fn for_dtls(&self) -> DtlsCertificate {
        (*self.0).clone()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Certificate").field(&self.fingerprint()).finish()
    }
}

/// The fingerprint of a certificate. As text it is the value of an `a=fingerprint` line.
#[derive(Clone, PartialEq, Eq)]
pub struct Fingerprint {
    function: Function,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Sha256,
    Sha384,
    Sha512,
}

/// Why a fingerprint cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ParseFingerprintError {
    /// SHA-1 and MD5 prove nothing any more; ask for SHA-256.
    #[error("a fingerprint by another hash function than SHA-256, SHA-384 and SHA-512")]
    Function,
    /// The bytes are not hexadecimal with colons, or too few or too many.
    #[error("a fingerprint whose bytes do not fit its hash function")]
    Bytes,
}

impl Fingerprint {
    /// Whether it is that of this certificate (DER).
    pub fn is_of(&self, certificate: &[u8]) -> bool {
        let algorithm = match self.function {
            Function::Sha256 => &SHA256,
            Function::Sha384 => &SHA384,
            Function::Sha512 => &SHA512,
        };
        digest(algorithm, certificate).as_ref() == self.bytes
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, bytes) = text.trim().split_once(' ').ok_or(ParseFingerprintError::Bytes)?;
        let (function, length) = match &*name.to_ascii_lowercase() {
            "sha-256" => (Function::Sha256, 32),
            "sha-384" => (Function::Sha384, 48),
            "sha-512" => (Function::Sha512, 64),
            _ => return Err(ParseFingerprintError::Function),
        };
        // Each byte has two digits; from_str_radix alone would take a sign.
        let digits = |byte: &str| byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = |byte: &str| digits(byte).then(|| u8::from_str_radix(byte, 16).ok()).flatten();
        let bytes: Option<Vec<u8>> = bytes.trim().split(':').map(byte).collect();
        match bytes {
            Some(bytes) if bytes.len() == length => Ok(Self { function, bytes }),
            _ => Err(ParseFingerprintError::Bytes),
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.function {
            Function::Sha256 => "sha-256",
            Function::Sha384 => "sha-384",
            Function::Sha512 => "sha-512",
        })?;
        for (at, byte) in self.bytes.iter().enumerate() {
            write!(formatter, "{}{byte:02X}", if at == 0 { ' ' } else { ':' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_written_and_is_of_its_certificate_only() {
        let [one, other] = [(); 2].map(|()| Certificate::generate().unwrap());
        let text = one.fingerprint().to_string();
        let read: Fingerprint = text.to_lowercase().parse().unwrap();
        assert_eq!(read, one.fingerprint());
        assert!(read.is_of(&one.0.certificate));
        assert!(!read.is_of(&other.0.certificate));
    }

    #[test]
    fn what_is_no_fingerprint_is_refused() {
        let bytes = |count: usize| ["AB"].repeat(count).join(":");
        assert!(format!("SHA-512 {}", bytes(64)).parse::<Fingerprint>().is_ok());
        let error = |text: String| text.parse::<Fingerprint>().unwrap_err();
        assert_eq!(error(format!("sha-1 {}", bytes(20))), ParseFingerprintError::Function);
        assert_eq!(error(format!("sha-256 {}", bytes(31))), ParseFingerprintError::Bytes);
        assert_eq!(error(format!("sha-256 +1:{}", bytes(31))), ParseFingerprintError::Bytes);
        assert_eq!(error("sha-256".to_owned()), ParseFingerprintError::Bytes);
    }
}
