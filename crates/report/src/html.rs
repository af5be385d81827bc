//! One page that needs nothing else: no request, readable on paper and on a telephone, in light and in dark. What others wrote
//! is escaped by the template. Its one script shows the values under the pointer; without it nothing else is missing.

use crate::account::brief;
use crate::digest::digest;
use crate::document::{Badge, ColumnKind, Document, Grid, Part, Section, Tone};
use crate::glance::{Glance, glance};
use crate::headline::{is_of_nothing, outages};
use crate::picture::{Picture, drawn, id};
use crate::plots::plots;
use crate::quantity::{NOTHING, number, several};
use crate::quote::quote;
use crate::startup_map::startup_map;
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use weir_engine::summary::{FigureValue, Summary, Value, WorkloadSummary};

/// A run as a self-contained page.
pub(crate) fn write(summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
    Page::of(summary).write_into(out)
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
    glances: Vec<Glance>,
    /// What stands before the pictures.
    first: Vec<Section>,
    /// What the pictures are called together, and what is said of them.
    heading: &'static str,
    heading_note: &'static str,
    plots: Vec<Picture>,
    /// What explains them.
    then: Vec<Section>,
    folded: Vec<Section>,
    figures: Vec<AllFigures>,
    script: &'static str,
    /// By which the page allows its script, and no other.
    script_hash: String,
}

/// What shows the values under the pointer.
const SCRIPT: &str = include_str!("../templates/hover.js");

/// Rows of a table that is not folded.
const LONG: usize = 12;

/// Rows that become blocks on a telephone; more stay a table, which scrolls.
const BLOCKS: usize = 2;

/// Sections of a page with a list of them.
const MANY: usize = 5;

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

/// Writes the page of what was found out from several runs, of which `id` is the identifier and `heading_note` what all pictures have
/// in common.
pub(crate) fn write_document(
    id: &str,
    document: Document,
    glances: Vec<Glance>,
    (plots, heading_note): (Vec<Picture>, &'static str),
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let state = document.state();
    let Document { title, badges, sections } = document;
    let (folded, mut first): (Vec<_>, Vec<_>) = sections.into_iter().partition(|section| section.detail);
    // The answer, its pictures, and what explains them.
    let then = first.split_off(1.min(first.len()));
    Page {
        title,
        state,
        badges,
        is_run: false,
        run: quote(id, 200),
        glances,
        first,
        heading: "In pictures",
        heading_note,
        plots,
        then,
        folded,
        figures: Vec::new(),
        script: SCRIPT,
        script_hash: script_hash(),
    }
    .write_into(out)
}

/// What is said of the plots of a run, and of one whose server was restarted.
const STAGES: &str = "Above each plot stand the clients of the stages; shaded are the windows that the tables' figures come from.";
const STAGES_AND_EVENTS: &str = "Above each plot stand the clients of the stages; shaded are the windows that the tables' figures come from. A dashed line marks the moment at which a server was told to end, to be started again, or from which on viewers were without media.";

/// By which the plots of startups are known.
const STARTUPS: &str = "id=\"plot-startup-";

/// The plots of a run, and when its clients came to play.
fn pictures(summary: &Summary) -> Vec<Picture> {
    let mut pictures = drawn(&plots(summary));
    for workload in &summary.workloads {
        let Some(map) = startup_map(workload, summary.workloads.len() > 1) else { continue };
        // Beside the percentiles of the same.
        let beside = pictures.iter().rposition(|it| it.svg.contains(STARTUPS));
        pictures.insert(beside.map_or(pictures.len(), |position| position + 1), map);
    }
    pictures
}

impl Page {
    fn of(summary: &Summary) -> Self {
        let document = digest(summary);
        let state = document.state();
        let Document { title, badges, sections } = document;
        let (folded, then): (Vec<_>, Vec<_>) = sections.into_iter().partition(|section| section.detail);
        // Nothing measured makes empty plots, and a table of noughts.
        let has_measured = !is_of_nothing(summary);
        let has_events = !summary.restarts.is_empty() || outages(summary).next().is_some();
        let workloads = summary.workloads.iter().filter(|_| has_measured);
        Self {
            title,
            state,
            badges,
            is_run: true,
            run: quote(&summary.run.id, 200),
            first: Vec::new(),
            glances: glance(summary),
            heading: "Second by second",
            heading_note: if has_events { STAGES_AND_EVENTS } else { STAGES },
            plots: if has_measured { pictures(summary) } else { Vec::new() },
            then,
            folded,
            figures: workloads.map(|it| AllFigures::of(it, &summary.glossary)).collect(),
            script: SCRIPT,
            script_hash: script_hash(),
        }
    }

    /// What the list of contents leads to: an id and a title each; nothing on a short page.
    fn contents(&self) -> Vec<(String, String)> {
        let of = |section: &Section| (section.id(), section.title.clone());
        let pictures = (!self.plots.is_empty()).then(|| ("pictures".to_owned(), self.heading.to_owned()));
        let reading = ("reading".to_owned(), "How to read it".to_owned());
        let all = self.first.iter().map(of).chain(pictures).chain(self.then.iter().map(of)).chain([reading]);
        let all: Vec<_> = all.collect();
        if all.len() > MANY { all } else { Vec::new() }
    }
}

fn script_hash() -> String {
    STANDARD.encode(Sha256::digest(SCRIPT))
}

impl Section {
    fn id(&self) -> String {
        id("section", &self.title)
    }
}

impl Grid {
    fn is_long(&self) -> bool {
        self.rows.len() > LONG
    }

    /// The class of its table.
    fn class(&self) -> &'static str {
        if self.rows.len() <= BLOCKS { "stack" } else { "table" }
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
