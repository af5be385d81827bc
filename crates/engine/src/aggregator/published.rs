//! What a run's own publishers send to those who play it: the source that viewers are held against.

use super::Aggregator;
use super::stage::StageAggregator;
use super::workload::{Source, WorkloadAggregator};
use crate::scenario::role::Role;
use std::ops::Range;
use weir_metrics::Unit;
use weir_metrics::common::{LATENCY, PLAYING};

/// What is sent more seconds earlier is no longer told from what is lost.
const LONGEST_LATENCY: f64 = 10.0;

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
        let stage = publisher.stages.last()?;
        let publishing = stage.window.mean(PLAYING) / publisher.presence();
        (publishing > 0.0).then(|| Source {
            bps: stage.window.actual_bps() / publishing,
            fps: publisher.client_fps_in(stage.span.window_begin..stage.window_end()),
        })
    }

    /// The same over these seconds, if it published in them: how many keyframes lie in a few seconds is chance, and both ends
    /// have the same.
    pub(super) fn published_in(&self, viewers: &WorkloadAggregator, seconds: Range<u32>) -> Option<Source> {
        let in_seconds = self.publisher_of(viewers).and_then(|publisher| {
            let bps = publisher.client_bps_in(seconds.clone())? * publisher.presence();
            Some(Source { bps, fps: publisher.client_fps_in(seconds) })
        });
        in_seconds.or_else(|| self.published(viewers))
    }

    /// The same over these seconds of a stage of `viewers`, or as much earlier as what they got may have been sent, if that is less: a
    /// keyframe that was sent just before the end comes behind it.
    pub(super) fn published_for(
        &self,
        viewers: &WorkloadAggregator,
        stage: &StageAggregator,
        seconds: Range<u32>,
    ) -> Option<Source> {
        let source = self.published_in(viewers, seconds.clone())?;
        let publisher = self.publisher_of(viewers)?;
        let latency = stage.window.figures.signed(LATENCY).value_at_quantile(0.5).max(0);
        let earlier = 1 + (latency as f64 * Unit::Micros.scale()).min(LONGEST_LATENCY) as u32;
        // A publisher's first second may be a part of one.
        let stretches = (1..=earlier).filter(|by| *by < seconds.start);
        let rates = stretches
            .filter_map(|by| publisher.client_bps_in(seconds.start - by..seconds.end - by))
            .map(|bps| bps * publisher.presence());
        Some(Source { bps: rates.fold(source.bps, f64::min), ..source })
    }

    /// The same over the window of each stage.
    pub(super) fn published_in_windows(&self, viewers: &WorkloadAggregator) -> Vec<Option<Source>> {
        let window = |stage: &StageAggregator| stage.span.window_begin..stage.window_end();
        viewers.stages.iter().map(|stage| self.published_for(viewers, stage, window(stage))).collect()
    }
}
