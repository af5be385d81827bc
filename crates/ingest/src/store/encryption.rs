//! TLS of a database as the URLs of libpq ask for it ("SSL Support"): `sslmode`, `sslrootcert`, `sslcert` and `sslkey`,
//! of which tokio-postgres knows the weaker half of the first.

use crate::error::DatabaseError;
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use weir_shard::tls::{ClientTls, Identity, Trust};

/// Whether to encrypt, and how strictly the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The encryption that a URL asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encryption {
    pub(super) mode: Mode,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Encryption {
    /// Takes it out of a URL, and leaves the rest as it is.
    pub(super) fn split_off(url: &str) -> Result<(String, Self), DatabaseError> {
        let mut encryption = Self { mode: Mode::Prefer, roots: None, certificate: None, key: None };
        // As tokio-postgres reads it: what stands before the first @ is user and password, and they may hold a "?".
        let host = url.find('@').map_or(0, |at| at + 1);
        let Some(question) = url[host..].find('?').map(|position| host + position) else {
            return Ok((url.to_owned(), encryption));
        };
        let mut rest = Vec::new();
        for parameter in url[question + 1..].split('&') {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = percent_decode_str(value).decode_utf8_lossy();
            match (key, &*value) {
                ("sslmode", "disable") => encryption.mode = Mode::Disable,
                ("sslmode", "prefer") => encryption.mode = Mode::Prefer,
                ("sslmode", "require") => encryption.mode = Mode::Require,
                ("sslmode", "verify-ca") => encryption.mode = Mode::VerifyCa,
                ("sslmode", "verify-full") => encryption.mode = Mode::VerifyFull,
                ("sslmode", _) => return Err(DatabaseError::Mode),
                ("sslrootcert", file) => encryption.roots = Some(file.into()),
                ("sslcert", file) => encryption.certificate = Some(file.into()),
                ("sslkey", file) => encryption.key = Some(file.into()),
                _ => rest.push(parameter),
            }
        }
        Ok((format!("{}?{}", &url[..question], rest.join("&")), encryption))
    }

    /// How to secure the link.
    pub(super) fn client_tls(&self) -> Result<ClientTls, DatabaseError> {
        let identity = match (&self.certificate, &self.key) {
            (None, None) => None,
            (Some(chain), Some(key)) => Some(Identity { chain: chain.clone(), key: key.clone() }),
            _ => return Err(DatabaseError::Identity),
        };
        Ok(ClientTls { trust: self.trust(), identity })
    }

    /// The certificates to trust. If the URL names roots, they are checked even in modes that accept any server.
    fn trust(&self) -> Trust {
        match (self.mode, &self.roots) {
            (Mode::Disable, _) | (Mode::Prefer | Mode::Require, None) => Trust::Anyone,
            (Mode::VerifyFull, None) => Trust::System,
            (Mode::VerifyFull, Some(path)) => Trust::File(path.clone()),
            (_, roots) => Trust::AnyName(roots.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(url: &str) -> (String, Encryption) {
        Encryption::split_off(url).unwrap()
    }

    #[test]
    fn tls_is_taken_out_of_a_url_and_the_rest_stays() {
        let (rest, encryption) = split("postgres://me:s3?c/r@h:5/d");
        assert_eq!((rest.as_str(), encryption.mode), ("postgres://me:s3?c/r@h:5/d", Mode::Prefer));
        let (rest, encryption) = split(
            "postgres://me:?sslmode=x@h/d?sslmode=verify-full&options=-c%20a%3Db&sslrootcert=/etc/my%20ca.pem",
        );
        assert_eq!(rest, "postgres://me:?sslmode=x@h/d?options=-c%20a%3Db");
        assert_eq!(
            encryption,
            Encryption {
                mode: Mode::VerifyFull,
                roots: Some("/etc/my ca.pem".into()),
                certificate: None,
                key: None
            }
        );
        assert_eq!(split("postgres://h/d?sslmode=disable").0, "postgres://h/d?");
        for mode in ["allow", "", "Require", "verify_full"] {
            let url = format!("postgres://h/d?sslmode={mode}");
            assert_eq!(Encryption::split_off(&url), Err(DatabaseError::Mode));
        }
    }

    #[test]
    fn a_certificate_of_ones_own_has_its_key() {
        let of = |parameters: &str| split(&format!("postgres://h/d?{parameters}")).1.client_tls();
        let identity = of("sslcert=me%20.pem&sslkey=me.key").unwrap().identity.unwrap();
        assert_eq!((identity.chain, identity.key), ("me .pem".into(), "me.key".into()));
        for half in ["sslcert=a", "sslkey=a"] {
            assert_eq!(of(half).unwrap_err(), DatabaseError::Identity);
        }
    }

    #[test]
    fn who_names_roots_is_not_content_with_anyone() {
        let shown =
            |parameters: &str| format!("{:?}", split(&format!("postgres://h/d?{parameters}")).1.trust());
        for (parameters, trust) in [
            ("", "Anyone"),
            ("sslmode=require", "Anyone"),
            ("sslmode=verify-ca", "AnyName(None)"),
            ("sslmode=verify-full", "System"),
            ("sslrootcert=a", r#"AnyName(Some("a"))"#),
            ("sslmode=require&sslrootcert=a", r#"AnyName(Some("a"))"#),
            ("sslmode=verify-ca&sslrootcert=a", r#"AnyName(Some("a"))"#),
            ("sslmode=verify-full&sslrootcert=a", r#"File("a")"#),
            ("sslmode=disable&sslrootcert=a", "Anyone"),
        ] {
            assert_eq!(shown(parameters), trust, "{parameters}");
        }
    }
}
