//! In which second of its stage a threshold's figure was farthest on the wrong side.

use super::{FigureRatio, ServerLoad, Statistic, Subject, Threshold};
use crate::summary::{Point, Summary};
use weir_metrics::common::names;

impl Threshold {
    /// Adds the second to the threshold's result, where the seconds of its figure are kept and the stage has several.
    pub(crate) fn find_second(&self, summary: &mut Summary) {
        let Some(result) = summary.thresholds.iter_mut().find(|it| it.expression == self.text) else {
            return;
        };
        let Some(place) = &mut result.place else { return };
        let workload = usize::from(place.workload);
        let stages = summary.workloads.get(workload).map_or(&[][..], |it| &it.stages);
        let Some(position) = stages.iter().position(|it| it.stage == place.stage) else { return };
        let stage = &stages[position];
        // What begins in the ramp is in the figure as well. A second is of the last stage that has begun in it or before.
        let (begin, next) = (stage.begin_seconds.floor(), stages.get(position + 1));
        let end = next.map_or(f64::INFINITY, |it| it.begin_seconds.floor());
        let is_in = |point: &&Point| match &self.subject {
            Subject::Figure(name) if name == names::STARTUP => {
                (begin..end).contains(&f64::from(point.second))
            }
            _ => (stage.window_begin_seconds..stage.window_end_seconds).contains(&point.second),
        };
        let seconds = summary.series.iter().filter(is_in);
        let values = seconds.filter_map(|point| Some((point.second, self.of_second(point, workload)?)));
        let worst = values.reduce(|a, b| if self.worse(b.1, a.1) { b } else { a });
        place.second = worst.map(|(second, _)| second);
    }

    /// What the figure is of one second, where that is kept.
    fn of_second(&self, point: &Point, workload: usize) -> Option<f64> {
        if self.server_load() == Some(&ServerLoad::Cpu) {
            let each = point.target_cpu_percent.iter().copied();
            return each.reduce(|a, b| if self.worse(b, a) { b } else { a });
        }
        let point = point.workloads.get(workload)?;
        match &self.subject {
            Subject::Ratio(FigureRatio::BitRate) => {
                Some(point.actual_bps / point.expected_bps.filter(|bps| *bps > 0.0)?)
            }
            Subject::Figure(name) => {
                let (median, high) = point.percentiles(name);
                match self.statistic? {
                    Statistic::P50 | Statistic::Mean => median,
                    Statistic::P90 | Statistic::P95 | Statistic::P99 | Statistic::P999 | Statistic::Max => {
                        high
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }
}
