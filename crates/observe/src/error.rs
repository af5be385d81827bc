//! Why nothing can be watched.

use std::io;

use thiserror::Error;

use crate::{InterfaceNameError, Watch};
use weir_http::{HttpError, shown_text};
use weir_setting::{NODE_EXPORTER, PROMETHEUS, PROMETHEUS_INSTANCE, Setting};

/// Why an [`Sampler`](crate::Sampler) could not be made. Once made, an sampler does not fail: what it
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
    /// Several servers have the name, and which of them is the target is not known.
    #[error(
        "`name={name}` is the name of {} servers: {}; watch one of them by pid= or port=, or all of them together with \
         name={name}+",
        servers.len(),
        servers.join("; ")
    )]
    SeveralServers {
        /// The name that was asked for.
        name: String,
        /// Each one's first process, what it was started as, and the ports that it listens on.
        servers: Vec<String>,
    },
    /// `/proc` is missing or is not Linux's.
    #[error("cannot read {path}: weir watches processes through /proc, on Linux; mount it, or watch nothing")]
    NoProc {
        /// The file that was asked for.
        path: &'static str,
        /// What the system answered.
        source: io::Error,
    },
}

/// Why the figures of the target's machine cannot be had. Says it without the secrets of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// The text is no URL of a server.
    #[error("{setting} '{text}' is no URL of a server; write {example}")]
    NotAUrl {
        /// What it was given to.
        setting: Setting<'static>,
        /// The text, without its secrets.
        text: String,
        /// A URL that would do.
        example: &'static str,
    },
    /// The server does not answer, or refuses.
    #[error("{what} at {address} does not answer as one: {source}")]
    Unheard {
        /// `node_exporter` or `Prometheus`.
        what: &'static str,
        /// The server's address.
        address: String,
        /// Why not.
        source: HttpError,
    },
    /// The server answers with something else.
    #[error(
        "{address} answers, but not as a node_exporter: node_cpu_seconds_total and its like are not in it; \
         a node_exporter (0.16 or newer) listens on port 9100, a Prometheus is given with {}",
        PROMETHEUS
    )]
    NotNodeExporter {
        /// The server's address.
        address: String,
    },
    /// The server answers with something else.
    #[error(
        "{address} answers, but not as a Prometheus ({words}); a Prometheus listens on port 9090, a \
         node_exporter is given with {}",
        NODE_EXPORTER
    )]
    NotPrometheus {
        /// The server's address.
        address: String,
        /// What was wrong with its answer.
        words: String,
    },
    /// It collects from no node_exporter.
    #[error(
        "the Prometheus at {address} has no node_cpu_seconds_total of the last minutes: let it collect from \
         the node_exporter of the target's machine, and wait for two collections"
    )]
    NoMachine {
        /// The server's address.
        address: String,
    },
    /// It collects from several, and which one is the target's was not said, or is not among them.
    #[error(
        "the Prometheus at {address} has the figures of {}{}: say which with {}",
        instances.join(", "),
        asked.as_ref().map_or_else(String::new, |asked| format!(", and not of {asked}")),
        PROMETHEUS_INSTANCE
    )]
    WhichMachine {
        /// The server's address.
        address: String,
        /// The values of the label `instance`.
        instances: Vec<String>,
        /// The one that was asked for.
        asked: Option<String>,
    },
    /// The name of an interface.
    #[error(transparent)]
    Interface(#[from] InterfaceNameError),
    /// No thread could be started.
    #[error("no thread for {address}: {words}")]
    Thread {
        /// Address of the server that the thread was to read.
        address: String,
        /// What the system said.
        words: String,
    },
}

impl MachineError {
    /// Whether the server gave no answer: it is not there, or not in time.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Unheard { source: HttpError::Link(_) | HttpError::Timeout { .. }, .. })
    }
}

impl MachineError {
    pub(crate) fn not_a_url(text: &str, setting: Setting<'static>, example: &'static str) -> Self {
        Self::NotAUrl { setting, text: shown_text(text), example }
    }
}
