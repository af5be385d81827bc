//! A threshold against what was measured: the value that is farthest on the wrong side, and whether it holds.

use super::{FigureRatio, Statistic, Subject, Threshold};
use crate::machine::growth::ServerGrowth;
use crate::summary::{
    Figures, StageSummary, Summary, ThresholdPlace, ThresholdResult, Value, WorkloadSummary,
};
use weir_setting::THRESHOLD;

/// Shortest window whose rate is asked for by default: one of a few seconds holds a keyframe more or less.
const SHORTEST_WINDOW_SECONDS: f64 = 10.0;

impl Threshold {
    /// Compares a finished run, whatever the threshold is on. What was not measured fails.
    pub(crate) fn judge_run(&self, summary: &Summary) -> ThresholdResult {
        match &self.subject {
            Subject::Growth(growth) => self.judge_value(|_| largest_growth(*growth, summary)),
            // After a restart some may never have been connected again: then there is no value.
            Subject::Reconnected => self.judge_value(|_| summary.reconnected_seconds()),
            Subject::Ratio(_) | Subject::Load(_) | Subject::Figure(_) => {
                let result = self.judge(&summary.workloads);
                // What holds of the others is not known of these.
                if result.passed && self.is_open(summary) {
                    ThresholdResult { value: None, passed: false, place: None, ..result }
                } else {
                    result
                }
            }
        }
    }

    /// Whether it asks something of a workload whose clients all still waited for a keyframe at the end, so that it is not known.
    pub(crate) fn is_open(&self, summary: &Summary) -> bool {
        let Subject::Ratio(ratio) = self.subject else { return false };
        self.asked(&summary.workloads).any(|(_, workload)| ratio.is_open(workload))
    }

    /// The workloads that it is about, with their positions.
    fn asked<'w>(
        &self,
        workloads: &'w [WorkloadSummary],
    ) -> impl Iterator<Item = (u16, &'w WorkloadSummary)> {
        let is_asked = |number: &u16| self.default_of.as_ref().is_none_or(|of| of.contains(number));
        (0..).zip(workloads).filter(move |(number, it)| !it.background && is_asked(number))
    }

    /// Compares the total that `look_up` knows under the figure's name. None fails.
    pub fn judge_total(&self, look_up: impl FnOnce(&str) -> Option<u64>) -> ThresholdResult {
        self.judge_value(|figure| look_up(figure).map(|total| total as f64))
    }

    /// Compares the value, in base units, that `look_up` knows under the figure's name. None fails.
    pub fn judge_value(&self, look_up: impl FnOnce(&str) -> Option<f64>) -> ThresholdResult {
        let value = look_up(&self.name);
        ThresholdResult {
            expression: self.text.clone(),
            value,
            passed: value.is_some_and(|value| self.holds(value)),
            default: self.is_default(),
            place: None,
            words: None,
        }
    }

    /// Compares these workloads, finished or so far, or one slice of them: every stage of every workload that has the figure must hold. The
    /// value is the one farthest on the wrong side. Nothing measured fails.
    pub fn judge(&self, workloads: &[WorkloadSummary]) -> ThresholdResult {
        let asked: Vec<_> = self.asked(workloads).collect();
        let void = asked
            .iter()
            .flat_map(|(_, it)| &it.stages)
            .any(|stage| stage.window_is_void && self.is_rate_of(stage));
        // A process of which nothing is known may have used anything: what the others used does not make up for it.
        let is_unheard = self.server_load().is_some()
            && asked
                .iter()
                .flat_map(|(_, it)| &it.stages)
                .any(|it| it.host.is_some() && it.targets.is_empty() || !it.unheard.is_empty());
        let values = asked
            .iter()
            .filter(|_| !is_unheard)
            .flat_map(|(number, workload)| self.values(workload).into_iter().map(move |it| (*number, it)));
        let worst = values.reduce(|a, b| if self.worse(b.1.value, a.1.value) { b } else { a });
        let value = worst.map(|(_, measured)| measured.value);
        ThresholdResult {
            expression: self.text.clone(),
            value,
            passed: value.is_some_and(|value| self.holds(value)) && !void,
            default: self.is_default(),
            place: worst.and_then(|(workload, measured)| {
                Some(ThresholdPlace { workload, stage: measured.stage?, second: None })
            }),
            words: None,
        }
    }

    /// Whether it is about a rate that this stage has.
    fn is_rate_of(&self, stage: &StageSummary) -> bool {
        match self.statistic {
            Some(Statistic::Rate) => self.pick(&stage.figures).is_some(),
            Some(Statistic::Ratio) => {
                let ratio = FigureRatio::BitRate;
                let is_known = ratio.of_stage().is_some_and(|of| of(stage).is_some());
                self.subject == Subject::Ratio(ratio) && self.asks(stage) && is_known
            }
            _ => false,
        }
    }

    /// Whether it asks for the rate of this stage's window: by default only if that is long enough.
    fn asks(&self, stage: &StageSummary) -> bool {
        !self.is_default() || stage.window_seconds() >= SHORTEST_WINDOW_SECONDS
    }

    /// One line on a default that is not asked of stages that have its value, since their windows are too short.
    pub(crate) fn unasked(&self, workloads: &[WorkloadSummary]) -> Option<String> {
        let of = self.default_of.as_ref()?;
        let Subject::Ratio(ratio) = self.subject else { return None };
        let ratio = ratio.of_stage()?;
        let workloads = (0..).zip(workloads).filter(|(number, _)| of.contains(number));
        let names: Vec<_> = workloads
            .filter(|(_, it)| it.stages.iter().any(|stage| !self.asks(stage) && ratio(stage).is_some()))
            .map(|(_, it)| it.name.as_str())
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "{}: `{}` is not asked by default of windows under {SHORTEST_WINDOW_SECONDS} s: hold each stage for that long beyond the warm-up, or ask with {}",
                names.join(", "),
                self.text,
                THRESHOLD.to(format!("'{}'", self.text))
            )
        })
    }

    fn values(&self, workload: &WorkloadSummary) -> Vec<MeasuredValue> {
        let of_stage = |stage: &StageSummary| {
            let stage = stage.stage;
            move |value| MeasuredValue { value, stage: Some(stage) }
        };
        if let Subject::Ratio(ratio) = self.subject {
            let value = match ratio.of_stage() {
                Some(of_stage) => self.worst_stage(workload, of_stage),
                None => ratio.of_workload(workload).map(|value| MeasuredValue { value, stage: None }),
            };
            return value.into_iter().collect();
        }
        if self.is_about_growing_drift() {
            return self.worst_stage(workload, |stage| stage.drift_growth_seconds).into_iter().collect();
        }
        if let Some(load) = self.server_load() {
            let windows = workload.stages.iter().filter(|stage| stage.window_seconds() > 0.0);
            let highest = self.statistic == Some(Statistic::Max);
            let values = windows.flat_map(|stage| {
                let values = stage.targets.iter().filter_map(|it| load.value(it, highest));
                values.map(of_stage(stage)).collect::<Vec<_>>()
            });
            return values.collect();
        }
        let measured = workload.stages.iter().filter(|stage| {
            // What begins in a ramp has its distributions before the window; a rate or a level has none.
            stage.window_seconds() > 0.0
                || self.find(&stage.figures).is_some_and(|it| matches!(it.value, Value::Spread(_)))
        });
        let stages = measured.filter_map(|stage| self.pick(&stage.figures).map(of_stage(stage)));
        // Counters are judged over the whole run, ramps included: what is lost in a ramp is lost.
        match self.statistic {
            None | Some(Statistic::Count) => self
                .pick(&workload.total)
                .map_or_else(|| stages.collect(), |value| vec![MeasuredValue { value, stage: None }]),
            Some(_) => stages.collect(),
        }
    }

    /// The value of the stage that is farthest on the wrong side.
    fn worst_stage(
        &self,
        workload: &WorkloadSummary,
        ratio: impl Fn(&StageSummary) -> Option<f64>,
    ) -> Option<MeasuredValue> {
        let asked = workload.stages.iter().filter(|stage| self.asks(stage));
        let values =
            asked.filter_map(|stage| Some(MeasuredValue { value: ratio(stage)?, stage: Some(stage.stage) }));
        values.reduce(|a, b| if self.worse(b.value, a.value) { b } else { a })
    }

    fn pick(&self, figures: &Figures) -> Option<f64> {
        let value = &self.find(figures)?.value;
        Some(match (value, self.statistic) {
            (Value::Counter { total, .. }, None | Some(Statistic::Count)) => *total,
            (Value::Counter { per_second, .. }, Some(Statistic::Rate)) => *per_second,
            (Value::Gauge { max, .. }, Some(Statistic::Max)) => *max,
            (Value::Gauge { mean, .. }, _) => *mean,
            (Value::Spread(spread), Some(statistic)) if spread.count > 0 || statistic == Statistic::Count => {
                match statistic {
                    Statistic::Count => spread.count as f64,
                    Statistic::Min => spread.min,
                    Statistic::Mean => spread.mean,
                    Statistic::P50 => spread.p50,
                    Statistic::P90 => spread.p90,
                    Statistic::P95 => spread.p95,
                    Statistic::P99 => spread.p99,
                    Statistic::P999 => spread.p999,
                    Statistic::Max => spread.max,
                    Statistic::Rate | Statistic::Ratio | Statistic::Growth => return None,
                }
            }
            _ => return None,
        })
    }
}

/// The largest growth of the watched processes that the run cannot rule out; none where one of them was not heard of any more.
fn largest_growth(growth: ServerGrowth, summary: &Summary) -> Option<f64> {
    let mut stages = summary.workloads.iter().flat_map(|it| &it.stages);
    let is_unheard = stages.any(|it| !it.unheard.is_empty());
    let bounds = summary.growth.iter().filter(|_| !is_unheard);
    bounds.filter_map(|it| growth.bound(it)).reduce(f64::max)
}

/// A value that is compared, and the stage that it is of if it is not of the whole run.
#[derive(Clone, Copy, Debug)]
struct MeasuredValue {
    value: f64,
    stage: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::FigureValue;
    use crate::summary::units::BaseUnit;
    use weir_metrics::Schema;

    #[test]
    fn a_total_is_judged_without_a_run() {
        let names = ["ts.packets", "ts.lost_packets"];
        let read = |text: &str| text.parse::<Threshold>().unwrap();
        let lost = read("ts.lost_packets == 0");
        lost.check_total(names).unwrap();
        let look_up = |name: &str| (name == "ts.lost_packets").then_some(17);
        assert_eq!(lost.judge_total(look_up).value, Some(17.0));
        assert!(!lost.judge_total(look_up).passed);
        assert!(read("ts.lost_packets < 18").judge_total(look_up).passed);
        assert!(!read("ts.packets >= 0").judge_total(look_up).passed, "nothing counted fails");
        let wrong = |text: &str| read(text).check_total(names).unwrap_err().to_string();
        assert!(wrong("ts.lost_packet == 0").ends_with("did you mean 'ts.lost_packets'?"));
        assert!(wrong("ts.packets.rate > 1").contains("'rate' does not fit"));
        for nothing in ["ts.nosuch", "bit_rate"] {
            let wrong = wrong(&format!("{nothing} == 0"));
            assert!(
                wrong.ends_with(&format!("no figure '{nothing}'; docs/method names them all")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_figure_goes_by_its_key_as_well() {
        let schemas = [Schema::new(&[])];
        let check = |text: &str| text.parse::<Threshold>().unwrap().check(&schemas);
        for fine in ["media_bytes > 1MB", "startup_seconds.p99 < 1s"] {
            check(fine).unwrap();
        }
        assert!(check("media_seconds > 1").is_err() && check("stalls_bytes == 0").is_err());
        let schemas = [weir_protocols::schema_of("http").unwrap()];
        for total in ["ts.skipped_bytes", "ts.trailing_bytes", "ts.skipped", "ts.lost_packets"] {
            format!("{total} == 0").parse::<Threshold>().unwrap().check(&schemas).unwrap();
        }
        let value = Value::Counter { total: 7.0, per_second: 1.0 };
        let figures = [("media".to_owned(), FigureValue { unit: BaseUnit::Bytes, value })];
        let figures = Figures(figures.into());
        let pick = |text: &str| text.parse::<Threshold>().unwrap().pick(&figures);
        let values =
            ["media == 7", "media_bytes == 7", "media_bytes.rate > 0", "media_seconds == 7"].map(pick);
        assert_eq!(
            "messages.rate > 1/s".parse::<Threshold>().unwrap().subject,
            Subject::Figure("units".to_owned())
        );
        assert_eq!(values, [Some(7.0), Some(7.0), Some(1.0), None]);
    }
}
