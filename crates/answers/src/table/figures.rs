//! The columns: the figures of a run that answers are made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::declared::{self, RunFigure};
use weir_engine::ingest::{Ingested, names as saving};
use weir_engine::summary::units::FigureUnit;
use weir_engine::summary::{
    FigureValue, Figures, ProcessLoad, Role, StageSummary, Summary, Value, WorkloadSummary,
};
use weir_engine::threshold::FigureRatio;
use weir_metrics::common::{self, names};
use weir_metrics::{Better, Figure, FigureGroup, Kind};

/// A figure of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableFigure {
    /// Its name: `bitrate`, `startup.p99`; before it the workload's name if there are several, and the stage's number if
    /// there are several: `play.2.startup.p99`.
    pub name: String,
    /// Its title in the table; none if it stands only here.
    pub title: Option<String>,
    /// Its unit.
    pub unit: FigureUnit,
    /// Which way it is better; none if it is neither.
    #[serde(default)]
    pub better: Option<Better>,
}

/// The figures of a run, those with titles first, in the order of the table.
pub(super) fn figures(summary: &Summary) -> Vec<(TableFigure, f64)> {
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
        found.of_run(&whole_run, &declared::RECONNECTED, seconds);
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
struct FigureList(Vec<(TableFigure, f64)>);

impl FigureList {
    /// Lists a value; without a title it stands only in lists.
    fn put(&mut self, prefix: &FigurePrefix, name: &str, title: &str, unit: FigureUnit, value: f64) {
        if value.is_finite() {
            let title = (!title.is_empty()).then(|| format!("{}{title}", prefix.words));
            let better = declared::better(name);
            let figure = TableFigure { name: format!("{}{name}", prefix.name), title, unit, better };
            self.0.push((figure, value));
        }
    }

    fn of_run(&mut self, prefix: &FigurePrefix, figure: &RunFigure, value: f64) {
        self.put(prefix, figure.name, figure.title, figure.unit, value);
    }

    fn ratio(&mut self, prefix: &FigurePrefix, ratio: FigureRatio, value: f64) {
        self.put(prefix, &format!("{}.ratio", ratio.name()), ratio.title(), FigureUnit::Ratio, value);
    }

    /// What clients recorded of a figure, under its title in their role.
    fn of_clients(&mut self, prefix: &FigurePrefix, name: &str, title: &str, figure: &FigureValue) {
        let unit = FigureUnit::from(figure.unit);
        match figure.value {
            Value::Counter { total, .. } => self.put(prefix, name, title, unit, total),
            Value::Gauge { mean, .. } => self.put(prefix, name, title, unit, mean),
            Value::Spread(spread) if spread.count > 0 => {
                for (percentile, value) in [("p50", spread.p50), ("p99", spread.p99)] {
                    let title =
                        if title.is_empty() { String::new() } else { format!("{title} {percentile}") };
                    self.put(prefix, &format!("{name}.{percentile}"), &title, unit, value);
                }
            }
            Value::Spread(_) => {}
        }
    }

    fn of_stage(&mut self, prefix: &FigurePrefix, role: Role, stage: &StageSummary) {
        let recorded = |figure: &Figure| stage.figures.get(figure.name);
        let titled = || common::FIGURES.iter().filter(|figure| is_titled(figure, role));
        let put = |list: &mut Self, figures: &[&Figure]| {
            for figure in figures {
                if let (Some(value), Some(title)) = (recorded(figure), figure.title) {
                    list.of_clients(prefix, figure.name, title, value);
                }
            }
        };
        let playing = declared::title(names::PLAYING);
        self.put(prefix, names::PLAYING, playing, FigureUnit::Count, stage.playing_mean);
        if !stage.window_is_void {
            let title = if role == Role::Publish { "Sent" } else { declared::BIT_RATE.title };
            self.of_run(prefix, &RunFigure { title, ..declared::BIT_RATE }, stage.actual_bps);
        }
        if let Some(expected) = stage.expected_bps.filter(|bps| *bps > 0.0 && !stage.window_is_void) {
            self.ratio(prefix, FigureRatio::BitRate, stage.actual_bps / expected);
        }
        if let Some(fps) = stage.fps() {
            self.of_run(prefix, &declared::FRAME_RATE, fps);
        }
        let counted = titled().filter(|it| it.name != names::PLAYING);
        let (counts, times): (Vec<_>, Vec<_>) = counted.partition(|it| it.kind == Kind::Counter);
        put(self, &times);
        put(self, &counts);
        if let Some(lost) = stage.figures.lost_ratio().filter(|_| is_numbered(&stage.figures)) {
            self.ratio(prefix, FigureRatio::Lost, lost);
        }
        for (name, figure) in &stage.figures.0 {
            // Only viewers stand still: of others it is always 0.
            if name != names::STALLS && titled().all(|it| it.name != name) {
                self.of_clients(prefix, name, "", figure);
            }
        }
    }

    /// What processes used over a stage, whichever workload made them work; of a run that saves this many messages, for one of them.
    fn of_processes(&mut self, prefix: &FigurePrefix, stage: &StageSummary, messages: Option<u64>) {
        for target in &stage.targets {
            let name = target.label.strip_prefix("name=").unwrap_or(&target.label);
            self.cpu(prefix, name, target, messages);
            let most = target.rss_max_bytes as f64;
            self.of_process(prefix, &declared::PROCESS_MEMORY, name, most);
        }
        if let Some(generator) = &stage.generator {
            self.cpu(prefix, declared::WEIR, generator, messages);
        }
    }

    /// CPU of processes: for one of these messages, or in percent of a core.
    fn cpu(&mut self, prefix: &FigurePrefix, name: &str, load: &ProcessLoad, messages: Option<u64>) {
        let percent = declared::PROCESS_CPU;
        match messages.filter(|messages| *messages > 0).zip(load.cpu_seconds) {
            Some((messages, seconds)) => {
                let figure = format!("{}.{name}", percent.name);
                let title = format!("{} of {name} a message", percent.title);
                self.put(prefix, &figure, &title, FigureUnit::Seconds, seconds / messages as f64);
            }
            None => self.of_process(prefix, &percent, name, load.cpu_percent),
        }
    }

    fn of_process(&mut self, prefix: &FigurePrefix, figure: &RunFigure, process: &str, value: f64) {
        let name = format!("{}.{process}", figure.name);
        self.put(prefix, &name, &format!("{} of {process}", figure.title), figure.unit, value);
    }

    fn of_workload(&mut self, prefix: &FigurePrefix, workload: &WorkloadSummary) {
        if let Some(ingested) = &workload.ingested {
            return self.of_messages(prefix, ingested, &workload.total);
        }
        let planned = workload.slots.planned as f64;
        self.ratio(prefix, FigureRatio::Failed, workload.slots.failed as f64 / planned);
        let lost = workload.total.lost_ratio().filter(|_| workload.role == Role::Play);
        if let Some(lost) = lost.filter(|_| !is_numbered(&workload.total)) {
            self.ratio(prefix, FigureRatio::Lost, lost);
        }
    }
}

/// Whether units have numbers, so that a stage knows what it lacks. What has none is known to be lost when its client ends, which is
/// in no stage.
fn is_numbered(figures: &Figures) -> bool {
    figures.total(names::NUMBERED) > 0.0
}

/// Whether a figure of clients has a title where they have this role: a publisher's stalls and a viewer's schedule are none of theirs.
fn is_titled(figure: &Figure, role: Role) -> bool {
    let is_of_role = match role {
        Role::Play => figure.group != FigureGroup::Sending,
        Role::Publish => matches!(figure.group, FigureGroup::Connection | FigureGroup::Sending),
        Role::Ingest => {
            !matches!(figure.kind, Kind::Spread | Kind::Signed) && figure.group != FigureGroup::Stalls
        }
    };
    figure.title.is_some() && is_of_role
}

impl FigureList {
    /// What became of messages. Times are of those runs alone in which each became a row.
    fn of_messages(&mut self, prefix: &FigurePrefix, ingested: &Ingested, total: &Figures) {
        let account = &ingested.account;
        for (name, is_known) in [
            (saving::PUBLISH_TIME, ingested.publish.is_some()),
            (saving::RECEIVE_TIME, ingested.receive.is_some()),
            (saving::DECODE_TIME, ingested.decode_seconds.is_some()),
            (saving::SAVE_TIME, ingested.save_seconds.is_some()),
            (saving::INSERT_TIME, ingested.commit.is_some()),
            (saving::TOTAL_TIME, ingested.commit.is_some()),
            (saving::FIRST_INSERT, ingested.commit.is_some()),
        ] {
            if is_known && ingested.is_whole() {
                self.put(prefix, name, declared::title(name), FigureUnit::Seconds, total.total(name));
            }
        }
        let mut count = |name, title, number| self.put(prefix, name, title, FigureUnit::Count, number as f64);
        for (figure, number) in [
            (declared::PUBLISHED, account.published),
            (declared::ACKNOWLEDGED, account.acknowledged),
            (declared::DELIVERED, account.received),
        ] {
            count(figure.name, figure.title, number);
        }
        count(names::LOST, "Lost", account.lost);
        count(saving::SAVED, declared::title(saving::SAVED), account.saved);
        count(saving::DEAD_LETTERED, declared::title(saving::DEAD_LETTERED), account.dead_lettered);
        count(names::DUPLICATE, "Duplicate", account.duplicate);
        count(saving::COUNTED, declared::title(saving::COUNTED), account.counted);
        let by = |bytes: u64, number: u64| bytes as f64 / number as f64;
        self.of_run(prefix, &declared::PAYLOAD, by(ingested.payload_bytes, account.published));
        if ingested.table_bytes > 0 {
            self.of_run(prefix, &declared::ROW, by(ingested.table_bytes, account.counted));
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
