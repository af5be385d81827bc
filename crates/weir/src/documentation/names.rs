//! Names that tell a stranger nothing. Each stands beside what to say instead.

use super::pages::root;
use std::path::{Path, PathBuf};

/// Names of types, whole.
const TYPES: &[(&str, &str)] = &[
    ("Maker", "PayloadWriter, RecordGenerator: what it makes"),
    ("Way", "BrokerPath, Transport: the way to what"),
    ("Heard", "ReadOutcome, ServerMessage"),
    ("Front", "StreamPrefix, GateFront: what is in front of what"),
    ("Rounds", "BatchedReads, BatchRounds"),
    ("Held", "the noun of what it is"),
    ("Known", "the noun of what it is"),
    ("Taken", "the noun of what it is"),
    ("Found", "the noun of what it is"),
    ("Seen", "the noun of what it is"),
    ("Came", "the noun of what it is"),
    ("Fate", "SaveOutcome"),
    ("Cut", "LinkEnd, CommitFault"),
    ("Farewell", "FinishedOnDrop, LastMessage"),
    ("Nobody", "PeerGone"),
];

/// Participles that types were called by: each is the noun of what it is instead.
const PARTICIPLES: &[&str] = &[
    "Acknowledged",
    "Announced",
    "Blocked",
    "Brought",
    "Carried",
    "Compared",
    "Compiled",
    "Decrypted",
    "Departed",
    "Drawn",
    "Entered",
    "Estimated",
    "Framed",
    "Gathered",
    "Granted",
    "Joined",
    "Kept",
    "Labelled",
    "Matched",
    "Measured",
    "Modified",
    "Offered",
    "Opened",
    "Passed",
    "Patched",
    "Picked",
    "Pinned",
    "Recomputed",
    "Resolved",
    "Retained",
    "Scanned",
    "Shown",
    "Timed",
    "Unescaped",
    "Unreceived",
    "Unwrapped",
    "Written",
];

/// Names of constants, whole.
const CONSTANTS: &[(&str, &str)] = &[
    ("LOOK", "POLL_INTERVAL"),
    ("PATIENCE", "CONNECT_TIMEOUT, ANSWER_TIMEOUT: the time for what"),
    ("FAREWELL", "CLOSE_TIMEOUT"),
];

/// Rust files of the workspace, without what is built.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The name that a line declares as one of these.
fn declared<'a>(line: &'a str, keywords: &[&str]) -> Option<&'a str> {
    let words: Vec<&str> = line.split_whitespace().take(4).collect();
    let at = words.iter().position(|word| keywords.contains(word))?;
    let before_is_visibility = words[..at].iter().all(|word| word.starts_with("pub"));
    let name = words.get(at + 1).filter(|_| before_is_visibility)?;
    name.split(|it: char| !it.is_alphanumeric() && it != '_').next()
}

#[test]
fn no_type_and_no_constant_has_a_name_that_says_nothing() {
    let mut found = Vec::new();
    ["crates", "benches", "examples", "fuzz"].iter().for_each(|part| files(&root().join(part), &mut found));
    assert!(found.len() > 500, "{}", found.len());
    let mut wrong = Vec::new();
    for file in found {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let is_type = declared(line, &["struct", "enum", "trait", "type"]).map(|name| (name, TYPES));
            let is_constant = declared(line, &["const", "static"]).map(|name| (name, CONSTANTS));
            let types = declared(line, &["struct", "enum", "trait", "type"]);
            if let Some(name) = types.filter(|name| PARTICIPLES.contains(name)) {
                wrong.push(format!("{}:{number}: {name}: write the noun of what it is", file.display()));
            }
            for (name, list) in is_type.into_iter().chain(is_constant) {
                if let Some((_, better)) = list.iter().find(|(word, _)| *word == name) {
                    wrong.push(format!("{}:{number}: {name}: write {better}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
