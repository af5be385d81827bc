//! A ClickHouse server: how to get in, how it is called, how it is asked over HTTP, and what its errors are.

use crate::error::{DatabaseError, StoreError};
use crate::store::clear_text::{IN_WORDS, is_host_here, refusal};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use weir_http::{Http, HttpAddress, HttpError, HttpTrust};
use weir_setting::{BATCH, CACERT, SAVE_PASSWORD_FILE};

/// How long a batch may take, unless something else is said: one of megabytes on a busy disk takes seconds.
const STATEMENT: Duration = Duration::from_secs(60);

/// How long a table may take to be made, looked at, counted or dropped: there is no other end for a connection that is dead without a word,
/// and a table that takes a day to count is larger than weir fills.
const UNBOUNDED: Duration = Duration::from_secs(24 * 3_600);

/// How long it may take to say which version it is, login included.
const LOGIN: Duration = Duration::from_secs(10);

/// What gives a password.
fn password() -> String {
    let file = SAVE_PASSWORD_FILE.beside_flag(", save_password_file");
    format!("give it in the environment as CLICKHOUSE_PASSWORD, or in a file ({file})")
}

/// What is shown of a server's own words.
const WORDS: usize = 300;

/// What stands between the parts of a request that carries a table. With what HTTP puts around it, it is longer than the table's
/// rows of 32 bytes, each of which ends with a hash: nobody who publishes can write it there.
const BOUNDARY: &str = "weir-5f0d1c6e9a2b47c8b3e6d4a1f7092c58";

/// A database of a server, and how to get in. Shown without user and password.
#[derive(Clone)]
pub struct ClickHouse {
    address: HttpAddress,
    /// Both as a URL has them.
    user: String,
    password: Option<String>,
    /// Whether a password may go over the wire as it is: by TLS nobody can read it.
    allows_clear_text: bool,
    database: String,
    trust: HttpTrust,
    shown: String,
    /// How long a batch may take.
    statement: Duration,
}

impl ClickHouse {
    /// The password, for a URL that names none.
    pub fn set_password(&mut self, password: &str) {
        self.password = Some(password.replace('%', "%25"));
    }

    /// Whether the URL names a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// The name or address of the server.
    pub(crate) fn host(&self) -> &str {
        self.address.host()
    }

    /// How long a batch may take, before it is sent again.
    pub fn set_statement_timeout(&mut self, timeout: Duration) {
        self.statement = timeout;
    }

    /// The certificates that a server of `clickhouses://` may show.
    pub fn set_trust(&mut self, trust: HttpTrust) {
        self.trust = trust;
    }

    pub(super) fn connect(&self) -> Result<Link, StoreError> {
        let http = Http::new(&self.address, &self.trust).map_err(|error| self.sort_link(&error))?;
        let password = self.password.as_deref().unwrap_or_default();
        let is_safe = password.is_empty() || self.allows_clear_text;
        if !is_safe && !is_host_here(self.address.host()) {
            let words = refusal("as it is", "write clickhouses:// for TLS");
            return Err(StoreError::Unfit(format!("{self}: {words}")));
        }
        // An answer has its status when it is whole: a server that fails half-way says so there, and not in the rows.
        let parameters = [("database", &*self.database), ("wait_end_of_query", "1")];
        let mut address = self.address.with(&parameters);
        if !self.user.is_empty() || !password.is_empty() {
            let user = if self.user.is_empty() { "default" } else { &self.user };
            address = address.with_user(user, password);
        }
        Ok(Link { http, address, server: self.clone() })
    }

    fn sort_link(&self, error: &HttpError) -> StoreError {
        match error {
            HttpError::Certificates { .. } => StoreError::Unfit(error.to_string()),
            HttpError::Tls(_) => StoreError::Unfit(format!(
                "{self}: {error}; name who signed its certificate ({}), and the host as the certificate does",
                CACERT.to("FILE")
            )),
            _ => StoreError::Unavailable(format!("{self}: {error}")),
        }
    }

    /// What an answer is that is no result. The numbers are ClickHouse's (`ErrorCodes.cpp`), and never change.
    fn sort(&self, status: u16, body: &[u8]) -> StoreError {
        let body = String::from_utf8_lossy(body);
        let Some((code, words)) = exception(&body) else {
            let words =
                format!("{self}: HTTP status {status}, and not from ClickHouse; its port for HTTP is 8123");
            return if (400..500).contains(&status) {
                StoreError::Unfit(words)
            } else {
                StoreError::Unavailable(words)
            };
        };
        let words = format!("{self}: {words}");
        match code {
            // UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED
            192..=194 | 516 => StoreError::AccessDenied(format!("{words}; {}", password())),
            // NOT_ENOUGH_SPACE; ENOSPC comes with the code of what was tried.
            243 => StoreError::Unavailable(format!("{words}; make room on its disk, and saving goes on")),
            _ if body.contains("No space left on device") => {
                StoreError::Unavailable(format!("{words}; make room on its disk, and saving goes on"))
            }
            // TOO_MANY_PARTS
            252 => StoreError::Unavailable(format!("{words}; commit more at once ({BATCH})")),
            // UNKNOWN_DATABASE
            81 => StoreError::Unfit(format!("{words}; make it first: CREATE DATABASE {}", self.database)),
            // INCORRECT_DATA, VIOLATED_CONSTRAINT
            117 | 469 => StoreError::Refused(words),
            // NO_SUCH_COLUMN_IN_TABLE, BAD_ARGUMENTS, ILLEGAL_TYPE_OF_ARGUMENT, ILLEGAL_COLUMN, UNKNOWN_FUNCTION,
            // UNKNOWN_IDENTIFIER, UNKNOWN_TYPE, TYPE_MISMATCH, UNKNOWN_TABLE, SYNTAX_ERROR, UNKNOWN_SETTING, READONLY,
            // IP_ADDRESS_NOT_ALLOWED, DATABASE_ACCESS_DENIED, ACCESS_DENIED
            16 | 36 | 43 | 44 | 46 | 47 | 50 | 53 | 60 | 62 | 115 | 164 | 195 | 291 | 497 => {
                StoreError::Unfit(words)
            }
            _ => StoreError::Unavailable(words),
        }
    }
}

/// The code and the words of an exception: `Code: 60, e.displayText() = DB::Exception: WORDS, e.what() = DB::Exception` until
/// version 20, `Code: 60. DB::Exception: WORDS (UNKNOWN_TABLE) (version …)` since.
fn exception(body: &str) -> Option<(u32, String)> {
    let rest = &body[body.find("Code: ")? + 6..];
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let code = rest[..digits].parse().ok()?;
    let words = rest.split_once("DB::Exception: ").map_or(rest, |(_, words)| words);
    let line = words.lines().next().unwrap_or_default();
    let line =
        [", e.what()", " (version "].iter().fold(line, |line, end| line.split(end).next().unwrap_or(line));
    Some((code, line.trim().chars().filter(|letter| !letter.is_control()).take(WORDS).collect()))
}

/// A connection, as HTTP has one: kept open between requests, and made again when it is gone.
pub(super) struct Link {
    http: Http,
    address: HttpAddress,
    server: ClickHouse,
}

impl Link {
    /// What the server says of its version, the first that it is asked.
    pub(super) fn ask_version(&self) -> Result<Vec<u8>, StoreError> {
        self.exchange(&self.address, &[], b"SELECT version() FORMAT RowBinary", LOGIN)
    }

    /// What the server answers to a statement; what follows it in the body are its rows.
    pub(super) fn ask(&self, statement: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.exchange(&self.address, &[], statement, UNBOUNDED)
    }

    /// The same, of which the user's settings are no matter.
    pub(super) fn insert(&self, settings: &[(&str, &str)], statement: &[u8]) -> Result<(), StoreError> {
        self.exchange(&self.address.with(settings), &[], statement, self.server.statement).map(drop)
    }

    /// What the server answers to a query beside which a table goes there: `rows` in RowBinary, of this structure ("External
    /// data for query processing").
    pub(super) fn ask_with(
        &self,
        query: &str,
        table: &str,
        structure: &str,
        rows: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let (format, columns) = (format!("{table}_format"), format!("{table}_structure"));
        let address = self.address.with(&[("query", query), (&format, "RowBinary"), (&columns, structure)]);
        let disposition = format!("form-data; name=\"{table}\"; filename=\"{table}\"");
        let mut body = format!("--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n\r\n").into_bytes();
        body.extend_from_slice(rows);
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        self.exchange(&address, &[("Content-Type", &kind)], &body, self.server.statement)
    }

    fn exchange(
        &self,
        address: &HttpAddress,
        fields: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>, StoreError> {
        let answer = self.http.exchange(address, fields, body, timeout);
        let (status, body) = answer.map_err(|error| self.server.sort_link(&error))?;
        if status == 200 { Ok(body) } else { Err(self.server.sort(status, &body)) }
    }
}

impl FromStr for ClickHouse {
    type Err = DatabaseError;

    fn from_str(text: &str) -> Result<Self, DatabaseError> {
        let (scheme, rest) = text.split_once("://").ok_or(DatabaseError::Unknown)?;
        let (http, port) = if scheme == "clickhouses" { ("https", 8443) } else { ("http", 8123) };
        // A password may hold what ends other parts of a URL, and a place has no @.
        let (credentials, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (place, options) = place.split_once('?').unwrap_or((place, ""));
        let is_encrypted = scheme == "clickhouses";
        if !matches!(options, "" | IN_WORDS) || is_encrypted && !options.is_empty() || place.contains('#') {
            return Err(DatabaseError::Options);
        }
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(password.to_owned())),
            None => (credentials, None),
        };
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        let database = percent_decode_str(database.trim_end_matches('/')).decode_utf8_lossy();
        let database = if database.is_empty() { "default".into() } else { database };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let host = if has_port { host.to_owned() } else { format!("{host}:{port}") };
        let address = HttpAddress::parse(&format!("{http}://{host}")).ok_or(DatabaseError::Unknown)?;
        Ok(Self {
            address,
            user: user.to_owned(),
            password,
            allows_clear_text: is_encrypted || !options.is_empty(),
            shown: format!("{scheme}://{host}/{database}"),
            database: database.into_owned(),
            trust: HttpTrust::System,
            statement: STATEMENT,
        })
    }
}

impl fmt::Display for ClickHouse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for ClickHouse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClickHouse({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_user_password_host_port_and_database_and_shows_the_last_three() {
        for (text, shown, user, password) in [
            ("clickhouse://h", "clickhouse://h:8123/default", "", None),
            ("clickhouse://me@h:9/d/", "clickhouse://h:9/d", "me", None),
            ("clickhouses://me:s3/c?r@t@[::1]/d", "clickhouses://[::1]:8443/d", "me", Some("s3/c?r@t")),
            ("clickhouse://[::1]:80/d%20e", "clickhouse://[::1]:80/d e", "", None),
            ("clickhouse://me:pw@h/d?sslmode=disable", "clickhouse://h:8123/d", "me", Some("pw")),
        ] {
            let place: ClickHouse = text.parse().unwrap();
            assert_eq!(place.to_string(), shown);
            assert_eq!((&*place.user, place.password.as_deref()), (user, password), "{text}");
        }
        for (text, error) in [
            ("clickhouse://", DatabaseError::Unknown),
            ("clickhouse://h:x/d", DatabaseError::Unknown),
            ("clickhouse://me:s3cr3t@h/d?async_insert=1", DatabaseError::Options),
            ("clickhouses://me:s3cr3t@h/d?sslmode=disable", DatabaseError::Options),
        ] {
            assert_eq!(text.parse::<ClickHouse>().unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn a_password_leaves_this_machine_by_tls_or_if_the_url_asks_for_it_in_words() {
        let refused = |text: &str| text.parse::<ClickHouse>().unwrap().connect().err();
        let words = refused("clickhouse://me:s3cr3t@192.0.2.1/d").unwrap().to_string();
        assert!(words.contains("write clickhouses:// for TLS") && !words.contains("s3cr3t"), "{words}");
        for text in [
            "clickhouse://me:s3cr3t@127.0.0.1/d",
            "clickhouse://me@192.0.2.1/d",
            "clickhouse://me:s3cr3t@192.0.2.1/d?sslmode=disable",
            "clickhouses://me:s3cr3t@192.0.2.1/d",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }

    #[test]
    fn exceptions_of_old_and_of_new_servers_are_told_by_their_numbers() {
        let place: ClickHouse = "clickhouse://me:s3cr3t@h/d".parse().unwrap();
        let sort = |body: &str| place.sort(500, body.as_bytes());
        let old = "Code: 193, e.displayText() = DB::Exception: Wrong password for user me, e.what() = DB::Exception\n";
        let StoreError::AccessDenied(words) = sort(old) else { panic!() };
        assert!(words.starts_with("clickhouse://h:8123/d: Wrong password for user me; give it"), "{words}");
        let new = "Code: 60. DB::Exception: Unknown table expression identifier 't'. (UNKNOWN_TABLE) (version 26.9.2.1 (official build))\n";
        assert_eq!(
            sort(new),
            StoreError::Unfit(
                "clickhouse://h:8123/d: Unknown table expression identifier 't'. (UNKNOWN_TABLE)".to_owned()
            )
        );
        let full = "Code: 75, e.displayText() = DB::ErrnoException: Cannot write to file x, errno: 28, strerror: No space left on device, e.what() = …";
        assert!(matches!(sort(full), StoreError::Unavailable(words) if words.contains("make room")));
        assert!(matches!(place.sort(404, b"<html>"), StoreError::Unfit(_)));
        assert!(matches!(place.sort(502, b"<html>"), StoreError::Unavailable(_)));
    }
}
