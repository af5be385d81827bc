//! Runs of one name in a folder of run directories, read for their history.

use crate::answer::Answer;
use crate::{ErrorKind, RunError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weir_answers::capacity::CapacitySummary;
use weir_answers::compare::ComparedRun;
use weir_answers::history::History;
use weir_engine::record::RunHead;
use weir_engine::summary::Summary;
use weir_files::MOST_DOCUMENT;
use weir_report::quote;
use weir_setting::NAME;

/// How deep runs are looked for: those of a series lie in its directory, which may lie in one a day.
const DEEPEST: usize = 4;

/// What a line of an error is cut to.
const LINE: usize = 400;

const HEAD: &str = "run.json";
const SUMMARY: &str = "summary.json";

/// Which runs of a folder are meant.
#[derive(Clone, Copy, Debug)]
pub struct PastRuns<'a> {
    /// The folder.
    pub directory: &'a Path,
    /// Their name; needed if there are several.
    pub name: Option<&'a str>,
    /// Labels that they carry.
    pub tags: &'a BTreeMap<String, String>,
    /// Figures to look at, or parts of their names; those of a series' table if empty.
    pub figures: &'a [String],
}

impl PastRuns<'_> {
    /// Reads them.
    ///
    /// # Errors
    /// There is no such folder, run or figure, or several names.
    pub fn history(&self) -> Result<History, RunError> {
        if !self.directory.is_dir() {
            let line = format!("{} is not a folder; give one with run directories", self.directory.display());
            return Err(usage(&line));
        }
        let mut found = Vec::new();
        find(self.directory, DEEPEST, &mut found);
        found.sort();
        let mut unread = Vec::new();
        let mut labelled: Vec<(PathBuf, Labels)> = Vec::new();
        // Of hundreds of runs those that are meant are known by their first lines: the others are not read whole.
        for directory in found {
            match read::<LabelledRun>(&directory, HEAD) {
                Ok(it) => labelled.push((directory, it.run)),
                Err(why) => unread.push(why),
            }
        }
        labelled.retain(|(_, run)| self.tags.iter().all(|(key, value)| run.tags.get(key) == Some(value)));
        let name = self.chosen(&labelled, !self.tags.is_empty(), &unread)?;
        let mut runs = Vec::new();
        for (directory, _) in labelled.iter().filter(|(_, run)| run.name == name) {
            match whole(directory) {
                Ok(run) => runs.extend(run),
                Err(why) => unread.push(why),
            }
        }
        let history = History::new(&name, self.tags, runs, self.figures);
        let mut history = history.map_err(|error| usage(&with_lines(&error.to_string(), &unread)))?;
        history.warnings.splice(0..0, unread);
        Ok(history)
    }

    /// The name of the runs that are meant.
    fn chosen(
        &self,
        labelled: &[(PathBuf, Labels)],
        is_tagged: bool,
        unread: &[String],
    ) -> Result<String, RunError> {
        let mut names: Vec<&str> = labelled.iter().map(|(_, run)| &*run.name).collect();
        names.sort_unstable();
        names.dedup();
        let line = match (self.name, &names[..]) {
            (Some(name), names) if names.contains(&name) => return Ok(name.to_owned()),
            (None, [only]) => return Ok((*only).to_owned()),
            (_, []) => {
                let of = if is_tagged { " with these tags" } else { "" };
                format!("there is no run{of} in {}", self.directory.display())
            }
            (Some(name), names) => format!("there is no run of '{name}'; there are: {}", listed(names)),
            (None, names) => {
                format!("there are runs of several names; choose one with {NAME}: {}", listed(names))
            }
        };
        Err(usage(&with_lines(&line, unread)))
    }
}

/// What was asked for wrongly. Names of a run directory may come from others: control characters are
/// shown, not sent to the terminal.
fn usage(text: &str) -> RunError {
    let lines: Vec<_> = text.lines().map(|line| quote(line, LINE)).collect();
    RunError::new(ErrorKind::Usage, lines.join("\n"))
}

/// A line, and below it those about runs that could not be read, which may be why.
fn with_lines(line: &str, others: &[String]) -> String {
    [line].into_iter().chain(others.iter().map(String::as_str)).collect::<Vec<_>>().join("\n")
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| quote(name, 40)).collect::<Vec<_>>().join(", ")
}

/// Run directories in a folder. Links are not followed: one that leads back has no end.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if folder.join("run.json").exists() {
        found.push(folder.to_owned());
        return;
    }
    // Trials hold loads that were chosen to be too much: they are no repetitions.
    if depth == 0 || CapacitySummary::read(folder).is_some() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&entry.path(), depth - 1, found);
        }
    }
}

/// The part of `run.json` by which runs are chosen.
#[derive(Deserialize)]
struct LabelledRun {
    run: Labels,
}

#[derive(Deserialize)]
struct Labels {
    name: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
}

/// A run that wrote its summary: it is not summed up again, since there may be hundreds. One without a summary is left out.
fn whole(directory: &Path) -> Result<Option<ComparedRun>, String> {
    if !directory.join(SUMMARY).exists() {
        return Ok(None);
    }
    let head: RunHead = read(directory, HEAD)?;
    let mut summary: Summary = read(directory, SUMMARY)?;
    // Of hundreds of runs, each second of each would be held for nothing.
    summary.series = Vec::new();
    let name = directory.display().to_string();
    Ok(Some(ComparedRun { name, repetition: None, head, summary }))
}

/// A file of a run directory; an error is the line that says that the run is left out, and why.
fn read<T: DeserializeOwned>(directory: &Path, file: &str) -> Result<T, String> {
    let path = directory.join(file);
    let bytes = weir_files::read(&path, MOST_DOCUMENT).map_err(|error| error.to_string());
    let value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    value.map_err(|why| format!("{} is left out: {file}: {why}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(directory: &Path, name: Option<&str>, tags: &[(&str, &str)]) -> String {
        let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let runs = PastRuns { directory, name, tags: &tags, figures: &[] };
        runs.history().unwrap_err().to_string()
    }

    #[test]
    fn a_run_that_cannot_be_read_is_named_and_what_names_do_to_a_terminal_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, file: &str, text: &str| {
            let directory = folder.path().join(name);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join(file), text).unwrap();
        };
        write("broken", HEAD, "{\"run\": ");
        let said = says(folder.path(), None, &[]);
        assert!(said.starts_with("there is no run in ") && said.lines().count() == 2, "{said}");
        assert!(said.contains("broken is left out: run.json: EOF"), "{said}");
        // Chosen by its labels, which are read without the rest.
        write("other", HEAD, r#"{"run": {"name": "a\u001b[2Jb", "tags": {"site": "lab"}}}"#);
        write("other", SUMMARY, "no JSON");
        let said = says(folder.path(), Some("x"), &[]);
        assert!(said.contains("there are: a\\u{1b}[2Jb") && !said.contains('\u{1b}'), "{said}");
        let said = says(folder.path(), None, &[("site", "lab")]);
        assert!(said.contains("other is left out: run.json: missing field"), "{said}");
        let said = says(folder.path(), None, &[("site", "field")]);
        assert!(said.starts_with("there is no run with these tags in "), "{said}");
    }
}
