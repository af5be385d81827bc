//! The result of a sweep: which variant is best, which do not differ significantly from it, and which are worse.

use super::ranked::{Rank, Ranked};
use super::standing::{against, best, has_rival, may_be_beaten};
use crate::capacity::Evidence;
use crate::series::{Ending, SeriesFacts, SeriesSummary};
use crate::table::{FEWEST_FOR_DIFFERENCE, Finding, RankedValue, SearchedCapacity, Table, VariantSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::Estimate;

/// The version of the layout; `docs/sweep.schema.json` follows it.
pub const LAYOUT: &str = "weir.sweep/1";

/// A whole sweep: a series, of runs or of searches, whose variants are ranked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SweepSummary {
    /// The same as of a series; the layout is `weir.sweep/1`.
    #[serde(flatten)]
    pub series: SeriesSummary,
    /// What says which variant is best.
    pub ranked: Ranked,
    /// Keys of the variants that have several values, by name.
    pub dimensions: Vec<Dimension>,
}

/// A key of the variants, with its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dimension {
    /// The key.
    pub key: String,
    /// Its values, in the order in which they come up.
    pub values: Vec<String>,
}

/// What is known of a sweep beside its runs.
#[derive(Clone, Debug)]
pub struct SweepFacts {
    /// What its series knows.
    pub series: SeriesFacts,
    /// What its variants are ranked by.
    pub ranked: Ranked,
}

impl SweepSummary {
    /// Sums up what was made so far.
    pub fn new(facts: &SweepFacts, table: &Table, ending: Ending) -> Self {
        let mut series = SeriesSummary::new(&facts.series, table, ending);
        LAYOUT.clone_into(&mut series.layout);
        let mut ranked = facts.ranked.clone();
        if let Rank::Figure(name) = &ranked.by
            && let Some(figure) = table.figure(name)
        {
            ranked.unit = figure.unit;
            ranked.title = figure.title.clone().unwrap_or_else(|| name.clone());
        }
        for variant in &mut series.variants {
            let counted = || table.runs.iter().filter(|run| run.variant == variant.name && run.is_counted());
            variant.value = match ranked.by {
                Rank::Capacity(_) => capacity(&counted().filter_map(|run| run.capacity).collect::<Vec<_>>()),
                _ => figure(&counted().filter_map(|run| ranked.of(run)).collect::<Vec<_>>()),
            };
        }
        let variants = &series.variants;
        let best = best(variants, &ranked);
        let mut standings: Vec<_> = variants
            .iter()
            .enumerate()
            .map(|(at, variant)| match best {
                _ if !variant.failed().is_empty() => Finding::Fails,
                Some(best) if best == at => Finding::Best,
                Some(best) => against(&variants[best], variant, &ranked, &table.runs),
                None => Finding::Unknown,
            })
            .collect();
        if let Some(best) = best
            && (!has_rival(best, variants, &standings, &ranked)
                || may_be_beaten(best, variants, &standings, &ranked))
        {
            // Without a best one there is none to be like.
            let alike = |it: &&mut Finding| matches!(it, Finding::Best | Finding::Undecided);
            standings.iter_mut().filter(alike).for_each(|it| *it = Finding::Unknown);
        }
        for (variant, standing) in series.variants.iter_mut().zip(standings) {
            variant.standing = Some(standing);
        }
        let dimensions = dimensions(&series.variants);
        Self { series, ranked, dimensions }
    }

    /// The variants that stand so to the best one.
    pub fn standing(&self, standing: Finding) -> impl Iterator<Item = &VariantSummary> {
        self.series.variants.iter().filter(move |variant| variant.standing == Some(standing))
    }

    /// The variant of these values of the two dimensions, if there are two and each pair of values is one variant.
    pub fn at(&self, first: &str, second: &str) -> Option<&VariantSummary> {
        let [one, other] = &self.dimensions[..] else { return None };
        let is_it = |it: &&VariantSummary| {
            it.values.get(&one.key).is_some_and(|value| value == first)
                && it.values.get(&other.key).is_some_and(|value| value == second)
        };
        self.series.variants.iter().find(is_it)
    }
}

/// The bounds of all searches of a variant: each of them is one of where the limit was that time.
fn capacity(found: &[SearchedCapacity]) -> Option<RankedValue> {
    let lower = |it: &SearchedCapacity| f64::from(it.lower.unwrap_or(0));
    let low = found.iter().map(lower).fold(f64::INFINITY, f64::min);
    let uppers: Option<Vec<u32>> = found.iter().map(|it| it.upper).collect();
    let logs: f64 = found.iter().map(|it| lower(it).max(1e-9).ln()).sum();
    (!found.is_empty()).then(|| RankedValue {
        mean: if low > 0.0 { (logs / found.len() as f64).exp() } else { low },
        low: Some(low),
        high: uppers.and_then(|uppers| uppers.into_iter().max()).map(f64::from),
        is_sure: found.iter().all(|it| !matches!(it.evidence, Evidence::Undecided | Evidence::Void)),
        low_is_sure: found.iter().all(|it| it.lower_is_sure),
        high_is_sure: found.iter().all(|it| it.upper_is_sure),
    })
}

fn figure(values: &[f64]) -> Option<RankedValue> {
    let estimate = Estimate::of(values).filter(|_| values.len() >= FEWEST_FOR_DIFFERENCE);
    (!values.is_empty()).then(|| RankedValue {
        mean: values.iter().sum::<f64>() / values.len() as f64,
        low: estimate.map(|it| it.low),
        high: estimate.map(|it| it.high),
        is_sure: estimate.is_some(),
        low_is_sure: estimate.is_some(),
        high_is_sure: estimate.is_some(),
    })
}

fn dimensions(variants: &[VariantSummary]) -> Vec<Dimension> {
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
    use super::*;
    use crate::sweep::fixture::{failing, run, search};
    use crate::table::TableRun;
    use proptest::prelude::*;
    use weir_engine::scenario::{LoadKind, Order, Variant};
    use weir_engine::summary::RunFacts;

    fn variant(name: &str, values: &[(&str, &str)]) -> Variant {
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Variant { name: name.to_owned(), values: values.collect(), ..Variant::default() }
    }

    fn summary(variants: &[Variant], ranked: Ranked, runs: &[TableRun]) -> SweepSummary {
        let run = RunFacts { name: "n".to_owned(), ..RunFacts::default() };
        let series = SeriesFacts { run, variants: variants.to_vec(), repeat: 1, order: Order::Random };
        let table = Table { runs: runs.to_vec(), ..Table::default() };
        SweepSummary::new(&SweepFacts { series, ranked }, &table, Ending::Completed)
    }

    fn standings(summary: &SweepSummary) -> Vec<Finding> {
        summary.series.variants.iter().filter_map(|it| it.standing).collect()
    }

    fn abc() -> Vec<Variant> {
        ["a", "b", "c"].map(|name| variant(name, &[("v", name)])).into()
    }

    /// A default threshold is left out of a run that has no value of it.
    #[test]
    fn a_threshold_that_few_runs_judged_fails_nothing() {
        let fails = |judged: &[bool]| {
            let cell = |number: u32| TableRun {
                thresholds: judged
                    .get(number as usize)
                    .map(|fails| failing("t > 1", *fails))
                    .into_iter()
                    .collect(),
                ..run("a", number + 1)
            };
            let summed = summary(&abc(), Ranked::by_cpu_per_client(), &(0..4).map(cell).collect::<Vec<_>>());
            summed.series.variants[0].failed().first().map(|it| (it.passed, it.runs))
        };
        assert_eq!(fails(&[true]), None);
        assert_eq!(fails(&[true, true, false]), None);
        assert_eq!(fails(&[true, true, true]), Some((1, 4)));
    }

    #[test]
    fn of_capacities_those_are_worse_that_did_not_carry_what_the_best_did() {
        let by = || Ranked::by_capacity(LoadKind::Clients, "viewers");
        let with = |cells: &[TableRun]| standings(&summary(&abc(), by(), cells));
        let cells = [
            search("a", 1_700, Some(1_785), Evidence::Found),
            search("b", 3_420, Some(3_590), Evidence::Found),
            search("c", 3_350, Some(3_500), Evidence::Found),
        ];
        assert_eq!(with(&cells), [Finding::Worse, Finding::Best, Finding::Undecided]);
        // One that the generator was the limit of may carry any number.
        let mut limited = cells.clone();
        limited[0] = search("a", 1_700, None, Evidence::AtLeast);
        assert_eq!(with(&limited), [Finding::Unknown; 3], "and be the best");
        limited[0] = search("a", 1_700, Some(1_785), Evidence::Undecided);
        assert_eq!(with(&limited)[..2], [Finding::Unknown, Finding::Best], "it cannot be");
        limited[0] = search("a", 1_700, Some(3_421), Evidence::Undecided);
        assert_eq!(with(&limited)[..2], [Finding::Unknown, Finding::Unknown], "it can");
        // One whose search was ended as soon as it was sure that it does not carry what the best does.
        limited[0] = search("a", 850, Some(1_785), Evidence::Undecided);
        limited[0].capacity.as_mut().unwrap().upper_is_sure = true;
        assert_eq!(with(&limited)[..2], [Finding::Worse, Finding::Best]);
        // A second search of it that came to more.
        let mut again = cells.to_vec();
        again.push(TableRun { repetition: 2, ..search("a", 3_500, Some(3_600), Evidence::Found) });
        let summed = summary(&abc(), by(), &again);
        let value = summed.series.variants[0].value.unwrap();
        assert_eq!((value.low, value.high), (Some(1_700.0), Some(3_600.0)));
        assert!((value.mean - 2_439.3).abs() < 0.1, "{value:?}");
        assert_eq!(summed.series.variants[0].standing, Some(Finding::Undecided));
        assert_eq!(with(&[]), [Finding::Unknown; 3]);
        // One that carries nothing is worse than one that carries something, confirmed or not, and alone it is no best.
        let nothing = TableRun {
            capacity: Some(SearchedCapacity {
                lower: None,
                ..search("b", 0, Some(1), Evidence::AtMost).capacity.unwrap()
            }),
            unanswered: true,
            ..run("b", 1)
        };
        let cells = [search("a", 10, Some(12), Evidence::Undecided), nothing.clone()];
        assert_eq!(with(&cells), [Finding::Best, Finding::Worse, Finding::Unknown]);
        assert_eq!(with(&[nothing]), [Finding::Unknown; 3]);
        assert_eq!(with(&cells[..1]), [Finding::Unknown; 3], "there is nothing that it is better than");
    }

    #[test]
    fn what_fails_a_threshold_in_most_of_its_runs_is_neither_the_best_nor_a_rival() {
        let of = |failures: u32, others: u32| {
            let cells: Vec<_> = (1..=4)
                .flat_map(|number| {
                    let failed = |upto: u32| vec![failing("t > 1", number <= upto)];
                    [("a", 1.0, failed(failures)), ("b", 2.0, failed(others))].map(
                        |(name, cpu, thresholds)| {
                            let cpu = Some(cpu + f64::from(number) * 0.01);
                            TableRun { cpu_percent_per_client: cpu, thresholds, ..run(name, number) }
                        },
                    )
                })
                .collect();
            summary(&abc()[..2], Ranked::by_cpu_per_client(), &cells)
        };
        assert_eq!(standings(&of(2, 0)), [Finding::Best, Finding::Worse]);
        let found = of(3, 0);
        assert_eq!(standings(&found), [Finding::Fails, Finding::Best]);
        let failed = &found.series.variants[0].failed()[0];
        assert_eq!((failed.expression.as_str(), failed.passed, failed.runs), ("t > 1", 1, 4));
        assert_eq!(standings(&of(4, 4)), [Finding::Fails, Finding::Fails]);
    }

    #[test]
    fn of_figures_four_pairs_tell_a_difference_from_the_best_and_three_do_not() {
        let of = |repetitions: u32| {
            let cells: Vec<_> = (1..=repetitions)
                .flat_map(|number| {
                    let wobble = f64::from(number % 2) * 0.01;
                    [("a", 2.0 + wobble), ("b", 1.0 + wobble), ("c", 1.0 - wobble * 0.5)].map(
                        |(name, cpu)| TableRun { cpu_percent_per_client: Some(cpu), ..run(name, number) },
                    )
                })
                .collect();
            standings(&summary(&abc(), Ranked::by_cpu_per_client(), &cells))
        };
        assert_eq!(of(1), [Finding::Unknown; 3]);
        assert_eq!(of(3), [Finding::Unknown; 3]);
        assert_eq!(of(4), [Finding::Worse, Finding::Undecided, Finding::Best]);
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
                .map(|((lower, more), at)| TableRun {
                    repetition: at / 3 + 1,
                    ..search(["a", "b", "c"][at as usize % 3], *lower, Some(lower + more), Evidence::Found)
                })
                .collect();
            let by = || Ranked::by_capacity(LoadKind::Clients, "viewers");
            let expected = summary(&abc(), by(), &cells);
            fastrand::Rng::with_seed(seed).shuffle(&mut cells);
            let found = summary(&abc(), by(), &cells);
            for (one, other) in expected.series.variants.iter().zip(&found.series.variants) {
                prop_assert_eq!(one.standing, other.standing);
                let (one, other) = (one.value.unwrap(), other.value.unwrap());
                prop_assert!((one.mean - other.mean).abs() < 1e-6 && one.low == other.low && one.high == other.high);
            }
            // The best is never worse than another, and a variant that is worse did not carry what the best did.
            prop_assert_eq!(found.standing(Finding::Best).count(), 1);
        }
    }
}
