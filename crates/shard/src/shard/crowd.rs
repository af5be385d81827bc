//! Links that wait below their low-water marks: all of them read, or asked how much waits.

use super::Shard;
use crate::link::Link;
use crate::link_error::State;
use crate::{Edge, Event, SessionId, World, clock};
use weir_metrics::Moment;

impl<W: World> Shard<W> {
    /// Reads what waits on all links, whatever their low-water marks, and datagrams that wait, so that counts are exact now.
    /// Each session is then told of this [edge](Event::Edge), with the time at which its newest bytes came: the kernel knows it
    /// (`tcpi_last_data_recv`, to a tick of 4 ms) also of those that waited unread.
    pub fn sweep(&mut self, edge: Moment) {
        let all: Vec<SessionId> = self.entries.iter().map(|(_, entry)| entry.id).collect();
        for id in all {
            let now = clock::now();
            let link = self.stream_of(id).filter(|link| link.state == State::Open);
            let arrived = link.and_then(Link::received_ago).map(|ago| now - ago);
            self.read(id, false);
            self.catch_up(id, now);
            self.dispatch(id, Event::Edge(Edge { at: edge, arrived }));
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
