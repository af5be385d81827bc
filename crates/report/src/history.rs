//! Figures over all runs of a name, and where they changed, as text, Markdown, JSON and a page.

use crate::document::{Badge, Cell, Column, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::picture::Picture;
use crate::plot::{Hue, Line, Mark, Plot};
use crate::quantity::{in_figure_unit, moment, several};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::table;
use crate::table::{DifferenceColumn, RunColumn, finding_tone, finding_word, scaled, title};
use weir_answers::compare::Unlike;
use weir_answers::history::{FEWEST_RUNS, History, LevelChange};
use weir_answers::table::{Finding, TableFigure};
use weir_setting::JSON;

/// What changed between two runs is listed up to this many keys.
const MOST_KEYS: usize = 8;

impl Findings for History {
    const NOUN: &'static str = "a history";

    fn document(&self) -> Document {
        let mut sections =
            vec![Section::new("History", vec![Part::Facts(facts(self)), Part::Grid(figures(self))])];
        let changes = changes(self);
        if !changes.rows.is_empty() {
            sections.push(Section::new("Changes", vec![Part::Grid(changes)]));
        }
        let causes = causes(self);
        if !causes.is_empty() {
            sections.push(Section::new("What was new at a change", vec![Part::Facts(causes)]));
        }
        sections.extend(Section::of_warnings(&self.warnings));
        sections.push(Section::new("Runs", vec![Part::Grid(runs(self))]).detail());
        Document { title: format!("{} · history", quote(&self.name, LINE)), badges: badges(self), sections }
    }

    fn subject(&self) -> String {
        self.name.clone()
    }

    fn pictures(&self) -> Vec<Picture> {
        crate::picture::drawn(&plots(self))
    }
}

fn badges(history: &History) -> Vec<Badge> {
    let mut badges: Vec<_> = [Finding::Worse, Finding::Better, Finding::Different]
        .into_iter()
        .filter_map(|finding| {
            let count = history.changes.iter().filter(|it| it.difference.finding == finding).count();
            let text = format!("{count} {}", finding_word(finding));
            (count > 0).then(|| Badge::new(text, finding_tone(finding)))
        })
        .collect();
    if history.table.runs.len() < FEWEST_RUNS {
        badges.push(Badge::new("too few runs to tell", Tone::Doubtful));
    } else if badges.is_empty() {
        badges.push(Badge::new("no change", Tone::Good));
    }
    badges
}

fn facts(history: &History) -> Vec<Fact> {
    let of = |at: usize| moment(history.table.runs[at].started_at_seconds, ' ');
    let runs = several(history.table.runs.len() as u64, "run");
    let between = match history.table.runs.len() {
        0 => String::new(),
        1 => format!(", {} UTC", of(0)),
        count => format!(", {} to {} UTC", of(0), of(count - 1)),
    };
    let mut facts = vec![Fact::new("Runs", format!("{runs} of {}{between}", quote(&history.name, LINE)))];
    if !history.tags.is_empty() {
        let tags: Vec<_> = history.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.push(Fact::new("Tags", quote(&tags.join(", "), LINE)));
    }
    if history.table.runs.len() < FEWEST_RUNS {
        facts.push(
            Fact::new(
                "Told",
                format!("nothing: it takes {FEWEST_RUNS} runs to tell a change from what runs of the same server differ by"),
            )
            .tone(Tone::Doubtful),
        );
    }
    facts.push(Fact::new("Definitions", "docs/method/answers.md"));
    facts
}

/// One row a figure: where it was at first, where it is now.
fn figures(history: &History) -> Grid {
    let rows = history.table.figures.iter().map(|figure| {
        let levels = history.levels(figure);
        let level = |level: Option<&(usize, f64)>| {
            level.map_or_else(Cell::nothing, |it| Cell::text(in_figure_unit(figure.unit, it.1)))
        };
        let last = history.values(figure).into_iter().rev().flatten().next();
        let last = last.map_or_else(Cell::nothing, |it| Cell::text(in_figure_unit(figure.unit, it)));
        let changes = history.changes(figure).count().to_string();
        vec![
            Cell::text(title(figure)),
            level(levels.first()),
            level(levels.last()),
            last,
            Cell::text(changes),
        ]
    });
    Grid {
        caption: "Levels: the mean of the runs before the first change, and of those since the last"
            .to_owned(),
        columns: columns![
            word "Figure", number "First level" / "First", number "Level now" / "Now",
            number "Last run" / "Last", number "Changes",
        ],
        rows: rows.collect(),
    }
}

fn changes(history: &History) -> Grid {
    use DifferenceColumn::{Base, Figure, Finding, Other, Step};
    let mut all: Vec<&LevelChange> = history.changes.iter().collect();
    all.sort_by_key(|change| change.run);
    let rows = all.into_iter().filter_map(|it| {
        let since = Cell::text(moment(history.table.runs[it.run].started_at_seconds, ' '));
        Some((vec![since], history.table.figure(&it.difference.figure)?, &it.difference))
    });
    let columns = [Figure, Base("From".to_owned()), Other("To".to_owned()), Step, Finding];
    let caption = "The first run of each new level, and the means on both sides";
    table::differences(caption, vec![Column::word("Since, UTC")], rows, &columns)
}

/// What of the load, the target and the machine was not as in the run before, at the runs at which a figure changed.
fn causes(history: &History) -> Vec<Fact> {
    let mut at: Vec<usize> = history.changes.iter().map(|change| change.run).collect();
    at.sort_unstable();
    at.dedup();
    let with_news =
        at.into_iter().map(|at| &history.table.runs[at]).filter(|run| !run.unlike_before.is_empty());
    with_news
        .map(|run| {
            let line = |it: &Unlike| {
                format!("{}: {} → {}", quote(&it.key, 100), quote(&it.base, 100), quote(&it.other, 100))
            };
            let mut lines: Vec<_> = run.unlike_before.iter().take(MOST_KEYS).map(line).collect();
            let more = run.unlike_before.len().saturating_sub(MOST_KEYS);
            if more > 0 {
                lines.push(format!("and {more} more; {JSON} has them all"));
            }
            Fact { lines, ..Fact::new(moment(run.started_at_seconds, ' '), "") }
        })
        .collect()
}

fn runs(history: &History) -> Grid {
    let columns = [RunColumn::Started, RunColumn::Directory("Run"), RunColumn::Verdict];
    table::runs("One row a run, in the order in which they were made", &history.table.runs, &columns)
}

/// One plot a figure: its values run by run, and its levels.
fn plots(history: &History) -> Vec<Plot> {
    let count = history.table.runs.len();
    let of = |figure: &TableFigure| {
        let number = |at: usize| at as f64 + 1.0;
        let values =
            history.values(figure).into_iter().enumerate().map(|(at, value)| (number(at), value)).collect();
        let levels = history.levels(figure);
        let ends = levels.iter().skip(1).map(|(at, _)| *at).chain([count]);
        let level = |((begin, level), end): (&(usize, f64), usize)| {
            // A gap where the level changes.
            [(number(*begin), Some(*level)), (number(end) - 1.0, Some(*level)), (number(end) - 0.5, None)]
        };
        let (scale, units) = scaled(figure.unit);
        let grown = |points: Vec<(f64, Option<f64>)>| {
            points.into_iter().map(|(at, value)| (at, value.map(|value| value * scale))).collect()
        };
        let levels = grown(levels.iter().zip(ends).flat_map(level).collect());
        let lines = vec![
            Line::new("runs", Hue::Done, grown(values)).marked(Mark::Circle),
            Line::new("level", Hue::Plan, levels).dashed(),
        ];
        let places = dates(history);
        Plot { places, ..Plot::new(title(figure), units, lines, number(count)) }
    };
    // What changed comes first.
    let (changed, others): (Vec<_>, Vec<_>) =
        history.table.figures.iter().partition(|it| history.changes(it).next().is_some());
    changed.into_iter().chain(others).map(of).collect()
}

/// Letters of a date: `2026-11-27`.
const DAY: usize = 10;

/// The dates of the first run, of the one in the middle and of the last one, at their numbers: there is room for three. Of runs of one day
/// the times.
fn dates(history: &History) -> Vec<(f64, String)> {
    let last = history.table.runs.len().saturating_sub(1);
    let mut positions = vec![0, last / 2, last];
    positions.dedup();
    let whole = |at: usize| Some(moment(history.table.runs.get(at)?.started_at_seconds, ' '));
    let day = |at: usize| whole(at).map(|it| it.chars().take(DAY).collect::<String>());
    let is_one_day = last > 0 && day(0) == day(last);
    let date = |at: usize| {
        let text = whole(at)?;
        let (day, time) = text.split_at_checked(DAY)?;
        let shown = if is_one_day { time.trim_start() } else { day };
        Some((at as f64 + 1.0, shown.to_owned()))
    };
    positions.into_iter().filter_map(date).collect()
}
