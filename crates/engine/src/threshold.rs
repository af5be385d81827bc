//! What is asked of the target: `startup.p99 < 1s`, parsed once into an expression.

mod samples;
mod seconds;

use crate::growth::SERVER_FIGURES;
use crate::server_load::{self, ServerLoad};
use crate::summary::{
    FigureValue, Figures, StageSummary, Summary, ThresholdPlace, ThresholdResult, Value, WorkloadSummary,
};
use crate::units::{BaseUnit, FigureUnit};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use weir_clients::meant;
use weir_metrics::{Kind, Measure, Quantity, Unit, parse_quantity};

/// `figure[.statistic] operator quantity`.
///
/// The figure is a name of `docs/method.md`, or `failed.ratio`, `missed.ratio`, `played.ratio`, `starved.ratio` (of planned
/// clients), `bitrate.ratio` and `frames.ratio` (actual by expected), `lost.ratio` (of what was sent), `stalled.ratio` (of playing
/// time), `stall_free.ratio` (of viewers that played). The statistic is `p50`, `p90`, `p95`, `p99`, `p999`, `min`, `mean`, `max`
/// for distributions, `rate` for a counter a second, `mean`,
/// `max` for a level; a counter alone is its total.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    text: String,
    figure: String,
    statistic: Option<Statistic>,
    operator: Operator,
    limit: Quantity,
    /// Positions of the workloads that are asked by default; none if a person asks it, of all that have the figure.
    default_of: Option<Vec<u16>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Equal,
    Unequal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Count,
    Min,
    Mean,
    P50,
    P90,
    P95,
    P99,
    P999,
    Max,
    Rate,
    Ratio,
}

/// Over what a threshold is judged, of a slice of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The slice.
    Slice,
    /// All clients up to now.
    Clients,
    /// The stage up to now, as a share of what its source has sent.
    SourceRate,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::MoreOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Less),
    (">", Operator::More),
];

const STATISTICS: [(&str, Statistic); 13] = [
    ("count", Statistic::Count),
    ("min", Statistic::Min),
    ("mean", Statistic::Mean),
    ("avg", Statistic::Mean),
    ("med", Statistic::P50),
    ("p50", Statistic::P50),
    ("p90", Statistic::P90),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("p999", Statistic::P999),
    ("max", Statistic::Max),
    ("rate", Statistic::Rate),
    ("ratio", Statistic::Ratio),
];

/// Another name of `units`.
const MESSAGES: &str = "messages";

/// Ratios that are made of two figures.
const RATIOS: [&str; 9] =
    ["failed", "missed", "played", "starved", "bitrate", "stalled", "stall_free", "frames", "lost"];

/// Shortest window whose rate is asked for by default: one of a few seconds holds a keyframe more or less.
const SHORTEST_WINDOW_SECONDS: f64 = 10.0;

/// A text that is no threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// No comparison in it.
    #[error("threshold '{0}': no comparison; write for example 'startup.p99 < 1s'")]
    NoOperator(String),
    /// The right side is no quantity.
    #[error("threshold '{text}': {source}")]
    Limit {
        /// The threshold.
        text: String,
        /// What is wrong.
        source: weir_metrics::ParseUnitError,
    },
    /// No workload has such a figure.
    #[error("threshold '{text}': there is no figure '{figure}'; {}", hint(.nearest.as_deref()))]
    UnknownFigure {
        /// The threshold.
        text: String,
        /// The name in it.
        figure: String,
        /// The known name that was meant, if one resembles it.
        nearest: Option<String>,
    },
    /// What follows the figure is no statistic.
    #[error("threshold '{text}': '{figure}' has no '{statistic}'; {fitting}")]
    UnknownStatistic {
        /// The threshold.
        text: String,
        /// The figure in it.
        figure: String,
        /// What follows it.
        statistic: String,
        /// What would do.
        fitting: &'static str,
    },
    /// The statistic does not fit the figure.
    #[error("threshold '{text}': '{statistic}' does not fit the figure; {fitting}")]
    UnfitStatistic {
        /// The threshold.
        text: String,
        /// The statistic in it.
        statistic: String,
        /// What would fit.
        fitting: &'static str,
    },
    /// The limit measures something else than the figure.
    #[error("threshold '{text}': '{figure}' is {measures}")]
    UnfitLimit {
        /// The threshold.
        text: String,
        /// The figure in it, with its statistic.
        figure: String,
        /// What the figure measures, and a limit that would fit.
        measures: &'static str,
    },
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let (at, (sign, operator)) = OPERATORS
            .iter()
            .filter_map(|entry| text.find(entry.0).map(|at| (at, *entry)))
            .min_by_key(|(at, (sign, _))| (*at, 2 - sign.len()))
            .ok_or_else(|| ThresholdError::NoOperator(text.to_owned()))?;
        let left = text[..at].trim();
        let limit = parse_quantity(&text[at + sign.len()..])
            .map_err(|source| ThresholdError::Limit { text: text.to_owned(), source })?;
        let split = left.rsplit_once('.').and_then(|(figure, statistic)| {
            let known = STATISTICS.iter().find(|(name, _)| *name == statistic)?;
            Some((figure, known.1))
        });
        let (figure, statistic) = split.map_or((left, None), |(figure, statistic)| (figure, Some(statistic)));
        if figure.is_empty() {
            return Err(ThresholdError::NoOperator(text.to_owned()));
        }
        // Those who count messages call their units so.
        let figure = if figure == MESSAGES { "units" } else { figure };
        let (text, figure) = (text.trim().to_owned(), figure.to_owned());
        Ok(Self { text, figure, statistic, operator, limit, default_of: None })
    }
}

impl Serialize for Threshold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Threshold {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Threshold".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["startup.p99 < 1s", "failed.ratio <= 0.1%"] })
    }
}

impl Threshold {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same, asked by default of the workloads at these positions.
    pub(crate) fn by_default(self, workloads: Vec<u16>) -> Self {
        Self { default_of: Some(workloads), ..self }
    }

    /// Whether it is a default, used because no threshold on its figure was given.
    pub fn is_default(&self) -> bool {
        self.default_of.is_some()
    }

    /// Whether both ask for one figure, by whatever statistic. `failed.ratio` is made of `slots_failed`.
    pub(crate) fn is_about_the_same_as(&self, other: &Self) -> bool {
        let name = |it: &Self| it.figure.strip_prefix("slots_").unwrap_or(&it.figure).to_owned();
        name(self) == name(other)
    }

    /// Checks before the run that some workload has the figure and that the statistic fits it.
    ///
    /// # Errors
    /// Names the figure that was meant, if one resembles it, or the statistics that fit.
    pub fn check(&self, schemas: &[weir_metrics::Schema]) -> Result<(), ThresholdError> {
        if self.statistic == Some(Statistic::Ratio) && RATIOS.contains(&self.figure.as_str()) {
            return self.check_limit(&[Measure::Ratio], "a ratio; write for example 0.98 or 98%");
        }
        if let Some(figure) = self.server_figure() {
            if self.statistic.is_some() {
                return Err(self.unfit("a figure of the server takes none"));
            }
            return if figure.ends_with("_bytes") {
                self.check_limit(&[Measure::Bytes], "bytes; write for example 100B")
            } else {
                self.check_limit(&[], "a number; write it without a unit")
            };
        }
        if let Some(load) = self.server_load() {
            return self.check_server_load(&load);
        }
        let figures = || schemas.iter().flat_map(weir_metrics::Schema::figures);
        let Some(figure) = figures().find(|figure| self.is_about(figure)) else {
            if let Some((front, statistic)) = self.figure.rsplit_once('.')
                && let Some(figure) = figures().find(|figure| figure.name == front)
            {
                return Err(ThresholdError::UnknownStatistic {
                    text: self.text.clone(),
                    figure: front.to_owned(),
                    statistic: statistic.to_owned(),
                    fitting: fitting(figure.kind),
                });
            }
            let mut unknown = self.unknown(
                figures()
                    .map(|figure| figure.name)
                    .chain(RATIOS)
                    .chain(SERVER_FIGURES)
                    .chain(server_load::NAMES),
            );
            if let ThresholdError::UnknownFigure { nearest: Some(nearest), .. } = &mut unknown
                && RATIOS.contains(&nearest.as_str())
                && figures().all(|figure| figure.name != nearest)
            {
                nearest.push_str(".ratio");
            }
            return Err(unknown);
        };
        let fits = match (figure.kind, self.statistic) {
            (Kind::Counter, statistic) => {
                matches!(statistic, None | Some(Statistic::Rate | Statistic::Count))
            }
            (Kind::Gauge(_), statistic) => {
                matches!(statistic, None | Some(Statistic::Mean | Statistic::Max))
            }
            (Kind::Spread | Kind::Signed, statistic) => {
                !matches!(statistic, None | Some(Statistic::Rate | Statistic::Ratio))
            }
        };
        if !fits {
            return Err(self.unfit(fitting(figure.kind)));
        }
        match (self.statistic, figure.unit) {
            (Some(Statistic::Count), _) if figure.kind != Kind::Counter => {
                self.check_limit(&[], "a number of values; write it without a unit")
            }
            (Some(Statistic::Rate), Unit::Micros) => self.check_limit(
                &[Measure::Time, Measure::Ratio],
                "seconds of each second; write for example 0.1",
            ),
            (_, Unit::Micros) => self.check_limit(&[Measure::Time], "a time; write for example 250ms or 1s"),
            (Some(Statistic::Rate), Unit::Bytes) => {
                self.check_limit(&[Measure::Bytes], "bytes a second; write for example 16kB")
            }
            (_, Unit::Bytes) => self.check_limit(&[Measure::Bytes], "bytes; write for example 16kB"),
            (Some(Statistic::Rate), Unit::Count) => {
                self.check_limit(&[Measure::Rate], "a number a second; write for example 20/s")
            }
            (_, Unit::Count) => self.check_limit(&[], "a number; write it without a unit"),
        }
    }

    /// A figure goes by its name, and by its key in machine-readable output, which ends with its unit.
    fn is_about(&self, figure: &weir_metrics::Figure) -> bool {
        let rest = self.figure.strip_prefix(figure.name);
        rest.is_some_and(|rest| rest.is_empty() || rest == figure.unit.suffix())
    }

    /// The value of the figure that it [is about](Self::is_about).
    fn find<'a>(&self, figures: &'a Figures) -> Option<&'a FigureValue> {
        figures.get(&self.figure).or_else(|| {
            [BaseUnit::Bytes, BaseUnit::Seconds].into_iter().find_map(|unit| {
                let name = self.figure.strip_suffix(unit.suffix())?;
                figures.get(name).filter(|figure| figure.unit == unit)
            })
        })
    }

    /// A limit without a unit fits everything.
    fn check_limit(&self, fitting: &[Measure], measures: &'static str) -> Result<(), ThresholdError> {
        if self.limit.measure == Measure::Plain || fitting.contains(&self.limit.measure) {
            return Ok(());
        }
        let statistic = STATISTICS.iter().find(|(_, it)| Some(*it) == self.statistic);
        let figure = statistic.map_or(self.figure.clone(), |(name, _)| format!("{}.{name}", self.figure));
        Err(ThresholdError::UnfitLimit { text: self.text.clone(), figure, measures })
    }

    /// Checks it against totals that are known by `names` alone, where there is no run.
    ///
    /// # Errors
    /// Names the total that was meant, if one resembles it, or says that a total takes no statistic.
    pub fn check_total<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
    ) -> Result<(), ThresholdError> {
        let names = names.into_iter();
        if !names.clone().any(|name| name == self.figure) {
            return Err(self.unknown(names));
        }
        match self.statistic {
            None | Some(Statistic::Count) => Ok(()),
            Some(_) => Err(self.unfit("a total takes none or count")),
        }
    }

    /// The figure of the watched process that it is about, if it is about one.
    pub fn server_figure(&self) -> Option<&'static str> {
        SERVER_FIGURES.into_iter().find(|figure| *figure == self.figure)
    }

    /// The figure of the watched processes that it asks for stage by stage, if it asks for one.
    pub fn server_load(&self) -> Option<ServerLoad> {
        ServerLoad::named(&self.figure)
    }

    fn check_server_load(&self, load: &ServerLoad) -> Result<(), ThresholdError> {
        match self.statistic {
            None => {}
            Some(Statistic::Mean | Statistic::Max) if load.has_mean_and_max() => {}
            Some(_) if load.has_mean_and_max() => return Err(self.unfit("it takes none, mean or max")),
            Some(Statistic::Max) => {}
            Some(_) => return Err(self.unfit("it takes none")),
        }
        match load {
            ServerLoad::Memory => self.check_limit(&[Measure::Bytes], "bytes; write for example 500MB"),
            ServerLoad::Descriptors => self.check_limit(&[], "a number; write it without a unit"),
            ServerLoad::Cpu | ServerLoad::BusiestThread | ServerLoad::Thread(_) => {
                self.check_limit(&[Measure::Ratio], "CPU of one core; write for example 80%")
            }
        }
    }

    /// Compares the growth of each watched process; the value is the largest. None fails, and so does one that is not known because
    /// the process was not heard of any more.
    pub(crate) fn judge_growth(&self, summary: &Summary) -> ThresholdResult {
        let mut stages = summary.workloads.iter().flat_map(|it| &it.stages);
        let is_unheard = stages.any(|it| !it.unheard.is_empty());
        let bounds = summary.growth.iter().filter(|_| !is_unheard);
        self.judge_value(|figure| bounds.filter_map(|it| it.bound(figure)).reduce(f64::max))
    }

    /// Compares the total that `look_up` knows under the figure's name. None fails.
    pub fn judge_total(&self, look_up: impl FnOnce(&str) -> Option<u64>) -> ThresholdResult {
        self.judge_value(|figure| look_up(figure).map(|total| total as f64))
    }

    /// Compares the value, in base units, that `look_up` knows under the figure's name. None fails.
    pub fn judge_value(&self, look_up: impl FnOnce(&str) -> Option<f64>) -> ThresholdResult {
        let value = look_up(&self.figure);
        ThresholdResult {
            expression: self.text.clone(),
            value,
            passed: value.is_some_and(|value| self.holds(value)),
            default: self.is_default(),
            place: None,
        }
    }

    fn unknown<'a>(&self, names: impl Iterator<Item = &'a str>) -> ThresholdError {
        ThresholdError::UnknownFigure {
            text: self.text.clone(),
            figure: self.figure.clone(),
            nearest: meant(&self.figure, names).map(str::to_owned),
        }
    }

    fn unfit(&self, fitting: &'static str) -> ThresholdError {
        let statistic =
            STATISTICS.iter().find(|(_, s)| Some(*s) == self.statistic).map_or("nothing", |(name, _)| name);
        ThresholdError::UnfitStatistic { text: self.text.clone(), statistic: statistic.to_owned(), fitting }
    }

    /// Compares a finished run: every stage of every workload that has the figure must hold. The
    /// value is the one farthest on the wrong side. Nothing measured fails.
    pub fn judge(&self, workloads: &[WorkloadSummary]) -> ThresholdResult {
        let is_asked = |number| self.default_of.as_ref().is_none_or(|of| of.contains(&number));
        let asked = (0..).zip(workloads).filter(|(number, it)| !it.background && is_asked(*number));
        let asked: Vec<_> = asked.collect();
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
        }
    }

    /// Whether it is about a rate that this stage has.
    fn is_rate_of(&self, stage: &StageSummary) -> bool {
        match self.statistic {
            Some(Statistic::Rate) => self.pick(&stage.figures).is_some(),
            Some(Statistic::Ratio) => {
                self.figure == "bitrate" && self.asks(stage) && bit_rate_ratio(stage).is_some()
            }
            _ => false,
        }
    }

    /// Whether it asks for the rate of this stage's window: by default only if that is long enough.
    fn asks(&self, stage: &StageSummary) -> bool {
        !self.is_default() || stage.window_seconds() >= SHORTEST_WINDOW_SECONDS
    }

    /// What the value that it compares is in, of a stage with these figures.
    pub(crate) fn unit(&self, figures: &Figures) -> FigureUnit {
        let of_figure = |value: &FigureValue| match value.unit {
            BaseUnit::Count => FigureUnit::Count,
            BaseUnit::Bytes => FigureUnit::Bytes,
            BaseUnit::Seconds => FigureUnit::Seconds,
            BaseUnit::BitsPerSecond => FigureUnit::BitsPerSecond,
        };
        match self.statistic {
            Some(Statistic::Ratio) => FigureUnit::Ratio,
            Some(Statistic::Count) => FigureUnit::Count,
            _ if self.server_figure().is_some_and(|it| it.ends_with("_bytes")) => FigureUnit::Bytes,
            _ if self.server_load() == Some(ServerLoad::Memory) => FigureUnit::Bytes,
            _ if self.server_load().is_some_and(|it| it != ServerLoad::Descriptors) => FigureUnit::Ratio,
            _ => self.find(figures).map_or(FigureUnit::Count, of_figure),
        }
    }

    /// Over what a slice of a stage's window is judged.
    pub(crate) fn scope(&self) -> Scope {
        match (self.statistic, self.figure.as_str()) {
            (Some(Statistic::Ratio), "failed" | "missed" | "played" | "starved" | "stall_free") => {
                Scope::Clients
            }
            (Some(Statistic::Ratio), "bitrate" | "frames") => Scope::SourceRate,
            _ => Scope::Slice,
        }
    }

    /// One line on a default that is not asked of stages that have its value, since their windows are too short.
    pub(crate) fn unasked(&self, workloads: &[WorkloadSummary]) -> Option<String> {
        let of = self.default_of.as_ref()?;
        let ratio: fn(&StageSummary) -> Option<f64> = match (self.statistic?, self.figure.as_str()) {
            (Statistic::Ratio, "bitrate") => bit_rate_ratio,
            (Statistic::Ratio, "frames") => frame_ratio,
            _ => return None,
        };
        let workloads = (0..).zip(workloads).filter(|(number, _)| of.contains(number));
        let names: Vec<_> = workloads
            .filter(|(_, it)| it.stages.iter().any(|stage| !self.asks(stage) && ratio(stage).is_some()))
            .map(|(_, it)| it.name.as_str())
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "{}: `{}` is not asked by default of windows under {SHORTEST_WINDOW_SECONDS} s: hold each stage for that long beyond the warm-up, or ask with --threshold '{}'",
                names.join(", "),
                self.text,
                self.text
            )
        })
    }

    /// Whether a value satisfies it.
    pub fn holds(&self, value: f64) -> bool {
        let limit = self.limit.value;
        match self.operator {
            Operator::Less => value < limit,
            Operator::LessOrEqual => value <= limit,
            Operator::More => value > limit,
            Operator::MoreOrEqual => value >= limit,
            Operator::Equal => value == limit,
            Operator::Unequal => value != limit,
        }
    }

    /// Whether a value is farther on the wrong side than another. One that fails is worse than one that holds.
    pub(crate) fn worse(&self, a: f64, b: f64) -> bool {
        if self.holds(a) != self.holds(b) {
            return self.holds(b);
        }
        let distance = |value: f64| (value - self.limit.value).abs();
        match self.operator {
            Operator::Less | Operator::LessOrEqual => a > b,
            Operator::More | Operator::MoreOrEqual => a < b,
            Operator::Equal => distance(a) > distance(b),
            Operator::Unequal => distance(a) < distance(b),
        }
    }

    fn values(&self, workload: &WorkloadSummary) -> Vec<Measured> {
        let of_stage = |stage: &StageSummary| {
            let stage = stage.stage;
            move |value| Measured { value, stage: Some(stage) }
        };
        if self.statistic == Some(Statistic::Ratio) {
            return self.ratio(workload).into_iter().collect();
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
                .map_or_else(|| stages.collect(), |value| vec![Measured { value, stage: None }]),
            Some(_) => stages.collect(),
        }
    }

    /// The value of a ratio over the whole of a workload, or of its worst stage.
    fn ratio(&self, workload: &WorkloadSummary) -> Option<Measured> {
        match self.figure.as_str() {
            "bitrate" => self.worst_stage(workload, bit_rate_ratio),
            "frames" => self.worst_stage(workload, frame_ratio),
            _ => self.whole_ratio(workload).map(|value| Measured { value, stage: None }),
        }
    }

    fn whole_ratio(&self, workload: &WorkloadSummary) -> Option<f64> {
        let planned = workload.slots.planned as f64;
        match self.figure.as_str() {
            "failed" if planned > 0.0 => Some(workload.slots.failed as f64 / planned),
            "missed" if planned > 0.0 => Some(workload.slots.missed as f64 / planned),
            "played" => {
                let asked = planned - workload.total.total("exits_before_start");
                (asked > 0.0).then(|| workload.total.total("played") / asked)
            }
            "starved" if planned > 0.0 => Some(workload.total.total("starved") / planned),
            "stall_free" => workload.stall_free_ratio,
            "stalled" => workload.stalled_ratio(),
            // What is lost in a ramp is lost.
            "lost" => workload.total.lost_ratio(),
            _ => None,
        }
    }

    /// The value of the stage that is farthest on the wrong side.
    fn worst_stage(
        &self,
        workload: &WorkloadSummary,
        ratio: impl Fn(&StageSummary) -> Option<f64>,
    ) -> Option<Measured> {
        let asked = workload.stages.iter().filter(|stage| self.asks(stage));
        let values =
            asked.filter_map(|stage| Some(Measured { value: ratio(stage)?, stage: Some(stage.stage) }));
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
                    Statistic::Rate | Statistic::Ratio => return None,
                }
            }
            _ => return None,
        })
    }
}

/// A value that is compared, and the stage that it is of if it is not of the whole run.
#[derive(Clone, Copy, Debug)]
struct Measured {
    value: f64,
    stage: Option<u16>,
}

/// Actual by expected bit rate, where that is known.
fn bit_rate_ratio(stage: &StageSummary) -> Option<f64> {
    Some(stage.actual_bps / stage.expected_bps.filter(|bps| *bps > 0.0)?)
}

/// Frames by those that the source had for all planned clients, where that is known.
fn frame_ratio(stage: &StageSummary) -> Option<f64> {
    let by_the_clock = stage.source_fps? * stage.expected_clients() * stage.window_seconds();
    let expected = by_the_clock + stage.frames_ahead;
    (expected > 0.0).then(|| stage.figures.total("frames") / expected)
}

/// What to do about an unknown figure.
fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(
        || "docs/method.md names them all".to_owned(),
        |nearest| format!("did you mean '{nearest}'?"),
    )
}

/// The statistics of a kind of figure, in words.
fn fitting(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "a counter takes none, count or rate",
        Kind::Gauge(_) => "a level takes none, mean or max",
        Kind::Spread | Kind::Signed => {
            "a distribution takes min, mean, p50, p90, p95, p99, p999, max or count"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Schema;

    #[test]
    fn a_value_that_fails_is_worse_than_one_that_holds_whichever_comes_first() {
        for (text, failing, holding) in [
            ("lost != 0", 0.0, 500.0),
            ("lost == 0", 500.0, 0.0),
            ("lost < 3", 3.0, 2.0),
            ("lost >= 3", 2.0, 3.0),
        ] {
            let threshold: Threshold = text.parse().unwrap();
            assert!(threshold.worse(failing, holding) && !threshold.worse(holding, failing), "{text}");
            assert!(!threshold.worse(holding, holding), "{text}");
        }
        let unequal: Threshold = "lost != 10".parse().unwrap();
        assert!(unequal.worse(11.0, 20.0) && !unequal.worse(20.0, 11.0));
    }

    #[test]
    fn a_threshold_is_read_once_and_compared_in_base_units() {
        let threshold: Threshold = "startup.p99 <= 250ms".parse().unwrap();
        assert!(threshold.holds(0.25) && !threshold.holds(0.2501));
        let lost: Threshold = "ts.lost_packets==0".parse().unwrap();
        assert_eq!(lost.figure, "ts.lost_packets");
        assert!(lost.holds(0.0));
    }

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
                wrong.ends_with(&format!("no figure '{nothing}'; docs/method.md names them all")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_servers_cpu_memory_descriptors_and_threads_can_be_asked_for() {
        let schemas = [Schema::new(&[])];
        let check =
            |text: &str| text.parse::<Threshold>().unwrap().check(&schemas).map_err(|it| it.to_string());
        for fine in [
            "server.cpu < 80%",
            "server.cpu.max <= 1.5",
            "server.memory.max < 500MB",
            "server.descriptors <= 1000",
            "server.busiest_thread < 90%",
            "thread.SW-WebRTC.cpu < 90%",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (wrong, words) in [
            ("server.cpu.p99 < 80%", "it takes none, mean or max"),
            ("server.cpu < 1s", "write for example 80%"),
            ("server.memory < 80%", "bytes"),
            ("server.cpus < 80%", "did you mean 'server.cpu'?"),
            ("thread.x.cpu.p99 < 90%", "it takes none"),
        ] {
            let said = check(wrong).unwrap_err();
            assert!(said.contains(words), "{said}");
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
        assert_eq!("messages.rate > 1/s".parse::<Threshold>().unwrap().figure, "units");
        assert_eq!(values, [Some(7.0), Some(7.0), Some(1.0), None]);
    }

    #[test]
    fn a_wrong_threshold_says_what_would_be_right() {
        let schemas = [Schema::new(&[])];
        let check =
            |text: &str| text.parse::<Threshold>().and_then(|t| t.check(&schemas)).unwrap_err().to_string();
        assert_eq!(
            check("startupp.p99 < 1s"),
            "threshold 'startupp.p99 < 1s': there is no figure 'startupp'; did you mean 'startup'?"
        );
        assert_eq!(
            check("startup.p98 < 1s"),
            "threshold 'startup.p98 < 1s': 'startup' has no 'p98'; a distribution takes min, mean, p50, p90, p95, p99, p999, max or count"
        );
        assert!(
            check("stalls.p98 < 1").ends_with("'stalls' has no 'p98'; a counter takes none, count or rate")
        );
        assert!(check("startup < 1s").contains("p99"));
        for (wrong, right) in [("bit_rate.ratio > 1", "bitrate.ratio"), ("failed == 0", "failed.ratio")] {
            assert!(check(wrong).ends_with(&format!("did you mean '{right}'?")), "{}", check(wrong));
        }
        assert!(check("ts.nosuch == 0").ends_with("docs/method.md names them all"));
        assert!(check("stalls.p99 < 1").contains("a counter takes"));
        assert!(check("startup.p99").contains("no comparison"));
        assert!(
            check("startup.p99 < 1mbps").ends_with("'startup.p99' is a time; write for example 250ms or 1s")
        );
        assert!(check("media.rate > 4mbps").contains("bytes a second"));
        assert!(
            check("stalls == 0%").contains("a number") && check("bitrate.ratio > 1s").contains("a ratio")
        );
        assert!(check("messages == 3/s").contains("a number"));
        for fine in [
            "startup.p99 < 1",
            "failed.ratio <= 0.1%",
            "stalled.rate < 1%",
            "media > 1MB",
            "drift.count > 3",
            "messages.rate >= 10000/s",
        ] {
            fine.parse::<Threshold>().unwrap().check(&schemas).unwrap();
        }
        assert!(
            check("startup.p99 < soon").contains("'soon'")
                || check("startup.p99 < soon").contains("quantity")
        );
    }
}
