//! What each client of a workload left behind, and all of them together.

pub(crate) mod channel;
pub(crate) mod reader_record;
pub(crate) mod reader_records;
pub(crate) mod reservoir;
pub(crate) mod servers;
pub(crate) mod sums;

use crate::summary::{ClientFigure, ClientRow, ClientStates, ClientsSummary, StateCount};
use reader_record::ReaderRecord;
use reader_records::ReaderRecords;
use sums::ColumnSums;
use weir_clients::{Column, ColumnUnit, Statistic};

/// Sums up the clients of a workload: `planned` of them, of which some left a record. `None` if none did.
pub(crate) fn of_records(
    columns: &'static [Column],
    records: &ReaderRecords,
    planned: u64,
) -> Option<ClientsSummary> {
    if columns.is_empty() || records.all() == 0 {
        return None;
    }
    let mut rows: Vec<ClientRow> = records.kept().iter().map(row).collect();
    rows.sort_by_key(|row| row.client);
    let planned = planned.max(records.all());
    let mut states = Vec::new();
    let mut figures = Vec::new();
    let mut at = 0;
    while at < columns.len() {
        let count = columns[at..].iter().take_while(|it| it.figure == columns[at].figure).count();
        let group = &columns[at..at + count];
        match group[0].unit {
            ColumnUnit::Word(words) => states.push(in_states(&group[0], words, records, at)),
            _ => figures.push(figure(group, records, at, planned)),
        }
        at += count;
    }
    Some(ClientsSummary { planned, accounts: records.all(), states, figures, columns, rows })
}

fn row(account: &ReaderRecord) -> ClientRow {
    ClientRow {
        client: account.client,
        target: account.channel,
        failure: account.failure,
        since_seconds: account.since,
        until_seconds: account.until,
        numbers: account.numbers.clone(),
    }
}

fn in_states(column: &Column, words: &[&str], records: &ReaderRecords, at: usize) -> ClientStates {
    let of = |position: usize| records.column(at).map_or(0, |column| column.of_word(position));
    let clients = words.iter().enumerate();
    let clients =
        clients.map(|(position, word)| StateCount { state: (*word).to_owned(), clients: of(position) });
    ClientStates { name: column.key(), title: column.title.to_owned(), clients: clients.collect() }
}

/// One figure over all clients. Its mean and its percentiles are over the clients' own means; its least and its most are
/// the least and the most that any client has met. Percentiles are of the clients that are kept one by one.
fn figure(group: &[Column], records: &ReaderRecords, at: usize, planned: u64) -> ClientFigure {
    let offset_of = |wanted: &[Statistic]| group.iter().position(|column| wanted.contains(&column.statistic));
    // A client that was planned and never started has counted nothing.
    let missing = |offset: usize, count: u64| {
        if group[offset].is_zero_by_default() { planned.saturating_sub(count) } else { 0 }
    };
    let of = |wanted: &[Statistic]| -> Option<ColumnSums> {
        let offset = offset_of(wanted)?;
        let column = records.column(at + offset).cloned().unwrap_or_default();
        let missing = missing(offset, column.count);
        let column = column.with_zeroes(missing);
        Some(column).filter(|column| column.count > 0)
    };
    let own = of(&[Statistic::Sum, Statistic::Once, Statistic::Mean]);
    let (least, most) = (of(&[Statistic::Least]), of(&[Statistic::Most]));
    let is_sum = group[0].statistic == Statistic::Sum;
    let count = |column: &Option<ColumnSums>| column.as_ref().map_or(0, |column| column.count);
    let values =
        offset_of(&[Statistic::Sum, Statistic::Once, Statistic::Mean]).map_or_else(Vec::new, |offset| {
            let kept = records.kept();
            let found = kept.iter().filter_map(|record| record.numbers.get(at + offset).copied().flatten());
            let mut values: Vec<f64> = found.collect();
            // As many of those that never started as stand for one that is kept.
            let (all, of_all) = (records.all(), records.column(at + offset).map_or(0, |it| it.count));
            let share = kept.len() as f64 / all.max(1) as f64;
            let zeroes = missing(offset, of_all) as f64 * share;
            values.resize(values.len() + zeroes.round() as usize, 0.0);
            values.sort_by(f64::total_cmp);
            values
        });
    ClientFigure {
        name: group[0].figure.to_owned(),
        title: group[0].title.to_owned(),
        unit: group[0].unit.into(),
        summed: group[0].summed,
        count: count(&own).max(count(&least)).max(count(&most)),
        total: is_sum.then(|| own.as_ref().map_or(0.0, |own| own.sum)),
        mean: own.as_ref().map(|own| own.sum / own.count as f64),
        max: most.as_ref().or(own.as_ref()).map(|column| column.most),
        min: least.as_ref().or(own.as_ref()).map(|column| column.least),
        p50: quantile(&values, 0.5),
        p90: quantile(&values, 0.9),
        p95: quantile(&values, 0.95),
        p99: quantile(&values, 0.99),
    }
}

/// The smallest of sorted values that at least this share of all does not exceed.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::Failure;
    use weir_protocols::columns_of;

    fn account(client: u32, failure: Option<Failure>, set: &[(&str, f64)]) -> ReaderRecord {
        let columns = columns_of("ws");
        let mut numbers = vec![None; columns.len()];
        for (key, number) in set {
            numbers[columns.iter().position(|column| column.key() == *key).unwrap()] = Some(*number);
        }
        ReaderRecord { channel: 0, client, since: Some(1.0), until: 11.0, failure, numbers }
    }

    #[test]
    fn who_never_played_is_in_the_mean_of_rates_and_not_in_that_of_delays() {
        let fps = |mean, least, most| [("rtc.fps_mean", mean), ("rtc.fps_min", least), ("rtc.fps_max", most)];
        let mut first = fps(30.0, 0.0, 31.0).to_vec();
        first.extend([
            ("rtc.video_delay_mean_seconds", 0.2),
            ("rtc.video_delay_max_seconds", 1.5),
            ("lost", 51.0),
        ]);
        let mut second = fps(24.0, 20.0, 33.0).to_vec();
        second.extend([
            ("rtc.video_delay_mean_seconds", 0.1),
            ("rtc.video_delay_max_seconds", 0.3),
            ("lost", 0.0),
        ]);
        let mut records = ReaderRecords::default();
        let accounts =
            [account(1, None, &first), account(0, None, &second), account(2, Some(Failure::IceTimeout), &[])];
        accounts.into_iter().for_each(|it| records.push(it));
        // A fourth was planned, and never began.
        let summary = of_records(columns_of("ws"), &records, 4).unwrap();
        assert_eq!(summary.rows.iter().map(|row| row.client).collect::<Vec<_>>(), [0, 1, 2]);
        let of = |name: &str| summary.figures.iter().find(|figure| figure.name == name).unwrap();
        let fps = of("rtc.fps");
        assert_eq!((fps.count, fps.mean, fps.min, fps.max), (4, Some(13.5), Some(0.0), Some(33.0)));
        assert_eq!((fps.p50, fps.p90), (Some(0.0), Some(30.0)));
        let delay = of("rtc.video_delay");
        assert_eq!((delay.count, delay.max, delay.p50), (2, Some(1.5), Some(0.1)));
        let lost = of("lost");
        assert_eq!((lost.total, lost.mean, lost.max, lost.count), (Some(51.0), Some(12.75), Some(51.0), 4));
        assert!(of_records(columns_of("rtmp"), &records, 4).is_none());
    }
}
