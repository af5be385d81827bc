//! The drawings of a page, and the ids by which a page knows its parts.

use crate::plot::Plot;
use askama::Template;

/// A drawing, complete in itself.
pub(crate) struct Picture {
    pub(crate) svg: String,
    /// The lines under it.
    pub(crate) note: String,
}

/// Plots as pictures; those without a value are left out.
pub(crate) fn drawn(plots: &[Plot]) -> Vec<Picture> {
    let drawings = plots.iter().filter_map(|plot| plot.draw(&id("plot", &plot.title)));
    drawings.filter_map(|drawing| Some(Picture { svg: drawing.render().ok()?, note: drawing.note })).collect()
}

/// The name of a part of a page, the same in each page that has the part: `plot-bit-rate`.
pub(crate) fn id(kind: &str, title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(kind.to_owned(), |id, word| format!("{id}-{}", word.to_ascii_lowercase()))
}
