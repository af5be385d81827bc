//! `dashboards/grafana.json`: a panel for each figure, made from the declarations. `WEIR_WRITE=1 cargo test -p weir dashboard`
//! writes it again; `tests/truth/dashboard.rs` evaluates its queries in Prometheus.

use crate::figures::{DeclaredFigures, declared};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use weir_live::process_metrics::{AGENT, MACHINE, OF_MACHINES, OF_SERVERS, OF_WEIR, SERVER};
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
/// What most people ask first of a run, in this order, before CPU and memory of the servers.
const ASKED_FIRST: [&str; 6] = ["playing", "received", "failures", "startup", "latency", "stalls"];
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
                match figure.unit {
                    // As in weir's own tables.
                    Unit::Bytes => {
                        (vec![(format!("8 * {query}"), workload())], "bps", figure.name.to_owned())
                    }
                    Unit::Count => (vec![(query, workload())], "cps", format!("{} a second", figure.name)),
                    Unit::Micros => {
                        (vec![(query, workload())], "s", format!("{}, seconds a second", figure.name))
                    }
                }
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

    /// Of a level of a process or a machine, one line for each.
    fn of_process(figure: &Figure, label: Option<&str>) -> Self {
        let metric = metric_name(figure);
        let (query, legend) = match label {
            Some(SERVER) => (
                format!("max by ({SERVER}, {AGENT}) ({metric})"),
                format!("{{{{{SERVER}}}}} {{{{{AGENT}}}}}"),
            ),
            Some(label) => (format!("max by ({label}) ({metric})"), format!("{{{{{label}}}}}")),
            None => (format!("max ({metric})"), "weir".to_owned()),
        };
        let unit = match figure.name.rsplit('.').next() {
            Some("cpu" | "busiest_thread") => "percentunit",
            Some("tx" | "rx") => "Bps",
            _ => unit(figure),
        };
        Self {
            title: figure.name.to_owned(),
            description: figure.help.to_owned(),
            kind: "timeseries",
            unit,
            queries: vec![(query, legend)],
            is_instant: false,
        }
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
        Unit::Count => "short",
        Unit::Bytes => "bytes",
        Unit::Micros => "s",
    }
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// Clients that failed, by kind: a metric that is no figure's.
fn failures() -> Panel {
    let chosen = format!("{PREFIX}_failures_total{{{CHOSEN}}}");
    let query = format!("sum by (workload, kind, side) (rate({chosen}[$__rate_interval]))");
    Panel {
        title: "failures a second".to_owned(),
        description: "clients that failed, by kind and side".to_owned(),
        kind: "timeseries",
        unit: "cps",
        queries: vec![(query, "{{workload}} {{kind}} ({{side}})".to_owned())],
        is_instant: false,
    }
}

/// What is asked first: of clients, then of the servers.
fn at_a_glance() -> Vec<Panel> {
    let common = weir_metrics::common::FIGURES;
    let of = |name: &&str| common.iter().find(|it| it.name == *name).map_or_else(failures, Panel::of);
    let [cpu, memory, ..] = &OF_SERVERS;
    let servers = [cpu, memory].map(|it| Panel::of_process(&it.figure, Some(SERVER)));
    let weir = Panel::of_process(&OF_WEIR[0].figure, None);
    ASKED_FIRST.iter().map(of).chain(servers).chain([weir]).collect()
}

/// What is left of servers, their machines and weir.
fn of_processes() -> Vec<Panel> {
    let servers = OF_SERVERS[2..].iter().map(|it| Panel::of_process(&it.figure, Some(SERVER)));
    let machines = OF_MACHINES.iter().map(|it| Panel::of_process(&it.figure, Some(MACHINE)));
    let weir = OF_WEIR[1..].iter().map(|it| Panel::of_process(&it.figure, None));
    servers.chain(machines).chain(weir).collect()
}

/// What is of the run as a whole.
fn of_the_run() -> Vec<Panel> {
    let panel = |title: &str, kind, is_instant, query: String, legend: &str, description: &str| Panel {
        title: title.to_owned(),
        description: description.to_owned(),
        kind,
        unit: if title == "seconds complete" { "s" } else { "none" },
        queries: vec![(query, legend.to_owned())],
        is_instant,
    };
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
    let mut panels = row("At a glance", &at_a_glance(), true, &mut id, &mut y);
    panels.extend(row("Servers, their machines, and weir", &of_processes(), false, &mut id, &mut y));
    panels.extend(row("The run", &of_the_run(), false, &mut id, &mut y));
    let mut known = BTreeSet::new();
    for DeclaredFigures { of, figures } in &declared() {
        // Protocols may share a figure: it has one panel.
        let mut own: Vec<_> = figures.iter().filter(|it| known.insert(metric_name(it))).collect();
        own.retain(|it| !ASKED_FIRST.contains(&it.name));
        let own: Vec<_> = own.into_iter().map(Panel::of).collect();
        if !own.is_empty() {
            panels.extend(row(of, &own, false, &mut id, &mut y));
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
    let of_processes = OF_SERVERS.iter().map(|it| it.figure).chain(OF_MACHINES.iter().map(|it| it.figure));
    for figure in of_processes.chain(OF_WEIR.iter().map(|it| it.figure)) {
        let metric = metric_name(&figure);
        assert_eq!(text.matches(&format!("({metric})")).count(), 1, "{metric}");
    }
}

#[test]
fn what_most_people_ask_first_stands_first() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap().iter().skip(1).take(9);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shown = panels.map(|it| (text(&it["title"]), text(&it["fieldConfig"]["defaults"]["unit"])));
    let shown: Vec<_> = shown.collect();
    let shown: Vec<_> = shown.iter().map(|(title, unit)| (title.as_str(), unit.as_str())).collect();
    assert_eq!(
        shown,
        [
            ("playing", "short"),
            ("received", "bps"),
            ("failures a second", "cps"),
            ("startup", "s"),
            ("latency", "s"),
            ("stalls a second", "cps"),
            ("server.cpu", "percentunit"),
            ("server.memory", "bytes"),
            ("generator.cpu", "percentunit"),
        ]
    );
}
