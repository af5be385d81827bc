//! `weir ingest` as a process: started, watched, killed, and asked what it counted.

use super::process::weir;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use tempfile::TempDir;
use weir_testing::{KilledOnDrop, soon};

/// A running ingester.
pub(crate) struct Ingester {
    pub(crate) process: KilledOnDrop,
    directory: TempDir,
}

/// One that has ended by itself.
pub(crate) struct Settled {
    pub(crate) summary: Value,
    pub(crate) code: Option<i32>,
    pub(crate) err: String,
}

impl Ingester {
    pub(crate) fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| File::create(directory.path().join(name)).unwrap();
        let mut command = weir();
        command.arg("ingest").args(arguments).args(["--json", "-"]).stdout(at("out")).stderr(at("err"));
        Self { process: KilledOnDrop::start(&mut command), directory }
    }

    /// What the one with `--live :PORT` tells Prometheus.
    pub(crate) fn page(port: u16) -> Option<String> {
        let mut link = TcpStream::connect(("127.0.0.1", port)).ok()?;
        let request = format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
        link.write_all(request.as_bytes()).ok()?;
        let mut page = String::new();
        link.read_to_string(&mut page).ok()?;
        Some(page)
    }

    /// What it has said so far.
    pub(crate) fn err(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("err")).unwrap()
    }

    /// Waits until the broker has granted its subscription: what is published from now on comes.
    pub(crate) fn wait_for_subscription(&self) {
        soon("it is subscribed", || self.err().contains("weir: subscribed to mqtt://"));
    }

    /// The most memory that it has had, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
    }

    /// SIGTERM, and what it says then.
    pub(crate) fn stop(self) -> Settled {
        self.process.terminate();
        self.settled()
    }

    /// Waits for its end.
    pub(crate) fn settled(mut self) -> Settled {
        let code = self.process.ended().code();
        let err = self.err();
        let out = std::fs::read_to_string(self.directory.path().join("out")).unwrap();
        let summary =
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out:?}; stderr: {err}"));
        let settled = Settled { summary, code, err };
        let total = |name| settled.total(name);
        assert_eq!(
            total("received"),
            total("saved") + total("dead_lettered") + total("duplicate"),
            "{:#}",
            settled.summary
        );
        settled
    }
}

impl Settled {
    pub(crate) fn total(&self, name: &str) -> u64 {
        self.summary[name].as_u64().unwrap_or_else(|| panic!("{name}: {:#}", self.summary))
    }
}
