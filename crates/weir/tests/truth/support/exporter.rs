//! Debian's node_exporter and Prometheus, on free loopback ports.

use super::free_port;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use weir_testing::{Kept, program, soon};

/// A running node_exporter, ended with the test.
pub(crate) struct NodeExporter {
    pub(crate) process: Kept,
    port: u16,
}

impl NodeExporter {
    /// `lo` included, which Debian leaves out.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// The same over TLS, with the settings of this file (`tls_server_config`).
    pub(crate) fn secure(settings: &Path) -> Self {
        Self::with(&[&format!("--web.config.file={}", settings.display())])
    }

    fn with(arguments: &[&str]) -> Self {
        let port = free_port();
        let mut command = program("prometheus-node-exporter", "prometheus-node-exporter");
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command
            .arg("--collector.netdev.device-exclude=^none$")
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = Kept::start(&mut command);
        soon("node_exporter listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { process, port }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The URL of one over TLS.
    pub(crate) fn secure_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }
}

/// Debian's Prometheus, which collects from a node_exporter once a second.
pub(crate) struct Prometheus {
    _process: Kept,
    port: u16,
    _directory: TempDir,
}

impl Prometheus {
    /// When it returns, there is a rate.
    pub(crate) fn start(exporter: &NodeExporter) -> Self {
        let (port, directory) = (free_port(), tempfile::tempdir().unwrap());
        let configuration = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: node, static_configs: [{{targets: ['127.0.0.1:{}']}}]}}]\n",
            exporter.port
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, configuration).unwrap();
        let mut command = program("prometheus", "prometheus");
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
        let process = Kept::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let prometheus = Self { _process: process, port, _directory: directory };
        let rate = "/api/v1/query?query=min(count_over_time(node_load1[1m]))%3E2";
        soon("Prometheus has collected", || prometheus.get(rate).is_some_and(|it| it.contains("\"value\"")));
        prometheus
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A whole answer, head and body, once it listens.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        let mut link = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(link, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        link.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }
}
