//! A series of runs, in every format that a run has.

pub(crate) mod lines;

use self::lines::series_line;
use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::quantity::{in_figure_unit, moment, several, span};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::stages::{state_tone, state_word};
use crate::surroundings;
use std::io;
use weir_answers::series::{
    Counted, Difference, Ending, FEWEST_PAIRS, SeriesFigure, SeriesRun, SeriesSummary, VariantComparison,
    VariantSummary,
};
use weir_engine::scenario::Order;
use weir_engine::summary::Outcome;
use weir_engine::units::FigureUnit;

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
        for run in &self.runs {
            for figure in &self.figures {
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
        sections.push(Section::new(title, vec![Part::Grid(differences(comparison, &summary.figures))]));
    }
    let thresholds: Vec<Fact> = summary.variants.iter().flat_map(thresholds).collect();
    if !thresholds.is_empty() {
        sections.push(Section::new("Thresholds", vec![Part::Facts(thresholds)]));
    }
    sections.extend(Section::of_warnings(&summary.warnings));
    if !summary.runs.is_empty() {
        sections.push(Section::new("Runs", vec![Part::Grid(runs(summary))]));
    }
    sections.extend(surroundings::sections(&summary.run));
    sections
}

fn badges(summary: &SeriesSummary) -> Vec<Badge> {
    let is_uncounted = |it: &VariantSummary| it.counted == 0;
    let verdict = match summary.ending {
        Ending::Running if summary.runs.is_empty() => Badge::new("no run yet", Tone::Doubtful),
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
        columns.push(
            Column::number(if variant.counted >= FEWEST_PAIRS as u64 { "95% confidence" } else { "" })
                .narrow("95%"),
        );
    }
    let rows = summary.figures.iter().filter_map(|figure| {
        let mut row = vec![Cell::text(quote(figure.title.as_ref()?, LINE))];
        for variant in &summary.variants {
            let found = variant.figures.get(&figure.name);
            row.extend(found.map_or_else(|| [Cell::nothing(), Cell::nothing()], |it| cells(figure.unit, it)));
        }
        Some(row)
    });
    Grid { caption: "Figures, in the mean of the runs".to_owned(), columns, rows: rows.collect() }
}

fn cells(unit: FigureUnit, counted: &Counted) -> [Cell; 2] {
    let interval = counted.estimate.map_or_else(Cell::nothing, |it| {
        Cell::text(format!("{} to {}", in_figure_unit(unit, it.low), in_figure_unit(unit, it.high)))
    });
    [Cell::text(in_figure_unit(unit, counted.mean)), interval]
}

fn differences(comparison: &VariantComparison, figures: &[SeriesFigure]) -> Grid {
    let columns = columns![
        word "Figure", number "Difference", number "95% confidence" / "95%", number "Ratio",
        number "95% confidence" / "95%", word "Told apart" / "Apart",
    ];
    let rows = comparison.differences.iter().filter_map(|it| {
        let figure = figures.iter().find(|figure| figure.name == it.figure)?;
        if it.difference.low == 0.0 && it.difference.high == 0.0 && comparison.pairs >= 4 {
            return None;
        }
        let of = |number: f64| in_figure_unit(figure.unit, number);
        let cell = |text: Option<String>| text.map_or_else(Cell::nothing, Cell::text);
        // Of fewer pairs the interval depends more on the repetitions than on the target.
        let enough = it.told_apart;
        Some(vec![
            Cell::text(quote(figure.title.as_ref()?, LINE)),
            Cell::text(of(it.difference.mean)),
            cell(enough.map(|_| format!("{} to {}", of(it.difference.low), of(it.difference.high)))),
            cell(it.ratio.map(|ratio| format!("{:.2}", ratio.mean))),
            cell(
                it.ratio
                    .filter(|_| enough.is_some())
                    .map(|ratio| format!("{:.2} to {:.2}", ratio.low, ratio.high)),
            ),
            Cell::text(apart(it)),
        ])
    });
    let pairs = several(comparison.pairs, "pair");
    let caption = match comparison.pairs {
        0..4 => format!("{pairs} of runs: four tell a difference, with fewer the values are all there is"),
        _ => format!(
            "{pairs} of runs; of twenty figures that are the same, one is told apart by chance; those that were equal in every pair are left out"
        ),
    };
    Grid { caption, columns, rows: rows.collect() }
}

fn apart(difference: &Difference) -> &'static str {
    match difference.told_apart {
        Some(true) => "yes",
        Some(false) => "no",
        None => "too few",
    }
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
    let mut columns = columns![
        word "Run", number "Repetition" / "Rep.", word "Outcome", word "Verdict",
        number "Thresholds failed" / "Failed",
    ];
    let saves = summary.runs.iter().any(|run| run.classic.is_some());
    let rows = summary.runs.iter().map(|run| {
        let failed = run.thresholds.iter().filter(|it| !it.passed).count();
        let tone = if failed > 0 { Tone::Bad } else { Tone::Plain };
        let mut row = vec![
            Cell::text(quote(&run.directory, LINE)),
            Cell::text(run.repetition.to_string()),
            Cell::text(outcome(run)),
            Cell::text(state_word(run.verdict)).tone(state_tone(run.verdict)),
            Cell::text(failed.to_string()).tone(tone),
        ];
        let classic = || run.classic.map_or_else(Cell::nothing, |it| Cell::text(it.to_string()));
        row.extend(saves.then(classic));
        row
    });
    let mut caption =
        "One row a run, in the order in which they were made; each has a directory of its own".to_owned();
    if saves {
        caption.push_str("; classic: [code, rows, last insert − first insert in ms]");
    }
    let rows = rows.collect();
    columns.extend(saves.then(|| Column::number("Classic")));
    Grid { caption, columns, rows }
}

fn outcome(run: &SeriesRun) -> &'static str {
    match run.outcome {
        Outcome::Completed => "completed",
        Outcome::Interrupted => "interrupted",
        Outcome::TargetDied => "target died",
        Outcome::NobodyLeft => "all clients failed",
        Outcome::AgentLost => "agent lost",
        Outcome::Aborted(_) => "aborted",
        Outcome::Running => "running",
    }
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
