//! One row a stage of a workload (RFC 4180): every scalar of the stage, its loads, and its figures
//! flattened, with the unit in the column's name (`startup_p99_seconds`).

use crate::stages::state_word;
use std::collections::BTreeMap;
use std::io;
use weir_engine::summary::{FigureValue, ProcessLoad, StageSummary, Summary, Value, WorkloadSummary};
use weir_observe::{MachineFacts, MachineSource, MachineUsage};

/// The columns of a row, in order, with their values; what was not measured is missing.
type Row = Vec<(String, String)>;

/// The stages of a run as comma-separated values.
pub(crate) fn write(summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
    let rows: Vec<Row> = summary
        .workloads
        .iter()
        .flat_map(|workload| workload.stages.iter().map(|stage| row(summary, workload, stage)))
        .collect();
    let mut columns: Vec<&str> = Vec::new();
    let mut known = BTreeMap::new();
    for (name, _) in rows.iter().flatten() {
        known.entry(name.as_str()).or_insert_with(|| {
            columns.push(name);
            columns.len() - 1
        });
    }
    let mut writer = writer(out);
    if columns.is_empty() {
        columns = STAGELESS.to_vec();
    }
    writer.write_record(&columns)?;
    for row in &rows {
        let mut cells = vec![""; columns.len()];
        for (name, value) in row {
            cells[known[name.as_str()]] = value;
        }
        writer.write_record(&cells)?;
    }
    writer.flush()
}

/// A writer of rows whose lines end as RFC 4180 has it.
pub(crate) fn writer(out: &mut dyn io::Write) -> ::csv::Writer<&mut dyn io::Write> {
    ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(out)
}

/// The head of a file without rows.
const STAGELESS: [&str; 5] = ["run", "workload", "role", "stage", "clients"];

fn row(summary: &Summary, workload: &WorkloadSummary, stage: &StageSummary) -> Row {
    let mut row: Row = Vec::new();
    let mut put = |name: &str, value: String| row.push((name.to_owned(), value));
    put("run", word(&summary.run.id));
    put("workload", word(&workload.name));
    put("role", workload.role.name().to_owned());
    put("stage", stage.stage.to_string());
    put("clients", stage.clients.to_string());
    put("begin_seconds", decimal(stage.begin_seconds));
    put("end_seconds", decimal(stage.end_seconds));
    put("window_begin_seconds", stage.window_begin_seconds.to_string());
    put("window_end_seconds", stage.window_end_seconds.to_string());
    put("playing_mean", decimal(stage.playing_mean));
    put("expected_bps", stage.expected_bps.map(decimal).unwrap_or_default());
    put("actual_bps", decimal(stage.actual_bps));
    if let Some(rate) = stage.messages {
        put("offered_messages_per_second", rate.offered_per_second.map(decimal).unwrap_or_default());
        put("messages_per_second", decimal(rate.actual_per_second));
    }
    put("verdict", state_word(stage.verdict).to_owned());
    put("run_verdict", state_word(summary.verdict.state).to_owned());
    for (name, slots) in [
        ("planned", workload.slots.planned),
        ("on_time", workload.slots.on_time),
        ("late", workload.slots.late),
        ("missed", workload.slots.missed),
        ("failed", workload.slots.failed),
    ] {
        put(&format!("workload_slots_{name}"), slots.to_string());
    }
    for (number, target) in (1..).zip(&stage.targets) {
        let prefix = if number == 1 { "target".to_owned() } else { format!("target{number}") };
        process(&mut row, &prefix, target);
    }
    // What it used is unknown, and has no value.
    for (number, label) in (stage.targets.len() + 1..).zip(&stage.unheard) {
        let prefix = if number == 1 { "target".to_owned() } else { format!("target{number}") };
        row.push((format!("{prefix}_label"), word(label)));
    }
    if let Some(generator) = &stage.generator {
        process(&mut row, "generator", generator);
    }
    host(&mut row, stage);
    for (facts, usage) in summary.run.machines.iter().zip(&stage.machines) {
        machine(&mut row, facts, usage);
    }
    for (name, figure) in &stage.figures.0 {
        flatten(&mut row, name, figure);
    }
    row
}

fn process(row: &mut Row, prefix: &str, load: &ProcessLoad) {
    let mut put = |name: &str, value: String| row.push((format!("{prefix}_{name}"), value));
    put("label", word(&load.label));
    put("cpu_percent", decimal(load.cpu_percent));
    put("cpu_percent_max", decimal(load.cpu_percent_max));
    put("rss_mean_bytes", decimal(load.rss_mean_bytes));
    put("rss_max_bytes", load.rss_max_bytes.to_string());
    put("connections_max", load.connections_max.map(|it| it.to_string()).unwrap_or_default());
    put("descriptors_max", load.descriptors_max.map(|it| it.to_string()).unwrap_or_default());
    put("context_switches_per_second", decimal(load.context_switches_per_second));
    let busiest = load.threads.first();
    put("busiest_thread", busiest.map(|it| word(&it.name)).unwrap_or_default());
    put("busiest_thread_cpu_percent", busiest.map(|it| decimal(it.cpu_percent_busiest)).unwrap_or_default());
}

fn host(row: &mut Row, stage: &StageSummary) {
    let Some(host) = &stage.host else { return };
    for (name, value) in [
        ("cpu_percent", host.cpu_percent),
        ("steal_percent", host.steal_percent),
        ("load1_max", host.load1_max),
        ("memory_used_max_bytes", host.memory_used_max_bytes as f64),
        ("rx_bps", host.rx_bps),
        ("tx_bps", host.tx_bps),
        ("tcp_retransmits_per_second", host.tcp_retransmits_per_second),
        ("listen_drops", host.listen_drops as f64),
    ] {
        row.push((format!("host_{name}"), decimal(value)));
    }
    row.extend(host.others_percent.map(|others| ("host_others_percent".to_owned(), decimal(others))));
}

/// Columns of a machine's source: one that has no value has no column.
fn machine(row: &mut Row, facts: &MachineFacts, usage: &MachineUsage) {
    let source = match facts.source {
        MachineSource::Proc => "proc",
        MachineSource::NodeExporter => "node_exporter",
        MachineSource::Prometheus => "prometheus",
    };
    let keys = ["cpu_percent", "memory_bytes", "load1", "tx_bps", "rx_bps"];
    for (key, (_, figure)) in keys.into_iter().zip(usage.named()) {
        let Some(figure) = figure else { continue };
        for (statistic, value) in [("mean", figure.mean), ("max", figure.max)] {
            row.push((format!("machine_{source}_{key}_{statistic}"), decimal(value)));
        }
    }
}

fn flatten(row: &mut Row, name: &str, figure: &FigureValue) {
    let unit = figure.unit.suffix();
    let mut put =
        |statistic: &str, value: f64| row.push((format!("{name}{statistic}{unit}"), decimal(value)));
    match figure.value {
        Value::Counter { total, per_second } => {
            put("", total);
            row.push((format!("{name}{unit}_per_second"), decimal(per_second)));
        }
        Value::Gauge { mean, max, last } => {
            put("_mean", mean);
            put("_max", max);
            put("_last", last);
        }
        Value::Spread(spread) => {
            row.push((format!("{name}_count"), spread.count.to_string()));
            if spread.count == 0 {
                return;
            }
            let mut put =
                |statistic: &str, value: f64| row.push((format!("{name}{statistic}{unit}"), decimal(value)));
            put("_min", spread.min);
            put("_mean", spread.mean);
            put("_p50", spread.p50);
            put("_p90", spread.p90);
            put("_p95", spread.p95);
            put("_p99", spread.p99);
            put("_p999", spread.p999);
            put("_max", spread.max);
        }
    }
}

/// A text that a spreadsheet takes for one: before what it would take for a formula stands an apostrophe. Names of
/// workloads, channels, processes and threads are others' words.
pub(crate) fn word(text: &str) -> String {
    let begins_a_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if begins_a_formula { format!("'{text}") } else { text.to_owned() }
}

/// A number with a point, to nine places, without an exponent; empty if it is not finite.
pub(crate) fn decimal(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_a_formula_and_a_number_stays_one() {
        for text in ["=HYPERLINK(\"http://h\")", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert_eq!(word(text), format!("'{text}"));
        }
        assert_eq!(
            (word("rtmp://h/live/…1"), decimal(-0.5)),
            ("rtmp://h/live/…1".to_owned(), "-0.5".to_owned())
        );
    }
}
