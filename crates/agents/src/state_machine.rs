//! What both sides of the dialogue have in common: a state machine whose messages are carried by a shell.

use weir_metrics::Moment;

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The subject to publish it on.
    pub subject: String,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// A state machine without a clock and without a socket: the shell passes in messages, commands and the time, and sends what
/// [`poll_send`](Self::poll_send) returns.
pub trait StateMachine: Send {
    /// What its owner asks it to do.
    type Command: Send;
    /// What it reports to its owner.
    type Event: Send;

    /// The subjects that it subscribes to.
    fn subjects(&self) -> Vec<String>;
    /// A message arrived.
    fn handle_message(&mut self, subject: &str, bytes: &[u8], now: Moment);
    /// The connection to NATS is up, or down.
    fn handle_connection(&mut self, is_up: bool, now: Moment);
    /// Messages arrived faster than they were handled, and the client library dropped some.
    fn handle_dropped(&mut self);
    /// A message of this many bytes was not sent: it is larger than all its parts may be together.
    fn handle_too_large(&mut self, subject: &str, bytes: usize);
    /// Its owner asks it to do something.
    fn handle_command(&mut self, command: Self::Command, now: Moment);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Moment);
    /// The next message to be sent. While the connection is down messages are discarded: whatever must arrive is sent again.
    fn poll_send(&mut self) -> Option<Outgoing>;
    /// The next event for its owner.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
