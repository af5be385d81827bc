//! The peer of pion: a small program of ours in Go, built when it is needed.

use super::go;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdout, Command, Stdio};
use weir_testing::KilledOnDrop;

/// One running peer.
pub(crate) struct Pion {
    process: KilledOnDrop,
    said: BufReader<ChildStdout>,
}

impl Pion {
    /// Starts it; what it says first.
    pub(crate) fn start(arguments: &[&str]) -> (Self, String) {
        let mut command = Command::new(go::program("pion"));
        let mut process =
            KilledOnDrop::start(command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()));
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
