//! The listener: one thread with an event loop of its own, beside the run, which never waits for it.

use crate::board::Board;
use crate::connection::Connection;
use crate::page::Part;
use crate::site::{Look, Site, Update};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_shard::{Deadlines, MessageSender, Shard, clock};

/// How long a peer may take to say what it wants, and to take an answer.
const REQUEST: Duration = Duration::from_secs(5);
/// How long a tab may take nothing of what it is sent.
pub(crate) const IDLE: Duration = Duration::from_secs(20);
/// How long tabs have to take the end of the page. The run is over by then, and its user should not have to wait for a tab.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// How often the thread looks up from its sleep.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// What cannot be listened to.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken, or is not of this machine.
    #[error("{address}: {source}; give another address, or port 0 for any free one")]
    Address {
        /// Where it was to listen.
        address: SocketAddr,
        /// The system's words.
        source: io::Error,
    },
    /// No thread, descriptor or random number was left.
    #[error("the live page could not be started: {0}")]
    System(io::Error),
}

/// The listener, with its page and its metrics. It ends with this value.
pub struct Listener {
    address: SocketAddr,
    token: String,
    tabs: Arc<AtomicUsize>,
    under_way: Arc<AtomicUsize>,
    sender: MessageSender<Update>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Answers at this address from now on, with a page that looks like this and metrics of this board.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn start(address: SocketAddr, look: Look<'_>, board: Arc<Board>) -> Result<Self, ListenError> {
        let taken = |source| ListenError::Address { address, source };
        let listener = weir_shard::listeners(address, 1).map_err(taken)?;
        let listener = listener.into_iter().next().ok_or_else(|| taken(io::ErrorKind::Other.into()))?;
        let address = listener.local_addr().map_err(taken)?;
        let token = token().map_err(ListenError::System)?;
        let site = Site::new(address, token.clone(), look, board);
        let (tabs, under_way) = (site.tab_count.clone(), site.under_way.clone());
        let (started, is_started) = channel();
        let thread = std::thread::Builder::new()
            .name("weir-live".to_owned())
            .spawn(move || {
                // A shard is of the thread that made it.
                let shard = begin(site, listener);
                let (sender, shard) = match shard {
                    Ok(shard) => (Ok(shard.message_sender()), Some(shard)),
                    Err(error) => (Err(error), None),
                };
                // The starting thread waits for this.
                let _ = started.send(sender);
                shard.into_iter().for_each(serve);
            })
            .map_err(ListenError::System)?;
        let sender = is_started.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        let sender = sender.map_err(ListenError::System)?;
        Ok(Self { address, token, tabs, under_way, sender, thread: Some(thread) })
    }

    /// The URL of the page. It contains the token, which is all that is needed to see the page.
    pub fn page(&self) -> String {
        format!("http://{}/{}/", self.address, self.token)
    }

    /// Where metrics are.
    pub fn metrics(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Whether a tab is open that has been sent all that was rendered: otherwise there is nothing to render for.
    pub fn wants_body(&self) -> bool {
        self.tabs.load(Relaxed) > 0 && self.under_way.load(Relaxed) == 0
    }

    /// The page's body is what `render` makes, on the listener's thread.
    pub fn show(&self, render: impl FnOnce() -> Vec<Part> + Send + 'static) {
        self.under_way.fetch_add(1, Relaxed);
        self.sender.post(Update::Body(Box::new(render)));
    }

    /// The run is over: tabs show these words and keep their content.
    pub fn end(&self, words: &str) {
        self.sender.post(Update::End(words.to_owned()));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.sender.post(Update::Leave);
        if let Some(thread) = self.thread.take() {
            // One that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

fn begin(site: Site, listener: TcpListener) -> io::Result<Shard<Site>> {
    let mut shard = Shard::new(site)?;
    shard.set_deadlines(Deadlines { request: REQUEST, idle: IDLE });
    shard.listen(listener, None, |_, _| Box::new(Connection::new()))?;
    Ok(shard)
}

/// Turn after turn, until the run is over and tabs have what they were to have.
fn serve(mut shard: Shard<Site>) {
    // The poll fails for no reason that a peer has.
    while !shard.world.is_leaving && shard.turn(clock::now() + POLL_INTERVAL).is_ok() {}
    let until = clock::now() + CLOSE_TIMEOUT;
    while !shard.world.tabs.is_empty() && clock::now() < until && shard.turn(until).is_ok() {}
}

/// Sixteen random bytes.
fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    let random = aws_lc_rs::rand::fill(&mut bytes);
    random.map_err(|_| io::Error::other("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
