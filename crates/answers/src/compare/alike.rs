//! Whether runs may be compared: what they were asked to do, and where. What differs is named key by key.

use super::side::{ComparedRun, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use weir_engine::summary::VerdictState;

/// Keys of a scenario that do not change what is measured, or say which target it is.
const BESIDE_THE_LOAD: [&str; 26] = [
    "name",
    "tags",
    "watch",
    "prometheus",
    "prometheus_instance",
    "node_exporter",
    "interfaces",
    "base",
    "thresholds",
    "abort",
    "accept",
    // The repetitions of a series have seeds of their own.
    "seed",
    "show_keys",
    "variants",
    "matrix",
    "find",
    "repeat",
    "order",
    "before",
    "after",
    "insecure",
    "cacert",
    "cert",
    "key",
    "bind_addr",
    "shards",
];

/// What a machine has now, and what it is called until it is started again; memory and interfaces are compared by themselves.
const PASSING: [&str; 4] = ["boot_id", "disk_available_bytes", "interfaces", "memory"];

/// What a workload is sent to, or its rows.
const TARGETS: [&str; 4] = ["play", "publish", "ingest", "probe"];

/// Rates of a source that differ by less are one: what encoders send depends on the picture.
const SAME_RATE: f64 = 0.1;

/// The shortest window over which the rate of a source is compared: in a few seconds one keyframe more or less matters.
const SHORTEST_WINDOW_SECONDS: f64 = 10.0;

/// Memory that differs by less is the same: a kernel takes a little more or less of it.
const SAME_MEMORY: f64 = 0.02;

/// Something that is not the same in two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unlike {
    /// What: `workloads[0].clients`, `environment.cpu.model`.
    pub key: String,
    /// The run that was compared with the first run of the base.
    pub run: String,
    /// What it is in the first run of the base.
    pub base: String,
    /// What it is in the other.
    pub other: String,
}

/// What differs between runs.
#[derive(Debug, Default)]
pub(super) struct Likeness {
    /// What must not.
    pub(super) unlike: Vec<Unlike>,
    /// What may: it is what is compared.
    pub(super) subject: Vec<Unlike>,
}

/// Compares every run with the first one of the base. What differs between variants of one series is what is compared.
pub(super) fn likeness(sides: &[Side]) -> Likeness {
    let mut found = Likeness::default();
    let Some((base, first)) = sides.first().and_then(|side| Some((side, side.runs.first()?))) else {
        return found;
    };
    let mut known = BTreeSet::new();
    for side in sides {
        let is_variant = is_variant_of(base, side);
        let of_side = side.runs.iter().flat_map(|run| {
            let likeness = between(first, run, is_variant);
            [(likeness.unlike, true), (likeness.subject, false)]
        });
        for (differences, is_unlike) in of_side {
            for it in differences {
                if known.insert((side.name.clone(), it.key.clone(), it.other.clone())) {
                    if is_unlike { found.unlike.push(it) } else { found.subject.push(it) }
                }
            }
        }
    }
    for side in &sides[1..] {
        let is_variant = is_variant_of(base, side);
        compare_sources(base, side, is_variant, &mut found);
    }
    for run in sides.iter().flat_map(|side| &side.runs) {
        if let Some(why) = run.not_counted() {
            let run = run.name.clone();
            found.unlike.push(Unlike {
                key: "verdict".to_owned(),
                run,
                base: "valid".to_owned(),
                other: why,
            });
        }
    }
    found
}

/// Whether both are variants of one series.
fn is_variant_of(base: &Side, side: &Side) -> bool {
    side.series.is_some() && side.series == base.series && side.name != base.name
}

/// All that is not the same in a run as in the one before it.
pub(crate) fn changed_between(before: &ComparedRun, run: &ComparedRun) -> Vec<Unlike> {
    let Likeness { unlike, subject } = between(before, run, false);
    unlike.into_iter().chain(subject).collect()
}

fn between(base: &ComparedRun, other: &ComparedRun, is_variant: bool) -> Likeness {
    let mut found = Likeness::default();
    let mut put = |key: &str, one: String, two: String, may_differ: bool| {
        let unlike = Unlike { key: key.to_owned(), run: other.name.clone(), base: one, other: two };
        if may_differ { found.subject.push(unlike) } else { found.unlike.push(unlike) }
    };
    let each = |one: &BTreeMap<String, String>, two: &BTreeMap<String, String>| {
        let keys: BTreeSet<_> = one.keys().chain(two.keys()).cloned().collect();
        let of = |map: &BTreeMap<String, String>, key: &String| map.get(key).cloned().unwrap_or_else(none);
        let all = keys.into_iter().map(|key| (of(one, &key), of(two, &key), key));
        all.filter(|(one, two, _)| one != two).collect::<Vec<_>>()
    };
    for (one, two, key) in each(&load(base), &load(other)) {
        put(&key, one, two, is_variant);
    }
    for (one, two, key) in each(&targets(base), &targets(other)) {
        put(&key, one, two, true);
    }
    for (one, two, key) in each(&generator(base), &generator(other)) {
        put(&key, one, two, false);
    }
    // Containers bring interfaces with names of their own and take them away again, so that only those are compared that both runs had.
    for (name, one) in speeds(base) {
        let Some((_, two)) = speeds(other).find(|(it, _)| *it == name) else { continue };
        if one != two {
            put(&format!("environment.interfaces.{name}"), one.to_string(), two.to_string(), false);
        }
    }
    let (one, two) = (memory(base), memory(other));
    if (one - two).abs() > one.max(two) * SAME_MEMORY {
        put("environment.memory.total_bytes", one.to_string(), two.to_string(), false);
    }
    found
}

fn none() -> String {
    "none".to_owned()
}

/// What was asked for: the scenario without what says where.
fn load(run: &ComparedRun) -> BTreeMap<String, String> {
    let mut scenario = serde_json::to_value(&run.head.scenario).unwrap_or_default();
    if let Some(scenario) = scenario.as_object_mut() {
        for key in BESIDE_THE_LOAD {
            scenario.remove(key);
        }
        for workload in scenario.get_mut("workloads").and_then(Value::as_array_mut).into_iter().flatten() {
            for verb in TARGETS {
                let Some(urls) = workload.get_mut(verb).and_then(Value::as_array_mut) else { continue };
                for url in urls {
                    // The protocol is part of the load; the server is what is compared.
                    let scheme = url.as_str().and_then(|url| url.split_once("://")).map(|(scheme, _)| scheme);
                    *url = scheme.unwrap_or_default().into();
                }
            }
            if let Some(into) = workload.get_mut("into").and_then(Value::as_object_mut) {
                into.remove("save");
            }
        }
    }
    let mut flat = BTreeMap::new();
    flatten("", &scenario, &mut flat);
    for (at, facts) in run.head.workloads.iter().enumerate() {
        flat.insert(format!("workloads[{at}].protocol"), facts.protocol.clone());
    }
    flat
}

/// Where it went.
fn targets(run: &ComparedRun) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    for (at, spec) in run.head.scenario.workloads.iter().enumerate() {
        let save = spec.into.as_ref().and_then(|into| serde_json::to_value(into).ok());
        let save = save.as_ref().and_then(|into| into.get("save")?.as_str().map(str::to_owned));
        for (verb, urls) in [
            ("play", &spec.play.0),
            ("publish", &spec.publish.0),
            ("ingest", &spec.ingest.0),
            ("probe", &spec.probe.0),
        ] {
            if !urls.is_empty() {
                flat.insert(format!("workloads[{at}].{verb}"), urls.join(", "));
            }
        }
        if let Some(save) = save {
            flat.insert(format!("workloads[{at}].into.save"), save);
        }
    }
    for (at, target) in run.head.run.targets.iter().enumerate() {
        let facts = serde_json::to_value(target).unwrap_or_default();
        for key in ["version", "command_line"] {
            if let Some(value) = facts.get(key).filter(|value| !value.is_null()) {
                flatten(&format!("targets[{at}].{key}"), value, &mut flat);
            }
        }
    }
    for (at, server) in run.head.run.servers.iter().enumerate() {
        flat.insert(format!("servers[{at}].version"), server.version.clone());
    }
    flat
}

/// Which generator made the load, and on which machine.
fn generator(run: &ComparedRun) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    let mut environment = serde_json::to_value(&run.head.run.environment).unwrap_or_default();
    if let Some(environment) = environment.as_object_mut() {
        for key in PASSING {
            environment.remove(key);
        }
    }
    flatten("environment", &environment, &mut flat);
    flat.insert("weir_version".to_owned(), run.head.run.weir_version.clone());
    let scenario = &run.head.scenario;
    flat.insert("shards".to_owned(), scenario.shards.map_or_else(none, |shards| shards.to_string()));
    flat.insert("bind_addr".to_owned(), scenario.bind_addr.len().to_string());
    flat
}

/// The network interfaces of a run's machine with the bits that each carries in a second.
fn speeds(run: &ComparedRun) -> impl Iterator<Item = (&str, u64)> {
    run.head.run.environment.interfaces.iter().map(|it| (it.name.as_str(), it.bits_per_second))
}

fn memory(run: &ComparedRun) -> f64 {
    run.head.run.environment.memory.map_or(0.0, |memory| memory.total_bytes as f64)
}

/// Adds where the source of one side sends at another rate than that of the base.
fn compare_sources(base: &Side, other: &Side, may_differ: bool, found: &mut Likeness) {
    let mut rates = source_rates(other);
    for (place, one) in source_rates(base) {
        let Some(two) = rates.remove(&place) else { continue };
        if (one - two).abs() <= one.max(two) * SAME_RATE {
            continue;
        }
        let bps = |rate: f64| format!("{} kbps", (rate / 1e3).round());
        let key = format!("{place}.source");
        let unlike = Unlike { key, run: other.name.clone(), base: bps(one), other: bps(two) };
        if may_differ { found.subject.push(unlike) } else { found.unlike.push(unlike) }
    }
}

/// What a source of others sent for one client of each stage, in the median of the runs. What a run publishes itself is in its
/// scenario, and a server that takes it slowly must not be refused for that.
fn source_rates(side: &Side) -> BTreeMap<String, f64> {
    let publishes = |run: &ComparedRun| run.head.scenario.workloads.iter().any(|it| !it.publish.0.is_empty());
    let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in side.runs.iter().filter(|run| !publishes(run)) {
        for (at, workload) in run.summary.workloads.iter().enumerate() {
            for stage in workload.stages.iter().filter(|it| it.window_seconds() >= SHORTEST_WINDOW_SECONDS) {
                let Some(bps) = stage.expected_bps else { continue };
                let place = format!("workloads[{at}].stages[{}]", stage.stage);
                rates.entry(place).or_default().push(bps / f64::from(stage.clients.max(1)));
            }
        }
    }
    let median = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    rates.into_iter().map(|(place, rates)| (place, median(rates))).collect()
}

/// Every leaf of a value under its path.
fn flatten(path: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, flat);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (at, value) in list.iter().enumerate() {
                let name = value.get("name").and_then(Value::as_str);
                match (name, value.get("value")) {
                    // A setting goes by its name, so that one more of them does not shift the others.
                    (Some(name), Some(setting)) => flatten(&format!("{path}.{name}"), setting, flat),
                    _ => flatten(&format!("{path}[{at}]"), value, flat),
                }
            }
        }
        Value::Null | Value::Object(_) | Value::Array(_) => {}
        Value::String(text) => {
            flat.insert(path.to_owned(), text.clone());
        }
        other => {
            flat.insert(path.to_owned(), other.to_string());
        }
    }
}

impl ComparedRun {
    /// Why its figures cannot be believed, if they cannot.
    pub(crate) fn not_counted(&self) -> Option<String> {
        use weir_engine::summary::Outcome;
        let summary = &self.summary;
        Some(match &summary.outcome {
            Outcome::Interrupted => "interrupted".to_owned(),
            Outcome::TargetDied => "the target died".to_owned(),
            Outcome::Running => "it still goes on".to_owned(),
            Outcome::AgentLost => "an agent was lost".to_owned(),
            Outcome::Aborted(threshold) => format!("{threshold} ended it"),
            Outcome::Completed | Outcome::NobodyLeft => match summary.verdict.state {
                VerdictState::Valid | VerdictState::Degraded => return None,
                VerdictState::NothingMeasured => "nothing was measured".to_owned(),
                VerdictState::Invalid => {
                    let reason = summary.verdict.reasons.first();
                    reason.map_or_else(|| "invalid".to_owned(), |it| format!("invalid: {}", it.text))
                }
            },
        })
    }
}
