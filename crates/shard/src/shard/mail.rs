//! Messages from other threads: sent through a `MessageSender`, taken between two turns of the sessions.

use super::Shard;
use crate::{World, clock};
use mio::Waker;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// Messages from other threads that are taken before links have their turn.
const MAIL_A_TURN: usize = 256;

/// Where other threads leave messages for a shard's world.
#[derive(Debug)]
pub struct MessageSender<M> {
    pub(super) sender: Sender<M>,
    pub(super) waker: Arc<Waker>,
}

impl<M> Clone for MessageSender<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: self.waker.clone() }
    }
}

impl<M> MessageSender<M> {
    /// Leaves a message and wakes the shard. A shard that has ended takes no notice.
    pub fn post(&self, message: M) {
        if self.sender.send(message).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

impl<W: World> Shard<W> {
    /// Where other threads leave messages.
    pub fn message_sender(&self) -> MessageSender<W::Message> {
        self.message_sender.clone()
    }

    /// Takes mail, for its share of this turn.
    pub(super) fn take_mail(&mut self) {
        for _ in 0..MAIL_A_TURN {
            let Ok(message) = self.mail.try_recv() else { return };
            self.world.receive(message, clock::now(), &mut self.wake);
        }
        self.unread_mail = true;
    }
}
