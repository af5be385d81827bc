//! Bulk TCP load beside a scenario: the scenario's stages are run without it, then again with it.

use crate::plan::Schedule;
use crate::scenario::{OneOrMany, Scenario, ScenarioError, Span, StageSpec, WorkloadSpec};
use std::time::Duration;
use weir_protocols::Given;

impl Scenario {
    /// The scenario with its background laid out: every workload runs its stages twice, and the streams are there the
    /// second time. A workload that ends before the others holds its last stage until they end.
    ///
    /// # Errors
    /// A schedule that cannot be planned, or a background without streams or without an address.
    pub fn with_background(mut self) -> Result<Self, ScenarioError> {
        let Some(background) = self.background.take() else { return Ok(self) };
        let (to, _) = background.check()?;
        if self.workloads.iter().any(|it| it.output().is_some_and(|output| output.count.is_some())) {
            let words =
                "a publisher with a `count` would have sent all before the streams come; leave `count` out";
            return Err(ScenarioError::Background(words));
        }
        let schedules = self.schedules()?;
        let length = self.plan()?.length;
        for (spec, schedule) in self.workloads.iter_mut().zip(&schedules) {
            if !schedule.until_the_end {
                spec.stages = twice(schedule, length);
                (spec.clients, spec.duration) = (None, None);
            }
        }
        let url = OneOrMany(vec![weir_clients::BulkOptions::url(&to)]);
        let streams = WorkloadSpec {
            delay: Some(length.into()),
            stages: vec![stage(background.tcp_streams, Duration::ZERO, length)],
            options: Given::default().with("block", background.block.text()),
            background: true,
            ..WorkloadSpec::default()
        };
        let name = |name: &str| Some(name.to_owned());
        let sent = WorkloadSpec { publish: url.clone(), name: name("background, sent"), ..streams.clone() };
        self.workloads.push(sent);
        if background.both_ways {
            self.workloads.push(WorkloadSpec { play: url, name: name("background, received"), ..streams });
        }
        Ok(self)
    }
}

/// The stages of a schedule until `length`, and once more.
fn twice(schedule: &Schedule, length: Duration) -> Vec<StageSpec> {
    let took = schedule.stages.iter().map(|stage| stage.ramp + stage.hold).sum::<Duration>();
    let rest = length.saturating_sub(schedule.delay + took);
    let mut first: Vec<_> = schedule.stages.iter().map(|it| stage(it.clients, it.ramp, it.hold)).collect();
    let mut again = first.clone();
    if let ([.., last], [begin, ..]) = (&mut first[..], &mut again[..]) {
        last.hold = (last.hold.get() + rest).into();
        if last.clients == begin.clients {
            // They are there already.
            *begin = stage(
                begin.clients,
                Duration::ZERO,
                begin.hold.get() + begin.ramp.as_ref().map_or(Duration::ZERO, Span::get),
            );
        }
    }
    first.extend(again);
    first
}

fn stage(clients: u32, ramp: Duration, hold: Duration) -> StageSpec {
    StageSpec { clients, hold: hold.into(), ramp: Some(ramp.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
background: {to: '10.0.0.2:5201', tcp_streams: 3, both_ways: true, block: 512KiB}
workloads:
  - publish: rtmp://h/a/x
  - play: rtmp://h/a/x
    delay: 1s
    stages: [{clients: 2, hold: 5s, ramp: 1s}, {clients: 4, hold: 5s, ramp: 1s}]
  - play: rtmp://h/a/x
    clients: 7
    arrival: 7/s
    duration: 4s
";

    #[test]
    fn a_scenario_is_run_without_and_with_its_background() {
        let scenario = Scenario::parse(TEXT).unwrap().with_background().unwrap();
        assert_eq!(scenario.background, None);
        let plan = scenario.plan().unwrap();
        assert_eq!(plan.length, Duration::from_secs(26));
        let stages = |workload| {
            let of = plan.stages.iter().filter(move |span| span.workload == workload);
            of.map(|span| (span.clients, span.begin.as_secs(), span.end.as_secs())).collect::<Vec<_>>()
        };
        assert_eq!(stages(0), [(1, 0, 26)]);
        assert_eq!(stages(1), [(2, 1, 7), (4, 7, 13), (2, 13, 19), (4, 19, 25)]);
        assert_eq!(stages(2), [(7, 0, 13), (7, 13, 18)]);
        assert_eq!((stages(3), stages(4)), (vec![(3, 13, 26)], vec![(3, 13, 26)]));
        assert!(scenario.workloads[3].background && !scenario.workloads[2].background);
        // What is written down plans the same, and is not doubled once more.
        let again = scenario.clone().with_background().unwrap();
        assert_eq!(again.plan().unwrap(), plan);
    }

    #[test]
    fn a_background_of_nothing_is_refused() {
        for (good, bad) in
            [("tcp_streams: 3", "tcp_streams: 0"), ("512KiB", "2MiB"), ("to: '10.0.0.2:5201', ", "")]
        {
            let scenario = Scenario::parse(&TEXT.replace(good, bad)).unwrap();
            assert!(matches!(scenario.with_background(), Err(ScenarioError::Background(_))), "{bad}");
        }
    }
}
