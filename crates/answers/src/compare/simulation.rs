//! Comparisons of simulated runs, of which it is known whether they differ.
//!
//! A run has a level of its own, which varies from run to run; its seconds vary about that and remember each other, as those of
//! real runs do. What is measured of a run is what weir measures: a mean over its seconds, or a percentile of its distribution.

use super::FEWEST_FOR_INTERVAL;
use super::summary::{UncorrectedDifference, differences};
use crate::table::{Difference, FEWEST_FOR_DIFFERENCE, Finding, TableFigure, Values};
use proptest::prelude::*;
use weir_engine::summary::units::FigureUnit;
use weir_metrics::{Better, Histogram};

/// Seconds of a run.
const SECONDS: usize = 60;

/// How much of a second's deviation is in the next one.
const MEMORY: f64 = 0.8;

/// Viewers whose times make a second's distribution.
const PER_SECOND: usize = 20;

/// The share of runs that something else on the machine has disturbed, and how much further off they are than others.
const DISTURBED: (f64, f64) = (0.05, 3.0);

/// How a figure is measured of a run.
#[derive(Clone, Copy)]
enum Measure {
    /// The mean of its seconds.
    Mean,
    /// A percentile of all its clients.
    Percentile(f64),
    /// A rare event, as often as this in the mean.
    Count(f64),
}

/// A figure: how far runs of the same server are apart in it (the coefficient of variation), and how it is measured. Those of ten
/// runs of 40 viewers of weir's own origin with `delay 200ms` on a busy machine with two cores. CPU was apart by 5 to 13 % there,
/// because the target did not get its cores when it wanted them; 2 % is what a tenth more can be found with in five runs.
const FIGURES: [(&str, f64, Measure); 12] = [
    ("bitrate", 0.002, Measure::Mean),
    ("fps", 0.003, Measure::Mean),
    ("startup.p50", 0.005, Measure::Percentile(0.5)),
    ("startup.p99", 0.08, Measure::Percentile(0.99)),
    ("latency.p50", 0.012, Measure::Percentile(0.5)),
    ("latency.p99", 0.05, Measure::Percentile(0.99)),
    ("drift.p99", 0.4, Measure::Percentile(0.99)),
    ("stalls", 0.0, Measure::Count(0.5)),
    ("lost.ratio", 0.0, Measure::Count(0.0)),
    ("cpu.server", 0.02, Measure::Mean),
    ("memory.server", 0.02, Measure::Mean),
    ("cpu.weir", 0.1, Measure::Mean),
];

fn normal(random: &mut fastrand::Rng) -> f64 {
    // Box and Muller.
    let (one, two) = (1.0 - random.f64(), random.f64());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
}

/// One run's value of a figure; `level` is 1 unless something was inserted.
fn run(random: &mut fastrand::Rng, share: f64, measure: Measure, level: f64) -> f64 {
    let disturbed = if random.f64() < DISTURBED.0 { DISTURBED.1 } else { 1.0 };
    // How far runs are apart is partly that they are other runs, and partly that their seconds are others: 0.8² + 0.6² is 1.
    let level = level * (disturbed * 0.8 * share * normal(random)).exp();
    let mut deviation = 0.0;
    let seconds = (0..SECONDS).map(|_| {
        deviation = MEMORY * deviation + (1.0 - MEMORY * MEMORY).sqrt() * normal(random);
        level * (1.0 + 1.55 * share * deviation).max(0.01)
    });
    match measure {
        Measure::Mean => seconds.sum::<f64>() / SECONDS as f64,
        Measure::Percentile(quantile) => {
            let levels: Vec<f64> = seconds.collect();
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            for level in levels {
                for _ in 0..PER_SECOND {
                    histogram.record((level * 1e5 * (0.2 * normal(random)).exp()) as u64).unwrap();
                }
            }
            histogram.value_at_quantile(quantile) as f64 * 1e-6
        }
        Measure::Count(mean) => {
            // Knuth's: as many uniform numbers as multiply to more than e^-mean.
            let mut product = random.f64();
            let mut count = 0.0;
            while product > (-mean * level).exp() {
                product *= random.f64();
                count += 1.0;
            }
            count
        }
    }
}

/// A comparison of `runs` a side in all figures, with a change inserted in those of these names.
fn comparison(random: &mut fastrand::Rng, runs: usize, inserted: &[&str], change: f64) -> Vec<Difference> {
    let figures = FIGURES.map(|(name, _, _)| TableFigure {
        name: name.to_owned(),
        title: Some(name.to_owned()),
        unit: FigureUnit::Count,
        better: Some(Better::Lower),
    });
    let measured: Vec<_> = figures
        .iter()
        .zip(FIGURES)
        .map(|(figure, (name, share, measure))| {
            let mut side = |level| (0..runs).map(|_| run(random, share, measure, level)).collect();
            let base = side(1.0);
            let other = side(if inserted.contains(&name) { 1.0 + change } else { 1.0 });
            UncorrectedDifference::new(figure, Values::Apart(base, other))
        })
        .collect();
    differences(&measured.iter().collect::<Vec<_>>(), 0.02)
}

fn is_told(difference: &Difference) -> bool {
    difference.finding.is_different()
}

#[test]
fn of_200_comparisons_of_equal_runs_at_most_one_figure_in_twenty_is_called_different() {
    for runs in [4, 5, 6, 10] {
        let mut random = fastrand::Rng::with_seed(runs as u64);
        let all: Vec<_> = (0..200).map(|_| comparison(&mut random, runs, &[], 0.0)).collect();
        let figures = all.iter().flatten().count();
        let told = all.iter().flatten().filter(|it| is_told(it)).count();
        assert!(told * 20 <= figures, "{told} of {figures} figures with {runs} runs a side");
        // More than that is promised: of twenty comparisons one has any such figure.
        let alarms = all.iter().filter(|it| it.iter().any(is_told)).count();
        assert!(alarms <= 16, "{alarms} of 200 comparisons with {runs} runs a side");
    }
}

#[test]
fn a_tenth_more_is_found_in_nine_of_ten_comparisons_of_five_runs() {
    // What `delay` and `burn` of the origin change.
    for inserted in [&["startup.p50", "latency.p50"][..], &["cpu.server"]] {
        let mut random = fastrand::Rng::with_seed(7);
        let all: Vec<_> = (0..200).map(|_| comparison(&mut random, 5, inserted, 0.1)).collect();
        for name in inserted {
            let is_worse = |it: &&Vec<Difference>| {
                it.iter().any(|it| it.figure == *name && it.finding == Finding::Worse)
            };
            let found = all.iter().filter(is_worse).count();
            assert!(found >= 180, "{name}: {found} of 200");
        }
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    let mut random = fastrand::Rng::with_seed(11);
    let (mut held, mut all) = (0, 0);
    for _ in 0..300 {
        for change in comparison(&mut random, FEWEST_FOR_INTERVAL, &["startup.p50", "cpu.server"], 0.1) {
            let truth =
                if ["startup.p50", "cpu.server"].contains(&change.figure.as_str()) { 1.1 } else { 1.0 };
            if let Some(ratio) = change.ratio {
                all += 1;
                held += usize::from(!ratio.excludes(truth));
            }
        }
    }
    assert!(held * 100 >= all * 93, "{held} of {all}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_other_way_round_better_is_worse(seed: u64, runs in 2usize..9, change in -0.5f64..1.0) {
        let figure = TableFigure {
            name: "startup.p50".to_owned(),
            title: None,
            unit: FigureUnit::Seconds,
            better: Some(Better::Lower),
        };
        let mut random = fastrand::Rng::with_seed(seed);
        let mut side = |level| -> Vec<f64> {
            (0..runs).map(|_| run(&mut random, 0.03, Measure::Mean, level)).collect()
        };
        let (base, other) = (side(1.0), side(1.0 + change));
        let there = UncorrectedDifference::new(&figure, Values::Apart(base.clone(), other.clone()));
        let back = UncorrectedDifference::new(&figure, Values::Apart(other, base));
        let one = |it: &UncorrectedDifference<'_>| differences(&[it], 0.02).remove(0);
        let (there, back) = (one(&there), one(&back));
        let mirrored = match there.finding {
            Finding::Better => Finding::Worse,
            Finding::Worse => Finding::Better,
            other => other,
        };
        prop_assert_eq!(back.finding, mirrored);
        prop_assert_eq!(there.finding != Finding::Unknown, runs >= FEWEST_FOR_DIFFERENCE);
        prop_assert_eq!(there.p, back.p);
    }
}
