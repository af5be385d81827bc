//! The sides of a comparison as pictures: by how much figures changed, and the seconds of all sides over each other.

use super::{letter, side_name};
use crate::intervals::{IntervalRow, intervals};
use crate::picture::{Picture, drawn};
use crate::plot::{Across, COLOURS, Hue, Line, Plot};
use crate::plots::{CALMED, calmed};
use crate::quantity::{BIT_RATE, BYTES, COUNT, PERCENT, SECONDS, Units};
use crate::quote::quote;
use crate::table::{finding_word, relative};
use weir_answers::compare::{Comparison, Course, FEWEST_FOR_INTERVAL};
use weir_answers::table::{Difference, Finding, VariantComparison};
use weir_engine::summary::{Point, WorkloadPoint};

/// All of them, the answer first.
pub(super) fn pictures(comparison: &Comparison) -> Vec<Picture> {
    let changes = comparison.comparisons.iter().filter_map(|against| intervals_of(comparison, against));
    changes.chain(drawn(&plots(comparison))).collect()
}

/// By how much each figure of a side changed, with its interval.
fn intervals_of(comparison: &Comparison, against: &VariantComparison) -> Option<Picture> {
    /// What changed by more goes on beyond the picture: one figure that is ten times as high would press all others together.
    const MOST_PERCENT: f64 = 100.0;
    let row = |change: &Difference| {
        let ratio = change.ratio.filter(|_| change.runs >= FEWEST_FOR_INTERVAL as u64)?;
        let figure = comparison.table.figure(&change.figure)?;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        Some(IntervalRow {
            name: quote(figure.title.as_ref().unwrap_or(&figure.name), 40),
            mean: percent(ratio.mean),
            low: Some(percent(ratio.low)),
            high: Some(percent(ratio.high)),
            value: relative(ratio.mean),
            standing: finding_word(change.finding),
            class: match change.finding {
                Finding::Better => "best",
                Finding::Worse => "worse",
                Finding::Same | Finding::Different => "alike",
                _ => "unknown",
            },
        })
    };
    let rows: Vec<_> = against.differences.iter().filter_map(row).collect();
    let title = format!("Change of {} from {}", side_name(comparison, &against.other), letter(0));
    let picture = intervals(&title, PERCENT, MOST_PERCENT, &rows)?;
    let note = "Mean and 95% interval. Red is worse, green better; dotted is undecided. An interval over the line at 0 tells no difference. \
        An arrow stands where it goes on beyond 100%.";
    Some(Picture { note: note.to_owned(), ..picture })
}

/// The sides over each other, second by second.
fn plots(comparison: &Comparison) -> Vec<Plot> {
    let workloads = comparison.courses.first().map_or(&[][..], |side| &side.workloads);
    let mut plots = Vec::new();
    for (at, name) in workloads.iter().enumerate() {
        let title = |title: &str| match workloads {
            [_] => title.to_owned(),
            _ => format!("{title}: {}", quote(name, 40)),
        };
        let of = |what: &str, units: Units, value: fn(&WorkloadPoint) -> Option<f64>| {
            plot(comparison, title(what), units, &|point| value(point.workloads.get(at)?))
        };
        let startups = of("Startup p99", SECONDS, |it| it.startup_p99_seconds);
        plots.extend([
            of("Playing", COUNT, |it| Some(it.playing as f64)),
            Plot {
                note: CALMED.to_owned(),
                ..plot_of_runs(comparison, title("Bit rate"), BIT_RATE, &rates(at))
            },
            // Of a ramp, the intervals above say it.
            Plot { lines: startups.lines.into_iter().filter(has_course).collect(), ..startups },
            of("Latency p99", SECONDS, |it| it.latency_p99_seconds),
            of("Delay drift p99", SECONDS, |it| it.drift_p99_seconds),
        ]);
    }
    let target = |point: &Point| {
        let all = &point.target_cpu_percent;
        (!all.is_empty()).then(|| all.iter().sum())
    };
    let memory = |point: &Point| {
        let all = &point.target_rss_bytes;
        (!all.is_empty()).then(|| all.iter().sum::<u64>() as f64)
    };
    plots.extend([
        plot(comparison, "CPU of the target, 100% is one core".to_owned(), PERCENT, &target),
        plot(comparison, "Memory of the target".to_owned(), BYTES, &memory),
        plot(comparison, "CPU of weir".to_owned(), PERCENT, &|point| point.generator_cpu_percent),
    ]);
    plots
}

/// Whether a line has values in half of its seconds.
fn has_course(line: &Line) -> bool {
    2 * line.points.iter().filter(|(_, value)| value.is_some()).count() >= line.points.len()
}

/// The bit rate of a workload, as smooth as on the page of one run.
fn rates(workload: usize) -> impl Fn(&[Point]) -> Vec<Option<f64>> {
    move |run| {
        let points = || run.iter().map(|point| point.workloads.get(workload));
        let rates: Vec<_> = points().map(|it| (0.0, it.map(|it| it.actual_bps))).collect();
        let planned: Vec<_> = points().map(|it| it.map(|it| it.planned)).collect();
        calmed(&rates, &planned).into_iter().map(|(_, value)| value).collect()
    }
}

/// What is drawn of a run: second by second.
type Seconds<'a> = &'a dyn Fn(&[Point]) -> Vec<Option<f64>>;

fn plot(comparison: &Comparison, title: String, units: Units, value: &dyn Fn(&Point) -> Option<f64>) -> Plot {
    plot_of_runs(comparison, title, units, &|run| run.iter().map(value).collect())
}

fn plot_of_runs(comparison: &Comparison, title: String, units: Units, seconds: Seconds<'_>) -> Plot {
    let line = |(position, side): (usize, &Course)| {
        let runs: Vec<Vec<Option<f64>>> = side.runs.iter().map(|run| seconds(run)).collect();
        // A second's value stands at its middle.
        let length = runs.iter().map(Vec::len).max().unwrap_or(0);
        let of_second = |second: usize| {
            let values: Vec<f64> = runs.iter().filter_map(|run| *run.get(second)?).collect();
            let ends = values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max));
            let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
            // Of two runs or more.
            (second as f64 + 0.5, mean, ends.filter(|_| values.len() > 1))
        };
        let all: Vec<_> = (0..length).map(of_second).collect();
        let points = all.iter().map(|(at, mean, _)| (*at, *mean)).collect();
        let range = all.iter().map(|(at, _, ends)| (*at, *ends)).collect();
        let line = Line::new(letter(position), Hue::Series(position), points);
        Line { dashed: position == 0, range, ..line }
    };
    let lines: Vec<Line> = comparison.courses.iter().enumerate().take(COLOURS).map(line).collect();
    let length = lines.iter().map(|line| line.points.len()).max().unwrap_or(0) as f64;
    Plot { across: Across::Time, robust: true, ..Plot::new(title, units, lines, length) }
}
