//! A series of runs, in every format that a run has.

pub(crate) mod lines;

use self::lines::series_line;
use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone};
use crate::quantity::{in_figure_unit, moment, several, span};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::stages::{state_tone, state_word};
use crate::table::{DifferenceColumn, RunColumn, confidence, interval};
use crate::{surroundings, table};
use std::io;
use weir_answers::series::{Ending, SeriesSummary};
use weir_answers::table::{
    FEWEST_FOR_DIFFERENCE, FigureStatistics, Table, VariantComparison, VariantSummary,
};
use weir_engine::scenario::Order;
use weir_engine::summary::units::FigureUnit;

impl Findings for SeriesSummary {
    const NOUN: &'static str = "a series";

    fn document(&self) -> Document {
        Document {
            title: format!("weir {} · {}", quote(&self.run.weir_version, 40), quote(&self.run.name, LINE)),
            badges: badges(self),
            sections: sections(self, series_line(self)),
        }
    }

    fn subject(&self) -> String {
        self.run.id.clone()
    }

    /// One row a run and figure, those without titles included.
    fn write_csv(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut writer = crate::csv::writer(out);
        writer.write_record([
            "series",
            "run",
            "variant",
            "repetition",
            "counted",
            "figure",
            "unit",
            "value",
        ])?;
        for run in &self.table.runs {
            for figure in &self.table.figures {
                let Some(value) = run.figures.get(&figure.name) else { continue };
                writer.write_record([
                    &quote(&self.run.id, LINE),
                    &run.directory,
                    &run.variant,
                    &run.repetition.to_string(),
                    &u8::from(run.is_counted()).to_string(),
                    &figure.name,
                    &unit_name(figure.unit).to_owned(),
                    &value.to_string(),
                ])?;
            }
        }
        writer.flush()
    }

    fn write_junit(&self, out: &mut dyn io::Write) -> io::Result<()> {
        crate::junit::write_series(self, out)
    }
}

/// What a series says, in sections: its answer unless it is that of another question, its figures, differences, thresholds, warnings
/// and runs.
pub(crate) fn sections(summary: &SeriesSummary, answer: Option<String>) -> Vec<Section> {
    let answer = answer.map(|line| Fact::new("Answer", line));
    let facts = answer.into_iter().chain(facts(summary)).collect();
    let mut sections = vec![Section::new("Series", vec![Part::Facts(facts), Part::Grid(figures(summary))])];
    for comparison in summary.comparisons.iter().filter(|it| !it.differences.is_empty()) {
        let title = format!("{} against {}", quote(&comparison.other, LINE), quote(&comparison.base, LINE));
        sections.push(Section::new(title, vec![Part::Grid(differences(comparison, &summary.table))]));
    }
    let thresholds: Vec<Fact> = summary.variants.iter().flat_map(thresholds).collect();
    if !thresholds.is_empty() {
        sections.push(Section::new("Thresholds", vec![Part::Facts(thresholds)]));
    }
    sections.extend(Section::of_warnings(&summary.warnings));
    if !summary.table.runs.is_empty() {
        sections.push(Section::new("Runs", vec![Part::Grid(runs(summary))]));
    }
    sections.extend(surroundings::sections(&summary.run));
    sections
}

fn badges(summary: &SeriesSummary) -> Vec<Badge> {
    let is_uncounted = |it: &VariantSummary| it.counted == 0;
    let verdict = match summary.ending {
        Ending::Running if summary.table.runs.is_empty() => Badge::new("no run yet", Tone::Doubtful),
        // A variant without a run that is counted may still get one.
        Ending::Running | Ending::Interrupted if summary.variants.iter().any(is_uncounted) => {
            Badge::new("incomplete", Tone::Doubtful)
        }
        _ => Badge::new(state_word(summary.verdict), state_tone(summary.verdict)),
    };
    let others = Badge::of_thresholds(summary).into_iter().chain(Badge::of_ending(&summary.ending));
    std::iter::once(verdict).chain(others).collect()
}

fn facts(summary: &SeriesSummary) -> Vec<Fact> {
    let run = &summary.run;
    let outcome = match &summary.ending {
        Ending::Completed => Fact::new("Outcome", format!("completed in {}", span(run.duration_seconds))),
        Ending::Running => Fact::new("Outcome", "not at its end: figures cover what was measured".to_owned()),
        Ending::Interrupted => {
            Fact::new("Outcome", "interrupted: figures cover the runs that were complete".to_owned())
                .tone(Tone::Doubtful)
        }
        Ending::Failed(failure) => Fact::new("Outcome", quote(&failure.words, 1_000)).tone(Tone::Bad),
    };
    let mut facts =
        vec![Fact::new("Started", format!("{} UTC", moment(run.started_at_seconds, ' '))), outcome];
    let counts: Vec<_> = summary.variants.iter().map(counted).collect();
    let order = match summary.order {
        _ if summary.variants.len() < 2 => "",
        Order::Interleaved => ", interleaved",
        Order::Sequential => ", one variant after the other",
        Order::Random => ", in a random order",
    };
    facts.push(Fact::new("Runs", format!("{}{order}", counts.join(", "))));
    for variant in summary.variants.iter().filter(|it| !it.values.is_empty()) {
        let values: Vec<_> = variant.values.iter().map(|(key, value)| format!("{key} {value}")).collect();
        facts.push(Fact::new(quote(&variant.name, 40), quote(&values.join(", "), LINE)));
    }
    facts.push(Fact::new("Definitions", "docs/method/answers.md"));
    facts
}

/// `5 of avro`, or `4 of 5 of avro` if one is not in the figures.
fn counted(variant: &VariantSummary) -> String {
    let name = quote(&variant.name, 40);
    if variant.counted == variant.runs {
        format!("{} of {name}", variant.runs)
    } else {
        format!("{} of {} of {name} in the figures", variant.counted, variant.runs)
    }
}

/// The figures that have titles, one column a variant and one for how far its mean can be trusted.
fn figures(summary: &SeriesSummary) -> Grid {
    let mut columns = vec![Column::word("Figure")];
    for variant in &summary.variants {
        columns.push(Column::number(quote(&variant.name, 40)));
        let has_intervals = variant.counted >= FEWEST_FOR_DIFFERENCE as u64;
        columns.push(if has_intervals { confidence() } else { Column::number("").narrow("95%") });
    }
    let rows = summary.table.figures.iter().filter_map(|figure| {
        let mut row = vec![Cell::text(quote(figure.title.as_ref()?, LINE))];
        for variant in &summary.variants {
            let found = variant.figures.get(&figure.name);
            row.extend(found.map_or_else(|| [Cell::nothing(), Cell::nothing()], |it| cells(figure.unit, it)));
        }
        Some(row)
    });
    Grid { caption: "Figures, in the mean of the runs".to_owned(), columns, rows: rows.collect() }
}

fn cells(unit: FigureUnit, counted: &FigureStatistics) -> [Cell; 2] {
    let value = |value| in_figure_unit(unit, value);
    [Cell::text(value(counted.mean)), interval(counted.estimate, &value)]
}

fn differences(comparison: &VariantComparison, of: &Table) -> Grid {
    let pairs = comparison.pairs.unwrap_or_default();
    let rows = comparison.differences.iter().filter_map(|it| {
        let figure = of.figure(&it.figure).filter(|figure| figure.title.is_some())?;
        let is_equal = it.difference.is_some_and(|it| it.low == 0.0 && it.high == 0.0);
        (!is_equal || pairs < FEWEST_FOR_DIFFERENCE as u64).then_some((Vec::new(), figure, it))
    });
    let in_words = several(pairs, "pair");
    let caption = match pairs {
        0..4 => format!("{in_words} of runs: four tell a difference, with fewer the values are all there is"),
        _ => format!(
            "{in_words} of runs; of twenty figures that are the same, one is told apart by chance; those that were equal in every pair are left out"
        ),
    };
    use DifferenceColumn::{Apart, Difference, DifferenceInterval, Figure, Ratio, RatioInterval};
    let columns = [Figure, Difference, DifferenceInterval, Ratio, RatioInterval, Apart];
    table::differences(caption, Vec::new(), rows, &columns)
}

fn thresholds(variant: &VariantSummary) -> impl Iterator<Item = Fact> {
    variant.thresholds.iter().map(|it| {
        let (word, tone) = if it.passed == it.runs { ("held", Tone::Good) } else { ("failed", Tone::Bad) };
        let text = match it.runs - it.passed {
            0 => format!("{word} in {}", several(it.runs, "run")),
            failed => format!("{word} in {failed} of {}", several(it.runs, "run")),
        };
        Fact::new(format!("{}: {}", quote(&variant.name, 40), quote(&it.expression, LINE)), text).tone(tone)
    })
}

fn runs(summary: &SeriesSummary) -> Grid {
    use RunColumn::{Classic, Directory, Failed, Outcome, Repetition, Verdict};
    let mut columns = vec![Directory("Run"), Repetition, Outcome, Verdict, Failed];
    let mut caption =
        "One row a run, in the order in which they were made; each has a directory of its own".to_owned();
    if summary.table.runs.iter().any(|run| run.classic.is_some()) {
        columns.push(Classic);
        caption.push_str("; classic: [code, rows, last insert − first insert in ms]");
    }
    table::runs(caption, &summary.table.runs, &columns)
}

fn unit_name(unit: FigureUnit) -> &'static str {
    match unit {
        FigureUnit::Count => "count",
        FigureUnit::Bytes => "bytes",
        FigureUnit::Seconds => "seconds",
        FigureUnit::BitsPerSecond => "bits_per_second",
        FigureUnit::Percent => "percent",
        FigureUnit::Ratio => "ratio",
    }
}
