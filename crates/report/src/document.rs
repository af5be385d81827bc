//! What a report says, before it has a form: sections of tables and labelled lines. Text, Markdown and
//! HTML are made from the same value, so that they cannot say different things.

use crate::quantity::{joined, several};
use crate::quote::quote;
use std::borrow::Cow;
use weir_answers::series::{Ending, SeriesSummary};

/// A whole report.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) title: String,
    /// The verdict, and what else decides whether to read on, the verdict first.
    pub(crate) badges: Vec<Badge>,
    pub(crate) sections: Vec<Section>,
}

/// A word or two beside the title.
#[derive(Debug)]
pub(crate) struct Badge {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// A part under a heading.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// For a closer look: text leaves it out, Markdown and HTML fold it.
    pub(crate) detail: bool,
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug)]
pub(crate) enum Part {
    Grid(Grid),
    Facts(Vec<Fact>),
    Link(Link),
}

/// A table.
#[derive(Debug)]
pub(crate) struct Grid {
    /// What it shows.
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// The head of a column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: Cow<'static, str>,
    /// The same where space is short, on one line or two.
    pub(crate) narrow: Cow<'static, str>,
    pub(crate) kind: ColumnKind,
    pub(crate) place: ColumnPlace,
}

/// Where a column of a table stands that is wider than the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnPlace {
    /// In the first of two tables.
    First,
    /// In the second, which has what is looked up less often.
    Second,
    /// In both: it says what a row is of.
    Both,
}

/// How a column behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A word or two: to the left, never broken.
    Word,
    /// A number: to the right, never broken.
    Number,
    /// A sentence: to the left, broken where need be.
    Prose,
}

/// The heads of a table, `number "Load", word "Verdict"`; behind a stroke what stands there where space is short.
macro_rules! columns {
    ($($kind:ident $title:literal $(/ $narrow:literal)?),* $(,)?) => {
        vec![$($crate::document::Column::$kind($title)$(.narrow($narrow))?),*]
    };
}
pub(crate) use columns;

/// One entry of a table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) content: Content,
    pub(crate) tone: Tone,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Text(String),
    /// A number and its unit.
    Quantity(String, &'static str),
    /// Two values that belong together, such as two percentiles.
    Pair(String, String),
    /// A number out of a total.
    Share(String, String),
}

/// A labelled line.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) label: String,
    pub(crate) lines: Vec<String>,
    pub(crate) tone: Tone,
    /// Whether it belongs below the one before it.
    pub(crate) item: bool,
}

/// An address to open, never broken, however long.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) label: &'static str,
    pub(crate) url: String,
}

/// How something bears on the reader. Colour shows it; words always say it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Doubtful,
    Bad,
}

impl Document {
    /// All badges in one line.
    pub(crate) fn state(&self) -> String {
        self.badges.iter().map(|badge| badge.text.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl Badge {
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    /// How what is made several times ended, if not as it should.
    pub(crate) fn of_ending(ending: &Ending) -> Option<Self> {
        match ending {
            Ending::Completed => None,
            Ending::Running => Some(Self::new("not at its end", Tone::Doubtful)),
            Ending::Interrupted => Some(Self::new("interrupted", Tone::Doubtful)),
            Ending::Failed(_) => Some(Self::new("failed", Tone::Bad)),
        }
    }

    /// How many thresholds of a series failed, if any did.
    pub(crate) fn of_thresholds(series: &SeriesSummary) -> Option<Self> {
        let failed = series.failed_thresholds() as u64;
        (failed > 0).then(|| Self::new(format!("{} failed", several(failed, "threshold")), Tone::Bad))
    }
}

impl Grid {
    /// The first or the second of the two tables that it becomes where it is wider than the page.
    pub(crate) fn part(&self, place: ColumnPlace) -> Self {
        let is_in = |column: &&Column| column.place == place || column.place == ColumnPlace::Both;
        let whole = |column: &Column| Column { place: ColumnPlace::First, ..column.clone() };
        let row = |row: &Vec<Cell>| {
            let cells = row.iter().zip(&self.columns).filter(|(_, column)| is_in(column));
            cells.map(|(cell, _)| cell.clone()).collect()
        };
        Self {
            caption: self.caption.clone(),
            columns: self.columns.iter().filter(is_in).map(whole).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

impl Column {
    pub(crate) fn word(title: impl Into<Cow<'static, str>>) -> Self {
        Self::new(title.into(), ColumnKind::Word)
    }

    pub(crate) fn number(title: impl Into<Cow<'static, str>>) -> Self {
        Self::new(title.into(), ColumnKind::Number)
    }

    pub(crate) fn prose(title: impl Into<Cow<'static, str>>) -> Self {
        Self::new(title.into(), ColumnKind::Prose)
    }

    pub(crate) fn narrow(self, narrow: impl Into<Cow<'static, str>>) -> Self {
        Self { narrow: narrow.into(), ..self }
    }

    pub(crate) fn second(self) -> Self {
        Self { place: ColumnPlace::Second, ..self }
    }

    pub(crate) fn both(self) -> Self {
        Self { place: ColumnPlace::Both, ..self }
    }

    fn new(title: Cow<'static, str>, kind: ColumnKind) -> Self {
        Self { narrow: title.clone(), title, kind, place: ColumnPlace::First }
    }
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), tone: Tone::Plain }
    }

    pub(crate) fn nothing() -> Self {
        Self::text(crate::quantity::NOTHING)
    }

    pub(crate) fn quantity((number, unit): (String, &'static str)) -> Self {
        Self { content: Content::Quantity(number, unit), tone: Tone::Plain }
    }

    pub(crate) fn pair(first: String, second: String) -> Self {
        Self { content: Content::Pair(first, second), tone: Tone::Plain }
    }

    pub(crate) fn share(part: String, whole: String) -> Self {
        Self { content: Content::Share(part, whole), tone: Tone::Plain }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// On one line.
    pub(crate) fn line(&self) -> String {
        match &self.content {
            Content::Text(text) => text.clone(),
            Content::Quantity(number, unit) => joined((number.clone(), unit)),
            Content::Pair(first, second) | Content::Share(first, second) => format!("{first} / {second}"),
        }
    }
}

impl Fact {
    pub(crate) fn new(label: impl Into<String>, line: impl Into<String>) -> Self {
        Self { label: label.into(), lines: vec![line.into()], tone: Tone::Plain, item: false }
    }

    pub(crate) fn warning(words: &str) -> Self {
        Self::new("warning", quote(words, 1_000)).tone(Tone::Doubtful)
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Section {
    pub(crate) fn new(title: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { title: title.into(), detail: false, parts }
    }

    /// One line for each, if there are any.
    pub(crate) fn of_warnings(warnings: &[String]) -> Option<Self> {
        let facts: Vec<_> = warnings.iter().map(|it| Fact::warning(it)).collect();
        (!facts.is_empty()).then(|| Self::new("Warnings", vec![Part::Facts(facts)]))
    }

    pub(crate) fn detail(self) -> Self {
        Self { detail: true, ..self }
    }
}
