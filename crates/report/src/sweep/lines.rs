//! A sweep's answer in one line, and the values that it is made of.

use crate::quantity::{NOTHING, TIE, count, in_figure_unit, several, several_of};
use crate::quote::quote;
use weir_answers::series::Ending;
use weir_answers::sweep::SweepSummary;
use weir_answers::table::{Finding, VariantSummary, VariantThreshold};
use weir_engine::summary::units::FigureUnit;
use weir_setting::{BUDGET, BY};

/// The answer in one line: the best, those that do not differ significantly from it, those that are worse, and those that fail
/// what is asked of them. Without a best one, why there is none.
pub fn sweep_line(summary: &SweepSummary) -> String {
    let named = |standing: Finding| {
        // The unit stands where the line begins.
        let unit = match standing {
            Finding::Best => format!(" {}", summary.ranked.title),
            Finding::Unknown if is_best_unknown(summary) => format!(" {}", summary.ranked.title),
            _ => String::new(),
        };
        let named = |it: &VariantSummary| {
            let value = short(summary, it);
            let value = match value.as_str() {
                NOTHING => value,
                // `at least 1 viewer`.
                _ if summary.ranked.is_capacity()
                    && !unit.is_empty()
                    && value.split(' ').next_back() == Some("1") =>
                {
                    let front = value.strip_suffix('1').unwrap_or_default();
                    format!("{front}{}", several_of(1, &summary.ranked.title))
                }
                _ => format!("{value}{unit}"),
            };
            format!("{} ({value})", quote(&it.name, 40))
        };
        let names = summary.standing(standing).map(named);
        names.collect::<Vec<_>>().join(", ")
    };
    if summary.series.variants.iter().all(|it| it.value.is_none() && it.failed().is_empty()) {
        let noun = if summary.ranked.is_capacity() { "search" } else { "run" };
        return match summary.series.ending {
            Ending::Running => format!("it is swept; no {noun} has come to its end yet"),
            _ if !summary.ranked.is_capacity() && summary.series.variants.iter().any(|it| it.counted > 0) => {
                format!(
                    "no run has a value of {}: make them longer, or rank by another figure ({BY})",
                    quote(&summary.ranked.title, 60)
                )
            }
            _ => "no result for any variant".to_owned(),
        };
    }
    let mut parts = Vec::new();
    if is_best_unknown(summary) {
        parts.push(no_best(summary, &named(Finding::Unknown)));
    } else {
        for (standing, words) in [
            (Finding::Best, "best"),
            (Finding::Undecided, "not distinguishable from it"),
            (Finding::Worse, "worse"),
            (Finding::Unknown, "too little is known of"),
        ] {
            let names = named(standing);
            if !names.is_empty() {
                parts.push(format!("{words}: {names}"));
            }
        }
    }
    parts.extend(summary.standing(Finding::Fails).filter_map(|it| fails(&it.name, &it.failed())));
    parts.join("; ")
}

fn is_best_unknown(summary: &SweepSummary) -> bool {
    summary.standing(Finding::Best).next().is_none()
}

/// Why none is best.
fn no_best(summary: &SweepSummary, unknown: &str) -> String {
    let carries_nothing =
        |it: &VariantSummary| it.value.is_some_and(|value| value.is_sure && value.low == Some(0.0));
    if unknown.is_empty() {
        "no variant holds what is asked of it".to_owned()
    } else if !summary.ranked.is_capacity() {
        let runs = summary.standing(Finding::Unknown).map(|it| it.counted.to_string());
        let runs = runs.collect::<Vec<_>>().join(" and ");
        format!("too few runs to tell ({runs}; four tell a difference): {unknown}")
    } else if summary.standing(Finding::Unknown).all(carries_nothing) {
        format!("no variant carries anything: {unknown}")
    } else {
        let capacities =
            summary.series.table.runs.iter().filter(|run| run.is_counted()).filter_map(|run| run.capacity);
        let needed = capacities.filter_map(|capacity| capacity.needed_seconds).max();
        let budget = needed.map_or_else(String::new, |seconds| {
            format!(": give it a larger {BUDGET}, about {} min", seconds.div_ceil(60))
        });
        format!("cannot tell which is best{budget}; {unknown}")
    }
}

/// `two fails played.ratio in 4 of 4 runs`.
pub(crate) fn fails(variant: &str, failed: &[VariantThreshold]) -> Option<String> {
    let (first, others) = failed.split_first()?;
    let figure = first.expression.split(['<', '>', '=', '!']).next().unwrap_or_default().trim();
    let more = match others.len() {
        0 => String::new(),
        others => format!(", and {}", several(others as u64, "other threshold")),
    };
    Some(format!(
        "{} fails {} in {} of {}{more}",
        quote(variant, 40),
        quote(figure, 60),
        first.runs - first.passed,
        several(first.runs, "run")
    ))
}

/// A figure with enough digits to tell small ones apart.
pub(super) fn figure(unit: FigureUnit, value: f64) -> String {
    match unit {
        FigureUnit::Percent if value.abs() < 1.0 => format!("{value:.3}{TIE}%"),
        _ => in_figure_unit(unit, value),
    }
}

/// Value or bounds of a variant.
pub(super) fn short(summary: &SweepSummary, variant: &VariantSummary) -> String {
    let Some(value) = variant.value else { return NOTHING.to_owned() };
    if summary.ranked.is_capacity() {
        bounds(value.low, value.high)
    } else {
        figure(summary.ranked.unit, value.mean)
    }
}

/// `3,420 to 3,590`, `at least 3,420`, `less than 10`.
pub(super) fn bounds(low: Option<f64>, high: Option<f64>) -> String {
    let number = |value: f64| count(value.round() as u64);
    match (low.filter(|low| *low > 0.0), high) {
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("less than {}", number(high)),
        (None, None) => NOTHING.to_owned(),
    }
}
