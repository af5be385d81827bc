//! Small programs of ours in Go, each with a peer that shares nothing with weir, built when they are needed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The program whose sources are in a folder of `tests/truth`, built once.
pub(super) fn program(folder: &'static str) -> PathBuf {
    static BUILT: LazyLock<Mutex<HashMap<&str, PathBuf>>> = LazyLock::new(Mutex::default);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    built.entry(folder).or_insert_with(|| build(folder)).clone()
}

fn build(folder: &str) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth").join(folder);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("weir-{folder}"));
    let output = Command::new(go())
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .env("CGO_ENABLED", "0")
        .current_dir(&sources)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "go build in {}: {words}", sources.display());
    program
}

/// The Go toolchain: on the path, or where its own archive goes.
fn go() -> PathBuf {
    let places = ["go", "/usr/local/go/bin/go"].map(PathBuf::from);
    let runs = |go: &PathBuf| Command::new(go).arg("version").output().is_ok_and(|it| it.status.success());
    places.into_iter().find(runs).expect(
        "go is missing; pion and mochi need 1.24 or later, which Debian 12 has not: unpack the archive of \
         https://go.dev/dl/ into /usr/local",
    )
}
