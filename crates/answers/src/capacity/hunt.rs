//! A whole search: trial after trial, until it is known what is asked for or the time is over. Knows no server, no clock and
//! no terminal: what makes the trials says how long it has been at it.

use super::search::{Answer, Goal, Purpose, Search, Step, Trial, TrialVerdict, VoidCause};
use std::time::Duration;

/// A trial that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTrial {
    /// Its loads, one after the other, until one fails.
    pub loads: Vec<u32>,
    /// Seconds that each is held.
    pub seconds: u32,
    /// What it is for; none of the climb.
    pub purpose: Option<Purpose>,
}

/// What makes the trials of a search.
pub trait TrialRunner {
    /// Why a trial could not be made.
    type Error;

    /// Time since the search began.
    fn elapsed(&self) -> Duration;

    /// For how long a trial of these loads goes on at most.
    ///
    /// # Errors
    /// There can be no such trial.
    fn length(&self, loads: &[u32], seconds: u32) -> Result<Duration, Self::Error>;

    /// Makes a trial, which is to end within `left`: what became of its loads, in order, or nothing if it was interrupted
    /// before anything was known.
    ///
    /// # Errors
    /// It could not be made.
    fn run(&mut self, trial: &PlannedTrial, left: Duration) -> Result<Option<Vec<Trial>>, Self::Error>;

    /// Takes note of what is known after a trial.
    ///
    /// # Errors
    /// It could not be written down.
    fn note(&mut self, answer: &Answer) -> Result<(), Self::Error>;
}

/// Searches. A trial is only begun if it can end within `budget`, of a climb in one run its first load: it has no end of its
/// own that is known before. `climbs_in_one_run` is whether one run can go from load to load.
///
/// # Errors
/// A trial could not be made, or an answer not be written down.
pub fn hunt<R: TrialRunner>(
    goal: Goal,
    budget: Duration,
    climbs_in_one_run: bool,
    runner: &mut R,
) -> Result<Answer, R::Error> {
    let mut search = Search::new(goal);
    loop {
        let trial = match search.step() {
            Step::Climb { loads, seconds } => PlannedTrial { loads, seconds, purpose: None },
            Step::Hold { load, seconds, purpose } => {
                PlannedTrial { loads: vec![load], seconds, purpose: Some(purpose) }
            }
            Step::Done(answer) => return Ok(answer),
        };
        let Some(made) = made(&trial, budget, climbs_in_one_run, runner)? else {
            return Ok(search.answer_now());
        };
        // One that was over before a slice was says nothing.
        let nothing = Trial::void(trial.loads[0], VoidCause::Generator);
        match trial.purpose {
            Some(_) => search.held(made.first().unwrap_or(&nothing)),
            None if made.is_empty() => search.climbed(&[nothing]),
            None => search.climbed(&made),
        }
        runner.note(&search.answer_now())?;
    }
}

/// What became of the loads of a trial, in one run or in a run a load; nothing if there was no time, or an interruption, before
/// anything was known.
fn made<R: TrialRunner>(
    trial: &PlannedTrial,
    budget: Duration,
    climbs_in_one_run: bool,
    runner: &mut R,
) -> Result<Option<Vec<Trial>>, R::Error> {
    let mut made: Vec<Trial> = Vec::new();
    for loads in trial.loads.chunks(if climbs_in_one_run { trial.loads.len().max(1) } else { 1 }) {
        let left = budget.saturating_sub(runner.elapsed());
        let part = PlannedTrial { loads: loads.to_vec(), ..trial.clone() };
        let has_time = runner.length(&loads[..1], trial.seconds)? <= left;
        let Some(outcomes) = (if has_time { runner.run(&part, left)? } else { None }) else {
            return Ok((!made.is_empty()).then_some(made));
        };
        made.extend(outcomes);
        if made.last().is_none_or(|trial| trial.verdict() != TrialVerdict::Pass) {
            break;
        }
    }
    Ok(Some(made))
}
