//! A broker that is not weir's, and its own clients.

use crate::free_port;
use crate::process::{KilledOnDrop, soon};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// mosquitto on a free port of 127.0.0.1, ended with the test.
pub struct Mosquitto {
    port: u16,
    /// Where it listens for WebSockets, if it does.
    socket_port: u16,
    process: KilledOnDrop,
    directory: TempDir,
}

/// What the subscriber of a broker is called there.
const JUDGE: &str = "judge";

/// A subscriber of mosquitto's, the only one of its broker at a time.
pub struct Subscriber(Child);

impl Mosquitto {
    /// A broker that keeps no messages on the disk, and writes down who subscribes.
    pub fn start() -> Self {
        Self::with("persistence false\nlog_dest file {directory}/log\nlog_type subscribe")
    }

    /// One with more lines of configuration; `{directory}` stands for a directory of its own, and `{sockets}` for the port of
    /// [`Self::socket_url`].
    pub fn with(lines: &str) -> Self {
        Self::with_files(lines, |_| ())
    }

    /// The same, with files that `prepare` puts into its directory.
    pub fn with_files(lines: &str, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let (port, socket_port) = (free_port(), free_port());
        let lines = lines.replace("{sockets}", &socket_port.to_string());
        let lines = lines.replace("{directory}", &format!("{}/", directory.path().display()));
        let anonymous = if lines.contains("allow_anonymous") { "" } else { "allow_anonymous true\n" };
        let lines = format!("listener {port} 127.0.0.1\nuser root\n{anonymous}{lines}\n");
        std::fs::write(directory.path().join("mosquitto.conf"), lines).unwrap();
        Self { port, socket_port, process: Self::process(&directory, port), directory }
    }

    fn process(directory: &TempDir, port: u16) -> KilledOnDrop {
        let mut command = Command::new("/usr/sbin/mosquitto");
        command.arg("-c").arg(directory.path().join("mosquitto.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = KilledOnDrop::start(&mut command);
        soon("mosquitto listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        process
    }

    /// Ends it as its service manager would.
    pub fn stop(&mut self) {
        self.process.terminate();
        self.process.ended();
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again.
    pub fn go_on(&mut self) {
        self.process = Self::process(&self.directory, self.port);
    }

    /// What it has written, if its configuration says `log_dest file {directory}/log`.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// A file in its directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Its address, `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The URL of a topic on it.
    pub fn url(&self, topic: &str) -> String {
        format!("mqtt://{}/{topic}", self.address())
    }

    /// The same in a WebSocket, if its configuration says `listener {sockets} 127.0.0.1` and `protocol websockets`.
    pub fn socket_url(&self, topic: &str) -> String {
        format!("mqtt+ws://127.0.0.1:{}/{topic}", self.socket_port)
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

    /// Starts `mosquitto_sub`, and waits until the broker has written down that it subscribed.
    ///
    /// # Panics
    /// It does not subscribe, or the broker's configuration does not say that it writes so.
    pub fn subscriber(&self, arguments: &[&str]) -> Subscriber {
        // `TIME: judge 0 a/#`: client, QoS, filter.
        let is_judge = |line: &&str| line.split_whitespace().nth(1) == Some(JUDGE);
        let subscriptions = || self.log().lines().filter(is_judge).count();
        let before = subscriptions();
        let child = self.client("mosquitto_sub", &[&["-i", JUDGE], arguments].concat());
        soon("mosquitto_sub subscribes", || subscriptions() > before);
        Subscriber(child)
    }
}

impl Subscriber {
    /// What it printed, once it has ended.
    pub fn lines(self) -> Vec<String> {
        lines(&self.0.wait_with_output().unwrap())
    }
}

/// What a client of mosquitto's printed, line by line.
pub fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}
