//! What was measured of a figure that a threshold is about, in the figure's unit.

use crate::quantity::{in_figure_unit, number, percent};
use crate::quote::{LINE, quote};
use weir_engine::summary::units::FigureUnit;
use weir_engine::summary::{Summary, ThresholdResult};
use weir_engine::threshold::{ServerLoad, Threshold};

/// A threshold's value in the unit of its figure, and what the peer said to it, if it did.
pub(crate) fn measured(summary: &Summary, threshold: &ThresholdResult) -> String {
    let value = value(summary, threshold);
    threshold.words.as_ref().map_or(value.clone(), |words| format!("{value}: {}", quote(words, LINE)))
}

fn value(summary: &Summary, threshold: &ThresholdResult) -> String {
    let Some(value) = threshold.value else { return "nothing".to_owned() };
    let Ok(asked) = threshold.expression.parse::<Threshold>() else { return number(value) };
    // CPU is in percent of a core wherever weir prints it.
    if asked.server_load().is_some_and(|load| !matches!(load, ServerLoad::Memory | ServerLoad::Descriptors)) {
        return percent(value * 100.0);
    }
    let mut units = summary.workloads.iter().map(|workload| asked.unit(&workload.total));
    in_figure_unit(units.find(|unit| *unit != FigureUnit::Count).unwrap_or(FigureUnit::Count), value)
}
