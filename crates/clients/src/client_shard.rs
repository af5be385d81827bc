//! The event loop of one generator thread, whose sessions are clients.
//!
//! [`Shard`] is generic, and generic code is compiled where its parameters are known. They are known here, in a crate that is optimised
//! for speed in every profile; who runs a generator thread only calls it, and need not be.

use crate::shard_recorder::ShardRecorder;
use std::io;
use weir_metrics::Moment;
use weir_shard::{Endpoint, Lag, OpenError, Session, SessionId, Shard};

/// A shard of clients. Each method is that of [`Shard`].
pub struct ClientShard(Shard<ShardRecorder>);

impl ClientShard {
    /// An empty shard for the calling thread.
    ///
    /// # Errors
    /// The system has no descriptor left for the poll.
    pub fn new(recorder: ShardRecorder) -> io::Result<Self> {
        Shard::new(recorder).map(Self)
    }

    /// Says which of several threads this one is.
    pub fn set_thread(&mut self, number: usize, threads: usize) {
        self.0.set_thread(number, threads);
    }

    /// What its clients write in.
    pub fn recorder(&mut self) -> &mut ShardRecorder {
        &mut self.0.world
    }

    /// Whether no client is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Begins to connect a client to its peer.
    ///
    /// # Errors
    /// No descriptor or port was left, or the address family is missing. The client knows already.
    pub fn open(
        &mut self,
        endpoint: &Endpoint,
        client: Box<dyn Session<ShardRecorder>>,
    ) -> Result<SessionId, OpenError> {
        self.0.open(endpoint, client)
    }

    /// Asks a client to end; one that has ended already takes no notice.
    pub fn stop(&mut self, id: SessionId) {
        self.0.stop(id);
    }

    /// Asks every client to end; one that was asked before ends without what it waits for.
    pub fn stop_all(&mut self) {
        self.0.stop_all();
    }

    /// Sleeps until something happens, `until` at the latest, and handles it.
    ///
    /// # Errors
    /// The poll itself fails, which no client can cause.
    pub fn turn(&mut self, until: Moment) -> io::Result<()> {
        self.0.turn(until)
    }

    /// Reads whatever there is to read, and tells each client of the edge.
    pub fn sweep(&mut self, edge: Moment) {
        self.0.sweep(edge);
    }

    /// For how long, since the last call, nothing was read that came.
    pub fn take_lag(&mut self) -> Lag {
        self.0.take_lag()
    }

    /// Asks the links of at most `most` clients of the crowd how many bytes wait; `each` is called with the client, the bytes, and for
    /// how many clients this one stands.
    pub fn unread(&self, most: usize, each: &mut dyn FnMut(SessionId, usize, usize)) {
        self.0.unread(most, each);
    }
}
