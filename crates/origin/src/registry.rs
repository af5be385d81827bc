//! The publications of all workers by name. Read when a publication or a viewer begins or ends, never for a packet.

use crate::pictures::Pictures;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names in use, and the numbers given out.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    names: Mutex<HashMap<Arc<str>, Entry>>,
    publications: AtomicU64,
    links: AtomicU64,
    viewers: AtomicU64,
    publishers: AtomicU64,
}

/// A publication under a name.
#[derive(Clone, Copy, Debug)]
struct Entry {
    publication: u64,
    /// Its pictures, once there were any.
    pictures: Option<Pictures>,
}

impl Registry {
    /// Takes a name for a publication, which gets a number. `None`: another one has it.
    pub(crate) fn claim(&self, name: &Arc<str>) -> Option<u64> {
        let mut names = self.names();
        if names.contains_key(name) {
            return None;
        }
        let publication = next(&self.publications);
        names.insert(name.clone(), Entry { publication, pictures: None });
        Some(publication)
    }

    /// Gives the name of a publication free.
    pub(crate) fn release(&self, name: &str, publication: u64) {
        let mut names = self.names();
        if names.get(name).is_some_and(|entry| entry.publication == publication) {
            names.remove(name);
        }
    }

    /// Counts a reader of a stream that plays while it has any.
    pub(crate) fn attend(&self, audience: &AtomicU64) {
        let _names = self.names();
        audience.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives the name of a publication free if no reader is left, nor comes at this moment.
    pub(crate) fn release_unattended(&self, name: &str, publication: u64, audience: &AtomicU64) -> bool {
        let mut names = self.names();
        let unattended = audience.load(Ordering::Relaxed) == 0;
        if unattended && names.get(name).is_some_and(|entry| entry.publication == publication) {
            names.remove(name);
        }
        unattended
    }

    /// Whether someone publishes under a name.
    pub(crate) fn is_live(&self, name: &str) -> bool {
        self.names().contains_key(name)
    }

    /// Says of which pictures a publication is.
    pub(crate) fn describe(&self, name: &str, publication: u64, pictures: Option<Pictures>) {
        if let Some(entry) = self.names().get_mut(name).filter(|entry| entry.publication == publication) {
            entry.pictures = pictures;
        }
    }

    /// The pictures that are published under a name, where that is known.
    pub(crate) fn pictures(&self, name: &str) -> Option<Pictures> {
        self.names().get(name)?.pictures
    }

    pub(crate) fn next_link(&self) -> u64 {
        next(&self.links)
    }

    pub(crate) fn next_viewer(&self) -> u64 {
        next(&self.viewers)
    }

    pub(crate) fn next_publisher(&self) -> u64 {
        next(&self.publishers)
    }

    fn names(&self) -> MutexGuard<'_, HashMap<Arc<str>, Entry>> {
        // No code panics while it holds the lock; if it did, the map would still be whole.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn next(counter: &AtomicU64) -> u64 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}
