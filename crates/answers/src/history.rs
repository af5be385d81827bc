//! Since when: a figure over all runs of a name, in the order in which they were made, and where it changed. Values only; who
//! finds the runs is the runner.

mod divisive;

use crate::compare::{ComparedRun, changed_between};
use crate::table::{Difference, Finding, Table, TableFigure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The runs, the first one made first, and the figures that are looked at.
    #[serde(flatten)]
    pub table: Table,
    /// Where a figure changed, figure after figure.
    pub changes: Vec<LevelChange>,
}

/// A change of a figure's level: how the runs up to the next change differ from those since the change before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    /// Position of the first run behind it.
    pub run: usize,
    /// The difference; its probability is the share of random orders of the runs that have a change as large.
    #[serde(flatten)]
    pub difference: Difference,
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
        let mut table = Table::default();
        for (number, run) in (1..).zip(&runs) {
            let (mut row, figures) = run.row("", number);
            let before = (number as usize).checked_sub(2).map(|before| &runs[before]);
            row.unlike_before = before.map_or_else(Vec::new, |before| changed_between(before, run));
            table.add(row, figures);
        }
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        table.figures = table.meant(&asked).map_err(|unknown| HistoryError::NoFigure {
            figure: unknown.to_owned(),
            known: table.titled(),
        })?;
        let changes = table.figures.iter().flat_map(|figure| changes(figure, &values(&table, figure)));
        let changes = changes.collect();
        let (layout, name) = (LAYOUT.to_owned(), name.to_owned());
        Ok(Self { layout, name, tags: tags.clone(), warnings, table, changes })
    }

    /// A figure over the runs: one entry a run; none where it was not measured.
    pub fn values(&self, figure: &TableFigure) -> Vec<Option<f64>> {
        values(&self.table, figure)
    }

    /// Where a figure changed.
    pub fn changes(&self, figure: &TableFigure) -> impl Iterator<Item = &LevelChange> {
        self.changes.iter().filter(|change| change.difference.figure == figure.name)
    }

    /// The levels of a figure: the first run of each and the mean of its runs.
    pub fn levels(&self, figure: &TableFigure) -> Vec<(usize, f64)> {
        let first = self.changes(figure).next().map_or_else(
            || {
                let known: Vec<f64> = self.values(figure).into_iter().flatten().collect();
                known.iter().sum::<f64>() / known.len().max(1) as f64
            },
            |change| change.difference.base,
        );
        let others = self.changes(figure).map(|change| (change.run, change.difference.other));
        std::iter::once((0, first)).chain(others).collect()
    }
}

fn values(table: &Table, figure: &TableFigure) -> Vec<Option<f64>> {
    table.runs.iter().map(|run| run.figures.get(&figure.name).copied()).collect()
}

/// Where a figure with these values changed.
fn changes(figure: &TableFigure, values: &[Option<f64>]) -> Vec<LevelChange> {
    let measured: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
    let row: Vec<f64> = measured.iter().map(|(_, value)| *value).collect();
    let found = if row.len() < FEWEST_RUNS { Vec::new() } else { divisive::change_points(&row) };
    let mut ends: Vec<usize> = found.iter().map(|it| it.at).collect();
    ends.push(row.len());
    let mean = |begin: usize, end: usize| row[begin..end].iter().sum::<f64>() / (end - begin) as f64;
    let mut begin = 0;
    let changes = found.iter().zip(&ends[1..]).map(|(it, end)| {
        let (base, other) = (mean(begin, it.at), mean(it.at, *end));
        let runs = (it.at - begin).min(end - it.at) as u64;
        begin = it.at;
        let difference = Difference {
            figure: figure.name.clone(),
            runs,
            base,
            other,
            difference: None,
            ratio: None,
            p: Some(it.p),
            finding: Finding::of_change(figure.better, other > base),
        };
        LevelChange { run: measured[it.at].0, difference }
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_engine::summary::units::FigureUnit;
    use weir_metrics::Better;

    #[test]
    fn a_change_says_from_what_to_what_since_which_run_and_whether_that_is_worse() {
        let figure = TableFigure {
            name: "startup.p99".to_owned(),
            title: Some("Startup p99".to_owned()),
            unit: FigureUnit::Seconds,
            better: Some(Better::Lower),
        };
        let level = |level: f64| (0..6).map(move |at| Some(level + f64::from(at) * 0.001));
        let mut values: Vec<_> = level(1.0).chain(level(2.0)).collect();
        // A run in which it was not measured is no change.
        values.insert(3, None);
        let found = changes(&figure, &values);
        let [LevelChange { run: 7, difference }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((difference.finding, difference.runs), (Finding::Worse, 6));
        assert!((difference.base - 1.0025).abs() < 1e-9 && (difference.other - 2.0025).abs() < 1e-9);
        assert!(changes(&figure, &values[..9]).is_empty(), "nine runs tell nothing");
    }
}
