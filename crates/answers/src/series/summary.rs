//! What a series comes to: a value made of the summaries of its runs.

use super::figures::{SeriesFigure, figures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_engine::ingest::Classic;
use weir_engine::scenario::{Order, Variant};
use weir_engine::summary::{Outcome, RunFacts, Summary, ThresholdResult, VerdictState};
use weir_metrics::Estimate;

/// The version of the layout; `docs/series.schema.json` follows it.
pub const LAYOUT: &str = "weir.series/1";

/// The fewest pairs for a statement on a difference: with fewer the interval depends more on the repetitions than on the target.
pub const FEWEST_PAIRS: usize = 4;

/// The most lines of warnings.
const MOST_WARNINGS: usize = 20;

/// A whole series.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeriesSummary {
    /// `weir.series/1`.
    pub layout: String,
    /// What was run, and where.
    pub run: RunFacts,
    /// How it ended.
    pub ending: Ending,
    /// Nothing measured if no run measured anything, invalid if a variant has no run that can be believed, degraded if some
    /// run cannot be.
    pub verdict: VerdictState,
    /// Things to know when reading the figures, one line each.
    pub warnings: Vec<String>,
    /// In which order the runs were made.
    pub order: Order,
    /// How often each variant was to be run.
    pub repeat: u32,
    /// What was measured of each run, in the order of the table.
    pub figures: Vec<SeriesFigure>,
    /// One entry a variant, in the scenario's order.
    pub variants: Vec<VariantSummary>,
    /// Every other variant against the first.
    pub comparisons: Vec<VariantComparison>,
    /// All runs, in the order in which they were made. Each has a run directory of its own in that of the series.
    pub runs: Vec<SeriesRun>,
}

/// How a series ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It goes on.
    Running,
    /// All runs were made.
    Completed,
    /// By Ctrl-C or SIGTERM.
    Interrupted,
    /// A run could not be made.
    Failed(RunFailure),
}

/// Why a run of a series could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFailure {
    /// What went wrong, in one line.
    pub words: String,
    /// The exit code of the command that made the series: a command that reads its directory later ends with the same.
    pub exit_code: u8,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// What stood for each key; URLs without user, password and token.
    pub values: BTreeMap<String, String>,
    /// Runs that were made.
    pub runs: u64,
    /// Of these, those that are in the figures: they ran to their end, something was measured, and the verdict on them was not `invalid`.
    pub counted: u64,
    /// By the figure's name.
    pub figures: BTreeMap<String, Counted>,
    /// What was asked, over the runs that are counted.
    pub thresholds: Vec<VariantThreshold>,
}

/// A figure over the runs of a variant that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Runs that have it.
    pub runs: u64,
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The mean with its 95 % confidence interval, from four runs on.
    pub estimate: Option<Estimate>,
}

/// A threshold over the runs of a variant that are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariantThreshold {
    /// As it was written.
    pub expression: String,
    /// Runs in which it held.
    pub passed: u64,
    /// Runs in which it was judged.
    pub runs: u64,
}

/// A variant against the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantComparison {
    /// The first.
    pub base: String,
    /// The other.
    pub other: String,
    /// Repetitions in which both are counted.
    pub pairs: u64,
    /// One entry each of the figures that both have.
    pub differences: Vec<Difference>,
}

/// The difference of a figure between two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The figure's name.
    pub figure: String,
    /// The other's value less the base's, of each pair.
    pub difference: Estimate,
    /// The other's value over the base's, of each pair; the geometric mean. None if any value of any pair is not above 0.
    pub ratio: Option<Estimate>,
    /// Whether the two differ significantly: the interval excludes no difference. Absent with fewer than four pairs, which
    /// show nothing.
    pub told_apart: Option<bool>,
}

/// One run of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRun {
    /// Its variant.
    pub variant: String,
    /// Which repetition of it, from 1.
    pub repetition: u32,
    /// Its run directory, in that of the series.
    pub directory: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the target gave no client an answer.
    pub unanswered: bool,
    /// Whether its figures can be believed.
    pub verdict: VerdictState,
    /// The first reason of the verdict, or what a run says in which nothing was measured, if there is one.
    pub reason: Option<String>,
    /// Things to know when reading its figures, one line each.
    pub warnings: Vec<String>,
    /// What was asked of the target, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// By the figure's name.
    pub figures: BTreeMap<String, f64>,
    /// The line of the original measurement, of a run whose messages were saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classic: Option<Classic>,
}

/// What is known of a series beside its runs.
#[derive(Clone, Debug)]
pub struct SeriesFacts {
    /// What is run, and where.
    pub run: RunFacts,
    /// The variants.
    pub variants: Vec<Variant>,
    /// How often each is to be run.
    pub repeat: u32,
    /// In which order.
    pub order: Order,
}

impl SeriesRun {
    /// What is kept of a run, and what its figures are called. `directory` is its place in that of the series.
    pub fn new(
        variant: &str,
        repetition: u32,
        directory: String,
        summary: &Summary,
    ) -> (Self, Vec<SeriesFigure>) {
        let named = figures(summary).into_iter().map(|(figure, value)| {
            let name = figure.name.clone();
            (figure, (name, value))
        });
        let (figures, values) = named.unzip();
        let run = Self {
            variant: variant.to_owned(),
            repetition,
            directory,
            outcome: summary.outcome.clone(),
            unanswered: summary.is_unanswered(),
            verdict: summary.verdict.state,
            reason: summary.verdict.reasons.first().map(|reason| reason.text.clone()),
            warnings: summary.warnings.clone(),
            thresholds: summary.thresholds.clone(),
            figures: values,
            classic: summary.workloads.iter().find_map(|it| Some(it.ingested.as_ref()?.classic)),
        };
        (run, figures)
    }

    /// Whether its figures are in those of its variant.
    pub fn is_counted(&self) -> bool {
        matches!(self.outcome, Outcome::Completed | Outcome::NobodyLeft)
            && self.verdict < VerdictState::NothingMeasured
    }

    /// Why its figures are not in those of its variant, of a run that is not counted.
    pub fn why_not_counted(&self) -> String {
        match &self.outcome {
            Outcome::Interrupted => "it was interrupted".to_owned(),
            Outcome::TargetDied => "the target died".to_owned(),
            Outcome::Running => "it still goes on".to_owned(),
            Outcome::AgentLost => "an agent was lost".to_owned(),
            Outcome::Aborted(threshold) => format!("{threshold} ended it"),
            Outcome::Completed | Outcome::NobodyLeft => self.reason.clone().unwrap_or_else(|| {
                let words = match self.verdict {
                    _ if self.unanswered => "no client got an answer",
                    VerdictState::NothingMeasured => "nothing was measured",
                    _ => "it is invalid",
                };
                words.to_owned()
            }),
        }
    }
}

impl SeriesSummary {
    /// Sums up what was measured so far. `figures` are those of all runs, each once, in the order of the table.
    pub fn new(facts: &SeriesFacts, figures: &[SeriesFigure], runs: &[SeriesRun], ending: Ending) -> Self {
        let of = |variant: &Variant| VariantSummary::new(variant, runs);
        let variants: Vec<_> = facts.variants.iter().map(of).collect();
        let comparisons = facts.variants.split_first().map_or_else(Vec::new, |(base, others)| {
            others
                .iter()
                .map(|other| VariantComparison::new(&base.name, &other.name, figures, runs))
                .collect()
        });
        let verdict = if runs.iter().all(|run| run.verdict == VerdictState::NothingMeasured) {
            VerdictState::NothingMeasured
        } else if variants.iter().any(|it| it.counted == 0) {
            VerdictState::Invalid
        } else if runs.iter().any(|run| !run.is_counted() || run.verdict != VerdictState::Valid) {
            VerdictState::Degraded
        } else {
            VerdictState::Valid
        };
        Self {
            layout: LAYOUT.to_owned(),
            run: facts.run.clone(),
            ending,
            verdict,
            warnings: warnings(facts, runs),
            order: facts.order,
            repeat: facts.repeat,
            figures: figures.to_vec(),
            variants,
            comparisons,
            runs: runs.to_vec(),
        }
    }

    /// Thresholds that did not hold in some run that is counted.
    pub fn failed_thresholds(&self) -> usize {
        let thresholds = self.variants.iter().flat_map(|it| &it.thresholds);
        thresholds.filter(|it| it.passed < it.runs).count()
    }
}

/// Runs that are not in the figures and why, what bears on all of them, and the runs' own warnings, each once.
fn warnings(facts: &SeriesFacts, runs: &[SeriesRun]) -> Vec<String> {
    let left_out = runs.iter().filter(|run| !run.is_counted());
    let left_out =
        left_out.map(|run| format!("run {} is not in the figures: {}", run.directory, run.why_not_counted()));
    let mut told: Vec<_> = left_out.collect();
    if facts.order == Order::Sequential && facts.variants.len() > 1 {
        told.push(
            "the variants were run one after the other: what changed on the machine meanwhile is in their differences"
                .to_owned(),
        );
    }
    for (run, warning) in runs.iter().flat_map(|run| run.warnings.iter().map(move |it| (run, it))) {
        if !told.iter().any(|known| known.ends_with(warning.as_str())) {
            told.push(format!("run {}: {warning}", run.directory));
        }
    }
    let more = told.len().saturating_sub(MOST_WARNINGS);
    told.truncate(MOST_WARNINGS);
    if more > 0 {
        told.push(format!("and {more} more; summary.json has them all, by run"));
    }
    told
}

impl VariantSummary {
    fn new(variant: &Variant, runs: &[SeriesRun]) -> Self {
        let all: Vec<_> = runs.iter().filter(|run| run.variant == variant.name).collect();
        let counted: Vec<_> = all.iter().copied().filter(|run| run.is_counted()).collect();
        let mut values: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
        let mut thresholds: Vec<VariantThreshold> = Vec::new();
        for run in &counted {
            for (name, value) in &run.figures {
                values.entry(name).or_default().push(*value);
            }
            for result in &run.thresholds {
                let at = thresholds.iter().position(|it| it.expression == result.expression);
                let at = at.unwrap_or_else(|| {
                    let expression = result.expression.clone();
                    thresholds.push(VariantThreshold { expression, passed: 0, runs: 0 });
                    thresholds.len() - 1
                });
                thresholds[at].runs += 1;
                thresholds[at].passed += u64::from(result.passed);
            }
        }
        Self {
            name: variant.name.clone(),
            values: variant.shown(),
            runs: all.len() as u64,
            counted: counted.len() as u64,
            figures: values.into_iter().map(|(name, values)| (name.clone(), Counted::of(&values))).collect(),
            thresholds,
        }
    }
}

impl Counted {
    /// Of at least one value.
    fn of(values: &[f64]) -> Self {
        Self {
            runs: values.len() as u64,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            estimate: Estimate::of(values).filter(|_| values.len() >= FEWEST_PAIRS),
        }
    }
}

impl VariantComparison {
    fn new(base: &str, other: &str, figures: &[SeriesFigure], runs: &[SeriesRun]) -> Self {
        let of = |variant: &str, repetition: u32| {
            let mut made = runs.iter().filter(|run| run.is_counted());
            made.find(|run| run.variant == variant && run.repetition == repetition)
        };
        let repetitions = runs.iter().filter(|run| run.variant == base).map(|run| run.repetition);
        let pairs: Vec<_> =
            repetitions.filter_map(|number| Some((of(base, number)?, of(other, number)?))).collect();
        let differences = figures.iter().filter_map(|figure| {
            let both = |(one, two): &(&SeriesRun, &SeriesRun)| {
                Some((*one.figures.get(&figure.name)?, *two.figures.get(&figure.name)?))
            };
            let values: Vec<_> = pairs.iter().filter_map(both).collect();
            let differences: Vec<f64> = values.iter().map(|(one, two)| two - one).collect();
            let ratios: Vec<f64> = values.iter().map(|(one, two)| two / one).collect();
            let positive = values.iter().all(|(one, two)| *one > 0.0 && *two > 0.0);
            let difference = Estimate::of(&differences)?;
            let ratio = Estimate::of_ratios(&ratios).filter(|_| positive);
            let apart = ratio.map_or_else(|| difference.excludes(0.0), |ratio| ratio.excludes(1.0));
            let told_apart = (values.len() >= FEWEST_PAIRS).then_some(apart);
            Some(Difference { figure: figure.name.clone(), difference, ratio, told_apart })
        });
        Self {
            base: base.to_owned(),
            other: other.to_owned(),
            pairs: pairs.len() as u64,
            differences: differences.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_engine::units::FigureUnit;

    fn run(variant: &str, repetition: u32, bitrate: f64, verdict: VerdictState) -> SeriesRun {
        SeriesRun {
            variant: variant.to_owned(),
            repetition,
            directory: format!("{repetition}-{variant}"),
            outcome: Outcome::Completed,
            unanswered: false,
            verdict,
            reason: Some("CPU was short".to_owned()),
            warnings: Vec::new(),
            thresholds: vec![ThresholdResult {
                expression: "bitrate.ratio >= 90%".to_owned(),
                value: Some(1.0),
                passed: bitrate < 20.0,
                default: true,
                place: None,
                words: None,
            }],
            figures: [("bitrate".to_owned(), bitrate)].into(),
            classic: None,
        }
    }

    fn summary(runs: &[SeriesRun]) -> SeriesSummary {
        let variant = |name: &str| Variant { name: name.to_owned(), ..Variant::default() };
        let facts = SeriesFacts {
            run: RunFacts { name: "n".to_owned(), ..RunFacts::default() },
            variants: vec![variant("a"), variant("b")],
            repeat: 4,
            order: Order::Interleaved,
        };
        let figure = SeriesFigure {
            name: "bitrate".to_owned(),
            title: Some("Received".to_owned()),
            unit: FigureUnit::BitsPerSecond,
            better: None,
        };
        SeriesSummary::new(&facts, &[figure], runs, Ending::Completed)
    }

    #[test]
    fn pairs_of_valid_runs_tell_a_difference_and_others_are_left_out_and_named() {
        let values = [(10.0, 20.0), (11.0, 21.5), (9.0, 19.0), (10.5, 20.0)];
        let mut runs = Vec::new();
        for (repetition, (a, b)) in (1..).zip(values) {
            runs.push(run("a", repetition, a, VerdictState::Valid));
            runs.push(run("b", repetition, b, VerdictState::Degraded));
        }
        let four = summary(&runs);
        let [comparison] = &four.comparisons[..] else { panic!("{four:?}") };
        assert_eq!((comparison.pairs, comparison.differences[0].told_apart), (4, Some(true)));
        let difference = comparison.differences[0].difference;
        assert!((difference.mean - 10.0).abs() < 1e-9 && difference.excludes(0.0), "{difference:?}");
        assert_eq!(four.verdict, VerdictState::Degraded);
        assert_eq!(four.failed_thresholds(), 1);
        assert_eq!((four.variants[1].thresholds[0].passed, four.variants[1].thresholds[0].runs), (1, 4));
        // The same with one run that cannot be believed: a pair less, and too few to tell.
        runs[3].verdict = VerdictState::Invalid;
        let three = summary(&runs);
        assert_eq!((three.comparisons[0].pairs, three.comparisons[0].differences[0].told_apart), (3, None));
        assert_eq!((three.variants[1].runs, three.variants[1].counted), (4, 3));
        assert_eq!(three.warnings, ["run 2-b is not in the figures: CPU was short"]);
        let none: Vec<_> = runs.iter().filter(|it| it.variant == "b" && !it.is_counted()).cloned().collect();
        assert_eq!(summary(&none).verdict, VerdictState::Invalid);
    }

    #[test]
    fn a_figure_that_is_nothing_has_a_difference_and_no_ratio() {
        let runs: Vec<_> = (1..=4)
            .flat_map(|repetition| {
                ["a", "b"].map(|variant| run(variant, repetition, 0.0, VerdictState::Valid))
            })
            .collect();
        let found = summary(&runs);
        let difference = &found.comparisons[0].differences[0];
        assert_eq!((difference.ratio, difference.told_apart), (None, Some(false)));
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-9 * one.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn repetitions_in_any_order_come_to_the_same(
            values in prop::collection::vec((1.0f64..100.0, 1.0f64..100.0, 0u8..6), 1..9),
            seed: u64,
        ) {
            let runs = (1..).zip(&values).flat_map(|(repetition, (a, b, kind))| {
                let verdict = if *kind == 0 { VerdictState::Invalid } else { VerdictState::Valid };
                [run("a", repetition, *a, VerdictState::Valid), run("b", repetition, *b, verdict)]
            });
            let mut runs: Vec<_> = runs.collect();
            let found = summary(&runs);
            fastrand::Rng::with_seed(seed).shuffle(&mut runs);
            let again = summary(&runs);
            prop_assert_eq!(found.verdict, again.verdict);
            for (one, other) in found.variants.iter().zip(&again.variants) {
                prop_assert_eq!((one.runs, one.counted), (other.runs, other.counted));
                prop_assert_eq!(&one.thresholds, &other.thresholds);
                prop_assert_eq!(one.figures.len(), other.figures.len());
                for (one, other) in one.figures.values().zip(other.figures.values()) {
                    prop_assert_eq!((one.runs, one.min, one.max), (other.runs, other.min, other.max));
                    prop_assert!(is_near(one.mean, other.mean));
                }
            }
            for (one, other) in found.comparisons.iter().zip(&again.comparisons) {
                prop_assert_eq!(one.pairs, other.pairs);
                prop_assert_eq!(one.differences.len(), other.differences.len());
                for (one, other) in one.differences.iter().zip(&other.differences) {
                    prop_assert!(is_near(one.difference.mean, other.difference.mean));
                    prop_assert!(is_near(one.difference.high, other.difference.high));
                }
            }
        }
    }
}
