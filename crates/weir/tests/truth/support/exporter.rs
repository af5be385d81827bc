//! Debian's node_exporter and Prometheus, on free loopback ports.

use super::free_port;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;
use weir_testing::{KilledOnDrop, program, soon};

/// A running node_exporter, ended with the test.
pub(crate) struct NodeExporter {
    pub(crate) process: KilledOnDrop,
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
        let process = KilledOnDrop::start(&mut command);
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

/// Debian's Prometheus, which collects once a second.
pub(crate) struct Prometheus {
    _process: KilledOnDrop,
    port: u16,
    _directory: TempDir,
}

impl Prometheus {
    /// It collects from a node_exporter. When it returns, there is a rate.
    pub(crate) fn start(exporter: &NodeExporter) -> Self {
        let prometheus = Self::collecting(exporter.port, &[]);
        soon("Prometheus has collected", || {
            !prometheus.query("min(count_over_time(node_load1[1m])) > 2").is_empty()
        });
        prometheus
    }

    /// It collects from this port of 127.0.0.1, whether or not anything answers there yet.
    pub(crate) fn collecting(from: u16, arguments: &[&str]) -> Self {
        let (port, directory) = (free_port(), tempfile::tempdir().unwrap());
        let configuration = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: node, static_configs: [{{targets: ['127.0.0.1:{from}']}}]}}]\n"
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, configuration).unwrap();
        let mut command = program("prometheus", "prometheus");
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()));
        let process =
            KilledOnDrop::start(command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()));
        Self { _process: process, port, _directory: directory }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What an expression comes to now: labels and value of each series. None while Prometheus does not listen yet.
    pub(crate) fn query(&self, expression: &str) -> Vec<(Value, f64)> {
        // Every byte, which is more than RFC 3986 asks for.
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let Some(answer) = self.get(&format!("/api/v1/query?query={encoded}")) else { return Vec::new() };
        let Some((_, body)) = answer.split_once("\r\n\r\n") else { return Vec::new() };
        // Until its storage is open it answers that it is not ready.
        let Ok(answer) = serde_json::from_str::<Value>(body) else { return Vec::new() };
        assert_eq!(answer["status"], "success", "{expression}: {answer:#}");
        let series = answer["data"]["result"].as_array().unwrap();
        let value = |it: &Value| it["value"][1].as_str().unwrap().parse().unwrap();
        series.iter().map(|it| (it["metric"].clone(), value(it))).collect()
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
