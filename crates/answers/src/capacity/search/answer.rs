//! What the trials of a search say together, and how sure that is.

use super::{LoadRecord, Search, is_left_behind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

/// What ended a search though there was more to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// After its overload the target admitted nobody any more.
    Broken,
    /// After its overload the target did not carry again what it had carried before.
    NotRecovered,
    /// The source had stopped, in two trials one after the other.
    NoSource,
    /// The target cut weir's own publisher off even at loads that it had carried.
    NoPublisher,
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
    /// Whether the lower bound was confirmed.
    #[serde(default)]
    pub lower_is_sure: bool,
    /// Whether the upper bound was confirmed.
    #[serde(default)]
    pub upper_is_sure: bool,
    /// Whether the target carried again, once it was emptied, what it carried before it was overloaded. `None` if that was
    /// not tried.
    pub recovers: Option<bool>,
    /// How many trials there were, the climb being one.
    pub trials: u32,
    /// What ended the search though there was more to find out, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// How many clients the target admitted, each time that more came, if it refused the others and always admitted as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admits: Option<u32>,
}

impl Search {
    /// What the trials say, with these bounds.
    pub(super) fn answer(&self, known: &BTreeMap<u32, LoadRecord>, bounds: Bounds) -> Answer {
        let long = |load: Option<u32>| {
            let known = load.and_then(|load| known.get(&load)).copied().unwrap_or_default();
            (known.long_passes, known.long_failures)
        };
        let (evidence, bounds) = match self.goal.at_least {
            Some(load) => self.evidence_of_one(known, load),
            None => match self.evidence(known, bounds) {
                Evidence::Undecided => (Evidence::Undecided, self.supported(known, bounds)),
                evidence => (evidence, bounds),
            },
        };
        let (lower_is_sure, upper_is_sure) = match self.goal.at_least {
            Some(_) => (evidence == Evidence::AtLeast, evidence == Evidence::AtMost),
            None => self.sure(known, bounds),
        };
        Answer {
            evidence,
            bounds,
            lower_trials: long(bounds.lower),
            upper_trials: long(bounds.upper),
            lower_is_sure,
            upper_is_sure,
            recovers: self.recovers,
            trials: self.trials,
            stopped: self.stopped,
            admits: self.admits(bounds),
        }
    }

    /// Whether the bounds were confirmed.
    fn sure(&self, known: &BTreeMap<u32, LoadRecord>, Bounds { lower, upper }: Bounds) -> (bool, bool) {
        let of = |load: u32| known.get(&load).copied().unwrap_or_default();
        let (passes, failures) = self.criteria(known, lower.unwrap_or_default(), upper);
        (
            lower.is_some_and(|load| of(load).long_passes >= passes),
            upper.is_some_and(|load| of(load).long_failures >= failures),
        )
    }

    pub(super) fn evidence(&self, known: &BTreeMap<u32, LoadRecord>, bounds: Bounds) -> Evidence {
        let (lower_is_sure, upper_is_sure) = self.sure(known, bounds);
        match bounds {
            Bounds { lower: None, upper: None } => Evidence::Void,
            Bounds { lower: None, .. } => Evidence::AtMost,
            Bounds { upper: None, .. } if lower_is_sure => Evidence::AtLeast,
            _ if lower_is_sure && upper_is_sure => Evidence::Found,
            _ => Evidence::Undecided,
        }
    }

    /// What can be said of the limit before both bounds were confirmed: it lies between the loads that only passed and those
    /// that only failed. A load that was tried once counts if all of its slices agree, and each trial that contradicts the
    /// others moves both ends outwards by one more.
    fn supported(&self, known: &BTreeMap<u32, LoadRecord>, bounds: Bounds) -> Bounds {
        let loads = |passed: bool| {
            let of = self.outcomes.iter().filter(move |it| it.passed() == passed).map(|it| it.trial.load);
            // That a load failed by a false step is known of what was carried above it, which says nothing against its passes.
            of.filter(move |load| passed || !is_left_behind(known, *load))
        };
        let least_failed = loads(false).min().unwrap_or(u32::MAX);
        let most_passed = loads(true).max().unwrap_or(0);
        let is_clear = |load: &u32| known[load].trials > 1 || known[load].is_of_one_kind();
        let mut passed: Vec<u32> = loads(true).filter(|it| *it < least_failed && is_clear(it)).collect();
        let mut failed: Vec<u32> = loads(false).filter(|it| *it > most_passed && is_clear(it)).collect();
        passed.sort_unstable_by_key(|load| std::cmp::Reverse(*load));
        failed.sort_unstable();
        let at = self.unexplained(known, bounds.lower.unwrap_or_default(), bounds.upper) as usize;
        let end = |loads: &[u32]| loads.get(at).or(loads.last()).copied();
        Bounds { lower: end(&passed), upper: end(&failed) }
    }

    /// The same where only one load matters.
    pub(super) fn evidence_of_one(&self, known: &BTreeMap<u32, LoadRecord>, load: u32) -> (Evidence, Bounds) {
        let Some(of) = known.get(&load) else {
            return (Evidence::Void, Bounds { lower: None, upper: None });
        };
        let (passes, failures) = self.criteria_of_one(of);
        let lower = (of.long_failures == 0 || of.long_passes >= passes).then_some(load);
        let upper = (of.long_passes == 0 || of.long_failures >= failures).then_some(load);
        let evidence = match () {
            () if of.long_passes >= passes => Evidence::AtLeast,
            () if of.long_failures >= failures => Evidence::AtMost,
            () => Evidence::Undecided,
        };
        (evidence, Bounds { lower, upper })
    }
}
