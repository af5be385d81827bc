//! Appends what a run counted, saw and heard to its directory, second by second.

use super::client_lines::{ClientLines, LEFT_OUT};
use super::directory::{PRIVATE_FILE, write_whole};
use super::open_block::{self, OpenBlock};
use super::thinning::Thinning;
use super::{EVENTS, HISTOGRAMS, INTERVALS, OBSERVATIONS, RUN, RecordError, RunHead, io_error, latest};
use crate::record::event::EventLine;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_metrics::{Interval, IntervalKey};
use weir_observe::Sample;

/// Appends to a run directory.
pub struct RecordWriter {
    intervals: Appender,
    histograms: Appender,
    observations: Appender,
    events: Appender,
    serializer: V2DeflateSerializer,
    origin_ns: u64,
    /// The block of seconds that is not over, and lines of these seconds, which are there to be read if it is never written.
    block: OpenBlock,
    latest_lines: Option<LatestLines>,
    clients: ClientLines,
    directory: PathBuf,
    thinning: Thinning,
    /// The latest sample, if it was left out: of the end of a run it is written all the same.
    latest: Option<Sample>,
}

#[derive(Debug)]
struct LatestLines {
    intervals: Appender,
    histograms: Appender,
}

#[derive(Debug)]
pub(super) struct Appender {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Appender {
    pub(super) fn open(directory: &Path, name: &str) -> Result<Self, RecordError> {
        let path = directory.join(name);
        let mut options = OpenOptions::new();
        let file =
            options.create(true).append(true).mode(PRIVATE_FILE).open(&path).map_err(io_error(&path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    fn line(&mut self, text: &str) -> Result<(), RecordError> {
        writeln!(self.file, "{text}").map_err(io_error(&self.path))
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        self.file.flush().map_err(io_error(&self.path))
    }

    /// Appends the distributions of an interval.
    fn distributions(
        &mut self,
        serializer: &mut V2DeflateSerializer,
        agent: Option<u16>,
        interval: &Interval,
    ) -> Result<(), RecordError> {
        write_histograms(&mut self.file, serializer, agent, interval).map_err(io_error(&self.path))
    }

    /// Takes all lines out of the file. What is appended next stands at its beginning.
    fn empty(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.file.get_ref().set_len(0).map_err(io_error(&self.path))
    }
}

impl LatestLines {
    fn open(directory: &Path) -> Result<Self, RecordError> {
        let open = |name| Appender::open(directory, name);
        Ok(Self { intervals: open(latest::LATEST_INTERVALS)?, histograms: open(latest::LATEST_HISTOGRAMS)? })
    }
}

impl RecordWriter {
    /// Writes `run.json` and opens the rest.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn create(directory: &Path, head: &RunHead) -> Result<Self, RecordError> {
        let (edges, all_edges) = head
            .scenario
            .plan()
            .map_or_else(|_| Default::default(), |plan| (plan.window_edges(), plan.edges()));
        let json = serde_json::to_vec_pretty(head).expect("a run's head is JSON");
        write_whole(&directory.join(RUN), &json)?;
        Ok(Self {
            intervals: Appender::open(directory, INTERVALS)?,
            histograms: Appender::open(directory, HISTOGRAMS)?,
            observations: Appender::open(directory, OBSERVATIONS)?,
            events: Appender::open(directory, EVENTS)?,
            serializer: V2DeflateSerializer::new(),
            origin_ns: head.origin_ns,
            block: OpenBlock::new(all_edges),
            latest_lines: None,
            clients: ClientLines::default(),
            directory: directory.to_owned(),
            thinning: Thinning::new(edges),
            latest: None,
        })
    }

    /// Appends one workload's second, or keeps it until those are over that are one line with it.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), RecordError> {
        let second = interval.key.second;
        if self.block.is_over_with(second) {
            let block = self.block.take();
            self.end_block(&block)?;
        }
        if open_block::has_own_lines(second) {
            return self.append(None, interval);
        }
        self.block.add(interval);
        if self.latest_lines.is_none() {
            self.latest_lines = Some(LatestLines::open(&self.directory)?);
        }
        let Some(LatestLines { intervals, histograms }) = &mut self.latest_lines else { return Ok(()) };
        intervals.line(&interval.to_line())?;
        histograms.distributions(&mut self.serializer, None, interval)
    }

    /// Appends what one agent counted in a second of one workload, where seconds have lines of their own.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval_of(&mut self, agent: u16, interval: &Interval) -> Result<(), RecordError> {
        let is_written = open_block::has_own_lines(interval.key.second);
        if is_written { self.append(Some(agent), interval) } else { Ok(()) }
    }

    /// Appends what all agents counted in a second of one workload, where each agent has no line of its own.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval_of_all(&mut self, interval: &Interval) -> Result<(), RecordError> {
        let is_written = open_block::has_own_lines(interval.key.second);
        if is_written { Ok(()) } else { self.interval(interval) }
    }

    fn append(&mut self, agent: Option<u16>, interval: &Interval) -> Result<(), RecordError> {
        self.intervals.line(&interval.to_line_of(agent))?;
        self.histograms.distributions(&mut self.serializer, agent, interval)
    }

    /// Appends the block of seconds that is over, and only then takes its seconds out of the lines of the latest ones: whenever
    /// a run is cut short, each second is in one or the other.
    fn end_block(&mut self, block: &[Interval]) -> Result<(), RecordError> {
        for interval in block {
            self.append(None, interval)?;
        }
        self.histograms.flush()?;
        self.intervals.flush()?;
        let lines = self.latest_lines.iter_mut();
        lines.flat_map(|it| [&mut it.intervals, &mut it.histograms]).try_for_each(Appender::empty)
    }

    /// Appends one observation, or leaves it out where a long run has enough of them.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        let since = i128::from(sample.at_ns) - i128::from(self.origin_ns);
        let second = i64::try_from(since.div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
        let mut sample = sample.clone();
        if let Some(left_out) = self.latest.take() {
            sample.take_over(left_out);
        }
        // Points of other machines are in one sample only.
        if self.thinning.takes(second) || sample.machines.iter().any(|it| !it.is_empty()) {
            return self.observe(&sample);
        }
        self.latest = Some(sample);
        Ok(())
    }

    fn observe(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.observations.line(&serde_json::to_string(sample).expect("a sample is JSON"))
    }

    /// Appends what was kept back, at the end of a run, and hands all lines to the system.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn finish(&mut self) -> Result<(), RecordError> {
        if let Some(latest) = self.latest.take() {
            self.observe(&latest)?;
        }
        let rest = self.block.take_rest();
        self.end_block(&rest)?;
        if let Some(LatestLines { intervals, histograms }) = self.latest_lines.take() {
            for Appender { path, .. } in [intervals, histograms] {
                fs::remove_file(&path).map_err(io_error(&path))?;
            }
        }
        self.flush()
    }

    /// Appends one event, or adds what it says to the sums over clients without a line.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn event(&mut self, event: &EventLine) -> Result<(), RecordError> {
        if let EventLine::Stopped { at_seconds } = event {
            self.block.cut(*at_seconds as u32);
        }
        let Some(line) = self.clients.line(event) else { return Ok(()) };
        self.events.line(&serde_json::to_string(&line).expect("an event is JSON"))
    }

    /// Hands all lines to the system, and writes the sums over clients without a line.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let lines = self.latest_lines.iter_mut().flat_map(|it| [&mut it.intervals, &mut it.histograms]);
        [&mut self.intervals, &mut self.histograms, &mut self.observations, &mut self.events]
            .into_iter()
            .chain(lines)
            .try_for_each(Appender::flush)?;
        self.clients.changed().map_or(Ok(()), |sums| {
            let json = serde_json::to_vec(sums).expect("sums are JSON");
            write_whole(&self.directory.join(LEFT_OUT), &json)
        })
    }
}

/// Writes the distributions of one workload's interval as lines of an interval log of HdrHistogram.
pub(crate) fn write_histograms(
    out: &mut impl Write,
    serializer: &mut V2DeflateSerializer,
    agent: Option<u16>,
    interval: &Interval,
) -> io::Result<()> {
    let start = Duration::from_secs(u64::from(interval.key.second));
    let length = Duration::from_secs(interval.seconds().into());
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(out, serializer)?;
    let IntervalKey { workload, server, .. } = interval.key;
    let server = server.map_or_else(String::new, |server| format!(".{server}"));
    let agent = agent.map_or_else(String::new, |agent| format!("@{agent}"));
    for (name, histogram) in interval.histograms() {
        let tag = format!("{workload}{server}{agent}/{name}");
        writer
            .write_histogram(histogram, start, length, Tag::new(&tag))
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(())
}
