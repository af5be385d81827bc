//! What is asked by default: one table for runs and for searches, each with a limit of its own.

use crate::given::Given;
use crate::{link, viewer};

/// A default threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What a run is asked. It has clients that fail for reasons of their own, and keyframes at the edges of its windows.
    pub of_run: &'static str,
    /// What each slice of a search for capacity is asked: the last load that a server carries shows none of what tells that the
    /// next is too much.
    pub of_slice: &'static str,
}

/// Clients that fail. One in a hundred may: most published limits for servers under load allow that.
pub const FAILED: Asked = Asked { of_run: "failed.ratio <= 1%", of_slice: "failed.ratio <= 0.1%" };

/// Clients that do what the plan wants.
pub const PLAYED: Asked = Asked { of_run: "played.ratio >= 99%", of_slice: "played.ratio >= 99.9%" };

/// Viewers that read the rate of their source off its stream, or are told it. A tenth below it is more than the scatter of a
/// window of ten seconds (a keyframe more or less at its edges), and less than a viewer in seven that gets nothing.
pub const BIT_RATE: Asked = Asked { of_run: "bitrate.ratio >= 90%", of_slice: "bitrate.ratio >= 98%" };

/// Viewers whose source has frames at a rate that is known. A server that leaves out pictures, or sends none any more, may bring
/// nearly as many bytes.
pub const FRAME_RATE: Asked = Asked { of_run: "frames.ratio >= 90%", of_slice: "frames.ratio >= 98%" };

/// Time that viewers stand still, of the time that they are there. In a minute it is a stall of half a second for all of them, or one
/// of a minute for one viewer in a hundred.
pub const STALLED: Asked = Asked { of_run: "stalled.ratio <= 1%", of_slice: "stalled.ratio <= 0.1%" };

/// Viewers that get no media for their timeout.
pub const STARVED: Asked = Asked { of_run: "starved.ratio <= 1%", of_slice: "starved.ratio <= 0.1%" };

/// A span in which no viewer received anything is what a person would call an outage, however long the rest of the run is.
pub const NO_BLACKOUT: Asked = Asked { of_run: "blackouts == 0", of_slice: "blackouts == 0" };

/// What viewers of a stream are asked, beside what all clients are.
pub const OF_VIEWERS: [Asked; 5] = [BIT_RATE, FRAME_RATE, STALLED, STARVED, NO_BLACKOUT];

/// The same of viewers that count no frames.
pub(crate) const OF_VIEWERS_OF_PACKETS: [Asked; 4] = [BIT_RATE, STALLED, STARVED, NO_BLACKOUT];

/// The same of viewers of segments, which come at moments of the viewer's own: between two of them no rate says anything.
pub(crate) const OF_VIEWERS_OF_SEGMENTS: [Asked; 2] = [STALLED, STARVED];

/// The same of viewers whose link is narrower than their source may be: what it drops is no server's doing.
pub(crate) const OF_NARROW_VIEWERS: [Asked; 3] = [STALLED, STARVED, NO_BLACKOUT];

/// What all clients are asked.
pub const OF_ALL: [Asked; 2] = [FAILED, PLAYED];

/// Viewers that are decoded: one frame in a hundred may be damaged, as in all that is lost for good.
pub const DECODED: &str = "decoded.ratio >= 99%";

/// What viewers with these options notice in a search for a capacity.
pub fn of_searched<'a>(mut viewers: impl Iterator<Item = &'a Given>) -> &'static [Asked] {
    if viewers.any(link::is_narrow) { &OF_NARROW_VIEWERS } else { &OF_VIEWERS }
}

/// What viewers with these options are asked in a run, with what only their protocol promises.
pub(crate) fn of_viewers(given: &Given, asked: &[Asked], promised: &[&'static str]) -> Vec<&'static str> {
    let decoded = viewer::are_decoded(given).then_some(DECODED);
    of_run(asked, promised).into_iter().chain(decoded).collect()
}

/// What is asked of a run, with what only its protocol promises.
pub(crate) fn of_run(asked: &[Asked], promised: &[&'static str]) -> Vec<&'static str> {
    asked.iter().map(|it| it.of_run).chain(promised.iter().copied()).collect()
}
