//! Why an origin does not start.

use crate::tuner::MaterialError;
use std::io;
use std::net::SocketAddr;
use weir_shard::tls::TlsError;

/// Why an origin does not start.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// Someone else has the port.
    #[error("{address} is in use by another server; stop it, or choose another port (0: any free one)")]
    InUse {
        /// Where the origin was to listen.
        address: SocketAddr,
    },
    /// Ports below 1024 are not for everyone.
    #[error("{address}: this user may not listen there; choose a port from 1024 on")]
    Forbidden {
        /// Where the origin was to listen.
        address: SocketAddr,
    },
    /// The address is not one of this machine, or the system refuses it otherwise.
    #[error("cannot listen on {address}: {source}; choose an address of this machine, 0.0.0.0 or [::]")]
    Listen {
        /// Where the origin was to listen.
        address: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A service cannot play what it is to play.
    #[error(transparent)]
    Material(#[from] MaterialError),
    /// A place to forward to is not one.
    #[error("cannot forward to '{url}': {cause}; write rtmp://HOST[:PORT][/APP[/STREAM]]")]
    Forward {
        /// The place.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A worker thread could not be started.
    #[error("cannot start a worker thread: {0}; raise the limits of threads and descriptors (ulimit -u, -n)")]
    Thread(io::Error),
}
