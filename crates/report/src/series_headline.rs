//! Why a series, a sweep or a search did not pass, in one line for stderr: what ended it comes first, then whether it can be
//! believed, then what was asked of the target.

use crate::capacity::lines::capacity_line;
use crate::digest::several;
use crate::quantity::span;
use crate::quote::{LINE, quote};
use crate::sweep::sweep_line;
use weir_engine::capacity::{CapacitySummary, Evidence};
use weir_engine::series::{Ending, SeriesRun, SeriesSummary};
use weir_engine::summary::{Outcome, VerdictState};
use weir_engine::sweep::SweepSummary;

/// Of a series; none if it passed.
pub fn series_shortfall(summary: &SeriesSummary) -> Option<String> {
    if let Some(line) = ended(&summary.ending, summary.run.duration_seconds) {
        return Some(line);
    }
    let runs = |is: fn(&SeriesRun) -> bool, what: &str| {
        let number = summary.runs.iter().filter(|run| is(run)).count();
        let first = summary.runs.iter().find(|run| is(run))?;
        let all = several(summary.runs.len() as u64, "run");
        Some(format!("{what} in {number} of {all}, first in {}", quote(&first.directory, LINE)))
    };
    let failed = |run: &SeriesRun| run.thresholds.iter().any(|it| !it.passed);
    runs(|run| run.outcome == Outcome::TargetDied, "the target died")
        .or_else(|| runs(|run| run.unanswered, "nothing answered"))
        .or_else(|| runs(|run| matches!(run.outcome, Outcome::Aborted(_)), "a threshold ended the run"))
        .or_else(|| match summary.verdict {
            VerdictState::Invalid => {
                let first = summary.warnings.first();
                let why = first.map_or_else(String::new, |why| format!(": {}", quote(why, LINE)));
                Some(format!("the figures of a variant cannot be believed{why}"))
            }
            VerdictState::NothingMeasured => Some("nothing was measured in any run".to_owned()),
            VerdictState::Valid | VerdictState::Degraded => None,
        })
        .or_else(|| {
            let missed = summary.runs.iter().filter(|run| run.is_counted() && failed(run));
            let first = missed.clone().next()?;
            let expression = first.thresholds.iter().find(|it| !it.passed).map(|it| it.expression.as_str());
            let all = several(summary.runs.len() as u64, "run");
            let (number, place) = (missed.count(), quote(&first.directory, LINE));
            let expression = quote(expression.unwrap_or_default(), LINE);
            Some(format!("thresholds failed in {number} of {all}, first {expression} in {place}"))
        })
}

/// Of a sweep; none if something was learnt of some variant, and its runs passed.
pub fn sweep_shortfall(summary: &SweepSummary) -> Option<String> {
    ended(&summary.ending, summary.run.duration_seconds)
        .or_else(|| summary.series.as_ref().and_then(series_shortfall))
        .or_else(|| {
            let is_known = summary.variants.iter().any(|it| it.value.is_some());
            let why = summary.cells.iter().find_map(|cell| cell.reason.as_deref());
            let why = why.map_or_else(String::new, |why| format!(": {}", quote(why, LINE)));
            (!is_known).then(|| format!("{}{why}", sweep_line(summary)))
        })
}

/// Of a search; none if something was learnt.
pub fn capacity_shortfall(summary: &CapacitySummary) -> Option<String> {
    ended(&summary.ending, summary.run.duration_seconds).or_else(|| {
        let is_void = summary.answer.evidence == Evidence::Void || summary.is_unanswered();
        is_void.then(|| capacity_line(summary))
    })
}

/// What ended it before its time.
fn ended(ending: &Ending, seconds: f64) -> Option<String> {
    match ending {
        Ending::Completed => None,
        Ending::Interrupted => Some(format!("interrupted after {}", span(seconds))),
        Ending::Running => Some(format!("not at its end after {}", span(seconds))),
        Ending::Failed(failure) => Some(quote(&failure.words, 1_000)),
    }
}
