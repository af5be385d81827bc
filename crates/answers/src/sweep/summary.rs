//! The result of a sweep: which variant is best, which do not differ significantly from it, and which are worse.

use super::standing::{against, best, has_rival, may_be_beaten};
use super::{BusiestThread, SweepCell};
use crate::capacity::Evidence;
use crate::series::{Ending, FEWEST_PAIRS, SeriesSummary, VariantThreshold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_engine::declared::better_if_asked;
use weir_engine::scenario::{LoadKind, Order, Variant};
use weir_engine::summary::RunFacts;
use weir_engine::units::FigureUnit;
use weir_metrics::{Better, Estimate};

/// The version of the layout; `docs/sweep.schema.json` follows it.
pub const LAYOUT: &str = "weir.sweep/1";

/// A whole sweep.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepSummary {
    /// `weir.sweep/1`.
    pub layout: String,
    /// What was run, and where.
    pub run: RunFacts,
    /// How it ended.
    pub ending: Ending,
    /// In which order the cells were made.
    pub order: Order,
    /// How often each variant was to be run, or searched.
    pub repeat: u32,
    /// What says which variant is best.
    pub ranked: Ranked,
    /// Keys of the variants that have several values, by name.
    pub dimensions: Vec<Dimension>,
    /// One entry a variant, in the scenario's order.
    pub variants: Vec<SweepVariant>,
    /// All cells, in the order in which they were made.
    pub cells: Vec<SweepCell>,
    /// The figures of all runs, with their intervals; none of searches.
    pub series: Option<SeriesSummary>,
}

/// What variants are ranked by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// `capacity`, `cpu_per_client`, or the name of a figure of runs.
    pub by: Rank,
    /// The same in words: `viewers`, `CPU a client`, `Startup p99`.
    pub title: String,
    /// What it is measured in.
    pub unit: FigureUnit,
    /// Which values are better.
    pub better: Better,
}

/// What variants are ranked by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rank {
    /// How much they carry.
    Capacity(LoadKind),
    /// CPU of what is watched for each client.
    CpuPerClient,
    /// A figure of runs.
    Figure(String),
}

/// A key of the variants, with its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dimension {
    /// The key.
    pub key: String,
    /// Its values, in the order in which they come up.
    pub values: Vec<String>,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepVariant {
    /// Its name.
    pub name: String,
    /// What stood for each key; URLs without user, password and token.
    pub values: BTreeMap<String, String>,
    /// Cells that were made.
    pub cells: u64,
    /// Of these, those that are in the figures.
    pub counted: u64,
    /// What it is ranked by: a capacity's bounds over all its searches, a figure's mean with its 95 % interval.
    pub value: Option<SweepValue>,
    /// How it stands to the best one.
    pub standing: Standing,
    /// Thresholds that did not hold in most of its counted runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<VariantThreshold>,
    /// CPU of what is watched for each client, in percent of a core, in the mean of its cells.
    pub cpu_percent_per_client: Option<f64>,
    /// The busiest thread of what is watched, in the cell in which it was busiest.
    pub busiest_thread: Option<BusiestThread>,
}

/// A value with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepValue {
    /// The mean; of a capacity the geometric mean of what was carried.
    pub mean: f64,
    /// The lower end of the interval, from four runs on; of a capacity the smallest lower bound.
    pub low: Option<f64>,
    /// The upper end; of a capacity the largest upper bound. `None` if it is unknown.
    pub high: Option<f64>,
    /// Whether the ends are what is asked for: bounds that were confirmed, or a 95 % interval.
    pub is_sure: bool,
    /// Whether the lower end is.
    #[serde(default)]
    pub low_is_sure: bool,
    /// Whether the upper end is.
    #[serde(default)]
    pub high_is_sure: bool,
}

/// How a variant stands to the best one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is the best.
    Best,
    /// It does not differ significantly from the best.
    Alike,
    /// It is worse than the best.
    Worse,
    /// It fails a threshold in most of its counted runs: it is neither the best nor a rival of it.
    Fails,
    /// Too little is known to say.
    Unknown,
}

/// What is known of a sweep beside its cells.
#[derive(Clone, Debug)]
pub struct SweepFacts {
    /// What is run, and where.
    pub run: RunFacts,
    /// The variants.
    pub variants: Vec<Variant>,
    /// How often each is to be run, or searched.
    pub repeat: u32,
    /// In which order.
    pub order: Order,
    /// What they are ranked by.
    pub ranked: Ranked,
}

impl Ranked {
    /// By what each variant carries.
    pub fn by_capacity(kind: LoadKind, noun: &str) -> Self {
        Self {
            by: Rank::Capacity(kind),
            title: noun.to_owned(),
            unit: FigureUnit::Count,
            better: Better::Higher,
        }
    }

    /// By the CPU of what is watched for each client.
    pub fn by_cpu_per_client() -> Self {
        Self {
            by: Rank::CpuPerClient,
            title: "CPU a client".to_owned(),
            unit: FigureUnit::Percent,
            better: Better::Lower,
        }
    }

    /// By a figure of runs.
    pub fn by_figure(name: &str) -> Self {
        Self {
            by: Rank::Figure(name.to_owned()),
            title: name.to_owned(),
            unit: FigureUnit::Count,
            better: better_if_asked(name),
        }
    }

    /// What it is of a cell of a run.
    pub(super) fn of(&self, cell: &SweepCell) -> Option<f64> {
        match &self.by {
            Rank::Capacity(_) => None,
            Rank::CpuPerClient => cell.cpu_percent_per_client,
            Rank::Figure(name) => cell.figures.get(name).copied(),
        }
    }

    /// Whether one value is better than another.
    pub(super) fn is_better(&self, one: f64, other: f64) -> bool {
        match self.better {
            Better::Higher => one > other,
            Better::Lower => one < other,
        }
    }
}

impl SweepSummary {
    /// Sums up what was made so far.
    pub fn new(
        facts: &SweepFacts,
        cells: &[SweepCell],
        series: Option<SeriesSummary>,
        ending: Ending,
    ) -> Self {
        let mut ranked = facts.ranked.clone();
        let figures = series.iter().flat_map(|series| &series.figures);
        if let Rank::Figure(name) = &ranked.by
            && let Some(figure) = figures.clone().find(|figure| figure.name == *name)
        {
            ranked.unit = figure.unit;
            ranked.title = figure.title.clone().unwrap_or_else(|| name.clone());
        }
        let mut variants: Vec<_> =
            facts.variants.iter().map(|variant| SweepVariant::new(variant, &ranked, cells)).collect();
        let best = best(&variants, &ranked);
        let mut standings: Vec<_> = variants
            .iter()
            .enumerate()
            .map(|(at, variant)| match best {
                _ if !variant.failed.is_empty() => Standing::Fails,
                Some(best) if best == at => Standing::Best,
                Some(best) => against(&variants[best], variant, &ranked, cells),
                None => Standing::Unknown,
            })
            .collect();
        if let Some(best) = best
            && (!has_rival(best, &variants, &standings, &ranked)
                || may_be_beaten(best, &variants, &standings, &ranked))
        {
            // Without a best one there is none to be like.
            let alike = |it: &&mut Standing| matches!(it, Standing::Best | Standing::Alike);
            standings.iter_mut().filter(alike).for_each(|it| *it = Standing::Unknown);
        }
        for (variant, standing) in variants.iter_mut().zip(standings) {
            variant.standing = standing;
        }
        Self {
            layout: LAYOUT.to_owned(),
            run: facts.run.clone(),
            ending,
            order: facts.order,
            repeat: facts.repeat,
            ranked,
            dimensions: dimensions(&variants),
            variants,
            cells: cells.to_vec(),
            series,
        }
    }

    /// Names of the variants that stand so to the best one.
    pub fn standing(&self, standing: Standing) -> impl Iterator<Item = &SweepVariant> {
        self.variants.iter().filter(move |variant| variant.standing == standing)
    }

    /// The variant of these values of the two dimensions, if there are two and each pair of values is one variant.
    pub fn at(&self, first: &str, second: &str) -> Option<&SweepVariant> {
        let [one, other] = &self.dimensions[..] else { return None };
        let is_it = |it: &&SweepVariant| {
            it.values.get(&one.key).is_some_and(|value| value == first)
                && it.values.get(&other.key).is_some_and(|value| value == second)
        };
        self.variants.iter().find(is_it)
    }
}

impl SweepVariant {
    fn new(variant: &Variant, ranked: &Ranked, cells: &[SweepCell]) -> Self {
        let all: Vec<_> = cells.iter().filter(|cell| cell.variant == variant.name).collect();
        let counted: Vec<_> = all.iter().copied().filter(|cell| cell.counted).collect();
        let cpu: Vec<f64> = counted.iter().filter_map(|cell| cell.cpu_percent_per_client).collect();
        let busiest = counted.iter().filter_map(|cell| cell.busiest_thread.as_ref());
        let busiest = busiest.max_by(|one, other| one.cpu_percent.total_cmp(&other.cpu_percent));
        Self {
            name: variant.name.clone(),
            values: variant.shown(),
            cells: all.len() as u64,
            counted: counted.len() as u64,
            value: match ranked.by {
                Rank::Capacity(_) => capacity(&counted),
                _ => figure(&counted.iter().filter_map(|cell| ranked.of(cell)).collect::<Vec<_>>()),
            },
            standing: Standing::Unknown,
            failed: failed(&counted),
            cpu_percent_per_client: (!cpu.is_empty()).then(|| cpu.iter().sum::<f64>() / cpu.len() as f64),
            busiest_thread: busiest.cloned(),
        }
    }
}

/// The thresholds that did not hold in most of the runs.
fn failed(runs: &[&SweepCell]) -> Vec<VariantThreshold> {
    let mut found: Vec<VariantThreshold> = Vec::new();
    for expression in runs.iter().flat_map(|run| &run.failed) {
        if found.iter().all(|it| it.expression != *expression) {
            let passed = runs.iter().filter(|run| !run.failed.contains(expression)).count() as u64;
            found.push(VariantThreshold { expression: expression.clone(), passed, runs: runs.len() as u64 });
        }
    }
    found.retain(|it| it.passed * 2 < it.runs);
    found
}

/// The bounds of all searches of a variant: each of them is one of where the limit was that time.
fn capacity(cells: &[&SweepCell]) -> Option<SweepValue> {
    let found: Vec<_> = cells.iter().filter_map(|cell| cell.capacity).collect();
    let lower = |it: &super::CellCapacity| f64::from(it.lower.unwrap_or(0));
    let low = found.iter().map(lower).fold(f64::INFINITY, f64::min);
    let uppers: Option<Vec<u32>> = found.iter().map(|it| it.upper).collect();
    let logs: f64 = found.iter().map(|it| lower(it).max(1e-9).ln()).sum();
    (!found.is_empty()).then(|| SweepValue {
        mean: if low > 0.0 { (logs / found.len() as f64).exp() } else { low },
        low: Some(low),
        high: uppers.and_then(|uppers| uppers.into_iter().max()).map(f64::from),
        is_sure: found.iter().all(|it| !matches!(it.evidence, Evidence::Undecided | Evidence::Void)),
        low_is_sure: found.iter().all(|it| it.lower_is_sure),
        high_is_sure: found.iter().all(|it| it.upper_is_sure),
    })
}

fn figure(values: &[f64]) -> Option<SweepValue> {
    let estimate = Estimate::of(values).filter(|_| values.len() >= FEWEST_PAIRS);
    (!values.is_empty()).then(|| SweepValue {
        mean: values.iter().sum::<f64>() / values.len() as f64,
        low: estimate.map(|it| it.low),
        high: estimate.map(|it| it.high),
        is_sure: estimate.is_some(),
        low_is_sure: estimate.is_some(),
        high_is_sure: estimate.is_some(),
    })
}

fn dimensions(variants: &[SweepVariant]) -> Vec<Dimension> {
    let mut dimensions: Vec<Dimension> = Vec::new();
    for (key, value) in variants.iter().flat_map(|variant| &variant.values) {
        let at = dimensions.iter().position(|it| it.key == *key).unwrap_or_else(|| {
            dimensions.push(Dimension { key: key.clone(), values: Vec::new() });
            dimensions.len() - 1
        });
        if !dimensions[at].values.contains(value) {
            dimensions[at].values.push(value.clone());
        }
    }
    dimensions.retain(|dimension| dimension.values.len() > 1);
    dimensions
}

#[cfg(test)]
mod tests {
    use super::super::CellCapacity;
    use super::*;
    use proptest::prelude::*;

    fn variant(name: &str, values: &[(&str, &str)]) -> Variant {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Variant { name: name.to_owned(), values: values.collect(), ..Variant::default() }
    }

    fn cell(variant: &str, repetition: u32) -> SweepCell {
        SweepCell {
            variant: variant.to_owned(),
            repetition,
            directory: String::new(),
            counted: true,
            reason: None,
            capacity: None,
            cpu_percent_per_client: None,
            busiest_thread: None,
            figures: BTreeMap::new(),
            failed: Vec::new(),
            unanswered: false,
        }
    }

    fn search(variant: &str, lower: u32, upper: Option<u32>, evidence: Evidence) -> SweepCell {
        let is_sure = evidence != Evidence::Undecided;
        let capacity = CellCapacity {
            evidence,
            lower: Some(lower),
            upper,
            lower_is_sure: is_sure,
            upper_is_sure: is_sure && upper.is_some(),
            needed_seconds: None,
        };
        SweepCell { capacity: Some(capacity), ..cell(variant, 1) }
    }

    fn summary(variants: &[Variant], ranked: Ranked, cells: &[SweepCell]) -> SweepSummary {
        let run = RunFacts { name: "n".to_owned(), ..RunFacts::default() };
        let facts = SweepFacts { run, variants: variants.to_vec(), repeat: 1, order: Order::Random, ranked };
        SweepSummary::new(&facts, cells, None, Ending::Completed)
    }

    fn standings(summary: &SweepSummary) -> Vec<Standing> {
        summary.variants.iter().map(|it| it.standing).collect()
    }

    fn abc() -> Vec<Variant> {
        ["a", "b", "c"].map(|name| variant(name, &[("v", name)])).into()
    }

    #[test]
    fn of_capacities_those_are_worse_that_did_not_carry_what_the_best_did() {
        let by = || Ranked::by_capacity(LoadKind::Clients, "viewers");
        let with = |cells: &[SweepCell]| standings(&summary(&abc(), by(), cells));
        let cells = [
            search("a", 1_700, Some(1_785), Evidence::Found),
            search("b", 3_420, Some(3_590), Evidence::Found),
            search("c", 3_350, Some(3_500), Evidence::Found),
        ];
        assert_eq!(with(&cells), [Standing::Worse, Standing::Best, Standing::Alike]);
        // One that the generator was the limit of may carry any number.
        let mut limited = cells.clone();
        limited[0] = search("a", 1_700, None, Evidence::AtLeast);
        assert_eq!(with(&limited), [Standing::Unknown; 3], "and be the best");
        limited[0] = search("a", 1_700, Some(1_785), Evidence::Undecided);
        assert_eq!(with(&limited)[..2], [Standing::Unknown, Standing::Best], "it cannot be");
        limited[0] = search("a", 1_700, Some(3_421), Evidence::Undecided);
        assert_eq!(with(&limited)[..2], [Standing::Unknown, Standing::Unknown], "it can");
        // One whose search was ended as soon as it was sure that it does not carry what the best does.
        limited[0] = search("a", 850, Some(1_785), Evidence::Undecided);
        limited[0].capacity.as_mut().unwrap().upper_is_sure = true;
        assert_eq!(with(&limited)[..2], [Standing::Worse, Standing::Best]);
        // A second search of it that came to more.
        let mut again = cells.to_vec();
        again.push(SweepCell { repetition: 2, ..search("a", 3_500, Some(3_600), Evidence::Found) });
        let summed = summary(&abc(), by(), &again);
        let value = summed.variants[0].value.unwrap();
        assert_eq!((value.low, value.high), (Some(1_700.0), Some(3_600.0)));
        assert!((value.mean - 2_439.3).abs() < 0.1, "{value:?}");
        assert_eq!(summed.variants[0].standing, Standing::Alike);
        assert_eq!(with(&[]), [Standing::Unknown; 3]);
        // One that carries nothing is worse than one that carries something, confirmed or not, and alone it is no best.
        let nothing = SweepCell {
            capacity: Some(CellCapacity {
                lower: None,
                ..search("b", 0, Some(1), Evidence::AtMost).capacity.unwrap()
            }),
            unanswered: true,
            ..cell("b", 1)
        };
        let cells = [search("a", 10, Some(12), Evidence::Undecided), nothing.clone()];
        assert_eq!(with(&cells), [Standing::Best, Standing::Worse, Standing::Unknown]);
        assert_eq!(with(&[nothing]), [Standing::Unknown; 3]);
        assert_eq!(with(&cells[..1]), [Standing::Unknown; 3], "there is nothing that it is better than");
    }

    #[test]
    fn what_fails_a_threshold_in_most_of_its_runs_is_neither_the_best_nor_a_rival() {
        let of = |failures: u32, others: u32| {
            let cells: Vec<_> = (1..=4)
                .flat_map(|number| {
                    let failed = |upto: u32| Vec::from_iter((number <= upto).then(|| "t > 1".to_owned()));
                    [("a", 1.0, failed(failures)), ("b", 2.0, failed(others))].map(|(name, cpu, failed)| {
                        let cpu = Some(cpu + f64::from(number) * 0.01);
                        SweepCell { cpu_percent_per_client: cpu, failed, ..cell(name, number) }
                    })
                })
                .collect();
            summary(&abc()[..2], Ranked::by_cpu_per_client(), &cells)
        };
        assert_eq!(standings(&of(2, 0)), [Standing::Best, Standing::Worse]);
        let found = of(3, 0);
        assert_eq!(standings(&found), [Standing::Fails, Standing::Best]);
        let failed = &found.variants[0].failed[0];
        assert_eq!((failed.expression.as_str(), failed.passed, failed.runs), ("t > 1", 1, 4));
        assert_eq!(standings(&of(4, 4)), [Standing::Fails, Standing::Fails]);
    }

    #[test]
    fn of_figures_four_pairs_tell_a_difference_from_the_best_and_three_do_not() {
        let of = |repetitions: u32| {
            let cells: Vec<_> = (1..=repetitions)
                .flat_map(|number| {
                    let wobble = f64::from(number % 2) * 0.01;
                    [("a", 2.0 + wobble), ("b", 1.0 + wobble), ("c", 1.0 - wobble * 0.5)].map(
                        |(name, cpu)| SweepCell { cpu_percent_per_client: Some(cpu), ..cell(name, number) },
                    )
                })
                .collect();
            standings(&summary(&abc(), Ranked::by_cpu_per_client(), &cells))
        };
        assert_eq!(of(1), [Standing::Unknown; 3]);
        assert_eq!(of(3), [Standing::Unknown; 3]);
        assert_eq!(of(4), [Standing::Worse, Standing::Alike, Standing::Best]);
    }

    #[test]
    fn two_keys_with_several_values_span_a_plane() {
        let variants: Vec<_> = [("1", "4"), ("1", "60"), ("2", "4"), ("2", "60")]
            .map(|(one, other)| {
                variant(&format!("{one}-{other}"), &[("workers", one), ("chunk", other), ("port", "1935")])
            })
            .into();
        let found = summary(&variants, Ranked::by_cpu_per_client(), &[]);
        let keys: Vec<_> = found.dimensions.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["chunk", "workers"]);
        assert_eq!(found.at("60", "1").unwrap().name, "1-60");
        assert!(summary(&abc(), Ranked::by_cpu_per_client(), &[]).at("a", "b").is_none());
    }

    proptest! {
        #[test]
        fn the_order_in_which_cells_were_made_changes_nothing(
            bounds in prop::collection::vec((1u32..1_000, 1u32..200), 3..9), seed in any::<u64>(),
        ) {
            let mut cells: Vec<_> = bounds
                .iter()
                .zip(0..)
                .map(|((lower, more), at)| SweepCell {
                    repetition: at / 3 + 1,
                    ..search(["a", "b", "c"][at as usize % 3], *lower, Some(lower + more), Evidence::Found)
                })
                .collect();
            let by = || Ranked::by_capacity(LoadKind::Clients, "viewers");
            let expected = summary(&abc(), by(), &cells);
            fastrand::Rng::with_seed(seed).shuffle(&mut cells);
            let found = summary(&abc(), by(), &cells);
            for (one, other) in expected.variants.iter().zip(&found.variants) {
                prop_assert_eq!(one.standing, other.standing);
                let (one, other) = (one.value.unwrap(), other.value.unwrap());
                prop_assert!((one.mean - other.mean).abs() < 1e-6 && one.low == other.low && one.high == other.high);
            }
            // The best is never worse than another, and a variant that is worse did not carry what the best did.
            prop_assert_eq!(found.standing(Standing::Best).count(), 1);
        }
    }
}
