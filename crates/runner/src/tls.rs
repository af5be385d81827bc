//! The options of TLS, from the command line or a scenario, for loads and ingesters.

use std::path::PathBuf;
use weir_engine::scenario::Scenario;
use weir_shard::tls::{ClientTls, Identity, Trust};

/// How to secure links, as it was asked for.
pub struct TlsOptions<'a> {
    /// Whether any certificate is taken.
    pub insecure: bool,
    /// PEM file of the certificates that a server may show.
    pub cacert: &'a Option<PathBuf>,
    /// PEM file of a client's own certificate.
    pub cert: &'a Option<PathBuf>,
    /// PEM file of its key.
    pub key: &'a Option<PathBuf>,
}

impl<'a> TlsOptions<'a> {
    /// By a scenario.
    pub fn by(scenario: &'a Scenario) -> Self {
        let Scenario { insecure, cacert, cert, key, .. } = scenario;
        Self { insecure: *insecure, cacert, cert, key }
    }

    /// How to secure links, or what contradicts itself.
    pub fn client_tls(&self) -> Result<ClientTls, String> {
        let trust = match (self.cacert, self.insecure) {
            (None, true) => Trust::Anyone,
            (Some(path), false) => Trust::File(path.clone()),
            (None, false) => Trust::System,
            (Some(_), true) => {
                return Err(
                    "`insecure` takes any certificate, so `cacert` says nothing; leave one out".to_owned()
                );
            }
        };
        let identity = match (self.cert, self.key) {
            (None, None) => None,
            (Some(chain), Some(key)) => Some(Identity { chain: chain.clone(), key: key.clone() }),
            (Some(_), None) => return Err("`cert` needs the certificate's `key`".to_owned()),
            (None, Some(_)) => return Err("`key` needs the `cert` that it belongs to".to_owned()),
        };
        Ok(ClientTls { trust, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(insecure: bool, cacert: &str, cert: &str, key: &str) -> Result<ClientTls, String> {
        let [cacert, cert, key] =
            [cacert, cert, key].map(|text| Some(PathBuf::from(text)).filter(|_| !text.is_empty()));
        TlsOptions { insecure, cacert: &cacert, cert: &cert, key: &key }.client_tls()
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        for (insecure, cacert, cert, key, words) in [
            (true, "ca.pem", "", "", "leave one out"),
            (false, "", "me.pem", "", "`cert` needs"),
            (true, "", "", "me.key", "`key` needs"),
        ] {
            let refused = asked(insecure, cacert, cert, key).unwrap_err();
            assert!(refused.contains(words), "{refused}");
        }
        let tls = asked(false, "ca.pem", "me.pem", "me.key").unwrap();
        assert_eq!(format!("{:?}", tls.trust), r#"File("ca.pem")"#);
        assert_eq!(tls.identity.unwrap().key, PathBuf::from("me.key"));
        assert_eq!(format!("{:?}", asked(true, "", "", "").unwrap().trust), "Anyone");
    }
}
