//! Secrets: where they are read from, and what may be shown of them.

use std::path::Path;
use weir_clients::WorkloadError;

/// The option whose values are secrets.
pub(crate) const HEADER: &str = "header";

/// The first line of a file: a password or a token.
///
/// # Errors
/// The file, and why it cannot be read.
pub fn first_line(path: &Path) -> Result<String, WorkloadError> {
    let text = weir_files::read_secret(path)
        .map_err(|error| WorkloadError::Options(format!("{}: {error}", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// A variable of the environment, if it is set and not empty. It is in no list of processes, as arguments are.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A field as it may be shown: its name.
pub(crate) fn without_value(field: &str) -> String {
    match field.split_once(':') {
        Some((name, _)) => format!("{name}: …"),
        None => "…".to_owned(),
    }
}
