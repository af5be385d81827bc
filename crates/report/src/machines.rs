//! The target's machine: one table for each way in which it was read, with what it did before the load.

use crate::document::{Cell, Fact, Grid, Link, Part, Section, columns};
use crate::quantity::{bit_rate, bytes, count, joined, number, percent, span};
use crate::quote::{LINE, quote};
use crate::stages::leading;
use weir_engine::summary::{MachineFigure, MachineSummary, Summary};
use weir_observe::{Figure, MachineFacts, MachineSource};

/// A URL with five expressions has some two thousand characters.
const LONGEST_URL: usize = 8_000;

/// The section, if a machine was read.
pub(crate) fn section(summary: &Summary) -> Option<Section> {
    let mut parts: Vec<Part> = summary.machines.iter().flat_map(parts).collect();
    parts.extend(stages(summary).map(Part::Grid));
    (!parts.is_empty()).then(|| Section::new("Machine", parts))
}

fn parts(machine: &MachineSummary) -> Vec<Part> {
    let columns = columns![
        word "Name", number "Base", number "Min", number "Max", number "Mean", number "p95", number "Min+",
        number "Max+",
    ];
    let rows = machine.named().map(|(name, figure)| row(name, figure)).to_vec();
    let caption = format!("The target's machine, by {}; 100% is all cores", source(&machine.facts));
    let facts = vec![Fact::new("Read", origin(&machine.facts)), Fact::new("Load", load(machine))];
    let mut parts = vec![Part::Facts(facts), Part::Grid(Grid { caption, columns, rows })];
    if let Some(url) = &machine.graph_url {
        parts.push(Part::Link(Link { label: "The same as curves", url: quote(url, LONGEST_URL) }));
    }
    parts
}

/// The source of the counters, and where it is.
fn origin(facts: &MachineFacts) -> String {
    let address = quote(facts.address.as_deref().unwrap_or_default(), LINE);
    let interfaces = quote(&facts.interfaces.to_string(), LINE);
    let place = match &facts.instance {
        Some(instance) => format!("{} at {address}, instance {}", source(facts), quote(instance, LINE)),
        None if address.is_empty() => format!("{}, this machine", source(facts)),
        None => format!("{} at {address}", source(facts)),
    };
    format!("{place}; tx and rx of {interfaces}")
}

/// What the figures are of.
fn load(machine: &MachineSummary) -> String {
    let base = machine.base_seconds.map_or_else(
        || "no base was taken".to_owned(),
        |seconds| format!("base: the {} before it", span(seconds)),
    );
    let (begin, end) = (number(machine.begin_seconds), number(machine.end_seconds));
    format!("from {begin} s to {end} s of it; {base}; cpu of all cores together")
}

/// One row a stage and machine, where there are several stages.
fn stages(summary: &Summary) -> Option<Grid> {
    let workload = leading(summary).filter(|workload| workload.stages.len() > 1)?;
    let rows = workload.stages.iter().flat_map(|stage| {
        summary.machines.iter().zip(&stage.machines).map(|(machine, usage)| {
            let pair = |name, figure: Option<Figure>| {
                figure.map_or_else(Cell::nothing, |it| Cell::pair(print(name, it.mean), print(name, it.max)))
            };
            let mut cells = vec![Cell::text(count(stage.clients.into())), Cell::text(source(&machine.facts))];
            cells.extend(usage.named().map(|(name, figure)| pair(name, figure)));
            cells
        })
    });
    let rows: Vec<_> = rows.collect();
    let columns = columns![
        number "Clients", word "By", number "cpu", number "memory", number "load1", number "tx",
        number "rx",
    ];
    let caption = "The same over each stage's window, mean / max".to_owned();
    (!rows.is_empty()).then_some(Grid { caption, columns, rows })
}

fn source(facts: &MachineFacts) -> &'static str {
    match facts.source {
        MachineSource::Proc => "/proc",
        MachineSource::NodeExporter => "node_exporter",
        MachineSource::Prometheus => "Prometheus",
    }
}

fn row(name: &'static str, figure: Option<MachineFigure>) -> Vec<Cell> {
    let cell = |value: Option<f64>| value.map_or_else(Cell::nothing, |value| Cell::text(print(name, value)));
    let of = |value: fn(&MachineFigure) -> f64| cell(figure.as_ref().map(value));
    vec![
        Cell::text(name),
        cell(figure.and_then(|it| it.base)),
        of(|it| it.min),
        of(|it| it.max),
        of(|it| it.mean),
        of(|it| it.p95),
        cell(figure.and_then(|it| it.min_increase)),
        cell(figure.and_then(|it| it.max_increase)),
    ]
}

fn print(name: &str, value: f64) -> String {
    match name {
        "cpu" => percent(value),
        "memory" => bytes(value),
        "load1" if value < 10.0 => format!("{value:.2}"),
        "load1" => number(value),
        _ => joined(bit_rate(value)),
    }
}
