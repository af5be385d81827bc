//! Searches, of `weir capacity`, of sweeps and of the library's `Capacity`: trial after trial, until it is known how many clients a server carries.

mod judge;

use crate::answer::Answer as _;
use crate::generators::Generators;
use crate::observer::AnswerSoFar;
use crate::prepare;
use crate::repeated::ending;
use crate::run;
use crate::session::Session;
use crate::stepped::SteppedRun;
use crate::{ErrorKind, RunError, agents, run_directory};
use judge::{Judge, ServerPresence};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use weir_answers::capacity::{
    Answer as CapacityAnswer, CapacitySummary, CapacityTrial, Criterion, Evidence, Goal, LAYOUT, LoadOutcome,
    PlannedTrial, Purpose, Search, Sought, SourceClock, Subject, Trial, TrialPlan, TrialRunner, TrialSlices,
    VoidCause, criteria,
};
use weir_answers::series::Ending;
use weir_engine::record;
use weir_engine::run::Prepared;
use weir_engine::scenario::{Find, LoadKind, Scenario, Step as ScenarioStep, Variant};
use weir_engine::summary::{Outcome, Summary, VerdictState};
use weir_report::load_line;
use weir_setting::{AT_LEAST, CLIENTS, CONFIRM, FROM, HOLD, OF, SLICE, Setting, THRESHOLD};
use weir_shard::clock;

/// Most clients that are tried by default: more than twice what any known server carries.
const MOST_CLIENTS: u32 = 1_000_000;

/// How many trials there may be, the climb being one: a search without an end is one of a server whose limit wanders.
const MOST_TRIALS: u32 = 40;

/// How often the lower bound must hold over the long time, and the upper one must fail.
const PASSES: u32 = 3;
const FAILURES: u32 = 2;

/// How long a load is held, in seconds, to find a bound and to confirm one: what twenty minutes are enough for.
const HOLD_SECONDS: u32 = 15;
const CONFIRM_SECONDS: u32 = 60;

/// How many slices a load is held for at least, unless it is said: one alone is good or bad by a burst more or less.
const FEWEST_SLICES: u32 = 2;

/// Between what and what clients are given to begin, where they waited for a keyframe until the end of a load.
const SHORTEST_BEGINNING: Duration = Duration::from_secs(15);
const LONGEST_BEGINNING: Duration = Duration::from_secs(60);

/// How a capacity is searched for.
#[derive(Clone, Debug)]
pub struct SearchSettings {
    /// What is counted; what the scenario says at `find` if `None`, clients if it says nothing.
    pub of: Option<LoadKind>,
    /// Of arrivals: how many clients come at each rate.
    pub clients: Option<u32>,
    /// The load to begin with.
    pub from: Option<u32>,
    /// The largest load that may be tried.
    pub most: Option<u32>,
    /// How far the number that is too much may lie above the one that is carried, as a share of it.
    pub precision: f64,
    /// Clients started a second while a load is approached from below.
    pub arrivals_per_second: f64,
    /// How long a load is held to find the bounds, and a bound to confirm it; by the budget if `None`.
    pub hold: Option<Duration>,
    /// See `hold`.
    pub confirm: Option<Duration>,
    /// Time over which thresholds are judged.
    pub slice: Duration,
    /// Time for a whole search.
    pub budget: Duration,
    /// A command that is run before each trial.
    pub prepare: Option<String>,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            of: None,
            clients: None,
            from: None,
            most: None,
            precision: 0.05,
            arrivals_per_second: 100.0,
            hold: None,
            confirm: None,
            slice: Duration::from_secs(5),
            budget: Duration::from_secs(1_200),
            prepare: None,
        }
    }
}

/// What is searched, beside the scenario.
#[derive(Clone, Copy)]
pub struct SearchedVariant<'a> {
    /// The variant that it is, if it is one of several.
    pub variant: Option<&'a Variant>,
    /// Which of its searches it is, from 1 on.
    pub repetition: u32,
    /// Where the scenario's file is.
    pub folder: &'a Path,
    /// What a scenario that cannot be searched ends with.
    pub wrong: ErrorKind,
}

/// What every trial is made of.
pub struct CapacitySearch<'a> {
    subject: Subject,
    criteria: Vec<Criterion>,
    goal: Goal,
    arrivals_per_second: f64,
    slice_seconds: u32,
    of: SearchedVariant<'a>,
}

impl<'a> CapacitySearch<'a> {
    /// Of a scenario, with every check that is possible before a server is started.
    ///
    /// # Errors
    /// It cannot be searched, or what is asked of it cannot be judged.
    pub fn new(
        base: Scenario,
        search: &SearchSettings,
        generators: &Generators,
        of: SearchedVariant<'a>,
    ) -> Result<Self, RunError> {
        let kind = search.of.or(base.find.map(Find::kind)).unwrap_or_default();
        let arrivals_per_second = search.arrivals_per_second;
        let mut subject = Subject::new(base, kind, search.clients, arrivals_per_second)
            .map_err(RunError::with(of.wrong))?;
        if search.clients.is_some() && kind != LoadKind::Arrivals {
            let line = format!(
                "{CLIENTS} is of {}; what else is counted has a number that is searched for",
                OF.to("arrivals")
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        if let Some(command) = &search.prepare {
            subject.base_mut().before.insert(0, ScenarioStep::Run(command.clone()));
        }
        let slice_seconds = whole_seconds(search.slice, &SLICE)?;
        let criteria = criteria(&subject.base().thresholds, kind, subject.asked());
        let goal = goal(&subject, search, slice_seconds)?;
        let trials = Self { subject, criteria, goal, arrivals_per_second, slice_seconds, of };
        // Before a server is started, or a directory made: a plan that cannot be needs none.
        let first = trials.subject.trial(&[goal.first], goal.short_seconds, Duration::ZERO);
        prepare::plan(&first, of.wrong)?;
        // Where no step has to start a server before it can be asked.
        if first.before.is_empty() {
            trials.check(&prepare::prepare(first, of.wrong, generators)?)?;
        }
        Ok(trials)
    }

    /// What the scenario is called.
    pub fn name(&self) -> &str {
        &self.subject.base().name
    }

    /// What a load is a number of, in words.
    pub fn noun(&self) -> &'static str {
        self.subject.noun()
    }

    /// The same where one load is all that is asked, if one is.
    ///
    /// # Errors
    /// It is more than may be tried.
    pub fn only(mut self, load: Option<u32>) -> Result<Self, RunError> {
        if let Some(load) = load.filter(|load| *load > self.goal.most) {
            let line = format!(
                "{} is more than {}, the most that may be tried",
                AT_LEAST.to(load.to_string()),
                self.goal.most
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        self.goal.at_least = load;
        Ok(self)
    }

    /// Searches, in a directory of its own and within `budget`, and says what went wrong beside it. `rival` is what another
    /// variant carries.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn hunt(
        &self,
        budget: Duration,
        rival: Option<u32>,
        whole: &Path,
        session: &mut Session<'_>,
    ) -> Result<(CapacitySummary, Result<(), RunError>), RunError> {
        let agents = session.agents.as_ref().map_or(0, |agents| agents.count);
        if is_loss_unknown(&self.subject, &self.criteria, agents) {
            let line = format!(
                "what a shared subscription ($share) loses cannot be judged with several agents: members in other processes get what these miss; subscribe without $share, let one agent make the load, or ask for something else by {THRESHOLD}"
            );
            return Err(RunError::new(self.of.wrong, line));
        }
        let summary = CapacitySummary {
            layout: LAYOUT.to_owned(),
            run: run_directory::facts(self.subject.base(), whole, clock::wall_nanos() as f64 * 1e-9),
            ending: Ending::Running,
            sought: self.sought(budget),
            answer: Search::new(self.goal).answer_now(),
            trials: Vec::new(),
        };
        // What cannot be written is better known before the first trial.
        summary.keep(whole)?;
        session.watcher.comes_to(AnswerSoFar::Search(&summary));
        let goal = Goal { rival, ..self.goal };
        let climbs_in_one_run = self.subject.kind().climbs_in_one_run();
        let began = Instant::now();
        let mut runner = RealTrials { of: self, whole, session, began, begins: Duration::ZERO, summary };
        let found = weir_answers::capacity::hunt(goal, budget, climbs_in_one_run, &mut runner);
        let RealTrials { mut summary, began, session, .. } = runner;
        // A trial that could not be judged took its time, too.
        summary.run.duration_seconds = began.elapsed().as_secs_f64();
        let trouble = found.map(|answer| summary.answer = answer);
        summary.ending = ending(session.interrupt, trouble.as_ref().err());
        summary.keep(whole)?;
        session.watcher.comes_to(AnswerSoFar::Search(&summary));
        Ok((summary, trouble))
    }

    fn sought(&self, budget: Duration) -> Sought {
        let shown = self.subject.base().without_secrets();
        let spec = self.subject.judged().first().and_then(|at| shown.workloads.get(*at));
        let urls =
            spec.and_then(|spec| spec.verb().ok()).map_or_else(String::new, |(_, urls)| urls.join(", "));
        Sought {
            kind: self.subject.kind(),
            of: self.subject.noun().to_owned(),
            target: urls,
            thresholds: self.criteria.iter().map(|it| it.threshold.text().to_owned()).collect(),
            at_least: self.goal.at_least,
            precision: self.goal.precision,
            arrivals_per_second: self.arrivals_per_second,
            slice_seconds: self.slice_seconds,
            short_seconds: self.goal.short_seconds,
            long_seconds: self.goal.long_seconds,
            budget_seconds: budget.as_secs_f64(),
        }
    }

    /// Checks that the workload has the figures that are asked for.
    fn check(&self, prepared: &Prepared) -> Result<(), RunError> {
        let schemas: Vec<_> = prepared.workloads.iter().map(|(_, workload)| workload.schema).collect();
        if let Some(growth) = self.criteria.iter().find_map(|it| it.threshold.server_growth()) {
            let line = format!(
                "{} is known of a whole run, and a search judges every {} s: ask it of `weir play` or `weir run`",
                growth.name(),
                self.slice_seconds
            );
            return Err(RunError::new(self.of.wrong, line));
        }
        if let Some(criterion) = self.criteria.iter().find(|it| it.threshold.server_load().is_some()) {
            let line = format!(
                "threshold '{}': the processes are known of a whole stage, and a search judges every {} s: ask it of `weir play` or `weir run`",
                criterion.threshold.text(),
                self.slice_seconds
            );
            return Err(RunError::new(self.of.wrong, line));
        }
        if let Some(criterion) = self.criteria.iter().find(|it| it.threshold.is_about_growing_drift()) {
            let line = format!(
                "threshold '{}': what grows is known of a whole stage, and a search judges every {} s: ask it of `weir play` or `weir run`",
                criterion.threshold.text(),
                self.slice_seconds
            );
            return Err(RunError::new(self.of.wrong, line));
        }
        let mut required = self.criteria.iter().filter(|it| !it.may_lack);
        let check = |it: &Criterion| {
            it.threshold.check(&schemas)?;
            it.threshold.check_workloads(&prepared.scenario)
        };
        required.try_for_each(check).map_err(RunError::with(self.of.wrong))
    }

    /// The run of one trial, and what became of its loads.
    fn trial(
        &self,
        scenario: &Scenario,
        mut slices: TrialSlices,
        directory: &Path,
        session: &mut Session<'_>,
        left: Duration,
        is_first: bool,
    ) -> Result<Vec<LoadOutcome>, RunError> {
        let judged = self.subject.judged();
        let start = |prepared: Prepared, session: &mut Session<'_>| {
            let prepared = Prepared { slice_seconds: Some(self.slice_seconds), ..prepared };
            self.check(&prepared)?;
            let prepared = agents::gather(prepared, session)?;
            // A climb ends long before its plan, and no trial goes on beyond the budget.
            let length = run::length(&prepared).min(left);
            let thresholds = slices.thresholds();
            let presence = if is_first { ServerPresence::Awaited } else { ServerPresence::Known };
            let deadline = Instant::now() + left;
            let watcher = &mut *session.watcher;
            let mut judge = Judge { watcher, slices: &mut slices, thresholds, judged, deadline, presence };
            run::run_here(prepared, length, directory, session.interrupt, &mut judge)
        };
        let SearchedVariant { variant, repetition, folder, .. } = self.of;
        let run = SteppedRun { scenario, variant, repetition, folder, directory };
        let (summary, trouble) = run.run(session, start)?;
        trouble.map_or(Ok(()), Err)?;
        let outcomes = slices.outcomes(&summary);
        // Those that wait for a keyframe have a server, and a stream.
        let waits = outcomes.iter().any(|it| it.void_cause == Some(VoidCause::Keyframes));
        if is_first && !waits && is_of_nothing(&summary) {
            // No load is small enough for a server that is not there, or for a stream that is not published.
            let line = weir_report::shortfall(&summary).unwrap_or_default();
            return Err(RunError::new(
                ErrorKind::of_summary(&summary).unwrap_or(ErrorKind::Thresholds),
                line,
            ));
        }
        Ok(outcomes)
    }
}

/// The trials of a search, each of them a run of clients, and what came of them so far.
struct RealTrials<'a, 'b> {
    of: &'a CapacitySearch<'a>,
    whole: &'a Path,
    session: &'a mut Session<'b>,
    began: Instant,
    /// What clients are given to begin, where the warm-up has proved too short for that.
    begins: Duration,
    summary: CapacitySummary,
}

impl TrialRunner for RealTrials<'_, '_> {
    type Error = RunError;

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn length(&self, loads: &[u32], seconds: u32) -> Result<Duration, RunError> {
        Ok(prepare::plan(&self.of.subject.trial(loads, seconds, self.begins), self.of.of.wrong)?.length)
    }

    /// Runs one trial, tells the observer what came of it and adds it to the summary.
    fn run(&mut self, trial: &PlannedTrial, left: Duration) -> Result<Option<Vec<Trial>>, RunError> {
        if self.session.interrupt.load(Relaxed) {
            return Ok(None);
        }
        let CapacitySearch { subject, criteria, slice_seconds, .. } = self.of;
        let number = self.summary.trials.len() + 1;
        let is_single = !subject.kind().climbs_in_one_run();
        let place = format!("{number:03}-{}", directory_of(trial, is_single));
        self.session.watcher.line(&announcement(trial, number, is_single));
        let own = self.whole.join(&place);
        record::make_private(&own).map_err(RunError::with(ErrorKind::Internal))?;
        let slices =
            TrialSlices::new(TrialPlan {
                criteria: criteria.clone(),
                loads: trial.loads.clone(),
                slice_seconds: *slice_seconds,
                slices: trial.seconds / slice_seconds,
                kind: subject.kind(),
                judged: subject.judged(),
                sources: subject.sources(),
                clock: self.summary.trials.iter().fold(None, |clock, it| {
                    SourceClock::of(&it.loads).map(|own| own.lighter(clock)).or(clock)
                }),
            });
        let scenario = subject.trial(&trial.loads, trial.seconds, self.begins);
        let outcomes = self.of.trial(&scenario, slices, &own, self.session, left, number == 1)?;
        // The loads that a climb went through stay known; a trial of one load has to be whole.
        if self.session.interrupt.load(Relaxed) && (trial.purpose.is_some() || outcomes.is_empty()) {
            return Ok(None);
        }
        if outcomes.iter().any(|it| it.void_cause == Some(VoidCause::Keyframes)) {
            self.begins = (2 * self.begins).clamp(SHORTEST_BEGINNING, LONGEST_BEGINNING);
        }
        for outcome in &outcomes {
            self.session.watcher.line(&format!("  {}", load_line(subject.kind(), outcome)));
        }
        let made = outcomes.iter().map(LoadOutcome::trial).collect();
        let purpose = trial.purpose;
        self.summary.trials.push(CapacityTrial { purpose, loads: outcomes, directory: place });
        self.summary.run.duration_seconds = self.began.elapsed().as_secs_f64();
        Ok(Some(made))
    }

    fn note(&mut self, answer: &CapacityAnswer) -> Result<(), RunError> {
        self.summary.answer = answer.clone();
        self.summary.keep(self.whole)?;
        self.session.watcher.comes_to(AnswerSoFar::Search(&self.summary));
        Ok(())
    }
}

/// Whether messages that are lost are asked for, and no process of as many agents can know of them.
fn is_loss_unknown(subject: &Subject, criteria: &[Criterion], agents: u16) -> bool {
    let lost = "lost == 0".parse();
    let asks = |it: &Criterion| lost.as_ref().is_ok_and(|lost| it.threshold.is_about_the_same_as(lost));
    agents > 1 && subject.is_shared() && criteria.iter().any(asks)
}

/// Whether no client ever played, though the run could be believed and went to its end: a server that dies has carried too many.
fn is_of_nothing(summary: &Summary) -> bool {
    let is_over = matches!(summary.outcome, Outcome::Completed | Outcome::NobodyLeft);
    summary.is_unanswered() || is_over && summary.verdict.state == VerdictState::NothingMeasured
}

/// The loads, the first to begin with, and what a bound has to be held for.
fn goal(subject: &Subject, search: &SearchSettings, slice_seconds: u32) -> Result<Goal, RunError> {
    let (others, each) = subject.descriptors();
    let allowed = prepare::raise_descriptors().saturating_sub(prepare::OWN_DESCRIPTORS + others);
    let allowed =
        allowed.checked_div(each).map_or(u32::MAX, |loads| u32::try_from(loads).unwrap_or(u32::MAX));
    let allowed = allowed.max(1).min(subject.most().unwrap_or(MOST_CLIENTS));
    let most = search.most.unwrap_or(allowed);
    let most = if subject.kind() == LoadKind::Arrivals { most.min(allowed) } else { most };
    let first = match search.from {
        Some(from) if from > most => {
            let line =
                format!("{} is more than {most}, the most that may be tried", FROM.to(from.to_string()));
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        Some(from) => from,
        None => subject.kind().usual_first().min(most),
    };
    let budget = search.budget;
    let seconds = |asked: Option<Duration>, setting: &Setting<'static>, usual: u32, part: u32| {
        let usual = usual_seconds(budget, usual, part).max(FEWEST_SLICES * slice_seconds);
        let seconds = asked.map_or(Ok(usual), |span| whole_seconds(span, setting))?;
        Ok::<_, RunError>(seconds.div_ceil(slice_seconds) * slice_seconds)
    };
    // What they have loaded ahead hides an overload for longer than a short trial takes, and each load that seems to be carried for
    // that has to be contradicted.
    let (hold, part) = if subject.loads_ahead() { (CONFIRM_SECONDS, 20) } else { (HOLD_SECONDS, 80) };
    Ok(Goal {
        first,
        most,
        precision: search.precision,
        short_seconds: seconds(search.hold, &HOLD, hold, part)?,
        long_seconds: seconds(search.confirm, &CONFIRM, CONFIRM_SECONDS, 20)?,
        passes: PASSES,
        failures: FAILURES,
        most_trials: MOST_TRIALS,
        restarts: subject.restarts(),
        at_least: None,
        rival: None,
    })
}

/// Seconds that a load is held for: of a short budget, one part in this many.
fn usual_seconds(budget: Duration, usual: u32, part: u32) -> u32 {
    let share = budget.div_f64(part.into()).as_secs_f64().ceil();
    usual.min(share.max(1.0) as u32)
}

/// Part of the name of a trial's directory.
fn directory_of(trial: &PlannedTrial, is_single: bool) -> String {
    let first = trial.loads.first().copied().unwrap_or_default();
    match trial.purpose {
        Some(purpose) => format!("{}-{first}", word(purpose)),
        None if is_single => format!("climb-{first}"),
        None => "climb".to_owned(),
    }
}

fn announcement(trial: &PlannedTrial, number: usize, is_single: bool) -> String {
    let (load, seconds) = (trial.loads.first().copied().unwrap_or_default(), trial.seconds);
    match trial.purpose {
        Some(purpose) => format!("trial {number}: {load} for {seconds} s, {}", word(purpose)),
        None if is_single => format!("trial {number}: {load} for {seconds} s, climbs"),
        None => format!("trial {number}: climbs from {load}, {seconds} s each, until one fails"),
    }
}

fn whole_seconds(span: Duration, setting: &Setting<'_>) -> Result<u32, RunError> {
    let seconds = span.as_secs_f64();
    if !(1.0..=86_400.0).contains(&seconds) {
        return Err(RunError::new(ErrorKind::Usage, format!("{setting}: give a time from 1s to 24h")));
    }
    Ok(seconds.ceil() as u32)
}

fn word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Recovery => "recovery",
        Purpose::Narrow => "narrow",
        Purpose::Confirm => "confirm",
    }
}

impl crate::answer::Answer for CapacitySummary {
    const LAYOUT: &'static str = LAYOUT;

    fn layout(&self) -> &str {
        &self.layout
    }

    /// What a search comes to.
    fn missed(&self) -> Option<ErrorKind> {
        match &self.ending {
            Ending::Interrupted | Ending::Running => Some(ErrorKind::Interrupted),
            Ending::Failed(failure) => Some(ErrorKind::of_code(failure.exit_code)),
            Ending::Completed if self.answer.evidence == Evidence::Void => Some(ErrorKind::Invalid),
            Ending::Completed if self.is_unanswered() => Some(ErrorKind::TargetDied),
            Ending::Completed if self.sought.at_least.is_some() => match self.carries_at_least() {
                Some(true) => None,
                Some(false) => Some(ErrorKind::Thresholds),
                None => Some(ErrorKind::Invalid),
            },
            Ending::Completed => None,
        }
    }

    fn answer(&self) -> Option<String> {
        Some(weir_report::capacity_line(self))
    }

    fn shortfall(&self) -> Option<String> {
        weir_report::capacity_shortfall(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_agents_lose_of_a_shared_subscription_is_not_passed_over() {
        let unknown = |play: &str, own: &[&str], agents: u16| {
            let text = format!("workloads: [{{publish: 'mqtt://h/t'}}, {{play: '{play}', clients: 2}}]");
            let kind = LoadKind::Messages;
            let subject = Subject::new(Scenario::parse(&text).unwrap(), kind, None, 100.0).unwrap();
            let own: Vec<_> = own.iter().map(|text| text.parse().unwrap()).collect();
            is_loss_unknown(&subject, &criteria(&own, kind, &[]), agents)
        };
        let shared = "mqtt://h/$share/g/t";
        assert!(unknown(shared, &[], 2) && unknown(shared, &["lost <= 5"], 3));
        assert!(!unknown(shared, &[], 0) && !unknown(shared, &[], 1) && !unknown("mqtt://h/t", &[], 2));
        assert!(!unknown(shared, &["latency.p99 < 1s"], 2), "that is judged");
    }

    #[test]
    fn a_load_is_held_for_a_shorter_time_where_there_is_little_time_for_all() {
        let of = |minutes: u64| {
            let budget = Duration::from_secs(60 * minutes);
            (usual_seconds(budget, HOLD_SECONDS, 80), usual_seconds(budget, CONFIRM_SECONDS, 20))
        };
        assert_eq!([of(0), of(5), of(20), of(60)], [(1, 1), (4, 15), (15, 60), (15, 60)]);
    }
}
