//! A PostgreSQL database: how to get in, how it is called, and what its errors are.

use super::Durability;
use super::encryption::{Encryption, Mode};
use crate::error::{DatabaseError, StoreError};
use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::{Client, Config, Error};
use std::error::Error as _;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;
use weir_shard::tls;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What tokio-postgres says when the server asks for a password and none was given (`connect_raw`).
const NO_PASSWORD: &str = "password missing";

/// What gives one.
const PASSWORD: &str =
    "give it in the environment as PGPASSWORD, or in a file (--save-password-file, save_password_file)";

/// A database, and how to get in. Shown without user and password.
#[derive(Clone)]
pub struct Database {
    config: Config,
    tls: MakeRustlsConnect,
    /// Whether it has a certificate to show.
    shows_certificate: bool,
    shown: String,
    by_day: bool,
}

impl Database {
    /// Has new tables of rows partitioned, by the day of receipt.
    pub fn partition_by_day(&mut self) {
        self.by_day = true;
    }

    /// Whether tables of rows are partitioned.
    pub(super) fn is_by_day(&self) -> bool {
        self.by_day
    }

    /// The password, for a URL that names none.
    pub fn set_password(&mut self, password: &str) {
        self.config.password(password);
    }

    /// Whether the URL names a password.
    pub fn has_password(&self) -> bool {
        self.config.get_password().is_some()
    }

    /// What an error of this database is.
    pub(super) fn sort(&self, error: &Error) -> StoreError {
        let Some(db) = error.as_db_error() else {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let words = format!("{self}: {error}{cause}");
            if error.source().is_some_and(|cause| cause.to_string() == NO_PASSWORD) {
                return StoreError::Locked(format!("{self}: it asks for a password; {PASSWORD}"));
            }
            if is_distrust(error) {
                return StoreError::Unfit(format!(
                    "{words}; name who signed it (sslrootcert=FILE), and the host as the certificate does"
                ));
            }
            return StoreError::Unavailable(words);
        };
        let words = format!("{self}: {}", db.message());
        match db.code() {
            code if *code == SqlState::DISK_FULL => {
                StoreError::Unavailable(format!("{words}; make room on its disk, and saving goes on"))
            }
            code if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION && self.is_plain() => {
                StoreError::Unfit(format!("{words}; if it wants TLS, write sslmode=require"))
            }
            code if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION && !self.shows_certificate => {
                StoreError::Unfit(format!(
                    "{words}; if it wants a certificate, name yours with sslcert=FILE and sslkey=FILE"
                ))
            }
            code if *code == SqlState::INVALID_PASSWORD => StoreError::Locked(format!("{words}; {PASSWORD}")),
            code => match &code.code()[..2] {
                "22" | "23" => StoreError::Refused(words),
                "28" | "3D" | "42" => StoreError::Unfit(words),
                _ => StoreError::Unavailable(words),
            },
        }
    }

    pub(super) fn connect(&self, durability: Durability) -> Result<Client, Error> {
        let mut client = self.config.connect(self.tls.clone())?;
        let commit = durability.of_postgresql();
        client.batch_execute(&format!(
            "SET synchronous_commit = {commit}; SET client_min_messages = warning"
        ))?;
        Ok(client)
    }

    /// Whether TLS was declined where there might have been some.
    fn is_plain(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Disable && !is_local(&self.config)
    }
}

/// There is no TLS over a socket of this machine, whatever is asked for (libpq, "sslmode").
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
}

/// Whether the server was refused for its certificate: waiting does not help.
fn is_distrust(error: &Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let cause = cause.and_then(|cause| cause.get_ref()?.downcast_ref());
    matches!(cause, Some(tls::Error::InvalidCertificate(_)))
}

impl FromStr for Database {
    type Err = DatabaseError;

    fn from_str(text: &str) -> Result<Self, DatabaseError> {
        let (text, encryption) = Encryption::split_off(text)?;
        let mut config: Config = text.parse().map_err(|_| DatabaseError::Unknown)?;
        if config.get_hosts().is_empty() {
            return Err(DatabaseError::Unknown);
        }
        let local = is_local(&config);
        config.ssl_mode(match encryption.mode {
            _ if local => SslMode::Disable,
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        let wanted = encryption.client_tls()?;
        let tls = tls::client_config(&wanted).map_err(|error| DatabaseError::Certificates {
            identity: wanted.identity.is_some(),
            reason: error.to_string(),
        })?;
        // Out of what was read, not of the text: a password may hold what ends other parts of a URL.
        let hosts = config.get_hosts().iter().enumerate().map(|(position, host)| {
            let host = match host {
                Host::Tcp(name) => name.clone(),
                Host::Unix(path) => path.display().to_string(),
            };
            let port = config.get_ports().get(position).or(config.get_ports().first());
            port.map_or(host.clone(), |port| format!("{host}:{port}"))
        });
        let hosts: Vec<_> = hosts.collect();
        let shown = format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default());
        config
            .connect_timeout(PATIENCE)
            .keepalives_idle(Duration::from_secs(30))
            .application_name("weir ingest");
        let tls = MakeRustlsConnect::new((*tls).clone());
        let shows_certificate = wanted.identity.is_some();
        Ok(Self { shown: format!("postgres://{shown}"), tls, shows_certificate, config, by_day: false })
    }
}

impl fmt::Display for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({self})")
    }
}
