//! When clients came to play, and after how long, as a map of SVG: the stronger the colour of a cell, the more clients.

use crate::picture::{Picture, id};
use crate::plot::{Tick, time_label, time_step};
use crate::quantity::{TIE, count, seconds, several};
use crate::quote::quote;
use askama::Template;
use weir_engine::startup_map::StartupMap;
use weir_engine::summary::WorkloadSummary;

#[derive(Template)]
#[template(path = "startup_map.svg", escape = "html")]
struct Drawing {
    id: String,
    title: String,
    description: String,
    strongest: String,
    ticks: Vec<Tick>,
    bounds: Vec<Tick>,
    cells: Vec<DrawnCell>,
    width: f64,
    height: f64,
}

struct DrawnCell {
    x: f64,
    y: f64,
    opacity: f64,
    said: String,
}

/// Where the cells are, within the 368 by 216 units of all plots.
const LEFT: f64 = 52.0;
const RIGHT: f64 = 360.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 192.0;

/// Columns with clients in them: with fewer, the percentiles show everything.
const FEWEST_COLUMNS: usize = 10;

/// The picture of a workload many of whose clients came one after the other.
pub(crate) fn startup_map(workload: &WorkloadSummary, is_one_of_several: bool) -> Option<Picture> {
    let map = workload.startup_map.as_ref()?;
    let occupied = map.columns.iter().filter(|column| column.iter().any(|it| *it > 0)).count();
    let (columns, rows) = (map.columns.len(), map.bounds_seconds.len() + 1);
    // Read from a file, it may be anything.
    if occupied < FEWEST_COLUMNS || map.columns.iter().any(|column| column.len() != rows) {
        return None;
    }
    let title = match is_one_of_several {
        true => format!("Startup, by when clients came: {}", quote(&workload.name, 40)),
        false => "Startup, by when clients came".to_owned(),
    };
    let most = map.columns.iter().flatten().copied().max()?;
    let (width, height) = ((RIGHT - LEFT) / columns as f64, (BOTTOM - TOP) / rows as f64);
    let cell = |column: usize, row: usize, clients: u64| DrawnCell {
        x: LEFT + column as f64 * width,
        y: BOTTOM - (row + 1) as f64 * height,
        // By its logarithm, so that a few slow clients are seen beside many fast ones.
        opacity: 0.15 + 0.85 * (clients as f64).ln_1p() / (most as f64).ln_1p(),
        said: said(map, column, row, clients),
    };
    let cells = map.columns.iter().enumerate().flat_map(|(column, rows)| {
        rows.iter().enumerate().filter(|(_, it)| **it > 0).map(move |(row, it)| (column, row, *it))
    });
    let length = columns as f64 * f64::from(map.column_seconds);
    let step = time_step(length);
    let ticks = (0..=(length / step) as u32).map(|number| f64::from(number) * step);
    let bound = |(row, bound): (usize, &f64)| Tick {
        at: BOTTOM - (row + 1) as f64 * height,
        label: seconds(*bound).replace(".00", "").replace(".0", ""),
    };
    let drawing = Drawing {
        id: id("plot", &title),
        description: format!(
            "{} in {occupied} columns of {} s.",
            several(map.columns.iter().flatten().sum(), "client"),
            map.column_seconds
        ),
        strongest: format!("strongest: {}", several(most, "client")),
        ticks: ticks
            .map(|at| Tick { at: LEFT + (RIGHT - LEFT) * at / length, label: time_label(length, at) })
            .collect(),
        bounds: map.bounds_seconds.iter().enumerate().map(bound).collect(),
        cells: cells.map(|(column, row, clients)| cell(column, row, clients)).collect(),
        title,
        width,
        height,
    };
    Some(Picture {
        svg: drawing.render().ok()?,
        note: format!(
            "One column is {}{TIE}s. The stronger its colour, the more clients came to play in a cell, by the logarithm of their number.",
            map.column_seconds
        ),
    })
}

/// `12 clients after 2 to 5 ms, from 30 s on`.
fn said(map: &StartupMap, column: usize, row: usize, clients: u64) -> String {
    let (below, above) =
        (row.checked_sub(1).and_then(|it| map.bounds_seconds.get(it)), map.bounds_seconds.get(row));
    let after = match (below, above) {
        (Some(low), Some(high)) => format!("{} to {}", seconds(*low), seconds(*high)),
        (None, Some(high)) => format!("less than {}", seconds(*high)),
        (Some(low), None) => format!("{} or more", seconds(*low)),
        (None, None) => "any time".to_owned(),
    };
    let begin = column as u64 * u64::from(map.column_seconds);
    format!("{} after {after}, from {} s on", several(clients, "client"), count(begin))
}
