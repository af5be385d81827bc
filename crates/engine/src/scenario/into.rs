//! The key `into`: what the records of a workload that saves are, and where they go.

use super::written::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The key `into` of a workload: what records are, and where they go. A password is never in it: it comes from a file or
/// from the environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IntoSpec {
    /// Where rows go: `sqlite:FILE`, `postgres://user@host/database`, `clickhouse(s)://user@host/database`, `parquet:DIR` or
    /// `kafka(s)://user@host:port/topic`.
    pub save: Option<String>,
    /// File whose first line is the password of the database.
    pub save_password_file: Option<PathBuf>,
    /// The Avro schema of the records (.avsc); payloads are saved as they come if absent.
    pub schema: Option<PathBuf>,
    /// How records are encoded: `avro`, `json`, or `avro-json`, Avro's own JSON; Avro if absent.
    pub format: Option<String>,
    /// What is around a record in Avro: `schemaless`, `single-object`, `confluent`, `apicurio` or `container`.
    pub avro_encoding: Option<String>,
    /// Where the schemas are that records were written by: the URL of a registry, or a file of JSON with the schema, or its
    /// file, of each id.
    pub schema_registry: Option<String>,
    /// The table; the schema's name if absent.
    pub table: Option<String>,
    /// `day`: a new table of PostgreSQL has a partition for each day of receipt, by UTC.
    pub partition: Option<String>,
    /// Empty the table before each run: what was in it is gone.
    pub empty: bool,
    /// What of a commit is on the disk when it counts: `full`, `normal` (a crash of the machine may take the last commits) or
    /// `off` (it may damage a file of SQLite); `full` if absent.
    pub durability: Option<String>,
    /// Records of a transaction, at most; 1,000 if absent, of Parquet 50,000.
    #[schemars(range(min = 1))]
    pub batch: Option<u32>,
    /// How long the first record of a transaction waits for others; 50 ms if absent, of Parquet 1 s.
    #[schemars(with = "Option<String>")]
    pub linger: Option<Span>,
    /// How long a batch may take in PostgreSQL and ClickHouse before it is cancelled and sent again; 60 s if absent.
    #[schemars(with = "Option<String>")]
    pub statement_timeout: Option<Span>,
    /// How long nothing may come, with messages missing, before they are lost; 1 s if absent, beside a background 5 s.
    #[schemars(with = "Option<String>")]
    pub settle: Option<Span>,
}
