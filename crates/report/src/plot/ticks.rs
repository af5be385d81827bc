//! The marks of an axis: round numbers, round times, and percentiles that have a name.

use super::Axes;
use crate::quantity::SECONDS;

/// A mark on an axis.
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// The step of 1, 2 or 5 times a power of ten that parts a range into three to five.
pub(crate) fn step(range: f64) -> f64 {
    let rough = range / 4.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough * 0.999);
    step.unwrap_or(10.0) * power
}

pub(crate) fn tick_number(value: f64) -> String {
    // What is left of adding steps of a tenth.
    let rounded = (value * 1e6).round() / 1e6;
    match rounded {
        v if v.abs() >= 10_000.0 => format!("{}k", v / 1e3),
        v if v < 0.0 => format!("−{}", -v),
        v => format!("{v}"),
    }
}

/// Ticks on round times: seconds, then minutes, then hours.
pub(super) fn time_ticks(axes: &Axes) -> Vec<Tick> {
    let step = time_step(axes.length);
    let count = (axes.length / step).floor() as u32;
    let seconds = (0..=count).map(|n| f64::from(n) * step);
    seconds.map(|at| Tick { at: axes.x(at), label: time_label(axes.length, at) }).collect()
}

/// The distance between two ticks of an axis of `length` seconds.
pub(crate) fn time_step(length: f64) -> f64 {
    const STEPS: [f64; 17] = [
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0,
        14_400.0, 43_200.0, 86_400.0,
    ];
    STEPS.into_iter().find(|step| length / step <= 7.0).unwrap_or(length / 6.0)
}

/// A second on such an axis.
pub(crate) fn time_label(length: f64, second: f64) -> String {
    let whole = second as u64;
    match length {
        s if s < 120.0 => format!("{whole} {}", SECONDS[0].1),
        s if s < 7_200.0 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{} h {:02}", whole / 3_600, whole / 60 % 60),
    }
}

/// Where a percentile stands on an axis of nines: 0, 0.3 (50 %), 1 (90 %), 2 (99 %), 3 (99.9 %).
pub(crate) fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-9).log10()
}

/// Ticks on percentiles that have a name.
pub(super) fn nine_ticks(axes: &Axes) -> Vec<Tick> {
    const NAMED: [(f64, &str); 7] = [
        (0.0, "0%"),
        (0.5, "50%"),
        (0.9, "90%"),
        (0.99, "99%"),
        (0.999, "99.9%"),
        (0.9999, "99.99%"),
        (0.99999, "99.999%"),
    ];
    // On a long axis 0 % stands too near to 50 %.
    let named = &NAMED[usize::from(axes.length > 3.2)..];
    let there = named.iter().filter(|(quantile, _)| nines(*quantile) <= axes.length + 1e-9);
    there.map(|(quantile, label)| Tick { at: axes.x(nines(*quantile)), label: (*label).to_owned() }).collect()
}

/// Ticks on round numbers.
pub(super) fn number_ticks(axes: &Axes) -> Vec<Tick> {
    let step = step(axes.length).max(1.0);
    let count = (axes.length / step).floor() as u32;
    let at = (0..=count).map(|n| f64::from(n) * step);
    at.map(|at| Tick { at: axes.x(at), label: tick_number(at) }).collect()
}
