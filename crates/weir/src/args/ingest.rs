//! `weir ingest`.

use super::Tls;
use super::values::size;
use crate::outlets::LiveOptions;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::scenario::Span;
use weir_protocols::mqtt::{ConnectOptions, Delivery, SocketPath, Users};

/// `weir ingest`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Ingest {
    /// What to subscribe to: mqtt://host/topic/#, mqtts://user@host/$share/NAME/topic/#, mqtt+ws(s)://host/topic/# in a WebSocket
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Where rows go: sqlite:FILE, postgres://user@host:port/database, clickhouse(s)://user@host:port/database (by HTTP),
    /// kafka(s)://user@host:port/topic, or parquet:DIR, to which each batch adds a file: give it large ones
    #[arg(long, value_name = "WHERE", help_heading = "The table")]
    pub(crate) save: String,
    /// File whose first line is the password of the database [environment: the password itself in PGPASSWORD,
    /// CLICKHOUSE_PASSWORD or KAFKA_PASSWORD]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "The table")]
    pub(crate) save_password_file: Option<PathBuf>,
    /// The Avro schema of the records (.avsc) [default: none; payloads are saved as they come]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "The messages")]
    pub(crate) schema: Option<PathBuf>,
    /// How records are encoded: avro, json, or avro-json, Avro's own JSON
    #[arg(long, value_name = "FORMAT", default_value = "avro", value_parser = ["avro", "json", "avro-json"], help_heading = "The messages")]
    pub(crate) format: String,
    /// What is around records in Avro: schemaless, single-object, confluent or apicurio (the id of the schema in four or eight
    /// bytes), or container
    #[arg(long, value_name = "NAME", default_value = "schemaless", value_parser = ["schemaless", "single-object", "confluent", "apicurio", "container"], help_heading = "The messages")]
    pub(crate) avro_encoding: String,
    /// Where the schemas are that records were written by: http(s)://registry[/apis/ccompat/v7], or a file of JSON such as
    /// {"7": "old.avsc"} [environment: WEIR_REGISTRY_USER and WEIR_REGISTRY_PASSWORD]
    #[arg(long, value_name = "WHERE", requires = "schema", help_heading = "The messages")]
    pub(crate) schema_registry: Option<String>,
    /// The table; made from the schema, or found to fit it [default: the schema's name]
    #[arg(long, value_name = "NAME", help_heading = "The table")]
    pub(crate) table: Option<String>,
    /// `day`: a new table of PostgreSQL has a partition for each day of receipt, by UTC [default: none]
    #[arg(long, value_name = "BY", value_parser = ["day"], help_heading = "The table")]
    pub(crate) partition: Option<String>,
    /// What of a commit is on the disk when its messages are acknowledged: full; normal, so that a crash of the machine may
    /// take the last commits; or off, so that it may damage a file of SQLite
    #[arg(long, value_name = "NAME", default_value = "full", value_parser = ["full", "normal", "off"], help_heading = "The table")]
    pub(crate) durability: String,
    /// Records that are committed together, at most; 1 for one insert a record [default: 1000; of Parquet 50000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "The table")]
    pub(crate) batch: Option<u32>,
    /// How long the first record of a batch waits for others, at most [default: 50ms; of Parquet 1s]
    #[arg(long, value_name = "TIME", help_heading = "The table")]
    pub(crate) linger: Option<Span>,
    /// How long a batch may take in PostgreSQL and ClickHouse before it is cancelled and sent again [default: 60s]
    #[arg(long, value_name = "TIME", help_heading = "The table")]
    pub(crate) statement_timeout: Option<Span>,
    /// Stop after N records, dead letters included [default: go on until SIGTERM or Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Stop after TIME
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// How long the last commit may take once it is time to stop; what is not committed by then stays with the broker
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) drain: Span,
    /// The largest message that is taken; what is larger goes to the dead letters
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = size, help_heading = "The messages")]
    pub(crate) max_message: usize,
    #[command(flatten)]
    pub(crate) live: LiveOptions,
    #[command(flatten)]
    pub(crate) delivery: Delivery,
    #[command(flatten)]
    pub(crate) connect: ConnectOptions,
    #[command(flatten)]
    pub(crate) path: SocketPath,
    #[command(flatten)]
    pub(crate) users: Users,
    #[command(flatten)]
    pub(crate) tls: Tls,
    /// Where the summary goes as JSON; - for stdout, instead of the lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) json: Option<PathBuf>,
    /// Print errors only
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,
}
