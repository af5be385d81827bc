//! The search on servers whose capacity is known.

use super::*;
use proptest::prelude::*;

const GOAL: Goal = Goal {
    first: 10,
    most: 1_000_000,
    precision: 0.05,
    short_seconds: 20,
    long_seconds: 60,
    passes: 3,
    failures: 2,
    most_trials: 40,
};

/// Seconds of a slice.
const SLICE: u32 = 5;

/// A server that passes a slice of a load with some probability.
struct Server {
    /// The load at which half of all slices are good.
    middle: f64,
    /// The share of it over which that goes from 88 % to 12 %; 0 for a hard limit.
    width: f64,
    /// How far its middle wanders, from trial to trial.
    drift: f64,
    /// Whether it carries only half of it, once it was overloaded, until it has been empty twice.
    is_metastable: bool,
    sick: u32,
    random: fastrand::Rng,
}

impl Server {
    fn new(middle: f64, width: f64, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { middle, width, drift: 0.0, is_metastable: false, sick: 0, random }
    }

    fn trial(&mut self, load: u32, seconds: u32, middle: f64) -> Trial {
        let middle = if self.sick > 0 { middle / 2.0 } else { middle };
        let good = (0..seconds / SLICE).filter(|_| {
            let above = f64::from(load) - middle;
            match self.width * middle {
                0.0 => above <= 0.0,
                width => self.random.f64() < 1.0 / (1.0 + (4.0 * above / width).exp()),
            }
        });
        let good_seconds = good.count() as u32 * SLICE;
        let trial = Trial { load, good_seconds, bad_seconds: seconds - good_seconds, is_void: false };
        if self.is_metastable && trial.verdict() == Verdict::Fail {
            self.sick = 2;
        }
        trial
    }

    fn middle_now(&mut self) -> f64 {
        self.middle * (1.0 + self.drift * (2.0 * self.random.f64() - 1.0))
    }

    fn search(&mut self, goal: Goal) -> Answer {
        let mut search = Search::new(goal);
        for _ in 0..100 {
            match search.step() {
                Step::Climb { loads, seconds } => {
                    let middle = self.middle_now();
                    let mut trials = Vec::new();
                    for load in loads {
                        trials.push(self.trial(load, seconds, middle));
                        if trials.last().unwrap().verdict() != Verdict::Pass {
                            break;
                        }
                    }
                    search.climbed(&trials);
                }
                Step::Hold { load, seconds, .. } => {
                    let middle = self.middle_now();
                    let trial = self.trial(load, seconds, middle);
                    self.sick = self.sick.saturating_sub(1);
                    search.held(&trial);
                }
                Step::Done(answer) => return answer,
            }
        }
        panic!("a search without an end");
    }
}

fn covers(answer: &Answer, truth: f64) -> bool {
    let lower = answer.bounds.lower.map_or(0.0, f64::from);
    lower <= truth && answer.bounds.upper.is_some_and(|upper| f64::from(upper) > truth)
}

#[test]
fn a_hard_limit_is_found_within_the_precision_in_few_trials() {
    for truth in [1, 2, 3, 10, 11, 19, 20, 21, 100, 999, 1_500, 3_420, 77_777] {
        let answer = Server::new(f64::from(truth), 0.0, 0).search(GOAL);
        assert_eq!(answer.evidence, Evidence::Found, "{truth}: {answer:?}");
        assert!(covers(&answer, f64::from(truth)), "{truth}: {answer:?}");
        let (lower, upper) = (answer.bounds.lower.unwrap(), answer.bounds.upper.unwrap());
        assert!(upper <= (f64::from(lower) * 1.05).floor().max(f64::from(lower) + 1.0) as u32, "{answer:?}");
        assert!(answer.trials <= 15, "{truth}: {answer:?}");
        assert_eq!((answer.lower_trials, answer.upper_trials, answer.recovers), ((3, 0), (0, 2), Some(true)));
    }
}

#[test]
fn the_interval_covers_the_truth_for_edges_of_every_width() {
    let mut missed = 0;
    let mut trials = Vec::new();
    for seed in 0..1_000 {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5EED);
        let middle = 50.0 * (random.f64() * 6.0).exp();
        let mut server = Server::new(middle, 0.1 * random.f64(), seed);
        let answer = server.search(GOAL);
        missed += u32::from(!covers(&answer, middle));
        trials.push(answer.trials);
    }
    trials.sort_unstable();
    println!(
        "{missed} of 1000 missed; trials: median {}, 95 % {}, most {}",
        trials[500], trials[950], trials[999]
    );
    assert!(missed <= 70, "{missed} of 1000");
    assert!(trials[500] <= 15, "{}", trials[500]);
}

#[test]
fn a_server_that_wanders_is_not_pinned_down_to_where_it_was_for_a_moment() {
    let missed = (0..1_000).filter(|seed| {
        let mut server = Server { drift: 0.2, ..Server::new(1_000.0, 0.02, *seed) };
        !covers(&server.search(GOAL), 1_000.0)
    });
    let missed = missed.count();
    println!("{missed} of 1000 missed");
    assert!(missed <= 70, "{missed} of 1000");
}

#[test]
fn one_that_does_not_recover_from_overload_is_named() {
    let mut server = Server { is_metastable: true, ..Server::new(500.0, 0.0, 1) };
    let answer = server.search(GOAL);
    assert_eq!(answer.recovers, Some(false), "{answer:?}");
}

#[test]
fn what_carries_everything_carries_at_least_that() {
    let answer = Server::new(1e9, 0.0, 0).search(Goal { most: 500, ..GOAL });
    assert_eq!(
        (answer.evidence, answer.bounds),
        (Evidence::AtLeast, Bounds { lower: Some(500), upper: None })
    );
    let answer = Server::new(0.5, 0.0, 0).search(GOAL);
    assert_eq!((answer.evidence, answer.bounds), (Evidence::AtMost, Bounds { lower: None, upper: Some(1) }));
}

#[test]
fn a_limit_of_the_generator_is_none_of_the_server() {
    let mut search = Search::new(GOAL);
    let trial = |load, is_void| Trial { load, good_seconds: 20, bad_seconds: 0, is_void };
    assert!(matches!(search.step(), Step::Climb { .. }));
    search.climbed(&[trial(10, false), trial(20, false), trial(40, true)]);
    for _ in 0..3 {
        let Step::Hold { load: 20, purpose: Purpose::Confirm, .. } = search.step() else { panic!() };
        search.held(&trial(20, false));
    }
    let Step::Done(answer) = search.step() else { panic!("{:?}", search.step()) };
    assert_eq!((answer.evidence, answer.bounds.lower), (Evidence::AtLeast, Some(20)));
    let mut search = Search::new(GOAL);
    search.climbed(&[trial(10, true)]);
    let Step::Done(answer) = search.step() else { panic!() };
    assert_eq!(answer.evidence, Evidence::Void);
}

#[test]
fn a_climb_is_one_trial_however_many_of_its_loads_could_not_be_judged() {
    let mut search = Search::new(GOAL);
    let loads = [10, 20, 40, 80, 160, 320].map(|load| match load {
        10 | 20 => Trial { load, good_seconds: 20, bad_seconds: 0, is_void: false },
        _ => Trial::void(load),
    });
    search.climbed(&loads);
    assert!(matches!(search.step(), Step::Hold { load: 20..40, .. }), "{:?}", search.step());
}

#[test]
fn trials_that_say_nothing_come_to_an_end() {
    let fails = |load| Trial { bad_seconds: 20, is_void: false, ..Trial::void(load) };
    let mut search = Search::new(GOAL);
    search.climbed(&[fails(10)]);
    let mut trials = 0;
    let answer = loop {
        match search.step() {
            Step::Hold { load, .. } => search.held(&Trial::void(load)),
            Step::Climb { .. } => panic!("it has climbed"),
            Step::Done(answer) => break answer,
        }
        trials += 1;
    };
    assert_eq!((trials, answer.evidence, answer.bounds.upper), (3, Evidence::AtMost, Some(10)));
}

proptest! {
    #[test]
    fn a_better_server_is_never_found_worse(one in 1.0..5e4f64, better in 1.0..3.0f64) {
        let [one, other] = [one, one * better].map(|middle| Server::new(middle, 0.0, 0).search(GOAL));
        prop_assert!(one.bounds.lower <= other.bounds.upper);
    }

    #[test]
    fn who_asks_for_less_is_told_at_least_as_many(
        base in 0.0..50.0f64,
        steepness in 0.001..1.0f64,
        curve in 0.5..3.0f64,
        strict in 1.0..1e4f64,
        slack in 0.0..1e4f64,
        most in 20u32..100_000,
    ) {
        // A server whose figure, such as its startup, only grows with the load: it carries what keeps the figure at or
        // below the threshold.
        let figure = |load: u32| base + steepness * f64::from(load).powf(curve);
        let goal = Goal { most, ..GOAL };
        let bounds = [strict, strict + slack].map(|threshold| {
            let carried = (1..=most).collect::<Vec<_>>().partition_point(|load| figure(*load) <= threshold);
            Server::new(carried as f64 + 0.5, 0.0, 0).search(goal).bounds
        });
        let [lower, upper] = [|it: &Bounds| it.lower.unwrap_or(0), |it: &Bounds| it.upper.unwrap_or(u32::MAX)];
        let [one, other] = &bounds;
        prop_assert!(lower(one) <= lower(other), "{bounds:?}");
        prop_assert!(upper(one) <= upper(other), "{bounds:?}");
    }
}
