//! Reads from the command line or a scenario what records are and where they go: the file with their schema, the store with its password.

use crate::exit::{Exit, Failure};
use std::path::Path;
use weir_ingest::{Destination, DestinationError};
use weir_protocols::first_line;
use weir_record::Schema;

/// Reads a schema from a file.
pub(crate) fn schema(path: &Path) -> Result<Schema, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::of_file(path, &error))?;
    Schema::parse(&text).map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))
}

/// A store, with the password of a file or of the environment.
pub(crate) fn destination(text: &str, password_file: Option<&Path>) -> Result<Destination, String> {
    // Not parsed as an argument: what is wrong there is shown, and this may hold a password.
    let mut destination: Destination = text.parse().map_err(|error: DestinationError| error.to_string())?;
    if let Destination::Postgres(database) = &mut destination {
        let password = match password_file {
            Some(path) => Some(first_line(path).map_err(|error| error.to_string())?),
            None if database.has_password() => None,
            None => std::env::var("PGPASSWORD").ok(),
        };
        if let Some(password) = password {
            database.set_password(&password);
        }
    }
    Ok(destination)
}
