//! Playlists and segments as a server sends them, read from bytes: what fuzz targets share with tests. Nothing here is part of a run.

use super::inspector::{AnnouncedUnit, Inspector, UnitKind};
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

/// Looks into the units that are in these bytes. The first byte of each says what it is and how long; nothing in it may take more than is there.
pub fn segments(mut bytes: &[u8]) {
    let mut inspector = Inspector::default();
    for number in 0.. {
        let [kind, high, low, rest @ ..] = bytes else { return };
        let (unit, behind) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes([*high, *low]))));
        bytes = behind;
        let kind = [UnitKind::Map, UnitKind::Segment, UnitKind::Part][usize::from(*kind) % 3];
        inspector.begin(kind);
        unit.chunks(1 + usize::from(*low)).for_each(|piece| inspector.take(piece));
        if kind == UnitKind::Map {
            inspector.finish_map();
            continue;
        }
        let duration = Duration::from_millis(u64::from(*high) * 10);
        let announced = AnnouncedUnit { duration, number, is_discontinuous: *low == 7 };
        if let Some(seen) = inspector.finish(announced) {
            // A sample that is described takes no byte if all are alike; their number is bounded for each fragment, of 48 bytes at the least
            // (`moof`, `traf`, `tfhd` and `trun`).
            assert!(seen.keyframes <= seen.frames && seen.frames <= (unit.len() as u64 / 48 + 1) << 16);
        }
    }
}
