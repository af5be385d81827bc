//! Which lines are drawn: the summary's seconds as plots.

use crate::headline::outages;
use crate::names::Names;
use crate::plot::{Across, Band, Event, Hue, Line, Plot, nines};
use crate::quantity::{BIT_RATE, BYTES, COUNT, PERCENT, SECONDS, Units, count, percent};
use crate::quote::quote;
use crate::restarts;
use crate::stages::leading;
use std::collections::BTreeMap;
use weir_engine::summary::{
    Outage, OutageKind, Point, Role, Spread, Summary, WorkloadPoint, WorkloadSummary,
};
use weir_metrics::Failure;
use weir_metrics::common::names;

/// The note under the plot of a bit rate.
pub(crate) const CALMED: &str = "Smoothed over three seconds.";

/// The note under percentiles.
const PERCENTILES: &str = "At 99% one value in a hundred is higher; the last point is the highest.";

/// Seconds in which clients came: of fewer there is no course.
const FEWEST_SECONDS: usize = 3;

/// Lines of percentiles that a plot has room for.
const MOST_STAGES: usize = 5;

/// Lines of threads that a plot has room for.
const MOST_THREADS: usize = 6;

/// Lines of servers that a plot has room for.
const MOST_SERVERS: usize = 4;

/// Lines of failures that a plot has room for.
const MOST_KINDS: usize = 4;

/// Outages that a plot has room for.
const MOST_SILENCES: usize = 4;

/// All plots of a run; those of which nothing was measured draw nothing.
pub(crate) fn plots(summary: &Summary) -> Vec<Plot> {
    let bands = bands(summary);
    let events: Vec<_> = restarts::events(summary).into_iter().chain(silences(summary)).collect();
    let seconds = summary.series.last().map_or(0.0, |point| f64::from(point.second) + 1.0);
    let plot = |title: &str, units: Units, lines: Vec<Line>| {
        let (bands, events, across) = (bands.clone(), events.clone(), Across::Time);
        Plot { bands, events, across, ..Plot::new(title.to_owned(), units, lines, seconds) }
    };
    let mut plots = Vec::new();
    for (position, workload) in summary.workloads.iter().enumerate() {
        let title = |title: &str| match &summary.workloads[..] {
            [_] => title.to_owned(),
            _ => format!("{title}: {}", quote(&workload.name, 40)),
        };
        let over_time = |name: &str, figure| {
            let lines = percentiles(summary, position, figure);
            Plot { robust: true, ..plot(&title(name), SECONDS, lines) }
        };
        let by_nines = |name: &str, figure| by_percentile(workload, title(name), figure);
        plots.push(plot(&title("Clients"), COUNT, clients(summary, position)));
        if workload.stages.iter().any(|stage| stage.messages.is_some()) {
            plots.push(plot(&title("Messages a second"), COUNT, messages(summary, position)));
        }
        plots.push(Plot {
            note: CALMED.to_owned(),
            robust: true,
            ..plot(&title("Bit rate"), BIT_RATE, rates(summary, position))
        });
        // A ramp's few seconds on the axis of the whole run are no picture: their percentiles are one.
        if starts_throughout(summary, position) {
            plots.push(over_time("Startup", names::STARTUP));
        }
        plots.push(by_nines("Startup by percentile", names::STARTUP));
        plots.push(over_time("Latency", names::LATENCY));
        plots.push(by_nines("Latency by percentile", names::LATENCY));
        plots.push(over_time("Delay drift", names::DRIFT));
    }
    plots.extend([
        plot("Stalls and failures in each second", COUNT, troubles(summary)),
        Plot { robust: true, ..plot("CPU, 100% is one core", PERCENT, cpu(summary)) },
        Plot {
            robust: true,
            note: hottest(summary).unwrap_or_default(),
            ..plot("CPU of the target's threads", PERCENT, threads(summary))
        },
        plot("Memory of the target", BYTES, memory(summary)),
        // Of many cores: beside it the lines above would lie on the axis.
        plot(
            "CPU of the whole host",
            PERCENT,
            vec![line(summary, "whole host", Hue::Plan, |point| point.host_cpu_percent)],
        ),
    ]);
    plots
}

/// When viewers began to be without something, where the run did not make that itself.
fn silences(summary: &Summary) -> impl Iterator<Item = Event> {
    let event = |outage: &Outage| {
        let label = match outage.kind {
            OutageKind::Media => "no media",
            OutageKind::Pictures => "no picture",
            OutageKind::Sound => "no sound",
        };
        Event { at: outage.from_seconds, label, words: outage.line() }
    };
    outages(summary).take(MOST_SILENCES).map(event)
}

/// Whether clients began to play in half of the seconds.
fn starts_throughout(summary: &Summary, workload: usize) -> bool {
    let points = || summary.series.iter().filter_map(|point| point.workloads.get(workload));
    let began = points().filter(|it| it.startup_p99_seconds.is_some()).count();
    began >= FEWEST_SECONDS && 2 * began >= points().filter(|it| it.planned > 0).count()
}

/// A distribution of each stage, or of the whole run where there is one stage or none.
fn by_percentile(workload: &WorkloadSummary, title: String, figure: &str) -> Plot {
    let of_stages = workload.stages.iter().filter_map(|stage| {
        Some((several_clients(stage.clients), stage.figures.spread(figure).filter(|it| it.count > 1)?))
    });
    let mut spreads: Vec<(String, &Spread)> = of_stages.collect();
    if let [(name, _)] = &mut spreads[..] {
        *name = "all".to_owned();
    }
    // The last stages: there the target has most to do.
    let spreads = spreads.split_off(spreads.len().saturating_sub(MOST_STAGES));
    let length = spreads.iter().map(|(_, spread)| furthest(spread)).fold(1.0, f64::max);
    let hue = |position: usize| if spreads.len() == 1 { Hue::Done } else { Hue::Series(position) };
    let line = |(at, (name, spread)): (usize, &(String, &Spread))| {
        Line::new(name, hue(at), percentile_points(spread))
    };
    let lines = spreads.iter().enumerate().map(line).collect();
    let note = PERCENTILES.to_owned();
    Plot { across: Across::Nines, note, ..Plot::new(title, SECONDS, lines, length) }
}

fn several_clients(clients: u32) -> String {
    crate::quantity::several(clients.into(), "client")
}

/// Where the highest value stands on an axis of nines.
fn furthest(spread: &Spread) -> f64 {
    (spread.count as f64).log10()
}

/// The percentiles that this many values support, and the highest value.
fn percentile_points(spread: &Spread) -> Vec<(f64, Option<f64>)> {
    let known = [
        (0.0, spread.min),
        (0.5, spread.p50),
        (0.9, spread.p90),
        (0.95, spread.p95),
        (0.99, spread.p99),
        (0.999, spread.p999),
    ];
    let end = furthest(spread);
    let there = known
        .into_iter()
        .map(|(quantile, value)| (nines(quantile), value))
        .filter(|(at, _)| *at < end - 0.01);
    there.chain([(end, spread.max)]).map(|(at, value)| (at, Some(value))).collect()
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
fn line(summary: &Summary, name: impl Into<String>, hue: Hue, value: impl Fn(&Point) -> Option<f64>) -> Line {
    // A second's value stands at its middle.
    let points = summary.series.iter().map(|point| (f64::from(point.second) + 0.5, value(point)));
    Line::new(name, hue, points.collect())
}

/// The same of one workload.
fn workload_line(
    summary: &Summary,
    workload: usize,
    (name, hue): (&str, Hue),
    value: impl Fn(&WorkloadPoint) -> Option<f64>,
) -> Line {
    line(summary, name, hue, |point| value(point.workloads.get(workload)?))
}

fn clients(summary: &Summary, workload: usize) -> Vec<Line> {
    let planned = workload_line(summary, workload, ("planned", Hue::Plan), |it| Some(it.planned.into()));
    let playing = match summary.workloads[workload].role {
        Role::Play => "playing",
        Role::Publish => "publishing",
        Role::Ingest => "saving",
    };
    let playing = workload_line(summary, workload, (playing, Hue::Done), |it| Some(it.playing as f64));
    // What was planned is drawn over what came of it, so that both are seen where they agree.
    vec![playing, planned.dashed()]
}

/// Messages of each second, beside those that were offered where that is known.
fn messages(summary: &Summary, workload: usize) -> Vec<Line> {
    let name = if summary.workloads[workload].role == Role::Publish { "sent" } else { "delivered" };
    let sent = workload_line(summary, workload, (name, Hue::Done), |it| Some(it.messages?.actual_per_second));
    let offered =
        workload_line(summary, workload, ("offered", Hue::Plan), |it| it.messages?.offered_per_second);
    vec![sent, offered.dashed()]
}

fn rates(summary: &Summary, workload: usize) -> Vec<Line> {
    let expected = workload_line(summary, workload, ("expected", Hue::Plan), |it| it.expected_bps);
    let actual = workload_line(summary, workload, ("actual", Hue::Done), |it| Some(it.actual_bps));
    let planned: Vec<_> =
        summary.series.iter().map(|point| point.workloads.get(workload).map(|it| it.planned)).collect();
    let calm = |line: Line| Line { points: calmed(&line.points, &planned), ..line };
    vec![calm(actual), calm(expected).dashed()]
}

/// The mean of each value, counted twice, and its neighbours in which as many clients are planned: a keyframe every other
/// second is no wave then. A neighbour that is not there is taken to be like the other one. Two seconds or more of nothing stay
/// what they are, and are no neighbours of what is beside them: a blackout is no dip.
pub(crate) fn calmed<T: PartialEq>(points: &[(f64, Option<f64>)], planned: &[T]) -> Vec<(f64, Option<f64>)> {
    let is_nothing = |at: Option<usize>| at.and_then(|at| points.get(at)).is_some_and(|it| it.1 == Some(0.0));
    let is_out =
        |at: usize| is_nothing(Some(at)) && (is_nothing(at.checked_sub(1)) || is_nothing(Some(at + 1)));
    let at = |position: usize, other: Option<usize>| {
        let other =
            other.filter(|other| planned.get(*other) == Some(&planned[position]) && !is_out(*other))?;
        points.get(other)?.1
    };
    let mean = |position: usize| {
        let value = points[position].1?;
        if is_out(position) {
            return Some(value);
        }
        let (before, after) = (at(position, position.checked_sub(1)), at(position, Some(position + 1)));
        let (before, after) = (before.or(after).unwrap_or(value), after.or(before).unwrap_or(value));
        Some((before + 2.0 * value + after) / 4.0)
    };
    (0..points.len()).map(|position| (points[position].0, mean(position))).collect()
}

fn percentiles(summary: &Summary, workload: usize, figure: &str) -> Vec<Line> {
    let upper = workload_line(summary, workload, ("p99", Hue::Tail), |it| it.percentiles(figure).1);
    vec![upper, workload_line(summary, workload, ("p50", Hue::Median), |it| it.percentiles(figure).0)]
}

/// The watched servers' names, in the order of the points' values.
fn servers(summary: &Summary) -> impl Iterator<Item = (usize, String)> + '_ {
    let stages = summary.workloads.iter().flat_map(|workload| &workload.stages);
    let most = stages.max_by_key(|stage| stage.targets.len());
    let labels = most.map_or(&[][..], |stage| &stage.targets);
    let names = Names::new(&summary.run);
    labels.iter().map(move |load| names.of(&load.label)).enumerate().take(MOST_SERVERS)
}

fn cpu(summary: &Summary) -> Vec<Line> {
    let of_server = |(position, name): (usize, String)| {
        // A server that is weir itself, such as its origin, is no generator.
        let name = if name == "weir" { "weir origin".to_owned() } else { name };
        line(summary, name, Hue::Target(position), move |point| {
            point.target_cpu_percent.get(position).copied()
        })
    };
    let mut lines: Vec<Line> = servers(summary).map(of_server).collect();
    lines.push(line(summary, "generator", Hue::Generator, |point| point.generator_cpu_percent));
    lines
}

fn memory(summary: &Summary) -> Vec<Line> {
    let of_server = |(position, name)| {
        let value = move |point: &Point| point.target_rss_bytes.get(position).map(|it| *it as f64);
        line(summary, name, Hue::Target(position), value)
    };
    servers(summary).map(of_server).collect()
}

/// The busiest names, the busiest first.
fn threads(summary: &Summary) -> Vec<Line> {
    let mut sums = BTreeMap::<&str, f64>::new();
    for (name, cpu) in summary.series.iter().flat_map(|point| &point.thread_cpu_percent) {
        *sums.entry(name).or_default() += cpu;
    }
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let of_name = |(rank, (name, _)): (usize, (&str, f64))| {
        let name = name.to_owned();
        let value = {
            let name = name.clone();
            move |point: &Point| point.thread_cpu_percent.get(&name).copied()
        };
        line(summary, quote(&name, 60), Hue::Thread(rank), value)
    };
    names.into_iter().take(MOST_THREADS).enumerate().map(of_name).collect()
}

/// Which single thread had most to do in any stage.
fn hottest(summary: &Summary) -> Option<String> {
    let stages = summary.workloads.iter().flat_map(|workload| &workload.stages);
    let threads = stages.flat_map(|stage| {
        let threads = stage.targets.iter().flat_map(|target| &target.threads);
        threads.map(move |thread| (stage.clients, thread))
    });
    let (clients, hottest) =
        threads.max_by(|a, b| a.1.cpu_percent_busiest.total_cmp(&b.1.cpu_percent_busiest))?;
    Some(format!(
        "Sums over threads of a name. The hottest thread: {}, {} of a core at {}.",
        quote(&hottest.name, 32),
        percent(hottest.cpu_percent_busiest),
        several_clients(clients),
    ))
}

/// Stalls, and failures by kind, the commonest first.
fn troubles(summary: &Summary) -> Vec<Line> {
    let any = summary.series.iter().flat_map(|point| &point.workloads).any(|it| it.stalls + it.failed > 0);
    if !any {
        return Vec::new();
    }
    let sum = |point: &Point, of: &dyn Fn(&WorkloadPoint) -> u64| {
        Some(point.workloads.iter().map(of).sum::<u64>() as f64)
    };
    let mut kinds = BTreeMap::<Failure, u64>::new();
    for (kind, clients) in summary.series.iter().flat_map(|it| &it.workloads).flat_map(|it| &it.failures) {
        *kinds.entry(*kind).or_default() += clients;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, clients)| std::cmp::Reverse(*clients));
    let mut lines = vec![line(summary, "stalls", Hue::Doubtful, |point| sum(point, &|it| it.stalls))];
    let named: Vec<Failure> = kinds.iter().take(MOST_KINDS).map(|(kind, _)| *kind).collect();
    for (rank, kind) in named.iter().enumerate() {
        let of = |it: &WorkloadPoint| it.failures.get(kind).copied().unwrap_or(0);
        lines.push(line(summary, kind.key().replace('_', " "), Hue::Bad(rank), |point| sum(point, &of)));
    }
    // Of runs that were recorded without kinds, and of kinds beyond those.
    let rest = |it: &WorkloadPoint| {
        it.failed.saturating_sub(named.iter().filter_map(|kind| it.failures.get(kind)).sum())
    };
    let (others, hue) =
        if named.is_empty() { ("failures", Hue::Bad(0)) } else { ("others", Hue::Bad(MOST_KINDS)) };
    lines.push(line(summary, others, hue, |point| sum(point, &rest)));
    // A line that is zero throughout says nothing.
    lines.retain(|line| line.points.iter().any(|(_, value)| value.is_some_and(|it| it > 0.0)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_alternates_from_second_to_second_is_a_steady_line() {
        let of = |values: &[Option<f64>]| values.iter().map(|value| (0.0, *value)).collect::<Vec<_>>();
        let read = of(&[Some(3.0), Some(0.0), Some(3.0), Some(0.0), Some(3.0), None, Some(4.0), Some(8.0)]);
        let drawn = [Some(1.5), Some(1.5), Some(1.5), Some(1.5), Some(1.5), None, Some(4.0), Some(8.0)];
        assert_eq!(calmed(&read, &[9, 9, 9, 9, 9, 9, 9, 0]), of(&drawn), "another stage is left alone");
    }

    #[test]
    fn a_blackout_is_no_dip() {
        let of = |values: [f64; 8]| values.map(|value| (0.0, Some(value)));
        let read = of([4.0, 8.0, 4.0, 0.0, 0.0, 0.0, 6.0, 6.0]);
        assert_eq!(calmed(&read, &[9; 8]), of([6.0, 6.0, 6.0, 0.0, 0.0, 0.0, 6.0, 6.0]));
    }

    #[test]
    fn a_distribution_has_no_more_percentiles_than_values() {
        let spread = Spread {
            count: 40,
            p50: 2.0,
            p90: 3.0,
            p95: 4.0,
            p99: 9.0,
            p999: 9.0,
            max: 9.0,
            min: 1.0,
            mean: 2.2,
        };
        let values: Vec<_> = percentile_points(&spread).into_iter().filter_map(|(_, value)| value).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 9.0], "of 40 values the 99th percentile is the highest");
    }
}
