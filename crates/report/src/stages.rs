//! The classic table: one row a stage of a workload.

use crate::document::{Cell, Column, Grid, Tone};
use crate::names::Names;
use crate::quantity::{NOTHING, bit_rate, bytes, count, number, percent, seconds};
use weir_engine::summary::{ProcessLoad, Role, Spread, StageSummary, VerdictState, WorkloadSummary};

/// The table of one workload. Where several servers were watched, a row holds the first one's load and the
/// rows below it those of the others. `others` are all workloads of the run.
pub(crate) fn table(workload: &WorkloadSummary, others: &[WorkloadSummary], names: &Names<'_>) -> Grid {
    let timing = Timing::of(workload);
    let mut columns = vec![
        Column::word("Server"),
        Column::number("CPU"),
        Column::number("Mem"),
        Column::number("Conn"),
        Column::number("Expected"),
        match workload.role {
            Role::Play => Column::number("Actual"),
            Role::Publish => Column::number("Actual sent").narrow("Actual\nsent"),
        },
        Column::number("Generator CPU").narrow("Gen.\nCPU"),
        Column::number("Startup p50/p99").narrow("Startup\np50/p99"),
        timing.column(),
    ];
    if workload.role == Role::Play {
        columns.push(Column::number("Stalls"));
    }
    columns.push(Column::word("Verdict"));
    let mut rows: Vec<_> =
        workload.stages.iter().flat_map(|stage| rows(workload.role, stage, timing, names)).collect();
    if !workload.background && others.iter().any(|other| other.background) {
        columns.insert(1, Column::number("Background").narrow("Back-\nground"));
        let servers = workload.stages.iter().flat_map(|stage| {
            let below = stage.targets.len().saturating_sub(1);
            std::iter::once(background(stage, others)).chain(vec![Cell::text(""); below])
        });
        for (row, cell) in rows.iter_mut().zip(servers) {
            row.insert(1, cell);
        }
    }
    Grid { caption: "One row a stage".to_owned(), columns, rows }
}

/// What the run's background carried while a stage lasted: the mean rate of all its streams.
fn background(stage: &StageSummary, others: &[WorkloadSummary]) -> Cell {
    let streams = others.iter().filter(|other| other.background).flat_map(|other| &other.stages);
    let there: Vec<_> = streams
        .filter(|it| stage.begin_seconds < it.end_seconds && it.begin_seconds < stage.end_seconds)
        .collect();
    if there.is_empty() {
        Cell::text("none")
    } else if there.iter().any(|it| it.begin_seconds > stage.begin_seconds + 1.0) {
        Cell::text("in part")
    } else {
        Cell::quantity(bit_rate(there.iter().map(|it| it.actual_bps).sum()))
    }
}

/// The timing figure of a workload's table.
#[derive(Clone, Copy, Debug)]
enum Timing {
    Latency,
    Drift,
    SendLag,
}

impl Timing {
    /// Latency if any frame bore a stamp, drift otherwise; a publisher's own lag.
    fn of(workload: &WorkloadSummary) -> Self {
        let any = |name| workload.stages.iter().any(|stage| stage.figures.spread(name).is_some());
        match workload.role {
            Role::Publish => Self::SendLag,
            Role::Play if !any("latency") && any("drift") => Self::Drift,
            Role::Play => Self::Latency,
        }
    }

    fn column(self) -> Column {
        match self {
            Self::Latency => Column::number("Latency p50/p99").narrow("Latency\np50/p99"),
            Self::Drift => Column::number("Drift p50/p99").narrow("Drift\np50/p99"),
            Self::SendLag => Column::number("Send lag p50/p99").narrow("Send lag\np50/p99"),
        }
    }

    fn figure(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Drift => "drift",
            Self::SendLag => "send_lag",
        }
    }
}

fn rows(role: Role, stage: &StageSummary, timing: Timing, names: &Names<'_>) -> Vec<Vec<Cell>> {
    let mut servers = stage.targets.iter().map(|load| server(load, names));
    let mut first =
        servers.next().unwrap_or_else(|| [Cell::nothing(), Cell::nothing(), Cell::nothing()]).to_vec();
    first.push(connections(stage));
    first.push(stage.expected_bps.map_or_else(Cell::nothing, |bps| Cell::quantity(bit_rate(bps))));
    first.push(measured(stage).map_or_else(Cell::nothing, |it| Cell::quantity(bit_rate(it.actual_bps))));
    first.push(
        stage.generator.as_ref().map_or_else(Cell::nothing, |load| Cell::text(percent(load.cpu_percent))),
    );
    first.push(percentiles(stage.figures.spread("startup")));
    first.push(percentiles(stage.figures.spread(timing.figure())));
    if role == Role::Play {
        let stalls = stage.figures.total("stalls");
        let tone = if stalls > 0.0 { Tone::Doubtful } else { Tone::Plain };
        first.push(measured(stage).map_or_else(Cell::nothing, |_| Cell::text(number(stalls)).tone(tone)));
    }
    first.push(Cell::text(state_word(stage.verdict)).tone(state_tone(stage.verdict)));
    let width = first.len();
    let others = servers.map(|cells| {
        let mut row = cells.to_vec();
        row.resize(width, Cell::text(""));
        row
    });
    std::iter::once(first).chain(others).collect()
}

fn server(load: &ProcessLoad, names: &Names<'_>) -> [Cell; 3] {
    [
        Cell::text(names.of(&load.label)),
        Cell::text(percent(load.cpu_percent)),
        Cell::text(bytes(load.rss_max_bytes as f64)),
    ]
}

/// The stage, if any second of its window was run.
fn measured(stage: &StageSummary) -> Option<&StageSummary> {
    (stage.window_seconds() > 0.0).then_some(stage)
}

/// The clients of the plan; if not all of them played, or nobody knows, those that did before them.
fn connections(stage: &StageSummary) -> Cell {
    let planned = f64::from(stage.clients);
    if measured(stage).is_none() {
        return Cell::share(NOTHING.to_owned(), count(stage.clients.into()));
    }
    if (stage.playing_mean - planned).abs() < (planned * 0.005).max(0.5) {
        return Cell::text(count(stage.clients.into()));
    }
    let playing = stage.playing_mean.max(0.0).round() as u64;
    Cell::share(count(playing), count(stage.clients.into())).tone(Tone::Doubtful)
}

pub(crate) fn percentiles(spread: Option<&Spread>) -> Cell {
    spread.map_or_else(Cell::nothing, |spread| Cell::pair(seconds(spread.p50), seconds(spread.p99)))
}

pub(crate) fn state_word(state: VerdictState) -> &'static str {
    match state {
        VerdictState::Valid => "valid",
        VerdictState::Degraded => "degraded",
        VerdictState::Invalid => "invalid",
    }
}

pub(crate) fn state_tone(state: VerdictState) -> Tone {
    match state {
        VerdictState::Valid => Tone::Good,
        VerdictState::Degraded => Tone::Doubtful,
        VerdictState::Invalid => Tone::Bad,
    }
}
