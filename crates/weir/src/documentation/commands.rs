//! Commands and scenarios on the pages are such as weir takes.

use super::markdown::blocks;
use super::pages::{pages, root};
use crate::args::{Cli, qos_spelled_out};
use crate::outlets::live_address_joined;
use clap::Parser;
use std::ffi::OsString;
use weir_engine::scenario::Variation;

/// The command lines of a shell block, or those behind `$` of a transcript: without the bodies of here-documents, lines that end with `\` joined.
fn lines(block: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut body_ends_with: Option<String> = None;
    let mut begun = String::new();
    for line in block.lines() {
        if let Some(end) = &body_ends_with {
            if line == end {
                body_ends_with = None;
            }
            continue;
        }
        if let Some((_, end)) = line.split_once("<<") {
            body_ends_with = Some(end.trim_matches(['\'', '"', ' ']).to_owned());
        }
        match line.strip_suffix('\\') {
            Some(part) => begun.push_str(part),
            None => lines.push(std::mem::take(&mut begun) + line),
        }
    }
    lines
}

/// The words of each call of weir in a command line.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("{line}: a quotation is not closed"));
    let commands = words.split(|word| matches!(word.as_str(), "&" | "&&" | "|" | "||" | ";"));
    let is_variable = |word: &String| {
        word.split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|it| it.is_ascii_uppercase() || it == '_'))
    };
    let mut calls = Vec::new();
    for command in commands {
        let command: Vec<String> = command.iter().skip_while(|word| is_variable(word)).cloned().collect();
        if command.first().is_some_and(|program| program == "weir") {
            // What follows `>` is the shell's.
            let is_redirection = |word: &String| word.starts_with('>') || word.starts_with("2>");
            calls.push(command.into_iter().take_while(|word| !is_redirection(word)).collect());
        }
    }
    calls
}

#[test]
fn the_command_line_takes_every_command() {
    let (mut found, mut wrong) = (0, Vec::new());
    for page in pages() {
        for block in blocks(&page.text) {
            // A transcript shows its command behind a `$`.
            let prompted: String = block
                .text
                .replace("\\\n", "")
                .lines()
                .filter_map(|line| Some(line.strip_prefix("$ ")?.to_owned() + "\n"))
                .collect();
            let commands = if block.language == "sh" { &block.text } else { &prompted };
            for call in lines(commands).iter().flat_map(|line| calls(line)) {
                found += 1;
                let words = live_address_joined(qos_spelled_out(call.iter().map(OsString::from)));
                if let Err(error) = Cli::try_parse_from(words) {
                    let text = error.to_string();
                    let reason = text.lines().next().unwrap_or_default();
                    wrong.push(format!("{}: {}: {reason}", page.path.display(), call.join(" ")));
                }
                for file in call.iter().filter(|word| word.starts_with("scenarios/")) {
                    if !root().join(file).exists() {
                        wrong.push(format!("{}: there is no {file}", page.path.display()));
                    }
                }
            }
        }
    }
    assert!(found > 60, "{found} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_scenario_is_one() {
    let mut found = 0;
    for page in pages() {
        for block in blocks(&page.text).iter().filter(|block| block.language == "yaml" && !block.is_not_run) {
            found += 1;
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("scenario.yaml");
            std::fs::write(&file, &block.text).unwrap();
            // What the servers' files are made of.
            let words = block.text.split_whitespace().map(|word| word.trim_end_matches([',', '}']));
            for name in words.filter(|word| word.ends_with(".in")) {
                std::fs::write(folder.path().join(name), "").unwrap();
            }
            let variations = Variation::read(&file);
            for variation in variations.unwrap_or_else(|error| panic!("{}: {error}", page.path.display())) {
                let plan = variation.scenario.plan();
                plan.unwrap_or_else(|error| panic!("{}: {error}", page.path.display()));
            }
        }
    }
    assert!(found >= 9, "{found} scenarios");
}

/// nginx opens 1,024 files a worker unless it is told otherwise, and refuses clients beyond them whatever `worker_connections` says.
#[test]
fn every_nginx_has_files_for_its_connections() {
    let number = |text: &str, name: &str| -> Option<u32> {
        let (_, rest) = text.split_once(name)?;
        rest.trim_start().split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
    };
    let mut found = 0;
    for page in pages() {
        for block in blocks(&page.text) {
            let Some(connections) = number(&block.text, "worker_connections ") else { continue };
            found += 1;
            let files = number(&block.text, "worker_rlimit_nofile ").unwrap_or(1_024);
            let path = page.path.display();
            assert!(files >= connections, "{path}: {connections} connections, and {files} files");
        }
    }
    assert!(found > 0);
}

#[test]
fn commands_are_found_behind_variables_between_pipes_and_over_lines() {
    let block = "cat > f <<'END'\nweir no\nEND\nA=b weir demo -q &   # weir no\ncurl x | weir check - \\\n    --quiet > out";
    let found: Vec<_> = lines(block).iter().flat_map(|line| calls(line)).collect();
    assert_eq!(found, [vec!["weir", "demo", "-q"], vec!["weir", "check", "-", "--quiet"]]);
}
