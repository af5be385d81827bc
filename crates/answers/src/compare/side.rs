//! What is compared: runs, and the sides that they are of.

use super::limit::means;
use crate::series::{SeriesFigure, SeriesRun};
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

/// Which figures a name means: the one of that name; or those that it is a part of, those with titles if there are such.
pub(crate) fn meant_by<'a>(name: &str, known: &[&'a SeriesFigure]) -> Vec<&'a SeriesFigure> {
    let mut found: Vec<_> = known.iter().copied().filter(|it| means(name, &it.name)).collect();
    if found.iter().any(|it| it.title.is_some()) {
        found.retain(|it| it.title.is_some() || it.name == name);
    }
    found
}

/// The figures of a run.
pub(crate) fn values(run: &ComparedRun) -> Vec<(SeriesFigure, f64)> {
    let (run, figures) = SeriesRun::new("", 1, String::new(), &run.summary);
    let valued = figures.into_iter().filter_map(|it| {
        let value = *run.figures.get(&it.name)?;
        Some((it, value))
    });
    valued.collect()
}

impl ComparedRun {
    /// When it began, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.summary.run.started_at_seconds
    }
}
