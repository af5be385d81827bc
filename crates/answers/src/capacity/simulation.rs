//! Whole searches, with loop and budget, on servers whose capacity is known: the time is theirs.

use super::hunt::{PlannedTrial, TrialRunner, hunt};
use super::search::*;
use proptest::prelude::*;
use std::convert::Infallible;
use std::time::Duration;

const GOAL: Goal = Goal {
    first: 10,
    most: 1_000_000,
    precision: 0.05,
    short_seconds: 15,
    long_seconds: 60,
    passes: 3,
    failures: 2,
    most_trials: 40,
    restarts: false,
    at_least: None,
    rival: None,
};

/// The usual time for a search, and one in which the trials are what ends it.
const USUAL: Duration = Duration::from_secs(20 * 60);
const AMPLE: Duration = Duration::from_secs(6 * 3_600);

/// Seconds of a slice, of a warm-up with what else a trial takes, and clients that come a second.
const SLICE: u32 = 5;
const AROUND: f64 = 8.0;
const ARRIVALS: f64 = 100.0;

/// What a server does beside carrying what it carries.
#[derive(Clone, Copy, Debug, Default)]
struct ServerBehaviour {
    /// The share of its limit over which a slice goes from 88 % good to 12 %; 0 for a hard limit.
    width: f64,
    /// How far its limit wanders, from trial to trial.
    drift: f64,
    /// It carries only half, once it was overloaded, until it has been empty twice.
    is_metastable: bool,
    /// It admits nobody any more, once it was overloaded.
    breaks: bool,
    /// It admits as many as it carries and refuses the others by name.
    refuses: bool,
    /// The share of slices in which a burst more or less makes a load that is carried look bad.
    bursts: f64,
    /// The share of trials in which the generator is late for a client.
    voids: f64,
    /// When its source ends.
    source_ends: Option<Duration>,
    /// It cuts its publisher off instead of failing its viewers.
    cuts_publisher: bool,
    /// The one load that fails once, for no reason.
    stumbles_at: Option<u32>,
}

struct Server {
    limit: f64,
    manner: ServerBehaviour,
    /// Whether it is started again before each trial.
    restarts: bool,
    /// Trials in which it is still sick.
    sick: u32,
    is_broken: bool,
    elapsed: Duration,
    random: fastrand::Rng,
    made: Vec<PlannedTrial>,
}

impl Server {
    fn new(limit: f64, manner: ServerBehaviour, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        let elapsed = Duration::ZERO;
        let (restarts, sick, is_broken, made) = (false, 0, false, Vec::new());
        Self { limit, manner, restarts, sick, is_broken, elapsed, random, made }
    }

    /// What becomes of a load while its limit is this one.
    fn load(&mut self, load: u32, seconds: u32, limit: f64) -> Trial {
        let manner = self.manner;
        let limit = if self.sick > 0 { limit / 2.0 } else { limit };
        let is_beyond = f64::from(load) > limit;
        if manner.source_ends.is_some_and(|end| self.elapsed >= end) {
            return Trial::void(load, VoidCause::Source);
        }
        if self.is_broken {
            return Trial { load, bad_seconds: seconds, is_empty: true, ..Trial::default() };
        }
        if manner.cuts_publisher && is_beyond {
            return Trial::void(load, VoidCause::Publisher);
        }
        let stumbles = self.manner.stumbles_at.take_if(|at| *at == load).is_some();
        let good = (0..seconds / SLICE).filter(|_| {
            let above = f64::from(load) - limit;
            let is_good = match manner.width * limit {
                0.0 => above <= 0.0,
                width => self.random.f64() < 1.0 / (1.0 + (4.0 * above / width).exp()),
            };
            is_good && !stumbles && self.random.f64() >= manner.bursts
        });
        let good_seconds = good.count() as u32 * SLICE;
        let admitted = (manner.refuses && is_beyond).then_some(limit as u32);
        let bad_seconds = seconds - good_seconds;
        let trial = Trial { load, good_seconds, bad_seconds, admitted, ..Trial::default() };
        if trial.verdict() == TrialVerdict::Fail {
            self.is_broken = manner.breaks;
            self.sick = if manner.is_metastable { 2 } else { 0 };
        }
        trial
    }

    fn hunt(&mut self, goal: Goal, budget: Duration) -> Answer {
        self.restarts = goal.restarts;
        let answer = match hunt(goal, budget, true, self) {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        assert!(self.made.len() <= 60, "a search without an end: {:?}", self.made);
        assert!(self.elapsed <= budget, "{:?} of {budget:?}", self.elapsed);
        answer
    }
}

impl TrialRunner for Server {
    type Error = Infallible;

    fn elapsed(&self) -> Duration {
        self.elapsed
    }

    fn length(&self, loads: &[u32], seconds: u32) -> Result<Duration, Infallible> {
        let last = loads.last().map_or(0.0, |load| f64::from(*load));
        let hold = (f64::from(seconds) + AROUND) * loads.len() as f64;
        Ok(Duration::from_secs_f64(last / ARRIVALS + hold))
    }

    fn run(&mut self, trial: &PlannedTrial, left: Duration) -> Result<Option<Vec<Trial>>, Infallible> {
        self.made.push(trial.clone());
        let limit = self.limit * (1.0 + self.manner.drift * (2.0 * self.random.f64() - 1.0));
        if self.restarts {
            (self.is_broken, self.sick) = (false, 0);
        }
        let is_late = self.random.f64() < self.manner.voids;
        // One of the loads that a climb goes through.
        let late_from = is_late.then(|| self.random.usize(..trial.loads.len().min(6)));
        let (began, end) = (self.elapsed, self.elapsed + left);
        let mut outcomes = Vec::new();
        for (at, load) in trial.loads.iter().enumerate() {
            let over = began + self.length(&trial.loads[..=at], trial.seconds)?;
            self.elapsed = over.min(end);
            if over > end {
                break;
            }
            let outcome = self.load(*load, trial.seconds, limit);
            // The run goes on until a load fails: that it was late is known when it is summed up.
            let is_void = late_from.is_some_and(|from| from <= at);
            outcomes.push(if is_void { Trial::void(*load, VoidCause::Generator) } else { outcome });
            if outcome.verdict() != TrialVerdict::Pass {
                break;
            }
        }
        self.sick = self.sick.saturating_sub(1);
        Ok(Some(outcomes))
    }

    fn note(&mut self, _: &Answer) -> Result<(), Infallible> {
        Ok(())
    }
}

fn covers(answer: &Answer, truth: f64) -> bool {
    let lower = answer.bounds.lower.map_or(0.0, f64::from);
    lower <= truth && answer.bounds.upper.is_none_or(|upper| f64::from(upper) > truth)
}

/// What a thousand searches of servers of one kind came to.
#[derive(Debug, Default)]
struct Proof {
    right: usize,
    found: usize,
    /// What ended the search before its end, in how many of them.
    broken: usize,
    not_recovered: usize,
    no_source: usize,
    trials: Vec<u32>,
    seconds: Vec<u64>,
    /// Upper bound by lower bound, where there are both.
    widths: Vec<f64>,
}

impl Proof {
    fn of(
        kind: &str,
        goal: Goal,
        budget: Duration,
        manner: impl Fn(&mut fastrand::Rng) -> ServerBehaviour,
    ) -> Self {
        let mut proof = Self::default();
        for seed in 0..1_000 {
            let mut random = fastrand::Rng::with_seed(seed ^ 0x5EED);
            let limit = 50.0 * (random.f64() * 4.0).exp();
            let mut server = Server::new(limit, manner(&mut random), seed);
            let answer = server.hunt(goal, budget);
            proof.right += usize::from(covers(&answer, limit));
            proof.found += usize::from(answer.evidence == Evidence::Found);
            proof.broken += usize::from(answer.stopped == Some(Stopped::Broken));
            proof.not_recovered += usize::from(answer.stopped == Some(Stopped::NotRecovered));
            proof.no_source += usize::from(answer.stopped == Some(Stopped::NoSource));
            proof.trials.push(answer.trials);
            proof.seconds.push(server.elapsed.as_secs());
            let Bounds { lower, upper } = answer.bounds;
            proof.widths.extend(lower.zip(upper).map(|(lower, upper)| f64::from(upper) / f64::from(lower)));
        }
        proof.trials.sort_unstable();
        proof.seconds.sort_unstable();
        proof.widths.sort_unstable_by(f64::total_cmp);
        println!(
            "{kind:36} {:5} right, {:5} found; {:2} trials in {:4} s, {:2} in {:4} s at 95 %; upper/lower {:.2}, {:.2} at 95 %",
            proof.right,
            proof.found,
            proof.trials[500],
            proof.seconds[500],
            proof.trials[950],
            proof.seconds[950],
            proof.widths.get(proof.widths.len() / 2).unwrap_or(&0.0),
            proof.widths.get(proof.widths.len() * 95 / 100).unwrap_or(&0.0),
        );
        assert!(proof.right >= 930, "{kind}: {} of 1,000", proof.right);
        proof
    }
}

/// The same server, started again before each trial.
const RESTARTED: Goal = Goal { restarts: true, ..GOAL };

#[test]
fn the_interval_is_right_of_servers_with_edges_of_any_width() {
    let hard = Proof::of("hard limit", GOAL, USUAL, |_| ServerBehaviour::default());
    assert_eq!((hard.right, hard.found), (1_000, 1_000));
    let edges = |random: &mut fastrand::Rng| ServerBehaviour {
        width: 0.1 * random.f64(),
        ..ServerBehaviour::default()
    };
    let logistic = Proof::of("edge of up to 10 %", GOAL, USUAL, edges);
    assert!(logistic.found >= 800 && logistic.trials[500] <= 15, "{logistic:?}");
    assert!(logistic.not_recovered <= 5, "{}", logistic.not_recovered);
    Proof::of("the same, six hours", GOAL, AMPLE, edges);
}

#[test]
fn the_interval_is_right_of_servers_whose_limit_wanders() {
    let drifts = |drift| {
        move |_: &mut fastrand::Rng| ServerBehaviour { width: 0.02, drift, ..ServerBehaviour::default() }
    };
    Proof::of("limit wanders by up to 10 %", GOAL, USUAL, drifts(0.1));
    Proof::of("limit wanders by up to 20 %, six hours", GOAL, AMPLE, drifts(0.2));
}

#[test]
fn a_server_that_carries_less_after_an_overload_is_named_and_searched_where_it_is_restarted() {
    let sick = |_: &mut fastrand::Rng| ServerBehaviour { is_metastable: true, ..ServerBehaviour::default() };
    let proof = Proof::of("hysteresis", GOAL, USUAL, sick);
    assert_eq!((proof.right, proof.not_recovered), (1_000, 1_000));
    let proof = Proof::of("hysteresis, restarted", RESTARTED, USUAL, sick);
    assert_eq!((proof.right, proof.found, proof.not_recovered), (1_000, 1_000, 0));
}

#[test]
fn a_server_that_breaks_for_good_ends_the_search_in_three_trials_and_does_not_where_it_is_restarted() {
    let breaks = |_: &mut fastrand::Rng| ServerBehaviour { breaks: true, ..ServerBehaviour::default() };
    let proof = Proof::of("breaks for good", GOAL, USUAL, breaks);
    assert_eq!((proof.right, proof.broken, proof.trials[999]), (1_000, 1_000, 3));
    let proof = Proof::of("breaks for good, restarted", RESTARTED, USUAL, breaks);
    assert_eq!((proof.right, proof.found), (1_000, 1_000));
}

#[test]
fn a_server_that_refuses_by_name_is_known_after_three_trials() {
    let refuses = |_: &mut fastrand::Rng| ServerBehaviour { refuses: true, ..ServerBehaviour::default() };
    let proof = Proof::of("refuses by name", GOAL, USUAL, refuses);
    assert_eq!((proof.right, proof.found, proof.trials[999]), (1_000, 1_000, 3));
}

#[test]
fn bursts_make_no_limit() {
    let bursts = |_: &mut fastrand::Rng| ServerBehaviour { bursts: 0.15, ..ServerBehaviour::default() };
    let proof = Proof::of("bursts in 15 of 100 slices", GOAL, USUAL, bursts);
    assert!(proof.found >= 850 && proof.not_recovered <= 5, "{proof:?}");
}

#[test]
fn a_source_that_ends_is_no_limit_of_the_server() {
    let ends = |random: &mut fastrand::Rng| {
        let end = Duration::from_secs(random.u64(10..1_200));
        ServerBehaviour { width: 0.05, source_ends: Some(end), ..ServerBehaviour::default() }
    };
    let proof = Proof::of("source that ends", GOAL, USUAL, ends);
    assert!(proof.no_source >= 600, "{proof:?}");
}

#[test]
fn one_void_trial_in_ten_ends_no_search() {
    let voids = |random: &mut fastrand::Rng| ServerBehaviour {
        voids: 0.1,
        width: 0.1 * random.f64(),
        ..ServerBehaviour::default()
    };
    let proof = Proof::of("one void trial in ten", GOAL, USUAL, voids);
    assert!(proof.found >= 700, "{proof:?}");
}

#[test]
fn a_server_that_cuts_its_publisher_off_has_its_limit_there() {
    let cuts = |_: &mut fastrand::Rng| ServerBehaviour { cuts_publisher: true, ..ServerBehaviour::default() };
    let proof = Proof::of("cuts its publisher off", GOAL, USUAL, cuts);
    assert!(proof.right == 1_000 && proof.found >= 900, "{proof:?}");
    // Where even what it carried has no publisher any more, nothing is said about the viewers.
    let mut search = Search::new(GOAL);
    search.step();
    search.climbed(&[carried(10), carried(20), Trial::void(40, VoidCause::Publisher)]);
    search.step();
    search.climbed(&[Trial::void(40, VoidCause::Publisher)]);
    for _ in 0..2 {
        let Step::Hold { load: 20, purpose: Purpose::Recovery, .. } = search.step() else { panic!() };
        search.held(&Trial::void(20, VoidCause::Publisher));
    }
    let Step::Done(answer) = search.step() else { panic!() };
    assert_eq!(answer.stopped, Some(Stopped::NoPublisher));
}

#[test]
fn a_false_step_of_the_climb_is_left_behind() {
    for truth in [100.0, 400.0, 1_000.0] {
        for stumble in [10, 20, 40, 80, 160, 320].into_iter().filter(|load| f64::from(*load) <= truth) {
            let manner = ServerBehaviour { stumbles_at: Some(stumble), ..ServerBehaviour::default() };
            let answer = Server::new(truth, manner, 0).hunt(GOAL, USUAL);
            assert_eq!(answer.evidence, Evidence::Found, "{stumble}: {answer:?}");
            assert!(covers(&answer, truth), "{stumble}: {answer:?}");
            assert!(answer.trials <= 24, "{stumble}: {answer:?}");
        }
    }
}

#[test]
fn an_upper_bound_that_is_refuted_lets_the_climb_go_on_to_the_most_that_may_be_tried() {
    let mut search = Search::new(Goal { most: 100, ..GOAL });
    search.step();
    search.climbed(&[carried(10), carried(20), failed(40)]);
    // Recovery, two loads that are carried below the bound, and then the bound itself.
    for load in [20, 28, 33, 40] {
        let Step::Hold { load: next, .. } = search.step() else { panic!() };
        assert_eq!(next, load);
        search.held(&carried(load));
    }
    assert_eq!(search.step(), Step::Climb { loads: vec![80, 100], seconds: 15 });
}

#[test]
fn a_search_whose_time_is_over_says_what_was_carried_on_both_sides_of_a_false_step() {
    // As it was with nginx, four of whose viewers met a segment that it had deleted: two slices of 80, and then all of it.
    let mut search = Search::new(Goal { most: 160, ..GOAL });
    search.step();
    search.climbed(&[carried(10), carried(20), carried(40), failed(80)]);
    let half = Trial { bad_seconds: 15, ..carried(80) };
    let long = |load| Trial { good_seconds: 60, ..carried(load) };
    let made = [carried(40), carried(57), carried(68), half, carried(74), carried(77)];
    let confirming = [77, 77, 77, 77, 80].map(long);
    for trial in made.into_iter().chain(confirming) {
        let Step::Hold { load, .. } = search.step() else { panic!("{:?}", search.step()) };
        assert_eq!(load, trial.load);
        search.held(&trial);
        let lower = search.answer_now().bounds.lower;
        assert!(lower.is_some_and(|lower| lower >= 40), "{:?}", search.answer_now());
    }
    search.step();
    search.climbed(&[carried(160)]);
    for _ in 0..3 {
        let Step::Hold { load: 160, purpose: Purpose::Confirm, .. } = search.step() else { panic!() };
        search.held(&long(160));
        let Answer { evidence, bounds: Bounds { lower, upper }, .. } = search.answer_now();
        assert_eq!((evidence, upper), (Evidence::Undecided, None));
        assert!(lower.is_some_and(|lower| lower >= 68), "{lower:?}");
    }
}

fn carried(load: u32) -> Trial {
    Trial { load, good_seconds: 15, ..Trial::default() }
}

fn failed(load: u32) -> Trial {
    Trial { load, bad_seconds: 15, ..Trial::default() }
}

#[test]
fn a_hard_limit_is_found_within_the_precision_in_few_trials() {
    for truth in [1, 2, 3, 10, 11, 19, 20, 21, 100, 999, 1_500, 3_420, 77_777] {
        let answer = Server::new(f64::from(truth), ServerBehaviour::default(), 0).hunt(GOAL, AMPLE);
        assert_eq!(answer.evidence, Evidence::Found, "{truth}: {answer:?}");
        assert!(covers(&answer, f64::from(truth)), "{truth}: {answer:?}");
        let (lower, upper) = (answer.bounds.lower.unwrap(), answer.bounds.upper.unwrap());
        assert!(upper <= (f64::from(lower) * 1.05).floor().max(f64::from(lower) + 1.0) as u32, "{answer:?}");
        assert!(answer.trials <= 15, "{truth}: {answer:?}");
        assert_eq!((answer.lower_trials, answer.upper_trials, answer.recovers), ((3, 0), (0, 2), Some(true)));
    }
}

#[test]
fn as_many_as_were_admitted_are_tried_next_to_the_client() {
    let goal = Goal { precision: 0.001, ..GOAL };
    for truth in [1, 5, 19, 196, 396, 1_496] {
        let refuses = ServerBehaviour { refuses: true, ..ServerBehaviour::default() };
        let mut server = Server::new(f64::from(truth), refuses, 0);
        let answer = server.hunt(goal, AMPLE);
        let bounds = Bounds { lower: Some(truth), upper: Some((truth + truth / 1_000).max(truth + 1)) };
        assert_eq!((answer.evidence, answer.bounds), (Evidence::Found, bounds), "{:?}", server.made);
        assert_eq!((answer.admits, answer.trials <= 4), (Some(truth), true), "{answer:?}");
    }
    // What is admitted and not carried is no limit: the CPU gives out before.
    let mut search = Search::new(GOAL);
    search.step();
    search.climbed(&[carried(10), carried(20), Trial { admitted: Some(35), ..failed(40) }]);
    let Step::Hold { load: 35, purpose: Purpose::Confirm, .. } = search.step() else { panic!() };
    search.held(&Trial { bad_seconds: 60, ..failed(35) });
    assert!(matches!(search.step(), Step::Hold { load: 20, purpose: Purpose::Recovery, .. }));
}

#[test]
fn one_load_is_all_that_is_tried_where_it_is_all_that_is_asked() {
    let of = |limit: f64, voids: f64, seed| {
        let goal = Goal { at_least: Some(100), ..GOAL };
        Server::new(limit, ServerBehaviour { voids, ..ServerBehaviour::default() }, seed).hunt(goal, USUAL)
    };
    let answer = of(100.0, 0.0, 0);
    assert_eq!((answer.evidence, answer.bounds.lower, answer.trials), (Evidence::AtLeast, Some(100), 3));
    let answer = of(99.0, 0.0, 0);
    assert_eq!((answer.evidence, answer.bounds.upper, answer.trials), (Evidence::AtMost, Some(100), 2));
    for seed in 0..100 {
        assert_eq!(of(100.0, 0.1, seed).evidence, Evidence::AtLeast, "{seed}");
    }
    // Neither is sure before the time is over.
    let goal = Goal { at_least: Some(100), ..GOAL };
    let answer = Server::new(99.0, ServerBehaviour::default(), 0).hunt(goal, Duration::from_secs(100));
    assert_eq!((answer.evidence, answer.trials), (Evidence::Undecided, 1));
}

#[test]
fn a_variant_that_is_shown_to_carry_no_more_than_its_rival_is_asked_nothing_more() {
    let goal = Goal { rival: Some(400), restarts: true, ..GOAL };
    let mut server = Server::new(150.0, ServerBehaviour::default(), 0);
    let answer = server.hunt(goal, USUAL);
    assert_eq!((answer.bounds, answer.trials), (Bounds { lower: Some(80), upper: Some(160) }, 3));
    assert_eq!((answer.lower_is_sure, answer.upper_is_sure), (false, true));
    let answer = Server::new(401.0, ServerBehaviour::default(), 0).hunt(goal, USUAL);
    assert_eq!(answer.evidence, Evidence::Found, "{answer:?}");
}

#[test]
fn what_carries_everything_carries_at_least_that() {
    let answer = Server::new(1e9, ServerBehaviour::default(), 0).hunt(Goal { most: 500, ..GOAL }, USUAL);
    assert_eq!(
        (answer.evidence, answer.bounds),
        (Evidence::AtLeast, Bounds { lower: Some(500), upper: None })
    );
    let answer = Server::new(0.5, ServerBehaviour::default(), 0).hunt(GOAL, USUAL);
    assert_eq!((answer.evidence, answer.bounds), (Evidence::AtMost, Bounds { lower: None, upper: Some(1) }));
}

#[test]
fn a_limit_of_the_generator_is_none_of_the_server() {
    let late = |load| Trial::void(load, VoidCause::Generator);
    let mut search = Search::new(GOAL);
    assert!(matches!(search.step(), Step::Climb { .. }));
    search.climbed(&[carried(10), carried(20), late(40)]);
    // It is tried twice more: a pause of the machine passes.
    for _ in 0..2 {
        let Step::Climb { loads, .. } = search.step() else { panic!() };
        assert_eq!(loads[0], 40);
        search.climbed(&[late(40)]);
    }
    for _ in 0..3 {
        let Step::Hold { load: 20, purpose: Purpose::Confirm, .. } = search.step() else { panic!() };
        search.held(&Trial { good_seconds: 60, ..carried(20) });
    }
    let Step::Done(answer) = search.step() else { panic!("{:?}", search.step()) };
    assert_eq!((answer.evidence, answer.bounds.lower), (Evidence::AtLeast, Some(20)));
    let mut search = Search::new(GOAL);
    for _ in 0..3 {
        search.climbed(&[late(10)]);
    }
    let Step::Done(answer) = search.step() else { panic!() };
    assert_eq!(answer.evidence, Evidence::Void);
}

#[test]
fn loads_that_could_not_be_judged_below_one_that_was_are_not_missed() {
    let mut search = Search::new(GOAL);
    let late = |load| Trial::void(load, VoidCause::Generator);
    search.climbed(&[carried(10), late(20), carried(40), late(80), late(160)]);
    let Step::Climb { loads, .. } = search.step() else { panic!() };
    assert_eq!(loads[0], 80, "the climb goes on at the first load that was not judged");
    search.climbed(&[failed(80)]);
    assert!(matches!(search.step(), Step::Hold { load: 40, .. }), "{:?}", search.step());
}

#[test]
fn trials_that_say_nothing_come_to_an_end() {
    let mut search = Search::new(GOAL);
    search.climbed(&[failed(10)]);
    let mut trials = 0;
    let answer = loop {
        match search.step() {
            Step::Hold { load, .. } => search.held(&Trial::void(load, VoidCause::Generator)),
            Step::Climb { .. } => panic!("it has climbed"),
            Step::Done(answer) => break answer,
        }
        trials += 1;
    };
    assert_eq!((trials, answer.evidence, answer.bounds.upper), (3, Evidence::AtMost, Some(10)));
}

#[test]
fn what_failed_just_before_the_source_was_found_gone_is_not_held_against_the_server() {
    let mut search = Search::new(GOAL);
    search.climbed(&[carried(10), carried(20), failed(40)]);
    for _ in 0..2 {
        let Step::Hold { load: 20, purpose: Purpose::Recovery, .. } = search.step() else { panic!() };
        search.held(&Trial::void(20, VoidCause::Source));
    }
    let Step::Done(answer) = search.step() else { panic!() };
    assert_eq!(answer.stopped, Some(Stopped::NoSource));
    assert_eq!(answer.bounds, Bounds { lower: Some(20), upper: None });
}

proptest! {
    #[test]
    fn a_better_server_is_never_found_worse(one in 1.0..5e4f64, better in 1.0..3.0f64) {
        let hunt = |limit| Server::new(limit, ServerBehaviour::default(), 0).hunt(GOAL, AMPLE);
        prop_assert!(hunt(one).bounds.lower <= hunt(one * better).bounds.upper);
    }

    #[test]
    fn whatever_comes_of_the_trials_a_search_has_an_end_and_its_bounds_are_in_order(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut search = Search::new(Goal { restarts: random.bool(), ..GOAL });
        let mut trial = |load: u32| Trial {
            load,
            good_seconds: random.u32(0..4) * 5,
            bad_seconds: random.u32(0..4) * 5,
            void: [None, None, None, Some(VoidCause::Generator), Some(VoidCause::Source), Some(VoidCause::Publisher)]
                [random.usize(..6)],
            is_empty: random.u8(..8) == 0,
            admitted: (random.u8(..4) == 0).then(|| random.u32(..load.saturating_add(1))),
        };
        for _ in 0..=GOAL.most_trials {
            match search.step() {
                Step::Climb { loads, .. } => {
                    let made: Vec<_> = loads.iter().take(5).map(|load| trial(*load)).collect();
                    search.climbed(&made);
                }
                Step::Hold { load, .. } => {
                    prop_assert!((1..=GOAL.most).contains(&load));
                    search.held(&trial(load));
                }
                Step::Done(_) => {}
            }
            let Bounds { lower, upper } = search.answer_now().bounds;
            prop_assert!(lower.zip(upper).is_none_or(|(lower, upper)| lower < upper));
        }
        prop_assert!(matches!(search.step(), Step::Done(_)));
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
            Server::new(carried as f64 + 0.5, ServerBehaviour::default(), 0).hunt(goal, AMPLE).bounds
        });
        let [lower, upper] = [|it: &Bounds| it.lower.unwrap_or(0), |it: &Bounds| it.upper.unwrap_or(u32::MAX)];
        let [one, other] = &bounds;
        prop_assert!(lower(one) <= lower(other), "{bounds:?}");
        prop_assert!(upper(one) <= upper(other), "{bounds:?}");
    }
}
