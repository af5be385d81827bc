//! What drift says of the clocks of sources, and what is left of it to be held against servers.

use super::delays::growths;
use super::{Aggregator, WorkloadAggregator};
use crate::scenario::facts::host;
use crate::scenario::role::Role;
use crate::summary::WorkloadSummary;
use weir_metrics::several;

impl Aggregator {
    /// Says by how much the viewers of each stage fall behind, with a line on each source that is let off.
    pub(super) fn set_growths(&self, summaries: &mut [WorkloadSummary]) -> Vec<String> {
        let mut lines = Vec::new();
        for (workload, summary) in self.workloads.iter().zip(summaries) {
            let stages: Vec<_> = workload.stages.iter().map(|it| (&it.span, &it.delays)).collect();
            let growths = growths(&stages, self.publishes_to(workload));
            for (row, growth) in summary.stages.iter_mut().zip(growths) {
                let Some(growth) = growth else { continue };
                row.drift_growth_seconds = Some(growth.seconds);
                row.source_clock_ppm = growth.clock.map(|clock| clock * 1e6);
                lines.extend(growth.clock.map(|clock| {
                    format!(
                        "{}, stage of {}: media comes {:.2} % slower than its timestamps say, evenly and to all viewers: that is taken for the source's clock, and drift.growth is what lies beyond it; a lighter stage before this one would show whether it is the server",
                        summary.name,
                        several(row.clients.into(), "client"),
                        clock * 100.0
                    )
                }));
            }
        }
        lines
    }

    /// Whether the run publishes what these viewers play: at the same URLs, or for another protocol at the same host.
    fn publishes_to(&self, viewers: &WorkloadAggregator) -> bool {
        let hosts = |it: &WorkloadAggregator| -> Vec<String> {
            it.facts.targets.iter().filter_map(|url| host(url)).map(str::to_owned).collect()
        };
        let of_viewers = hosts(viewers);
        let is_other = |it: &&WorkloadAggregator| {
            let is_stream = it.facts.role == Role::Publish && it.facts.frame_time_seconds.is_some();
            is_stream && !it.facts.background && it.facts.protocol != viewers.facts.protocol
        };
        let mut others = self.workloads.iter().filter(is_other);
        self.publisher_of(viewers).is_some()
            || others.any(|it| hosts(it).iter().any(|host| of_viewers.contains(host)))
    }
}
