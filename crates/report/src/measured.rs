//! What was measured of a figure that a threshold is about, in the figure's unit.

use crate::account;
use crate::growth;
use crate::quantity::{bytes, number, percent, seconds, share};
use crate::quote::{LINE, quote};
use weir_engine::growth::SERVER_FIGURES;
use weir_engine::server_load::ServerLoad;
use weir_engine::summary::{Summary, ThresholdResult};
use weir_engine::threshold::Threshold;

/// A threshold's value in the unit of its figure, and what the peer said to it, if it did.
pub(crate) fn measured(summary: &Summary, threshold: &ThresholdResult) -> String {
    let value = value(summary, threshold);
    threshold.words.as_ref().map_or(value.clone(), |words| format!("{value}: {}", quote(words, LINE)))
}

fn value(summary: &Summary, threshold: &ThresholdResult) -> String {
    let Some(value) = threshold.value else { return "nothing".to_owned() };
    let left = threshold.expression.split(['<', '>', '=', '!']).next().unwrap_or_default().trim();
    let (figure, statistic) = left.rsplit_once('.').unwrap_or((left, ""));
    if statistic == "ratio" {
        return share(value);
    }
    let asked = threshold.expression.parse::<Threshold>().ok();
    if let Some(load) = asked.as_ref().and_then(Threshold::server_load) {
        return match load {
            ServerLoad::Memory => bytes(value),
            ServerLoad::Descriptors => number(value),
            ServerLoad::Cpu | ServerLoad::BusiestThread | ServerLoad::Thread(_) => percent(value * 100.0),
        };
    }
    if SERVER_FIGURES.contains(&left) {
        return growth::of_figure(left, value);
    }
    if asked.is_some_and(|it| it.is_about_restarts()) {
        return seconds(value);
    }
    let known = |name| summary.workloads.iter().find_map(|workload| workload.total.get(name));
    let unit = known(left).or_else(|| known(figure)).map(|figure| figure.unit);
    if statistic == "count" { number(value) } else { account::in_unit(value, unit) }
}
