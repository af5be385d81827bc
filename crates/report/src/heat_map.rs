//! Variants that span two dimensions, as a plane of SVG: the stronger the colour, the nearer to the best one.

use crate::picture::Picture;
use crate::plot::Tick;
use crate::quantity::shortened;
use askama::Template;
use weir_answers::sweep::SweepSummary;
use weir_answers::table::{Finding, VariantSummary};
use weir_metrics::Better;

#[derive(Template)]
#[template(path = "heat_map.svg", escape = "html")]
struct Drawing {
    title: String,
    description: String,
    down: String,
    across: String,
    height: u32,
    width: f64,
    columns: Vec<Tick>,
    rows: Vec<Tick>,
    cells: Vec<DrawnCell>,
}

struct DrawnCell {
    name: String,
    x: f64,
    y: f64,
    /// How near to the best one it is: the best is half opaque, which leaves its text readable on both pages.
    share: f64,
    value: String,
    standing: &'static str,
    best: bool,
}

/// Where the cells are.
const LEFT: f64 = 104.0;
const RIGHT: f64 = 364.0;
const TOP: f64 = 46.0;
const ROW: f64 = 34.0;
/// Letters of a value for which there is room beside its row.
const LETTERS: usize = 15;
/// Values of a dimension that there is room for.
const MOST: usize = 12;

/// The picture; none unless each pair of values of two keys is one variant.
pub(crate) fn heat_map(
    summary: &SweepSummary,
    value: impl Fn(&VariantSummary) -> String,
    standing: impl Fn(&VariantSummary) -> &'static str,
) -> Option<Picture> {
    let [down, across] = &summary.dimensions[..] else { return None };
    let pairs = down.values.len() * across.values.len();
    if pairs != summary.series.variants.len() || down.values.len() > MOST || across.values.len() > MOST {
        return None;
    }
    let means = summary.series.variants.iter().filter_map(|variant| Some(variant.value?.mean));
    let best = means.reduce(|one, other| match summary.ranked.better {
        Better::Higher => one.max(other),
        Better::Lower => one.min(other),
    })?;
    let width = (RIGHT - LEFT) / across.values.len() as f64;
    let mut cells = Vec::new();
    for (y, first) in down.values.iter().enumerate() {
        for (x, second) in across.values.iter().enumerate() {
            let variant = summary.at(first, second)?;
            let near = variant.value.map_or(0.0, |it| match summary.ranked.better {
                Better::Higher => it.mean / best,
                Better::Lower => best / it.mean,
            });
            cells.push(DrawnCell {
                name: variant.name.clone(),
                x: LEFT + x as f64 * width,
                y: TOP + y as f64 * ROW,
                share: if near.is_finite() { 0.5 * near.clamp(0.0, 1.0) } else { 0.0 },
                value: value(variant),
                standing: standing(variant),
                best: variant.standing == Some(Finding::Best),
            });
        }
    }
    let said = cells.iter().map(|cell| format!("{}: {}, {}.", cell.name, cell.value, cell.standing));
    let head = |at: f64, label: &String| Tick { at, label: shortened(label, LETTERS) };
    let drawing = Drawing {
        title: format!("{} by {} and {}", summary.ranked.title, down.key, across.key),
        description: said.collect::<Vec<_>>().join(" "),
        down: down.key.clone(),
        across: across.key.clone(),
        height: (TOP + down.values.len() as f64 * ROW) as u32 + 6,
        width,
        columns: (0..)
            .zip(&across.values)
            .map(|(at, label)| head(LEFT + (f64::from(at) + 0.5) * width, label))
            .collect(),
        rows: (0..)
            .zip(&down.values)
            .map(|(at, label)| head(TOP + (f64::from(at) + 0.5) * ROW + 4.0, label))
            .collect(),
        cells,
    };
    Some(Picture {
        svg: drawing.render().ok()?,
        note: "The stronger the colour, the nearer to the best one, which has a frame".to_owned(),
    })
}
