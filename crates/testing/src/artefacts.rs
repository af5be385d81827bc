//! What the artefacts of a run may not have.

use std::path::Path;

/// A secret is in no artefact of a run.
///
/// # Panics
/// It is in one.
pub fn no_file_has(folder: &Path, secret: &str) {
    let escaped = secret.replace(' ', "%20");
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            no_file_has(&path, secret);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!has(secret) && !has(&escaped), "{}", path.display());
    }
}
