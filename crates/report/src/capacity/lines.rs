//! What a search found, in lines of words.

use crate::glance::{is_starved, who_had_the_cores};
use crate::quantity::{TIE, bit_rate, count, in_figure_unit, joined, percent, several, several_of, span};
use crate::quote::{LINE, quote};
use weir_answers::capacity::{
    CapacitySummary, Evidence, FailedThreshold, LoadOutcome, Stopped, TrialVerdict, VoidCause,
};
use weir_answers::series::Ending;
use weir_engine::scenario::LoadKind;
use weir_engine::summary::FailureCount;
use weir_metrics::Failure;
use weir_setting::{PREPARE, named};

/// Why no larger load was judged.
const TOO_SHORT: &str =
    "; beyond it the holds are too short for how far apart keyframes are ({hold}, {confirm})";

/// CPU of a thread, in percent of a core, from which on little of it is left.
pub(super) const FULL_PERCENT: f64 = 90.0;

/// The answer in one short sentence: how many, how many not, and what ended the search before it was sure. How often each was
/// tried, what failed and where the target is stand beside it.
pub fn capacity_line(summary: &CapacitySummary) -> String {
    let (answer, sought) = (&summary.answer, &summary.sought);
    let many = |load: u32| several_of(carried_on_average(summary, load), &sought.of);
    let number = |load: u32| count(load.into());
    let is_stopped = answer.stopped.is_some();
    let undecided = if is_stopped { "" } else { "undecided: " };
    let line = match (answer.evidence, answer.bounds.lower, answer.bounds.upper) {
        (Evidence::Found, Some(lower), Some(upper)) => {
            format!("carries {}, not {}{}", many(lower), number(upper), publisher_clause(summary, upper))
        }
        (Evidence::AtLeast, Some(lower), _) => {
            let limit = match () {
                () if sought.at_least.is_some() => "",
                () if is_generator_limited(summary) => "; the load generator was the bottleneck",
                () if is_hold_too_short(summary) => TOO_SHORT,
                () => "; more was not tried ({most})",
            };
            let limit = named(limit);
            format!("carries at least {}{limit}", many(lower))
        }
        (Evidence::AtMost, _, Some(1)) => format!("does not carry a single one of its {}", sought.of),
        (Evidence::AtMost, _, Some(upper)) => {
            let upper_of = several_of(upper.into(), &sought.of);
            format!("does not carry {upper_of}{}", publisher_clause(summary, upper))
        }
        (_, Some(lower), Some(upper)) if lower < upper => {
            let publisher = publisher_clause(summary, upper);
            format!("{undecided}carried {}, not {}{publisher}{}", many(lower), number(upper), over(summary))
        }
        (_, Some(lower), _) => format!("{undecided}carried {}{}", many(lower), over(summary)),
        (Evidence::Undecided, None, Some(upper)) => {
            format!("{undecided}did not carry {}{}", several_of(upper.into(), &sought.of), over(summary))
        }
        _ => {
            let why = void_reason(summary);
            match (why, &summary.ending) {
                (Some(why), _) => format!("no result: {why}"),
                (None, Ending::Running) => "it is searched; no trial has come to its end yet".to_owned(),
                (None, _) => "no result: no trial came to its end".to_owned(),
            }
        }
    };
    format!("{line}{}", stopped_clause(summary))
}

/// A load as a number of what is counted: of messages what was carried on average over the hold, which may be less than what
/// was offered.
fn carried_on_average(summary: &CapacitySummary, load: u32) -> u64 {
    let carried =
        summary.at_with(load, TrialVerdict::Pass).filter(|_| summary.sought.kind == LoadKind::Messages);
    carried.map_or(load.into(), |carried| carried.units_per_second.round() as u64)
}

/// What ended the search though there was more to find out.
fn stopped_clause(summary: &CapacitySummary) -> String {
    let lower =
        || summary.answer.bounds.lower.map_or_else(String::new, |lower| format!(" {}", count(lower.into())));
    let Some(stopped) = summary.answer.stopped else {
        return match summary.answer.recovers {
            // Files of older versions.
            Some(false) => "; it does not recover from overload".to_owned(),
            _ => String::new(),
        };
    };
    match stopped {
        Stopped::Broken => {
            let last = summary.trials.last().and_then(|trial| trial.loads.last());
            let kind = last.and_then(|load| load.failure.as_ref()).map(|failure| failure.kind);
            let how = match kind {
                Some(Failure::ConnectionRefused) => " (refused)",
                Some(kind) if kind.is_silence() => " (silent)",
                _ => "",
            };
            format!("; it has accepted no connection since{how}: restart it with {PREPARE}")
        }
        Stopped::NotRecovered => {
            format!("; after that overload it did not carry{} again: restart it with {PREPARE}", lower())
        }
        Stopped::NoSource => "; then its source had ended: see to it that it goes on".to_owned(),
        Stopped::NoPublisher => "; then it dropped the publisher at that load, too".to_owned(),
    }
}

/// That it was the publisher which the target did not carry, where it was.
fn publisher_clause(summary: &CapacitySummary, upper: u32) -> &'static str {
    let loads = || summary.trials.iter().flat_map(|trial| &trial.loads).filter(|it| it.load == upper);
    let is_cut = loads().any(|it| it.void_cause == Some(VoidCause::Publisher));
    let is_failed = loads().any(|it| it.verdict == TrialVerdict::Fail);
    if is_cut && !is_failed { ", where it dropped the publisher" } else { "" }
}

/// How often the bounds were tried, and what came of it.
pub(super) fn confirmed(summary: &CapacitySummary) -> Option<String> {
    let answer = &summary.answer;
    if let Some(admits) = answer.admits {
        let refused = summary.trials.iter().flat_map(|trial| &trial.loads).filter(|it| it.admitted.is_some());
        let loads = refused.map(|it| count(it.load.into())).collect::<Vec<_>>().join(" and of ");
        return Some(format!("it admitted {} of {loads}, and carried them", count(admits.into())));
    }
    let long = span(summary.sought.long_seconds.into());
    let of = |load: Option<u32>, (times, others): (u32, u32), words: &str| {
        let load = load.filter(|_| times + others > 0)?;
        Some(format!(
            "{} {words} in {times} of {} of {long}",
            count(load.into()),
            several((times + others).into(), "trial")
        ))
    };
    let (upper_passed, upper_failed) = answer.upper_trials;
    let parts = [
        of(answer.bounds.lower, answer.lower_trials, "was carried"),
        of(answer.bounds.upper, (upper_failed, upper_passed), "was not"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What did not hold at the upper bound, and what the server said.
pub(super) fn not_carried(summary: &CapacitySummary) -> Option<(String, String)> {
    let upper = summary.answer.bounds.upper?;
    let failed =
        summary.at_with(upper, TrialVerdict::Fail).or_else(|| summary.at_with(upper, TrialVerdict::Void))?;
    let why = reason(failed);
    (!why.is_empty()).then(|| (format!("Not {}", count(upper.into())), why))
}

/// One load of a trial in a line, printed while the search goes on.
pub fn load_line(kind: LoadKind, outcome: &LoadOutcome) -> String {
    let load = count(outcome.load.into());
    let why = reason(outcome);
    let dash = if why.is_empty() { "" } else { ", " };
    let (playing, media) = (count(outcome.playing.round() as u64), joined(bit_rate(outcome.actual_bps)));
    let came = match kind {
        LoadKind::Messages => {
            let messages = several_of(outcome.units_per_second.round() as u64, "messages a second");
            format!("{messages}, {media}")
        }
        LoadKind::Publishers => format!("{playing} publish, {media}"),
        LoadKind::Clients | LoadKind::Arrivals | LoadKind::Streams => format!("{playing} play, {media}"),
    };
    format!("{load}: {}{dash}{why}; {came}", verdict_word(outcome.verdict)).replace(TIE, " ")
}

/// The busiest thread of what is watched, if it was all but used up at the load that was too much, or at the one that was not:
/// most often it is the bottleneck.
pub(super) fn full_thread(summary: &CapacitySummary) -> Option<String> {
    let bounds = summary.answer.bounds;
    let upper = bounds.upper.and_then(|load| summary.at_with(load, TrialVerdict::Fail));
    let lower = bounds.lower.and_then(|load| summary.at_with(load, TrialVerdict::Pass));
    let of = |outcome| fullest(outcome).filter(|it| it.percent >= FULL_PERCENT);
    let full = upper.and_then(of).or_else(|| lower.and_then(of))?;
    Some(
        full.starved
            .unwrap_or_else(|| format!("thread {} at {} of a core", full.name, percent(full.percent))),
    )
}

/// The thread of what is watched that could do least more.
pub(super) struct Fullest {
    pub(super) name: String,
    /// How much of a core it ran or waited for.
    pub(super) percent: f64,
    /// Who had the cores, where it waited so long for one that it was not slow.
    pub(super) starved: Option<String>,
}

/// The fullest thread at a load.
pub(super) fn fullest(outcome: &LoadOutcome) -> Option<Fullest> {
    let threads = outcome.targets.iter().flat_map(|it| it.threads.iter().map(move |thread| (it, thread)));
    let (process, thread) =
        threads.max_by(|(_, one), (_, other)| one.full_percent().total_cmp(&other.full_percent()))?;
    let name = quote(&thread.name, 40);
    let starved = is_starved(thread).then(|| {
        let weir = outcome.generator.as_ref();
        who_had_the_cores(process, thread, weir, &outcome.others, &format!("thread {name}"))
    });
    Some(Fullest { name, percent: thread.full_percent(), starved })
}

/// Why the first load that could not be judged could not, if no larger one was.
pub(super) fn void_reason(summary: &CapacitySummary) -> Option<String> {
    first_void(summary).and_then(|load| load.void.as_deref()).map(|why| quote(why, LINE))
}

fn is_generator_limited(summary: &CapacitySummary) -> bool {
    first_void(summary).is_some_and(|it| matches!(it.void_cause, None | Some(VoidCause::Generator)))
}

fn is_hold_too_short(summary: &CapacitySummary) -> bool {
    first_void(summary).is_some_and(|it| it.void_cause == Some(VoidCause::Keyframes))
}

fn first_void(summary: &CapacitySummary) -> Option<&LoadOutcome> {
    let loads = || summary.trials.iter().flat_map(|trial| &trial.loads);
    let judged = loads().filter(|it| it.void.is_none()).map(|it| it.load).max().unwrap_or(0);
    loads().find(|it| it.void.is_some() && it.load > judged)
}

/// Why there was no further trial.
fn over(summary: &CapacitySummary) -> String {
    named(match summary.ending {
        _ if summary.answer.stopped.is_some() => "",
        Ending::Interrupted => "; it was interrupted",
        Ending::Running => "",
        _ if is_generator_limited(summary) => "; the load generator was the bottleneck",
        _ if is_hold_too_short(summary) => TOO_SHORT,
        _ => "; it ran out of time before it was sure",
    })
}

/// `bitrate.ratio 91 %`.
fn failed_as(failed: &FailedThreshold) -> String {
    let name = failed.expression.split(['<', '>', '=', '!']).next().unwrap_or_default().trim();
    match failed.value {
        Some(value) => format!("{} {}", quote(name, LINE), in_figure_unit(failed.unit, value)),
        None if name == failed.expression => quote(name, LINE),
        None => format!("{} had no value", quote(name, LINE)),
    }
}

/// `3 rejected: full`.
fn refused_as(failure: &FailureCount) -> String {
    let colon = if failure.words.is_empty() { "" } else { ": " };
    format!("{} {}{colon}{}", count(failure.clients), failure.kind.key(), quote(&failure.words, LINE))
}

pub(super) fn reason(outcome: &LoadOutcome) -> String {
    match &outcome.void {
        Some(why) => quote(why, LINE),
        None => {
            let failed = outcome.failed.iter().map(failed_as);
            failed.chain(outcome.failure.as_ref().map(refused_as)).collect::<Vec<_>>().join(", ")
        }
    }
}

pub(super) fn verdict_word(verdict: TrialVerdict) -> &'static str {
    match verdict {
        TrialVerdict::Pass => "carried",
        TrialVerdict::Fail => "not carried",
        TrialVerdict::Void => "void",
    }
}
