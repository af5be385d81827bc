//! Phrases that users stumbled over, of which no help, report, guide or error may have one. Each stands beside what says the same in the
//! field's words.

use super::pages::{pages, root};
use std::path::{Path, PathBuf};

/// In small letters, as they are looked for.
const PHRASES: &[(&str, &str)] = &[
    ("the instrument", "the load generator"),
    ("asks for what cannot be", "invalid"),
    ("consented", "accepted"),
    ("and none was to come", "every client had failed"),
    ("no client was left", "every client had failed"),
    ("what came meanwhile", "data that arrived meanwhile"),
    ("was late for it", "fell behind schedule"),
    ("none is above", "is the maximum"),
    ("learnt", "no result"),
    ("in the time that there was", "ran out of time"),
    ("is said as it is", "reports what it has"),
    ("gave first", "is the bottleneck"),
    ("clients at once", "concurrent clients"),
    ("told at 9", "95 % confidence"),
    ("by one clock", "share a clock"),
    ("(0: well)", "(0 = ok)"),
    ("as many machines as there are", "each agent generates a share"),
    ("is none", "is not one, or malformed"),
    ("is none itself", "is not one"),
    ("compilers of others", "other processes"),
    ("so many", "N, or this many"),
    ("nobody", "no client, no reader, no one"),
    ("somebody", "another, someone"),
    ("the far end", "the peer"),
    ("cannot be told", "is unknown, or cannot be distinguished"),
    ("beside whom", "next to which"),
    ("so-manieth", "one in N"),
];

/// What a Rust file says to people: its texts, and of declarations of flags and keys the comments, which are their help.
fn texts(path: &Path) -> Vec<(usize, String)> {
    let source = std::fs::read_to_string(path).unwrap();
    let shown = source.split("#[cfg(test)]").next().unwrap_or_default();
    let is_help = path.components().any(|part| part.as_os_str() == "args" || part.as_os_str() == "protocols")
        || path.ends_with("args.rs");
    let mut texts = Vec::new();
    for (number, line) in (1..).zip(shown.lines()) {
        let line = line.trim_start();
        match line.strip_prefix("//") {
            Some(comment) if is_help && comment.starts_with('/') => texts.push((number, comment.to_owned())),
            Some(_) => {}
            // What is between quotes, and lines in the middle of a text, which have none.
            None => texts.extend(line.contains(['"', '\\']).then(|| (number, quoted(line)))),
        }
    }
    texts
}

/// What is between the quotation marks of a line; all of it if there is one mark, or none.
fn quoted(line: &str) -> String {
    let parts: Vec<_> = line.split('"').collect();
    if parts.len() < 3 {
        line.to_owned()
    } else {
        parts.into_iter().skip(1).step_by(2).collect::<Vec<_>>().join("\n")
    }
}

/// Sources of libraries that say flags of programs that they start, or of those that they watch.
const PROGRAMS: [&str; 5] = [
    "ingest/src/store/kafka.rs",
    "observe/src/redaction.rs",
    "protocols/src/hls.rs",
    "doctor/sizing.rs",
    "runner/src/origin_process.rs",
];

/// Whether a text says `--flag`, other than in a whole command of weir's or of another program's.
fn names_a_flag(text: &str) -> bool {
    let is_command = |before: &str| ["weir ", "kafka-"].iter().any(|program| before.contains(program));
    let flags = text.match_indices("--").filter(|(at, _)| {
        let (before, after) = (&text[..*at], &text[at + 2..]);
        !before.ends_with('-') && after.starts_with(|it: char| it.is_ascii_lowercase()) && !is_command(before)
    });
    flags.count() > 0
}

fn files(folder: &Path, wanted: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, wanted, found);
        } else if wanted(&path) {
            found.push(path);
        }
    }
}

/// Who calls a library has no command line: see `weir_setting`.
#[test]
fn no_text_of_a_library_names_a_flag() {
    assert!(
        names_a_flag("give more with --bind-addr") && !names_a_flag("start `weir origin --bulk`, or -----")
    );
    let is_library = |path: &Path| {
        let name = path.to_string_lossy();
        let below = name.rsplit_once("crates/").map_or("", |(_, below)| below);
        let is_other = below.starts_with("weir/") || below.starts_with("testing/");
        name.contains("/src/") && name.ends_with(".rs") && !name.ends_with("tests.rs") && !is_other
    };
    let mut found = Vec::new();
    files(&root().join("crates"), &is_library, &mut found);
    assert!(found.len() > 300, "{}", found.len());
    found.retain(|path| !PROGRAMS.iter().any(|program| path.ends_with(program)));
    let mut wrong = Vec::new();
    for path in found {
        let source = std::fs::read_to_string(&path).unwrap();
        let shown = source.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in (1..).zip(shown.lines()) {
            let is_text = line.contains(['"', '\\']) && !line.trim_start().starts_with("//");
            if is_text && names_a_flag(&quoted(line)) {
                wrong.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "name the setting (weir_setting):\n{}", wrong.join("\n"));
}

#[test]
fn no_help_report_guide_or_error_has_a_phrase_that_users_stumbled_over() {
    let mut lines = Vec::new();
    for page in pages().into_iter().filter(|page| page.path != Path::new("CHANGELOG.md")) {
        // How weir is built is for those who build it.
        let is_read = page.path.starts_with("docs") || page.path == Path::new("README.md");
        lines.extend(
            (1..)
                .zip(page.text.lines())
                .filter(|_| is_read)
                .map(|(number, line)| (page.path.clone(), number, line.to_owned())),
        );
    }
    let mut found = Vec::new();
    let crates = root().join("crates");
    files(
        &crates,
        &|path| {
            let name = path.to_string_lossy();
            name.ends_with(".rs")
                && name.contains("/src/")
                && !name.contains("/documentation")
                && !name.contains("crates/testing")
                && !name.ends_with("/tests.rs")
        },
        &mut found,
    );
    assert!(found.len() > 300, "{}", found.len());
    for path in found {
        lines.extend(texts(&path).into_iter().map(|(number, text)| (path.clone(), number, text)));
    }
    let mut reports = Vec::new();
    files(&crates, &|path| path.extension().is_some_and(|it| it == "snap"), &mut reports);
    for path in reports {
        let text = std::fs::read_to_string(&path).unwrap();
        lines.extend((1..).zip(text.lines()).map(|(number, line)| (path.clone(), number, line.to_owned())));
    }
    let mut wrong = Vec::new();
    for (path, number, line) in lines {
        let small = line.to_lowercase();
        for (phrase, better) in PHRASES {
            let is_word = |at: usize| {
                let letter = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
                !letter(small[..at].chars().next_back()) && !letter(small[at + phrase.len()..].chars().next())
            };
            if small.match_indices(phrase).any(|(at, _)| is_word(at)) {
                wrong.push(format!("{}:{number}: '{phrase}': write {better}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
