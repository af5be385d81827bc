//! The classic table: one row a stage of a workload.

use crate::document::{Cell, Column, Grid, Tone};
use crate::names::Names;
use crate::quantity::{NOTHING, TIE, bit_rate, bytes, count, number, percent, seconds, share};
use weir_engine::summary::{ProcessLoad, Role, Spread, StageSummary, Summary, VerdictState, WorkloadSummary};
use weir_metrics::common::names;

/// The table of one workload. Where several servers were watched, a row holds the first one's load and the
/// rows below it those of the others. `others` are all workloads of the run.
pub(crate) fn table(workload: &WorkloadSummary, others: &[WorkloadSummary], names: &Names<'_>) -> Grid {
    let timing = Timing::of(workload);
    let mut columns = vec![
        Column::word("Server").both(),
        Column::number("CPU"),
        Column::number("Mem").second(),
        Column::number("Conn").both(),
    ];
    let messages = Messages::of(workload);
    columns.extend(messages.columns(workload.role));
    columns.extend([
        Column::number("Generator CPU").narrow("Gen.\nCPU").second(),
        Column::number("Startup p50/p99").narrow("Startup\np50/p99").second(),
        timing.column().second(),
    ]);
    if workload.role == Role::Play {
        columns.push(Column::number("Stalls").second());
    }
    let has = Has::of(workload);
    columns.extend(has.columns());
    columns.push(Column::word("Verdict"));
    let mut rows: Vec<_> = workload
        .stages
        .iter()
        .flat_map(|stage| rows(workload.role, stage, (timing, has, messages), names))
        .collect();
    if !workload.background && others.iter().any(|other| other.background) {
        columns.insert(1, Column::number("Background").narrow("Back-\nground"));
        let servers = workload.stages.iter().flat_map(|stage| {
            let below = (stage.targets.len() + stage.unheard.len()).saturating_sub(1);
            std::iter::once(background(stage, others)).chain(vec![Cell::text(""); below])
        });
        for (row, cell) in rows.iter_mut().zip(servers) {
            row.insert(1, cell);
        }
    }
    Grid { caption: "One row a stage; CPU: 100% is one core".to_owned(), columns, rows }
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
    /// With how far it may be off, if two clocks measured it and that is known.
    Latency(Option<f64>),
    Drift,
    SendLag,
}

impl Timing {
    /// Latency if any frame bore a stamp, drift otherwise; a publisher's own lag.
    fn of(workload: &WorkloadSummary) -> Self {
        let any = |name| workload.stages.iter().any(|stage| stage.figures.spread(name).is_some());
        match workload.role {
            Role::Publish => Self::SendLag,
            Role::Play if !any(names::LATENCY) && any(names::DRIFT) => Self::Drift,
            Role::Play | Role::Ingest => {
                Self::Latency(workload.clock_uncertainty_seconds.filter(|uncertainty| *uncertainty > 0.0))
            }
        }
    }

    fn column(self) -> Column {
        match self {
            Self::Latency(_) => Column::number("Latency p50/p99").narrow("Latency\np50/p99"),
            Self::Drift => Column::number("Drift p50/p99").narrow("Drift\np50/p99"),
            Self::SendLag => Column::number("Send lag p50/p99").narrow("Send lag\np50/p99"),
        }
    }

    fn figure(self) -> &'static str {
        match self {
            Self::Latency(_) => names::LATENCY,
            Self::Drift => names::DRIFT,
            Self::SendLag => names::SEND_LAG,
        }
    }

    fn cell(self, stage: &StageSummary) -> Cell {
        match (self, stage.figures.spread(self.figure())) {
            (Self::Latency(Some(uncertainty)), Some(spread)) => between_machines(spread, uncertainty),
            (_, spread) => percentiles(spread),
        }
    }
}

/// Percentiles that two clocks measured, which may be this far apart. Below ten times that the bound stands in the place of the value.
fn between_machines(spread: &Spread, uncertainty: f64) -> Cell {
    let bound = format!("±{TIE}{}", seconds(uncertainty));
    let is_known = |value: f64| value.abs() >= 10.0 * uncertainty;
    match (is_known(spread.p50), is_known(spread.p99)) {
        (true, true) => Cell::pair(seconds(spread.p50), format!("{} {bound}", seconds(spread.p99))),
        (false, true) => Cell::pair(bound, seconds(spread.p99)).tone(Tone::Doubtful),
        _ => Cell::text(bound).tone(Tone::Doubtful),
    }
}

/// What else the stages of viewers tell, where their units have numbers: losses, broken frames and the frame rate.
#[derive(Clone, Copy, Debug)]
struct Has {
    losses: bool,
    broken: bool,
    frame_rate: bool,
}

/// The end of the name under which a protocol counts frames that lack something.
const BROKEN: &str = ".frames_broken";

impl Has {
    fn of(workload: &WorkloadSummary) -> Self {
        let losses = workload.role == Role::Play && workload.total.total(names::NUMBERED) > 0.0;
        let frame_rate = workload.stages.iter().any(|stage| stage.source_fps.is_some());
        Self {
            losses,
            broken: losses && workload.total.ending(BROKEN).is_some(),
            frame_rate: losses && frame_rate,
        }
    }

    fn columns(self) -> impl Iterator<Item = Column> {
        let columns = [
            (self.losses, Column::number("Lost")),
            (self.broken, Column::number("Broken frames").narrow("Broken\nframes")),
            (self.frame_rate, Column::number("FPS")),
        ];
        columns.into_iter().filter_map(|(has, column)| has.then_some(column))
    }

    fn cells(self, stage: &StageSummary) -> impl Iterator<Item = Cell> {
        let measured = measured(stage);
        let lost = measured.and_then(|stage| stage.figures.lost_ratio()).map(doubtful_share);
        let broken = measured.and_then(|stage| {
            let frames = stage.figures.total(names::FRAMES);
            (frames > 0.0).then(|| doubtful_share(stage.figures.ending(BROKEN).unwrap_or(0.0) / frames))
        });
        let rate = measured.and_then(|stage| {
            let (fps, source) = (stage.fps()?, stage.source_fps?);
            let cell = Cell::share(format!("{fps:.1}"), format!("{source:.1}"));
            Some(if fps < 0.98 * source { cell.tone(Tone::Doubtful) } else { cell })
        });
        let cells = [(self.losses, lost), (self.broken, broken), (self.frame_rate, rate)];
        cells.into_iter().filter_map(|(has, cell)| has.then(|| cell.unwrap_or_else(Cell::nothing)))
    }
}

/// A share of which there should be nothing.
fn doubtful_share(ratio: f64) -> Cell {
    let cell = Cell::text(share(ratio));
    if ratio > 0.0 { cell.tone(Tone::Doubtful) } else { cell }
}

/// How the load of a workload's stages is shown: in messages if it has any, else in bits.
#[derive(Clone, Copy, Debug)]
struct Messages {
    are_there: bool,
    offered: bool,
}

impl Messages {
    fn of(workload: &WorkloadSummary) -> Self {
        let rates = || workload.stages.iter().filter_map(|stage| stage.messages);
        Self {
            are_there: rates().next().is_some(),
            offered: rates().any(|rate| rate.offered_per_second.is_some()),
        }
    }

    fn columns(self, role: Role) -> Vec<Column> {
        let sent = match role {
            Role::Play | Role::Ingest => Column::number("Actual"),
            Role::Publish => Column::number("Actual sent").narrow("Actual\nsent"),
        };
        if !self.are_there {
            return vec![Column::number("Expected"), sent];
        }
        let messages = match role {
            Role::Play | Role::Ingest => Column::number("Delivered msg/s").narrow("Delivered\nmsg/s"),
            Role::Publish => Column::number("Sent msg/s").narrow("Sent\nmsg/s"),
        };
        let offered = self.offered.then(|| Column::number("Offered msg/s").narrow("Offered\nmsg/s"));
        offered.into_iter().chain([messages, sent.second()]).collect()
    }

    fn cells(self, stage: &StageSummary) -> Vec<Cell> {
        let actual = measured(stage).map_or_else(Cell::nothing, |it| {
            let cell = Cell::quantity(bit_rate(it.actual_bps));
            // Media stopped, or began, in the window: the rate is of no state of the target.
            if it.window_is_void { cell.tone(Tone::Bad) } else { cell }
        });
        if !self.are_there {
            return vec![
                stage.expected_bps.map_or_else(Cell::nothing, |bps| Cell::quantity(bit_rate(bps))),
                actual,
            ];
        }
        let offered = stage.messages.and_then(|rate| rate.offered_per_second);
        let sent = stage.messages.map_or_else(Cell::nothing, |rate| {
            let cell = Cell::text(number(rate.actual_per_second));
            let is_short = offered.is_some_and(|offered| rate.actual_per_second < 0.98 * offered);
            if is_short { cell.tone(Tone::Doubtful) } else { cell }
        });
        let offered = offered.map_or_else(Cell::nothing, |rate| Cell::text(number(rate)));
        self.offered.then_some(offered).into_iter().chain([sent, actual]).collect()
    }
}

fn rows(
    role: Role,
    stage: &StageSummary,
    (timing, has, messages): (Timing, Has, Messages),
    names: &Names<'_>,
) -> Vec<Vec<Cell>> {
    let unheard = stage.unheard.iter().map(|label| {
        [Cell::text(names.of_unheard(label)), Cell::text("unknown").tone(Tone::Doubtful), Cell::nothing()]
    });
    let mut servers = stage.targets.iter().map(|load| server(load, names)).chain(unheard);
    let mut first =
        servers.next().unwrap_or_else(|| [Cell::nothing(), Cell::nothing(), Cell::nothing()]).to_vec();
    first.push(connections(stage));
    first.extend(messages.cells(stage));
    first.push(
        stage.generator.as_ref().map_or_else(Cell::nothing, |load| Cell::text(percent(load.cpu_percent))),
    );
    first.push(percentiles(stage.figures.spread(names::STARTUP)));
    first.push(timing.cell(stage));
    if role == Role::Play {
        let stalls = stage.figures.total(names::STALLS);
        let tone = if stalls > 0.0 { Tone::Doubtful } else { Tone::Plain };
        first.push(measured(stage).map_or_else(Cell::nothing, |_| Cell::text(number(stalls)).tone(tone)));
    }
    first.extend(has.cells(stage));
    first.push(if measured(stage).is_none() && stage.clients > 0 {
        Cell::text("not reached").tone(Tone::Doubtful)
    } else if stage.window_is_void && stage.verdict < VerdictState::Invalid {
        Cell::text("no window").tone(Tone::Bad)
    } else {
        Cell::text(state_word(stage.verdict)).tone(state_tone(stage.verdict))
    });
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

/// The planned clients; if not all of them played, or that is unknown, those that did come first.
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
        VerdictState::NothingMeasured => "nothing measured",
        VerdictState::Invalid => "invalid",
    }
}

pub(crate) fn state_tone(state: VerdictState) -> Tone {
    match state {
        VerdictState::Valid => Tone::Good,
        VerdictState::Degraded => Tone::Doubtful,
        VerdictState::NothingMeasured | VerdictState::Invalid => Tone::Bad,
    }
}

/// The stages that structure figures which all workloads share: those of the workload that has the most,
/// viewers before publishers.
pub(crate) fn leading(summary: &Summary) -> Option<&WorkloadSummary> {
    let rank = |workload: &&WorkloadSummary| {
        (!workload.background, workload.stages.len(), workload.role == Role::Play)
    };
    // `max_by_key` takes the last of equals; the scenario's first is meant.
    summary.workloads.iter().rev().max_by_key(rank)
}
