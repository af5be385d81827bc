//! Spans of a run in which viewers were without one of a stream's tracks: a function of what each second brought.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::common::{LAST_PICTURE, LAST_SOUND, PLAYING, STARVING, WITHOUT_PICTURES, WITHOUT_SOUND};
use weir_metrics::{Gauge, Interval, Unit, several};

/// Outages that are kept of a workload: a summary of a stream that breaks every few seconds stays readable.
const MOST: usize = 100;

/// What viewers were without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// Pictures, while the stream went on.
    Pictures,
    /// Sound, while the stream went on.
    Sound,
}

/// A span in which viewers were without something that they had got before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Without what.
    pub kind: OutageKind,
    /// When it came last, in seconds of the run: to the viewers that got it for the longest.
    pub from_seconds: f64,
    /// When no viewer was without it any more; none if that lasted to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_seconds: Option<f64>,
    /// The most viewers that were without it at the end of a second.
    pub viewers: u64,
    /// Viewers that were there at the end of that second.
    pub of_viewers: u64,
}

impl Outage {
    /// One line for people: `no picture since second 10 (20 of 20 viewers)`.
    pub fn line(&self) -> String {
        let what = match self.kind {
            OutageKind::Pictures => "picture",
            OutageKind::Sound => "sound",
        };
        let from = self.from_seconds.round();
        let span = match self.until_seconds {
            None => format!("since second {from}"),
            Some(until) => format!("from second {from} to {}", until.round()),
        };
        format!("no {what} {span} ({} of {})", self.viewers, several(self.of_viewers, "viewer"))
    }
}

/// Finds the outages of one track.
#[derive(Debug)]
pub(crate) struct TrackOutages {
    kind: OutageKind,
    /// The level of viewers without the track, and when it came last.
    gauges: [Gauge; 2],
    found: Vec<Outage>,
}

impl TrackOutages {
    /// Of pictures, and of sound.
    pub(crate) fn of_both() -> [Self; 2] {
        let of = |kind, gauges| Self { kind, gauges, found: Vec::new() };
        [
            of(OutageKind::Pictures, [WITHOUT_PICTURES, LAST_PICTURE]),
            of(OutageKind::Sound, [WITHOUT_SOUND, LAST_SOUND]),
        ]
    }

    /// Adds a second of the plan, or several that are one interval.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let level = |gauge| interval.figures.gauge(gauge);
        let [viewers, last] = self.gauges.map(level);
        let of_viewers = level(PLAYING) + level(STARVING);
        let open = self.found.last_mut().filter(|it| it.until_seconds.is_none());
        match (open, viewers) {
            (Some(open), 0) => open.until_seconds = Some(interval.end().into()),
            (Some(open), _) if viewers > open.viewers => {
                (open.viewers, open.of_viewers) = (viewers, of_viewers)
            }
            (None, 1..) if self.found.len() < MOST => self.found.push(Outage {
                kind: self.kind,
                from_seconds: last as f64 * Unit::Micros.scale(),
                until_seconds: None,
                viewers,
                of_viewers,
            }),
            _ => {}
        }
    }

    /// Those so far, in the order of time.
    pub(crate) fn found(&self) -> &[Outage] {
        &self.found
    }
}
