//! What a comparison comes to: a value made of the runs of its sides.

use super::alike::{Likeness, Unlike, likeness};
use super::limit::{ChangeLimit, LimitFinding, LimitResult};
use super::side::{ComparedRun, Side};
use super::{FEWEST_FOR_INTERVAL, LEVEL};
use crate::table::{
    Contrast, Difference, FEWEST_FOR_DIFFERENCE, Finding, Table, TableFigure, TableRun, Values,
    VariantComparison, VariantSummary, corrected, means,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_clients::meant;
use weir_engine::summary::{Point, RunFacts, VerdictState};
use weir_setting::{ANYWAY, FAIL_ON};

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
    #[error("these runs are not alike:\n{}{} compares them, and says so", lines(.0), ANYWAY)]
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
    #[error("{} '{limit}': '{figure}' is in another unit; give a change of that, or in percent", FAIL_ON)]
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
    /// The runs of all sides, and the figures that are compared.
    #[serde(flatten)]
    pub table: Table,
    /// The sides; the first is the base.
    pub variants: Vec<VariantSummary>,
    /// Each other side against the base.
    pub comparisons: Vec<VariantComparison>,
    /// What was asked with `--fail-on`.
    pub limits: Vec<LimitResult>,
    /// The seconds of each side, for plots.
    #[serde(skip)]
    pub courses: Vec<Course>,
}

/// The course of the runs of a side, for plots.
#[derive(Clone, Debug)]
pub struct Course {
    /// The names of the workloads of its first run.
    pub workloads: Vec<String>,
    /// The seconds of each of its runs.
    pub runs: Vec<Vec<Point>>,
}

/// A figure of a side against the base, before it is corrected for the others.
pub(super) struct UncorrectedDifference<'a> {
    figure: &'a TableFigure,
    values: Values,
    contrast: Option<Contrast>,
}

/// What each figure comes to, corrected for all of them.
pub(super) fn differences(measured: &[&UncorrectedDifference<'_>], margin: f64) -> Vec<Difference> {
    let probabilities: Vec<f64> = measured.iter().filter_map(|it| it.p()).collect();
    let mut corrected = corrected(&probabilities).into_iter();
    measured.iter().map(|it| it.difference(it.p().and_then(|_| corrected.next()), margin)).collect()
}

/// What each side is called in the table: by its own name, and where an earlier side has that, by one of its own. Runs that are compared with
/// themselves are two sides.
fn names(sides: &[Side]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for side in sides {
        let others = (2..).map(|number| format!("{} ({number})", side.name));
        let free = std::iter::once(side.name.clone()).chain(others).find(|name| !names.contains(name));
        names.extend(free);
    }
    names
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
        let names = names(sides);
        let mut table = Table::default();
        // Where the runs of each side stand in the table.
        let mut rows = Vec::new();
        for (side, name) in sides.iter().zip(&names) {
            let first = table.runs.len();
            for (number, run) in (1..).zip(&side.runs) {
                let (row, figures) = run.row(name, number);
                table.add(row, figures);
            }
            rows.push(first..table.runs.len());
        }
        table.figures = figures(&table, options)?;
        let of_side = |at: usize| &table.runs[rows[at].clone()];
        let mut measured = Vec::new();
        for (at, side) in sides.iter().enumerate().skip(1) {
            let paired = are_pairs(&sides[0], side);
            let of = |figure| UncorrectedDifference::of(figure, of_side(0), of_side(at), paired);
            measured.push((at, paired, table.figures.iter().filter_map(of).collect::<Vec<_>>()));
        }
        let all: Vec<_> = measured.iter().flat_map(|(.., measured)| measured).collect();
        let compared = all.iter().filter(|it| it.p().is_some()).count() as u64;
        let mut all = differences(&all, options.margin).into_iter();
        let mut limits = Vec::new();
        let mut comparisons = Vec::new();
        for (at, paired, measured) in &measured {
            let side = &names[*at];
            let differences: Vec<_> = all.by_ref().take(measured.len()).collect();
            for it in measured {
                let asked = options.limits.iter().filter(|limit| means(limit.figure(), &it.figure.name));
                limits.extend(asked.map(|limit| LimitResult {
                    expression: limit.text().to_owned(),
                    figure: it.figure.name.clone(),
                    side: side.clone(),
                    finding: it.judge(limit),
                }));
            }
            // What a side has no value of was asked for all the same: it has not held.
            for figure in
                table.figures.iter().filter(|it| measured.iter().all(|one| one.figure.name != it.name))
            {
                let asked = options.limits.iter().filter(|limit| means(limit.figure(), &figure.name));
                limits.extend(asked.map(|limit| LimitResult {
                    expression: limit.text().to_owned(),
                    figure: figure.name.clone(),
                    side: side.clone(),
                    finding: LimitFinding::NotJudged("one of the sides has no value of it".to_owned()),
                }));
            }
            let pairs = of_side(0).iter().filter(|run| beside(run, of_side(*at)).is_some()).count() as u64;
            comparisons.push(VariantComparison {
                base: names[0].clone(),
                other: side.clone(),
                pairs: paired.then_some(pairs),
                differences,
            });
        }
        let variants = names.iter().enumerate().map(|(at, name)| {
            let runs: Vec<_> = of_side(at).iter().collect();
            VariantSummary::of(name, BTreeMap::new(), runs.len(), &runs)
        });
        let variants = variants.collect();
        Ok(Self {
            layout: LAYOUT.to_owned(),
            run: sides[0].runs[0].summary.run.clone(),
            margin: options.margin,
            compared,
            warnings: warnings(sides),
            unlike,
            subject,
            table,
            variants,
            comparisons,
            limits,
            courses: sides.iter().map(Course::of).collect(),
        })
    }

    /// Runs on the side that has fewest.
    pub fn fewest_runs(&self) -> usize {
        self.variants.iter().map(|side| side.runs).min().unwrap_or(0) as usize
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

/// The figures that are compared: those that were asked for, or all that have titles, and those that limits are about.
fn figures(table: &Table, options: &Options) -> Result<Vec<TableFigure>, ComparisonError> {
    let unknown = |name: &str| {
        let names = table.figures.iter().map(|it| it.name.as_str());
        ComparisonError::NoFigure {
            figure: name.to_owned(),
            nearest: meant(name, names).map(str::to_owned),
            known: table.titled(),
        }
    };
    let asked: Vec<&str> = options.figures.iter().map(String::as_str).collect();
    let shown = table.meant(&asked).map_err(unknown)?;
    let limited: Vec<&str> = options.limits.iter().map(ChangeLimit::figure).collect();
    let limited = if limited.is_empty() { Vec::new() } else { table.meant(&limited).map_err(unknown)? };
    for limit in &options.limits {
        let unfit = table.figures.iter().find(|it| means(limit.figure(), &it.name) && !limit.fits(it.unit));
        if let Some(figure) = unfit {
            let (limit, figure) = (limit.text().to_owned(), figure.name.clone());
            return Err(ComparisonError::Unit { limit, figure });
        }
    }
    let is_compared = |it: &&TableFigure| shown.contains(it) || limited.contains(it);
    Ok(table.figures.iter().filter(is_compared).cloned().collect())
}

/// The run of another side that was made next to this one.
fn beside<'a>(run: &TableRun, others: &'a [TableRun]) -> Option<&'a TableRun> {
    others.iter().find(|it| it.repetition == run.repetition)
}

impl<'a> UncorrectedDifference<'a> {
    fn of(figure: &'a TableFigure, base: &[TableRun], other: &[TableRun], paired: bool) -> Option<Self> {
        let value = |run: &TableRun| run.figures.get(&figure.name).copied();
        let pair = |run: &TableRun| Some((value(run)?, value(beside(run, other)?)?));
        let values_of = |runs: &[TableRun]| runs.iter().filter_map(value).collect();
        let values = if paired {
            Values::Pairs(base.iter().filter_map(pair).collect())
        } else {
            Values::Apart(values_of(base), values_of(other))
        };
        (values.fewest() > 0).then(|| Self::new(figure, values))
    }

    pub(super) fn new(figure: &'a TableFigure, values: Values) -> Self {
        Self { figure, contrast: Contrast::of(&values), values }
    }

    /// The probability that is corrected for the others: what is equal in all runs is no question.
    fn p(&self) -> Option<f64> {
        let is_told = self.values.fewest() >= FEWEST_FOR_DIFFERENCE && !self.values.are_equal();
        self.contrast.filter(|_| is_told).map(|it| it.p)
    }

    fn difference(&self, p: Option<f64>, margin: f64) -> Difference {
        let runs = self.values.fewest();
        let (base, other) = self.values.means(self.contrast.as_ref());
        Difference {
            figure: self.figure.name.clone(),
            runs: runs as u64,
            base,
            other,
            difference: self.contrast.map(|it| it.difference),
            ratio: self.contrast.and_then(|it| it.ratio),
            p,
            finding: self.finding(p, margin),
        }
    }

    fn finding(&self, p: Option<f64>, margin: f64) -> Finding {
        if self.values.fewest() < FEWEST_FOR_DIFFERENCE {
            return Finding::Unknown;
        }
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
        Finding::of_change(self.figure.better, contrast.rises())
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

impl Course {
    fn of(side: &Side) -> Self {
        let names =
            side.runs.first().map(|run| run.summary.workloads.iter().map(|it| it.name.clone()).collect());
        Self {
            workloads: names.unwrap_or_default(),
            runs: side.runs.iter().map(|run| run.summary.series.clone()).collect(),
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
