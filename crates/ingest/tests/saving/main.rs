//! From a real mosquitto into SQLite, PostgreSQL and Parquet; each store's own reader judges.

mod bench;
mod dead_letters;
mod frames;
mod logical;
mod misfits;
mod values;
