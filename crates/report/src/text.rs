//! The report for a terminal or a text file: tables as wide as allowed, and under 60 columns one block of
//! labelled lines a row. Colour repeats what words say.

use crate::codec::CodecComparison;
use crate::digest::digest;
use crate::document::{
    Cell as Entry, Column, ColumnKind, ColumnPlace, Content, Document, Fact, Grid, Link, Part, Tone,
};
use crate::quantity::TIE;
use crate::stream::StreamCheck;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, ContentLineStyle, LineStyle,
    Table, TableStyle, Width,
};
use std::fmt::Write as _;
use std::io;
use weir_engine::summary::Summary;

/// Plain text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Columns of the page; 20 at least are taken.
    pub width: u16,
    /// Whether to colour, with ANSI escapes.
    pub colour: bool,
    /// Where the run's files lie, if the last line shall say so.
    pub directory: Option<String>,
}

impl Default for Text {
    fn default() -> Self {
        Self { width: 80, colour: false, directory: None }
    }
}

impl Text {
    /// A run.
    pub(crate) fn write(&self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = self.page(&digest(summary));
        page.heading("Files", Tone::Plain);
        let place = self.directory.as_ref().unwrap_or(&summary.run.id);
        page.facts(&[
            Fact::new("Run", crate::quote::quote(place, 1_000)),
            Fact::new("Definitions", "docs/method; 100% CPU is one core"),
        ]);
        out.write_all(page.text.as_bytes())
    }

    /// What a check of a stored stream found.
    ///
    /// # Errors
    /// `out` does not take it.
    pub fn write_check(&self, check: &StreamCheck, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.page(&check.document()).text.as_bytes())
    }

    /// A comparison of encodings.
    ///
    /// # Errors
    /// `out` does not take it.
    pub fn write_codec(&self, comparison: &CodecComparison, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.page(&comparison.document()).text.as_bytes())
    }

    pub(crate) fn write_document(&self, document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        out.write_all(self.page(document).text.as_bytes())
    }

    fn page(&self, document: &Document) -> Page {
        let mut page =
            Page { width: self.width.max(20), colour: self.colour, text: String::new(), headed: 0 };
        let worst = document.badges.iter().map(|badge| badge.tone).max().unwrap_or_default();
        page.heading(&format!("{} · {}", document.title, document.state()), worst);
        for (position, section) in document.sections.iter().filter(|section| !section.detail).enumerate() {
            // The first section, the subject itself, stands under the title.
            if position > 0 {
                page.heading(&section.title, Tone::Plain);
            }
            for part in &section.parts {
                match part {
                    Part::Grid(grid) => page.grid(grid),
                    Part::Facts(facts) => page.facts(facts),
                    Part::Link(link) => page.link(link),
                }
            }
        }
        page
    }
}

struct Page {
    width: u16,
    colour: bool,
    text: String,
    /// Length of the text just after a heading.
    headed: usize,
}

/// Ways to set a table, the roomiest first.
#[derive(Clone, Copy)]
struct Setting {
    /// Blanks between two columns.
    gap: u16,
    /// Heads in their short form, and two values of a cell one below the other.
    stacked: bool,
    /// Units below their numbers.
    broken_units: bool,
    /// Longest name of a server before it is broken.
    name: u16,
}

const SETTINGS: [Setting; 5] = [
    Setting { gap: 2, stacked: false, broken_units: false, name: 24 },
    Setting { gap: 2, stacked: true, broken_units: false, name: 24 },
    Setting { gap: 1, stacked: true, broken_units: false, name: 24 },
    Setting { gap: 1, stacked: true, broken_units: true, name: 24 },
    Setting { gap: 1, stacked: true, broken_units: true, name: 16 },
];

/// Below this width a table's rows are blocks of lines.
const NARROW: u16 = 60;

impl Page {
    fn heading(&mut self, title: &str, tone: Tone) {
        let mut table = self.table();
        let cell = Cell::new(title);
        let cell = if self.colour { cell.add_attribute(Attribute::Bold) } else { cell };
        table.add_row(vec![self.toned(cell, tone)]);
        self.blank();
        self.lines(table);
        self.headed = self.text.len();
    }

    /// A blank line, unless there is one, or a heading just above.
    fn blank(&mut self) {
        if self.headed != self.text.len() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn facts(&mut self, facts: &[Fact]) {
        self.blank();
        let mut table = self.table();
        for fact in facts {
            let mark = if fact.item { "- " } else { "" };
            let label = self.toned(Cell::new(format!("{mark}{}", fact.label)), fact.tone);
            table.add_row(vec![label, Cell::new(fact.lines.join("\n"))]);
        }
        self.lines(table);
    }

    /// On a line of its own, so that it can be taken from there.
    fn link(&mut self, link: &Link) {
        self.blank();
        let _ = writeln!(self.text, "{}:\n{}", link.label, link.url);
    }

    /// Rows of one column or two, the last broken where the page ends.
    fn lines(&mut self, mut table: Table) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(self.width);
        let columns = table.column_count();
        let labels = table.column_max_content_widths().first().copied().unwrap_or(0).min(self.width * 2 / 5);
        for (position, column) in table.column_iter_mut().enumerate() {
            let last = position + 1 == columns;
            column.set_padding((0, if last { 0 } else { 2 }));
            if !last {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(labels + 2)));
            }
        }
        self.push(&table);
    }

    fn grid(&mut self, grid: &Grid) {
        let prose = grid.columns.iter().any(|column| column.kind == ColumnKind::Prose);
        if self.width < NARROW {
            return self.blocks(grid);
        }
        for setting in SETTINGS {
            let mut table = self.rows(grid, setting);
            let needed = |table: &Table| {
                let columns = table.column_max_content_widths().into_iter().zip(&grid.columns);
                let widths = columns.map(|(width, column)| match column.kind {
                    // Prose can be broken; it shall have a third of the page.
                    ColumnKind::Prose => width.min(self.width / 3),
                    ColumnKind::Word => width.min(setting.name),
                    ColumnKind::Number => width,
                });
                widths.sum::<u16>() + setting.gap * (grid.columns.len() as u16 - 1)
            };
            if needed(&table) <= self.width {
                let long =
                    |(width, column): (u16, &Column)| column.kind == ColumnKind::Word && width > setting.name;
                if prose || table.column_max_content_widths().into_iter().zip(&grid.columns).any(long) {
                    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(self.width);
                    self.keep(&mut table, grid, setting);
                }
                self.blank();
                return self.push(&table);
            }
        }
        if grid.columns.iter().any(|column| column.place == ColumnPlace::Second) {
            self.grid(&grid.part(ColumnPlace::First));
            return self.grid(&grid.part(ColumnPlace::Second));
        }
        self.blocks(grid);
    }

    /// Holds what must not be broken at its width, so that only the rest is.
    fn keep(&self, table: &mut Table, grid: &Grid, setting: Setting) {
        let widths = table.column_max_content_widths();
        for ((position, column), width) in grid.columns.iter().enumerate().zip(widths) {
            let width = match column.kind {
                ColumnKind::Prose => continue,
                ColumnKind::Word => width.min(setting.name),
                ColumnKind::Number => width,
            };
            let gap = if position + 1 < grid.columns.len() { setting.gap } else { 0 };
            if let Some(column) = table.column_mut(position) {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width + gap)));
            }
        }
    }

    fn rows(&self, grid: &Grid, setting: Setting) -> Table {
        let mut table = self.table();
        let style = table.style_mut();
        style.header_separator = LineStyle::none().fill('─');
        let heads: Vec<&str> = grid
            .columns
            .iter()
            .map(|column| if setting.stacked { &*column.narrow } else { &*column.title })
            .collect();
        let tall = heads.iter().any(|head| head.contains('\n'));
        let head =
            |head: &&str| if tall && !head.contains('\n') { format!("\n{head}") } else { (*head).to_owned() };
        table.set_header(heads.iter().map(head).collect::<Vec<_>>());
        for row in &grid.rows {
            let cells = row.iter().map(|entry| self.toned(Cell::new(set(entry, setting)), entry.tone));
            table.add_row(cells.collect::<Vec<_>>());
        }
        for (position, column) in grid.columns.iter().enumerate() {
            let last = position + 1 == grid.columns.len();
            if let Some(drawn) = table.column_mut(position) {
                drawn.set_padding((0, if last { 0 } else { setting.gap }));
                if column.kind == ColumnKind::Number {
                    drawn.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        table
    }

    /// One block a row: label and value, line by line.
    fn blocks(&mut self, grid: &Grid) {
        for row in &grid.rows {
            let mut table = self.table();
            for (column, entry) in grid.columns.iter().zip(row) {
                let value = entry.line();
                if !value.is_empty() {
                    table.add_row(vec![Cell::new(&column.title), self.toned(Cell::new(value), entry.tone)]);
                }
            }
            self.blank();
            self.lines(table);
        }
    }

    /// A table without lines.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_lines(ContentLineStyle::none()));
        table.force_no_tty();
        if self.colour {
            table.enforce_styling();
        }
        table
    }

    fn toned(&self, cell: Cell, tone: Tone) -> Cell {
        match tone {
            _ if !self.colour => cell,
            Tone::Plain => cell,
            Tone::Good => cell.fg(Color::Green),
            Tone::Doubtful => cell.fg(Color::Yellow),
            Tone::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        }
    }

    fn push(&mut self, table: &Table) {
        for line in table.lines() {
            // Blanks that kept a number at its unit have done their work.
            let _ = writeln!(self.text, "{}", line.trim_end().replace(TIE, " "));
        }
    }
}

fn set(entry: &Entry, setting: Setting) -> String {
    match &entry.content {
        Content::Quantity(number, unit) if setting.broken_units => format!("{number}\n{unit}"),
        Content::Pair(first, second) if setting.stacked => format!("{first}\n{second}"),
        // Heads say what pairs are; a share must say it itself.
        Content::Share(part, whole) if setting.stacked => format!("{part} /\n{whole}"),
        _ => entry.line(),
    }
}
