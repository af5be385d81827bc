//! What a ratio of two figures is of a workload and of a stage.

use super::Scope;
use crate::figure_ratio::FigureRatio;
use crate::scenario::role::Role;
use crate::summary::{StageSummary, WorkloadSummary};
use weir_metrics::common::names;

impl FigureRatio {
    /// Over what it is judged, of a slice of a window.
    pub(super) const fn scope(self) -> Scope {
        match self {
            Self::Failed | Self::Missed | Self::Played | Self::Starved | Self::StallFree => Scope::Clients,
            Self::BitRate | Self::Frames => Scope::SourceRate,
            Self::Stalled | Self::Lost | Self::Decoded | Self::Excess(_) => Scope::Slice,
        }
    }

    /// What it is of a stage, where each stage has its own.
    pub(super) fn of_stage(self) -> Option<fn(&StageSummary) -> Option<f64>> {
        match self {
            Self::BitRate => Some(bit_rate_ratio),
            Self::Frames => Some(frame_ratio),
            _ => None,
        }
    }

    /// Whether it is of none of a workload's clients at its end, each of which still waited for a keyframe.
    pub(super) fn is_open(self, workload: &WorkloadSummary) -> bool {
        let total = |name| workload.total.total(name);
        let waiting = total(names::KEYFRAME_WAITS) - total(names::KEYFRAME_WAITS_OVER);
        self == Self::Played && waiting > 0.0 && self.of_workload(workload).is_none()
    }

    /// What it is of a whole workload.
    pub(super) fn of_workload(self, workload: &WorkloadSummary) -> Option<f64> {
        let total = |name| workload.total.total(name);
        let of = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let planned = workload.slots.planned as f64;
        match self {
            Self::Failed => of(workload.slots.failed as f64, planned),
            Self::Missed => of(workload.slots.missed as f64, planned),
            Self::Played => {
                let waiting = total(names::KEYFRAME_WAITS) - total(names::KEYFRAME_WAITS_OVER);
                of(total(names::PLAYED), planned - total(names::EXITS_BEFORE_START) - waiting)
            }
            Self::Starved => of(total(names::STARVED), planned),
            Self::StallFree => workload.stall_free_ratio,
            Self::Decoded => of(total(names::DECODED), total(names::HANDED_IN)).map(|ratio| ratio.min(1.0)),
            Self::Stalled => workload.stalled_ratio(),
            // What is lost in a ramp is lost. A publisher's stamps are of what it sent.
            Self::Lost if workload.role != Role::Publish => workload.total.lost_ratio(),
            // Of nothing there is nothing that is too much.
            Self::Excess(it) => Some(of(total(it.count), total(it.beside)).unwrap_or_default()),
            Self::Lost | Self::BitRate | Self::Frames => None,
        }
    }
}

/// Actual by expected bit rate, where that is known.
fn bit_rate_ratio(stage: &StageSummary) -> Option<f64> {
    Some(stage.actual_bps / stage.expected_bps.filter(|bps| *bps > 0.0)?)
}

/// Frames by those that the source had for all planned clients, where that is known.
fn frame_ratio(stage: &StageSummary) -> Option<f64> {
    // Of viewers of segments only witnesses count frames, and what they should have is what playlists announced.
    let announced = stage.figures.total(names::FRAMES_ANNOUNCED);
    if announced > 0.0 {
        return Some(stage.figures.total(names::FRAMES) / announced);
    }
    let by_the_clock = stage.source_fps? * stage.expected_clients() * stage.window_seconds();
    let expected = by_the_clock + stage.frames_ahead;
    (expected > 0.0).then(|| (stage.figures.total(names::FRAMES) + stage.frames_due) / expected)
}
