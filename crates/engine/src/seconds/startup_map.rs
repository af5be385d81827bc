//! How many clients came to play after how long, over time: few cells, however long the run is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::Histogram;

/// Columns of a map. A longer run has longer ones: they are what fits on a page.
const COLUMNS: usize = 120;

/// Bounds of the rows, in microseconds: three a decade, from 100 µs to 50 s.
const BOUNDS: [u64; 18] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
    2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000,
];

const ROWS: usize = BOUNDS.len() + 1;

/// Of fewer clients the percentiles say all.
const FEWEST_CLIENTS: u64 = 500;

/// Clients that came to play, by when and after how long. Only of 500 or more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartupMap {
    /// Seconds of the run that a column stands for, from second 0.
    pub column_seconds: u32,
    /// Bounds between rows: the first row is below the first of them, the last is not below the last.
    pub bounds_seconds: Vec<f64>,
    /// One list a column: how many clients came to play in it, row by row.
    pub columns: Vec<Vec<u64>>,
}

/// What a map is made of, second by second. Its size does not grow with the run.
#[derive(Debug)]
pub(crate) struct StartupCounts {
    column_seconds: u32,
    columns: Vec<[u64; ROWS]>,
}

impl Default for StartupCounts {
    fn default() -> Self {
        Self { column_seconds: 1, columns: Vec::new() }
    }
}

impl StartupCounts {
    /// Adds the clients that came to play in a second.
    pub(crate) fn add(&mut self, second: u32, startups: &Histogram<u64>) {
        if startups.is_empty() {
            return;
        }
        while (second / self.column_seconds) as usize >= COLUMNS {
            self.halve();
        }
        let column = (second / self.column_seconds) as usize;
        if self.columns.len() <= column {
            self.columns.resize(column + 1, [0; ROWS]);
        }
        for value in startups.iter_recorded() {
            let row = BOUNDS.partition_point(|bound| *bound <= value.value_iterated_to());
            self.columns[column][row] += value.count_since_last_iteration();
        }
    }

    /// Two columns become one.
    fn halve(&mut self) {
        let pair = |pair: &[[u64; ROWS]]| {
            let mut sum = pair[0];
            for (row, more) in sum.iter_mut().zip(pair.get(1).into_iter().flatten()) {
                *row += more;
            }
            sum
        };
        self.columns = self.columns.chunks(2).map(pair).collect();
        self.column_seconds *= 2;
    }

    /// The map without empty rows at either end; `None` for a few clients.
    pub(crate) fn map(&self) -> Option<StartupMap> {
        let in_row = |row: usize| self.columns.iter().map(|column| column[row]).sum::<u64>();
        let rows: Vec<u64> = (0..ROWS).map(in_row).collect();
        let (first, last) = (rows.iter().position(|it| *it > 0)?, rows.iter().rposition(|it| *it > 0)?);
        if rows.iter().sum::<u64>() < FEWEST_CLIENTS {
            return None;
        }
        // A bound on both sides of what is left, where there is one.
        let bounds = &BOUNDS[first.saturating_sub(1)..(last + 1).min(BOUNDS.len())];
        let rows = if first == 0 { 0 } else { first - 1 }..=(last + 1).min(ROWS - 1);
        Some(StartupMap {
            column_seconds: self.column_seconds,
            bounds_seconds: bounds.iter().map(|bound| *bound as f64 / 1e6).collect(),
            columns: self.columns.iter().map(|column| column[rows.clone()].to_vec()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::{Recorder, Schema, common::STARTUP};

    fn counts(seconds: impl Iterator<Item = u32>, micros: &[u64]) -> StartupCounts {
        let mut counts = StartupCounts::default();
        for second in seconds {
            let mut recorder = Recorder::new(Schema::new(&[]));
            micros.iter().for_each(|value| recorder.record(STARTUP, *value));
            counts.add(second, recorder.spread(STARTUP));
        }
        counts
    }

    #[test]
    fn a_map_has_the_clients_of_each_second_and_no_empty_rows_around_them() {
        let map = counts(0..100, &[1_500, 1_500, 1_500, 7_000, 30_000]).map().unwrap();
        assert_eq!((map.column_seconds, map.columns.len()), (1, 100));
        assert_eq!(map.bounds_seconds, [0.001, 0.002, 0.005, 0.01, 0.02, 0.05]);
        assert_eq!(map.columns[0], [0, 3, 0, 1, 0, 1, 0]);
        assert!(counts(0..50, &[1_500; 5]).map().is_none(), "250 clients");
    }

    #[test]
    fn a_day_has_no_more_columns_than_a_minute_and_loses_nobody() {
        let map = counts((0..86_400).step_by(7), &[900, 60_000_000]).map().unwrap();
        assert!(map.columns.len() <= COLUMNS && map.column_seconds == 1_024, "{}", map.column_seconds);
        let clients: u64 = map.columns.iter().flatten().sum();
        assert_eq!(clients, 2 * 86_400_u64.div_ceil(7));
        assert!(map.columns.iter().all(|column| column.len() == map.bounds_seconds.len() + 1));
    }
}
