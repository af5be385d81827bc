//! A PostgreSQL database: how to get in, how it is called, and what its errors are.

mod link;

use self::link::{LinkMaker, Wanted};
use super::Durability;
use super::encryption::{Encryption, Mode};
use crate::error::{DatabaseError, StoreError};
use postgres::config::{Host, SslMode, SslNegotiation};
use postgres::error::SqlState;
use postgres::{Client, Config, Error};
use std::error::Error as _;
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;
use weir_address::networks;
use weir_shard::tls;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What tokio-postgres says when the server asks for a password and none was given (`connect_raw`).
const NO_PASSWORD: &str = "password missing";

/// What gives one.
const PASSWORD: &str =
    "give it in the environment as PGPASSWORD, or in a file (--save-password-file, save_password_file)";

/// The routines of PostgreSQL that refuse a role (`miscinit.c`) and what it shows of itself (`auth.c`). Its words for people may be in
/// any language; these names are not.
const REFUSES_ROLE: &str = "InitializeSessionUserId";
const REFUSES_PROOF: &str = "auth_failed";

/// A database, and how to get in. Shown without user and password; a remedy may name the user, and never a password.
#[derive(Clone)]
pub struct Database {
    config: Config,
    link: LinkMaker,
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

    /// Names or addresses that it may be connected by, and paths of sockets.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let addresses = self.config.get_hostaddrs().iter().map(ToString::to_string);
        self.config.get_hosts().iter().map(host).chain(addresses).collect()
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
            return StoreError::Unavailable(format!("{words}{}", remedy_of_link(error)));
        };
        let words = format!("{self}: {}", db.message());
        match db.code() {
            code if *code == SqlState::DISK_FULL => {
                StoreError::Unavailable(format!("{words}; make room on its disk, and saving goes on"))
            }
            code if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => match db.routine() {
                Some(REFUSES_ROLE) => StoreError::Locked(format!(
                    "{words}; name a role that may log in (postgres://ROLE@host/database), or make it: CREATE ROLE \"{}\" LOGIN",
                    self.config.get_user().unwrap_or("ROLE")
                )),
                Some(REFUSES_PROOF) if is_local(&self.config) => StoreError::Locked(format!(
                    "{words}; over a socket it may take a role from the system user of that name alone: run weir as that user, or \
                     connect to 127.0.0.1 with a password"
                )),
                _ if self.is_plain() => {
                    StoreError::Unfit(format!("{words}; if it wants TLS, write sslmode=require"))
                }
                _ if !self.shows_certificate => StoreError::Unfit(format!(
                    "{words}; if it wants a certificate, name yours with sslcert=FILE and sslkey=FILE"
                )),
                _ => StoreError::Unfit(words),
            },
            code if *code == SqlState::INVALID_PASSWORD => {
                StoreError::Locked(format!("{words}; check role and password: {PASSWORD}"))
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => StoreError::Locked(format!(
                "{words}; name one that is there (postgres://user@host/DATABASE), or make it: CREATE DATABASE \"{}\"",
                self.config.get_dbname().or(self.config.get_user()).unwrap_or("DATABASE")
            )),
            // Its words for people may be in any language, so that both remedies are named.
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE => StoreError::Unfit(format!(
                "{words}; let the role make tables there (GRANT CREATE ON SCHEMA public TO \"{}\"), or read and write this one (GRANT \
                 SELECT, INSERT), or name a table that it owns",
                self.config.get_user().unwrap_or("ROLE")
            )),
            code => match &code.code()[..2] {
                "22" | "23" => StoreError::Refused(words),
                "28" | "3D" | "42" => StoreError::Unfit(words),
                _ => StoreError::Unavailable(words),
            },
        }
    }

    /// The address of each host, where this process may not connect to any: a name may have another one by the time that the client
    /// library asks for it.
    fn addresses(&self) -> Result<Vec<IpAddr>, StoreError> {
        if is_local(&self.config) || !networks::is_restricted() || !self.config.get_hostaddrs().is_empty() {
            return Ok(Vec::new());
        }
        let address = |it: &Host| {
            let name = host(it);
            let found = (name.as_str(), 0).to_socket_addrs();
            let found = found.map_err(|error| StoreError::Unavailable(format!("{self}: {name}: {error}")))?;
            let permitted =
                networks::permitted(found).map_err(|it| StoreError::Unfit(format!("{self}: {it}")))?;
            let first = permitted.first().map(SocketAddr::ip);
            first.ok_or_else(|| StoreError::Unavailable(format!("{self}: {name} has no address")))
        };
        self.config.get_hosts().iter().map(address).collect()
    }

    pub(super) fn connect(&self, durability: Durability) -> Result<Client, StoreError> {
        let mut config = self.config.clone();
        for address in self.addresses()? {
            config.hostaddr(address);
        }
        let mut client = config.connect(self.link.clone()).map_err(|error| self.sort(&error))?;
        let commit = durability.of_postgresql();
        let settings = format!("SET synchronous_commit = {commit}; SET client_min_messages = warning");
        client.batch_execute(&settings).map_err(|error| self.sort(&error))?;
        Ok(client)
    }

    /// Whether TLS was declined where there might have been some.
    fn is_plain(&self) -> bool {
        self.link.wanted == Wanted::Plain && !is_local(&self.config)
    }
}

/// What helps if there is no connection, of those that were never made.
fn remedy_of_link(error: &Error) -> &'static str {
    let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>()) else {
        return "";
    };
    match cause.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::NotFound => "; start PostgreSQL, or correct host and port",
        ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "; check host and port, and whether a firewall is between"
        }
        _ if cause.to_string().contains("lookup address") => "; check the name of the host",
        _ => "",
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

/// A name or an address, or the path of a socket.
fn host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
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
        let wanted_link = match encryption.mode {
            Mode::Disable => Wanted::Plain,
            Mode::Prefer => Wanted::IfItCan,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => Wanted::Always,
        };
        // Over TCP the link is handed over, encrypted or not.
        config
            .ssl_mode(if local { SslMode::Disable } else { SslMode::Require })
            .ssl_negotiation(SslNegotiation::Direct);
        let wanted = encryption.client_tls()?;
        let tls = tls::client_config(&wanted).map_err(|error| DatabaseError::Certificates {
            identity: wanted.identity.is_some(),
            reason: error.to_string(),
        })?;
        // Out of what was read, not of the text: a password may hold what ends other parts of a URL.
        let hosts = config.get_hosts().iter().enumerate().map(|(position, it)| {
            let host = host(it);
            let port = config.get_ports().get(position).or(config.get_ports().first());
            port.map_or(host.clone(), |port| format!("{host}:{port}"))
        });
        let hosts: Vec<_> = hosts.collect();
        let shown = format!("{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default());
        config
            .connect_timeout(PATIENCE)
            .keepalives_idle(Duration::from_secs(30))
            .application_name("weir ingest");
        let link = LinkMaker { wanted: wanted_link, tls: MakeRustlsConnect::new((*tls).clone()) };
        let shows_certificate = wanted.identity.is_some();
        Ok(Self { shown: format!("postgres://{shown}"), link, shows_certificate, config, by_day: false })
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_testing::{Postgresql, free_port};

    fn refusal(url: &str) -> StoreError {
        let database: Database = url.parse().unwrap();
        match database.connect(Durability::Full) {
            Ok(mut client) => {
                let made = client.batch_execute("CREATE TABLE refused (a integer)");
                database.sort(&made.expect_err("it lets everybody in"))
            }
            Err(error) => error,
        }
    }

    #[test]
    fn a_server_that_announces_a_message_longer_than_any_is_none() {
        use std::io::{Read as _, Write as _};
        for (mode, answer) in [("disable", None), ("prefer", Some(b"N"))] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 1_024];
                assert!(stream.read(&mut asked).unwrap() > 0);
                if let Some(answer) = answer {
                    stream.write_all(answer).unwrap();
                    assert!(stream.read(&mut asked).unwrap() > 0);
                }
                // The client goes when it likes.
                let _ = stream.write_all(&[b'R', 0x7F, 0xFF, 0xFF, 0xFF]);
                while stream.write_all(&[0; 65_536]).is_ok() {}
            });
            let database: Database =
                format!("postgres://me@127.0.0.1:{port}/d?sslmode={mode}").parse().unwrap();
            let refused = database.connect(Durability::Full).err().unwrap().to_string();
            assert!(refused.contains("announces a message of 2147483647 bytes"), "{refused}");
            server.join().unwrap();
        }
    }

    #[test]
    fn whatever_keeps_one_out_is_one_line_with_what_helps() {
        let server = Postgresql::start();
        let place = server.place();
        let locked = |url: &str, words: &[&str]| {
            let StoreError::Locked(line) = refusal(url) else { panic!("{url}: {:?}", refusal(url)) };
            assert!(words.iter().all(|words| line.contains(words)) && !line.contains('\n'), "{line}");
            assert!(!line.contains("certificate") && !line.contains("wr0ng"), "{line}");
        };
        locked(&place, &["it asks for a password", "PGPASSWORD"]);
        locked(&place.replace("weir@", "weir:wr0ng@"), &["check role and password", "PGPASSWORD"]);
        let mut client = server.client();
        client.batch_execute("CREATE ROLE guest LOGIN; CREATE ROLE staff").unwrap();
        server.trust(&mut client);
        let nobody = ["role \"nobody\" does not exist; name a role", "CREATE ROLE \"nobody\" LOGIN"];
        locked(&place.replace("weir@", "nobody@"), &nobody);
        locked(&place.replace("weir@", "staff@"), &["\"staff\" is not permitted to log in; name a role"]);
        locked(&place.replace("/postgres", "/nowhere"), &["CREATE DATABASE \"nowhere\""]);
        let StoreError::Unfit(line) = refusal(&place.replace("weir@", "guest@")) else { panic!() };
        assert!(line.contains("GRANT CREATE ON SCHEMA public TO \"guest\""), "{line}");
        for (place, remedy) in [
            (format!("127.0.0.1:{}", free_port()), "; start PostgreSQL, or correct host and port"),
            ("no-such-host.invalid".to_owned(), "; check the name of the host"),
        ] {
            let refused = refusal(&format!("postgres://weir@{place}/postgres"));
            assert!(
                matches!(&refused, StoreError::Unavailable(line) if line.ends_with(remedy)),
                "{refused:?}"
            );
        }
    }
}
