//! The table by channel, and which readers met the gaps in each.

use crate::document::{Cell, Column, Grid, Tone, columns};
use crate::quantity::{bit_rate, count};
use crate::quote::{LINE, quote};
use weir_engine::summary::{ChannelSummary, GapSources, WorkloadSummary};

/// The tables of a workload that read channels.
pub(crate) fn tables(workload: &WorkloadSummary) -> Vec<Grid> {
    let Some(first) = workload.channels.first() else { return Vec::new() };
    let mut tables = vec![counts(first, &workload.channels)];
    tables.extend(sources(&workload.channels));
    tables
}

/// Figures that the table always has: bytes, packets, drops and lost packets. Of the others those that are not 0.
const ALWAYS: usize = 4;

fn counts(first: &ChannelSummary, channels: &[ChannelSummary]) -> Grid {
    let is_shown = |position: usize| {
        let counted = |channel: &ChannelSummary| channel.figures.get(position).is_some_and(|it| it.total > 0);
        position < ALWAYS || channels.iter().any(counted)
    };
    let shown: Vec<usize> = (0..first.figures.len()).filter(|position| is_shown(*position)).collect();
    let mut columns = vec![Column::word("CHANNEL"), Column::number("Readers")];
    let failed = channels.iter().any(|channel| channel.failed > 0);
    columns.extend(failed.then(|| Column::number("Failed")));
    columns.extend(shown.iter().map(|position| {
        let title = quote(&first.figures[*position].title, 20);
        Column::number(title.clone()).narrow(title.replace(' ', "\n"))
    }));
    columns.push(Column::number("Rate a reader").narrow("Rate a\nreader"));
    let rows = channels.iter().map(|channel| {
        let mut row = vec![Cell::text(name(channel)), Cell::text(count(channel.readers))];
        row.extend(failed.then(|| {
            let mut cell = Cell::text(count(channel.failed));
            cell.tone = if channel.failed > 0 { Tone::Doubtful } else { Tone::Plain };
            cell
        }));
        let figures = shown.iter().filter_map(|position| channel.figures.get(*position));
        row.extend(figures.map(|figure| Cell::text(count(figure.total))));
        row.push(Cell::quantity(bit_rate(channel.bit_rate_bps)));
        row
    });
    let mut caption = "What the readers of each channel counted, ramps and drain included".to_owned();
    let absent = (0..first.figures.len()).filter(|position| !shown.contains(position));
    let absent: Vec<String> = absent.map(|position| quote(&first.figures[position].title, 20)).collect();
    if !absent.is_empty() {
        caption.push_str(&format!("; 0 of each: {}", absent.join(", ")));
    }
    Grid { caption, columns, rows: rows.collect() }
}

/// Which readers met the gaps, if there were any.
fn sources(channels: &[ChannelSummary]) -> Option<Grid> {
    let met = |channel: &&ChannelSummary| channel.gaps != GapSources::default();
    let shown = if channels.iter().any(|channel| channel.gaps.unplaced > 0) { 5 } else { 4 };
    let rows: Vec<_> = channels
        .iter()
        .filter(met)
        .map(|channel| {
            let GapSources { of_source, of_connection, of_generator, unknown, unplaced } = channel.gaps;
            let places = [of_source, of_connection, of_generator, unknown, unplaced];
            let mut row = vec![Cell::text(name(channel))];
            row.extend(places[..shown].iter().map(|gaps| Cell::text(count(*gaps))));
            row[3].tone = if of_generator > 0 { Tone::Doubtful } else { Tone::Plain };
            row
        })
        .collect();
    let mut columns = columns![
        word "CHANNEL", number "All readers: server or tuner" / "All: server\nor tuner",
        number "Some readers: connection" / "Some:\nconnection",
        number "Some, while this host dropped: generator" / "Some, and this\nhost dropped",
        number "No other reader: unknown" / "No other\nreader",
        number "Not placed, of single readers" / "Not\nplaced",
    ];
    columns.truncate(1 + shown);
    let caption = "Places with gaps, by the readers that met them".to_owned();
    (!rows.is_empty()).then_some(Grid { caption, columns, rows })
}

/// What comes before the URL, or the URL.
fn name(channel: &ChannelSummary) -> String {
    let text = channel.target.split_once(", http").map_or(&*channel.target, |(label, _)| label);
    quote(text, LINE.min(60))
}
