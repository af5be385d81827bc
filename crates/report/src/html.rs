//! One page that needs nothing else: no script, no request, readable on paper and on a telephone, in light
//! and in dark. What others wrote is escaped by the template.

use crate::Format;
use crate::account::brief;
use crate::digest::{digest, several};
use crate::document::{Badge, ColumnKind, Document, Part, Section, Tone};
use crate::headline::is_of_nothing;
use crate::plot::Plot;
use crate::plots::plots;
use crate::quantity::{NOTHING, number};
use crate::quote::quote;
use askama::Template;
use std::collections::BTreeMap;
use std::io;
use weir_engine::summary::{FigureValue, Summary, Value, WorkloadSummary};

/// A self-contained page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn extension(&self) -> &'static str {
        "html"
    }

    fn write(&self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
        Page::of(summary).write_into(out)
    }
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page {
    title: String,
    state: String,
    badges: Vec<Badge>,
    /// Whether it is of one run, of which the first badge is the verdict.
    is_run: bool,
    run: String,
    /// What was run, and its tables.
    first: Vec<Section>,
    /// What the pictures are called together, and what is said of them.
    heading: &'static str,
    heading_note: &'static str,
    plots: Vec<Picture>,
    /// What explains them.
    then: Vec<Section>,
    folded: Vec<Section>,
    figures: Vec<AllFigures>,
}

/// A drawing, complete in itself.
pub(crate) struct Picture {
    pub(crate) svg: String,
    /// What is said under it.
    pub(crate) note: &'static str,
}

/// All figures of a workload: one row a figure, one column a stage, and the whole run.
struct AllFigures {
    workload: String,
    heads: Vec<String>,
    rows: Vec<FigureRow>,
}

struct FigureRow {
    name: String,
    unit: &'static str,
    help: String,
    values: Vec<String>,
}

/// A page of a document alone, under this name, with its pictures.
pub(crate) fn write_document(
    document: Document,
    name: &str,
    plots: Vec<Picture>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let state = document.state();
    let Document { title, badges, sections } = document;
    let (folded, mut first): (Vec<_>, Vec<_>) = sections.into_iter().partition(|section| section.detail);
    // The answer, its pictures, and what explains them.
    let then = first.split_off(1.min(first.len()));
    let (heading, heading_note, figures) = ("In pictures", "", Vec::new());
    let run = quote(name, 200);
    Page {
        title,
        state,
        badges,
        is_run: false,
        run,
        first,
        heading,
        heading_note,
        plots,
        then,
        folded,
        figures,
    }
    .write_into(out)
}

/// Plots as pictures; those without a value are left out.
pub(crate) fn drawn(plots: &[Plot]) -> Vec<Picture> {
    let plots = plots.iter().enumerate();
    let drawings = plots.filter_map(|(position, plot)| plot.draw(&format!("plot{position}")));
    drawings.filter_map(|drawing| Some(Picture { note: drawing.note, svg: drawing.render().ok()? })).collect()
}

impl Page {
    fn of(summary: &Summary) -> Self {
        let document = digest(summary);
        let state = document.state();
        let Document { title, badges, sections } = document;
        let (folded, mut first): (Vec<_>, Vec<_>) = sections.into_iter().partition(|section| section.detail);
        let then = first.split_off((1 + summary.workloads.len()).min(first.len()));
        // Nothing measured makes empty plots, and a table of noughts.
        let has_measured = !is_of_nothing(summary);
        let workloads = summary.workloads.iter().filter(|_| has_measured);
        Self {
            title,
            state,
            badges,
            is_run: true,
            run: quote(&summary.run.id, 200),
            first,
            heading: "Second by second",
            heading_note: "Above each plot stand the clients of the stages; shaded are the windows that the tables' figures come from.",
            plots: if has_measured { drawn(&plots(summary)) } else { Vec::new() },
            then,
            folded,
            figures: workloads.map(|it| AllFigures::of(it, &summary.glossary)).collect(),
        }
    }
}

impl AllFigures {
    fn of(workload: &WorkloadSummary, glossary: &BTreeMap<String, String>) -> Self {
        let stages = &workload.stages;
        let mut heads: Vec<_> = stages.iter().map(|stage| several(stage.clients.into(), "client")).collect();
        heads.push("Whole run".to_owned());
        let all = stages.iter().map(|stage| &stage.figures).chain([&workload.total]);
        let names: BTreeMap<&str, &FigureValue> = all
            .clone()
            .flat_map(|figures| &figures.0)
            .map(|(name, figure)| (name.as_str(), figure))
            .collect();
        let row = |(name, figure): (&str, &FigureValue)| FigureRow {
            name: quote(name, 60),
            unit: match figure.value {
                Value::Counter { .. } => "total",
                Value::Gauge { .. } => "mean",
                Value::Spread(_) => "p50 / p99",
            },
            help: glossary.get(name).map(|help| quote(help, 300)).unwrap_or_default(),
            values: all
                .clone()
                .map(|figures| figures.get(name).map_or_else(|| NOTHING.to_owned(), in_full))
                .collect(),
        };
        Self { workload: quote(&workload.name, 200), heads, rows: names.into_iter().map(row).collect() }
    }
}

/// A figure with what else is known of it.
fn in_full(figure: &FigureValue) -> String {
    match figure.value {
        Value::Gauge { .. } => brief(figure).trim_end_matches(" mean").to_owned(),
        Value::Spread(spread) if spread.count > 0 => {
            format!("{} of {}", brief(figure), number(spread.count as f64))
        }
        _ => brief(figure),
    }
}

impl Tone {
    /// The class that colours it.
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        }
    }
}

impl ColumnKind {
    /// The class that aligns it.
    fn class(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Number => "number",
            Self::Prose => "prose",
        }
    }
}
