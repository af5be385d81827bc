//! A broker that is not weir's, and its own clients.

use super::process::{Kept, free_port, soon};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// mosquitto on a free port of 127.0.0.1, ended with the test.
pub(crate) struct Mosquitto {
    port: u16,
    _process: Kept,
    _directory: TempDir,
}

/// A subscriber of mosquitto's.
pub(crate) struct Subscriber(Child);

impl Mosquitto {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = directory.path().join("mosquitto.conf");
        let lines =
            format!("listener {port} 127.0.0.1\nuser root\nallow_anonymous true\npersistence false\n");
        std::fs::write(&file, lines).unwrap();
        let mut command = Command::new("/usr/sbin/mosquitto");
        command.arg("-c").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Kept::start(&mut command);
        soon("mosquitto listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { port, _process: process, _directory: directory }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self, topic: &str) -> String {
        format!("mqtt://{}/{topic}", self.address())
    }

    /// Starts `mosquitto_sub`, and waits until it has had time to subscribe.
    pub(crate) fn subscriber(&self, arguments: &[&str]) -> Subscriber {
        let child = Command::new("mosquitto_sub")
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("mosquitto_sub is missing; apt-get install mosquitto-clients");
        std::thread::sleep(std::time::Duration::from_millis(700));
        Subscriber(child)
    }
}

impl Subscriber {
    /// What it printed, once it has ended.
    pub(crate) fn lines(self) -> Vec<String> {
        let output = self.0.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }
}
