//! `weir capacity`: trial after trial, until it is known how many clients a server carries.

mod judge;

use crate::answer::KeptAnswer;
use crate::args::{Capacity, RunOptions, SearchOptions};
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::live::Live;
use crate::live_page::{LivePage, Whole};
use crate::print::{check_answer, print_progress};
use crate::repeated::ending;
use crate::stepped::SteppedRun;
use crate::{agents, load, run};
use judge::{Answer, Judge};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_engine::capacity::{
    Answer as CapacityAnswer, CapacitySummary, CapacityTrial, Criterion, Evidence, Goal, LAYOUT, LoadKind,
    LoadOutcome, PlannedTrial, Purpose, Search, Sought, Subject, Trial, TrialPlan, TrialRunner, TrialSlices,
    criteria,
};
use weir_engine::record;
use weir_engine::run::Prepared;
use weir_engine::scenario::{Find, Scenario, Span, Step as ScenarioStep, Variant};
use weir_engine::series::{Ending, Variation};
use weir_engine::summary::{Outcome, Role, Summary, VerdictState};
use weir_metrics::parse_rate;
use weir_report::load_line;
use weir_runner::run_directory::directory;
use weir_runner::{ErrorKind, RunError};
use weir_runner::{prepare, run_directory};
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

/// Searches.
pub(crate) fn capacity(args: &Capacity) -> Result<Exit, RunError> {
    let outcome = search(args);
    if is_url(&args.what) {
        outcome
    } else {
        outcome.map_err(|failure| failure.in_file(Path::new(&args.what)))
    }
}

fn is_url(what: &str) -> bool {
    what.contains("://")
}

fn search(args: &Capacity) -> Result<Exit, RunError> {
    let print = &args.run.print;
    check_answer(print, "a search", "TRIAL")?;
    let folder = if is_url(&args.what) { None } else { Path::new(&args.what).parent() };
    let folder = folder.unwrap_or(Path::new(""));
    let (base, wrong) = if is_url(&args.what) {
        if let Some((key, _)) = args.set.first() {
            let line = format!("--set {key} is of a scenario file; a URL has options of its own");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        (load::of_capacity(args), ErrorKind::Usage)
    } else {
        (of_file(args, folder)?, ErrorKind::Scenario)
    };
    let of = SearchedVariant { variant: None, repetition: 1, folder, wrong };
    let trials = Trials::new(base, &args.search, &args.run, of)?.only(args.at_least)?;
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &trials.subject.base().name, started as u64)?;
    let interrupt = interrupt_flag()?;
    let page = LivePage::start(&args.run.live, &trials.subject.base().name)?;
    let (summary, trouble) = trials.hunt(args.search.budget.get(), None, (&whole, &page), &interrupt)?;
    page.end_series(&summary.ending);
    summary.show(print, &whole)?;
    match trouble {
        Err(failure) if !interrupt.load(Relaxed) => Err(failure),
        _ => Ok(summary.explained()),
    }
}

/// What is searched, beside the scenario.
#[derive(Clone, Copy)]
pub(crate) struct SearchedVariant<'a> {
    pub(crate) variant: Option<&'a Variant>,
    pub(crate) repetition: u32,
    /// Where the scenario's file is.
    pub(crate) folder: &'a Path,
    /// What a scenario that cannot be searched ends with.
    pub(crate) wrong: ErrorKind,
}

/// What every trial is made of.
pub(crate) struct Trials<'a> {
    subject: Subject,
    criteria: Vec<Criterion>,
    goal: Goal,
    arrivals_per_second: f64,
    slice_seconds: u32,
    options: &'a RunOptions,
    of: SearchedVariant<'a>,
}

impl<'a> Trials<'a> {
    /// Of a scenario, with every check that is possible before a server is started.
    ///
    /// # Errors
    /// It cannot be searched, or what is asked of it cannot be judged.
    pub(crate) fn new(
        base: Scenario,
        search: &SearchOptions,
        options: &'a RunOptions,
        of: SearchedVariant<'a>,
    ) -> Result<Self, RunError> {
        let kind = search.of.or(base.find.map(Find::kind)).unwrap_or_default();
        let arrivals_per_second = parse_rate(&search.arrival).map_err(RunError::with(ErrorKind::Usage))?;
        let mut subject = Subject::new(base, kind, search.clients, arrivals_per_second)
            .map_err(RunError::with(of.wrong))?;
        if search.clients.is_some() && kind != LoadKind::Arrivals {
            let line =
                "--clients is of --of arrivals; what else is counted has a number that is searched for";
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        if let Some(command) = &search.prepare {
            subject.base_mut().before.insert(0, ScenarioStep::Run(command.clone()));
        }
        let slice_seconds = whole_seconds(&search.slice, "--slice")?;
        let criteria = criteria(&subject.base().thresholds, kind, subject.role() == Role::Publish);
        let goal = goal(&subject, search, slice_seconds)?;
        let trials = Self { subject, criteria, goal, arrivals_per_second, slice_seconds, options, of };
        // Before a server is started, or a directory made: a plan that cannot be needs none.
        let first = trials.subject.trial(&[goal.first], goal.short_seconds);
        prepare::plan(&first, of.wrong)?;
        // Where no step has to start a server before it can be asked.
        if first.before.is_empty() {
            trials.check(&prepare::prepare(first, of.wrong, &options.agents.generators())?)?;
        }
        Ok(trials)
    }

    /// What a load is a number of, in words.
    pub(crate) fn noun(&self) -> &'static str {
        self.subject.noun()
    }

    /// The same where one load is all that is asked, if one is.
    ///
    /// # Errors
    /// It is more than may be tried.
    fn only(mut self, load: Option<u32>) -> Result<Self, RunError> {
        if let Some(load) = load.filter(|load| *load > self.goal.most) {
            let line =
                format!("--at-least {load} is more than {}, the most that may be tried", self.goal.most);
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
    pub(crate) fn hunt(
        &self,
        budget: Duration,
        rival: Option<u32>,
        (whole, page): (&Path, &LivePage),
        interrupt: &Arc<AtomicBool>,
    ) -> Result<(CapacitySummary, Result<(), RunError>), RunError> {
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
        summary.show_on(page);
        let goal = Goal { rival, ..self.goal };
        let climbs_in_one_run = self.subject.kind().climbs_in_one_run();
        let mut runner = RealTrials { of: self, whole, page, interrupt, began: Instant::now(), summary };
        let found = weir_engine::capacity::hunt(goal, budget, climbs_in_one_run, &mut runner);
        let (mut summary, began) = (runner.summary, runner.began);
        // A trial that could not be judged took its time, too.
        summary.run.duration_seconds = began.elapsed().as_secs_f64();
        let trouble = found.map(|answer| summary.answer = answer);
        summary.ending = ending(interrupt, trouble.as_ref().err());
        summary.keep(whole)?;
        summary.show_on(page);
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
        if let Some(figure) = self.criteria.iter().find_map(|it| it.threshold.server_figure()) {
            let line = format!(
                "{figure} is known of a whole run, and a search judges every {} s: ask it of `weir play` or `weir run`",
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
        slices: TrialSlices,
        (directory, page): (&Path, &LivePage),
        interrupt: &Arc<AtomicBool>,
        left: Duration,
        is_first: bool,
    ) -> Result<Vec<LoadOutcome>, RunError> {
        let mut judge: Option<Judge> = None;
        let judged = self.subject.judged();
        let start = |prepared: Prepared| {
            let prepared = Prepared { slice_seconds: Some(self.slice_seconds), ..prepared };
            self.check(&prepared)?;
            let prepared =
                agents::gather(prepared, &self.options.agents, self.options.print.quiet, interrupt)?;
            // A climb ends long before its plan, and no trial goes on beyond the budget.
            let live = Live::new(run::length(&prepared).min(left), self.options);
            let thresholds = slices.thresholds();
            let answer = if is_first { Answer::Awaited } else { Answer::Known };
            let deadline = Instant::now() + left;
            let judge = judge.insert(Judge { live, slices, thresholds, judged, deadline, answer });
            let measured = run::run_watched(prepared, page, directory, interrupt, judge);
            judge.live.clear();
            measured
        };
        let SearchedVariant { variant, repetition, folder, .. } = self.of;
        let generators = self.options.agents.generators();
        let run = SteppedRun { scenario, variant, repetition, folder, directory };
        let (summary, trouble) = run.run(&generators, interrupt, start)?;
        trouble.map_or(Ok(()), Err)?;
        if is_first && is_of_nothing(&summary) {
            // No load is small enough for a server that is not there, or for a stream that nobody publishes.
            let line = weir_report::shortfall(&summary).unwrap_or_default();
            return Err(RunError::new(
                ErrorKind::of_summary(&summary).unwrap_or(ErrorKind::Thresholds),
                line,
            ));
        }
        Ok(judge.map_or_else(Vec::new, |judge| judge.slices.outcomes(&summary)))
    }
}

/// The trials of a search, each of them a run of clients, and what came of them so far.
struct RealTrials<'a> {
    of: &'a Trials<'a>,
    whole: &'a Path,
    page: &'a LivePage,
    interrupt: &'a Arc<AtomicBool>,
    began: Instant,
    summary: CapacitySummary,
}

impl TrialRunner for RealTrials<'_> {
    type Error = RunError;

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn length(&self, loads: &[u32], seconds: u32) -> Result<Duration, RunError> {
        Ok(prepare::plan(&self.of.subject.trial(loads, seconds), self.of.of.wrong)?.length)
    }

    /// Runs one trial, prints what came of it and adds it to the summary.
    fn run(&mut self, trial: &PlannedTrial, left: Duration) -> Result<Option<Vec<Trial>>, RunError> {
        if self.interrupt.load(Relaxed) {
            return Ok(None);
        }
        let Trials { subject, criteria, slice_seconds, options, .. } = self.of;
        let number = self.summary.trials.len() + 1;
        let is_single = !subject.kind().climbs_in_one_run();
        let place = format!("{number:03}-{}", directory_of(trial, is_single));
        print_progress(options, &announcement(trial, number, is_single));
        let own = self.whole.join(&place);
        record::make_private(&own).map_err(RunError::with(ErrorKind::Internal))?;
        let slices = TrialSlices::new(TrialPlan {
            criteria: criteria.clone(),
            loads: trial.loads.clone(),
            slice_seconds: *slice_seconds,
            slices: trial.seconds / slice_seconds,
            kind: subject.kind(),
            judged: subject.judged(),
            sources: subject.sources(),
        });
        let scenario = subject.trial(&trial.loads, trial.seconds);
        let place_of_run = (own.as_path(), self.page);
        let outcomes = self.of.trial(&scenario, slices, place_of_run, self.interrupt, left, number == 1)?;
        // The loads that a climb went through stay known; a trial of one load has to be whole.
        if self.interrupt.load(Relaxed) && (trial.purpose.is_some() || outcomes.is_empty()) {
            return Ok(None);
        }
        for outcome in &outcomes {
            print_progress(options, &format!("  {}", load_line(subject.kind(), outcome)));
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
        self.summary.show_on(self.page);
        Ok(())
    }
}

/// Whether no client ever played, though the run could be believed and went to its end: a server that dies has carried too many.
fn is_of_nothing(summary: &Summary) -> bool {
    let is_over = matches!(summary.outcome, Outcome::Completed | Outcome::NobodyLeft);
    summary.is_unanswered() || is_over && summary.verdict.state == VerdictState::NothingMeasured
}

/// The loads, the first to begin with, and what a bound has to be held for.
fn goal(subject: &Subject, search: &SearchOptions, slice_seconds: u32) -> Result<Goal, RunError> {
    let (others, each) = subject.descriptors();
    let allowed = prepare::raise_descriptors().saturating_sub(prepare::OWN_DESCRIPTORS + others);
    let allowed =
        allowed.checked_div(each).map_or(u32::MAX, |loads| u32::try_from(loads).unwrap_or(u32::MAX));
    let allowed = allowed.max(1).min(subject.most().unwrap_or(MOST_CLIENTS));
    let most = search.most.unwrap_or(allowed);
    let most = if subject.kind() == LoadKind::Arrivals { most.min(allowed) } else { most };
    let first = match search.from {
        Some(from) if from > most => {
            let line = format!("--from {from} is more than {most}, the most that may be tried");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        Some(from) => from,
        None => subject.kind().usual_first().min(most),
    };
    let budget = search.budget.get();
    let seconds = |asked: Option<&Span>, flag: &str, usual: u32, part: u32| {
        let usual = usual_seconds(budget, usual, part).max(FEWEST_SLICES * slice_seconds);
        let seconds = asked.map_or(Ok(usual), |span| whole_seconds(span, flag))?;
        Ok::<_, RunError>(seconds.div_ceil(slice_seconds) * slice_seconds)
    };
    Ok(Goal {
        first,
        most,
        precision: search.precision,
        short_seconds: seconds(search.hold.as_ref(), "--hold", HOLD_SECONDS, 80)?,
        long_seconds: seconds(search.confirm.as_ref(), "--confirm", CONFIRM_SECONDS, 20)?,
        passes: PASSES,
        failures: FAILURES,
        most_trials: MOST_TRIALS,
        restarts: subject.restarts(),
        at_least: None,
        rival: None,
    })
}

/// Seconds that a load is held for: of a short budget one part of so many.
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

/// Reads a scenario file, with what the command line says of it.
fn of_file(args: &Capacity, folder: &Path) -> Result<Scenario, RunError> {
    let bad = |words: String| RunError::new(ErrorKind::Usage, words);
    let has_options = args.options.given() != &weir_protocols::Given::default() || args.expect.is_some();
    if has_options || args.of_clients.is_any() {
        return Err(bad(
            "options of clients stand in the scenario file; change one with --set KEY=VALUE".to_owned()
        ));
    }
    let mut variations = Variation::read(Path::new(&args.what)).map_err(|error| match error {
        weir_engine::scenario::ScenarioError::Read { .. } => {
            bad(format!("{error}; give a URL such as rtmp://host/app/stream, or a scenario file"))
        }
        _ => RunError::new(ErrorKind::Scenario, error.to_string()),
    })?;
    let Variation { mut scenario, variant } = variations.swap_remove(0);
    if variant.is_some() || scenario.repeat.is_some_and(|repeat| repeat > 1) {
        let line = "`variants` and `repeat` are of `weir sweep --find capacity`; a search takes a scenario without them";
        return Err(RunError::new(ErrorKind::Scenario, line));
    }
    for (key, value) in &args.set {
        scenario = scenario.with(key, value).map_err(|error| bad(error.to_string()))?;
    }
    scenario.resolve(folder);
    load::add_options(&mut scenario, &args.run);
    Ok(scenario)
}

fn whole_seconds(span: &Span, flag: &str) -> Result<u32, RunError> {
    let seconds = span.get().as_secs_f64();
    if !(1.0..=86_400.0).contains(&seconds) {
        return Err(RunError::new(ErrorKind::Usage, format!("{flag}: give a time from 1s to 24h")));
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

impl KeptAnswer for CapacitySummary {
    const LAYOUT: &'static str = LAYOUT;
    const WHOLE: Whole = Whole::Search;

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
    fn a_load_is_held_for_a_shorter_time_where_there_is_little_time_for_all() {
        let of = |minutes: u64| {
            let budget = Duration::from_secs(60 * minutes);
            (usual_seconds(budget, HOLD_SECONDS, 80), usual_seconds(budget, CONFIRM_SECONDS, 20))
        };
        assert_eq!([of(0), of(5), of(20), of(60)], [(1, 1), (4, 15), (15, 60), (15, 60)]);
    }
}
