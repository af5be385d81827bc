//! What weir is shown to print has the columns and labels that it prints now: each is a text in its sources.

use super::markdown::{Block, blocks};
use super::pages::{pages, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Titles of columns have four words at most.
const MOST_WORDS: usize = 4;

/// The texts of weir's sources by which columns and labels are named, without what is filled in (`Not {bound}`); each line of one that is
/// broken for narrow tables by itself.
fn texts() -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((!["tests", "benches", "documentation"].contains(&&*name)).then_some(path));
            } else if name.ends_with(".rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                for text in source.split('"').filter(|text| text.len() < 60) {
                    texts.extend(text.split("\\n").map(without_values));
                    texts.insert(without_values(&text.replace("\\n", " ")));
                }
            }
        }
    }
    texts
}

/// A text without what stands between braces, and without numbers; `p99` and `95%` are words of titles.
fn without_values(text: &str) -> String {
    let plain: String = text
        .split('{')
        .enumerate()
        .map(|(number, piece)| if number == 0 { piece } else { piece.split_once('}').map_or("", |it| it.1) })
        .collect();
    let words = plain
        .split_whitespace()
        .filter(|word| !word.contains(|it: char| it.is_ascii_digit()) || word.contains(['%', 'p']));
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a reader chose the name: a variant (`A`, `small`) or a key of a matrix.
fn is_readers_own(word: &str) -> bool {
    word.len() == 1 || word.chars().all(|it| it.is_ascii_lowercase())
}

/// The words of a line of titles that no text of weir begins with.
fn unknown_titles(line: &str, texts: &BTreeSet<String>) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut unknown = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let longest = (1..=MOST_WORDS.min(words.len() - at)).rev().find(|length| {
            let title = words[at..at + length].join(" ");
            texts.contains(&title) || *length == 1 && is_readers_own(&title)
        });
        if longest.is_none() {
            unknown.push(words[at].to_owned());
        }
        at += longest.unwrap_or(1);
    }
    unknown
}

/// The label in front of what a line says, as in `Outcome  completed in 35 s`.
fn label(line: &str) -> Option<&str> {
    let (label, rest) = line.split_once("  ")?;
    let is_label = label.starts_with(|it: char| it.is_ascii_alphabetic()) && !rest.trim().is_empty();
    is_label.then_some(label)
}

/// Columns and labels of a transcript that weir does not print.
fn stale(block: &Block<'_>, texts: &BTreeSet<String>) -> Vec<String> {
    let lines: Vec<&str> = block.text.lines().collect();
    let mut stale = Vec::new();
    let mut is_in_table = false;
    for (number, line) in lines.iter().enumerate() {
        let is_rule = !line.is_empty() && line.chars().all(|it| it == '─');
        let is_above_rule =
            lines[number..].iter().take(3).take_while(|it| !it.is_empty()).any(|it| it.starts_with("──"));
        is_in_table = is_rule || is_in_table && !line.is_empty();
        if is_rule || is_in_table {
            continue;
        }
        if is_above_rule {
            // The line right above the rule, and the upper half of titles in two lines: a table's own title is no title of a column.
            let is_titles = lines[number + 1].starts_with("──") || line.starts_with(' ');
            stale.extend(is_titles.then(|| unknown_titles(line, texts)).into_iter().flatten());
        } else if let Some(label) = label(line) {
            let name = without_values(label);
            let is_known = texts.contains(&name) || is_readers_own(&name);
            stale.extend((!is_known).then(|| label.to_owned()));
        }
    }
    stale
}

#[test]
fn columns_and_labels_of_transcripts_are_those_that_weir_prints() {
    let texts = texts();
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages() {
        let is_read = page.path == Path::new("README.md") || page.path.starts_with("docs/guide");
        for block in blocks(&page.text).iter().filter(|block| is_read && !block.is_not_run) {
            if !matches!(block.language, "" | "text") {
                continue;
            }
            found += 1;
            let stale = stale(block, &texts);
            wrong.extend(stale.into_iter().map(|name| format!("{}: {name}", page.path.display())));
        }
    }
    assert!(found >= 12, "{found} transcripts");
    assert!(wrong.is_empty(), "weir prints no such column or label; print it again: {wrong:#?}");
}

#[test]
fn a_column_that_is_gone_is_found_and_what_a_reader_named_is_not() {
    let texts = ["Server", "CPU", "Gen.", "Busiest thread", "Not", "Rate a reader"].map(str::to_owned).into();
    let table = "Own title\n          Gen.\nServer workers Latency Busiest thread CPU\n─────────\nnginx  1 2 3 4\n\nNot 1,501  x\nNever  x\n";
    let block = Block { language: "text", is_not_run: false, text: table.to_owned() };
    assert_eq!(stale(&block, &texts), ["Latency", "Never"]);
    assert_eq!(without_values("Not {bound}"), "Not");
    assert_eq!(without_values("Not 1,501"), "Not");
}
