//! Playlists as a server sends them, read from bytes: what the fuzz target `playlists` shares with a test. Nothing here is part of a run.

use super::playlist::Playlist;
use super::schedule::{MOST_QUEUED_OF_ENDED, Schedule};
use super::variables::Variables;
use std::time::Duration;
use weir_metrics::Moment;

/// Gives a viewer's schedule the playlists that are in these bytes, cut at each 0, one a second. Little is kept of them, and none that
/// brought nothing is asked for again without a pause.
pub fn playlists(bytes: &[u8]) {
    let mut now = Moment::from_nanos(1_000_000_000_000);
    let mut schedule = Schedule::new(now, true);
    let mut variables = Variables::default();
    for text in bytes.split(|byte| *byte == 0) {
        now = now + Duration::from_secs(1);
        let directives = schedule.directives(now);
        let queued = schedule.queued();
        let mut has_changed = false;
        match Playlist::parse(text, &variables, "a=1") {
            Ok(Playlist::Media(playlist)) => {
                has_changed = schedule.take(&playlist, directives, now, now).age.is_zero();
            }
            // A viewer fails; another one begins here.
            Ok(Playlist::Multivariant(multivariant)) => {
                assert!(!multivariant.variants.is_empty());
                variables = multivariant.variables;
                schedule = Schedule::new(now, true);
            }
            Err(_) => schedule.refused(now),
        }
        assert!(schedule.queued() <= MOST_QUEUED_OF_ENDED);
        let asks_at_once = schedule.reload_at(now, false).is_some_and(|at| at <= now);
        assert!(!asks_at_once || has_changed || schedule.queued() != queued);
        schedule.pop();
    }
}
