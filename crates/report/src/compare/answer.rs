//! What a comparison comes to, in one sentence a side.

use super::{letter, side_name};
use crate::quantity::{in_figure_unit, several, share};
use crate::quote::quote;
use crate::table::{finding_word, relative};
use weir_answers::compare::Comparison;
use weir_answers::table::{Difference, FEWEST_FOR_DIFFERENCE, Finding, VariantComparison};

/// Figures that a sentence names of each kind: the table below has all of them.
const NAMED: usize = 3;

/// `B is worse: startup p99 +11.1% (542 ms → 602 ms)`.
pub(super) fn answer(comparison: &Comparison, against: &VariantComparison) -> String {
    let (base, side) = (letter(0), side_name(comparison, &against.other));
    let of = |finding| {
        let mut found: Vec<_> = against.differences.iter().filter(|it| it.finding == finding).collect();
        found.sort_by(|one, other| size(other).total_cmp(&size(one)));
        found
    };
    let named = |finding| {
        let found = of(finding);
        let mut names: Vec<_> = found.iter().take(NAMED).map(|it| named(comparison, it)).collect();
        if let Some(more @ 1..) = found.len().checked_sub(NAMED) {
            names.push(several(more as u64, "more figure"));
        }
        names.join(", ")
    };
    let is_any = |finding| !of(finding).is_empty();
    if against.differences.iter().all(|it| it.finding == Finding::Unknown) {
        return format!(
            "cannot say whether {side} differs from {base}: give {FEWEST_FOR_DIFFERENCE} runs a side"
        );
    }
    match (is_any(Finding::Worse), is_any(Finding::Better)) {
        (true, false) => format!("{side} is worse: {}", named(Finding::Worse)),
        (false, true) => format!("{side} is better: {}", named(Finding::Better)),
        (true, true) => {
            format!("{side} is worse in {}; better in {}", named(Finding::Worse), named(Finding::Better))
        }
        (false, false) if is_any(Finding::Different) => {
            format!("{side} differs: {}", named(Finding::Different))
        }
        (false, false) if is_any(Finding::Undecided) => {
            let undecided = of(Finding::Undecided).len() as u64;
            let word = finding_word(Finding::Undecided);
            format!(
                "no difference between {base} and {side} is shown; {} {word}",
                several(undecided, "figure")
            )
        }
        (false, false) => format!("{side} is the same as {base}, within ±{}", share(comparison.margin)),
    }
}

/// How large a change is beside the value that it is of: an infinite one where something comes from nothing.
fn size(change: &Difference) -> f64 {
    let ratio = change.ratio.map(|it| it.mean.ln());
    ratio.unwrap_or_else(|| (change.other - change.base) / change.base.abs()).abs()
}

fn named(comparison: &Comparison, change: &Difference) -> String {
    let figure = comparison.table.figure(&change.figure);
    let value = |value| figure.map_or_else(String::new, |it| in_figure_unit(it.unit, value));
    let title = figure.map_or(&change.figure, |it| it.title.as_ref().unwrap_or(&it.name));
    let by = change.ratio.map_or_else(String::new, |ratio| format!(" {}", relative(ratio.mean)));
    format!("{}{by} ({} → {})", quote(title, 40), value(change.base), value(change.other))
}
