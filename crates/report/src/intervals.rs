//! Values with their intervals, one below the other, as SVG: whether two of them overlap, or one of them zero, is seen at a
//! glance.

use crate::picture::{Picture, id};
use crate::plot::{Tick, step, tick_number};
use crate::quantity::{Units, shortened, unit_of};
use askama::Template;

/// One row.
#[derive(Debug)]
pub(crate) struct IntervalRow {
    pub(crate) name: String,
    pub(crate) mean: f64,
    pub(crate) low: Option<f64>,
    /// None of a capacity that has no upper bound.
    pub(crate) high: Option<f64>,
    /// The value as it is printed, and how it stands to the best one.
    pub(crate) value: String,
    pub(crate) standing: &'static str,
    pub(crate) class: &'static str,
}

#[derive(Template)]
#[template(path = "intervals.svg", escape = "html")]
struct Drawing {
    id: String,
    title: String,
    description: String,
    unit: &'static str,
    height: u32,
    bottom: u32,
    zero: f64,
    ticks: Vec<Tick>,
    rows: Vec<DrawnRow>,
}

struct DrawnRow {
    name: String,
    at: u32,
    low: f64,
    mean: f64,
    high: f64,
    value: String,
    standing: &'static str,
    class: &'static str,
    /// Whether it goes on beyond the picture on the left, and on the right: an arrow says so.
    goes_on_below: bool,
    goes_on_above: bool,
}

/// Where the intervals are, within the 368 units of the picture's width.
const LEFT: f64 = 144.0;
const RIGHT: f64 = 354.0;
/// Between two rows, and above the first.
const ROW: u32 = 24;
const TOP: u32 = 40;
/// Letters of a name that there is room for; the rows have whole names as titles.
const LETTERS: usize = 24;

/// The picture; none if no row has a value. What lies beyond `most`, on either side of 0, is drawn at its end.
pub(crate) fn intervals(title: &str, units: Units, most: f64, rows: &[IntervalRow]) -> Option<Picture> {
    let ends = rows.iter().flat_map(|row| [Some(row.mean), row.low, row.high]).flatten();
    let (lowest, highest) = ends
        .map(|end| end.clamp(-most, most))
        .filter(|end| end.is_finite())
        .fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
    if highest <= lowest {
        return None;
    }
    let (scale, unit) = unit_of(highest.max(-lowest), units);
    let step = step((highest - lowest) / scale) * scale;
    let first = (lowest / step).floor();
    let length = (highest / step).ceil() * step - first * step;
    let x = |value: f64| LEFT + (RIGHT - LEFT) * ((value - first * step) / length).clamp(0.0, 1.0);
    let is_endless = |row: &IntervalRow| row.low.is_some() && row.high.is_none();
    let drawn = |(at, row): (u32, &IntervalRow)| DrawnRow {
        goes_on_below: row.low.unwrap_or(row.mean) < -most,
        goes_on_above: is_endless(row) || row.high.unwrap_or(row.mean) > most,
        name: shortened(&row.name, LETTERS),
        at: TOP + at * ROW,
        low: x(row.low.unwrap_or(row.mean)),
        mean: x(row.mean),
        high: row.high.map_or_else(|| if is_endless(row) { RIGHT } else { x(row.mean) }, x),
        value: row.value.clone(),
        standing: row.standing,
        class: row.class,
    };
    let ticks = (0..=(length / step).round() as u32).map(|count| (first + f64::from(count)) * step);
    let bottom = TOP + rows.len() as u32 * ROW;
    let said = rows.iter().map(|row| format!("{}: {}, {}.", row.name, row.value, row.standing));
    let drawing = Drawing {
        id: id("plot", title),
        title: title.to_owned(),
        description: said.collect::<Vec<_>>().join(" "),
        unit,
        height: bottom + 24,
        bottom,
        zero: x(0.0),
        ticks: ticks.map(|value| Tick { at: x(value), label: tick_number(value / scale) }).collect(),
        rows: (0..).zip(rows).map(drawn).collect(),
    };
    Some(Picture { svg: drawing.render().ok()?, note: String::new() })
}
