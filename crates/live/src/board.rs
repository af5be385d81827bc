//! What is known of the runs of a process, for clients that ask for metrics: cumulative figures, the run's facts, and readings
//! that are no figures of clients.
//!
//! Counters and distributions go on over the runs of a series; levels are those of the run that goes on.

use crate::buckets::Buckets;
use crate::family::{Family, FamilyKind, Label, Sample, base_name, bounds};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_metrics::{Kind, Recorder, Signed, Spread, Unit};

/// Whose figures they are: labels of each series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The workload's name.
    pub workload: String,
    /// Its protocol.
    pub protocol: String,
    /// The server that its clients go to.
    pub target: String,
}

/// A number that is no figure of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// As of a figure: without prefix, unit and `_total`.
    pub name: &'static str,
    /// One line: what it says.
    pub help: &'static str,
    /// What it is counted in.
    pub unit: Unit,
    /// Whether it only ever rises.
    pub is_counter: bool,
    /// What it is of, where there are several.
    pub labels: Vec<Label>,
    /// In the base unit: seconds of times.
    pub value: f64,
}

/// What is known, behind a lock that is never held for longer than a copy takes.
#[derive(Debug, Default)]
pub struct Board(Mutex<BoardState>);

#[derive(Clone, Debug, Default)]
struct BoardState {
    /// Labels of the run that goes on, or of the last one.
    run: Vec<Label>,
    /// Runs that were begun.
    runs: u64,
    /// Whether one goes on.
    is_running: bool,
    /// Seconds of it.
    seconds: u32,
    past: BTreeMap<Origin, Recorder>,
    now: BTreeMap<Origin, Recorder>,
    readings: Vec<Reading>,
    /// Changes so far.
    version: u64,
}

impl Board {
    /// A run begins: these are its facts.
    pub fn begin(&self, run: Vec<Label>) {
        let mut known = self.change();
        known.bring_to_an_end();
        (known.run, known.seconds, known.is_running) = (run, 0, true);
        known.runs += 1;
    }

    /// `seconds` of the run are complete, and these are its figures up to now.
    pub fn show(&self, seconds: u32, figures: impl IntoIterator<Item = (Origin, Recorder)>) {
        let mut known = self.change();
        known.seconds = seconds;
        known.now.clear();
        for (origin, recorder) in figures {
            // Workloads with the same name, protocol and server have the same labels.
            known.now.entry(origin).and_modify(|sum| sum.merge(&recorder)).or_insert(recorder);
        }
    }

    /// What is no figure of clients.
    pub fn read(&self, readings: Vec<Reading>) {
        self.change().readings = readings;
    }

    /// The run is over.
    pub fn end(&self) {
        self.change().bring_to_an_end();
    }

    /// Another one whenever something has changed.
    pub(crate) fn version(&self) -> u64 {
        self.known().version
    }

    pub(crate) fn families(&self) -> Vec<Family> {
        let known = self.known().clone();
        let mut families = known.about();
        families.extend(known.read());
        families.extend(known.figures());
        families
    }

    fn change(&self) -> MutexGuard<'_, BoardState> {
        let mut known = self.known();
        known.version += 1;
        known
    }

    /// A thread that panicked with the lock left whole values behind.
    fn known(&self) -> MutexGuard<'_, BoardState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BoardState {
    fn bring_to_an_end(&mut self) {
        self.is_running = false;
        for (origin, mut recorder) in std::mem::take(&mut self.now) {
            // No client plays any more.
            let figures = recorder.schema().figures().zip(0..);
            figures.filter(|(figure, _)| matches!(figure.kind, Kind::Gauge(_))).for_each(|(_, position)| {
                recorder.set(weir_metrics::Gauge(position), 0);
            });
            self.past.entry(origin).and_modify(|sum| sum.append(&recorder)).or_insert(recorder);
        }
    }

    /// The run's facts.
    fn about(&self) -> Vec<Family> {
        let whole = |name, help, kind, value| {
            let mut family = Family::new(name, help, Unit::Count, kind);
            family.series.push((Vec::new(), Sample::Whole(value)));
            family
        };
        let mut info =
            Family::new("run", "The run that goes on, or the last one", Unit::Count, FamilyKind::Info);
        if self.runs > 0 {
            info.series.push((self.run.clone(), Sample::Whole(1)));
        }
        vec![
            info,
            whole("runs", "Runs that were begun", FamilyKind::Counter, self.runs),
            whole("running", "1 while a run goes on", FamilyKind::Gauge, self.is_running.into()),
            Family {
                unit: Unit::Micros,
                ..whole(
                    "run_complete",
                    "Seconds of the run that are in the figures",
                    FamilyKind::Gauge,
                    self.seconds.into(),
                )
            },
        ]
    }

    /// What is no figure of clients: one family for all that have a name.
    fn read(&self) -> Vec<Family> {
        let mut families: Vec<Family> = Vec::new();
        for reading in &self.readings {
            let family = Family::reading(reading);
            match families.iter_mut().find(|known| known.name == family.name) {
                Some(known) => known.series.extend(family.series),
                None => families.push(family),
            }
        }
        families
    }

    fn figures(&self) -> Vec<Family> {
        let mut sums = self.past.clone();
        for (origin, recorder) in &self.now {
            sums.entry(origin.clone())
                .and_modify(|sum| sum.append(recorder))
                .or_insert_with(|| recorder.clone());
        }
        let mut families: BTreeMap<&str, Family> = BTreeMap::new();
        let mut failures = Family::new(
            "failures",
            "clients that failed, by kind and side",
            Unit::Count,
            FamilyKind::Counter,
        );
        for (origin, recorder) in &sums {
            let labels = origin.labels();
            for (figure, position) in recorder.schema().figures().zip(0_u16..) {
                let family = families.entry(figure.name).or_insert_with(|| Family::of(figure));
                let (scale, bounds) = (figure.unit.scale(), bounds(figure));
                let number = recorder.number(usize::from(position));
                let sample = match figure.kind {
                    Kind::Counter | Kind::Gauge(_) if figure.unit == Unit::Micros => {
                        Sample::Number(number as f64 * scale)
                    }
                    Kind::Counter | Kind::Gauge(_) => Sample::Whole(number),
                    Kind::Spread => Sample::Histogram(Box::new(Buckets::of(
                        recorder.spread(Spread(position)),
                        scale,
                        bounds,
                    ))),
                    Kind::Signed => Sample::Histogram(Box::new(Buckets::of_signed(
                        recorder.signed(Signed(position)),
                        scale,
                        bounds,
                    ))),
                };
                family.series.push((labels.clone(), sample));
            }
            for (kind, clients) in recorder.failures() {
                let side = match kind.side() {
                    weir_metrics::Side::Local => "local",
                    weir_metrics::Side::Remote => "remote",
                    weir_metrics::Side::Protocol => "protocol",
                };
                let mut labels = labels.clone();
                labels.extend([("kind", kind.key().to_owned()), ("side", side.to_owned())]);
                failures.series.push((labels, Sample::Whole(clients)));
            }
        }
        families.into_values().chain([failures]).filter(|family| !family.series.is_empty()).collect()
    }
}

impl Origin {
    fn labels(&self) -> Vec<Label> {
        let Self { workload, protocol, target } = self.clone();
        vec![("workload", workload), ("protocol", protocol), ("target", target)]
    }
}

impl Family {
    fn reading(reading: &Reading) -> Self {
        let kind = if reading.is_counter { FamilyKind::Counter } else { FamilyKind::Gauge };
        let mut family = Self::new(&base_name(reading.name), reading.help, reading.unit, kind);
        let is_whole = reading.unit != Unit::Micros && (0.0..9e15).contains(&reading.value);
        let is_whole = is_whole && reading.value.fract() == 0.0;
        let sample =
            if is_whole { Sample::Whole(reading.value as u64) } else { Sample::Number(reading.value) };
        family.series.push((reading.labels.clone(), sample));
        family
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Exposition;
    use weir_metrics::common::{DRIFT, PLAYING, RECEIVED, STALLED, STARTUP};
    use weir_metrics::{Failure, Schema};

    fn origin() -> Origin {
        Origin { workload: "play".to_owned(), protocol: "rtmp".to_owned(), target: "h:1935".to_owned() }
    }

    fn figures() -> Recorder {
        let mut recorder = Recorder::new(Schema::new(&[]));
        recorder.count(RECEIVED, 1_000);
        recorder.count(STALLED, 1_500_000);
        recorder.set(PLAYING, 7);
        recorder.record(STARTUP, 120_000);
        recorder.record_signed(DRIFT, -40_000);
        recorder.fail(Failure::Reset);
        recorder
    }

    fn text(board: &Board) -> String {
        String::from_utf8(Exposition::Text.encode(board.families())).unwrap()
    }

    /// The lines of these metrics.
    fn lines(text: &str, names: &[&str]) -> String {
        let is_of =
            |line: &&str| names.iter().any(|name| line.split(['{', ' ']).any(|word| word.starts_with(name)));
        text.lines().filter(is_of).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn figures_are_metrics() {
        let board = Board::default();
        board.begin(vec![("run", "demo-1".to_owned()), ("name", "a \"demo\"".to_owned())]);
        board.show(3, [(origin(), figures())]);
        let names =
            ["weir_run", "weir_received", "weir_stalled", "weir_playing", "weir_startup", "weir_failures"];
        insta::assert_snapshot!(lines(&text(&board), &names));
        let open = String::from_utf8(Exposition::OpenMetrics.encode(board.families())).unwrap();
        assert!(
            open.ends_with("# EOF\n") && open.contains("# UNIT weir_startup_seconds seconds\n"),
            "{open}"
        );
    }

    #[test]
    fn counters_go_on_over_the_runs_of_a_series_and_levels_do_not() {
        let board = Board::default();
        for _ in 0..2 {
            board.begin(Vec::new());
            board.show(1, [(origin(), figures())]);
        }
        let of = |name: &str| {
            let text = text(&board);
            let line = text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
            line.rsplit_once(' ').unwrap().1.to_owned()
        };
        assert_eq!(
            ["weir_received_bytes_total{", "weir_playing{", "weir_runs_total "].map(of),
            ["2000", "7", "2"]
        );
        board.end();
        board.end();
        let ended =
            ["weir_received_bytes_total{", "weir_playing{", "weir_startup_seconds_count{", "weir_running "];
        assert_eq!(ended.map(of), ["2000", "0", "2", "0"]);
    }

    #[test]
    fn native_histograms_are_in_the_protobuf() {
        let board = Board::default();
        board.show(1, [(origin(), figures())]);
        let bytes = Exposition::Protobuf.encode(board.families());
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(holds("weir_startup_seconds") && holds("weir_received_bytes_total"));
    }

    #[test]
    fn readings_are_metrics_of_their_own() {
        let board = Board::default();
        let reading = |name, unit, is_counter, value| {
            let labels = Vec::new();
            Reading { name, help: "It.", unit, is_counter, labels, value }
        };
        let of = |server: &str, value| Reading {
            labels: vec![("server", server.to_owned())],
            ..reading("server.cpu", Unit::Count, false, value)
        };
        board.read(vec![
            of("nginx", 0.25),
            of("srs", 2.0),
            reading("ingest_messages", Unit::Count, true, 3.0),
            reading("ingest_save", Unit::Micros, true, 0.25),
            reading("ingest_queued", Unit::Bytes, false, 12.0),
        ]);
        let text = text(&board);
        for line in [
            "weir_ingest_messages_total 3",
            "weir_ingest_save_seconds_total 0.25",
            "weir_ingest_queued_bytes 12",
            "weir_server_cpu{server=\"nginx\"} 0.25",
            "weir_server_cpu{server=\"srs\"} 2",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in {text}");
        }
        assert_eq!(text.matches("# TYPE weir_server_cpu ").count(), 1, "{text}");
    }
}
