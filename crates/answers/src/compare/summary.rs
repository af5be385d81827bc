//! What a comparison comes to: a value made of the runs of its sides.

use super::alike::{Likeness, Unlike, likeness};
use super::contrast::{Contrast, Values, corrected};
use super::limit::{ChangeLimit, LimitFinding, LimitResult, means};
use super::side::{ComparedRun, Side, meant_by, values};
use super::{FEWEST_FOR_DIFFERENCE, FEWEST_FOR_INTERVAL, LEVEL};
use crate::series::SeriesFigure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_clients::meant;
use weir_engine::summary::{Point, RunFacts, VerdictState};
use weir_metrics::{Better, Estimate};

/// The version of the layout; `docs/compare.schema.json` follows it.
pub const LAYOUT: &str = "weir.compare/1";

/// What is asked of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// The largest change, as a share, that does not matter.
    pub margin: f64,
    /// Whether to compare what is not alike.
    pub anyway: bool,
    /// The figures that are compared; those with titles if empty.
    pub figures: Vec<String>,
    /// Changes that are regressions.
    pub limits: Vec<ChangeLimit>,
}

impl Default for Options {
    fn default() -> Self {
        Self { margin: 0.02, anyway: false, figures: Vec::new(), limits: Vec::new() }
    }
}

/// Sides that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComparisonError {
    /// There is nothing to compare with.
    #[error("there is one side only, {0}; give a second one")]
    OneSide(String),
    /// A side without runs.
    #[error("{side} has no run that could be compared{}", .left_out.first().map_or(String::new(), |why| format!(": {why}")))]
    NoRuns {
        /// The side.
        side: String,
        /// Runs that were left out, and why.
        left_out: Vec<String>,
    },
    /// They are not alike.
    #[error("these runs are not alike:\n{}--anyway compares them, and says so", lines(.0))]
    Unlike(Vec<Unlike>),
    /// No run has such a figure.
    #[error("no run has a figure '{figure}'; {}", .nearest.as_ref().map_or_else(|| format!("there are: {}", .known.join(", ")), |it| format!("did you mean '{it}'?")))]
    NoFigure {
        /// What was asked for.
        figure: String,
        /// The figure that was meant, if one resembles it.
        nearest: Option<String>,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A limit is in another unit than its figure.
    #[error("--fail-on '{limit}': '{figure}' is in another unit; give a change of that, or in percent")]
    Unit {
        /// The limit.
        limit: String,
        /// The figure.
        figure: String,
    },
}

fn lines(unlike: &[Unlike]) -> String {
    let line = |it: &Unlike| format!("  {}: {}, in {} {}\n", it.key, it.base, it.run, it.other);
    unlike.iter().map(line).collect()
}

/// Sides against the first of them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// `weir.compare/1`.
    pub layout: String,
    /// The first run of the base: what was run, and where.
    pub run: RunFacts,
    /// The largest change, as a share, that does not matter.
    pub margin: f64,
    /// Figures, over all sides, of which the probabilities are corrected for each other: those that are not equal in all runs.
    pub compared: u64,
    /// Things to know when reading it, one line each.
    pub warnings: Vec<String>,
    /// What should be alike and is not; `--anyway` compared it all the same.
    pub unlike: Vec<Unlike>,
    /// What else differs: it is what is compared.
    pub subject: Vec<Unlike>,
    /// The figures, in the order of the table.
    pub figures: Vec<SeriesFigure>,
    /// The sides; the first is the base.
    pub sides: Vec<SideSummary>,
    /// Each other side against the base.
    pub contests: Vec<Contest>,
    /// What was asked with `--fail-on`.
    pub limits: Vec<LimitResult>,
}

/// One side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SideSummary {
    /// What it is called.
    pub name: String,
    /// Its runs.
    pub runs: Vec<SideRun>,
    /// By the figure's name, the mean of the runs.
    pub figures: BTreeMap<String, f64>,
    /// The names of the workloads of its first run, for plots.
    #[serde(skip)]
    pub workloads: Vec<String>,
    /// The seconds of each of its runs, for plots.
    #[serde(skip)]
    pub seconds: Vec<Vec<Point>>,
}

/// One run of a side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideRun {
    /// Its directory.
    pub directory: String,
    /// Start, in seconds since the Unix epoch.
    pub started_at_seconds: f64,
    /// Whether its figures can be believed.
    pub verdict: VerdictState,
    /// By the figure's name.
    pub figures: BTreeMap<String, f64>,
}

/// A side against the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contest {
    /// The side.
    pub side: String,
    /// Whether runs were compared in pairs that were made next to each other.
    pub paired: bool,
    /// One entry each of the figures that both have.
    pub changes: Vec<Change>,
}

/// How a figure has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The figure's name.
    pub figure: String,
    /// Runs of the side that has fewer, or pairs.
    pub runs: u64,
    /// The mean of the base's runs, from which the change is counted: geometric where the change is a ratio.
    pub base: f64,
    /// The same mean of the other side's runs.
    pub other: f64,
    /// The difference of the means; its interval is shown from six runs a side on. None with fewer than two runs a side.
    pub difference: Option<Estimate>,
    /// The ratio of the geometric means; none if a value is not above 0.
    pub ratio: Option<Estimate>,
    /// The probability of such a difference between runs that are the same in truth, corrected for the number of figures. None
    /// with fewer than four runs a side.
    pub p: Option<f64>,
    /// What is found; none with fewer than four runs a side, which tell nothing.
    pub finding: Option<Finding>,
}

/// What is found of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It changed, and for the better.
    Better,
    /// It changed, and for the worse.
    Worse,
    /// It changed, and is neither better nor worse for that.
    Different,
    /// The interval of the change lies within the margin.
    Same,
    /// Neither a change nor its absence is certain.
    Undecided,
}

impl Finding {
    /// What a change comes to, of a figure that is better one way, or neither.
    pub(crate) fn of_change(better: Option<Better>, rises: bool) -> Self {
        match better {
            None => Self::Different,
            Some(better) if (better == Better::Higher) == rises => Self::Better,
            Some(_) => Self::Worse,
        }
    }
}

/// A figure of a side against the base, before it is corrected for the others.
pub(super) struct Measured<'a> {
    figure: &'a SeriesFigure,
    values: Values,
    contrast: Option<Contrast>,
}

/// What each figure comes to, corrected for all of them.
pub(super) fn changes(measured: &[&Measured<'_>], margin: f64) -> Vec<Change> {
    let probabilities: Vec<f64> = measured.iter().filter_map(|it| it.p()).collect();
    let mut corrected = corrected(&probabilities).into_iter();
    measured.iter().map(|it| it.change(it.p().and_then(|_| corrected.next()), margin)).collect()
}

impl Comparison {
    /// Compares every side with the first one.
    ///
    /// # Errors
    /// They are not alike, or have not what is asked for.
    pub fn new(sides: &[Side], options: &Options) -> Result<Self, ComparisonError> {
        if let [only] = sides {
            return Err(ComparisonError::OneSide(only.name.clone()));
        }
        if let Some(empty) = sides.iter().find(|side| side.runs.is_empty()) {
            let (side, left_out) = (empty.name.clone(), empty.left_out.clone());
            return Err(ComparisonError::NoRuns { side, left_out });
        }
        let Likeness { unlike, subject } = likeness(sides);
        if !unlike.is_empty() && !options.anyway {
            return Err(ComparisonError::Unlike(unlike));
        }
        let valued: Vec<Vec<ValuedRun<'_>>> =
            sides.iter().map(|side| side.runs.iter().map(ValuedRun::of).collect()).collect();
        let figures = figures(&valued, options)?;
        let base = &valued[0];
        let mut contests = Vec::new();
        for (side, runs) in sides.iter().zip(&valued).skip(1) {
            let paired = are_pairs(&sides[0], side);
            let measured = figures.iter().filter_map(|figure| Measured::of(figure, base, runs, paired));
            contests.push((side, paired, measured.collect::<Vec<_>>()));
        }
        let all: Vec<_> = contests.iter().flat_map(|(_, _, measured)| measured).collect();
        let compared = all.iter().filter(|it| it.p().is_some()).count() as u64;
        let mut all = changes(&all, options.margin).into_iter();
        let mut limits = Vec::new();
        let mut found = Vec::new();
        for (side, paired, measured) in &contests {
            let changes = all.by_ref().take(measured.len()).collect();
            for it in measured {
                let asked = options.limits.iter().filter(|limit| means(limit.figure(), &it.figure.name));
                limits.extend(asked.map(|limit| LimitResult {
                    expression: limit.text().to_owned(),
                    figure: it.figure.name.clone(),
                    side: side.name.clone(),
                    finding: it.judge(limit),
                }));
            }
            // What a side has no value of was asked for all the same: it has not held.
            for figure in figures.iter().filter(|it| measured.iter().all(|one| one.figure.name != it.name)) {
                let asked = options.limits.iter().filter(|limit| means(limit.figure(), &figure.name));
                limits.extend(asked.map(|limit| LimitResult {
                    expression: limit.text().to_owned(),
                    figure: figure.name.clone(),
                    side: side.name.clone(),
                    finding: LimitFinding::NotJudged("one of the sides has no value of it".to_owned()),
                }));
            }
            found.push(Contest { side: side.name.clone(), paired: *paired, changes });
        }
        Ok(Self {
            layout: LAYOUT.to_owned(),
            run: sides[0].runs[0].summary.run.clone(),
            margin: options.margin,
            compared,
            warnings: warnings(sides),
            unlike,
            subject,
            sides: sides.iter().zip(&valued).map(|(side, runs)| SideSummary::new(side, runs)).collect(),
            figures,
            contests: found,
            limits,
        })
    }

    /// Runs on the side that has fewest.
    pub fn fewest_runs(&self) -> usize {
        self.sides.iter().map(|side| side.runs.len()).min().unwrap_or(0)
    }
}

/// Whether runs were made next to each other, and are enough: the interval of a few pairs rests on half as many degrees of freedom
/// as that of two groups, which costs more than what pairs have in common is worth.
fn are_pairs(base: &Side, other: &Side) -> bool {
    let is_interleaved = other.series.as_ref().is_some_and(|it| it.is_interleaved);
    let repeated = |run: &&ComparedRun| base.runs.iter().any(|it| it.repetition == run.repetition);
    is_interleaved
        && base.series == other.series
        && base.name != other.name
        && other.runs.iter().filter(repeated).count() >= FEWEST_FOR_INTERVAL
}

/// A run with its figures.
struct ValuedRun<'a> {
    run: &'a ComparedRun,
    valued: Vec<(SeriesFigure, f64)>,
}

impl<'a> ValuedRun<'a> {
    fn of(run: &'a ComparedRun) -> Self {
        Self { run, valued: values(run) }
    }

    fn value(&self, figure: &str) -> Option<f64> {
        self.valued.iter().find(|(it, _)| it.name == figure).map(|(_, value)| *value)
    }
}

/// The figures that are compared: those that were asked for, or all that have titles, and those that limits are about.
fn figures(sides: &[Vec<ValuedRun<'_>>], options: &Options) -> Result<Vec<SeriesFigure>, ComparisonError> {
    let mut known: Vec<&SeriesFigure> = Vec::new();
    for (figure, _) in sides.iter().flatten().flat_map(|run| &run.valued) {
        if !known.iter().any(|it| it.name == figure.name) {
            known.push(figure);
        }
    }
    // Of several runs one may have more figures than the first: what has no title stands last all the same.
    known.sort_by_key(|it| it.title.is_none());
    let asked = options.figures.iter().map(String::as_str);
    for name in asked.clone().chain(options.limits.iter().map(ChangeLimit::figure)) {
        if !known.iter().any(|it| means(name, &it.name)) {
            let names = known.iter().map(|it| it.name.as_str());
            let titled = known.iter().filter(|it| it.title.is_some()).map(|it| it.name.clone());
            return Err(ComparisonError::NoFigure {
                figure: name.to_owned(),
                nearest: meant(name, names).map(str::to_owned),
                known: titled.collect(),
            });
        }
    }
    for limit in &options.limits {
        let unfit = known.iter().find(|it| means(limit.figure(), &it.name) && !limit.fits(it.unit));
        if let Some(figure) = unfit {
            let (limit, figure) = (limit.text().to_owned(), figure.name.clone());
            return Err(ComparisonError::Unit { limit, figure });
        }
    }
    let named: Vec<&SeriesFigure> = asked.flat_map(|name| meant_by(name, &known)).collect();
    let limited: Vec<&SeriesFigure> =
        options.limits.iter().flat_map(|limit| meant_by(limit.figure(), &known)).collect();
    let is_in = |list: &[&SeriesFigure], it: &SeriesFigure| list.iter().any(|one| one.name == it.name);
    let is_compared = |it: &&&SeriesFigure| {
        let is_shown = if options.figures.is_empty() { it.title.is_some() } else { is_in(&named, it) };
        is_shown || is_in(&limited, it)
    };
    Ok(known.iter().filter(is_compared).map(|it| (*it).clone()).collect())
}

impl<'a> Measured<'a> {
    fn of(
        figure: &'a SeriesFigure,
        base: &[ValuedRun<'_>],
        other: &[ValuedRun<'_>],
        paired: bool,
    ) -> Option<Self> {
        let values_of =
            |runs: &[ValuedRun<'_>]| runs.iter().filter_map(|it| it.value(&figure.name)).collect();
        let pair = |run: &ValuedRun<'_>| {
            let beside = other.iter().find(|it| it.run.repetition == run.run.repetition)?;
            Some((run.value(&figure.name)?, beside.value(&figure.name)?))
        };
        let values = if paired {
            Values::Pairs(base.iter().filter_map(pair).collect())
        } else {
            Values::Apart(values_of(base), values_of(other))
        };
        (values.fewest() > 0).then(|| Self::new(figure, values))
    }

    pub(super) fn new(figure: &'a SeriesFigure, values: Values) -> Self {
        Self { figure, contrast: Contrast::of(&values), values }
    }

    /// The probability that is corrected for the others: what is equal in all runs is no question.
    fn p(&self) -> Option<f64> {
        let is_told = self.values.fewest() >= FEWEST_FOR_DIFFERENCE && !self.values.are_equal();
        self.contrast.filter(|_| is_told).map(|it| it.p)
    }

    fn change(&self, p: Option<f64>, margin: f64) -> Change {
        let runs = self.values.fewest();
        let finding = (runs >= FEWEST_FOR_DIFFERENCE).then(|| self.finding(p, margin));
        let (base, other) = self.values.means(self.contrast.as_ref());
        Change {
            figure: self.figure.name.clone(),
            runs: runs as u64,
            base,
            other,
            difference: self.contrast.map(|it| it.difference),
            ratio: self.contrast.and_then(|it| it.ratio),
            p,
            finding,
        }
    }

    fn finding(&self, p: Option<f64>, margin: f64) -> Finding {
        if self.values.are_equal() {
            return Finding::Same;
        }
        let Some(contrast) = self.contrast else { return Finding::Undecided };
        let is_within = is_within(&contrast, margin, self.values.magnitude());
        if is_within && self.values.fewest() >= FEWEST_FOR_INTERVAL {
            return Finding::Same;
        }
        if is_within || p.is_none_or(|p| p >= LEVEL) {
            return Finding::Undecided;
        }
        let rises = contrast.difference.mean > 0.0;
        let rises = contrast.ratio.map_or(rises, |ratio| ratio.mean > 1.0);
        Finding::of_change(self.figure.better, rises)
    }

    fn judge(&self, limit: &ChangeLimit) -> LimitFinding {
        limit.judge(self.contrast.as_ref(), self.values.are_equal(), self.values.fewest())
    }
}

/// Whether a change does not matter: the ratio's interval lies between 1 less the margin and its inverse; where there is no ratio, the
/// difference's within the margin of the largest value. The other way round is the same.
fn is_within(contrast: &Contrast, margin: f64, magnitude: f64) -> bool {
    match contrast.ratio {
        Some(ratio) => ratio.low >= 1.0 / (1.0 + margin) && ratio.high <= 1.0 + margin,
        None => {
            let most = margin * magnitude;
            contrast.difference.low >= -most && contrast.difference.high <= most
        }
    }
}

impl SideSummary {
    fn new(side: &Side, runs: &[ValuedRun<'_>]) -> Self {
        let mut sums: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (figure, value) in runs.iter().flat_map(|run| &run.valued) {
            sums.entry(figure.name.clone()).or_default().push(*value);
        }
        let mean = |mut values: Vec<f64>| {
            // In order of size, so that the sum does not depend on the order of the runs.
            values.sort_by(f64::total_cmp);
            values.iter().sum::<f64>() / values.len() as f64
        };
        let figures = sums.into_iter().map(|(name, values)| (name, mean(values))).collect();
        let of_run = |it: &ValuedRun<'_>| SideRun {
            directory: it.run.name.clone(),
            started_at_seconds: it.run.summary.run.started_at_seconds,
            verdict: it.run.summary.verdict.state,
            figures: it.valued.iter().map(|(figure, value)| (figure.name.clone(), *value)).collect(),
        };
        let names =
            side.runs.first().map(|run| run.summary.workloads.iter().map(|it| it.name.clone()).collect());
        Self {
            name: side.name.clone(),
            runs: runs.iter().map(of_run).collect(),
            figures,
            workloads: names.unwrap_or_default(),
            seconds: side.runs.iter().map(|run| run.summary.series.clone()).collect(),
        }
    }
}

fn warnings(sides: &[Side]) -> Vec<String> {
    let mut told: Vec<String> = sides.iter().flat_map(|side| side.left_out.iter().cloned()).collect();
    for side in sides {
        let degraded: Vec<_> = side
            .runs
            .iter()
            .filter(|run| run.summary.verdict.state == VerdictState::Degraded)
            .map(|run| run.name.as_str())
            .collect();
        if !degraded.is_empty() {
            told.push(format!(
                "{}: {} of {} runs are degraded: half of a limit of weir or of its machine was reached",
                side.name,
                degraded.len(),
                side.runs.len()
            ));
        }
    }
    let starts = |side: &Side| {
        let times = side.runs.iter().map(|run| run.summary.run.started_at_seconds);
        times.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
    };
    if let [base, others @ ..] = sides {
        let (first, last) = starts(base);
        let one_after_the_other = |other: &Side| {
            let (begin, end) = starts(other);
            begin > last || end < first
        };
        let many = sides.iter().any(|side| side.runs.len() > 1);
        if many && others.iter().any(one_after_the_other) {
            told.push(
                "the sides were run one after the other: what changed on the machine meanwhile is in their differences"
                    .to_owned(),
            );
        }
    }
    told
}
