//! What each client of a workload left behind, and all of them together.

use crate::summary::{ClientFigure, ClientRow, ClientStates, ClientsSummary, StateCount};
use weir_clients::{Column, ColumnUnit, Statistic};
use weir_metrics::Failure;

/// What one client said when it ended.
#[derive(Debug)]
pub(crate) struct ReaderRecord {
    pub(crate) channel: u32,
    pub(crate) client: u32,
    /// `None` for one that never read.
    pub(crate) since: Option<f64>,
    pub(crate) until: f64,
    pub(crate) failure: Option<Failure>,
    pub(crate) numbers: Vec<Option<f64>>,
}

/// Sums up the clients of a workload: `planned` of them, of which some left a record. `None` if none did.
pub(crate) fn of_accounts(
    columns: &'static [Column],
    accounts: &[ReaderRecord],
    planned: u64,
) -> Option<ClientsSummary> {
    if columns.is_empty() || accounts.is_empty() {
        return None;
    }
    let mut rows: Vec<ClientRow> = accounts.iter().map(row).collect();
    rows.sort_by_key(|row| row.client);
    let planned = planned.max(rows.len() as u64);
    let mut states = Vec::new();
    let mut figures = Vec::new();
    let mut at = 0;
    while at < columns.len() {
        let count = columns[at..].iter().take_while(|it| it.figure == columns[at].figure).count();
        let group = &columns[at..at + count];
        match group[0].unit {
            ColumnUnit::Word(words) => states.push(in_states(&group[0], words, &rows, at)),
            _ => figures.push(figure(group, &rows, at, planned)),
        }
        at += count;
    }
    Some(ClientsSummary { planned, accounts: rows.len() as u64, states, figures, columns, rows })
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

fn in_states(column: &Column, words: &[&str], rows: &[ClientRow], at: usize) -> ClientStates {
    let of = |position: usize| {
        let is_it = |row: &&ClientRow| row.numbers.get(at).copied().flatten() == Some(position as f64);
        rows.iter().filter(is_it).count() as u64
    };
    let clients = words.iter().enumerate();
    let clients =
        clients.map(|(position, word)| StateCount { state: (*word).to_owned(), clients: of(position) });
    ClientStates { name: column.key(), title: column.title.to_owned(), clients: clients.collect() }
}

/// One figure over all clients. Its mean and its percentiles are over the clients' own means; its least and its most are
/// the least and the most that any client has met.
fn figure(group: &[Column], rows: &[ClientRow], at: usize, planned: u64) -> ClientFigure {
    let of = |wanted: &[Statistic]| -> Vec<f64> {
        let Some(offset) = group.iter().position(|column| wanted.contains(&column.statistic)) else {
            return Vec::new();
        };
        let found = rows.iter().filter_map(|row| row.numbers.get(at + offset).copied().flatten());
        let mut values: Vec<f64> = found.collect();
        if group[offset].is_zero_by_default() {
            // A client that was planned and never started has counted nothing.
            values.resize(values.len().max(planned as usize), 0.0);
        }
        values.sort_by(f64::total_cmp);
        values
    };
    let own = of(&[Statistic::Sum, Statistic::Once, Statistic::Mean]);
    let (least, most) = (of(&[Statistic::Least]), of(&[Statistic::Most]));
    let is_sum = group[0].statistic == Statistic::Sum;
    let sum: f64 = own.iter().sum();
    ClientFigure {
        name: group[0].figure.to_owned(),
        title: group[0].title.to_owned(),
        unit: group[0].unit.into(),
        summed: group[0].summed,
        count: own.len().max(least.len()).max(most.len()) as u64,
        total: is_sum.then_some(sum),
        mean: (!own.is_empty()).then(|| sum / own.len() as f64),
        max: most.last().or(own.last()).copied(),
        min: least.first().or(own.first()).copied(),
        p50: quantile(&own, 0.5),
        p90: quantile(&own, 0.9),
        p95: quantile(&own, 0.95),
        p99: quantile(&own, 0.99),
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
        let accounts =
            [account(1, None, &first), account(0, None, &second), account(2, Some(Failure::IceTimeout), &[])];
        // A fourth was planned, and never began.
        let summary = of_accounts(columns_of("ws"), &accounts, 4).unwrap();
        assert_eq!(summary.rows.iter().map(|row| row.client).collect::<Vec<_>>(), [0, 1, 2]);
        let of = |name: &str| summary.figures.iter().find(|figure| figure.name == name).unwrap();
        let fps = of("rtc.fps");
        assert_eq!((fps.count, fps.mean, fps.min, fps.max), (4, Some(13.5), Some(0.0), Some(33.0)));
        assert_eq!((fps.p50, fps.p90), (Some(0.0), Some(30.0)));
        let delay = of("rtc.video_delay");
        assert_eq!((delay.count, delay.max, delay.p50), (2, Some(1.5), Some(0.1)));
        let lost = of("lost");
        assert_eq!((lost.total, lost.mean, lost.max, lost.count), (Some(51.0), Some(12.75), Some(51.0), 4));
        assert!(of_accounts(columns_of("rtmp"), &accounts, 4).is_none());
    }
}
