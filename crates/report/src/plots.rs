//! Which lines are drawn: the summary's seconds as plots.

use crate::names::Names;
use crate::plot::{Across, Band, COLOURS, Line, Plot};
use crate::quantity::{BIT_RATE, BYTES, COUNT, PERCENT, SECONDS, Units, count};
use crate::quote::quote;
use crate::stages::leading;
use weir_engine::summary::{Point, Role, Summary, WorkloadPoint};

/// The note under the plot of viewers' bit rate.
const CALMED: &str = "Actual is the mean of each second and its neighbours with as many clients: viewers read in batches of up to 2 s.";

/// All plots of a run; those of which nothing was measured draw nothing.
pub(crate) fn plots(summary: &Summary) -> Vec<Plot> {
    let bands = bands(summary);
    let seconds = summary.series.last().map_or(0.0, |point| f64::from(point.second) + 1.0);
    let plot = |title: &str, units: Units, lines: Vec<Line>| Plot {
        title: title.to_owned(),
        units,
        lines,
        bands: bands.clone(),
        across: Across::Time,
        length: seconds,
        note: "",
    };
    let mut plots = Vec::new();
    for (position, workload) in summary.workloads.iter().enumerate() {
        let of_workload = |title: &str, units, lines| match &summary.workloads[..] {
            [_] => plot(title, units, lines),
            _ => plot(&format!("{title}: {}", quote(&workload.name, 40)), units, lines),
        };
        let percentiles = |of| percentiles(summary, position, of);
        plots.extend([
            of_workload("Clients", COUNT, clients(summary, position)),
            Plot {
                note: match workload.role {
                    Role::Play => CALMED,
                    Role::Publish | Role::Ingest => "",
                },
                ..of_workload("Bit rate", BIT_RATE, rates(summary, position))
            },
            of_workload(
                "Startup",
                SECONDS,
                percentiles(|it| (it.startup_p50_seconds, it.startup_p99_seconds)),
            ),
            of_workload(
                "Latency",
                SECONDS,
                percentiles(|it| (it.latency_p50_seconds, it.latency_p99_seconds)),
            ),
            of_workload(
                "Delay drift",
                SECONDS,
                percentiles(|it| (it.drift_p50_seconds, it.drift_p99_seconds)),
            ),
        ]);
    }
    plots.extend([
        plot("CPU, 100% is one core", PERCENT, cpu(summary)),
        plot("CPU of the target's threads", PERCENT, threads(summary)),
        plot("Memory of the target", BYTES, memory(summary)),
        plot("Stalls and failures in each second", COUNT, troubles(summary)),
    ]);
    plots
}

/// The stages of the workload that has the most of them.
fn bands(summary: &Summary) -> Vec<Band> {
    let stages = leading(summary).map_or(&[][..], |workload| &workload.stages);
    let band = |stage: &weir_engine::summary::StageSummary| Band {
        label: count(stage.clients.into()),
        begin: stage.begin_seconds,
        end: stage.end_seconds,
        window: (stage.window_begin_seconds.into(), stage.window_end_seconds.into()),
    };
    stages.iter().map(band).collect()
}

/// A line through the seconds of the run.
fn line(summary: &Summary, name: String, value: impl Fn(&Point) -> Option<f64>) -> Line {
    // A second's value stands at its middle.
    let points = summary.series.iter().map(|point| (f64::from(point.second) + 0.5, value(point)));
    Line { name, points: points.collect(), dashed: false }
}

/// The same of one workload.
fn workload_line(
    summary: &Summary,
    workload: usize,
    name: &str,
    value: impl Fn(&WorkloadPoint) -> Option<f64>,
) -> Line {
    line(summary, name.to_owned(), |point| value(point.workloads.get(workload)?))
}

fn clients(summary: &Summary, workload: usize) -> Vec<Line> {
    let planned = workload_line(summary, workload, "planned", |it| Some(it.planned.into()));
    let playing = match summary.workloads[workload].role {
        Role::Play => "playing",
        Role::Publish => "publishing",
        Role::Ingest => "saving",
    };
    let playing = workload_line(summary, workload, playing, |it| Some(it.playing as f64));
    vec![Line { dashed: true, ..planned }, playing]
}

fn rates(summary: &Summary, workload: usize) -> Vec<Line> {
    let expected = workload_line(summary, workload, "expected", |it| it.expected_bps);
    let actual = workload_line(summary, workload, "actual", |it| Some(it.actual_bps));
    let planned: Vec<_> =
        summary.series.iter().map(|point| point.workloads.get(workload).map(|it| it.planned)).collect();
    let points = match summary.workloads[workload].role {
        Role::Play => calmed(&actual.points, &planned),
        Role::Publish | Role::Ingest => actual.points,
    };
    vec![Line { dashed: true, ..expected }, Line { points, ..actual }]
}

/// The mean of each value and its neighbours in which as many clients are planned: viewers of the crowd take a
/// second's bytes with the next one's, and the line would show when they read.
fn calmed<T: PartialEq>(points: &[(f64, Option<f64>)], planned: &[T]) -> Vec<(f64, Option<f64>)> {
    let mean = |position: usize| {
        points[position].1?;
        let around = position.saturating_sub(1)..(position + 2).min(points.len());
        let alike = around.filter(|other| planned[*other] == planned[position]);
        let values: Vec<f64> = alike.filter_map(|other| points[other].1).collect();
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    (0..points.len()).map(|position| (points[position].0, mean(position))).collect()
}

fn percentiles(
    summary: &Summary,
    workload: usize,
    of: fn(&WorkloadPoint) -> (Option<f64>, Option<f64>),
) -> Vec<Line> {
    let upper = workload_line(summary, workload, "p99", |it| of(it).1);
    vec![upper, workload_line(summary, workload, "p50", |it| of(it).0)]
}

/// The watched servers' names, in the order of the points' values.
fn servers(summary: &Summary) -> impl Iterator<Item = (usize, String)> + '_ {
    let stages = summary.workloads.iter().flat_map(|workload| &workload.stages);
    let most = stages.max_by_key(|stage| stage.targets.len());
    let labels = most.map_or(&[][..], |stage| &stage.targets);
    let names = Names::new(&summary.run);
    labels.iter().map(move |load| names.of(&load.label)).enumerate().take(COLOURS - 2)
}

fn cpu(summary: &Summary) -> Vec<Line> {
    let of_server = |(position, name)| {
        line(summary, name, move |point: &Point| point.target_cpu_percent.get(position).copied())
    };
    let mut lines: Vec<Line> = servers(summary).map(of_server).collect();
    lines.push(line(summary, "generator".to_owned(), |point| point.generator_cpu_percent));
    let host = line(summary, "whole host".to_owned(), |point| point.host_cpu_percent);
    lines.push(Line { dashed: true, ..host });
    lines
}

fn memory(summary: &Summary) -> Vec<Line> {
    let of_server = |(position, name)| {
        line(summary, name, move |point: &Point| point.target_rss_bytes.get(position).map(|it| *it as f64))
    };
    servers(summary).map(of_server).collect()
}

/// The busiest names.
fn threads(summary: &Summary) -> Vec<Line> {
    let mut sums = std::collections::BTreeMap::<&str, f64>::new();
    for (name, cpu) in summary.series.iter().flat_map(|point| &point.thread_cpu_percent) {
        *sums.entry(name).or_default() += cpu;
    }
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let of_name = |(name, _): (&str, f64)| {
        let name = name.to_owned();
        line(summary, quote(&name, 60), move |point| point.thread_cpu_percent.get(&name).copied())
    };
    names.into_iter().take(COLOURS).map(of_name).collect()
}

fn troubles(summary: &Summary) -> Vec<Line> {
    let sum = |of: fn(&WorkloadPoint) -> u64| {
        move |point: &Point| Some(point.workloads.iter().map(of).sum::<u64>() as f64)
    };
    let any = summary.series.iter().flat_map(|point| &point.workloads).any(|it| it.stalls + it.failed > 0);
    if !any {
        return Vec::new();
    }
    let failures = line(summary, "failures".to_owned(), sum(|it| it.failed));
    vec![line(summary, "stalls".to_owned(), sum(|it| it.stalls)), Line { dashed: true, ..failures }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_of_two_seconds_are_a_steady_line() {
        let of = |values: &[Option<f64>]| values.iter().map(|value| (0.0, *value)).collect::<Vec<_>>();
        let read = of(&[Some(3.0), Some(0.0), Some(3.0), Some(0.0), Some(3.0), None, Some(4.0), Some(8.0)]);
        let drawn = [Some(1.5), Some(2.0), Some(1.0), Some(2.0), Some(1.5), None, Some(4.0), Some(8.0)];
        assert_eq!(calmed(&read, &[9, 9, 9, 9, 9, 9, 9, 0]), of(&drawn), "another stage is left alone");
    }
}
