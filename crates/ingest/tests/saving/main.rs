//! From a real mosquitto into SQLite, PostgreSQL, Parquet and Kafka; each store's own reader judges.

mod bench;
mod dead_letters;
mod foreign_store;
mod frames;
mod kafka;
mod kafka_access;
mod kafka_compressed;
mod logical;
mod misfits;
mod values;

use weir_ingest::Waiting;

/// Tables are waited for until they are there.
const PATIENT: Waiting<'_> = Waiting { is_over: &|| false, say: &|_| {} };
