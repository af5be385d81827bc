//! `weir history`: the runs in a folder, and since when a figure is what it is.

use crate::args::History as Arguments;
use crate::capacity;
use crate::exit::{Exit, Failure};
use crate::run::{self, written};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use weir_engine::compare::ComparedRun;
use weir_engine::history::History;
use weir_engine::record::RunHead;
use weir_engine::summary::Summary;
use weir_report::quote;

/// How deep runs are looked for: those of a series lie in its directory, which may lie in one a day.
const DEEPEST: usize = 4;

/// Prints it.
pub(crate) fn history(args: &Arguments) -> Result<Exit, Failure> {
    let usage = |line: String| Failure::new(Exit::Usage, line);
    if !args.directory.is_dir() {
        return Err(usage(format!(
            "{} is no folder; give one with run directories",
            args.directory.display()
        )));
    }
    let mut found = Vec::new();
    find(&args.directory, DEEPEST, &mut found);
    found.sort();
    let tags: BTreeMap<String, String> = args.tags.iter().cloned().collect();
    let mut runs: Vec<ComparedRun> = found.iter().filter_map(|directory| read(directory)).collect();
    runs.retain(|run| tags.iter().all(|(key, value)| run.head.run.tags.get(key) == Some(value)));
    let mut names: Vec<String> = runs.iter().map(|run| run.head.run.name.clone()).collect();
    names.sort();
    names.dedup();
    let name = match (&args.name, &names[..]) {
        (Some(name), names) if names.contains(name) => name.clone(),
        (None, [only]) => only.clone(),
        (_, []) => {
            let of = if tags.is_empty() { "" } else { " with these tags" };
            return Err(usage(format!("there is no run{of} in {}", args.directory.display())));
        }
        (Some(name), names) => {
            return Err(usage(format!("there is no run of '{name}'; there are: {}", listed(names))));
        }
        (None, names) => {
            return Err(usage(format!(
                "there are runs of several names; choose one with --name: {}",
                listed(names)
            )));
        }
    };
    runs.retain(|run| run.head.run.name == name);
    let history = History::new(&name, &tags, runs, &args.figures).map_err(Failure::with(Exit::Usage))?;
    show(&history, args)?;
    Ok(Exit::Passed)
}

fn show(history: &History, args: &Arguments) -> Result<(), Failure> {
    let bytes = |format: &str| {
        let mut bytes = Vec::new();
        weir_report::write_history(history, format, &run::text(), &mut bytes)
            .map_err(Failure::with(Exit::Internal))?;
        Ok::<_, Failure>(bytes)
    };
    let mut format = args.format.as_str();
    match &args.json {
        Some(path) if path.as_os_str() == "-" => format = "json",
        Some(path) => {
            std::fs::write(path, bytes("json")?).map_err(|error| run::refused(path, &error))?;
        }
        None => {}
    }
    written(std::io::stdout().lock().write_all(&bytes(format)?))
}

/// Names of a run directory may be somebody else's.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| quote(name, 40)).collect::<Vec<_>>().join(", ")
}

/// Run directories in a folder. Links are not followed: one that leads back has no end.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if folder.join("run.json").exists() {
        found.push(folder.to_owned());
        return;
    }
    // Trials hold loads that were chosen to be too much: they are no repetitions.
    if depth == 0 || capacity::read(folder).is_some() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth - 1, found);
        }
    }
}

/// A run that wrote its summary: it is not summed up again, since there may be hundreds. One that did not is none yet.
fn read(directory: &Path) -> Option<ComparedRun> {
    let file = |name: &str| std::fs::read(directory.join(name)).ok();
    let head: RunHead = serde_json::from_slice(&file("run.json")?).ok()?;
    let mut summary: Summary = serde_json::from_slice(&file("summary.json")?).ok()?;
    // Of hundreds of runs, each second of each would be held for nothing.
    summary.series = Vec::new();
    Some(ComparedRun {
        name: directory.display().to_string(),
        repetition: None,
        head,
        summary,
        distributions: Vec::new(),
    })
}
