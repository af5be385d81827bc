//! Small programs of ours for node, with packages of npm that share nothing with weir.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use weir_testing::program;

/// A program of a folder of `tests/truth`.
pub(super) fn node(folder: &'static str, script: &str) -> Command {
    let mut command = program("node", "nodejs");
    command.current_dir(npm_folder(folder)).arg(script);
    command
}

/// A copy of a folder of `tests/truth`, into which its packages are installed once.
pub(crate) fn npm_folder(folder: &'static str) -> PathBuf {
    static INSTALLED: LazyLock<Mutex<HashMap<&str, PathBuf>>> = LazyLock::new(Mutex::default);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    installed.entry(folder).or_insert_with(|| install(folder)).clone()
}

fn install(folder: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth").join(folder);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&place).unwrap();
    let entries = std::fs::read_dir(&sources).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    let is_same = |name: &&std::ffi::OsString| {
        std::fs::read(place.join(name)).ok() == std::fs::read(sources.join(name)).ok()
    };
    let whole = place.join("installed");
    if names.iter().all(|name| is_same(&name)) && whole.exists() {
        return place;
    }
    for name in &names {
        std::fs::copy(sources.join(name), place.join(name)).unwrap();
    }
    let mut command = program("npm", "nodejs npm");
    let output = command.args(["ci", "--no-audit", "--no-fund"]).current_dir(&place).output().unwrap();
    assert!(output.status.success(), "npm: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(whole, "").unwrap();
    place
}
