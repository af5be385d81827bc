//! Runs × figures, which series, comparison, sweep and history stand on: a row a run, a column a figure, one form of a variant (the rows of one kind) and one
//! of a difference (of two kinds of rows in a column). Values only: each question decides by its own rule, in its own module.

mod contrast;
mod difference;
mod figures;
mod run;
mod variant;

pub(crate) use contrast::{Contrast, Values, corrected};
pub use difference::{Difference, Finding, VariantComparison};
pub use figures::TableFigure;
pub use run::{BusiestThread, SearchedCapacity, TableRun};
pub use variant::{FigureStatistics, RankedValue, VariantSummary, VariantThreshold};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::declared::is_cpu_of_weir;

/// The fewest runs a group, or pairs, for a statement on a difference: with fewer the interval depends more on the runs than on the
/// target.
pub const FEWEST_FOR_DIFFERENCE: usize = 4;

/// Runs with their figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// What the table is of, in its order, figures with titles first: all that was measured, or what was asked for. Runs may have more.
    pub figures: Vec<TableFigure>,
    /// All runs, in the order in which they were made. Each has a directory of its own.
    pub runs: Vec<TableRun>,
}

impl Table {
    /// A run more, with what its figures are called. Each figure stands there once.
    pub fn add(&mut self, run: TableRun, figures: Vec<TableFigure>) {
        self.runs.push(run);
        for figure in figures {
            if !self.figures.iter().any(|known| known.name == figure.name) {
                self.figures.push(figure);
            }
        }
        // Of several runs one may have more figures than the first: what has no title stands last all the same.
        self.figures.sort_by_key(|figure| figure.title.is_none());
    }

    /// The figures that names mean, in the order of the table; those with titles if there are no names.
    ///
    /// # Errors
    /// The first name that means none.
    pub(crate) fn meant<'a>(&self, names: &[&'a str]) -> Result<Vec<TableFigure>, &'a str> {
        if let Some(unknown) = names.iter().find(|name| !self.figures.iter().any(|it| means(name, &it.name)))
        {
            return Err(unknown);
        }
        let is_meant = |figure: &TableFigure| match names {
            [] => figure.title.is_some(),
            names => names.iter().any(|name| self.meant_by(name).any(|it| it.name == figure.name)),
        };
        Ok(self.figures.iter().filter(|figure| is_meant(figure)).cloned().collect())
    }

    /// Which figures a name means: the one of that name; or those that it is a part of, those with titles if there are such.
    fn meant_by(&self, name: &str) -> impl Iterator<Item = &TableFigure> {
        let all = || self.figures.iter().filter(move |it| means(name, &it.name));
        let has_titles = all().any(|it| it.title.is_some());
        all().filter(move |it| !has_titles || it.title.is_some() || it.name == name)
    }

    /// The names of the figures with titles.
    pub(crate) fn titled(&self) -> Vec<String> {
        self.figures.iter().filter(|it| it.title.is_some()).map(|it| it.name.clone()).collect()
    }

    /// The figure of this name.
    pub fn figure(&self, name: &str) -> Option<&TableFigure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// The runs of two variants that have the same repetition, both counted.
pub(crate) fn pairs<'a>(base: &str, other: &str, runs: &'a [TableRun]) -> Vec<(&'a TableRun, &'a TableRun)> {
    let of = |variant: &str, repetition: u32| {
        let mut counted = runs.iter().filter(|run| run.is_counted());
        counted.find(|run| run.variant == variant && run.repetition == repetition)
    };
    let repetitions = runs.iter().filter(|run| run.variant == base).map(|run| run.repetition);
    repetitions.filter_map(|number| Some((of(base, number)?, of(other, number)?))).collect()
}

/// Whether a name means this figure: it is the figure's, or a part of it between dots. weir's own CPU must be named.
pub(crate) fn means(name: &str, figure: &str) -> bool {
    if name == figure {
        return true;
    }
    let is_part = format!(".{figure}.").contains(&format!(".{name}."));
    is_part && !is_cpu_of_weir(figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_means_every_figure_that_has_it() {
        for (name, figure, expected) in [
            ("startup.p99", "play.2.startup.p99", true),
            ("startup", "startup.p50", true),
            ("cpu", "cpu.nginx", true),
            ("cpu", "cpu.weir", false),
            ("cpu.weir", "2.cpu.weir", false),
            ("cpu.weir", "cpu.weir", true),
            ("rate", "bitrate", false),
        ] {
            assert_eq!(means(name, figure), expected, "{name} {figure}");
        }
    }
}
