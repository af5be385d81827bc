//! The figures of a run that a series compares.

use crate::ingest::Ingested;
use crate::role::Role;
use crate::summary::{Figures, ProcessLoad, StageSummary, Summary, Value, WorkloadSummary};
use crate::threshold::RECONNECTED;
use crate::units::FigureUnit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::common::names;

/// A figure of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesFigure {
    /// Its name: `bitrate`, `startup.p99`; before it the workload's name if there are several, and the stage's number if
    /// there are several: `play.2.startup.p99`.
    pub name: String,
    /// Its title in the table; none if it stands only here.
    pub title: Option<String>,
    /// Its unit.
    pub unit: FigureUnit,
}

/// The figures of a run, those with titles first, in the order of the table.
pub(super) fn figures(summary: &Summary) -> Vec<(SeriesFigure, f64)> {
    let load: Vec<_> = summary.workloads.iter().filter(|workload| !workload.background).collect();
    let mut found = FigureList::default();
    let saves = load.iter().any(|workload| workload.ingested.is_some());
    for (at, workload) in load.iter().enumerate() {
        let name = unique_name(&load, at);
        // A run has one that saves messages: its figures need no name before theirs.
        let is_one_of_several = load.len() > 1 && workload.ingested.is_none();
        let of_workload = if is_one_of_several { format!("{name}.") } else { String::new() };
        let words = if is_one_of_several { format!("{name}: ") } else { String::new() };
        // Whether a run that ends with its messages has a window is chance.
        let measured = |stage: &StageSummary| !saves && stage.window_seconds() > 0.0;
        for (number, stage) in (1..).zip(&workload.stages).filter(|(_, stage)| measured(stage)) {
            let several = workload.stages.len() > 1;
            let place = if several { format!("{of_workload}{number}.") } else { of_workload.clone() };
            let words = if several { format!("{words}stage {number}: ") } else { words.clone() };
            found.of_stage(&FigurePrefix { name: place, words }, workload.role, stage);
        }
        found.of_workload(&FigurePrefix { name: of_workload, words }, workload);
    }
    // A restart is of all workloads: the time until the last client of any of them was back.
    if let Some(seconds) = summary.reconnected_seconds() {
        let whole_run = FigurePrefix { name: String::new(), words: String::new() };
        found.put(&whole_run, RECONNECTED, "Connected again", FigureUnit::Seconds, seconds);
    }
    // Processes work for all workloads at once: they are listed once, over the stages of the first workload of viewers.
    let asked = load.iter().find(|workload| workload.role == Role::Play).or(load.first());
    // Runs that end with their messages take longer or shorter, and what a message needs is in the same proportion.
    let messages = load.iter().find_map(|it| it.ingested.as_ref()).map(|it| it.account.published);
    for (number, stage) in asked.into_iter().flat_map(|it| (1..).zip(&it.stages)) {
        let several = asked.is_some_and(|it| it.stages.len() > 1);
        let name = if several { format!("{number}.") } else { String::new() };
        let words = if several { format!("stage {number}: ") } else { String::new() };
        if stage.generator.is_some() {
            found.of_processes(&FigurePrefix { name, words }, stage, messages);
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
struct FigurePrefix {
    name: String,
    words: String,
}

#[derive(Default)]
struct FigureList(Vec<(SeriesFigure, f64)>);

impl FigureList {
    fn put(&mut self, prefix: &FigurePrefix, name: &str, title: &str, unit: FigureUnit, value: f64) {
        if value.is_finite() {
            let title = (!title.is_empty()).then(|| format!("{}{title}", prefix.words));
            self.0.push((SeriesFigure { name: format!("{}{name}", prefix.name), title, unit }, value));
        }
    }

    fn of_stage(&mut self, prefix: &FigurePrefix, role: Role, stage: &StageSummary) {
        use FigureUnit::{BitsPerSecond, Count, Ratio, Seconds};
        self.put(prefix, names::PLAYING, "Clients", Count, stage.playing_mean);
        if !stage.window_is_void {
            let title = if role == Role::Publish { "Sent" } else { "Received" };
            self.put(prefix, "bitrate", title, BitsPerSecond, stage.actual_bps);
        }
        if let Some(expected) = stage.expected_bps.filter(|bps| *bps > 0.0 && !stage.window_is_void) {
            self.put(prefix, "bitrate.ratio", "", Ratio, stage.actual_bps / expected);
        }
        if let Some(fps) = stage.fps() {
            self.put(prefix, "fps", "FPS", Count, fps);
        }
        let times: &[(&str, &str)] = match role {
            Role::Play => {
                &[(names::STARTUP, "Startup"), (names::LATENCY, "Latency"), (names::DRIFT, "Drift")]
            }
            Role::Ingest => &[],
            Role::Publish => &[(names::STARTUP, "Startup"), (names::SEND_LAG, "Send lag")],
        };
        for (name, title) in times {
            if let Some(spread) = stage.figures.spread(name) {
                self.put(prefix, &format!("{name}.p50"), &format!("{title} p50"), Seconds, spread.p50);
                self.put(prefix, &format!("{name}.p99"), &format!("{title} p99"), Seconds, spread.p99);
            }
        }
        if role == Role::Play {
            self.put(prefix, names::STALLS, "Stalls", Count, stage.figures.total(names::STALLS));
        }
        if let Some(lost) = stage.figures.lost_ratio().filter(|_| is_numbered(&stage.figures)) {
            self.put(prefix, "lost.ratio", "Lost", Ratio, lost);
        }
        for (name, figure) in &stage.figures.0 {
            let unit = FigureUnit::from(figure.unit);
            match figure.value {
                Value::Counter { total, .. } if name != names::STALLS => {
                    self.put(prefix, name, "", unit, total);
                }
                Value::Gauge { mean, .. } if name != names::PLAYING => self.put(prefix, name, "", unit, mean),
                Value::Spread(spread) if spread.count > 0 && times.iter().all(|(it, _)| it != name) => {
                    self.put(prefix, &format!("{name}.p50"), "", unit, spread.p50);
                    self.put(prefix, &format!("{name}.p99"), "", unit, spread.p99);
                }
                Value::Counter { .. } | Value::Gauge { .. } | Value::Spread(_) => {}
            }
        }
    }

    /// What processes used over a stage, whichever workload made them work; of a run that saves this many messages, for one of them.
    fn of_processes(&mut self, prefix: &FigurePrefix, stage: &StageSummary, messages: Option<u64>) {
        use FigureUnit::Bytes;
        for target in &stage.targets {
            let name = target.label.strip_prefix("name=").unwrap_or(&target.label);
            self.cpu(prefix, name, target, messages);
            let most = target.rss_max_bytes as f64;
            self.put(prefix, &format!("memory.{name}"), &format!("Memory of {name}"), Bytes, most);
        }
        if let Some(generator) = &stage.generator {
            self.cpu(prefix, "weir", generator, messages);
        }
    }

    /// CPU of processes: for one of these messages, or in percent of a core.
    fn cpu(&mut self, prefix: &FigurePrefix, name: &str, load: &ProcessLoad, messages: Option<u64>) {
        let figure = format!("cpu.{name}");
        match messages.filter(|messages| *messages > 0).zip(load.cpu_seconds) {
            Some((messages, seconds)) => {
                let title = format!("CPU of {name} a message");
                self.put(prefix, &figure, &title, FigureUnit::Seconds, seconds / messages as f64);
            }
            None => {
                let title = format!("CPU of {name}");
                self.put(prefix, &figure, &title, FigureUnit::Percent, load.cpu_percent);
            }
        }
    }

    fn of_workload(&mut self, prefix: &FigurePrefix, workload: &WorkloadSummary) {
        if let Some(ingested) = &workload.ingested {
            return self.of_messages(prefix, ingested, &workload.total);
        }
        let planned = workload.slots.planned as f64;
        self.put(prefix, "failed.ratio", "Failed", FigureUnit::Ratio, workload.slots.failed as f64 / planned);
        let lost = workload.total.lost_ratio().filter(|_| workload.role == Role::Play);
        if let Some(lost) = lost.filter(|_| !is_numbered(&workload.total)) {
            self.put(prefix, "lost.ratio", "Lost", FigureUnit::Ratio, lost);
        }
    }
}

/// Whether units have numbers, so that a stage knows what it lacks. What has none is known to be lost when its client ends, which is
/// in no stage.
fn is_numbered(figures: &Figures) -> bool {
    figures.total(names::NUMBERED) > 0.0
}

/// Times of messages on their way into a table, and their titles.
const TIMES: [(&str, &str); 7] = [
    ("publish_time", "Publish"),
    ("receive_time", "Receive"),
    ("decode_time", "Decode, busy"),
    ("save_time", "Save, busy"),
    ("insert_time", "First to last insert"),
    ("total_time", "Publish to last insert"),
    ("first_insert", "Publish to first insert"),
];

impl FigureList {
    /// What became of messages. Times are of those runs alone in which each became a row.
    fn of_messages(&mut self, prefix: &FigurePrefix, ingested: &Ingested, total: &Figures) {
        use FigureUnit::{Bytes, Count, Seconds};
        let known = [
            ingested.publish.is_some(),
            ingested.receive.is_some(),
            ingested.decode_seconds.is_some(),
            ingested.save_seconds.is_some(),
            ingested.commit.is_some(),
            ingested.commit.is_some(),
            ingested.commit.is_some(),
        ];
        for ((name, title), is_known) in TIMES.iter().zip(known) {
            if is_known && ingested.is_whole() {
                self.put(prefix, name, title, Seconds, total.total(name));
            }
        }
        let account = &ingested.account;
        for (name, title, number) in [
            ("published", "Published", account.published),
            ("acknowledged", "Acknowledged", account.acknowledged),
            ("delivered", "Received", account.received),
            ("lost", "Lost", account.lost),
            ("saved", "Saved", account.saved),
            ("dead_lettered", "Dead-lettered", account.dead_lettered),
            ("duplicate", "Duplicate", account.duplicate),
            ("counted", "Counted in the table", account.counted),
        ] {
            self.put(prefix, name, title, Count, number as f64);
        }
        let by = |bytes: u64, number: u64| bytes as f64 / number as f64;
        self.put(prefix, "payload", "Bytes a payload", Bytes, by(ingested.payload_bytes, account.published));
        if ingested.table_bytes > 0 {
            self.put(prefix, "row", "Bytes a row", Bytes, by(ingested.table_bytes, account.counted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_of_runs_that_save_messages_is_that_of_a_message_however_long_they_took() {
        let prefix = FigurePrefix { name: String::new(), words: String::new() };
        // The same work in one and in two seconds.
        for (cpu_percent, cpu_seconds) in [(50.0, 0.5), (25.0, 0.5)] {
            let load = ProcessLoad { cpu_percent, cpu_seconds: Some(cpu_seconds), ..ProcessLoad::default() };
            let mut found = FigureList::default();
            found.cpu(&prefix, "mosquitto", &load, Some(5_000));
            let (figure, value) = &found.0[0];
            assert_eq!((&*figure.name, figure.unit), ("cpu.mosquitto", FigureUnit::Seconds));
            assert_eq!(figure.title.as_deref(), Some("CPU of mosquitto a message"));
            assert!((value - 1e-4).abs() < 1e-12);
        }
        // Without messages, and in a summary of an earlier weir, it is a share of a core.
        for (cpu_seconds, messages) in [(Some(0.5), None), (Some(0.5), Some(0)), (None, Some(5_000))] {
            let load = ProcessLoad { cpu_percent: 50.0, cpu_seconds, ..ProcessLoad::default() };
            let mut found = FigureList::default();
            found.cpu(&prefix, "mosquitto", &load, messages);
            assert_eq!((found.0[0].0.unit, found.0[0].1), (FigureUnit::Percent, 50.0));
        }
    }
}
