//! A thread of an origin as its owner sees it, whatever runs in it: asked what it has counted, and told to end.

use crate::worker::{OriginSettings, Report};
use std::fmt::Debug;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

/// The way to a thread of an origin.
pub(crate) trait OriginThread: Debug + Send + Sync {
    /// Has it send what it has counted. One that has ended sends nothing.
    fn request_report(&self, reply: Sender<Report>);

    /// Has it end.
    fn stop(&self);
}

/// Where a thread listens, with TLS if there is a configuration for it.
pub(crate) type Listener = (TcpListener, Option<Arc<rustls::ServerConfig>>);

/// The way to a thread that was started, and what waits for its end.
pub(crate) type StartedThread = (Box<dyn OriginThread>, JoinHandle<()>);

/// Starts a thread that has all sessions of a server, whatever it listens at.
#[derive(Clone, Copy, Debug)]
pub struct StartThread(pub(crate) fn(Arc<OriginSettings>, Vec<Listener>) -> io::Result<StartedThread>);
