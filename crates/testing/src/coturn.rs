//! coturn, a TURN server that shares nothing with weir, on a free loopback port.

use crate::{KilledOnDrop, free_port, program, soon};
use std::net::TcpStream;
use std::process::Stdio;
use tempfile::TempDir;

/// A running server, with one user.
pub struct Coturn {
    _process: KilledOnDrop,
    directory: TempDir,
    /// Where it listens.
    pub port: u16,
}

impl Coturn {
    /// The user that it knows, and the password.
    pub const USER: (&'static str, &'static str) = ("weir", "s3cr3tw0rd");

    /// One over TCP, with more arguments.
    pub fn start(arguments: &[&str]) -> Self {
        Self::run(tempfile::tempdir().unwrap(), &[&["--no-tls", "--no-dtls", "--no-udp"], arguments].concat())
    }

    /// One over UDP, TCP and TLS, all at its port, with more arguments.
    pub fn over_every_carrier(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let (certificate, key) = (at(Self::CERTIFICATE), at("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let tls = ["--cert", &certificate, "--pkey", &key];
        Self::run(directory, &[&tls, arguments].concat())
    }

    const CERTIFICATE: &str = "chain.pem";

    /// The file with its certificate, if it has one.
    pub fn certificate(&self) -> String {
        self.directory.path().join(Self::CERTIFICATE).display().to_string()
    }

    fn run(directory: TempDir, arguments: &[&str]) -> Self {
        let port = free_port();
        let at = |name: &str| directory.path().join(name).display().to_string();
        let (user, password) = Self::USER;
        let mut command = program("turnserver", "coturn");
        command.args(["-n", "--no-cli", "--lt-cred-mech", "--realm", "weir"]);
        command.args(["--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1"]);
        command.args(["--listening-port", &port.to_string(), "--user", &format!("{user}:{password}")]);
        command.args(["--log-file", &at("log"), "--simple-log", "--pidfile", &at("pid"), "--verbose"]);
        command.args(["--userdb", &at("users")]).args(arguments);
        let process = KilledOnDrop::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        soon("coturn listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let coturn = Self { _process: process, directory, port };
        soon("coturn knows its users", || coturn.log().contains("DB connection success"));
        coturn
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}
