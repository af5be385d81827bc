//! A sweep's answer in one line, and the values that it is made of.

use crate::quantity::{NOTHING, TIE, count, in_figure_unit};
use crate::quote::quote;
use weir_engine::series::FigureUnit;
use weir_engine::sweep::{Rank, Standing, SweepSummary, SweepValue, SweepVariant};

/// The answer in one line: the best, those that do not differ significantly from it, those that are worse.
pub fn sweep_line(summary: &SweepSummary) -> String {
    let named = |standing: Standing| {
        let unit = match standing {
            Standing::Best => format!(" {}", summary.ranked.title),
            _ => String::new(),
        };
        let named = |it: &SweepVariant| format!("{} ({}{unit})", quote(&it.name, 40), short(summary, it));
        let names = summary.standing(standing).map(named);
        names.collect::<Vec<_>>().join(", ")
    };
    let best = named(Standing::Best);
    if best.is_empty() {
        return "nothing was learnt of any variant".to_owned();
    }
    let mut line = format!("best: {best}");
    for (standing, words) in [
        (Standing::Alike, "cannot be told from it"),
        (Standing::Worse, "worse"),
        (Standing::Unknown, "too little is known of"),
    ] {
        let names = named(standing);
        if !names.is_empty() {
            line.push_str(&format!("; {words}: {names}"));
        }
    }
    line
}

pub(super) fn is_capacity(summary: &SweepSummary) -> bool {
    matches!(summary.ranked.by, Rank::Capacity(_))
}

/// A figure with enough digits to tell small ones apart.
pub(super) fn figure(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::Percent if value.abs() < 1.0 => format!("{value:.3}{TIE}%"),
        _ => in_figure_unit(unit, value),
    }
}

/// Value or bounds of a variant.
pub(super) fn short(summary: &SweepSummary, variant: &SweepVariant) -> String {
    let Some(value) = variant.value else { return NOTHING.to_owned() };
    if is_capacity(summary) { bounds(value) } else { figure(summary.ranked.unit, value.mean) }
}

/// `3,420 to 3,590`, `at least 3,420`, `less than 10`.
pub(super) fn bounds(value: SweepValue) -> String {
    let number = |value: f64| count(value.round() as u64);
    match (value.low.filter(|low| *low > 0.0), value.high) {
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("less than {}", number(high)),
        (None, None) => NOTHING.to_owned(),
    }
}
