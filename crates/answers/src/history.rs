//! Since when: a figure over all runs of a name, in the order in which they were made, and where it changed. Values only; who
//! finds the runs is the binary.

mod divisive;

use crate::compare::{ComparedRun, Finding, Unlike, changed_between, figures_of, means, meant_by};
use crate::series::SeriesFigure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_engine::summary::VerdictState;

/// The version of the layout; `docs/history.schema.json` follows it.
pub const LAYOUT: &str = "weir.history/1";

/// The fewest runs for a statement on a change: fewer have too few orders to exclude chance.
pub const FEWEST_RUNS: usize = 10;

/// Runs that are looked at, the latest: the time that it takes grows with the square of their number.
pub const MOST_RUNS: usize = 400;

/// Figures over runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// `weir.history/1`.
    pub layout: String,
    /// The runs' name.
    pub name: String,
    /// Tags that all of them have, as was asked.
    pub tags: BTreeMap<String, String>,
    /// Things to know when reading it, one line each.
    pub warnings: Vec<String>,
    /// The runs, the first one made first.
    pub runs: Vec<HistoryRun>,
    /// The figures, in the order of the table.
    pub figures: Vec<FigureHistory>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryRun {
    /// Its directory.
    pub directory: String,
    /// Start, in seconds since the Unix epoch.
    pub started_at_seconds: f64,
    /// Whether its figures can be believed.
    pub verdict: VerdictState,
    /// What it was asked for, where, or of what target, that is not as in the run before: keys of `run.json`.
    pub unlike_before: Vec<Unlike>,
}

/// A figure over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureHistory {
    /// The figure.
    pub figure: SeriesFigure,
    /// One entry a run; none where it was not measured.
    pub values: Vec<Option<f64>>,
    /// Where it changed.
    pub changes: Vec<LevelChange>,
}

/// A change of a figure's level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    /// Position of the first run behind it.
    pub run: usize,
    /// The mean of the runs since the change before.
    pub before: f64,
    /// The mean of the runs up to the next change.
    pub after: f64,
    /// The share of random orders of the runs that have a change as large.
    pub p: f64,
    /// Better, worse or different.
    pub finding: Finding,
}

/// Runs that make no history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// No run fits.
    #[error("there is no run{0} that ran to its end and can be believed")]
    NoRuns(String),
    /// No run has such a figure.
    #[error("no run has a figure '{figure}'; there are: {}", .known.join(", "))]
    NoFigure {
        /// What was asked for.
        figure: String,
        /// Those that there are.
        known: Vec<String>,
    },
}

impl History {
    /// Of runs of one name. `asked` are names of figures, or parts of them; those with titles if empty.
    ///
    /// # Errors
    /// There is no run, or none with a figure that was asked for.
    pub fn new(
        name: &str,
        tags: &BTreeMap<String, String>,
        mut runs: Vec<ComparedRun>,
        asked: &[String],
    ) -> Result<Self, HistoryError> {
        let mut warnings = Vec::new();
        runs.retain(|run| {
            let why = run.not_counted();
            warnings.extend(why.iter().map(|why| format!("{} is left out: {why}", run.name)));
            why.is_none()
        });
        runs.sort_by(|a, b| a.started().total_cmp(&b.started()));
        if runs.is_empty() {
            return Err(HistoryError::NoRuns(format!(" of '{name}'")));
        }
        if runs.len() > MOST_RUNS {
            warnings.push(format!("the latest {MOST_RUNS} of {} runs are looked at", runs.len()));
            runs.drain(..runs.len() - MOST_RUNS);
        }
        let valued: Vec<_> = runs.iter().map(figures_of).collect();
        let mut known: Vec<&SeriesFigure> = Vec::new();
        for (figure, _) in valued.iter().flatten() {
            if !known.iter().any(|it| it.name == figure.name) {
                known.push(figure);
            }
        }
        known.sort_by_key(|it| it.title.is_none());
        if let Some(unknown) = asked.iter().find(|name| !known.iter().any(|it| means(name, &it.name))) {
            let titled = known.iter().filter(|it| it.title.is_some()).map(|it| it.name.clone());
            return Err(HistoryError::NoFigure { figure: unknown.clone(), known: titled.collect() });
        }
        let named: Vec<&SeriesFigure> = asked.iter().flat_map(|name| meant_by(name, &known)).collect();
        let is_shown = |it: &&SeriesFigure| match asked {
            [] => it.title.is_some(),
            _ => named.iter().any(|one| one.name == it.name),
        };
        let figures = known.into_iter().filter(is_shown).map(|figure| {
            let value = |run: &Vec<(SeriesFigure, f64)>| {
                run.iter().find(|(it, _)| it.name == figure.name).map(|(_, value)| *value)
            };
            FigureHistory::new(figure.clone(), valued.iter().map(value).collect())
        });
        let figures = figures.collect();
        let entry = |(at, run): (usize, &ComparedRun)| HistoryRun {
            directory: run.name.clone(),
            started_at_seconds: run.started(),
            verdict: run.summary.verdict.state,
            unlike_before: match at {
                0 => Vec::new(),
                at => changed_between(&runs[at - 1], run),
            },
        };
        let runs = runs.iter().enumerate().map(entry).collect();
        let (layout, name) = (LAYOUT.to_owned(), name.to_owned());
        Ok(Self { layout, name, tags: tags.clone(), warnings, runs, figures })
    }
}

impl FigureHistory {
    fn new(figure: SeriesFigure, values: Vec<Option<f64>>) -> Self {
        let measured: Vec<(usize, f64)> =
            values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
        let row: Vec<f64> = measured.iter().map(|(_, value)| *value).collect();
        let found = if row.len() < FEWEST_RUNS { Vec::new() } else { divisive::change_points(&row) };
        let mut ends: Vec<usize> = found.iter().map(|it| it.at).collect();
        ends.push(row.len());
        let mean = |begin: usize, end: usize| row[begin..end].iter().sum::<f64>() / (end - begin) as f64;
        let mut begin = 0;
        let changes = found.iter().zip(&ends[1..]).map(|(it, end)| {
            let (before, after) = (mean(begin, it.at), mean(it.at, *end));
            begin = it.at;
            let finding = Finding::of_change(figure.better, after > before);
            LevelChange { run: measured[it.at].0, before, after, p: it.p, finding }
        });
        let changes = changes.collect();
        Self { figure, values, changes }
    }

    /// Its levels: the first run of each and the mean of its runs.
    pub fn levels(&self) -> Vec<(usize, f64)> {
        let known: Vec<f64> = self.values.iter().filter_map(|value| *value).collect();
        let first = self
            .changes
            .first()
            .map_or_else(|| known.iter().sum::<f64>() / known.len().max(1) as f64, |change| change.before);
        let others = self.changes.iter().map(|change| (change.run, change.after));
        std::iter::once((0, first)).chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::units::FigureUnit;
    use weir_metrics::Better;

    #[test]
    fn a_change_says_from_what_to_what_since_which_run_and_whether_that_is_worse() {
        let figure = SeriesFigure {
            name: "startup.p99".to_owned(),
            title: Some("Startup p99".to_owned()),
            unit: FigureUnit::Seconds,
            better: Some(Better::Lower),
        };
        let level = |level: f64| (0..6).map(move |at| Some(level + f64::from(at) * 0.001));
        let mut values: Vec<_> = level(1.0).chain(level(2.0)).collect();
        // A run in which it was not measured is no change.
        values.insert(3, None);
        let history = FigureHistory::new(figure.clone(), values.clone());
        let [change] = &history.changes[..] else { panic!("{history:?}") };
        assert_eq!((change.run, change.finding), (7, Finding::Worse));
        assert!((change.before - 1.0025).abs() < 1e-9 && (change.after - 2.0025).abs() < 1e-9);
        assert_eq!(history.levels().len(), 2);
        let few = FigureHistory::new(figure, values[..9].to_vec());
        assert!(few.changes.is_empty(), "nine runs tell nothing");
    }
}
