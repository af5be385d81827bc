//! Reads from the command line or a scenario what records are and where they go: the file with their schema, the store with its password.

use crate::error::{ErrorKind, RunError};
use std::path::Path;
use weir_http::HttpTrust;
use weir_ingest::{Destination, DestinationError};
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
