//! One second of an agent's run on its way to the coordinator: the lines of its run directory, copied there and read here.

use crate::event::EventLine;
use crate::plan::Plan;
use crate::record::{self, Histograms};
use hdrhistogram::serialization::V2DeflateSerializer;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::mpsc::Sender;
use weir_metrics::{Interval, Schema};

/// One second of an agent's run: what its run directory has of it, as it stands there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondLines {
    /// Which second.
    pub second: u32,
    /// Lines of `intervals.ndjson`.
    pub intervals: Vec<String>,
    /// Lines of `histograms.hlog`.
    pub histograms: String,
    /// What happened since the second before.
    pub events: Vec<EventLine>,
    /// Whether the second ends with this: what is more than a message holds comes in parts.
    pub is_whole: bool,
}

/// Bytes of distributions, and events, after which the next of them are another part.
const PART_BYTES: usize = 256 << 10;
const PART_EVENTS: usize = 1_000;

/// Gathers what a run directory gets, and hands it on second by second.
pub(crate) struct SecondCopier {
    seconds: Sender<SecondLines>,
    serializer: V2DeflateSerializer,
    next: SecondLines,
    /// The second that is not over.
    second: u32,
}

impl SecondCopier {
    pub(crate) fn new(seconds: Sender<SecondLines>) -> Self {
        Self { seconds, serializer: V2DeflateSerializer::new(), next: SecondLines::default(), second: 0 }
    }

    /// Keeps what the coordinator does not find out by itself.
    pub(crate) fn event(&mut self, event: &EventLine) {
        if event.is_of_clients() || event.is_of_messages() {
            self.next.events.push(event.clone());
            if self.next.events.len() >= PART_EVENTS {
                let second = self.second;
                self.hand_on(second, false);
            }
        }
    }

    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.next.intervals.push(interval.to_line());
        let mut log = Vec::new();
        record::write_histograms(&mut log, &mut self.serializer, None, interval)
            .expect("a vector takes whatever is written");
        self.next.histograms.push_str(&String::from_utf8_lossy(&log));
        if self.next.histograms.len() >= PART_BYTES {
            self.hand_on(interval.key.second, false);
        }
    }

    /// Hands the second on.
    pub(crate) fn complete(&mut self, second: u32) {
        self.hand_on(second, true);
        self.second = second + 1;
    }

    fn hand_on(&mut self, second: u32, is_whole: bool) {
        let lines = SecondLines { second, is_whole, ..std::mem::take(&mut self.next) };
        // A receiver that is gone has ended with its run.
        let _ = self.seconds.send(lines);
    }
}

/// Reads an agent's second, and refuses what no second of this plan can be.
pub(crate) fn read(lines: &SecondLines, plan: &Plan, schemas: &[Schema]) -> Result<Vec<Interval>, String> {
    let mut histograms: Histograms =
        record::read_histograms(Path::new("histograms"), lines.histograms.as_bytes())
            .map_err(|error| error.to_string())?;
    let end = record::last_second(plan);
    if u64::from(lines.second) > end {
        return Err(format!("second {} is long after the plan's end", lines.second));
    }
    let intervals = lines.intervals.iter().map(|line| {
        let (agent, interval) = record::read_interval(line, schemas, end, &mut histograms)?;
        match agent {
            None if interval.key.second == lines.second && interval.seconds() == 1 => Ok(interval),
            _ => Err("an interval of another second, or of another agent".to_owned()),
        }
    });
    intervals.collect()
}
