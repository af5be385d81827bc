//! The run directory: append-only, and worth reading after a crash.
//!
//! `run.json` first, then a line or more a second in `intervals.ndjson`, `histograms.hlog`,
//! `observe.ndjson` and `events.ndjson`; of a long run fewer than one a second. `summary.json` and the
//! reports come last, under a temporary name that is renamed.

mod client_lines;
mod directory;
mod distribution;
pub(crate) mod event;
pub mod kernel_clock;
mod latest;
pub mod merge;
mod open_block;
mod reader;
mod thinning;
mod together;
mod writer;

use crate::plan::Segment;
use crate::scenario::Scenario;
use crate::scenario::facts::WorkloadFacts;
use crate::summary::RunFacts;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use weir_setting::OUTPUT;

pub(crate) use client_lines::{LEFT_OUT, LeftOut};
pub use directory::{make_directory, make_private, write_whole};
pub use reader::read;
pub(crate) use reader::{
    Histograms, intervals_of, last_second, left_out, read_files, read_histograms, read_interval,
};
pub use writer::RecordWriter;
pub(crate) use writer::write_histograms;

pub(crate) const RUN: &str = "run.json";
pub(crate) const INTERVALS: &str = "intervals.ndjson";
pub(crate) const HISTOGRAMS: &str = "histograms.hlog";
pub(crate) const OBSERVATIONS: &str = "observe.ndjson";
pub(crate) const EVENTS: &str = "events.ndjson";

/// `run.json`: what is known before the first second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunHead {
    /// What was run, and where.
    pub run: RunFacts,
    /// Monotonic time of second 0.
    pub origin_ns: u64,
    /// What was asked for.
    pub scenario: Scenario,
    /// What is known of each workload.
    pub workloads: Vec<WorkloadFacts>,
    /// Which part of the plan this one made, if it was an agent among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
}

/// A run directory that cannot be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory is another's.
    #[error(
        "{} is not a run directory: there is no run.json in it; give one that a run has written, such as weir-runs/NAME-TIME",
        .0.display()
    )]
    NoRun(PathBuf),
    /// The directory holds several runs: name one.
    #[error("{} holds several runs: name one; the newest is {}", .directory.display(), .newest.display())]
    HoldsRuns {
        /// The directory.
        directory: PathBuf,
        /// The one in it that was written to last.
        newest: PathBuf,
    },
    /// The system refused.
    #[error("{path}: {source}{}", make_room(.source))]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}:{line}: damaged: {text}; it was cut short or changed, or is not weir's")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        text: String,
    },
}

/// What helps against a full disk.
fn make_room(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::StorageFull {
        format!("; make room there, or write elsewhere with {}", OUTPUT.to("DIR"))
    } else {
        String::new()
    }
}

/// For a directory without a run's head.
fn no_run(directory: &Path) -> RecordError {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let runs = entries.filter_map(|entry| {
        let written = |name: &str| std::fs::metadata(entry.path().join(name)).ok()?.modified().ok();
        // Several runs that are one answer have a summary beside their directories.
        Some(([RUN, "summary.json"].into_iter().filter_map(written).max()?, entry.path()))
    });
    let directory = directory.to_owned();
    match runs.max() {
        Some((_, newest)) => RecordError::HoldsRuns { directory, newest },
        None => RecordError::NoRun(directory),
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> RecordError + '_ {
    |source| RecordError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use writer::Appender;

    #[test]
    fn what_a_run_writes_is_for_its_user_alone_and_goes_through_no_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let parent = tempfile::tempdir().unwrap();
        let run = make_directory(parent.path(), "a", 0).unwrap();
        let asked = parent.path().join("b/c");
        make_private(&asked).unwrap();
        make_private(&asked).unwrap();
        assert_eq!((mode(&run), mode(&asked)), (0o700, 0o700));
        let (other, report) = (parent.path().join("other"), run.join("report.txt"));
        fs::write(&other, "theirs").unwrap();
        symlink(&other, run.join("report.part")).unwrap();
        write_whole(&report, b"ours").unwrap();
        assert_eq!(
            (fs::read(&other).unwrap(), fs::read(&report).unwrap()),
            (b"theirs".into(), b"ours".into())
        );
        Appender::open(&run, EVENTS).unwrap();
        assert_eq!((mode(&report), mode(&run.join(EVENTS))), (0o600, 0o600));
        assert!(fs::symlink_metadata(run.join("report.part")).is_err());
    }
}
