//! Logical types become types of their own in each store.

use crate::PATIENT;
use crate::bench::{clickhouse, durability, postgresql};
use parquet::file::reader::{FileReader, SerializedFileReader};
use weir_ingest::{Decode, Destination, Durability, Loader, StoreError};
use weir_record::{Decoder, Encoder, Format, Framing, Schema};
use weir_testing::{ClickHouseServer, Postgresql};

const SCHEMA: &str = r#"{"type": "record", "name": "Times", "fields": [
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "fine_clock", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "moment", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    {"name": "fine_moment", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "finest_moment", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
    {"name": "wall", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "wide", "type": {"type": "fixed", "name": "Wide", "size": 20, "logicalType": "decimal", "precision": 45}},
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "raw_id", "type": {"type": "fixed", "name": "Raw", "size": 16, "logicalType": "uuid"}}]}"#;

/// A day in 2026, a day before 1970, and a record of zeros.
const RECORDS: [&str; 3] = [
    r#"{"day": 20782, "clock": 65100007, "fine_clock": 65100000007, "moment": 1795629900007, "fine_moment": 1795629900000007,
        "finest_moment": 1795629900000000007, "wall": 1795629900000007, "price": "AeI=",
        "wide": "AAFvV4xOCgYLW+KUezyAAAAAAAA=", "id": "F81D4FAE-7dec-11d0-a765-00a0c91e6bf6", "raw_id": "AAECAwQFBgcICQoLDA0ODw=="}"#,
    r#"{"day": -1, "clock": 0, "fine_clock": 86399999999, "moment": -1, "fine_moment": -1,
        "finest_moment": -1, "wall": -62135596800000000, "price": "//8=",
        "wide": "//////////////////////////8=", "id": "00000000-0000-0000-0000-000000000000",
        "raw_id": "AAAAAAAAAAAAAAAAAAAAAA=="}"#,
    r#"{"day": 0, "clock": 0, "fine_clock": 0, "moment": null, "fine_moment": 0, "finest_moment": 0, "wall": 0, "price": "",
        "wide": "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "id": "f81d4fae7dec11d0a76500a0c91e6bf6",
        "raw_id": "/////////////////////w=="}"#,
];

fn payloads(schema: &Schema) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new(schema, Format::Json);
    let mut encoder = Encoder::new(schema, Format::Avro(Framing::Schemaless));
    let payloads = RECORDS.iter().map(|record| {
        encoder.push(decoder.one(record.as_bytes()).unwrap()).unwrap();
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        payload
    });
    payloads.collect()
}

/// Saves the records into an empty table.
fn save(destination: &Destination) {
    let schema = Schema::parse(SCHEMA).unwrap();
    let mut decode = Decode::records(&schema, Format::Avro(Framing::Schemaless));
    let mut loader = Loader::new(destination, "times", &decode, durability(destination));
    loader.empty(&PATIENT).unwrap();
    assert_eq!(loader.fill(&mut decode, &payloads(&schema), 1, 0).unwrap().rows, 3);
}

const COLUMNS: usize = 11;

/// As PostgreSQL writes them, in UTC.
const EXPECTED: [[&str; COLUMNS]; 3] = [
    [
        "2026-11-25",
        "18:05:00.007",
        "18:05:00.000007",
        "2026-11-25 18:05:00.007",
        "2026-11-25 18:05:00.000007",
        "1795629900000000007",
        "2026-11-25 18:05:00.000007",
        "4.82",
        "32000000000000000000000000000000000000000000",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
    ],
    [
        "1969-12-31",
        "00:00:00",
        "23:59:59.999999",
        "1969-12-31 23:59:59.999",
        "1969-12-31 23:59:59.999999",
        "-1",
        "0001-01-01 00:00:00",
        "-0.01",
        "-1",
        "00000000-0000-0000-0000-000000000000",
        "00000000-0000-0000-0000-000000000000",
    ],
    [
        "1970-01-01",
        "00:00:00",
        "00:00:00",
        "",
        "1970-01-01 00:00:00",
        "0",
        "1970-01-01 00:00:00",
        "0.00",
        "0",
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ],
];

#[test]
fn postgresql_has_types_for_them() {
    let server = Postgresql::start();
    save(&postgresql(&server));
    let mut client = server.client();
    let types = client
        .query(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute \
        WHERE attrelid = 'times'::regclass AND attnum BETWEEN 1 AND 11 ORDER BY attnum",
            &[],
        )
        .unwrap();
    let types: Vec<String> = types.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        types,
        [
            "date",
            "time without time zone",
            "time without time zone",
            "timestamp with time zone",
            "timestamp with time zone",
            "bigint",
            "timestamp without time zone",
            "numeric(9,2)",
            "numeric(45,0)",
            "uuid",
            "uuid"
        ]
    );
    client.batch_execute("SET timezone = 'UTC'; SET datestyle = 'ISO'").unwrap();
    let texts = "SELECT day::text, clock::text, fine_clock::text, coalesce(moment::text, ''), fine_moment::text, \
        finest_moment::text, wall::text, price::text, wide::text, id::text, raw_id::text FROM times ORDER BY seq";
    for (row, expected) in client.query(texts, &[]).unwrap().iter().zip(EXPECTED) {
        let found: [String; COLUMNS] =
            std::array::from_fn(|column| row.get::<_, String>(column).replace("+00", ""));
        assert_eq!(found, expected);
    }
}

#[test]
fn a_table_of_numbers_takes_them_as_numbers() {
    let server = Postgresql::start();
    let mut client = server.client();
    // As weir made it before it knew of dates.
    client
        .batch_execute(
            "CREATE TABLE times (day integer NOT NULL, clock integer NOT NULL, fine_clock bigint NOT NULL, moment bigint, \
             fine_moment bigint NOT NULL, finest_moment bigint NOT NULL, wall bigint NOT NULL, price bytea NOT NULL, \
             wide bytea NOT NULL, id text NOT NULL, raw_id bytea NOT NULL, topic text, publisher bigint, seq bigint, \
             record integer, received timestamptz, payload_hash bytea, conflict boolean)",
        )
        .unwrap();
    let schema = Schema::parse(SCHEMA).unwrap();
    let mut decode = Decode::records(&schema, Format::Avro(Framing::Schemaless));
    let mut loader = Loader::new(&postgresql(&server), "times", &decode, Durability::Full);
    loader.open(&PATIENT).unwrap();
    assert_eq!(loader.fill(&mut decode, &payloads(&schema), 1, 0).unwrap().rows, 3);
    let row = client.query_one("SELECT day, moment, price, id FROM times WHERE seq = 0", &[]).unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1)), (20_782, 1_795_629_900_007));
    assert_eq!((row.get::<_, Vec<u8>>(2), row.get::<_, &str>(3)), (vec![1, 0xE2], EXPECTED[0][9]));
}

/// Where SQLite's differ: `clock`, `moment`, `fine_moment`, `finest_moment`, `wall` with all their digits.
const DIGITS: [[&str; 5]; 3] = [
    [
        "18:05:00.007",
        "2026-11-25 18:05:00.007",
        "2026-11-25 18:05:00.000007",
        "2026-11-25 18:05:00.000000007",
        "2026-11-25 18:05:00.000007",
    ],
    [
        "00:00:00.000",
        "1969-12-31 23:59:59.999",
        "1969-12-31 23:59:59.999999",
        "1969-12-31 23:59:59.999999999",
        "0001-01-01 00:00:00.000000",
    ],
    [
        "00:00:00.000",
        "",
        "1970-01-01 00:00:00.000000",
        "1970-01-01 00:00:00.000000000",
        "1970-01-01 00:00:00.000000",
    ],
];

/// Those of a server without `DateTime64`: numbers for dates and times, and types for the others.
#[test]
fn an_old_clickhouse_has_types_for_decimals_and_uuids_and_numbers_for_times() {
    let server = ClickHouseServer::start();
    save(&clickhouse(&server));
    let types =
        server.ask("SELECT type FROM system.columns WHERE table = 'times' AND database = 'default'").unwrap();
    let types: Vec<_> = types.lines().take(COLUMNS).collect();
    assert_eq!(
        types,
        [
            "Int32",
            "Int32",
            "Int64",
            "Nullable(Int64)",
            "Int64",
            "Int64",
            "Int64",
            "Decimal(9, 2)",
            "String",
            "UUID",
            "UUID"
        ]
    );
    let rows = server.ask("SELECT day, moment, price, wide, id, raw_id FROM times ORDER BY seq").unwrap();
    let rows: Vec<Vec<_>> = rows.lines().map(|row| row.split('\t').collect()).collect();
    for (row, (times, expected)) in
        rows.iter().zip([["20782", "1795629900007"], ["-1", "-1"], ["0", "\\N"]].iter().zip(EXPECTED))
    {
        assert_eq!(row[..2], times[..]);
        assert_eq!(row[2..], expected[7..]);
    }
}

#[test]
fn sqlite_has_texts_that_its_functions_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    save(&Destination::Sqlite(file.clone()));
    let table = rusqlite::Connection::open(&file).unwrap();
    let mut statement = table.prepare("SELECT * FROM times ORDER BY seq").unwrap();
    let mut rows = statement.query(()).unwrap();
    for (expected, [clock, moment, fine_moment, finest_moment, wall]) in EXPECTED.into_iter().zip(DIGITS) {
        let row = rows.next().unwrap().unwrap();
        let found: [String; COLUMNS] =
            std::array::from_fn(|column| row.get::<_, Option<String>>(column).unwrap().unwrap_or_default());
        let mut expected = expected;
        (expected[1], expected[3], expected[4]) = (clock, moment, fine_moment);
        (expected[5], expected[6]) = (finest_moment, wall);
        if expected[2] == "00:00:00" {
            expected[2] = "00:00:00.000000";
        }
        assert_eq!(found, expected);
    }
    let day = "SELECT date(moment) || ' ' || strftime('%H:%M:%f', fine_moment) || ' ' || finest_moment FROM times WHERE seq = 0";
    let day: String = table.query_row(day, (), |row| row.get(0)).unwrap();
    assert_eq!(day, "2026-11-25 18:05:00.000 2026-11-25 18:05:00.000000007");
}

#[test]
fn parquet_has_logical_types_of_the_same_names() {
    let directory = tempfile::tempdir().unwrap();
    save(&Destination::Parquet(directory.path().into()));
    let files = std::fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.path());
    let path = files.into_iter().find(|path| path.extension().is_some_and(|it| it == "parquet")).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut schema = Vec::new();
    parquet::schema::printer::print_schema(&mut schema, reader.metadata().file_metadata().schema());
    let schema = String::from_utf8(schema).unwrap();
    for column in [
        "INT32 day (DATE);",
        "INT32 clock (TIME(MILLIS,true));",
        "INT64 fine_clock (TIME(MICROS,true));",
        "INT64 moment (TIMESTAMP(MILLIS,true));",
        "INT64 fine_moment (TIMESTAMP(MICROS,true));",
        "INT64 finest_moment (TIMESTAMP(NANOS,true));",
        "INT64 wall (TIMESTAMP(MICROS,false));",
        "BYTE_ARRAY price (DECIMAL(9,2));",
        "BYTE_ARRAY wide (DECIMAL(45,0));",
        "FIXED_LEN_BYTE_ARRAY (16) id (UUID);",
    ] {
        assert!(schema.contains(column), "{column}\n{schema}");
    }
    let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
    let texts: Vec<String> = row.get_column_iter().take(8).map(|(_, field)| field.to_string()).collect();
    assert_eq!(texts[0], "2026-11-25");
    assert_eq!(texts[7], "4.82");
}

#[test]
fn what_is_no_date_no_decimal_and_no_uuid_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let schema = Schema::parse(SCHEMA).unwrap();
    let mut decode = Decode::records(&schema, Format::Json);
    let mut loader = Loader::new(
        &Destination::Sqlite(directory.path().join("rows.db")),
        "times",
        &decode,
        Durability::Full,
    );
    loader.open(&PATIENT).unwrap();
    for (right, wrong, words) in [
        ("\"day\": 20782", "\"day\": 2147483647", "day: the number is no date or time"),
        ("\"clock\": 65100007", "\"clock\": 86400000", "clock: the number is no date or time"),
        ("AeI=", "O5rKAA==", "price: the decimal has more than 9 digits"),
        ("F81D", "X81D", "id: the text is no UUID"),
    ] {
        let payload = RECORDS[0].replace(right, wrong).into_bytes();
        match loader.fill(&mut decode, &[payload], 1, 0) {
            Err(StoreError::Refused(line)) => assert!(line.starts_with(words), "{line}"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
}
