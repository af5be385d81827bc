//! mosquitto on a free port, ended with the test, and its own clients.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use weir_testing::free_port;

/// A broker that is not weir's.
pub struct Mosquitto {
    child: Child,
    pub port: u16,
    directory: tempfile::TempDir,
}

impl Mosquitto {
    /// Starts it with these lines of configuration as well; `DIR` in them is a directory of its own.
    pub fn start(lines: &str) -> Self {
        Self::with_files(lines, |_| ())
    }

    /// The same, with files that `prepare` puts into its directory.
    pub fn with_files(lines: &str, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let port = free_port();
        let anonymous = if lines.contains("allow_anonymous") { "" } else { "allow_anonymous true\n" };
        let lines = lines.replace("DIR", &directory.path().display().to_string());
        let configuration = format!(
            "listener {port} 127.0.0.1\nuser root\npersistence false\nsys_interval 1\n{anonymous}{lines}\n"
        );
        let file = directory.path().join("mosquitto.conf");
        std::fs::write(&file, configuration).unwrap();
        let child = Command::new("/usr/sbin/mosquitto")
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .expect("mosquitto is missing; apt-get install mosquitto mosquitto-clients");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let patience = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(patience.elapsed() < Duration::from_secs(10), "mosquitto does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, port, directory }
    }

    pub fn url(&self, topic: &str) -> String {
        format!("mqtt://127.0.0.1:{}/{topic}", self.port)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts one of mosquitto's own clients.
    pub fn client(&self, program: &str, arguments: &[&str]) -> Child {
        Command::new(program)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|_| panic!("{program} is missing; apt-get install mosquitto-clients"))
    }

    /// Ends the broker as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What a client of mosquitto printed, line by line.
pub fn lines(output: &Output) -> Vec<String> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
