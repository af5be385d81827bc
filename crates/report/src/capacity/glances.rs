//! What a reader of a search wants to know first, in four answers: what was asked, how much is carried, can it be believed, what
//! was the limit.

use super::lines::{FULL_PERCENT, Fullest, confirmed, fullest, reason};
use crate::document::Tone;
use crate::glance::{CORES, Glance, capital};
use crate::quantity::{bit_rate, count, joined, percent, several, several_of, share, span};
use crate::quote::{LINE, quote};
use weir_answers::capacity::{CapacitySummary, Evidence, LoadOutcome, TrialVerdict};
use weir_answers::series::Ending;
use weir_setting::WATCH;

/// The four answers of a search.
pub(super) fn glances(summary: &CapacitySummary) -> Vec<Glance> {
    vec![asked(summary), carried(summary), believed(summary), limit(summary)]
}

fn asked(summary: &CapacitySummary) -> Glance {
    let sought = &summary.sought;
    Glance {
        question: "What was asked?",
        answer: format!("How many {}", quote(&sought.of, LINE)),
        lines: vec![
            quote(&sought.target, LINE),
            sought.thresholds.iter().map(|it| quote(it, LINE)).collect::<Vec<_>>().join(", "),
            format!("within {}, in at most {}", share(sought.precision), span(sought.budget_seconds)),
        ],
        tone: Tone::Plain,
    }
}

fn carried(summary: &CapacitySummary) -> Glance {
    let (answer, of) = (&summary.answer, &summary.sought.of);
    let many = |load: u32| several_of(load.into(), of);
    let number = |load: u32| count(load.into());
    let (words, tone) = match (answer.evidence, answer.bounds.lower, answer.bounds.upper) {
        (Evidence::Found, Some(lower), _) => (many(lower), Tone::Good),
        (Evidence::AtLeast, Some(lower), _) => (format!("At least {}", many(lower)), Tone::Doubtful),
        (_, Some(lower), Some(upper)) => {
            (format!("{} to {}, not confirmed", number(lower), many(upper)), Tone::Doubtful)
        }
        (_, Some(lower), None) => (format!("{}, perhaps more", many(lower)), Tone::Doubtful),
        (_, None, Some(upper)) => (format!("Fewer than {}", many(upper)), Tone::Bad),
        (_, None, None) if summary.ending == Ending::Running => ("Not known yet".to_owned(), Tone::Plain),
        (_, None, None) => ("No result".to_owned(), Tone::Bad),
    };
    let at = answer.bounds.lower.and_then(|lower| summary.at_with(lower, TrialVerdict::Pass));
    let mut lines: Vec<_> = at.map(|it| joined(bit_rate(it.actual_bps))).into_iter().collect();
    if let Some(upper) = answer.bounds.upper.and_then(|upper| summary.at_with(upper, TrialVerdict::Fail)) {
        lines.push(format!("not {}: {}", number(upper.load), reason(upper)));
    }
    Glance { question: "How much does it carry?", answer: words, lines, tone }
}

fn believed(summary: &CapacitySummary) -> Glance {
    let answer = &summary.answer;
    let outcomes = || summary.trials.iter().flat_map(|trial| &trial.loads);
    let void = outcomes().filter(|it| it.verdict == TrialVerdict::Void).count();
    let (words, tone) = match answer.evidence {
        Evidence::Found => ("Yes: both bounds were confirmed", Tone::Good),
        Evidence::AtLeast => ("As a lower bound: it may carry more", Tone::Doubtful),
        Evidence::AtMost => ("As an upper bound", Tone::Doubtful),
        Evidence::Undecided => ("With care: not both bounds were confirmed", Tone::Doubtful),
        Evidence::Void if summary.ending == Ending::Running => ("Not known yet", Tone::Plain),
        Evidence::Void => ("There is nothing to believe: every trial was void", Tone::Bad),
    };
    let how_often = confirmed(summary).unwrap_or_default();
    let mut lines: Vec<_> = how_often.split("; ").filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if void > 0 {
        let why = outcomes().find_map(|it| it.void.as_deref()).unwrap_or_default();
        lines.push(format!("{} void: {}", several(void as u64, "trial"), quote(why, LINE)));
    }
    Glance { question: "Can it be believed?", answer: words.to_owned(), lines, tone }
}

/// What was nearest to its limit at the load that was too much, or else at the largest that was carried.
fn limit(summary: &CapacitySummary) -> Glance {
    let bounds = summary.answer.bounds;
    let upper = bounds.upper.and_then(|load| summary.at_with(load, TrialVerdict::Fail));
    let lower = bounds.lower.and_then(|load| summary.at_with(load, TrialVerdict::Pass));
    let glance =
        |answer: String, lines, tone| Glance { question: "What was the limit?", answer, lines, tone };
    let Some(at) = upper.or(lower) else {
        return glance("Unknown: nothing was measured".to_owned(), Vec::new(), Tone::Plain);
    };
    let mut lines = vec![format!("at {}", several_of(at.load.into(), &summary.sought.of))];
    lines.extend(used(summary, at));
    match fullest(at).filter(|it| it.percent >= FULL_PERCENT) {
        _ if upper.is_none() => glance("It was not reached".to_owned(), lines, Tone::Good),
        Some(Fullest { starved: Some(words), .. }) => {
            lines.insert(0, words);
            glance(capital(CORES), lines, Tone::Doubtful)
        }
        Some(Fullest { name, percent: full, .. }) => {
            glance(format!("Thread {name}: {} of a core", percent(full)), lines, Tone::Doubtful)
        }
        None => match &at.failure {
            Some(failure) if !failure.words.is_empty() => {
                lines.insert(1, quote(&failure.words, LINE));
                glance("It refuses".to_owned(), lines, Tone::Doubtful)
            }
            _ if at.targets.is_empty() => {
                lines.push(format!("The server was not watched: {WATCH} says what it used"));
                glance("Unknown: no process was watched".to_owned(), lines, Tone::Plain)
            }
            _ => glance("No thread was full".to_owned(), lines, Tone::Doubtful),
        },
    }
}

/// How much of the host was used, and of the target's threads the busiest.
fn used(summary: &CapacitySummary, at: &LoadOutcome) -> Vec<String> {
    let thread = fullest(at).filter(|it| it.starved.is_none());
    let thread = thread.map(|it| format!("thread {}: {} of a core", it.name, percent(it.percent)));
    let cores = summary.run.environment.cpu.online_count.max(1);
    let host = at.host_cpu_percent.map(|cpu| {
        let cores_in_words = several(cores, "core");
        format!("the host's CPU: {} of {cores_in_words}", percent(cpu / cores as f64))
    });
    thread.into_iter().chain(host).collect()
}
