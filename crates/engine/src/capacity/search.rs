//! The search for the largest load that a target carries. Knows no clock, no client and no server: trials come in, the
//! next one goes out.
//!
//! The method is that of RFC 9971 (MLRsearch): a trial is cut into slices, each of which is good or bad, and what is known
//! of a load is the sum of its slices, however many trials they come from. One difference: a load counts as carried, or as
//! too much, in the end only if it was so in several long trials on their own, since a server near its edge passes once and
//! fails once, and a user asks for a number of viewers that holds.
//!
//! 1. **Climb**: one run that only adds clients and doubles their number until it fails. It finds the range quickly and
//!    overloads the target on purpose.
//! 2. **Recovery**: the target is emptied, and the last load that it carried is repeated. A target that does not carry it
//!    now has not recovered from the overload; later trials are to be made with care, and the answer says so.
//! 3. **Narrow**: the middle between the bounds, by their ratio, until they are as close as is asked for.
//! 4. **Confirm**: long trials of both bounds. One that does not hold moves outwards, so that the interval covers the
//!    loads at which the target sometimes passes and sometimes fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many trials may be void before the search gives up: a pause of the machine passes, its limit does not.
const MOST_VOID: u32 = 3;

/// What the search is to find out, and how exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The load to begin with: clients, or messages a second.
    pub first: u32,
    /// The largest load that may be tried.
    pub most: u32,
    /// How far the upper bound may lie above the lower one, as a share of it: 0.05 is 5 %.
    pub precision: f64,
    /// Seconds that each load of the climb is held, and each trial that narrows.
    pub short_seconds: u32,
    /// Seconds of a trial that confirms.
    pub long_seconds: u32,
    /// How many long trials of the lower bound must pass: all of them.
    pub passes: u32,
    /// How many long trials of the upper bound must fail: all of them.
    pub failures: u32,
    /// How many trials there may be, the climb being one.
    pub most_trials: u32,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// One run that goes through these loads until one fails, each held for `seconds`.
    Climb {
        /// The loads, each twice the one before.
        loads: Vec<u32>,
        /// Seconds at each.
        seconds: u32,
    },
    /// One load, approached from below on an empty target.
    Hold {
        /// The load.
        load: u32,
        /// Seconds that it is held.
        seconds: u32,
        /// What it is for.
        purpose: Purpose,
    },
    /// There is nothing more to find out, or no trial left.
    Done(Answer),
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Whether the target carries again what it carried before it was overloaded.
    Recovery,
    /// To bring the bounds closer together.
    Narrow,
    /// Whether a bound holds.
    Confirm,
}

/// What a load was like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The load.
    pub load: u32,
    /// Seconds in which all thresholds held.
    pub good_seconds: u32,
    /// Seconds in which one did not.
    pub bad_seconds: u32,
    /// Whether weir or its machine was at a limit of its own: nothing can be concluded about the target.
    pub is_void: bool,
}

/// What a trial says of its load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The target carries it.
    #[default]
    Pass,
    /// The target does not.
    Fail,
    /// The generator is the limit.
    Void,
}

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Both bounds were confirmed.
    Found,
    /// The largest load that may be tried was carried, or the generator's own limit came first.
    AtLeast,
    /// Not even the smallest load was carried.
    AtMost,
    /// No trial was left before both bounds were confirmed.
    Undecided,
    /// No result about the target.
    Void,
}

/// Two loads with the target's limit between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds {
    /// The largest load that was carried, each time.
    pub lower: Option<u32>,
    /// The smallest load above it that was not, each time.
    pub upper: Option<u32>,
}

/// What the trials say together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// How sure it is.
    pub evidence: Evidence,
    /// Between which loads the limit lies.
    pub bounds: Bounds,
    /// Long trials of the lower bound that passed, and that failed.
    pub lower_trials: (u32, u32),
    /// The same of the upper bound.
    pub upper_trials: (u32, u32),
    /// Whether the target carried again, once it was emptied, what it carried before it was overloaded. `None` if that was
    /// not tried.
    pub recovers: Option<bool>,
    /// How many trials there were, the climb being one.
    pub trials: u32,
}

/// What is known of a load.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    good_seconds: u32,
    bad_seconds: u32,
    long_passes: u32,
    long_failures: u32,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    known: BTreeMap<u32, Known>,
    /// Each trial's load, and whether it passed.
    outcomes: Vec<(u32, bool)>,
    climbed: bool,
    recovers: Option<bool>,
    /// The load of the step that is under way.
    purpose: Option<Purpose>,
    /// The smallest load that the generator could not make.
    void_at: Option<u32>,
    void_trials: u32,
    trials: u32,
}

impl Trial {
    /// One of this load that says nothing about the target.
    pub fn void(load: u32) -> Self {
        Self { load, good_seconds: 0, bad_seconds: 0, is_void: true }
    }

    /// What it says: a load is carried if at least half of the time was good (an exceed ratio of 0.5, as RFC 9971
    /// recommends).
    pub fn verdict(&self) -> Verdict {
        if self.is_void {
            Verdict::Void
        } else if self.bad_seconds > self.good_seconds {
            Verdict::Fail
        } else {
            Verdict::Pass
        }
    }
}

impl Known {
    /// Whether the load was carried, by all that is known of it.
    fn passes(&self) -> bool {
        self.bad_seconds <= self.good_seconds
    }

    /// Whether long trials disagree, so that the load is neither bound.
    fn is_mixed(&self) -> bool {
        self.long_passes > 0 && self.long_failures > 0
    }

    fn is_lower(&self) -> bool {
        self.passes() && self.long_failures == 0
    }

    fn is_upper(&self) -> bool {
        !self.passes() && self.long_passes == 0
    }
}

impl Search {
    /// A search that has not begun.
    pub fn new(goal: Goal) -> Self {
        Self {
            goal: Goal { first: goal.first.clamp(1, goal.most.max(1)), ..goal },
            known: BTreeMap::new(),
            outcomes: Vec::new(),
            climbed: false,
            recovers: None,
            purpose: None,
            void_at: None,
            void_trials: 0,
            trials: 0,
        }
    }

    /// What to do next. Without a trial in between the answer is the same.
    pub fn step(&mut self) -> Step {
        if !self.climbed {
            return Step::Climb { loads: self.climb(), seconds: self.goal.short_seconds };
        }
        let bounds = self.bounds();
        let is_over = self.trials >= self.goal.most_trials || self.void_trials >= MOST_VOID;
        let next = if is_over { None } else { self.next_hold(bounds) };
        match next {
            Some((load, seconds, purpose)) => {
                self.purpose = Some(purpose);
                Step::Hold { load, seconds, purpose }
            }
            None => Step::Done(self.answer(bounds)),
        }
    }

    /// What is known so far, where no further trial can be made.
    pub fn answer_now(&self) -> Answer {
        self.answer(self.bounds())
    }

    /// Takes note of the loads that a climb went through, in order.
    pub fn climbed(&mut self, trials: &[Trial]) {
        (self.climbed, self.trials) = (true, self.trials + 1);
        let void_trials = self.void_trials;
        for trial in trials {
            self.note(trial, false);
        }
        // However many of its loads could not be judged, the climb is one trial.
        self.void_trials = self.void_trials.min(void_trials + 1);
    }

    /// Takes note of the trial of the last [`Step::Hold`].
    pub fn held(&mut self, trial: &Trial) {
        self.trials += 1;
        let purpose = self.purpose.take();
        if purpose == Some(Purpose::Recovery) && trial.verdict() != Verdict::Void {
            self.recovers = Some(trial.verdict() == Verdict::Pass);
        }
        self.note(trial, purpose == Some(Purpose::Confirm));
    }

    fn note(&mut self, trial: &Trial, is_long: bool) {
        let verdict = trial.verdict();
        if verdict == Verdict::Void {
            self.void_at = Some(self.void_at.map_or(trial.load, |load| load.min(trial.load)));
            self.void_trials += 1;
            return;
        }
        self.outcomes.push((trial.load, verdict == Verdict::Pass));
        let known = self.known.entry(trial.load).or_default();
        known.good_seconds += trial.good_seconds;
        known.bad_seconds += trial.bad_seconds;
        if is_long {
            known.long_passes += u32::from(verdict == Verdict::Pass);
            known.long_failures += u32::from(verdict == Verdict::Fail);
        }
    }

    fn climb(&self) -> Vec<u32> {
        let double = |load: &u32| Some(load.saturating_mul(2).min(self.goal.most)).filter(|next| next > load);
        std::iter::successors(Some(self.goal.first), double).collect()
    }

    /// The smallest load that is too much, and the largest below it that is not. A pass above a failure is a fluke
    /// (RFC 9971, section 4.6): the target does not carry what it carries only sometimes.
    fn bounds(&self) -> Bounds {
        let first_failure = self.known.iter().find(|(_, known)| !known.is_lower()).map(|(load, _)| *load);
        let below = |load: &u32| first_failure.is_none_or(|failure| *load < failure);
        let lower = self.known.iter().rfind(|(load, known)| below(load) && known.is_lower());
        let lower = lower.map(|(load, _)| *load);
        // Loads at which long trials disagree lie inside of the interval, not at its end.
        let last_mixed = self.known.iter().rfind(|(_, known)| known.is_mixed()).map_or(0, |(load, _)| *load);
        let upper = self.known.iter().find(|(load, known)| **load > last_mixed && known.is_upper());
        Bounds { lower, upper: upper.map(|(load, _)| *load) }
    }

    fn next_hold(&self, Bounds { lower, upper }: Bounds) -> Option<(u32, u32, Purpose)> {
        let (short, long) = (self.goal.short_seconds, self.goal.long_seconds);
        let (passes, failures) = self.criteria();
        let narrow = |load| Some((load, short, Purpose::Narrow));
        let limit = self.void_at.unwrap_or(self.goal.most.saturating_add(1));
        let Some(lower) = lower else {
            // Nothing was carried: smaller loads, down to one.
            let least = *self.known.keys().next()?;
            return if least > 1 { narrow(least / 2) } else { None };
        };
        if self.recovers.is_none() && upper.is_some() {
            return Some((lower, short, Purpose::Recovery));
        }
        let Some(upper) = upper else {
            // The largest load holds, or no load above one that sometimes fails has failed each time.
            let above = self.outwards(*self.known.keys().next_back()?);
            let is_fuzzy = self.known.values().any(Known::is_mixed);
            if is_fuzzy && above < limit {
                return narrow(above);
            }
            return self
                .confirm(lower, self.goal.passes, |known| known.long_passes)
                .map(|load| (load, long, Purpose::Confirm));
        };
        let is_clear = !self.known.range(lower + 1..upper).any(|(_, known)| known.is_mixed());
        if is_clear && upper > self.outwards(lower) {
            let middle = (f64::from(lower) * f64::from(upper)).sqrt().round() as u32;
            return narrow(middle.clamp(lower + 1, upper - 1));
        }
        self.confirm(lower, passes, |known| known.long_passes)
            .or_else(|| self.confirm(upper, failures, |known| known.long_failures))
            .map(|load| (load, long, Purpose::Confirm))
    }

    /// The load, if it has not been confirmed as often as is asked for.
    fn confirm(&self, load: u32, times: u32, count: impl Fn(&Known) -> u32) -> Option<u32> {
        (self.known.get(&load).map_or(0, count) < times).then_some(load)
    }

    /// How many long trials of the lower bound must pass, and of the upper one fail. A target whose limit wanders has trials
    /// that contradict each other, and each of them is a reason to ask both bounds once more: few trials that agree may have
    /// met a good or a bad moment.
    fn criteria(&self) -> (u32, u32) {
        let Goal { passes, failures, .. } = self.goal;
        match self.unexplained() {
            0 => (passes, failures),
            more => (passes + more, passes.max(failures) + more),
        }
    }

    /// How many trials contradict the limit that contradicts the fewest.
    fn unexplained(&self) -> u32 {
        let contradicting = |limit: u32| {
            let contradicts = |(load, passed): &&(u32, bool)| *passed != (*load <= limit);
            self.outcomes.iter().filter(contradicts).count() as u32
        };
        self.known.keys().copied().chain([0]).map(contradicting).min().unwrap_or(0)
    }

    /// The next load above, at the precision that is asked for.
    fn outwards(&self, load: u32) -> u32 {
        let next = (f64::from(load) * (1.0 + self.goal.precision)).floor() as u32;
        next.max(load + 1)
    }

    fn answer(&self, bounds: Bounds) -> Answer {
        let long = |load: Option<u32>| {
            let known = load.and_then(|load| self.known.get(&load)).copied().unwrap_or_default();
            (known.long_passes, known.long_failures)
        };
        let (lower_trials, upper_trials) = (long(bounds.lower), long(bounds.upper));
        let (passes, failures) = self.criteria();
        let lower_holds = lower_trials.0 >= passes;
        let evidence = match bounds {
            Bounds { lower: None, upper: None } => Evidence::Void,
            Bounds { lower: None, .. } => Evidence::AtMost,
            Bounds { upper: None, .. } if lower_holds => Evidence::AtLeast,
            _ if lower_holds && upper_trials.1 >= failures => Evidence::Found,
            _ => Evidence::Undecided,
        };
        Answer { evidence, bounds, lower_trials, upper_trials, recovers: self.recovers, trials: self.trials }
    }
}
