//! The report for a pull request or a wiki: GitHub's Markdown.

use crate::digest::digest;
use crate::document::{ColumnKind, Document, Fact, Grid, Part, Section, Tone};
use crate::quantity::TIE;
use std::fmt::Write as _;
use std::io;
use weir_engine::summary::Summary;

/// A run as GitHub's Markdown.
pub(crate) fn write(summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
    let mut page = page(&digest(summary));
    let _ = writeln!(
        page,
        "\nRun `{}`. Definitions: `docs/method`; 100% CPU is one core.",
        code(&summary.run.id)
    );
    out.write_all(page.as_bytes())
}

pub(crate) fn write_document(document: &Document, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(page(document).as_bytes())
}

fn page(document: &Document) -> String {
    let mut page = format!("# {}: {}\n", escape(&document.title), document.state());
    for section in &document.sections {
        let title = escape(&section.title);
        if section.detail {
            let _ = write!(page, "\n<details><summary>{title}</summary>\n");
        } else {
            let _ = write!(page, "\n## {title}\n");
        }
        parts(&mut page, section);
        if section.detail {
            page.push_str("\n</details>\n");
        }
    }
    page
}

fn parts(page: &mut String, section: &Section) {
    for part in &section.parts {
        page.push('\n');
        match part {
            Part::Grid(grid) => table(page, grid),
            Part::Facts(facts) => facts.iter().for_each(|fact| item(page, fact)),
            // A URL has no angle brackets: they are encoded in it.
            Part::Link(link) => {
                let _ = writeln!(page, "[{}](<{}>)", link.label, link.url);
            }
        }
    }
}

fn table(page: &mut String, grid: &Grid) {
    let heads = grid.columns.iter().map(|column| escape(&column.title)).collect::<Vec<_>>().join(" | ");
    let rules =
        grid.columns.iter().map(|column| if column.kind == ColumnKind::Number { "---:" } else { "---" });
    let _ = writeln!(page, "| {heads} |\n| {} |", rules.collect::<Vec<_>>().join(" | "));
    for row in &grid.rows {
        let cells = row.iter().map(|cell| {
            let text = escape(&cell.line());
            if cell.tone == Tone::Bad && !text.is_empty() { format!("**{text}**") } else { text }
        });
        let _ = writeln!(page, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

fn item(page: &mut String, fact: &Fact) {
    let label = escape(&fact.label);
    let lines = fact.lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br>");
    let indent = if fact.item { "  " } else { "" };
    let _ = writeln!(page, "{indent}- **{label}**: {lines}");
}

/// Nothing in it is markup, a link or a mention.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            TIE => escaped.push(' '),
            // A word joiner keeps a name from mentioning a user of the site that shows it.
            '@' => escaped.push_str("@\u{2060}"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Fit to stand between backticks.
fn code(text: &str) -> String {
    crate::quote::quote(text, 200).replace('`', "'")
}
