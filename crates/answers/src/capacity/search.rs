//! The search for the largest load that a target carries. Knows no clock, no client and no server: trials come in, the
//! next one goes out.
//!
//! The method is that of RFC 9971 (MLRsearch): a trial is cut into slices, each of which is good or bad, and what is known
//! of a load is the sum of its slices, however many trials they come from. One difference: a load counts as carried, or as
//! too much, in the end only if it was so in several long trials on their own, since a server near its edge passes once and
//! fails once, and a user asks for a number of viewers that holds.
//!
//! 1. **Climb**: one run that only adds clients and doubles their number until it fails. It finds the range quickly and
//!    overloads the target on purpose. Whenever the upper bound turns out to be none, the climb goes on from there.
//! 2. **Recovery**: the target is emptied, and the last load that it carried is repeated. A target that does not carry it
//!    now, twice, has not recovered from the overload: what it does from then on says nothing about its capacity, and the
//!    search ends with the bounds of the climb.
//! 3. **Narrow**: the middle between the bounds, by their ratio, until they are as close as is asked for. A target that
//!    admitted N clients and refused all others by name has said its limit: N is tried next.
//! 4. **Confirm**: long trials of both bounds. One that does not hold moves outwards, so that the interval covers the
//!    loads at which the target sometimes passes and sometimes fails.

mod answer;

pub use answer::{Answer, Bounds, Evidence, Stopped};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often a trial that says nothing about the target is made in a row: a pause of the machine passes, its limit does not.
const MOST_VOID: u32 = 3;

/// How often the same must be seen where nothing but the target itself can be judged by it: a source that is gone, a
/// publisher that was cut off, a target that nobody reaches, a load that is not carried again.
const TWICE: u32 = 2;

/// Trials below an upper bound that passed in a row, before a bound that rests on a single short trial is asked again: of
/// limits that are as likely anywhere between the bounds, one in four is passed by both.
const SUSPICIOUS_PASSES: usize = 2;

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
    /// Whether the target is started again before each trial: then no trial sees what another one did to it.
    pub restarts: bool,
    /// The one load that matters, if one does: whether it is carried is all that is asked.
    pub at_least: Option<u32>,
    /// What another variant carries, if one does: a target that is shown to carry no more needs no lower bound.
    pub rival: Option<u32>,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trial {
    /// The load.
    pub load: u32,
    /// Seconds in which all thresholds held.
    pub good_seconds: u32,
    /// Seconds in which one did not.
    pub bad_seconds: u32,
    /// Why nothing can be concluded about the target, if nothing can.
    pub void: Option<VoidCause>,
    /// Whether no client ever played.
    pub is_empty: bool,
    /// How many clients played from beginning to end while the target refused all others, if it did.
    pub admitted: Option<u32>,
}

/// Why a trial says nothing about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VoidCause {
    /// weir or its machine was at a limit of its own.
    Generator,
    /// There was nothing to play any more: the source had stopped.
    Source,
    /// The target cut weir's own publisher off.
    Publisher,
    /// Clients still waited for a keyframe: its hold was shorter than those are apart.
    Keyframes,
}

/// What a trial says of its load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "TrialVerdict")]
pub enum TrialVerdict {
    /// The target carries it.
    #[default]
    Pass,
    /// The target does not.
    Fail,
    /// Nothing can be concluded about the target.
    Void,
}

/// A trial that says something about its load.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    trial: Trial,
    /// None of the climb.
    purpose: Option<Purpose>,
}

/// What is known of a load.
#[derive(Clone, Copy, Debug, Default)]
struct LoadRecord {
    good_seconds: u32,
    bad_seconds: u32,
    trials: u32,
    long_passes: u32,
    long_failures: u32,
}

/// Trials in a row that say nothing about the target.
#[derive(Clone, Copy, Debug, Default)]
struct Voids {
    load: u32,
    trials: u32,
    /// Those of them in which the source had stopped.
    without_source: u32,
    /// Those of them in which nobody played.
    empty: u32,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Search {
    goal: Goal,
    outcomes: Vec<Outcome>,
    recovers: Option<bool>,
    /// Trials after the overload in which the load that was carried before was not carried.
    relapses: Vec<Trial>,
    /// What the step that is under way is for; none of the climb.
    purpose: Option<Purpose>,
    voids: Voids,
    /// How often weir's publisher was cut off at a load.
    cuts: BTreeMap<u32, u32>,
    /// The smallest load that the generator could not make.
    void_at: Option<u32>,
    stopped: Option<Stopped>,
    trials: u32,
}

impl Trial {
    /// One of this load that says nothing about the target.
    pub fn void(load: u32, cause: VoidCause) -> Self {
        Self { load, void: Some(cause), ..Self::default() }
    }

    /// What it says: a load is carried if at least half of the time was good (an exceed ratio of 0.5, as RFC 9971
    /// recommends).
    pub fn verdict(&self) -> TrialVerdict {
        if self.void.is_some() {
            TrialVerdict::Void
        } else if self.bad_seconds > self.good_seconds {
            TrialVerdict::Fail
        } else {
            TrialVerdict::Pass
        }
    }
}

impl Outcome {
    fn passed(&self) -> bool {
        self.trial.verdict() == TrialVerdict::Pass
    }

    fn is_long(&self) -> bool {
        self.purpose == Some(Purpose::Confirm)
    }
}

impl LoadRecord {
    /// Whether the load was carried, by all that is known of it.
    fn passes(&self) -> bool {
        self.bad_seconds <= self.good_seconds
    }

    /// Whether all of its slices were good, or all bad.
    fn is_of_one_kind(&self) -> bool {
        self.good_seconds == 0 || self.bad_seconds == 0
    }

    fn is_lower(&self) -> bool {
        self.passes() && self.long_failures == 0
    }

    fn is_upper(&self) -> bool {
        !self.passes() && self.long_passes == 0
    }

    /// Whether its trials disagree, so that the load is neither bound.
    fn is_mixed(&self) -> bool {
        !self.is_lower() && !self.is_upper()
    }
}

impl Search {
    /// A search that has not begun.
    pub fn new(goal: Goal) -> Self {
        Self {
            goal: Goal { first: goal.first.clamp(1, goal.most.max(1)), ..goal },
            outcomes: Vec::new(),
            recovers: None,
            relapses: Vec::new(),
            purpose: None,
            voids: Voids::default(),
            cuts: BTreeMap::new(),
            void_at: None,
            stopped: None,
            trials: 0,
        }
    }

    /// What to do next. Without a trial in between the answer is the same.
    pub fn step(&mut self) -> Step {
        let known = self.known();
        let bounds = bounds(&known);
        let is_over = self.trials >= self.goal.most_trials || self.stopped.is_some();
        let next = if is_over { None } else { self.next(&known, bounds) };
        // Beyond the generator's limit nothing can be tried.
        let next = next.filter(|step| self.void_at.is_none_or(|limit| step.least() < limit));
        let step = next.or_else(|| {
            let limit = self.void_at.filter(|_| !is_over)?;
            let lower = bounds.lower.filter(|lower| *lower < limit)?;
            self.confirm(&known, lower, self.goal.passes, |known| known.long_passes)
        });
        self.purpose = match step {
            Some(Step::Hold { purpose, .. }) => Some(purpose),
            _ => None,
        };
        step.unwrap_or_else(|| Step::Done(self.answer_now()))
    }

    /// What is known so far, where no further trial can be made.
    pub fn answer_now(&self) -> Answer {
        let known = self.known();
        self.answer(&known, bounds(&known))
    }

    /// Takes note of the loads that a climb went through, in order.
    pub fn climbed(&mut self, trials: &[Trial]) {
        self.trials += 1;
        // A load that was not judged matters where nothing above it was.
        let judged = trials.iter().rposition(|trial| trial.verdict() != TrialVerdict::Void);
        for trial in trials.iter().filter(|trial| trial.verdict() != TrialVerdict::Void) {
            self.note(*trial, None);
        }
        if let Some(void) = trials.get(judged.map_or(0, |at| at + 1)) {
            self.note(*void, None);
        }
    }

    /// Takes note of the trial of the last [`Step::Hold`].
    pub fn held(&mut self, trial: &Trial) {
        self.trials += 1;
        let purpose = self.purpose.take();
        self.note(*trial, purpose);
    }

    fn note(&mut self, trial: Trial, purpose: Option<Purpose>) {
        let lower = self.answer_now().bounds.lower;
        let is_beyond = lower.is_some_and(|lower| trial.load > lower);
        let mut trial = trial;
        if trial.void == Some(VoidCause::Publisher) {
            let cuts = self.cuts.entry(trial.load).or_default();
            *cuts += 1;
            if *cuts >= TWICE {
                if lower.is_some() && !is_beyond {
                    self.stopped = Some(Stopped::NoPublisher);
                    return;
                }
                // Not at the last load that passed, and twice at this one.
                let bad_seconds = (trial.good_seconds + trial.bad_seconds).max(1);
                trial = Trial { void: None, good_seconds: 0, bad_seconds, ..trial };
            }
        }
        // Somebody played at a smaller load. Whether the target is reached at all is asked at that one.
        let is_lost = trial.is_empty && trial.void.is_none() && lower.is_some();
        if trial.void.is_some() || is_lost {
            self.note_void(&trial);
            return;
        }
        self.voids = Voids::default();
        if purpose == Some(Purpose::Recovery) {
            return self.note_recovery(trial);
        }
        if trial.verdict() == TrialVerdict::Pass
            && self.is_overloaded()
            && lower.is_some_and(|it| it <= trial.load)
        {
            // It carries again what it carried before, or more.
            self.recovers = Some(true);
        }
        self.outcomes.push(Outcome { trial, purpose });
    }

    /// Takes note of what came after the overload. A load that is carried only sometimes fails here by chance, and one that
    /// the target carried before its overload only fails for it: half of that load tells the two apart, since a target at its
    /// edge carries half, and does not carry the whole twice afterwards.
    fn note_recovery(&mut self, trial: Trial) {
        let passed = trial.verdict() == TrialVerdict::Pass;
        match (self.relapses.len(), passed) {
            (0 | 1, true) => {
                self.recovers = Some(true);
                self.outcomes.push(Outcome { trial, purpose: Some(Purpose::Recovery) });
            }
            (0 | 1, false) | (2 | 3, true) => self.relapses.push(trial),
            (3 | 4, false) => {
                self.recovers = Some(true);
                let of_it = std::mem::take(&mut self.relapses).into_iter().filter(|it| it.load == trial.load);
                let all = of_it.chain([trial]);
                self.outcomes.extend(all.map(|trial| Outcome { trial, purpose: Some(Purpose::Recovery) }));
            }
            _ => (self.recovers, self.stopped) = (Some(false), Some(Stopped::NotRecovered)),
        }
    }

    fn note_void(&mut self, trial: &Trial) {
        if self.voids.load != trial.load {
            self.voids = Voids { load: trial.load, ..Voids::default() };
        }
        self.voids.trials += 1;
        self.voids.without_source += u32::from(trial.void == Some(VoidCause::Source));
        self.voids.empty += u32::from(trial.is_empty && trial.void.is_none());
        if self.voids.without_source >= TWICE {
            self.stopped = Some(Stopped::NoSource);
            // What failed just before may have failed for the same reason.
            if self.outcomes.last().is_some_and(|last| !last.passed()) {
                self.outcomes.pop();
            }
        } else if self.voids.empty >= TWICE {
            (self.recovers, self.stopped) = (Some(false), Some(Stopped::Broken));
        } else if self.voids.trials >= MOST_VOID {
            self.void_at = Some(self.void_at.map_or(trial.load, |load| load.min(trial.load)));
        }
    }

    /// Whether the target was given more than it carries.
    fn is_overloaded(&self) -> bool {
        self.outcomes.iter().any(|outcome| !outcome.passed())
    }

    fn known(&self) -> BTreeMap<u32, LoadRecord> {
        let mut all: BTreeMap<u32, LoadRecord> = BTreeMap::new();
        for outcome in &self.outcomes {
            let known = all.entry(outcome.trial.load).or_default();
            known.good_seconds += outcome.trial.good_seconds;
            known.bad_seconds += outcome.trial.bad_seconds;
            known.trials += 1;
            known.long_passes += u32::from(outcome.is_long() && outcome.passed());
            known.long_failures += u32::from(outcome.is_long() && !outcome.passed());
        }
        all
    }

    /// The loads of a climb that begins with this one.
    fn climb(&self, first: u32) -> Step {
        let most = self.void_at.map_or(self.goal.most, |limit| self.goal.most.min(limit - 1));
        let double = |load: &u32| Some(load.saturating_mul(2).min(most)).filter(|next| next > load);
        Step::Climb {
            loads: std::iter::successors(Some(first), double).collect(),
            seconds: self.goal.short_seconds,
        }
    }

    fn narrow(&self, load: u32) -> Step {
        Step::Hold { load, seconds: self.goal.short_seconds, purpose: Purpose::Narrow }
    }

    fn next(&self, known: &BTreeMap<u32, LoadRecord>, Bounds { lower, upper }: Bounds) -> Option<Step> {
        if let Some(load) = self.goal.at_least {
            return self.next_of_one(known, load);
        }
        let Some(last) = known.keys().next_back().copied() else {
            return Some(self.climb(self.goal.first));
        };
        let Some(lower) = lower else {
            // Nothing was carried: smaller loads, down to one.
            let least = *known.keys().next()?;
            let next = self.admitted_at(least).filter(|admitted| *admitted < least).unwrap_or(least / 2);
            return (least > 1).then(|| self.narrow(next.max(1)));
        };
        let (passes, failures) = self.criteria(known, lower, upper);
        let Some(upper) = upper else {
            let is_fuzzy = known.iter().any(|(load, it)| it.is_mixed() && !is_left_behind(known, *load));
            if last < self.goal.most {
                // Nothing above has failed: the climb goes on, in small steps from a load that sometimes fails.
                let next =
                    if is_fuzzy { self.outwards(last) } else { last.saturating_mul(2) }.min(self.goal.most);
                return Some(if is_fuzzy { self.narrow(next) } else { self.climb(next) });
            }
            return self.confirm(known, lower, passes, |known| known.long_passes);
        };
        let confirm_upper = || self.confirm(known, upper, failures, |known| known.long_failures);
        if self.goal.rival.is_some_and(|rival| upper <= rival) {
            return confirm_upper();
        }
        if let Some(step) = self.next_of_admitted(known, lower, upper) {
            return Some(step);
        }
        if self.recovers.is_none() && !self.goal.restarts {
            let load = if self.relapses.len() == 2 { (lower / 2).max(1) } else { lower };
            return Some(Step::Hold { load, seconds: self.goal.short_seconds, purpose: Purpose::Recovery });
        }
        let is_clear = !known.range(lower + 1..upper).any(|(_, it)| it.is_mixed());
        if is_clear && upper > self.outwards(lower) {
            if known[&upper].trials == 1 && self.passes_since(upper) >= SUSPICIOUS_PASSES {
                return Some(self.narrow(upper));
            }
            let middle = (f64::from(lower) * f64::from(upper)).sqrt().round() as u32;
            return Some(self.narrow(middle.clamp(lower + 1, upper - 1)));
        }
        self.confirm(known, lower, passes, |known| known.long_passes).or_else(confirm_upper)
    }

    /// The next step where only one load matters.
    fn next_of_one(&self, known: &BTreeMap<u32, LoadRecord>, load: u32) -> Option<Step> {
        let of = known.get(&load).copied().unwrap_or_default();
        let (passes, failures) = self.criteria_of_one(&of);
        let is_open = of.long_passes < passes && of.long_failures < failures;
        is_open.then_some(Step::Hold { load, seconds: self.goal.long_seconds, purpose: Purpose::Confirm })
    }

    /// How many trials of one load must pass, or fail, before it is known: one more for each that contradicts.
    fn criteria_of_one(&self, of: &LoadRecord) -> (u32, u32) {
        (self.goal.passes + of.long_failures, self.goal.failures + of.long_passes)
    }

    /// The next step where the target admitted some clients at the upper bound and refused the others: first as many as it
    /// admitted, then as many more as the precision allows.
    fn next_of_admitted(&self, known: &BTreeMap<u32, LoadRecord>, lower: u32, upper: u32) -> Option<Step> {
        let admitted = self.admitted_at(upper).filter(|admitted| (lower..upper).contains(admitted))?;
        let hold =
            |load| Some(Step::Hold { load, seconds: self.goal.long_seconds, purpose: Purpose::Confirm });
        if known.get(&admitted).is_none_or(|known| known.long_passes == 0 && known.is_lower()) {
            return hold(admitted);
        }
        if self.admits(Bounds { lower: Some(lower), upper: Some(upper) }).is_some() {
            return None;
        }
        let above = self.outwards(admitted).min(upper);
        let is_tried_once = known.get(&above).map_or(0, |known| known.trials) <= u32::from(above == upper);
        (admitted == lower && is_tried_once).then(|| hold(above))?
    }

    /// How many clients the target admitted when this load failed last, if it refused all others.
    fn admitted_at(&self, load: u32) -> Option<u32> {
        let of = self.outcomes.iter().rfind(|outcome| outcome.trial.load == load && !outcome.passed());
        of.and_then(|outcome| outcome.trial.admitted).filter(|admitted| *admitted > 0)
    }

    /// How many clients the target admits, if it refused the others twice, admitted as many each time to the precision that
    /// is asked for, and carried them.
    fn admits(&self, Bounds { lower, upper }: Bounds) -> Option<u32> {
        let (lower, upper) = lower.zip(upper)?;
        let of: Option<Vec<u32>> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.trial.load >= upper)
            .map(|outcome| outcome.trial.admitted.filter(|_| !outcome.passed()))
            .collect();
        let of = of?;
        let (least, most) = (*of.iter().min()?, *of.iter().max()?);
        (of.len() >= TWICE as usize && least == lower && most < self.outwards(least)).then_some(lower)
    }

    /// How many trials below this load have passed in a row since it failed.
    fn passes_since(&self, load: u32) -> usize {
        let since = self.outcomes.iter().rev().take_while(|outcome| outcome.trial.load != load);
        since.filter(|outcome| outcome.passed() && outcome.purpose == Some(Purpose::Narrow)).count()
    }

    /// A long trial of the load, if it has not been confirmed as often as is asked for.
    fn confirm(
        &self,
        known: &BTreeMap<u32, LoadRecord>,
        load: u32,
        times: u32,
        count: impl Fn(&LoadRecord) -> u32,
    ) -> Option<Step> {
        let is_open = known.get(&load).map_or(0, count) < times;
        is_open.then_some(Step::Hold { load, seconds: self.goal.long_seconds, purpose: Purpose::Confirm })
    }

    /// How many long trials of the lower bound must pass, and of the upper one fail. A target that refuses all but as many as
    /// it carries says its limit itself. A target whose limit wanders has trials that contradict each other, and each of them
    /// is a reason to ask both bounds once more: few trials that agree may have met a good or a bad moment.
    fn criteria(&self, known: &BTreeMap<u32, LoadRecord>, lower: u32, upper: Option<u32>) -> (u32, u32) {
        let Goal { passes, failures, .. } = self.goal;
        if self.admits(Bounds { lower: Some(lower), upper }).is_some() {
            return (1, 0);
        }
        match self.unexplained(known, lower, upper) {
            0 => (passes, failures),
            more => (passes + more, passes.max(failures) + more),
        }
    }

    /// How many trials contradict the limit that contradicts the fewest, of those near the bounds: one that is far away is no
    /// sign that the limit wanders.
    fn unexplained(&self, known: &BTreeMap<u32, LoadRecord>, lower: u32, upper: Option<u32>) -> u32 {
        let near = lower / 2..=upper.unwrap_or(lower).saturating_mul(2);
        let contradicting = |limit: u32| {
            let contradicts = |outcome: &&Outcome| outcome.passed() != (outcome.trial.load <= limit);
            let near = self.outcomes.iter().filter(|outcome| near.contains(&outcome.trial.load));
            near.filter(contradicts).count() as u32
        };
        known.keys().copied().chain([0]).map(contradicting).min().unwrap_or(0)
    }

    /// The next load above, at the precision that is asked for.
    fn outwards(&self, load: u32) -> u32 {
        let next = (f64::from(load) * (1.0 + self.goal.precision)).floor() as u32;
        next.max(load.saturating_add(1))
    }
}

impl Step {
    /// The smallest load of it.
    fn least(&self) -> u32 {
        match self {
            Self::Climb { loads, .. } => loads.first().copied().unwrap_or_default(),
            Self::Hold { load, .. } => *load,
            Self::Done(_) => 0,
        }
    }
}

/// The smallest load that is too much, and the largest below it that is not. A pass above a failure is a fluke
/// (RFC 9971, section 4.6): the target does not carry what it carries only sometimes.
fn bounds(known: &BTreeMap<u32, LoadRecord>) -> Bounds {
    let is_mixed = |load: u32, it: &LoadRecord| it.is_mixed() && !is_left_behind(known, load);
    let is_failure = |load: u32, it: &LoadRecord| is_mixed(load, it) || it.is_upper();
    let first_failure = known.iter().find(|(load, it)| is_failure(**load, it)).map(|(load, _)| *load);
    let below = |load: &u32| first_failure.is_none_or(|failure| *load < failure);
    let lower = known.iter().rfind(|(load, it)| below(load) && it.is_lower());
    // Loads at which trials disagree lie inside of the interval, not at its end.
    let last_mixed = known.iter().rfind(|(load, it)| is_mixed(**load, it)).map_or(0, |(load, _)| *load);
    let upper = known.iter().find(|(load, it)| **load > last_mixed && it.is_upper());
    Bounds { lower: lower.map(|(load, _)| *load), upper: upper.map(|(load, _)| *load) }
}

/// Whether a load at which trials disagree is below two others that were carried: its failure was a false step.
fn is_left_behind(known: &BTreeMap<u32, LoadRecord>, load: u32) -> bool {
    known.range(load + 1..).take_while(|(_, it)| it.is_lower()).count() >= TWICE as usize
}
