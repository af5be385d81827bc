//! Why a search for a capacity found nothing, in one line for stderr: what ended it comes first, then what is known all the same.

use crate::capacity::lines::capacity_line;
use crate::quantity::span;
use crate::quote::quote;
use weir_answers::capacity::{CapacitySummary, Evidence};
use weir_answers::series::Ending;

/// Of a search; none if something was learnt.
pub fn capacity_shortfall(summary: &CapacitySummary) -> Option<String> {
    let bounds = summary.answer.bounds;
    let known = bounds.lower.or(bounds.upper).map(|_| capacity_line(summary));
    let ended = ended(&summary.ending, summary.run.duration_seconds);
    let ended = ended.map(|why| [Some(why), known].into_iter().flatten().collect::<Vec<_>>().join("; "));
    ended.or_else(|| {
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
