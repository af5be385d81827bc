//! Java libraries from Maven Central.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Has Maven bring what a `pom.xml` depends on, once for all tests that are built into the same folder, and returns the directory of
/// its archives. The name is this directory's; the options go to `dependency:copy-dependencies`.
///
/// # Panics
/// Maven is missing, or fails.
pub fn maven(name: &str, pom: &str, options: &[&str]) -> PathBuf {
    // The folder of a test is `target/PROFILE/deps`.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap_or(Path::new("/"));
    let directory = target.join(name);
    std::fs::create_dir_all(&directory).unwrap();
    // One at a time: each writes into the same local repository.
    let lock = File::create(target.join("maven.lock")).unwrap();
    lock.lock().unwrap();
    let whole = directory.join("installed");
    if !whole.exists() {
        let mut command = Command::new("mvn");
        command.args(["--quiet", "--batch-mode", "--file", pom, "dependency:copy-dependencies"]);
        command.args(options).arg(format!("-DoutputDirectory={}", directory.display()));
        let output = command.output().unwrap_or_else(|error| panic!("mvn (Debian package maven): {error}"));
        assert!(output.status.success(), "mvn: {}", String::from_utf8_lossy(&output.stdout));
        std::fs::write(whole, "").unwrap();
    }
    directory
}
