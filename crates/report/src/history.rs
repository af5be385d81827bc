//! Figures over all runs of a name, and where they changed, as text, Markdown, JSON and a page.

use crate::compare::{finding_tone, finding_word, relative};
use crate::document::{Badge, Cell, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::picture::Picture;
use crate::plot::{Hue, Line, Mark, Plot};
use crate::quantity::{BIT_RATE, BYTES, COUNT, PERCENT, SECONDS, Units, in_figure_unit, moment, several};
use crate::quote::{LINE, quote};
use crate::report::Findings;
use crate::stages::{state_tone, state_word};
use weir_answers::compare::Finding;
use weir_answers::history::{FEWEST_RUNS, FigureHistory, History, LevelChange};
use weir_engine::units::FigureUnit;

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
    let all = || history.figures.iter().flat_map(|figure| &figure.changes);
    let mut badges: Vec<_> = [Finding::Worse, Finding::Better, Finding::Different]
        .into_iter()
        .filter_map(|finding| {
            let count = all().filter(|it| it.finding == finding).count();
            let text = format!("{count} {}", finding_word(finding));
            (count > 0).then(|| Badge::new(text, finding_tone(finding)))
        })
        .collect();
    if history.runs.len() < FEWEST_RUNS {
        badges.push(Badge::new("too few runs to tell", Tone::Doubtful));
    } else if badges.is_empty() {
        badges.push(Badge::new("no change", Tone::Good));
    }
    badges
}

fn facts(history: &History) -> Vec<Fact> {
    let of = |at: usize| moment(history.runs[at].started_at_seconds, ' ');
    let runs = several(history.runs.len() as u64, "run");
    let between = match history.runs.len() {
        0 => String::new(),
        1 => format!(", {} UTC", of(0)),
        count => format!(", {} to {} UTC", of(0), of(count - 1)),
    };
    let mut facts = vec![Fact::new("Runs", format!("{runs} of {}{between}", quote(&history.name, LINE)))];
    if !history.tags.is_empty() {
        let tags: Vec<_> = history.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.push(Fact::new("Tags", quote(&tags.join(", "), LINE)));
    }
    if history.runs.len() < FEWEST_RUNS {
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

fn title(figure: &FigureHistory) -> String {
    quote(figure.figure.title.as_ref().unwrap_or(&figure.figure.name), LINE)
}

/// One row a figure: where it was at first, where it is now.
fn figures(history: &History) -> Grid {
    let rows = history.figures.iter().map(|figure| {
        let levels = figure.levels();
        let level = |level: Option<&(usize, f64)>| {
            level.map_or_else(Cell::nothing, |it| Cell::text(in_figure_unit(figure.figure.unit, it.1)))
        };
        let last = figure.values.iter().rev().find_map(|value| *value);
        let last = last.map_or_else(Cell::nothing, |it| Cell::text(in_figure_unit(figure.figure.unit, it)));
        let changes = figure.changes.len().to_string();
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
    let mut all: Vec<(&FigureHistory, &LevelChange)> =
        history.figures.iter().flat_map(|figure| figure.changes.iter().map(move |it| (figure, it))).collect();
    all.sort_by_key(|(_, change)| change.run);
    let rows = all.into_iter().map(|(figure, change)| {
        let of = |value: f64| Cell::text(in_figure_unit(figure.figure.unit, value));
        let run = &history.runs[change.run];
        let by = if change.before > 0.0 && change.after > 0.0 {
            Cell::text(relative(change.after / change.before))
        } else {
            Cell::nothing()
        };
        vec![
            Cell::text(moment(run.started_at_seconds, ' ')),
            Cell::text(title(figure)),
            of(change.before),
            of(change.after),
            by,
            Cell::text(finding_word(change.finding)).tone(finding_tone(change.finding)),
        ]
    });
    Grid {
        caption: "The first run of each new level, and the means on both sides".to_owned(),
        columns: columns![
            word "Since, UTC", word "Figure", number "From", number "To", number "Change", word "Finding",
        ],
        rows: rows.collect(),
    }
}

/// What of the load, the target and the machine was not as in the run before, at the runs at which a figure changed.
fn causes(history: &History) -> Vec<Fact> {
    let mut at: Vec<usize> =
        history.figures.iter().flat_map(|figure| figure.changes.iter().map(|it| it.run)).collect();
    at.sort_unstable();
    at.dedup();
    let with_news = at.into_iter().map(|at| &history.runs[at]).filter(|run| !run.unlike_before.is_empty());
    with_news
        .map(|run| {
            let line = |it: &weir_answers::compare::Unlike| {
                format!("{}: {} → {}", quote(&it.key, 100), quote(&it.base, 100), quote(&it.other, 100))
            };
            let mut lines: Vec<_> = run.unlike_before.iter().take(MOST_KEYS).map(line).collect();
            let more = run.unlike_before.len().saturating_sub(MOST_KEYS);
            if more > 0 {
                lines.push(format!("and {more} more; --json has them all"));
            }
            Fact { lines, ..Fact::new(moment(run.started_at_seconds, ' '), "") }
        })
        .collect()
}

fn runs(history: &History) -> Grid {
    let rows = history.runs.iter().map(|run| {
        vec![
            Cell::text(moment(run.started_at_seconds, ' ')),
            Cell::text(quote(&run.directory, LINE)),
            Cell::text(state_word(run.verdict)).tone(state_tone(run.verdict)),
        ]
    });
    Grid {
        caption: "One row a run, in the order in which they were made".to_owned(),
        columns: columns![word "Started, UTC", word "Run", word "Verdict"],
        rows: rows.collect(),
    }
}

/// One plot a figure: its values run by run, and its levels.
fn plots(history: &History) -> Vec<Plot> {
    let count = history.runs.len();
    let of = |figure: &FigureHistory| {
        let number = |at: usize| at as f64 + 1.0;
        let values = figure.values.iter().enumerate().map(|(at, value)| (number(at), *value)).collect();
        let levels = figure.levels();
        let ends = levels.iter().skip(1).map(|(at, _)| *at).chain([count]);
        let level = |((begin, level), end): (&(usize, f64), usize)| {
            // A gap where the level changes.
            [(number(*begin), Some(*level)), (number(end) - 1.0, Some(*level)), (number(end) - 0.5, None)]
        };
        let (scale, units) = scaled(figure.figure.unit);
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
    let (changed, others): (Vec<_>, Vec<_>) = history.figures.iter().partition(|it| !it.changes.is_empty());
    changed.into_iter().chain(others).map(of).collect()
}

/// Letters of a date: `2026-11-27`.
const DAY: usize = 10;

/// The dates of the first run, of the one in the middle and of the last one, at their numbers: there is room for three. Of runs of one day
/// the times.
fn dates(history: &History) -> Vec<(f64, String)> {
    let last = history.runs.len().saturating_sub(1);
    let mut positions = vec![0, last / 2, last];
    positions.dedup();
    let whole = |at: usize| Some(moment(history.runs.get(at)?.started_at_seconds, ' '));
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

/// The units of a figure, and what its values are multiplied by for them.
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
