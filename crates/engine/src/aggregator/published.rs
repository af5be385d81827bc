//! What a run's own publishers send to those who play it: the source that viewers are held against.

use super::Aggregator;
use super::stage::StageAggregator;
use super::workload::{Source, WorkloadAggregator};
use crate::scenario::role::Role;
use std::ops::Range;
use weir_metrics::common::{FRAMES, PLAYING};

impl Aggregator {
    /// The workload of this run that publishes all that `viewers` play, if there is one.
    pub(super) fn publisher_of(&self, viewers: &WorkloadAggregator) -> Option<&WorkloadAggregator> {
        self.workloads.iter().find(|publishers| {
            publishers.facts.role == Role::Publish
                && viewers.facts.targets.iter().all(|target| publishers.facts.targets.contains(target))
        })
    }

    /// What the run's own publisher of all that `viewers` play sends, if there is one: over the window of its last
    /// stage.
    pub(super) fn published(&self, viewers: &WorkloadAggregator) -> Option<Source> {
        let publisher = self.publisher_of(viewers)?;
        let window = &publisher.stages.last()?.window;
        let publishing = window.mean(PLAYING) / publisher.presence();
        (publishing > 0.0).then(|| Source {
            bps: window.actual_bps() / publishing,
            fps: Some(window.figures.counter(FRAMES) as f64 / f64::from(window.seconds.max(1)) / publishing)
                .filter(|fps| *fps > 0.0),
        })
    }

    /// The same over these seconds, if it published in them: how many keyframes lie in a few seconds is chance, and both ends
    /// have the same.
    pub(super) fn published_in(&self, viewers: &WorkloadAggregator, seconds: Range<u32>) -> Option<Source> {
        let on_the_whole = self.published(viewers);
        let bps = self
            .publisher_of(viewers)
            .and_then(|publisher| publisher.client_bps_in(seconds).map(|bps| bps * publisher.presence()));
        bps.map(|bps| Source { bps, fps: on_the_whole.and_then(|it| it.fps) }).or(on_the_whole)
    }

    /// The same over the window of each stage of `viewers`.
    pub(super) fn published_in_windows(&self, viewers: &WorkloadAggregator) -> Vec<Option<Source>> {
        let of =
            |stage: &StageAggregator| self.published_in(viewers, stage.span.window_begin..stage.window_end());
        viewers.stages.iter().map(of).collect()
    }
}
