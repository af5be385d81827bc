//! Somebody else's consumer: weir asks it what became of the messages.

use crate::attendant::{Attendant, Say};
use crate::error::ProbeError;
use crate::gateway::{Gateway, GatewayConsumer};
use crate::table::{ProbedTable, TableConsumer};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_engine::ingest::{Consumer, MakeConsumer};
use weir_http::{HttpAddress, HttpTrust};

/// How to ask.
#[derive(Clone, Debug)]
pub enum Probe {
    /// The gateway of the original measurement, on InterSystems IRIS: `http://HOST:PORT/csp/mqtt/rest`.
    Gateway(Gateway),
    /// A table of PostgreSQL: `sql:postgres://user@host/database#TABLE`.
    Table(Box<ProbedTable>),
}

impl Probe {
    /// Reads a probe as a person writes it. `password` is that of a database, for a URL that names none.
    ///
    /// # Errors
    /// See [`ProbeError`].
    pub fn parse(text: &str, trust: &HttpTrust, password: Option<&str>) -> Result<Self, ProbeError> {
        if let Some(place) = text.strip_prefix("sql:") {
            return ProbedTable::parse(place, password).map(|it| Self::Table(Box::new(it)));
        }
        let authority =
            text.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or(rest));
        if text.contains('@') && !authority.contains('@') {
            return Err(ProbeError::Password);
        }
        let address = HttpAddress::parse(text).ok_or(ProbeError::Unknown)?;
        Ok(Self::Gateway(Gateway::new(address, trust.clone())))
    }

    /// How it is called in messages: without user and password.
    pub fn name(&self) -> String {
        match self {
            Self::Gateway(gateway) => gateway.to_string(),
            Self::Table(watched) => watched.name(),
        }
    }

    /// Makes the consumer ready for `count` messages in an encoding, `avro` or `json`, and asks it from then on.
    /// `say` takes what is waited for, every ten seconds.
    pub fn consumer(self, encoding: String, count: u64, patience: Duration, say: Say) -> Box<MakeConsumer> {
        Box::new(move |interrupt| {
            let consumer: Box<dyn Consumer + Send> = match &self {
                Self::Gateway(gateway) => {
                    Box::new(GatewayConsumer::start(gateway, &encoding, count, patience)?)
                }
                Self::Table(watched) => {
                    match TableConsumer::start(watched, Attendant::new(interrupt.clone(), say)) {
                        Err(_) if interrupt.load(Relaxed) => return Ok(None),
                        consumer => Box::new(consumer?),
                    }
                }
            };
            Ok(Some(consumer))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_ingest::DatabaseError;

    #[test]
    fn a_probe_is_a_gateway_or_a_table_and_shows_no_password() {
        let parse = |text: &str| Probe::parse(text, &HttpTrust::System, None);
        let gateway = parse("http://me:s3cret@h:8882").unwrap();
        assert_eq!(gateway.name(), "http://h:8882/csp/mqtt/rest");
        let table = parse("sql:postgres://me:s3cret@h/d#simple_json").unwrap();
        assert_eq!(table.name(), "postgres://h:5432/d table simple_json");
        assert!(!format!("{gateway:?}{table:?}").contains("s3cret"));
        assert_eq!(parse("sql:postgres://me@h/d").unwrap_err(), ProbeError::Table);
        assert_eq!(parse("sql:postgres://me:33#cr3t@h/d").unwrap_err(), ProbeError::Table);
        let no_mode = ProbeError::Database(DatabaseError::Mode);
        assert_eq!(parse("sql:postgres://me:s3cret@h/d?sslmode=on#t").unwrap_err(), no_mode);
        assert_eq!(parse("http://me:33#cr3t@h").unwrap_err(), ProbeError::Password);
        let hard = parse("sql:postgres://me:s3/cr?3#t@h:5/d#simple").unwrap();
        assert_eq!(hard.name(), "postgres://h:5/d table simple");
        for text in ["sql:mysql://h/d#t", "h:80", ""] {
            assert_eq!(parse(text).unwrap_err(), ProbeError::Unknown, "{text}");
        }
    }
}
