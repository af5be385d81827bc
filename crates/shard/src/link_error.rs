//! Why a link could not be begun, or ended.

use std::io::{self, ErrorKind};
use weir_metrics::Failure;

/// A link that could not be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {words}", failure.key())]
pub struct OpenError {
    /// The kind, usually on the local side.
    pub failure: Failure,
    /// The system's words.
    pub words: String,
}

/// How far a link has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connecting,
    Securing,
    Open,
}

/// Why a link ended.
#[derive(Debug)]
pub(crate) struct LinkError {
    pub(crate) failure: Failure,
    pub(crate) words: String,
}

impl LinkError {
    /// An error of the system, met in this state of the link.
    pub(crate) fn io(error: &io::Error, state: State) -> Self {
        let failure = match error.kind() {
            ErrorKind::ConnectionRefused => Failure::ConnectionRefused,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                Failure::Reset
            }
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Failure::Unreachable,
            // The kernel gave the peer up: it no longer acknowledges (tcp(7), tcp_retries2).
            ErrorKind::TimedOut if state == State::Open => Failure::Reset,
            ErrorKind::TimedOut => Failure::ConnectTimeout,
            ErrorKind::AddrNotAvailable => Failure::OutOfPorts,
            _ if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                Failure::OutOfDescriptors
            }
            _ => Failure::SocketError,
        };
        Self { failure, words: error.to_string() }
    }

    pub(crate) fn tls(error: &rustls::Error) -> Self {
        Self { failure: Failure::TlsFailed, words: crate::tls::words(error) }
    }

    pub(crate) fn closed() -> Self {
        Self { failure: Failure::ClosedByPeer, words: String::new() }
    }
}

impl From<LinkError> for OpenError {
    fn from(error: LinkError) -> Self {
        Self { failure: error.failure, words: error.words }
    }
}
