//! What is compared: runs, and the sides that they are of.

use crate::table::{TableFigure, TableRun};
use weir_engine::record::RunHead;
use weir_engine::summary::Summary;

/// One run.
#[derive(Clone, Debug)]
pub struct ComparedRun {
    /// Its directory, as it was found.
    pub name: String,
    /// Which repetition of its series it is, if it is of one.
    pub repetition: Option<u32>,
    /// What was asked for, and where.
    pub head: RunHead,
    /// What it came to.
    pub summary: Summary,
}

/// Several runs of one and the same.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is called.
    pub name: String,
    /// The series that its runs are of, and whether those were made alternately.
    pub series: Option<SeriesRef>,
    /// Its runs.
    pub runs: Vec<ComparedRun>,
    /// Runs of its series that are left out, and why.
    pub left_out: Vec<String>,
}

/// A series that a side is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRef {
    /// Its directory.
    pub directory: String,
    /// Whether its variants were run alternately.
    pub is_interleaved: bool,
}

impl ComparedRun {
    /// Its row in a table, and what its figures are called. `number` is which repetition it is if its series does not say so.
    pub(crate) fn row(&self, variant: &str, number: u32) -> (TableRun, Vec<TableFigure>) {
        TableRun::new(variant, self.repetition.unwrap_or(number), self.name.clone(), &self.summary)
    }

    /// When it began, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.summary.run.started_at_seconds
    }
}
