//! What the two sides of the dialogue have in common: a state machine whose frames something else carries.

use weir_metrics::Moment;

/// A message that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// On which subject.
    pub subject: String,
    /// What.
    pub bytes: Vec<u8>,
}

/// A state machine whose frames are carried. It has no clock and no socket, and is told everything.
pub trait Machine: Send {
    /// What it is told to do.
    type Command: Send;
    /// What becomes of it.
    type Event: Send;

    /// What it hears.
    fn subjects(&self) -> Vec<String>;
    /// A message came.
    fn handle_message(&mut self, subject: &str, bytes: &[u8], now: Moment);
    /// NATS is there, or not any more.
    fn handle_connection(&mut self, is_up: bool, now: Moment);
    /// Messages came faster than they were taken, and some were dropped.
    fn handle_dropped(&mut self);
    /// A message of so many bytes was not sent: the server takes none of that size.
    fn handle_too_large(&mut self, subject: &str, bytes: usize);
    /// It is told to do something.
    fn handle_command(&mut self, command: Self::Command, now: Moment);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Moment);
    /// The next message to be sent. Those of a time without NATS are not sent: a machine says again what matters.
    fn poll_send(&mut self) -> Option<Outgoing>;
    /// What has become of it.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
