//! Why nothing can be watched.

use std::io;

use thiserror::Error;

use crate::Watch;

/// Why an [`Observer`](crate::Observer) could not be made. Once made, an observer does not fail: what it
/// cannot read is `None` in the sample.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// No process matches. weir itself and the processes above it match by pid only.
    #[error("nothing to watch at `{0}`: start the server first, or look for it with `ps -e` and `ss -ltnp`")]
    NoMatch(Watch),
    /// A socket listens on the port, and no process but weir is seen to hold it. `/proc/PID/fd` is readable
    /// to the owner's user and to root only, and shows the processes of one PID namespace.
    #[error(
        "port {0} is listened on by weir itself, or by a process that it cannot see: run weir as the \
         server's user or as root, outside of the container, or watch the server by name or pid"
    )]
    OwnerHidden(u16),
    /// `/proc` is missing or is not Linux's.
    #[error("cannot read {path}: weir watches processes through /proc, on Linux; mount it, or watch nothing")]
    NoProc {
        /// The file that was asked for.
        path: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}
