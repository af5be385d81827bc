//! What a search found, in lines of words.

use crate::quantity::{TIE, bit_rate, count, in_figure_unit, joined, percent, several_of, span};
use crate::quote::{LINE, quote};
use weir_engine::capacity::{CapacitySummary, Evidence, FailedThreshold, LoadKind, LoadOutcome, Verdict};
use weir_engine::series::Ending;
use weir_engine::summary::{FailureCount, ProcessLoad};

/// CPU of a thread, in percent of a core, from which on little of it is left.
pub(super) const FULL_PERCENT: f64 = 90.0;

/// The answer in one line: how many, how many not, how often each was tried, and what failed.
pub fn capacity_line(summary: &CapacitySummary) -> String {
    let (answer, sought) = (&summary.answer, &summary.sought);
    let (target, of) = (quote(&sought.target, LINE), &sought.of);
    let many = |load: u32| several_of(load.into(), of);
    let number = |load: u32| count(load.into());
    let failure = |load: u32| {
        let outcome = summary.at_with(load, Verdict::Fail)?;
        let failed = outcome.failed.first().map(failed_as)?;
        let refused = outcome.failure.as_ref().map_or_else(String::new, |it| format!(", {}", refused_as(it)));
        Some(format!("{failed}{refused}"))
    };
    let because = |load: u32| failure(load).map_or_else(String::new, |why| format!(" ({why})"));
    let long = span(sought.long_seconds.into());
    let ratio = |(for_it, against): (u32, u32)| format!("{for_it} of {}", for_it + against);
    let ((lower_passed, lower_failed), (upper_passed, upper_failed)) =
        (answer.lower_trials, answer.upper_trials);
    let line = match (answer.evidence, answer.bounds.lower, answer.bounds.upper) {
        (Evidence::Found, Some(lower), Some(upper)) => {
            let times = ratio((upper_failed, upper_passed));
            let why = failure(upper).map_or_else(|| times.clone(), |why| format!("{why}; {times}"));
            format!(
                "{target} carries {} ({} trials of {long}), not {} ({why})",
                many(lower),
                ratio((lower_passed, lower_failed)),
                number(upper)
            )
        }
        (Evidence::AtLeast, Some(lower), _) => {
            let limit = void_reason(summary).map_or_else(
                || "more was not to be tried (--most)".to_owned(),
                |why| format!("the generator's limit, not the server's: {why}"),
            );
            format!("{target} carries at least {}; {limit}", many(lower))
        }
        (Evidence::AtMost, _, Some(1)) => {
            format!("{target} does not carry a single one of its {of}{}", because(1))
        }
        (Evidence::AtMost, _, Some(upper)) => {
            format!("{target} does not carry {}{}", many(upper), because(upper))
        }
        (_, Some(lower), Some(upper)) => format!(
            "undecided: {target} carried {}, and not {}{}; not both were confirmed{}",
            many(lower),
            number(upper),
            because(upper),
            why_no_more(summary)
        ),
        (_, Some(lower), None) => {
            format!(
                "undecided: {target} carried {} and more was not shown{}",
                many(lower),
                why_no_more(summary)
            )
        }
        _ => void_reason(summary).map_or_else(
            || match summary.ending {
                Ending::Running => "it is searched; no trial has come to its end yet".to_owned(),
                _ => "nothing was learnt: no trial came to its end".to_owned(),
            },
            |why| format!("nothing was learnt of {target}: {why}"),
        ),
    };
    let is_limited = matches!(answer.evidence, Evidence::Found | Evidence::Undecided);
    let line = match full_thread(summary).filter(|_| is_limited) {
        Some(thread) => format!("{line}; {thread}"),
        None => line,
    };
    if answer.recovers == Some(false) { format!("{line}; it does not recover from overload") } else { line }
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
/// most often it is the limit.
fn full_thread(summary: &CapacitySummary) -> Option<String> {
    let bounds = summary.answer.bounds;
    let upper = bounds.upper.and_then(|load| summary.at_with(load, Verdict::Fail));
    let lower = bounds.lower.and_then(|load| summary.at_with(load, Verdict::Pass));
    let of = |outcome: &LoadOutcome| {
        let threads = outcome.targets.iter().filter_map(busiest);
        threads.max_by(|one, other| one.1.total_cmp(&other.1)).filter(|(_, cpu)| *cpu >= FULL_PERCENT)
    };
    let (name, cpu) = upper.and_then(of).or_else(|| lower.and_then(of))?;
    Some(format!("its busiest thread, {name}, was at {} of a core", percent(cpu)))
}

/// The busiest thread of a process.
pub(super) fn busiest(process: &ProcessLoad) -> Option<(String, f64)> {
    let threads =
        process.threads.iter().max_by(|a, b| a.cpu_percent_busiest.total_cmp(&b.cpu_percent_busiest));
    threads.map(|thread| (quote(&thread.name, 40), thread.cpu_percent_busiest))
}

/// Why the first load that could not be judged could not.
fn void_reason(summary: &CapacitySummary) -> Option<String> {
    let loads = summary.trials.iter().flat_map(|trial| &trial.loads);
    loads.filter_map(|load| load.void.as_deref()).map(|why| quote(why, LINE)).next()
}

/// Why there was no further trial.
fn why_no_more(summary: &CapacitySummary) -> String {
    let over = match summary.ending {
        Ending::Interrupted => " before it was interrupted",
        _ => " in the time that there was",
    };
    void_reason(summary).map_or_else(
        || over.to_owned(),
        |why| format!(", since the generator came to a limit of its own: {why}"),
    )
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

pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "carried",
        Verdict::Fail => "not carried",
        Verdict::Void => "void",
    }
}
