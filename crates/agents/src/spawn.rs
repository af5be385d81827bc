//! A `nats-server` for one run, with TLS, and with a token and a certificate that are made for it.

use crate::fingerprint::Fingerprint;
use crate::nats::NatsServer;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long the server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A `nats-server` that is ended when this value is dropped.
#[derive(Debug)]
pub struct SpawnedNats {
    child: Child,
    /// Its URL, its token and the fingerprint of its certificate.
    pub server: NatsServer,
    folder: TempDir,
}

/// A `nats-server` that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program is missing: install it (Debian: `apt-get install nats-server`), or give the URL of one that runs.
    #[error(
        "nats-server: {0}; install it (Debian: apt-get install nats-server), or give the URL of one that runs"
    )]
    Program(io::Error),
    /// Certificate, token or configuration could not be made.
    #[error("what nats-server needs could not be made: {0}")]
    Material(String),
    /// The server ended at once, or does not listen.
    #[error("nats-server does not listen at {address}: {words}")]
    Silent {
        /// The address at which it was to listen.
        address: SocketAddr,
        /// The last line of its log.
        words: String,
    },
}

impl SpawnedNats {
    /// Starts a server at an address; port 0 takes a free port.
    ///
    /// # Errors
    /// `nats-server` is not installed, or cannot listen there.
    pub fn start(listen: SocketAddr) -> Result<Self, SpawnError> {
        let material = |error: &dyn std::fmt::Display| SpawnError::Material(error.to_string());
        let folder = tempfile::tempdir().map_err(|error| material(&error))?;
        let address = TcpListener::bind(listen).and_then(|listener| listener.local_addr());
        let address = address.map_err(|error| material(&format!("{listen}: {error}")))?;
        let names = vec!["localhost".to_owned(), address.ip().to_string()];
        let made = rcgen::generate_simple_self_signed(names).map_err(|error| material(&error))?;
        let mut token = [0; 16];
        aws_lc_rs::rand::fill(&mut token).map_err(|error| material(&error))?;
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let at = |name: &str| folder.path().join(name);
        let configuration = format!(
            "listen: \"{address}\"\ntls: {{ cert_file: {:?}, key_file: {:?} }}\nauthorization: {{ token: \"{token}\" }}\n",
            at("certificate.pem"),
            at("key.pem"),
        );
        for (name, text) in [
            ("certificate.pem", made.cert.pem()),
            ("key.pem", made.signing_key.serialize_pem()),
            ("nats.conf", configuration),
        ] {
            write_private(&at(name), &text).map_err(|error| material(&error))?;
        }
        let child = Command::new("nats-server")
            .arg("-c")
            .arg(at("nats.conf"))
            .arg("-l")
            .arg(at("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C on a terminal must reach weir alone: it still needs the server to end its agents.
            .process_group(0)
            .spawn()
            .map_err(SpawnError::Program)?;
        let server = NatsServer {
            url: format!("tls://{address}"),
            token: Some(token),
            fingerprint: Some(Fingerprint::of(made.cert.der())),
            ..NatsServer::default()
        };
        let mut spawned = Self { child, server, folder };
        spawned.wait(address)?;
        Ok(spawned)
    }

    /// Its process identifier, which is also that of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait(&mut self, address: SocketAddr) -> Result<(), SpawnError> {
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if began.elapsed() > LISTEN_TIMEOUT || !matches!(self.child.try_wait(), Ok(None)) {
                let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                let words = log.lines().last().unwrap_or("it said nothing").chars().take(200).collect();
                return Err(SpawnError::Silent { address, words });
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }
}

impl Drop for SpawnedNats {
    fn drop(&mut self) {
        // Fails if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
