//! A series: every variant of a scenario, run as often as it says, interleaved. A value made of the summaries of its runs; the runner
//! makes them.

use crate::table::{
    Contrast, Difference, FEWEST_FOR_DIFFERENCE, Finding, Table, TableFigure, TableRun, Values,
    VariantComparison, VariantSummary, pairs,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::scenario::{Order, Variant};
use weir_engine::summary::{RunFacts, VerdictState};

/// The version of the layout; `docs/series.schema.json` follows it.
pub const LAYOUT: &str = "weir.series/1";

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
    /// Its runs and their figures.
    #[serde(flatten)]
    pub table: Table,
    /// One entry a variant, in the scenario's order.
    pub variants: Vec<VariantSummary>,
    /// Every other variant against the first.
    pub comparisons: Vec<VariantComparison>,
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

impl SeriesSummary {
    /// Sums up what was measured so far.
    pub fn new(facts: &SeriesFacts, table: &Table, ending: Ending) -> Self {
        let runs = &table.runs;
        let variants: Vec<_> = facts.variants.iter().map(|variant| sum_up(variant, runs)).collect();
        let comparisons = facts.variants.split_first().map_or_else(Vec::new, |(base, others)| {
            others.iter().map(|other| difference_of_pairs(&base.name, &other.name, table)).collect()
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
            table: table.clone(),
            variants,
            comparisons,
        }
    }

    /// Thresholds that did not hold in some run that is counted.
    pub fn failed_thresholds(&self) -> usize {
        let thresholds = self.variants.iter().flat_map(|it| &it.thresholds);
        thresholds.filter(|it| it.passed < it.runs).count()
    }
}

/// Runs that are not in the figures and why, what bears on all of them, and the runs' own warnings, each once.
fn warnings(facts: &SeriesFacts, runs: &[TableRun]) -> Vec<String> {
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

/// What the runs of a variant come to.
fn sum_up(variant: &Variant, runs: &[TableRun]) -> VariantSummary {
    let all: Vec<_> = runs.iter().filter(|run| run.variant == variant.name).collect();
    let counted: Vec<_> = all.iter().copied().filter(|run| run.is_counted()).collect();
    VariantSummary::of(&variant.name, variant.shown(), all.len(), &counted)
}

/// How a variant differs from another in the repetitions in which both are counted. There is no margin: nothing is the same.
fn difference_of_pairs(base: &str, other: &str, table: &Table) -> VariantComparison {
    let pairs = pairs(base, other, &table.runs);
    let differences = table.figures.iter().filter_map(|figure| {
        let both = |(one, two): &(&TableRun, &TableRun)| {
            Some((*one.figures.get(&figure.name)?, *two.figures.get(&figure.name)?))
        };
        difference(figure, &Values::Pairs(pairs.iter().filter_map(both).collect()))
    });
    VariantComparison {
        base: base.to_owned(),
        other: other.to_owned(),
        pairs: Some(pairs.len() as u64),
        differences: differences.collect(),
    }
}

/// Of pairs of runs; they differ if the interval excludes that they are equal. `None` for fewer than two.
fn difference(figure: &TableFigure, values: &Values) -> Option<Difference> {
    let contrast = Contrast::of(values)?;
    let runs = values.fewest();
    let is_apart =
        contrast.ratio.map_or_else(|| contrast.difference.excludes(0.0), |ratio| ratio.excludes(1.0));
    let finding = match is_apart {
        _ if runs < FEWEST_FOR_DIFFERENCE => Finding::Unknown,
        true => Finding::of_change(figure.better, contrast.rises()),
        false => Finding::Undecided,
    };
    let (base, other) = values.means(Some(&contrast));
    Some(Difference {
        figure: figure.name.clone(),
        runs: runs as u64,
        base,
        other,
        difference: Some(contrast.difference),
        ratio: contrast.ratio,
        p: None,
        finding,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_engine::summary::units::FigureUnit;
    use weir_engine::summary::{Outcome, ThresholdResult};

    fn run(variant: &str, repetition: u32, bitrate: f64, verdict: VerdictState) -> TableRun {
        TableRun {
            variant: variant.to_owned(),
            repetition,
            directory: format!("{repetition}-{variant}"),
            started_at_seconds: 0.0,
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
            cpu_percent_per_client: None,
            busiest_thread: None,
            classic: None,
            capacity: None,
            unlike_before: Vec::new(),
        }
    }

    fn summary(runs: &[TableRun]) -> SeriesSummary {
        let variant = |name: &str| Variant { name: name.to_owned(), ..Variant::default() };
        let facts = SeriesFacts {
            run: RunFacts { name: "n".to_owned(), ..RunFacts::default() },
            variants: vec![variant("a"), variant("b")],
            repeat: 4,
            order: Order::Interleaved,
        };
        let figure = TableFigure {
            name: "bitrate".to_owned(),
            title: Some("Received".to_owned()),
            unit: FigureUnit::BitsPerSecond,
            better: None,
        };
        let table = Table { figures: vec![figure], runs: runs.to_vec() };
        SeriesSummary::new(&facts, &table, Ending::Completed)
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
        assert_eq!((comparison.pairs, comparison.differences[0].finding), (Some(4), Finding::Different));
        let difference = comparison.differences[0].difference.unwrap();
        assert!((difference.mean - 10.0).abs() < 1e-9 && difference.excludes(0.0), "{difference:?}");
        assert_eq!(four.verdict, VerdictState::Degraded);
        assert_eq!(four.failed_thresholds(), 1);
        assert_eq!((four.variants[1].thresholds[0].passed, four.variants[1].thresholds[0].runs), (1, 4));
        // The same with one run that cannot be believed: a pair less, and too few to tell.
        runs[3].verdict = VerdictState::Invalid;
        let three = summary(&runs);
        assert_eq!(
            (three.comparisons[0].pairs, three.comparisons[0].differences[0].finding),
            (Some(3), Finding::Unknown)
        );
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
        assert_eq!((difference.ratio, difference.finding), (None, Finding::Undecided));
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
                    prop_assert!(is_near(one.difference.unwrap().mean, other.difference.unwrap().mean));
                    prop_assert!(is_near(one.difference.unwrap().high, other.difference.unwrap().high));
                }
            }
        }
    }
}
