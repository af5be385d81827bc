//! The repository's Markdown files.

use std::path::{Path, PathBuf};

/// The repository's folder.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A Markdown file of the repository.
pub(super) struct Page {
    /// Relative to the repository: `docs/guide/rtmp.md`.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

/// The Markdown files at the repository's top, and all below `docs/`.
pub(super) fn pages() -> Vec<Page> {
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
