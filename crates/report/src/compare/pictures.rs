//! The sides of a comparison as pictures: by how much figures changed, and the seconds of all sides over each other.

use super::{finding_word, letter, relative, side_name};
use crate::html::{Picture, drawn};
use crate::intervals::{IntervalRow, intervals};
use crate::plot::{Across, COLOURS, Hue, Line, Plot};
use crate::quantity::{BIT_RATE, BYTES, COUNT, PERCENT, SECONDS, Units};
use crate::quote::quote;
use weir_engine::compare::{Change, Comparison, Contest, FEWEST_FOR_INTERVAL, Finding, SideSummary};
use weir_engine::summary::{Point, WorkloadPoint};

/// All of them, the answer first.
pub(super) fn pictures(comparison: &Comparison) -> Vec<Picture> {
    let changes = comparison.contests.iter().filter_map(|contest| intervals_of(comparison, contest));
    changes.chain(drawn(&plots(comparison))).collect()
}

/// By how much each figure of a side changed, with its interval.
fn intervals_of(comparison: &Comparison, contest: &Contest) -> Option<Picture> {
    /// What changed by more is at the end of the axis: one figure that is ten times as high would press all others together.
    const MOST_PERCENT: f64 = 100.0;
    let row = |change: &Change| {
        let ratio = change.ratio.filter(|_| change.runs >= FEWEST_FOR_INTERVAL as u64)?;
        let figure = comparison.figures.iter().find(|figure| figure.name == change.figure)?;
        let percent = |ratio: f64| ((ratio - 1.0) * 100.0).clamp(-MOST_PERCENT, MOST_PERCENT);
        Some(IntervalRow {
            name: quote(figure.title.as_ref().unwrap_or(&figure.name), 40),
            mean: percent(ratio.mean),
            low: Some(percent(ratio.low)),
            high: Some(percent(ratio.high)),
            value: relative(ratio.mean),
            standing: change.finding.map_or("not told", finding_word),
            class: match change.finding {
                Some(Finding::Better) => "best",
                Some(Finding::Worse) => "worse",
                Some(Finding::Same | Finding::Different) => "alike",
                Some(Finding::Undecided) | None => "unknown",
            },
        })
    };
    let rows: Vec<_> = contest.changes.iter().filter_map(row).collect();
    let title = format!("Change of {} from {}", side_name(comparison, &contest.side), letter(0));
    let picture = intervals(&title, PERCENT, &rows)?;
    let note = "Mean and 95% interval. Red is worse, green better; dotted is undecided. An interval over the line at 0 tells no difference. \
        What changed by more than 100% is drawn at the end.";
    Some(Picture { note: note.to_owned(), ..picture })
}

/// The sides over each other, second by second.
fn plots(comparison: &Comparison) -> Vec<Plot> {
    let workloads = comparison.sides.first().map_or(&[][..], |side| &side.workloads);
    let mut plots = Vec::new();
    for (at, name) in workloads.iter().enumerate() {
        let title = |title: &str| match workloads {
            [_] => title.to_owned(),
            _ => format!("{title}: {}", quote(name, 40)),
        };
        let of = |what: &str, units: Units, value: fn(&WorkloadPoint) -> Option<f64>| {
            plot(comparison, title(what), units, &|point| value(point.workloads.get(at)?))
        };
        plots.extend([
            of("Playing", COUNT, |it| Some(it.playing as f64)),
            of("Bit rate", BIT_RATE, |it| Some(it.actual_bps)),
            of("Startup p99", SECONDS, |it| it.startup_p99_seconds),
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

fn plot(comparison: &Comparison, title: String, units: Units, value: &dyn Fn(&Point) -> Option<f64>) -> Plot {
    let length = |side: &SideSummary| side.seconds.iter().map(Vec::len).max().unwrap_or(0);
    let line = |(position, side): (usize, &SideSummary)| {
        let mean = |second: usize| {
            let points = side.seconds.iter().filter_map(|run| run.get(second));
            let values: Vec<f64> = points.filter_map(value).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        // Of two runs or more: between the lowest and the highest of them.
        let range = |second: usize| {
            let values = side.seconds.iter().filter_map(|run| value(run.get(second)?));
            let ends = values.fold(None, |ends: Option<(f64, f64, u32)>, value| {
                let (low, high, runs) = ends.unwrap_or((value, value, 0));
                Some((low.min(value), high.max(value), runs + 1))
            });
            ends.filter(|(_, _, runs)| *runs > 1).map(|(low, high, _)| (low, high))
        };
        // A second's value stands at its middle.
        let points = (0..length(side)).map(|second| (second as f64 + 0.5, mean(second))).collect();
        let range = (0..length(side)).map(|second| (second as f64 + 0.5, range(second))).collect();
        let line = Line::new(letter(position), Hue::Series(position), points);
        Line { dashed: position == 0, range, ..line }
    };
    Plot {
        title,
        units,
        lines: comparison.sides.iter().enumerate().take(COLOURS).map(line).collect(),
        bands: Vec::new(),
        across: Across::Time,
        length: comparison.sides.iter().map(length).max().unwrap_or(0) as f64,
        note: "Each line is the mean of the runs of a side, shaded from the lowest run to the highest; the base is dashed."
            .to_owned(),
        robust: true,
    }
}
