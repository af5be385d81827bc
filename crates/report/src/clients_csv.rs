//! One row a client (RFC 4180): what each left behind when it ended, with the unit in the column's name
//! (`rtc.video_delay_max_seconds`). Of protocols whose clients leave nothing there are no rows.

use crate::csv::{decimal, word};
use std::io;
use weir_engine::summary::{ClientColumn, ClientRow, ColumnUnit, Summary, WorkloadSummary};

/// What every row begins with.
const HEAD: [&str; 8] =
    ["run", "workload", "client", "target", "failure", "since_seconds", "until_seconds", "running_seconds"];

/// The clients of a run, one by one, as comma-separated values.
pub(crate) fn write(summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
    let workloads = summary.workloads.iter().filter_map(|it| Some((it, it.clients.as_ref()?)));
    let mut keys: Vec<String> = Vec::new();
    for key in workloads.clone().flat_map(|(_, clients)| clients.columns).map(ClientColumn::key) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut writer = crate::csv::writer(out);
    writer.write_record(HEAD.into_iter().chain(keys.iter().map(String::as_str)))?;
    for (workload, clients) in workloads {
        let places: Vec<Option<usize>> =
            keys.iter().map(|key| clients.columns.iter().position(|it| it.key() == *key)).collect();
        for row in &clients.rows {
            let own = places
                .iter()
                .map(|place| place.map_or_else(String::new, |at| cell(clients.columns, row, at)));
            writer.write_record(head(summary, workload, row).into_iter().chain(own))?;
        }
    }
    writer.flush()
}

fn head(summary: &Summary, workload: &WorkloadSummary, row: &ClientRow) -> [String; HEAD.len()] {
    let running = row.since_seconds.map(|since| row.until_seconds - since);
    [
        word(&summary.run.id),
        word(&workload.name),
        row.client.to_string(),
        workload.targets.get(row.target as usize).map(|target| word(target)).unwrap_or_default(),
        row.failure.map(|failure| failure.key().to_owned()).unwrap_or_default(),
        row.since_seconds.map(decimal).unwrap_or_default(),
        decimal(row.until_seconds),
        running.map(decimal).unwrap_or_default(),
    ]
}

fn cell(columns: &[ClientColumn], row: &ClientRow, at: usize) -> String {
    let Some(number) = row.numbers.get(at).copied().flatten() else { return String::new() };
    match columns[at].unit {
        ColumnUnit::Word(words) => words.get(number as usize).copied().unwrap_or_default().to_owned(),
        _ => decimal(number),
    }
}
