//! What keeps a consumer from being there.

use weir_engine::ingest::{ConsumerError, IngestStage};
use weir_ingest::{DatabaseError, StoreError};

/// A text that names no probe. Does not show it: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Neither of the two.
    #[error(
        "this is no probe; write http://HOST:PORT/csp/mqtt/rest of a gateway, or sql:postgres://user@host/database#TABLE"
    )]
    Unknown,
    /// A password that ends the part of the URL that it is in.
    #[error("write / ? # and @ in a password as %2F, %3F, %23 and %40")]
    Password,
    /// A database without a table.
    #[error("say which table the other consumer fills, behind a #: sql:postgres://user@host/database#TABLE")]
    Table,
    /// A database, but not how to reach it.
    #[error(transparent)]
    Database(DatabaseError),
}

impl From<DatabaseError> for ProbeError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Unknown => Self::Unknown,
            error => Self::Database(error),
        }
    }
}

/// A store that cannot be had.
pub(crate) fn of_store(stage: IngestStage, error: &StoreError) -> ConsumerError {
    ConsumerError {
        is_of_scenario: matches!(error, StoreError::AccessDenied(_)),
        ..ConsumerError::new(stage, error.to_string())
    }
}
