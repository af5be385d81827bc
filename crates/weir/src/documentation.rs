//! What the project's Markdown says is true: links lead somewhere, commands are taken by the command line, scenarios are
//! scenarios, and the reference pages are those of the declarations.
//!
//! It is part of the program's unit tests, because the declaration of the command line is private to the program.

mod architecture;
mod commands;
mod links;
mod markdown;
mod reference;

use std::path::{Path, PathBuf};

/// The repository's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A Markdown file of the repository.
struct Page {
    /// Relative to the repository: `docs/guide/rtmp.md`.
    path: PathBuf,
    text: String,
}

/// The Markdown files at the repository's top, and all below `docs/`.
fn pages() -> Vec<Page> {
    let mut paths = Vec::new();
    markdown_files(Path::new(""), false, &mut paths);
    markdown_files(Path::new("docs"), true, &mut paths);
    paths.sort();
    assert!(paths.len() > 15, "{paths:?}");
    let read = |path: PathBuf| Page { text: std::fs::read_to_string(root().join(&path)).unwrap(), path };
    paths.into_iter().map(read).collect()
}

fn markdown_files(folder: &Path, recursive: bool, found: &mut Vec<PathBuf>) {
    for entry in root().join(folder).read_dir().unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            if recursive {
                markdown_files(&path, true, found);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

#[test]
fn the_readme_is_read_in_one_go() {
    let lines = std::fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(
        lines <= 150,
        "README.md has {lines} lines; what is more than 150 belongs to a page below docs/guide"
    );
}
