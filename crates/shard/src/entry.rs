//! What a shard keeps for one session.

use crate::guard::{Guard, SendProgress};
use crate::link::Link;
use crate::link_error::LinkError;
use crate::links::{EachKind, Links};
use crate::session::{Session, SessionId};
use crate::sys::AcknowledgedBytes;
use crate::timer::{Deadline, Deadlines};
use slab::Slab;
use std::time::Duration;

/// What a shard keeps for one session.
pub(crate) struct Entry<W> {
    pub(crate) id: SessionId,
    pub(crate) session: Box<dyn Session<W>>,
    pub(crate) links: Links,
    pub(crate) deadline: Deadline,
    pub(crate) low_water: usize,
    pub(crate) paused: bool,
    /// Most bytes of one read.
    pub(crate) read_limit: usize,
    /// Most bytes of one turn.
    pub(crate) turn_limit: usize,
    /// What the session gave back: it gets these bytes again before anything else is read.
    pub(crate) given_back: Vec<u8>,
    /// The end of a TLS stream that came with what was given back: the session gets it after those bytes.
    pub(crate) ended: Option<Box<LinkError>>,
    /// When an accepted link ends if nothing happens.
    pub(crate) guard: Option<Box<Guard>>,
    /// Most bytes that may wait to be sent while it is read.
    pub(crate) unsent_limit: usize,
    /// Whether it was not read because more waited than that.
    pub(crate) choked: bool,
    /// Whether it lives on without a link.
    pub(crate) stands_by: bool,
    /// Which of its links are in the shard's lists of those to be read in the next turn. Several events of one turn may
    /// ask for that, and a link that stood in a list twice would have two shares of the turn.
    pub(crate) queued: EachKind<bool>,
}

impl<W> Entry<W> {
    /// Whether more waits to be sent than it may while it is read.
    pub(crate) fn is_choked(&self) -> bool {
        let is_full = |link: &Link| link.unsent() > self.unsent_limit && !link.is_broken();
        self.links.stream.as_ref().is_some_and(is_full)
    }
}

/// The guards of a shard's sessions, as the queue of their deadlines sees them.
pub(crate) struct Guards<'a, W>(pub(crate) &'a mut Slab<Entry<W>>);

impl<W> Deadlines for Guards<'_, W> {
    fn of(&mut self, id: SessionId) -> Option<&mut Deadline> {
        let entry = self.0.get_mut(id.key as usize).filter(|entry| entry.id == id)?;
        entry.guard.as_mut().map(|guard| &mut guard.deadline)
    }
}

/// What the peer of a session's link has taken.
pub(crate) fn taken<W>(entry: &Entry<W>) -> SendProgress {
    match &entry.links.stream {
        Some(link) => SendProgress { acknowledged: link.acknowledged(), waits: link.unsent() > 0 },
        None => {
            SendProgress { acknowledged: AcknowledgedBytes { bytes: 0, ago: Duration::ZERO }, waits: false }
        }
    }
}
