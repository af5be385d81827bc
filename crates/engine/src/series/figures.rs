//! The figures of a run that a series compares.

use super::summary::{FigureUnit, SeriesFigure};
use crate::summary::{Role, StageSummary, Summary, Value, WorkloadSummary};

/// The figures of a run, those with titles first, in the order of the table.
pub(super) fn figures(summary: &Summary) -> Vec<(SeriesFigure, f64)> {
    let load: Vec<_> = summary.workloads.iter().filter(|workload| !workload.background).collect();
    let mut found = FigureList::default();
    for (at, workload) in load.iter().enumerate() {
        let name = unique_name(&load, at);
        let of_workload = if load.len() > 1 { format!("{name}.") } else { String::new() };
        let words = if load.len() > 1 { format!("{name}: ") } else { String::new() };
        for (number, stage) in (1..).zip(&workload.stages).filter(|(_, stage)| stage.window_seconds() > 0.0) {
            let several = workload.stages.len() > 1;
            let place = if several { format!("{of_workload}{number}.") } else { of_workload.clone() };
            let words = if several { format!("{words}stage {number}: ") } else { words.clone() };
            found.of_stage(&Place { name: place, words }, workload.role, stage);
        }
        found.of_workload(&Place { name: of_workload, words }, workload);
    }
    // Processes work for all workloads at once: they are told once, over the stages of those who play.
    let asked = load.iter().find(|workload| workload.role == Role::Play).or(load.first());
    for (number, stage) in asked.into_iter().flat_map(|it| (1..).zip(&it.stages)) {
        let several = asked.is_some_and(|it| it.stages.len() > 1);
        let name = if several { format!("{number}.") } else { String::new() };
        let words = if several { format!("stage {number}: ") } else { String::new() };
        if stage.window_seconds() > 0.0 {
            found.of_processes(&Place { name, words }, stage);
        }
    }
    // What has no title is listed behind what has one.
    found.0.sort_by_key(|(figure, _)| figure.title.is_none());
    found.0
}

/// What a workload is called: its name, with a number if another is called so as well.
fn unique_name(load: &[&WorkloadSummary], at: usize) -> String {
    let name = &load[at].name;
    let before = load[..at].iter().filter(|it| it.name == *name).count();
    if load.iter().filter(|it| it.name == *name).count() > 1 {
        format!("{name} {}", before + 1)
    } else {
        name.clone()
    }
}

/// What stands before the names and the titles of a workload's figures.
struct Place {
    name: String,
    words: String,
}

#[derive(Default)]
struct FigureList(Vec<(SeriesFigure, f64)>);

impl FigureList {
    fn put(&mut self, place: &Place, name: &str, title: &str, unit: FigureUnit, value: f64) {
        if value.is_finite() {
            let title = (!title.is_empty()).then(|| format!("{}{title}", place.words));
            self.0.push((SeriesFigure { name: format!("{}{name}", place.name), title, unit }, value));
        }
    }

    fn of_stage(&mut self, place: &Place, role: Role, stage: &StageSummary) {
        use FigureUnit::{BitsPerSecond, Count, Ratio, Seconds};
        self.put(place, "playing", "Clients", Count, stage.playing_mean);
        if !stage.window_is_void {
            let title = if role == Role::Play { "Received" } else { "Sent" };
            self.put(place, "bitrate", title, BitsPerSecond, stage.actual_bps);
        }
        if let Some(fps) = stage.fps() {
            self.put(place, "fps", "FPS", Count, fps);
        }
        let times: &[(&str, &str)] = match role {
            Role::Play => &[("startup", "Startup"), ("latency", "Latency"), ("drift", "Drift")],
            Role::Publish => &[("startup", "Startup"), ("send_lag", "Send lag")],
        };
        for (name, title) in times {
            if let Some(spread) = stage.figures.spread(name) {
                self.put(place, &format!("{name}.p50"), &format!("{title} p50"), Seconds, spread.p50);
                self.put(place, &format!("{name}.p99"), &format!("{title} p99"), Seconds, spread.p99);
            }
        }
        if role == Role::Play {
            self.put(place, "stalls", "Stalls", Count, stage.figures.total("stalls"));
        }
        if let Some(lost) = stage.figures.lost_ratio() {
            self.put(place, "lost.ratio", "Lost", Ratio, lost);
        }
        for (name, figure) in &stage.figures.0 {
            let unit = FigureUnit::from(figure.unit);
            match figure.value {
                Value::Counter { total, .. } if name != "stalls" => self.put(place, name, "", unit, total),
                Value::Gauge { mean, .. } if name != "playing" => self.put(place, name, "", unit, mean),
                Value::Spread(spread) if spread.count > 0 && times.iter().all(|(it, _)| it != name) => {
                    self.put(place, &format!("{name}.p50"), "", unit, spread.p50);
                    self.put(place, &format!("{name}.p99"), "", unit, spread.p99);
                }
                Value::Counter { .. } | Value::Gauge { .. } | Value::Spread(_) => {}
            }
        }
    }

    /// What processes used over a stage, whichever workload made them work.
    fn of_processes(&mut self, place: &Place, stage: &StageSummary) {
        use FigureUnit::{Bytes, Percent};
        for target in &stage.targets {
            let name = target.label.strip_prefix("name=").unwrap_or(&target.label);
            self.put(place, &format!("cpu.{name}"), &format!("CPU of {name}"), Percent, target.cpu_percent);
            let most = target.rss_max_bytes as f64;
            self.put(place, &format!("memory.{name}"), &format!("Memory of {name}"), Bytes, most);
        }
        if let Some(generator) = &stage.generator {
            self.put(place, "cpu.weir", "CPU of weir", Percent, generator.cpu_percent);
        }
    }

    fn of_workload(&mut self, place: &Place, workload: &WorkloadSummary) {
        let planned = workload.slots.planned as f64;
        self.put(place, "failed.ratio", "Failed", FigureUnit::Ratio, workload.slots.failed as f64 / planned);
    }
}

impl From<crate::summary::BaseUnit> for FigureUnit {
    fn from(unit: crate::summary::BaseUnit) -> Self {
        use crate::summary::BaseUnit;
        match unit {
            BaseUnit::Count => Self::Count,
            BaseUnit::Bytes => Self::Bytes,
            BaseUnit::Seconds => Self::Seconds,
            BaseUnit::BitsPerSecond => Self::BitsPerSecond,
        }
    }
}
