//! PostgreSQL from Debian, with a cluster of its own, run by an unprivileged user on a free port.

use crate::free_port;
use crate::process::{KilledOnDrop, soon};
use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The password of its user `weir`.
const PASSWORD: &str = "s3cr3t pass'word";

/// A running server, ended with the test.
pub struct Postgresql {
    port: u16,
    server: KilledOnDrop,
    binaries: PathBuf,
    directory: TempDir,
}

impl Postgresql {
    /// A new cluster with a user `weir` and a database `postgres`.
    pub fn start() -> Self {
        let binaries = binaries();
        let directory = tempfile::tempdir().unwrap();
        let password = directory.path().join("password");
        std::fs::write(&password, format!("{PASSWORD}\n")).unwrap();
        // weir warns of a password that every user can read.
        std::fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
        if let Some(user) = other_user() {
            chown(directory.path(), Some(user), None).unwrap();
            chown(&password, Some(user), None).unwrap();
        }
        let made = as_other(&binaries.join("initdb"))
            .args(["--no-sync", "--locale=C", "-E", "UTF8", "-U", "weir", "-A", "scram-sha-256", "--pwfile"])
            .arg(&password)
            .arg("-D")
            .arg(directory.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let server = Self::server(&binaries, &directory, port);
        Self { port, server, binaries, directory }
    }

    fn server(binaries: &std::path::Path, directory: &TempDir, port: u16) -> KilledOnDrop {
        let mut command = as_other(&binaries.join("postgres"));
        command.arg("-D").arg(directory.path().join("data"));
        command.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        // The machine does not fail in these tests.
        command.args(["-c", "unix_socket_directories=", "-c", "fsync=off"]);
        let server = KilledOnDrop::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        soon("PostgreSQL answers", || Client::connect(&url(port), NoTls).is_ok());
        server
    }

    /// Where weir saves to; the password comes by another way.
    pub fn place(&self) -> String {
        format!("postgres://weir@127.0.0.1:{}/postgres", self.port)
    }

    /// A file with the password of `weir`.
    pub fn password_file(&self) -> PathBuf {
        self.directory.path().join("password")
    }

    /// A connection of its own.
    pub fn client(&self) -> Client {
        Client::connect(&url(self.port), NoTls).unwrap()
    }

    /// From now on it accepts clients by TLS only, with a certificate of these names, which it returns as PEM. Who is
    /// connected stays.
    pub fn only_by_tls(&self, client: &mut Client, names: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        self.secure(client, &certificate, &key, "scram-sha-256");
        certificate
    }

    /// From now on it accepts clients only by TLS and with a certificate of this authority that has the user's name. Its own
    /// is one that `openssl req -x509` makes, marked as an authority's, and is returned as PEM.
    pub fn only_with_certificate(&self, client: &mut Client, authority: &str) -> String {
        let mut made = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = made.self_signed(&key).unwrap().pem();
        std::fs::write(self.directory.path().join("data/clients.crt"), authority).unwrap();
        client.batch_execute("ALTER SYSTEM SET ssl_ca_file = 'clients.crt'").unwrap();
        self.secure(client, &certificate, &key.serialize_pem(), "scram-sha-256 clientcert=verify-full");
        certificate
    }

    /// From now on it asks no client for a password.
    pub fn trust(&self, client: &mut Client) {
        let file = self.directory.path().join("data/pg_hba.conf");
        std::fs::write(file, "host all all 127.0.0.1/32 trust\n").unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        soon("PostgreSQL asks for no password", || Client::connect(&self.place(), NoTls).is_ok());
    }

    fn secure(&self, client: &mut Client, certificate: &str, key: &str, method: &str) {
        let data = self.directory.path().join("data");
        std::fs::write(data.join("server.crt"), certificate).unwrap();
        let file = data.join("server.key");
        std::fs::write(&file, key).unwrap();
        // It refuses a key that others may read.
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        chown(&file, other_user(), None).unwrap();
        std::fs::write(data.join("pg_hba.conf"), format!("hostssl all all 127.0.0.1/32 {method}\n")).unwrap();
        client.batch_execute("ALTER SYSTEM SET ssl = on").unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        soon("PostgreSQL wants TLS", || Client::connect(&url(self.port), NoTls).is_err());
    }

    /// Ends it at once, as an administrator would: connections are broken off.
    pub fn stop(&mut self) {
        self.signal();
        self.server.ended();
    }

    /// Starts it again.
    pub fn go_on(&mut self) {
        self.server = Self::server(&self.binaries, &self.directory, self.port);
    }

    fn signal(&self) {
        // "Fast shutdown" (PostgreSQL, "Shutting Down the Server").
        let _ = kill_process(Pid::from_child(&self.server.0), Signal::INT);
    }
}

impl Drop for Postgresql {
    fn drop(&mut self) {
        // KILL would orphan its processes.
        self.signal();
        let _ = self.server.0.wait();
    }
}

fn url(port: u16) -> String {
    let password = PASSWORD.replace('\'', "\\'");
    format!("host=127.0.0.1 port={port} user=weir dbname=postgres password='{password}' connect_timeout=5")
}

/// Debian keeps them apart by version.
fn binaries() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|path| path.join("initdb").exists());
    found.sort();
    found.pop().expect("PostgreSQL is missing; apt-get install postgresql")
}

/// The user `postgres`, if this is root: the server refuses to be run by root.
fn other_user() -> Option<u32> {
    rustix::process::geteuid().is_root().then(|| {
        let users = std::fs::read_to_string("/etc/passwd").unwrap();
        let line =
            users.lines().find(|line| line.starts_with("postgres:")).expect("Debian makes the user postgres");
        line.split(':').nth(2).unwrap().parse().unwrap()
    })
}

fn as_other(program: &std::path::Path) -> Command {
    let mut command = Command::new(program);
    if let Some(user) = other_user() {
        command.uid(user);
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}
