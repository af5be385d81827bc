//! `weir codec`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_libraries::Library;

/// `weir codec`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Codec {
    /// The Avro schema of a record (.avsc)
    #[arg(value_name = "SCHEMA", value_hint = ValueHint::FilePath)]
    pub(crate) schema: PathBuf,
    /// Different records to decode, made from the seed
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) records: u32,
    /// Records in a message
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with = "payload")]
    pub(crate) per_message: u32,
    /// Every message is this file, with all records that are in it: JSON if its name ends with .json, else Avro
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) payload: Option<PathBuf>,
    /// Print a line a repetition, as the measurement that weir replaces: [decode, save, total] in ms; without --save the first alone
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) original: bool,
    /// Who decodes: weir, apache-avro, serde_json, sonic-rs; by commas. The first of each encoding are
    /// compared, weir where none is named; the others stand beside them
    #[arg(
        long = "decoder",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "weir",
        hide_possible_values = true,
        conflicts_with = "save"
    )]
    pub(crate) decoders: Vec<Library>,
    /// How often each encoding is measured, alternately
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) repetitions: u32,
    /// What is around a record in Avro: schemaless, single-object, confluent, apicurio or container
    #[arg(long, value_name = "NAME", default_value = "schemaless", value_parser = ["schemaless", "single-object", "confluent", "apicurio", "container"], hide_possible_values = true)]
    pub(crate) avro_encoding: String,
    /// How the blocks of a container are compressed: null, deflate, snappy, zstandard, bzip2 or xz
    #[arg(long, value_name = "NAME", default_value = "null", value_parser = compression(), hide_possible_values = true, conflicts_with = "payload")]
    pub(crate) avro_codec: weir_record::Codec,
    /// Save the records as well: sqlite:FILE, postgres://user@host/database, clickhouse(s)://user@host/database, parquet:DIR or
    /// kafka(s)://user@host:port; may be repeated. The tables weir_codec_avro and weir_codec_json are emptied first
    #[arg(long, value_name = "PLACE")]
    pub(crate) save: Vec<String>,
    /// File whose first line is the password of the database; else PGPASSWORD, CLICKHOUSE_PASSWORD or KAFKA_PASSWORD
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_password_file: Option<PathBuf>,
    /// Records of a transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) batch: u32,
    /// Seed of the records
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where the result goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

fn compression() -> impl TypedValueParser<Value = weir_record::Codec> {
    let all = weir_record::Codec::ALL;
    PossibleValuesParser::new(all.map(weir_record::Codec::name))
        .map(move |name| all.into_iter().find(|codec| codec.name() == name).unwrap_or_default())
}
