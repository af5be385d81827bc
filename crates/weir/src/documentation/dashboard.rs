//! `dashboards/grafana.json`: a panel for each figure, made from the declarations. `WEIR_WRITE=1 cargo test -p weir dashboard`
//! writes it again; `tests/truth/dashboard.rs` evaluates its queries in Prometheus.

use crate::figures::{Declared, declared};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use weir_live::{PREFIX, metric_name};
use weir_metrics::{Figure, Kind, Merge, Unit};

/// Columns of Grafana's grid.
const WIDTH: usize = 24;
/// Panels beside each other.
const COLUMNS: usize = 3;
/// Height of a panel in Grafana's rows, each of 30 pixels.
const HEIGHT: usize = 7;
/// What is drawn of a distribution.
const QUANTILES: [&str; 3] = ["0.5", "0.95", "0.99"];
/// Which series a panel takes: those of the workloads that are chosen above.
const CHOSEN: &str = "workload=~\"$workload\"";

/// A panel without its place: what it asks for, and how that is named in a legend.
struct Panel {
    title: String,
    description: String,
    kind: &'static str,
    unit: &'static str,
    queries: Vec<(String, String)>,
    /// Whether only the latest values are asked for.
    is_instant: bool,
}

impl Panel {
    /// Of a figure, by its kind.
    fn of(figure: &Figure) -> Self {
        let metric = metric_name(figure);
        let workload = || "{{workload}}".to_owned();
        let (queries, unit, title) = match figure.kind {
            Kind::Counter => {
                let query = format!("sum by (workload) (rate({metric}{{{CHOSEN}}}[$__rate_interval]))");
                let unit = if figure.unit == Unit::Bytes { "Bps" } else { "none" };
                (vec![(query, workload())], unit, format!("{} a second", figure.name))
            }
            Kind::Gauge(merge) => {
                let sum = if merge == Merge::Sum { "sum" } else { "max" };
                let query = format!("{sum} by (workload) ({metric}{{{CHOSEN}}})");
                (vec![(query, workload())], unit(figure), figure.name.to_owned())
            }
            Kind::Spread | Kind::Signed => {
                let quantile = |of: &&str| {
                    let rate = format!("rate({metric}_bucket{{{CHOSEN}}}[$__rate_interval])");
                    let query = format!("histogram_quantile({of}, sum by (le, workload) ({rate}))");
                    (query, format!("{{{{workload}}}} {of}"))
                };
                (QUANTILES.iter().map(quantile).collect(), unit(figure), figure.name.to_owned())
            }
        };
        let description = figure.help.to_owned();
        Self { title, description, kind: "timeseries", unit, queries, is_instant: false }
    }

    fn json(&self, id: usize, x: usize, y: usize, width: usize) -> Value {
        let targets = self.queries.iter().zip('A'..).map(|((query, legend), letter)| {
            json!({
                "datasource": source(),
                "refId": letter.to_string(),
                "expr": query,
                "legendFormat": legend,
                "instant": self.is_instant,
                "format": if self.kind == "table" { "table" } else { "time_series" },
            })
        });
        json!({
            "id": id,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": source(),
            "gridPos": {"x": x, "y": y, "w": width, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": self.unit}, "overrides": []},
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}

fn unit(figure: &Figure) -> &'static str {
    match figure.unit {
        Unit::Count => "none",
        Unit::Bytes => "bytes",
        Unit::Micros => "s",
    }
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// What is of the run as a whole.
fn of_the_run() -> Vec<Panel> {
    let panel = |title: &str, kind, is_instant, query: String, legend: &str, description: &str| Panel {
        title: title.to_owned(),
        description: description.to_owned(),
        kind,
        unit: "none",
        queries: vec![(query, legend.to_owned())],
        is_instant,
    };
    let failures = format!(
        "sum by (workload, kind, side) (rate({PREFIX}_failures_total{{{CHOSEN}}}[$__rate_interval]))"
    );
    // Each name is a row: a metric that a run does not have is not asked for.
    let all = |ending: &str| {
        format!("sum by (workload, __name__) ({{__name__=~\"{PREFIX}_.+_{ending}\", {CHOSEN}}})")
    };
    vec![
        panel("running", "stat", false, format!("{PREFIX}_running"), "", "1 while a run goes on"),
        panel(
            "seconds complete",
            "stat",
            false,
            format!("{PREFIX}_run_complete_seconds"),
            "",
            "Seconds of the run that are in the figures",
        ),
        panel(
            "run",
            "table",
            true,
            format!("{PREFIX}_run_info"),
            "",
            "The run that goes on, or the last one",
        ),
        panel(
            "failures a second",
            "timeseries",
            false,
            failures,
            "{{workload}} {{kind}} ({{side}})",
            "Clients that failed, by kind and side",
        ),
        panel("counters", "table", true, all("total"), "", "All counters, from the start of weir"),
        panel(
            "values",
            "table",
            true,
            all("count"),
            "",
            "Values of all distributions, from the start of weir",
        ),
    ]
}

/// Panels below a row's title, which folds them unless it is open.
fn row(title: &str, panels: &[Panel], is_open: bool, id: &mut usize, y: &mut usize) -> Vec<Value> {
    let mut next = || {
        *id += 1;
        *id
    };
    let mut row = json!({
        "id": next(), "type": "row", "title": title, "collapsed": !is_open, "panels": [],
        "gridPos": {"x": 0, "y": *y, "w": WIDTH, "h": 1},
    });
    let width = WIDTH / COLUMNS;
    let placed = panels.iter().enumerate().map(|(number, panel)| {
        let (x, line) = (number % COLUMNS * width, number / COLUMNS);
        panel.json(next(), x, *y + 1 + line * HEIGHT, width)
    });
    let placed: Vec<_> = placed.collect();
    *y += 1;
    if is_open {
        *y += panels.len().div_ceil(COLUMNS) * HEIGHT;
        [vec![row], placed].concat()
    } else {
        row["panels"] = placed.into();
        vec![row]
    }
}

fn dashboard() -> Value {
    let (mut id, mut y) = (0, 0);
    let mut panels = row("The run", &of_the_run(), true, &mut id, &mut y);
    let mut known = BTreeSet::new();
    for (number, Declared { of, figures }) in declared().iter().enumerate() {
        // Protocols may share a figure: it has one panel.
        let own: Vec<_> = figures.iter().filter(|it| known.insert(metric_name(it))).map(Panel::of).collect();
        if !own.is_empty() {
            panels.extend(row(of, &own, number == 0, &mut id, &mut y));
        }
    }
    json!({
        "title": "weir",
        "uid": "weir",
        "tags": ["weir"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
            {
                "name": "workload", "label": "workload", "type": "query", "datasource": source(),
                "query": format!("label_values({PREFIX}_slots_planned_total, workload)"),
                "refresh": 2, "multi": true, "includeAll": true, "allValue": ".*",
            },
        ]},
        "panels": panels,
    })
}

#[test]
fn the_dashboard_is_that_of_the_declarations() {
    super::assert_up_to_date("dashboards/grafana.json", &format!("{:#}\n", dashboard()));
}

#[test]
fn each_figure_has_one_panel() {
    let text = dashboard().to_string();
    for figure in declared().iter().flat_map(|it| &it.figures) {
        let metric = metric_name(figure);
        let panels = text.matches(&format!("({metric}{{")).count()
            + text.matches(&format!("(0.5, sum by (le, workload) (rate({metric}_bucket{{")).count();
        assert_eq!(panels, 1, "{metric}");
    }
}
