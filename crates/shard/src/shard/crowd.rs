//! Links that wait below their low-water marks: all of them read, or asked how much waits.

use super::Shard;
use crate::{SessionId, World, clock};

impl<W: World> Shard<W> {
    /// Reads what waits on links that are below their low-water mark, and datagrams that wait, so that counts are exact
    /// now.
    pub fn sweep(&mut self) {
        let crowd: Vec<SessionId> =
            self.entries.iter().filter(|(_, entry)| entry.low_water > 1).map(|(_, entry)| entry.id).collect();
        for id in crowd {
            self.read(id, false);
        }
        let all: Vec<SessionId> = self.entries.iter().map(|(_, entry)| entry.id).collect();
        let now = clock::now();
        for id in all {
            self.catch_up(id, now);
        }
    }

    /// Asks links that wait below their low-water mark how many bytes wait, without reading them. To ask costs a system
    /// call, so at most `most` are asked, spread evenly over all of them. `each` is called with the session, the bytes (as they
    /// are on the link), and for how many sessions this one stands.
    pub fn unread(&self, most: usize, mut each: impl FnMut(SessionId, usize, usize)) {
        let waits = |low_water: usize, paused: bool| low_water > 1 && !paused;
        let waiting = || {
            self.entries.iter().map(|(_, entry)| entry).filter(|entry| waits(entry.low_water, entry.paused))
        };
        let stride = waiting().count().div_ceil(most.max(1)).max(1);
        for entry in waiting().step_by(stride) {
            if let Some(link) = &entry.links.stream {
                each(entry.id, link.unread(), stride);
            }
        }
    }
}
