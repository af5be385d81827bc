//! Which of two encodings is done faster, in words.

use crate::quantity::joined;
use weir_metrics::Estimate;

/// In words, which of two is done faster. `ratio` is JSON's time over Avro's.
pub(crate) fn conclusion(done: &str, doing: &str, ratio: Estimate, difference: Estimate) -> String {
    let Estimate { mean, low, high } = ratio;
    if !ratio.excludes(1.0) {
        return format!(
            "No difference in {doing} can be told: JSON takes {mean:.2} times as long as Avro, and 1 is in the 95% \
             confidence interval, {low:.2} to {high:.2}."
        );
    }
    let (faster, slower, ratio) = if mean > 1.0 {
        ("Avro", "JSON", ratio)
    } else {
        ("JSON", "Avro", Estimate { mean: 1.0 / mean, low: 1.0 / high, high: 1.0 / low })
    };
    let Estimate { mean, low, high } = ratio;
    let digits = if mean < 1.95 { 2 } else { 1 };
    // The mean of differences need not lie where the mean of ratios does.
    let agrees = (difference.mean > 0.0) == (faster == "Avro");
    let time =
        if agrees { format!(", {} less a record", nanos(difference.mean.abs())) } else { String::new() };
    format!(
        "{faster} is {done} {mean:.digits$} times as fast as {slower} (95% confidence: {low:.digits$} to \
         {high:.digits$}){time}."
    )
}

/// A time that is shorter than others in reports are: three digits, in nanoseconds as well.
pub(crate) fn nanos(seconds: f64) -> String {
    let nanos = seconds * 1e9;
    let (number, unit) = if nanos.abs() < 999.5 { (nanos, "ns") } else { (nanos / 1e3, "µs") };
    let digits = if number.abs() < 9.995 {
        2
    } else if number.abs() < 99.95 {
        1
    } else {
        0
    };
    joined((format!("{number:.digits$}"), unit))
}
