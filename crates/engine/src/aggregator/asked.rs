//! What is asked of a run by default once it is known how its servers and sources send.

use super::{Aggregator, WorkloadAggregator};
use crate::scenario::{Scenario, WorkloadSpec};
use crate::seconds::bursts;
use crate::summary::{Summary, WorkloadSummary};
use crate::threshold::Threshold;
use crate::verdict::decoding;
use std::collections::BTreeMap;
use weir_metrics::common::ARRIVAL_GAP;
use weir_protocols::Circumstances;
use weir_protocols::asked::FRAME_RATE;
use weir_setting::BUFFER;

impl Aggregator {
    /// All thresholds but those defaults that say nothing of these servers and sources, with a warning of each server that is let off.
    pub(super) fn asked(&self, scenario: &Scenario, summary: &mut Summary) -> Vec<Threshold> {
        let decoded = self.workloads.iter().zip(&scenario.workloads);
        let decoded = decoded.filter(|(_, spec)| weir_protocols::are_decoded(&spec.options));
        let undecoded = decoded.flat_map(|(it, _)| decoding::warnings(&it.facts.name, &it.total.figures));
        summary.warnings.extend(undecoded);
        let bursts = self.bursts_beyond_buffers(scenario);
        summary.warnings.extend(bursts.iter().map(|(number, [period, buffer])| {
            format!(
                "{}: the server sends in bursts of {period:.1} s, longer than the {buffer} s that players buffer: that they stand still between bursts is not judged; {} outlasts them",
                self.workloads[usize::from(*number)].facts.name,
                BUFFER.to(format!("{:.0}s", (2.0 * period).ceil())),
            )
        }));
        let in_bursts: Vec<u16> = bursts.keys().copied().collect();
        let uneven = [&in_bursts[..], &uneven(scenario, &summary.workloads)].concat();
        let asked = scenario.asked_of(summary.run.agents.len() > 1);
        let fitting = asked.into_iter().filter_map(|it| match () {
            () if it.is_about_growing_drift() => it.without(&uneven),
            () if it.is_about_stalls() => it.without(&in_bursts),
            () => Some(it),
        });
        fitting.collect()
    }

    /// The workloads whose server sends in bursts that are longer than what their players buffer, both in seconds.
    fn bursts_beyond_buffers(&self, scenario: &Scenario) -> BTreeMap<u16, [f64; 2]> {
        let of = |(number, workload, spec): (u16, &WorkloadAggregator, &WorkloadSpec)| {
            let buffer = weir_protocols::buffer(&spec.options)?.as_secs_f64();
            let period = bursts::period(workload.total.figures.spread(ARRIVAL_GAP))?;
            (workload.views_streams() && period > buffer).then_some((number, [period, buffer]))
        };
        let workloads = self.workloads.iter().zip(&scenario.workloads);
        (0..).zip(workloads).filter_map(|(number, (workload, spec))| of((number, workload, spec))).collect()
    }
}

/// The workloads whose viewers count frames, and the frame rate of whose source is not known in some stage: where no picture comes
/// `drift` grows with the clock, and a source that has fewer of them than before does not fall behind.
fn uneven(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Vec<u16> {
    let counts_frames = |spec: &WorkloadSpec| {
        let protocol = spec.play.0.first().and_then(|url| weir_protocols::of_url(url));
        let play = protocol.and_then(|protocol| protocol.play.as_ref());
        play.is_some_and(|play| {
            (play.asked)(&spec.options, &Circumstances::default()).contains(&FRAME_RATE.of_run)
        })
    };
    let is_unknown = |it: &WorkloadSummary| it.stages.iter().any(|stage| stage.source_fps.is_none());
    let workloads = (0..).zip(scenario.workloads.iter().zip(workloads));
    workloads
        .filter(|(_, (spec, it))| counts_frames(spec) && is_unknown(it))
        .map(|(number, _)| number)
        .collect()
}
