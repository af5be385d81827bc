//! The table by channel, and who met the gaps in each.

use crate::digest::LINE;
use crate::document::{Cell, Column, Grid, Tone};
use crate::quantity::{bit_rate, count};
use crate::quote::quote;
use weir_engine::summary::{ChannelSummary, GapSources, WorkloadSummary};

/// The tables of a workload that read channels.
pub(crate) fn tables(workload: &WorkloadSummary) -> Vec<Grid> {
    let Some(first) = workload.channels.first() else { return Vec::new() };
    let mut tables = vec![counts(first, &workload.channels)];
    tables.extend(sources(&workload.channels));
    tables
}

fn counts(first: &ChannelSummary, channels: &[ChannelSummary]) -> Grid {
    let mut columns = vec![Column::word("CHANNEL"), Column::number("Readers")];
    columns.extend(first.figures.iter().map(|figure| {
        let title = quote(&figure.title, 20);
        Column::number(title.clone()).narrow(title.replace(' ', "\n"))
    }));
    columns.push(Column::number("Rate a reader").narrow("Rate a\nreader"));
    let rows = channels.iter().map(|channel| {
        let mut row = vec![Cell::text(name(channel)), Cell::text(count(channel.readers))];
        row.extend(channel.figures.iter().map(|figure| Cell::text(count(figure.total))));
        row.push(Cell::quantity(bit_rate(channel.bit_rate_bps)));
        row
    });
    let caption = "What the readers of each channel counted, ramps and drain included".to_owned();
    Grid { caption, columns, rows: rows.collect() }
}

/// Who met the gaps, if there were any.
fn sources(channels: &[ChannelSummary]) -> Option<Grid> {
    let met = |channel: &&ChannelSummary| channel.gaps != GapSources::default();
    let rows: Vec<_> = channels
        .iter()
        .filter(met)
        .map(|channel| {
            let GapSources { of_source, of_connection, of_generator, unknown } = channel.gaps;
            let mut row = vec![Cell::text(name(channel))];
            row.extend([of_source, of_connection, of_generator, unknown].map(|gaps| Cell::text(count(gaps))));
            row[3].tone = if of_generator > 0 { Tone::Doubtful } else { Tone::Plain };
            row
        })
        .collect();
    let columns = vec![
        Column::word("CHANNEL"),
        Column::number("All readers: server or tuner").narrow("All: server\nor tuner"),
        Column::number("Some readers: connection").narrow("Some:\nconnection"),
        Column::number("Some, while this host dropped: generator").narrow("Some, and host\ndropped: weir"),
        Column::number("Its only reader: unknown").narrow("Only reader:\nunknown"),
    ];
    let caption = "Places with gaps, by the readers that met them".to_owned();
    (!rows.is_empty()).then_some(Grid { caption, columns, rows })
}

/// What comes before the URL, or the URL.
fn name(channel: &ChannelSummary) -> String {
    let text = channel.target.split_once(", http").map_or(&*channel.target, |(label, _)| label);
    quote(text, LINE.min(60))
}
