//! How the links of clients are secured.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Which certificates to trust, and the client's own certificate.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct Tls {
    /// Take any certificate of the server; not of --prometheus and --node-exporter
    #[arg(long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// PEM file of certificates to trust; the server's own may be among them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,
    /// PEM file of the certificate to show to a server that asks for one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

impl Tls {
    /// Whether anything is asked for.
    pub(crate) fn is_any(&self) -> bool {
        self.insecure || [&self.cacert, &self.cert, &self.key].into_iter().any(Option::is_some)
    }
}
