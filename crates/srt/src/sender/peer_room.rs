//! For how long the peer had no room: what of a packet's delay is the peer's, and what this side's. Knows moments, and no packet.

use std::time::Duration;
use weir_metrics::Moment;

/// How long the peer had no room in all, while it could have made some.
#[derive(Debug, Default)]
pub(super) struct PeerRoom {
    without: Duration,
    /// While there is none: up to when that is known.
    known_to: Option<Moment>,
}

impl PeerRoom {
    /// Notes what holds up to now: called before anything changes it, and behind that. What the peer could not make room for, because what
    /// it is to acknowledge next has not left this side (`is_here`), is no time of the peer's.
    pub(super) fn note(&mut self, is_full: bool, is_here: impl FnOnce() -> bool, now: Moment) {
        if !is_full {
            self.known_to = None;
            return;
        }
        // A deadline that is served late is one before what came meanwhile.
        let from = self.known_to.unwrap_or(now);
        if from < now && !is_here() {
            self.without += now.since(from);
        }
        self.known_to = Some(from.max(now));
    }

    /// A moment by a clock that stands still while the peer has no room.
    pub(super) fn by_own_clock(&self, moment: Moment) -> Moment {
        moment - self.without
    }

    /// What that clock showed, by the true one: it is as far behind as it is now.
    pub(super) fn by_true_clock(&self, shown: Moment) -> Moment {
        shown + self.without
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos((1_000_000 + millis) * 1_000_000)
    }

    #[test]
    fn only_time_in_which_the_peer_could_have_made_room_is_its_own() {
        let mut room = PeerRoom::default();
        let mut without = |is_full, is_here, millis| {
            room.note(is_full, || is_here, at(millis));
            room.without.as_millis()
        };
        assert_eq!(without(false, false, 0), 0);
        // Full from here on.
        assert_eq!(without(true, false, 100), 0);
        assert_eq!(without(true, false, 300), 200);
        // What it is to acknowledge lay here all the while.
        assert_eq!(without(true, true, 700), 200);
        assert_eq!(without(true, false, 750), 250);
        // Time does not run back, and nothing is counted twice.
        assert_eq!(without(true, false, 720), 250);
        assert_eq!(without(true, false, 760), 260);
        assert_eq!(without(false, false, 760), 260);
        assert_eq!(without(true, false, 5_000), 260, "between the two it had room");
    }

    #[test]
    fn a_delay_by_the_own_clock_is_without_that_of_the_peer() {
        let mut room = PeerRoom::default();
        let queued = room.by_own_clock(at(0));
        room.note(true, || false, at(0));
        room.note(true, || false, at(400));
        assert_eq!(room.by_true_clock(queued), at(400));
        let queued = room.by_own_clock(at(400));
        assert_eq!(room.by_true_clock(queued), at(400));
    }
}
