//! A Python with fastavro, in a place of its own beside what cargo builds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const FASTAVRO: &str = "fastavro[snappy,zstandard]==1.13.1";

pub(crate) static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(FASTAVRO);
    if !place.exists() {
        let fresh = place.with_extension(format!("{}.new", std::process::id()));
        run(Command::new("/usr/bin/python3").args(["-m", "venv"]).arg(&fresh));
        run(Command::new(fresh.join("bin/python")).args(["-m", "pip", "install", "--quiet", FASTAVRO]));
        // Another test run may have been as quick.
        if std::fs::rename(&fresh, &place).is_err() {
            std::fs::remove_dir_all(&fresh).unwrap();
        }
    }
    place.join("bin/python")
});

pub(crate) fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
