//! Messages become rows, bit for bit, in each store and from both encodings.

use crate::bench::{Ingester, clickhouse, postgresql, send, settings};
use std::path::PathBuf;
use tempfile::TempDir;
use weir_ingest::{Decode, Destination};
use weir_record::{Decoder, Encoder, Format, Framing, Schema, Value};
use weir_testing::{ClickHouseServer, Mosquitto, Postgresql};

pub(crate) const SCHEMA: &str = r#"{"type": "record", "name": "Sample", "namespace": "weir.test", "fields": [
    {"name": "flag", "type": "boolean"},
    {"name": "small", "type": "int"},
    {"name": "large", "type": "long"},
    {"name": "single", "type": "float"},
    {"name": "precise", "type": "double"},
    {"name": "blob", "type": "bytes"},
    {"name": "text", "type": "string"},
    {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["CLUBS", "HEARTS"]}},
    {"name": "maybe", "type": ["null", "double"]},
    {"name": "series", "type": {"type": "array", "items": "double"}},
    {"name": "topic", "type": {"type": "map", "values": "string"}}]}"#;

/// Values that a careless way would change.
fn documents() -> Vec<String> {
    let doubles = [
        "-0.0",
        "5e-324",
        "1.7976931348623157e308",
        "0.1",
        "\"NaN\"",
        "\"NaN:7ff8000000000001\"",
        "\"Infinity\"",
        "\"-Infinity\"",
        "2.2250738585072014e-308",
        "9007199254740993",
        "1.0",
    ];
    let floats = [
        "-0.0",
        "1e-45",
        "3.4028235e38",
        "0.1",
        "\"NaN\"",
        "16777217",
        "\"Infinity\"",
        "\"-Infinity\"",
        "1.1754944e-38",
        "0.5",
        "1.0",
    ];
    let texts =
        ["", "Kyïv — 京都 🚲", "'; DROP TABLE \\\"Sample\\\"; --", "tab\\tline\\n", "\\\\N", "a,b;c\\r\\n"];
    let series = doubles.join(", ");
    (0..doubles.len())
        .map(|n| {
            let (text, suit) = (texts[n % texts.len()], ["CLUBS", "HEARTS"][n % 2]);
            let bytes = ["", "AA==", "/w==", "AP8AXHgwCg==", "4oKs8J+asg=="][n % 5];
            let maybe = if n % 3 == 0 { "null" } else { doubles[n] };
            let (small, large) = ([i32::MIN, i32::MAX, 0][n % 3], [i64::MIN, i64::MAX, -1][n % 3]);
            format!(
                r#"{{"flag": {}, "small": {small}, "large": {large}, "single": {}, "precise": {}, "blob": "{bytes}",
                    "text": "{text}", "suit": "{suit}", "maybe": {maybe}, "series": [{series}],
                    "topic": {{"{n}": "{text}"}}}}"#,
                n % 2 == 0,
                floats[n],
                doubles[n],
            )
        })
        .collect()
}

/// A value of a row as text that tells all bits apart.
fn told(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Long(value) => value.to_string(),
        Value::Float(value) => format!("{:08x}", value.to_bits()),
        Value::Double(value) => format!("{:016x}", value.to_bits()),
        Value::Bytes(bytes) | Value::Fixed(bytes) => format!("{bytes:?}"),
        Value::String(text) | Value::Enum(text) => text.to_owned(),
        other => {
            let mut text = String::new();
            other.write_json(&mut text);
            text
        }
    }
}

/// What the rows must be.
fn expected(schema: &Schema) -> Vec<Vec<String>> {
    let mut decoder = Decoder::new(schema, Format::Json);
    let rows = documents().into_iter().map(|document| {
        let record = decoder.one(document.as_bytes()).unwrap();
        record.columns().map(told).collect()
    });
    rows.collect()
}

/// Both payloads of all documents, as files.
pub(crate) struct Payloads {
    directory: TempDir,
    pub(crate) schema: Schema,
}

impl Payloads {
    pub(crate) fn make() -> Self {
        let schema = Schema::parse(SCHEMA).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut decoder = Decoder::new(&schema, Format::Json);
        let mut encoder = Encoder::new(&schema, Format::Avro(Framing::Container));
        for document in documents() {
            encoder.push(decoder.one(document.as_bytes()).unwrap()).unwrap();
        }
        let mut avro = Vec::new();
        encoder.finish(&mut avro);
        let made = Self { directory, schema };
        std::fs::write(made.file("avro"), avro).unwrap();
        std::fs::write(made.file("json"), format!("[{}]", documents().join(","))).unwrap();
        made
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Has both payloads saved, into the tables `avro` and `json`.
fn save(payloads: &Payloads, destination: &Destination) {
    let broker = Mosquitto::start();
    for (name, format) in [("avro", Format::Avro(Framing::Container)), ("json", Format::Json)] {
        let mut settings = settings(&broker.address(), &format!("v/{name}/#"), destination.clone(), name);
        settings.count = Some(11);
        let ingester = Ingester::start(settings, Decode::records(&payloads.schema, format));
        // Kept by the broker, so that the order does not matter.
        send(&broker, &["-r", "-t", &format!("v/{name}/x"), "-f", payloads.file(name).to_str().unwrap()]);
        let totals = ingester.ended();
        assert_eq!((totals.saved, totals.messages, totals.unmarked), (11, 1, 11));
    }
}

#[test]
fn values_come_back_from_sqlite_bit_for_bit() {
    let payloads = Payloads::make();
    let file = payloads.file("rows.db");
    save(&payloads, &Destination::Sqlite(file.clone()));
    let table = rusqlite::Connection::open(&file).unwrap();
    for name in ["avro", "json"] {
        let mut statement = table.prepare(&format!("SELECT * FROM {name} ORDER BY mqtt_record")).unwrap();
        let columns: Vec<_> = statement.column_names().map(str::to_owned).collect();
        assert_eq!(
            columns[10..],
            [
                "topic",
                "mqtt_topic",
                "mqtt_publisher",
                "mqtt_seq",
                "mqtt_record",
                "mqtt_received",
                "mqtt_payload_hash",
                "mqtt_conflict"
            ]
        );
        let rows = statement.query_map((), |row| {
            assert_eq!(row.get::<_, String>("mqtt_topic")?, format!("v/{name}/x"));
            (0..11).map(|column| Ok(from_sqlite(row.get_ref(column)?, column))).collect::<Result<Vec<_>, _>>()
        });
        assert_eq!(
            rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap(),
            expected(&payloads.schema),
            "{name}"
        );
    }
}

/// What SQLite has no number for is in a blob.
fn from_sqlite(value: rusqlite::types::ValueRef<'_>, column: usize) -> String {
    use rusqlite::types::ValueRef;
    match (value, column) {
        (ValueRef::Null, _) => "null".to_owned(),
        (ValueRef::Integer(value), 0) => (value != 0).to_string(),
        (ValueRef::Integer(value), _) => value.to_string(),
        (ValueRef::Real(value), 3) => format!("{:08x}", (value as f32).to_bits()),
        (ValueRef::Real(value), _) => format!("{:016x}", value.to_bits()),
        (ValueRef::Blob(bytes), 3) if bytes.len() == 4 => {
            format!("{:08x}", u32::from_be_bytes(bytes.try_into().unwrap()))
        }
        (ValueRef::Blob(bytes), 3) => {
            format!("{:08x}", (f64::from_be_bytes(bytes.try_into().unwrap()) as f32).to_bits())
        }
        (ValueRef::Blob(bytes), 4 | 8) => format!("{:016x}", u64::from_be_bytes(bytes.try_into().unwrap())),
        (ValueRef::Blob(bytes), _) => format!("{bytes:?}"),
        (ValueRef::Text(text), _) => String::from_utf8(text.to_vec()).unwrap(),
    }
}

#[test]
fn values_come_back_from_postgresql_bit_for_bit() {
    let payloads = Payloads::make();
    let server = Postgresql::start();
    save(&payloads, &postgresql(&server));
    let mut client = server.client();
    for name in ["avro", "json"] {
        let query = format!("SELECT *, series::text AS s, topic::text AS t FROM {name} ORDER BY mqtt_record");
        let rows = client.query(&query, &[]).unwrap();
        let rows = rows.iter().map(|row| {
            vec![
                row.get::<_, bool>(0).to_string(),
                row.get::<_, i32>(1).to_string(),
                row.get::<_, i64>(2).to_string(),
                format!("{:08x}", row.get::<_, f32>(3).to_bits()),
                format!("{:016x}", row.get::<_, f64>(4).to_bits()),
                format!("{:?}", row.get::<_, Vec<u8>>(5)),
                row.get(6),
                row.get(7),
                row.get::<_, Option<f64>>(8).map_or("null".to_owned(), |it| format!("{:016x}", it.to_bits())),
                row.get("s"),
                row.get("t"),
            ]
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected(&payloads.schema), "{name}");
    }
}

#[test]
fn values_come_back_from_clickhouse_bit_for_bit() {
    let payloads = Payloads::make();
    let server = ClickHouseServer::start();
    save(&payloads, &clickhouse(&server));
    let bits = |column: &str| format!("hex(reinterpretAsString({column}))");
    for name in ["avro", "json"] {
        let rows = server
            .ask(&format!(
                "SELECT flag, small, large, {}, {}, hex(blob), hex(text), hex(suit), \
                 if(isNull(maybe), 'null', {}), hex(series), hex(topic) FROM {name} ORDER BY mqtt_record",
                bits("single"),
                bits("precise"),
                bits("assumeNotNull(maybe)")
            ))
            .unwrap();
        let rows = rows.lines().map(|row| {
            let told = |(column, value): (usize, &str)| match column {
                0 => (value == "1").to_string(),
                3 => number(value, 4),
                4 => number(value, 8),
                8 if value != "null" => number(value, 8),
                5 => format!("{:?}", bytes(value)),
                6 | 7 | 9 | 10 => String::from_utf8(bytes(value)).unwrap(),
                _ => value.to_owned(),
            };
            row.split('\t').enumerate().map(told).collect::<Vec<_>>()
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected(&payloads.schema), "{name}");
    }
}

/// The bytes of a text in hexadecimal digits.
fn bytes(text: &str) -> Vec<u8> {
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A number of this many bytes, of which ClickHouse writes the least significant first and leaves out zeros at the end.
fn number(text: &str, width: usize) -> String {
    let mut bytes = bytes(text);
    bytes.resize(width, 0);
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn values_come_back_from_parquet_bit_for_bit() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let payloads = Payloads::make();
    let directory = payloads.file("files");
    // Both formats, one behind the other: into the same directory, since their schema is one.
    save(&payloads, &Destination::Parquet(directory.clone()));
    let files = std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "parquet")).collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    for path in files {
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            let told = |field: &Field| match field {
                Field::Null => "null".to_owned(),
                Field::Bool(value) => value.to_string(),
                Field::Int(value) => value.to_string(),
                Field::Long(value) => value.to_string(),
                Field::Float(value) => format!("{:08x}", value.to_bits()),
                Field::Double(value) => format!("{:016x}", value.to_bits()),
                Field::Str(text) => text.clone(),
                Field::Bytes(bytes) => format!("{:?}", bytes.data()),
                other => panic!("{other:?}"),
            };
            row.get_column_iter().take(11).map(|(_, field)| told(field)).collect::<Vec<_>>()
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected(&payloads.schema), "{}", path.display());
    }
}
