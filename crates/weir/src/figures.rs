//! `weir figures`: what is measured, from the declarations.

use crate::args::Figures;
use crate::exit::Exit;
use crate::print::{text, written};
use std::io::Write;
use weir_clients::meant;
use weir_metrics::{Figure, Kind};
use weir_protocols::{schema_of, schemes};
use weir_runner::{ErrorKind, RunError};

/// Figures of some clients: whose, and which.
pub(crate) struct DeclaredFigures {
    pub(crate) of: String,
    pub(crate) figures: Vec<Figure>,
}

/// Prints the figures that are asked for.
pub(crate) fn figures(args: &Figures) -> Result<Exit, RunError> {
    let words: Vec<_> = args.words.iter().map(|word| word.to_lowercase()).collect();
    let is_asked = |figure: &Figure| {
        let said = format!("{} {}", figure.name, figure.help).to_lowercase();
        words.iter().all(|word| said.contains(word))
    };
    let declared = declared();
    let mut page = String::new();
    for DeclaredFigures { of, figures } in &declared {
        let asked: Vec<_> = figures.iter().filter(|figure| is_asked(figure)).collect();
        if !asked.is_empty() {
            let gap = if page.is_empty() { "" } else { "\n" };
            page.push_str(&format!("{gap}{of}\n"));
            for figure in asked {
                page.push_str(&line(figure, text().width.into()));
            }
        }
    }
    if page.is_empty() {
        let names = || declared.iter().flat_map(|it| &it.figures).map(|it| it.name);
        let asked = args.words.join(" ");
        let hint = meant(&asked, names()).map_or_else(
            || "`weir figures` lists all".to_owned(),
            |nearest| format!("did you mean '{nearest}'?"),
        );
        return Err(RunError::new(ErrorKind::Usage, format!("no figure is about '{asked}'; {hint}")));
    }
    written(std::io::stdout().lock().write_all(page.as_bytes()))?;
    Ok(Exit::Passed)
}

/// The figures of all clients, then those of each protocol, then those of workloads that save messages.
pub(crate) fn declared() -> Vec<DeclaredFigures> {
    let common = weir_metrics::common::FIGURES;
    let mut declared = vec![DeclaredFigures { of: "Every client".to_owned(), figures: common.to_vec() }];
    for scheme in schemes() {
        let Some(schema) = schema_of(scheme) else { continue };
        let own: Vec<_> = schema.figures().skip(common.len()).copied().collect();
        match declared.iter_mut().skip(1).find(|it| it.figures == own) {
            Some(known) => known.of.push_str(&format!(" {scheme}://")),
            None if own.is_empty() => {}
            None => declared.push(DeclaredFigures { of: format!("Only {scheme}://"), figures: own }),
        }
    }
    let saving = weir_engine::ingest::SCHEMA.figures().skip(common.len()).copied().collect();
    declared.push(DeclaredFigures { of: "Only workloads that save messages".to_owned(), figures: saving });
    declared
}

/// `  startup          seconds, distribution  From the planned start to playing`, broken where the page ends.
fn line(figure: &Figure, width: usize) -> String {
    const NAME: usize = 26;
    const KIND: usize = 22;
    let unit = figure.unit.name();
    let kind = match figure.kind {
        Kind::Counter => "counter",
        Kind::Gauge(_) => "level",
        Kind::Spread | Kind::Signed => "distribution",
    };
    let kind = format!("{unit}, {kind}");
    // On a narrow page the meaning stands below.
    let (mut text, indent) = if width >= 80 {
        (format!("  {:NAME$} {kind:KIND$} ", figure.name), NAME + KIND + 4)
    } else {
        (format!("  {}  {kind}\n    ", figure.name), 4)
    };
    let mut column = indent;
    for word in figure.help.split_whitespace() {
        let length = word.chars().count() + 1;
        if column + length > width + 1 && column > indent {
            text.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        }
        text.push_str(word);
        text.push(' ');
        column += length;
    }
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_line_that_fits_the_page() {
        let figure = weir_metrics::common::FIGURES.iter().max_by_key(|it| it.help.len()).unwrap();
        for width in [40, 80, 100] {
            let text = line(figure, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains(figure.name));
        }
    }
}
