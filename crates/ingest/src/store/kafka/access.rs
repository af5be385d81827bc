//! What an ingester has to get into a cluster: TLS, user and password.

use super::cluster::Cluster;
use super::failed::RequestFailure;
use std::sync::Arc;
use weir_setting::SAVE_PASSWORD_FILE;
use weir_shard::tls::{ClientConfig, ClientTls, Trust, client_config};

/// What gives a password.
pub(super) fn password() -> String {
    let file = SAVE_PASSWORD_FILE.beside_flag(", save_password_file");
    format!("give the password in the environment as KAFKA_PASSWORD, or in a file ({file})")
}

/// How to get into a cluster.
pub(super) struct Access {
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// Whether brokers prove by a certificate whose they are.
    pub(super) is_verified: bool,
    /// Whether the URL asks in words for a login that anyone on the way can read.
    pub(super) allows_clear_text: bool,
    /// User and password.
    pub(super) login: Option<(String, String)>,
}

impl Access {
    /// What a URL, a password and certificates come to.
    pub(super) fn of(cluster: &Cluster) -> Result<Arc<Self>, RequestFailure> {
        let trust = cluster.trust();
        let is_verified = trust.as_ref().is_some_and(|trust| !matches!(trust, Trust::Anyone));
        let tls = trust.map(|trust| client_config(&ClientTls { trust, identity: None })).transpose();
        let tls = tls.map_err(|error| RequestFailure::Unfit(error.to_string()))?;
        let login = match (cluster.user(), cluster.password()) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(RequestFailure::AccessDenied(format!(
                    "a user without a password; {}",
                    password()
                )));
            }
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
        };
        let allows_clear_text = cluster.allows_clear_text();
        Ok(Arc::new(Self { tls, is_verified, allows_clear_text, login }))
    }
}
