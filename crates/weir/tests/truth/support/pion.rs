//! The peer of pion: a small program of ours in Go, built when it is needed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use weir_testing::Kept;

/// One running peer.
pub(crate) struct Pion {
    process: Kept,
    said: BufReader<ChildStdout>,
}

impl Pion {
    /// Starts it; what it says first.
    pub(crate) fn start(arguments: &[&str]) -> (Self, String) {
        let mut command = Command::new(program());
        let mut process = Kept::start(command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut said = BufReader::new(process.0.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        (Self { process, said }, line.trim().to_owned())
    }

    /// A client, once media goes.
    pub(crate) fn client(arguments: &[&str]) -> Self {
        let (pion, said) = Self::start(arguments);
        assert_eq!(said, "ready", "pion has said why on stderr");
        pion
    }

    /// Ends it; what it has counted.
    pub(crate) fn end(mut self) -> BTreeMap<String, u64> {
        drop(self.process.0.stdin.take());
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        self.process.ended();
        let counts = line.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').unwrap();
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{word}")))
        });
        counts.collect()
    }
}

/// The program, built once.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth/pion");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("weir-pion");
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
    })
}

/// The Go toolchain: on the path, or where its own archive goes.
fn go() -> PathBuf {
    let places = ["go", "/usr/local/go/bin/go"].map(PathBuf::from);
    let runs = |go: &PathBuf| Command::new(go).arg("version").output().is_ok_and(|it| it.status.success());
    places.into_iter().find(runs).expect(
        "go is missing; pion needs 1.24 or later, which Debian 12 has not: unpack the archive of https://go.dev/dl/ \
         into /usr/local",
    )
}
