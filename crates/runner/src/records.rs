//! Reads from the command line or a scenario what records are and where they go: the file with their schema, the store with its password.

use crate::error::{ErrorKind, RunError};
use std::path::Path;
use weir_http::HttpTrust;
use weir_ingest::{Destination, DestinationError, StoreError};
use weir_protocols::first_line;
use weir_record::Schema;

/// Reads a schema from a file.
pub fn schema(path: &Path) -> Result<Schema, RunError> {
    let text = weir_files::read_text(path, weir_record::MAX_SCHEMA)
        .map_err(|error| RunError::of_file(path, &error))?;
    Schema::parse(&text)
        .map_err(|error| RunError::new(ErrorKind::Usage, format!("{}: {error}", path.display())))
}

/// A store, with the password of a file or of the environment, and the certificates that it may show.
pub fn destination(
    text: &str,
    password_file: Option<&Path>,
    trust: &HttpTrust,
) -> Result<Destination, String> {
    // Not parsed as an argument: what is wrong there is shown, and this may hold a password.
    let mut destination: Destination = text.parse().map_err(|error: DestinationError| error.to_string())?;
    match &mut destination {
        Destination::ClickHouse(server) => server.set_trust(trust.clone()),
        Destination::Kafka(cluster) => cluster.set_trust(trust.clone()),
        _ => {}
    }
    let (variable, has_password) = match &destination {
        Destination::Postgres(database) => ("PGPASSWORD", database.has_password()),
        Destination::ClickHouse(server) => ("CLICKHOUSE_PASSWORD", server.has_password()),
        Destination::Kafka(cluster) if cluster.has_user() => ("KAFKA_PASSWORD", cluster.has_password()),
        _ => return Ok(destination),
    };
    let password = match password_file {
        Some(path) => Some(first_line(path).map_err(|error| error.to_string())?),
        None if has_password => None,
        None => std::env::var(variable).ok(),
    };
    match (&mut destination, password) {
        (Destination::Postgres(database), Some(password)) => database.set_password(&password),
        (Destination::ClickHouse(server), Some(password)) => server.set_password(&password),
        (Destination::Kafka(cluster), Some(password)) => {
            cluster.set_password(&password).map_err(|error| error.to_string())?;
        }
        _ => {}
    }
    Ok(destination)
}

impl ErrorKind {
    /// What an error of a store comes to: a database that is not there is as any server that is not; one that asks for a password,
    /// or has no such role, is as `wrong` as any other mistake of a command line or of a scenario.
    pub fn of_store(destination: &Destination, error: &StoreError, wrong: Self) -> Self {
        match error {
            StoreError::Unavailable(_) if destination.is_server() => Self::TargetDied,
            StoreError::AccessDenied(_) => wrong,
            _ => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_is_not_there_is_a_server_that_does_not_answer() {
        let of = |place: &str, error: fn(String) -> StoreError| {
            ErrorKind::of_store(&place.parse().unwrap(), &error(String::new()), ErrorKind::Scenario)
        };
        assert_eq!(of("postgres://h/d", StoreError::Unavailable), ErrorKind::TargetDied);
        assert_eq!(of("clickhouse://h/d", StoreError::Unavailable), ErrorKind::TargetDied);
        assert_eq!(of("postgres://h/d", StoreError::AccessDenied), ErrorKind::Scenario);
        assert_eq!(of("postgres://h/d", StoreError::Unfit), ErrorKind::Internal);
        assert_eq!(
            of("sqlite:/no/such/file", StoreError::Unavailable),
            ErrorKind::Internal,
            "a file is not a server"
        );
    }
}
