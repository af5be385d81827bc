//! What is compared: runs, and the sides that they are of.

use super::better::{Better, better};
use super::limit::means;
use crate::aggregator::Distribution;
use crate::record::RunHead;
use crate::series::{FigureUnit, SeriesRun};
use crate::summary::{Figures, Summary, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// What its percentiles are of.
    pub distributions: Vec<Distribution>,
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

/// A figure that is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// Its name, as in a series.
    pub name: String,
    /// Its title in the table; none if it has none there.
    pub title: Option<String>,
    /// Its unit.
    pub unit: FigureUnit,
    /// Which way it is better; none if it is neither.
    pub better: Option<Better>,
}

/// Which figures a name means: the one of that name; or those that it is a part of, those with titles if there are such.
pub(crate) fn meant_by<'a>(name: &str, known: &[&'a ComparedFigure]) -> Vec<&'a ComparedFigure> {
    let mut found: Vec<_> = known.iter().copied().filter(|it| means(name, &it.name)).collect();
    if found.iter().any(|it| it.title.is_some()) {
        found.retain(|it| it.title.is_some() || it.name == name);
    }
    found
}

/// A figure of one run or of one side.
pub(crate) type Valued = (ComparedFigure, f64);

/// The figures of a run.
pub(crate) fn values(run: &ComparedRun) -> Vec<Valued> {
    of_summary(&run.summary)
}

fn of_summary(summary: &Summary) -> Vec<Valued> {
    let (run, figures) = SeriesRun::new("", 1, String::new(), summary);
    let valued = figures.into_iter().filter_map(|it| {
        let value = *run.figures.get(&it.name)?;
        let better = better(&it.name);
        Some((ComparedFigure { name: it.name, title: it.title, unit: it.unit, better }, value))
    });
    valued.collect()
}

/// The percentiles of all runs of a side together: of their merged distributions.
pub(super) fn percentiles(side: &Side) -> Vec<Valued> {
    let Some((first, others)) = side.runs.split_first() else { return Vec::new() };
    let mut merged = first.summary.clone();
    // What is left is what was merged, and not what the first run alone had.
    for stage in merged.workloads.iter_mut().flat_map(|it| &mut it.stages) {
        for figure in stage.figures.0.values_mut() {
            if let Value::Spread(spread) = &mut figure.value {
                spread.count = 0;
            }
        }
    }
    for distribution in &first.distributions {
        let mut sum = distribution.clone();
        let same = others.iter().flat_map(|run| &run.distributions).filter(|it| it.is_like(distribution));
        same.for_each(|it| sum.add(it));
        let stage = merged.workloads.get_mut(sum.workload).and_then(|it| it.stages.get_mut(sum.stage));
        if let Some(figure) = stage.and_then(|it| it.figures.get_mut(sum.figure)) {
            figure.value = Value::Spread(sum.spread());
        }
    }
    let is_percentile = |it: &Valued| it.0.name.ends_with(".p50") || it.0.name.ends_with(".p99");
    of_summary(&merged).into_iter().filter(is_percentile).collect()
}

impl ComparedRun {
    /// When it began, in seconds since the Unix epoch.
    pub(crate) fn started(&self) -> f64 {
        self.summary.run.started_at_seconds
    }
}

impl Figures {
    fn get_mut(&mut self, name: &str) -> Option<&mut crate::summary::FigureValue> {
        self.0.get_mut(name)
    }
}
