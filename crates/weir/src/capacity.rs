//! `weir capacity`: trial after trial, until it is known how many clients a server carries.

use crate::args::{Capacity, Print};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::run::{self, check_json, check_print, directory, interrupt_flag, print_progress};
use crate::stepped::SteppedRun;
use crate::{load, prepare};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_engine::aggregator::Aggregator;
use weir_engine::capacity::{
    Asked, CapacitySummary, CapacityTrial, Evidence, Goal, LAYOUT, LoadOutcome, Purpose, Search, Sought,
    Step, Trial, TrialPlan, TrialSlices, asked,
};
use weir_engine::record;
use weir_engine::run::{Prepared, Watcher};
use weir_engine::scenario::{Scenario, Span, StageSpec, Step as ScenarioStep};
use weir_engine::series::{Ending, Variation};
use weir_engine::summary::Role;
use weir_engine::threshold::Threshold;
use weir_metrics::parse_rate;
use weir_report::load_line;
use weir_shard::clock;

/// Name of the summary in the directory of a search.
const SUMMARY: &str = "summary.json";

/// Most clients that are tried by default: more than twice what any known server carries.
const MOST_CLIENTS: u32 = 1_000_000;

/// How many trials there may be, the climb being one: a search without an end is one of a server whose limit wanders.
const MOST_TRIALS: u32 = 40;

/// How often the lower bound must hold over the long time, and the upper one must fail.
const PASSES: u32 = 3;
const FAILURES: u32 = 2;

/// Searches.
pub(crate) fn capacity(args: &Capacity) -> Result<Exit, Failure> {
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

fn search(args: &Capacity) -> Result<Exit, Failure> {
    let print = &args.run.print;
    check_print(print)?;
    if print.format == "clients" {
        let line = "--format clients is of a run, and this is a search; `weir report DIR/TRIAL --format clients` prints one's";
        return Err(Failure::new(Exit::Usage, line));
    }
    check_json(print)?;
    let folder = if is_url(&args.what) { None } else { Path::new(&args.what).parent() };
    let trials = Trials::new(args, folder.unwrap_or(Path::new("")))?;
    let goal = trials.goal(args)?;
    // Before a server is started, or a directory made: a plan that cannot be needs none.
    let first = trials.scenario(&[goal.first], goal.short_seconds);
    prepare::plan(&first, trials.wrong)?;
    // Where no step has to start a server before it can be asked.
    if first.before.is_empty() {
        trials.check(&prepare::prepare(first, trials.wrong)?)?;
    }
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &trials.base.name, started as u64)?;
    let search = Search::new(goal);
    let mut summary = CapacitySummary {
        layout: LAYOUT.to_owned(),
        run: run::facts(&trials.base, &whole, started),
        ending: Ending::Running,
        sought: trials.sought(args, goal),
        answer: search.answer_now(),
        trials: Vec::new(),
    };
    // What cannot be written is better known before the first trial.
    write(&summary, &whole)?;
    let interrupt = interrupt_flag()?;
    let trouble = trials.work(search, args, &whole, &interrupt, &mut summary);
    summary.ending = match &trouble {
        _ if interrupt.load(Relaxed) => Ending::Interrupted,
        Err(failure) => Ending::Failed(failure.to_string()),
        Ok(()) => Ending::Completed,
    };
    write(&summary, &whole)?;
    show(&summary, print, &whole)?;
    match trouble {
        Err(failure) if !interrupt.load(Relaxed) => Err(failure),
        _ => Ok(exit(&summary)),
    }
}

/// What every trial is made of.
struct Trials<'a> {
    /// Without a number of clients and a time.
    base: Scenario,
    /// The workload whose clients are counted.
    sought: usize,
    role: Role,
    asked: Vec<Asked>,
    arrivals_per_second: f64,
    slice_seconds: u32,
    folder: &'a Path,
    wrong: Exit,
}

impl<'a> Trials<'a> {
    fn new(args: &Capacity, folder: &'a Path) -> Result<Self, Failure> {
        let (mut base, wrong) = if is_url(&args.what) {
            if let Some((key, _)) = args.set.first() {
                let line = format!("--set {key} is of a scenario file; a URL has options of its own");
                return Err(Failure::new(Exit::Usage, line));
            }
            (load::of_capacity(args), Exit::Usage)
        } else {
            (of_file(args, folder)?, Exit::Scenario)
        };
        let bad = |line: &str| Failure::new(wrong, line);
        if base.workloads.iter().any(weir_engine::scenario::WorkloadSpec::saves) {
            return Err(bad(
                "the capacity of who saves messages is not searched for; leave `ingest` and `probe` out",
            ));
        }
        if base.background.is_some() {
            return Err(bad("`background` changes the load by itself; leave it out of a search"));
        }
        let sought = base.sought().ok_or_else(|| {
            bad("the scenario has not one workload whose clients could be meant; leave one that plays, or one that publishes")
        })?;
        let (role, _) = base.workloads[sought].verb().map_err(Failure::with(wrong))?;
        if let Some(command) = &args.prepare {
            base.before.insert(0, ScenarioStep::Run(command.clone()));
        }
        let slice_seconds = whole_seconds(&args.slice, "--slice")?;
        let arrivals_per_second = parse_rate(&args.arrival).map_err(Failure::with(Exit::Usage))?;
        let asked = asked(&base.thresholds, role == Role::Publish);
        Ok(Self { base, sought, role, asked, arrivals_per_second, slice_seconds, folder, wrong })
    }

    fn goal(&self, args: &Capacity) -> Result<Goal, Failure> {
        let others = self.base.workloads.iter().zip(0..).filter(|(_, at)| *at != self.sought);
        let others: u64 =
            others.map(|(spec, _)| u64::from(spec.clients.unwrap_or(1).max(spec.streams.unwrap_or(1)))).sum();
        let allowed = prepare::raise_descriptors().saturating_sub(prepare::OWN_DESCRIPTORS + others);
        let allowed = u32::try_from(allowed).unwrap_or(u32::MAX).max(1);
        let most = args.most.unwrap_or(allowed.min(MOST_CLIENTS));
        if args.from > most {
            let line = format!("--from {} is more than {most}, the most that may be tried", args.from);
            return Err(Failure::new(Exit::Usage, line));
        }
        let seconds = |span: &Span, flag: &str| {
            let slices = whole_seconds(span, flag)?.div_ceil(self.slice_seconds);
            Ok::<_, Failure>(slices * self.slice_seconds)
        };
        Ok(Goal {
            first: args.from,
            most,
            precision: args.precision,
            short_seconds: seconds(&args.hold, "--hold")?,
            long_seconds: seconds(&args.confirm, "--confirm")?,
            passes: PASSES,
            failures: FAILURES,
            most_trials: MOST_TRIALS,
        })
    }

    fn sought(&self, args: &Capacity, goal: Goal) -> Sought {
        let spec = &self.base.workloads[self.sought];
        let urls = spec.verb().map_or(&[][..], |(_, urls)| urls);
        let of = match self.role {
            Role::Play if urls.iter().all(|url| url.starts_with("mqtt")) => "subscribers",
            Role::Play | Role::Ingest => "viewers",
            Role::Publish => "publishers",
        };
        Sought {
            of: of.to_owned(),
            target: self.base.without_secrets().workloads[self.sought]
                .verb()
                .map_or_else(|_| String::new(), |(_, urls)| urls.join(", ")),
            thresholds: self.asked.iter().map(|asked| asked.threshold.text().to_owned()).collect(),
            precision: goal.precision,
            arrivals_per_second: self.arrivals_per_second,
            slice_seconds: self.slice_seconds,
            short_seconds: goal.short_seconds,
            long_seconds: goal.long_seconds,
            budget_seconds: args.budget.get().as_secs_f64(),
        }
    }

    /// The scenario of a trial that holds these loads, one after the other, for `seconds` each. Each load is approached
    /// from below, and no client leaves before the end.
    fn scenario(&self, loads: &[u32], seconds: u32) -> Scenario {
        let mut scenario = self.base.clone();
        let warmup = scenario.warmup();
        let mut before = 0;
        let stages = loads.iter().map(|load| {
            let coming = f64::from(load - std::mem::replace(&mut before, *load));
            // Whole seconds, so that a window has all of its slices.
            let ramp = Duration::from_secs((coming / self.arrivals_per_second).ceil() as u64);
            let hold = warmup + Duration::from_secs(u64::from(seconds) + 1);
            StageSpec { clients: *load, hold: hold.into(), ramp: Some(ramp.into()) }
        });
        let stages: Vec<_> = stages.collect();
        let length: Duration = stages.iter().map(|stage| span(stage.ramp.as_ref()) + stage.hold.get()).sum();
        for (position, spec) in scenario.workloads.iter_mut().enumerate() {
            if position == self.sought {
                (spec.clients, spec.duration, spec.stages) = (None, None, stages.clone());
            } else if spec.publish.0.is_empty() {
                spec.duration = Some((length + span(spec.delay.as_ref())).into());
            } else {
                spec.duration = None;
            }
        }
        scenario
    }

    /// Trial after trial, until the search is done, its time is over, or one could not be made.
    fn work(
        &self,
        mut search: Search,
        args: &Capacity,
        whole: &Path,
        interrupt: &Arc<AtomicBool>,
        summary: &mut CapacitySummary,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        for number in 1.. {
            let (loads, seconds, purpose) = match search.step() {
                Step::Climb { loads, seconds } => (loads, seconds, None),
                Step::Hold { load, seconds, purpose } => (vec![load], seconds, Some(purpose)),
                Step::Done(answer) => {
                    summary.answer = answer;
                    break;
                }
            };
            let scenario = self.scenario(&loads, seconds);
            let length = prepare::plan(&scenario, self.wrong)?.length;
            // A climb ends by itself long before its plan.
            let is_too_long = purpose.is_some() && began.elapsed() + length > args.budget.get();
            if is_too_long || interrupt.load(Relaxed) {
                break;
            }
            let least = loads.first().copied().unwrap_or_default();
            let place = format!("{number:03}-{}", name(purpose, &loads));
            print_progress(&args.run, &announcement(number, purpose, &loads, seconds));
            let own = whole.join(&place);
            record::make_private(&own).map_err(Failure::with(Exit::Internal))?;
            let slices = TrialSlices::new(TrialPlan {
                asked: self.asked.clone(),
                loads,
                slice_seconds: self.slice_seconds,
                slices: seconds / self.slice_seconds,
            });
            let deadline = began + args.budget.get();
            let outcomes = self.trial(&scenario, slices, &own, args, interrupt, deadline)?;
            if interrupt.load(Relaxed) {
                break;
            }
            for outcome in &outcomes {
                print_progress(&args.run, &format!("  {}", load_line(outcome)));
            }
            let trials: Vec<_> = outcomes.iter().map(LoadOutcome::trial).collect();
            match purpose {
                None => search.climbed(&trials),
                // One that was over before a slice was says nothing.
                Some(_) => search.held(trials.first().unwrap_or(&Trial::void(least))),
            }
            summary.trials.push(CapacityTrial { purpose, loads: outcomes, directory: place });
            summary.answer = search.answer_now();
            summary.run.duration_seconds = began.elapsed().as_secs_f64();
            write(summary, whole)?;
        }
        summary.run.duration_seconds = began.elapsed().as_secs_f64();
        Ok(())
    }

    /// Checks that the workload has the figures that are asked for.
    fn check(&self, prepared: &Prepared) -> Result<(), Failure> {
        let schemas: Vec<_> = prepared.workloads.iter().map(|(_, workload)| workload.schema).collect();
        let mut asked = self.asked.iter().filter(|asked| !asked.may_lack);
        asked.try_for_each(|asked| asked.threshold.check(&schemas)).map_err(Failure::with(self.wrong))
    }

    fn trial(
        &self,
        scenario: &Scenario,
        slices: TrialSlices,
        directory: &Path,
        args: &Capacity,
        interrupt: &Arc<AtomicBool>,
        deadline: Instant,
    ) -> Result<Vec<LoadOutcome>, Failure> {
        let mut judge: Option<Judge> = None;
        let start = |prepared: Prepared| {
            let prepared = Prepared { slice_seconds: Some(self.slice_seconds), ..prepared };
            self.check(&prepared)?;
            let live = Live::new(run::length(&prepared), &args.run);
            let workload = self.sought as u16;
            let thresholds = slices.thresholds();
            let judge = judge.insert(Judge { live, slices, thresholds, workload, deadline });
            let measured = run::run_watched(prepared, directory, interrupt, judge);
            judge.live.clear();
            measured
        };
        let run = SteppedRun { scenario, variant: None, repetition: 1, folder: self.folder, directory };
        let (summary, trouble) = run.run(interrupt, start)?;
        trouble.map_or(Ok(()), Err)?;
        Ok(judge.map_or_else(Vec::new, |judge| judge.slices.outcomes(&summary, self.sought)))
    }
}

/// Judges a trial while it runs, beside the live view.
struct Judge {
    live: Live,
    slices: TrialSlices,
    thresholds: Vec<Threshold>,
    workload: u16,
    deadline: Instant,
}

impl Watcher for Judge {
    fn second(&mut self, second: u32, fold: &Aggregator) {
        self.live.second(second, fold);
        if let Some(slice) = fold.judge_slice(self.workload, second, &self.thresholds) {
            self.slices.add(&slice);
        }
    }

    fn tick(&mut self, elapsed: Duration) {
        self.live.tick(elapsed);
    }

    fn has_seen_enough(&self) -> bool {
        self.slices.is_lost() || Instant::now() > self.deadline
    }
}

/// Reads a scenario file, with what the command line says of it.
fn of_file(args: &Capacity, folder: &Path) -> Result<Scenario, Failure> {
    let bad = |words: String| Failure::new(Exit::Usage, words);
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
        _ => Failure::new(Exit::Scenario, error.to_string()),
    })?;
    let Variation { mut scenario, variant } = variations.swap_remove(0);
    if variant.is_some() || scenario.repeat.is_some_and(|repeat| repeat > 1) {
        let line = "`variants` and `repeat` are of `weir run`; a search takes a scenario without them";
        return Err(Failure::new(Exit::Scenario, line));
    }
    for (key, value) in &args.set {
        scenario = scenario.with(key, value).map_err(|error| bad(error.to_string()))?;
    }
    scenario.resolve(folder);
    load::add_options(&mut scenario, &args.run);
    Ok(scenario)
}

fn span(span: Option<&Span>) -> Duration {
    load::span_or(span, Duration::ZERO)
}

fn whole_seconds(span: &Span, flag: &str) -> Result<u32, Failure> {
    let seconds = span.get().as_secs_f64();
    if !(1.0..=86_400.0).contains(&seconds) {
        return Err(Failure::new(Exit::Usage, format!("{flag}: give a time from 1s to 24h")));
    }
    Ok(seconds.ceil() as u32)
}

/// Part of the name of a trial's directory.
fn name(purpose: Option<Purpose>, loads: &[u32]) -> String {
    match (purpose, loads.first()) {
        (Some(purpose), Some(load)) => format!("{}-{load}", word(purpose)),
        _ => "climb".to_owned(),
    }
}

fn word(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Recovery => "recovery",
        Purpose::Narrow => "narrow",
        Purpose::Confirm => "confirm",
    }
}

fn announcement(number: u32, purpose: Option<Purpose>, loads: &[u32], seconds: u32) -> String {
    let load = loads.first().copied().unwrap_or_default();
    match purpose {
        None => format!("trial {number}: climbs from {load}, {seconds} s each, until one fails"),
        Some(purpose) => format!("trial {number}: {load} for {seconds} s, {}", word(purpose)),
    }
}

/// The summary of a directory that a search has written; `None` if it is another's.
pub(crate) fn read(directory: &Path) -> Option<CapacitySummary> {
    let bytes = std::fs::read(directory.join(SUMMARY)).ok()?;
    serde_json::from_slice::<CapacitySummary>(&bytes).ok().filter(|summary| summary.layout == LAYOUT)
}

/// Whether no client ever got so far as to play or publish.
fn is_unanswered(summary: &CapacitySummary) -> bool {
    let mut loads = summary.trials.iter().flat_map(|trial| &trial.loads);
    summary.answer.evidence == Evidence::AtMost && loads.all(|load| load.playing == 0.0)
}

/// What a search comes to.
pub(crate) fn exit(summary: &CapacitySummary) -> Exit {
    match &summary.ending {
        Ending::Interrupted | Ending::Running => Exit::Interrupted,
        Ending::Failed(_) => Exit::TargetDied,
        Ending::Completed if summary.answer.evidence == Evidence::Void => Exit::Invalid,
        Ending::Completed if is_unanswered(summary) => Exit::TargetDied,
        Ending::Completed => Exit::Passed,
    }
}

/// Prints it as asked.
pub(crate) fn show(summary: &CapacitySummary, print: &Print, directory: &Path) -> Result<(), Failure> {
    run::show(print, directory, &|format, text, out| weir_report::write_capacity(summary, format, text, out))
}

/// Writes the artefacts, whole.
pub(crate) fn write(summary: &CapacitySummary, directory: &Path) -> Result<(), Failure> {
    run::write(directory, &|format, text, out| weir_report::write_capacity(summary, format, text, out))
}
