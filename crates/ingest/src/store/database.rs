//! A PostgreSQL database: how to get in, how it is called, and what its errors are.

mod deadline;
mod link;

use self::deadline::Deadline;
use self::link::{LinkMaker, PasswordExposed, TlsMode};
use super::Durability;
use super::clear_text::{Exposure, is_here, is_host_here, refusal};
use super::encryption::{Encryption, Mode};
use crate::error::{DatabaseError, StoreError};
use crate::store_thread::on_a_thread;
use postgres::config::{Host, SslMode, SslNegotiation};
use postgres::error::SqlState;
use postgres::{Client, Config, Error};
use std::error::Error as _;
use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::ops::{Deref, DerefMut};
use std::str::FromStr;
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;
use weir_address::networks;
use weir_setting::{BATCH, SAVE_PASSWORD_FILE, STATEMENT_TIMEOUT};
use weir_shard::tls;

/// How long a connection over TCP, its TLS, and the login may take, each. Two retransmissions of a SYN are over after 3 s (RFC 6298, 2.1
/// and 5.5), and a server that forks a process for each client and looks a user up elsewhere takes seconds when it is busy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a batch may take, unless something else is said: one of megabytes on a busy disk takes seconds.
pub(super) const STATEMENT: Duration = Duration::from_secs(60);

/// How long a connection may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What tokio-postgres says when the server asks for a password and none was given (`connect_raw`).
const NO_PASSWORD: &str = "password missing";

/// What gives one.
fn password() -> String {
    let file = SAVE_PASSWORD_FILE.beside_flag(", save_password_file");
    format!("give it in the environment as PGPASSWORD, or in a file ({file})")
}

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
    /// How long each step of a login may take.
    patience: Duration,
    /// How long a batch may take.
    statement: Duration,
    /// Whether the URL asks in words for a link without TLS.
    asks_for_plain: bool,
}

/// A connection to a database, which waits for the server for as long as is said.
pub(super) struct Session {
    client: Client,
    deadline: Deadline,
}

impl Session {
    /// What is asked from now on has this long, all of it together.
    pub(super) fn allow(&self, time: Duration, words: String) {
        self.deadline.allow(time, words);
    }

    /// What is asked from now on may take any time.
    pub(super) fn wait(&self) {
        self.deadline.lift();
    }

    /// What a person is told, if the server was not heard in time.
    pub(super) fn expired(&self) -> Option<StoreError> {
        self.deadline.expired().map(|words| StoreError::Unavailable(words.to_string()))
    }
}

impl Deref for Session {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Session {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// A client says good-bye when it is dropped, and would wait until that is sent.
impl Drop for Session {
    fn drop(&mut self) {
        self.deadline.allow(CLOSE_TIMEOUT, "the connection did not close in time");
    }
}

impl Database {
    /// Has new tables of rows partitioned, by the day of receipt.
    pub fn partition_by_day(&mut self) {
        self.by_day = true;
    }

    /// How long a batch may take, before it is cancelled and sent again.
    pub fn set_statement_timeout(&mut self, timeout: Duration) {
        self.statement = timeout;
    }

    /// How long a batch may take.
    pub(super) fn statement_timeout(&self) -> Duration {
        self.statement
    }

    /// How long a server that cancels a batch by itself may take to say so: as long as a login.
    pub(super) fn answer_timeout(&self) -> Duration {
        self.patience
    }

    #[cfg(test)]
    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
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
                return StoreError::AccessDenied(format!("{self}: it asks for a password; {}", password()));
            }
            if let Some(PasswordExposed { sent }) = cause_of(error) {
                let words = refusal(sent, "write sslmode=require for TLS, or have it use scram-sha-256");
                return StoreError::Unfit(format!("{self}: {words}"));
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
            code if *code == SqlState::QUERY_CANCELED => StoreError::Unavailable(format!(
                "{words}; a batch may take {} s: see what holds the table (pg_locks), commit less at once ({BATCH}), or give it more \
                 ({STATEMENT_TIMEOUT})",
                self.statement.as_secs_f64()
            )),
            code if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => match db.routine() {
                Some(REFUSES_ROLE) => StoreError::AccessDenied(format!(
                    "{words}; name a role that may log in (postgres://ROLE@host/database), or make it: CREATE ROLE \"{}\" LOGIN",
                    self.config.get_user().unwrap_or("ROLE")
                )),
                Some(REFUSES_PROOF) if is_local(&self.config) => StoreError::AccessDenied(format!(
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
                StoreError::AccessDenied(format!("{words}; check role and password: {}", password()))
            }
            code if *code == SqlState::INVALID_CATALOG_NAME => StoreError::AccessDenied(format!(
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

    /// Whether all that it may be connected by is on this machine.
    fn is_here(&self) -> bool {
        let addresses = self.config.get_hostaddrs();
        if !addresses.is_empty() {
            return addresses.iter().all(|address| is_here(*address));
        }
        self.config.get_hosts().iter().all(|it| match it {
            Host::Tcp(name) => is_host_here(name),
            Host::Unix(_) => true,
        })
    }

    /// What a login over a link without TLS would show. Without a password that is nothing, and the library says that one is missing.
    fn exposure(&self) -> Exposure {
        Exposure::of(!self.has_password(), self.asks_for_plain, self.is_here())
    }

    /// Connects and logs in. What is asked then may take any time, until something else is said.
    pub(super) fn connect(&self, durability: Durability) -> Result<Session, StoreError> {
        self.connect_showing(self.exposure(), durability)
    }

    fn connect_showing(&self, exposure: Exposure, durability: Durability) -> Result<Session, StoreError> {
        let mut config = self.config.clone();
        for address in self.addresses()? {
            config.hostaddr(address);
        }
        let link = LinkMaker {
            deadline: Deadline::default(),
            patience: self.patience,
            exposure,
            ..self.link.clone()
        };
        let deadline = link.deadline.clone();
        let client =
            if is_local(&config) { self.within_patience(config, link) } else { self.opened(&config, link) };
        let mut session = Session { client: client?, deadline };
        // A transaction whose client is gone is not to hold its rows for ever: neither while its statements wait for data, nor between
        // them. No version before 9.6 knows the second setting.
        let milliseconds = self.statement.as_millis();
        let settings = format!(
            "SET synchronous_commit = {}; SET client_min_messages = warning; SET statement_timeout = 0; \
             SELECT set_config(name, '{milliseconds}', false) FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
            durability.of_postgresql()
        );
        session.batch_execute(&settings).map_err(|error| self.sort(&error))?;
        session.wait();
        Ok(session)
    }

    fn opened(&self, config: &Config, link: LinkMaker) -> Result<Client, StoreError> {
        config.connect(link).map_err(|error| self.sort(&error))
    }

    /// The library hands no socket of this machine over, so that a thread is left behind with a server that does not answer there.
    fn within_patience(&self, config: Config, link: LinkMaker) -> Result<Client, StoreError> {
        let (send, opened) = channel();
        let database = self.clone();
        let away = |words: String| StoreError::Unavailable(format!("{self}: {words}"));
        on_a_thread("weir-login", move || {
            // Whoever waited may be gone.
            let _ = send.send(database.opened(&config, link));
        })
        .map_err(|error| away(error.to_string()))?;
        opened.recv_timeout(self.patience).unwrap_or_else(|_| {
            let seconds = self.patience.as_secs_f64();
            Err(away(format!("the login was not over within {seconds} s")))
        })
    }

    /// Whether TLS was declined where there might have been some.
    fn is_plain(&self) -> bool {
        self.link.wanted == TlsMode::Plain && !is_local(&self.config)
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

/// What is inside the error of a link.
fn cause_of<E: std::error::Error + 'static>(error: &Error) -> Option<&E> {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.and_then(|cause| cause.get_ref()?.downcast_ref())
}

/// Whether the server was refused for its certificate: waiting does not help.
fn is_distrust(error: &Error) -> bool {
    matches!(cause_of(error), Some(tls::Error::InvalidCertificate(_)))
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
            Mode::Disable => TlsMode::Plain,
            Mode::Prefer => TlsMode::IfItCan,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => TlsMode::Always,
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
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(Duration::from_secs(30))
            .application_name("weir ingest");
        let link = LinkMaker {
            wanted: wanted_link,
            tls: MakeRustlsConnect::new((*tls).clone()),
            patience: CONNECT_TIMEOUT,
            deadline: Deadline::default(),
            exposure: Exposure::Exposed,
        };
        Ok(Self {
            shown: format!("postgres://{shown}"),
            link,
            shows_certificate: wanted.identity.is_some(),
            config,
            by_day: false,
            patience: CONNECT_TIMEOUT,
            statement: STATEMENT,
            asks_for_plain: encryption.mode == Mode::Disable,
        })
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

    /// A server that answers a client's messages with these, one after the other, and then says nothing until the client is gone.
    fn scripted(answers: Vec<Vec<u8>>) -> (u16, std::thread::JoinHandle<Vec<u8>>) {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut heard, mut bytes) = (Vec::new(), [0; 1_024]);
            let mut answers = answers.into_iter();
            while let Ok(size @ 1..) = stream.read(&mut bytes) {
                heard.extend_from_slice(&bytes[..size]);
                // The client goes when it likes.
                let _ = stream.write_all(&answers.next().unwrap_or_default());
            }
            heard
        });
        (port, server)
    }

    #[test]
    fn a_server_that_says_nothing_is_given_up_at_each_step_of_a_login() {
        let is_in = b"R\0\0\0\x08\0\0\0\0".to_vec();
        for (mode, answers, words) in [
            ("disable", vec![], "the login was not over within 0.2 s"),
            ("disable", vec![is_in], "the login was not over within 0.2 s"),
            // The machine may take all of that time for the first answer.
            ("prefer", vec![b"N".to_vec()], " within 0.2 s"),
            ("prefer", vec![], "there was no TLS within 0.2 s"),
            ("require", vec![b"S".to_vec()], "there was no TLS within 0.2 s"),
        ] {
            let (port, server) = scripted(answers);
            let place = format!("postgres://me@127.0.0.1:{port}/d?sslmode={mode}");
            let mut database: Database = place.parse().unwrap();
            database.set_patience(Duration::from_millis(200));
            let refused = database.connect(Durability::Full).err().unwrap();
            assert!(matches!(&refused, StoreError::Unavailable(line) if line.contains(words)), "{refused:?}");
            server.join().unwrap();
        }
    }

    #[test]
    fn a_server_that_sends_a_byte_at_a_time_does_not_move_the_end_of_a_login() {
        use std::io::Write as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // A notice of 64 MiB, which never comes to an end.
            let _ = stream.write_all(b"N\x04\0\0\0");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let mut database: Database =
            format!("postgres://me@127.0.0.1:{port}/d?sslmode=disable").parse().unwrap();
        database.set_patience(Duration::from_millis(200));
        let refused = database.connect(Durability::Full).err().unwrap().to_string();
        assert!(refused.contains("the login was not over within 0.2 s"), "{refused}");
        server.join().unwrap();
    }

    #[test]
    fn a_password_that_a_login_would_show_is_kept_unless_the_way_is_safe() {
        let clear = b"R\0\0\0\x08\0\0\0\x03".to_vec();
        let refusal = b"E\0\0\0\x17SFATAL\0C28P01\0Mno\0\0".to_vec();
        for (exposure, is_sent) in [(Exposure::Exposed, false), (Exposure::Safe, true)] {
            let (port, server) = scripted(vec![clear.clone(), refusal.clone()]);
            let database: Database =
                format!("postgres://me:s3cr3t@127.0.0.1:{port}/d?sslmode=disable").parse().unwrap();
            let refused = database.connect_showing(exposure, Durability::Full).err().unwrap();
            let heard = server.join().unwrap();
            assert_eq!(heard.windows(6).any(|it| it == b"s3cr3t"), is_sent);
            if !is_sent {
                let StoreError::Unfit(line) = refused else { panic!("{refused:?}") };
                assert!(
                    line.contains("over the wire as it is") && line.contains("sslmode=disable"),
                    "{line}"
                );
                assert!(!line.contains("s3cr3t"), "{line}");
            }
        }
        for (url, exposure) in [
            ("postgres://me:s3cr3t@192.0.2.1/d", Exposure::Exposed),
            ("postgres://me:s3cr3t@192.0.2.1/d?sslmode=prefer", Exposure::Exposed),
            ("postgres://me:s3cr3t@127.0.0.1,192.0.2.1/d", Exposure::Exposed),
            ("postgres://me:s3cr3t@127.0.0.1/d?hostaddr=192.0.2.1", Exposure::Exposed),
            ("postgres://me:s3cr3t@192.0.2.1/d?sslmode=disable", Exposure::Safe),
            ("postgres://me@192.0.2.1/d", Exposure::Safe),
            ("postgres://me:s3cr3t@127.0.0.1/d", Exposure::Safe),
            ("postgres://me:s3cr3t@%2Ftmp/d", Exposure::Safe),
        ] {
            assert_eq!(url.parse::<Database>().unwrap().exposure(), exposure, "{url}");
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
            let StoreError::AccessDenied(line) = refusal(url) else { panic!("{url}: {:?}", refusal(url)) };
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
