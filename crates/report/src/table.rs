//! An answer's table as grids: what stands in a column is written here, once for all answers. An answer says which columns it shows,
//! in which order and under which titles.

use crate::document::{Cell, Column, Grid, Tone};
use crate::quantity::{BIT_RATE, BYTES, COUNT, NOTHING, PERCENT, SECONDS, Units, in_figure_unit, moment};
use crate::quote::{LINE, quote};
use crate::stages::{state_tone, state_word};
use weir_answers::compare::FEWEST_FOR_INTERVAL;
use weir_answers::table::{Difference, Finding, TableFigure, TableRun};
use weir_engine::summary::Outcome;
use weir_engine::summary::units::FigureUnit;
use weir_metrics::Estimate;

/// A column of a grid with one row a run.
pub(crate) enum RunColumn<'a> {
    /// What only this answer says of a run.
    Own(Column, &'a dyn Fn(&TableRun) -> Cell),
    /// Its directory, under this title.
    Directory(&'static str),
    Repetition,
    Started,
    Outcome,
    Verdict,
    /// How many thresholds did not hold.
    Failed,
    /// The line of the original measurement.
    Classic,
}

/// One row a run.
pub(crate) fn runs<'a>(
    caption: impl Into<String>,
    runs: impl IntoIterator<Item = &'a TableRun>,
    columns: &[RunColumn<'_>],
) -> Grid {
    let row = |run: &TableRun| columns.iter().map(|column| column.cell(run)).collect();
    Grid {
        caption: caption.into(),
        columns: columns.iter().map(RunColumn::head).collect(),
        rows: runs.into_iter().map(row).collect(),
    }
}

impl RunColumn<'_> {
    fn head(&self) -> Column {
        match self {
            Self::Own(head, _) => head.clone(),
            Self::Directory(title) => Column::word(*title),
            Self::Repetition => Column::number("Repetition").narrow("Rep."),
            Self::Started => Column::word("Started, UTC"),
            Self::Outcome => Column::word("Outcome"),
            Self::Verdict => Column::word("Verdict"),
            Self::Failed => Column::number("Thresholds failed").narrow("Failed"),
            Self::Classic => Column::number("Classic"),
        }
    }

    fn cell(&self, run: &TableRun) -> Cell {
        match self {
            Self::Own(_, cell) => cell(run),
            Self::Directory(_) => Cell::text(quote(&run.directory, LINE)),
            Self::Repetition => Cell::text(run.repetition.to_string()),
            Self::Started => Cell::text(moment(run.started_at_seconds, ' ')),
            Self::Outcome => Cell::text(outcome_word(&run.outcome)),
            Self::Verdict => Cell::text(state_word(run.verdict)).tone(state_tone(run.verdict)),
            Self::Failed => {
                let failed = run.thresholds.iter().filter(|it| !it.passed).count();
                Cell::text(failed.to_string()).tone(if failed > 0 { Tone::Bad } else { Tone::Plain })
            }
            Self::Classic => run.classic.map_or_else(Cell::nothing, |it| Cell::text(it.to_string())),
        }
    }
}

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::TargetDied => "target died",
        Outcome::NobodyLeft => "all clients failed",
        Outcome::AgentLost => "agent lost",
        Outcome::Aborted(_) => "aborted",
        Outcome::Running => "running",
    }
}

/// A column of a grid with one row a figure that differs, or may.
pub(crate) enum DifferenceColumn {
    Figure,
    /// The mean of the base, under this title.
    Base(String),
    /// The mean of the other, under this title.
    Other(String),
    /// The difference in the figure's unit.
    Difference,
    DifferenceInterval,
    Ratio,
    RatioInterval,
    /// The ratio as a change in percent, or the difference where there is no ratio.
    Change,
    ChangeInterval,
    /// How much the one mean is of the other, in percent.
    Step,
    /// Whether it can be told from chance.
    Apart,
    Finding,
}

/// One row a difference, behind what stands in columns of the answer's own.
pub(crate) fn differences<'a>(
    caption: impl Into<String>,
    own: Vec<Column>,
    rows: impl IntoIterator<Item = (Vec<Cell>, &'a TableFigure, &'a Difference)>,
    columns: &[DifferenceColumn],
) -> Grid {
    let row = |(own, figure, difference): (Vec<Cell>, &TableFigure, &Difference)| {
        own.into_iter().chain(columns.iter().map(|column| column.cell(figure, difference))).collect()
    };
    Grid {
        caption: caption.into(),
        columns: own.into_iter().chain(columns.iter().map(DifferenceColumn::head)).collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

impl DifferenceColumn {
    fn head(&self) -> Column {
        match self {
            Self::Figure => Column::word("Figure"),
            Self::Base(title) | Self::Other(title) => Column::number(title.clone()),
            Self::Difference => Column::number("Difference"),
            Self::Ratio => Column::number("Ratio"),
            Self::Change | Self::Step => Column::number("Change"),
            Self::DifferenceInterval | Self::RatioInterval | Self::ChangeInterval => confidence(),
            Self::Apart => Column::word("Told apart").narrow("Apart"),
            Self::Finding => Column::word("Finding"),
        }
    }

    fn cell(&self, figure: &TableFigure, it: &Difference) -> Cell {
        let value = |value| in_figure_unit(figure.unit, value);
        // Of fewer runs the interval depends more on them than on the target.
        let is_told = it.finding != Finding::Unknown;
        let ratio = |value: f64| format!("{value:.2}");
        match self {
            Self::Figure => Cell::text(title(figure)),
            Self::Base(_) => Cell::text(value(it.base)),
            Self::Other(_) => Cell::text(value(it.other)),
            Self::Difference => text(it.difference.map(|it| value(it.mean))),
            Self::DifferenceInterval => interval(it.difference.filter(|_| is_told), &value),
            Self::Ratio => text(it.ratio.map(|it| ratio(it.mean))),
            Self::RatioInterval => interval(it.ratio.filter(|_| is_told), &ratio),
            Self::Change => Cell::text(change(figure, it)),
            Self::ChangeInterval if it.runs < FEWEST_FOR_INTERVAL as u64 => Cell::nothing(),
            Self::ChangeInterval if it.ratio.is_some() => interval(it.ratio, &relative),
            Self::ChangeInterval => interval(it.difference, &|value| signed(figure, value)),
            Self::Step => {
                let is_ratio = it.base > 0.0 && it.other > 0.0;
                text(is_ratio.then(|| relative(it.other / it.base)))
            }
            Self::Apart => Cell::text(match it.finding {
                Finding::Unknown => "too few",
                finding if finding.is_different() => "yes",
                _ => "no",
            }),
            Self::Finding if !is_told => Cell::nothing(),
            Self::Finding => Cell::text(finding_word(it.finding)).tone(finding_tone(it.finding)),
        }
    }
}

/// The head of a column of intervals.
pub(crate) fn confidence() -> Column {
    Column::number("95% confidence").narrow("95%")
}

/// What may not be known.
pub(crate) fn text(text: Option<String>) -> Cell {
    text.map_or_else(Cell::nothing, Cell::text)
}

/// Both ends of an interval.
pub(crate) fn interval(interval: Option<Estimate>, say: &dyn Fn(f64) -> String) -> Cell {
    text(interval.map(|it| format!("{} to {}", say(it.low), say(it.high))))
}

/// What a figure is called: its title, or its name where it has none.
pub(crate) fn title(figure: &TableFigure) -> String {
    quote(figure.title.as_ref().unwrap_or(&figure.name), LINE)
}

pub(crate) fn finding_word(finding: Finding) -> &'static str {
    match finding {
        Finding::Best => "best",
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::Different => "different",
        Finding::Same => "same",
        Finding::Undecided => "undecided",
        Finding::Fails => "fails",
        Finding::Unknown => "too little known",
    }
}

pub(crate) fn finding_tone(finding: Finding) -> Tone {
    match finding {
        Finding::Best | Finding::Better => Tone::Good,
        Finding::Worse | Finding::Fails => Tone::Bad,
        Finding::Different | Finding::Same | Finding::Undecided => Tone::Plain,
        Finding::Unknown => Tone::Doubtful,
    }
}

/// `+12.3%`, or the difference where there is no ratio.
fn change(figure: &TableFigure, it: &Difference) -> String {
    match (it.ratio, it.difference) {
        (Some(ratio), _) => relative(ratio.mean),
        (None, Some(difference)) => signed(figure, difference.mean),
        (None, None) => NOTHING.to_owned(),
    }
}

/// A ratio as a change in percent.
pub(crate) fn relative(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = if percent.abs() < 99.95 { 1 } else { 0 };
    let rounded = format!("{:.digits$}", percent.abs());
    let sign = match percent {
        _ if rounded.chars().all(|it| matches!(it, '0' | '.')) => "",
        p if p < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{rounded}%")
}

/// A difference with its sign.
pub(crate) fn signed(figure: &TableFigure, value: f64) -> String {
    let plus = if value > 0.0 { "+" } else { "" };
    format!("{plus}{}", in_figure_unit(figure.unit, value))
}

/// The units of a figure in pictures, and what its values are multiplied by for them.
pub(crate) fn scaled(unit: FigureUnit) -> (f64, Units) {
    match unit {
        FigureUnit::Count => (1.0, COUNT),
        FigureUnit::Bytes => (1.0, BYTES),
        FigureUnit::Seconds => (1.0, SECONDS),
        FigureUnit::BitsPerSecond => (1.0, BIT_RATE),
        FigureUnit::Percent => (1.0, PERCENT),
        FigureUnit::Ratio => (100.0, PERCENT),
    }
}
