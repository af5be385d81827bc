//! All figures that a finished run has, by their names: those that clients record, declared where they are recorded, and those that
//! are made of these when a run is over, declared here. Knows no run.

use crate::figure_ratio::FigureRatio;
use crate::ingest;
use crate::summary::units::FigureUnit;
use weir_clients::meant;
use weir_metrics::{Better, Figure, FigureGroup, Kind, common};
use weir_protocols::PROTOCOLS;

/// A figure that is made of others when a run is over.
#[derive(Clone, Copy, Debug)]
pub struct RunFigure {
    /// Its name.
    pub name: &'static str,
    /// What it is called in tables of runs; empty if it stands only in lists.
    pub title: &'static str,
    /// What it is in.
    pub unit: FigureUnit,
    /// Which way it is better; none if it is neither.
    pub better: Option<Better>,
}

/// Declares the figures, and a list of all.
macro_rules! run_figures {
    ($($vis:vis $id:ident = $name:literal, $title:literal, $unit:ident $(, $better:ident)?;)*) => {
        $(#[doc = concat!("`", $name, "`.")]
        $vis const $id: RunFigure = RunFigure {
            name: $name,
            title: $title,
            unit: FigureUnit::$unit,
            better: run_figures!(@better $($better)?),
        };)*
        const OF_RUNS: &[RunFigure] = &[$($id),*];
    };
    (@better) => { None };
    (@better $better:ident) => { Some(Better::$better) };
}

run_figures! {
    pub BIT_RATE = "bitrate", "Received", BitsPerSecond, Higher;
    pub FRAME_RATE = "fps", "FPS", Count, Higher;
    pub PUBLISHED = "published", "Published", Count;
    pub ACKNOWLEDGED = "acknowledged", "Acknowledged", Count, Higher;
    pub DELIVERED = "delivered", "Received", Count, Higher;
    pub PAYLOAD = "payload", "Bytes a payload", Bytes, Lower;
    pub ROW = "row", "Bytes a row", Bytes, Lower;
    pub PROCESS_CPU = "cpu", "CPU", Percent, Lower;
    pub PROCESS_MEMORY = "memory", "Memory", Bytes, Lower;
    // The time until all clients were connected again after a restart of the server.
    pub RECONNECTED = "restart.reconnected", "Connected again", Seconds, Lower;
}

/// What stands behind `cpu.` for weir itself: its CPU is not the target's, and neither better nor worse.
pub const WEIR: &str = "weir";

/// The declarations of what clients record, those of all clients first.
fn of_clients() -> impl Iterator<Item = &'static Figure> {
    let own = PROTOCOLS.iter().map(|protocol| protocol.schema).chain([ingest::SCHEMA]);
    common::FIGURES.iter().chain(own.flat_map(|schema| schema.figures().skip(common::FIGURES.len())))
}

/// The declaration of a figure that clients record, by its name or by its key in machine-readable output.
pub fn figure(name: &str) -> Option<&'static Figure> {
    of_clients().find(|figure| figure.is_called(name))
}

/// What a figure that clients record is called in tables of runs; empty if it stands only in lists.
pub fn title(name: &str) -> &'static str {
    figure(name).and_then(|figure| figure.title).unwrap_or_default()
}

/// What is known of a name that answers use: `startup.p99`, `lost.ratio`, `fps`, `cpu.nginx`.
enum Declaration {
    OfClients(&'static Figure),
    Ratio(FigureRatio),
    OfRuns(RunFigure),
}

/// What is declared by a name without the workload and the stage that may stand before it: by the longest end that is known.
fn declaration(name: &str) -> Option<Declaration> {
    let ends = std::iter::successors(Some(name), |rest| rest.split_once('.').map(|(_, rest)| rest));
    ends.into_iter().find_map(|end| {
        let of_runs = OF_RUNS.iter().find(|it| it.name == end).map(|it| Declaration::OfRuns(*it));
        let ratio = || end.strip_suffix(".ratio").and_then(FigureRatio::named).map(Declaration::Ratio);
        let of_clients = || {
            let percentile = [".p50", ".p99"].into_iter().find_map(|it| end.strip_suffix(it));
            figure(percentile.unwrap_or(end)).map(Declaration::OfClients)
        };
        of_runs.or_else(ratio).or_else(of_clients)
    })
}

/// A figure of a process is called by it, and by the process: `cpu.nginx`, `2.memory.nginx` of stage 2. No workload's name stands
/// before it: processes work for all.
fn of_process(name: &str) -> Option<(RunFigure, &str)> {
    let without_stage = name.split_once('.').filter(|(stage, _)| stage.parse::<u16>().is_ok());
    let (figure, process) = without_stage.map_or(name, |(_, rest)| rest).split_once('.')?;
    let figure = [PROCESS_CPU, PROCESS_MEMORY].into_iter().find(|it| it.name == figure)?;
    Some((figure, process))
}

/// Whether a figure of runs is the CPU of weir itself.
pub fn is_cpu_of_weir(name: &str) -> bool {
    of_process(name).is_some_and(|(figure, process)| figure.name == PROCESS_CPU.name && process == WEIR)
}

/// Which way the figure of this name is better; a workload and a stage may stand before its own name. None if it is neither.
pub fn better(name: &str) -> Option<Better> {
    if let Some((figure, _)) = of_process(name) {
        return figure.better.filter(|_| !is_cpu_of_weir(name));
    }
    match declaration(name)? {
        Declaration::OfClients(figure) => figure.better,
        Declaration::Ratio(ratio) => Some(ratio.better()),
        Declaration::OfRuns(figure) => figure.better,
    }
}

/// The better values of a figure that somebody ranks by: also of one that is neither better nor worse by itself. More frames and
/// bytes are better then, and less of anything else.
pub fn better_if_asked(name: &str) -> Better {
    let is_delivered = |figure: &Figure| {
        figure.kind == Kind::Counter && matches!(figure.group, FigureGroup::Media | FigureGroup::Pictures)
    };
    match declaration(name) {
        Some(Declaration::OfClients(figure)) if of_process(name).is_none() && is_delivered(figure) => {
            Better::Higher
        }
        _ => better(name).unwrap_or(Better::Lower),
    }
}

/// Whether runs may have a figure of this name.
///
/// # Errors
/// They have not: the name that was meant, if one resembles it.
pub fn check(name: &str) -> Result<(), Option<&'static str>> {
    let is_declared = match declaration(name) {
        // These have the name of a process behind theirs.
        Some(Declaration::OfRuns(figure)) => ![PROCESS_CPU.name, PROCESS_MEMORY.name].contains(&figure.name),
        declared => declared.is_some(),
    };
    if of_process(name).is_some() || is_declared {
        return Ok(());
    }
    let of_figure = name.strip_suffix(".p50").or_else(|| name.strip_suffix(".p99")).unwrap_or(name);
    let names = of_clients().map(|it| it.name).chain(OF_RUNS.iter().map(|it| it.name));
    Err(meant(of_figure, names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_better_one_way_whatever_stands_before_its_name() {
        for (name, expected) in [
            ("startup.p99", Some(Better::Lower)),
            ("play.2.startup.p99", Some(Better::Lower)),
            ("bitrate", Some(Better::Higher)),
            ("viewers.bitrate.ratio", Some(Better::Higher)),
            ("cpu.nginx: worker", Some(Better::Lower)),
            ("2.memory.nginx", Some(Better::Lower)),
            ("restart.reconnected", Some(Better::Lower)),
            ("mqtt.acknowledged", Some(Better::Higher)),
            ("cpu.weir", None),
            ("2.cpu.weir", None),
            ("published", None),
            ("send_lag.p99", None),
            ("unstalls", None),
        ] {
            assert_eq!(better(name), expected, "{name}");
        }
    }

    #[test]
    fn more_of_what_is_delivered_is_better_for_who_asks_and_less_of_anything_else() {
        for name in [
            "bitrate",
            "play.2.fps",
            "playing",
            "units",
            "play.media",
            "frames",
            "bitrate.ratio",
            "delivered",
        ] {
            assert_eq!(better_if_asked(name), Better::Higher, "{name}");
        }
        for name in [
            "startup.p99",
            "cpu.nginx",
            "cpu.weir",
            "lost",
            "failed.ratio",
            "edge_picture_age.p99",
            "cpu.media",
            "received",
            "",
        ] {
            assert_eq!(better_if_asked(name), Better::Lower, "{name}");
        }
    }

    #[test]
    fn a_name_that_no_run_can_have_is_refused_with_what_was_meant() {
        for name in
            ["startup.p99", "play.2.lost", "cpu.x", "published", "mqtt.refused", "ts.lost_packets", "lag.p50"]
        {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        assert_eq!(check("startupp.p99"), Err(Some("startup")));
        assert!(check("server.cpu").is_err() && check("memory").is_err());
        assert_eq!(check("wholly.else"), Err(None));
    }
}
