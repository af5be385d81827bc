//! Why a workload cannot be had.

use crate::material::MaterialError;
use crate::target::TargetError;
use weir_address::networks::Forbidden;
use weir_shard::tls::TlsError;

/// A workload that cannot be had; says why and what to do.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A URL leads nowhere.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An address that the owner of this agent does not let it connect to.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// TLS settings could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is nothing to publish.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// The server did not say what there is to play, though it should.
    #[error("{0}")]
    Server(String),
    /// The options of the protocol ask for what cannot be.
    #[error("{0}")]
    Options(String),
}
