//! Messages become rows, bit for bit; what is none becomes a dead letter; and each is accounted for.

use crate::support::{Ingester, Mosquitto, Postgresql, free_port, program, says, shared, soon};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use weir_record::{Decoder, Encoder, Format, Framing, Schema, Value};

const SCHEMA: &str = r#"{"type": "record", "name": "Sample", "namespace": "weir.test", "fields": [
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

/// Both payloads of all documents, and files with schema and payloads.
struct Payloads {
    directory: TempDir,
    schema: Schema,
}

impl Payloads {
    fn make() -> Self {
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
        std::fs::write(made.file("schema"), SCHEMA).unwrap();
        made
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }
}

/// Sends a message with mosquitto's own client.
fn send(broker: &Mosquitto, arguments: &[&str]) {
    let address = broker.address();
    let mut command = program("mosquitto_pub", "mosquitto-clients");
    command
        .args(["-h", "127.0.0.1", "-q", "1", "-p", address.split(':').next_back().unwrap()])
        .args(arguments);
    assert!(command.status().unwrap().success(), "{arguments:?}");
}

/// Has both payloads saved to a place, into the tables `avro` and `json`.
fn save(payloads: &Payloads, place: &[&str]) {
    let broker = Mosquitto::start();
    for name in ["avro", "json"] {
        let (url, schema) = (broker.url(&format!("v/{name}/#")), payloads.path("schema"));
        let arguments = [
            "--schema",
            &schema,
            "--format",
            name,
            "--avro-encoding",
            "container",
            "--table",
            name,
            "--count",
            "11",
        ];
        let ingester = Ingester::start([&[&*url][..], &arguments, place].concat());
        // Kept by the broker, so that the order does not matter.
        send(&broker, &["-r", "-t", &format!("v/{name}/x"), "-f", &payloads.path(name)]);
        let settled = ingester.settled();
        assert_eq!(
            (settled.code, settled.total("saved"), settled.total("messages")),
            (Some(0), 11, 1),
            "{}",
            settled.err
        );
        assert_eq!(settled.total("unmarked"), 11);
    }
}

#[test]
fn values_come_back_from_sqlite_bit_for_bit() {
    let _machine = shared();
    let payloads = Payloads::make();
    let file = payloads.file("rows.db");
    save(&payloads, &["--save", &format!("sqlite:{}", file.display())]);
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
    let _machine = shared();
    let payloads = Payloads::make();
    let server = Postgresql::start();
    let (place, password) = (server.place(), server.password_file());
    save(&payloads, &["--save", &place, "--save-password-file", password.to_str().unwrap()]);
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
fn values_come_back_from_parquet_bit_for_bit() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let _machine = shared();
    let payloads = Payloads::make();
    let directory = payloads.file("files");
    // Both formats, one behind the other: into the same directory, since their schema is one.
    save(&payloads, &["--save", &format!("parquet:{}", directory.display())]);
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

fn rows(file: &Path, query: &str) -> u64 {
    let Ok(table) = rusqlite::Connection::open(file) else { return 0 };
    table.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap_or(0) as u64
}

#[test]
fn what_is_no_record_is_a_dead_letter_and_stops_nothing() {
    let _machine = shared();
    let payloads = Payloads::make();
    let broker = Mosquitto::start();
    let file = payloads.file("rows.db");
    let avro = std::fs::read(payloads.file("avro")).unwrap();
    for (name, bytes) in [
        ("truncated", &avro[..avro.len() - 20]),
        ("garbage", &b"\xff\xfe no container at all"[..]),
        ("empty", &b""[..]),
        ("whole", &avro[..]),
    ] {
        std::fs::write(payloads.file(name), bytes).unwrap();
    }
    let other = SCHEMA.replace("Sample", "Another").replace("\"small\"", "\"tiny\"");
    let other = Schema::parse(&other).unwrap();
    let mut encoder = Encoder::new(&other, Format::Avro(Framing::Container));
    encoder.push(weir_record::Generator::new(&other, 1).record(0)).unwrap();
    let mut bytes = Vec::new();
    encoder.finish(&mut bytes);
    std::fs::write(payloads.file("other"), bytes).unwrap();

    let (url, place) = (broker.url("x/+"), format!("sqlite:{}", file.display()));
    let schema = payloads.path("schema");
    let ingester = Ingester::start([
        &*url,
        "--save",
        &place,
        "--schema",
        &schema,
        "--avro-encoding",
        "container",
        "-q",
        "2",
    ]);
    soon("it is subscribed", || {
        rows(&file, "SELECT count(*) FROM sqlite_master WHERE name = 'Sample_dead'") == 1
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    for name in ["truncated", "garbage", "other", "empty", "whole"] {
        send(&broker, &["-q", "2", "-t", &format!("x/{name}"), "-f", &payloads.path(name)]);
    }
    soon("all are settled", || rows(&file, "SELECT count(*) FROM Sample") == 11);
    let settled = ingester.stop();
    assert_eq!(
        (settled.total("saved"), settled.total("dead_lettered"), settled.total("acknowledged")),
        (11, 4, 5)
    );
    assert_eq!((settled.code, settled.total("received")), (Some(0), 15));
    let table = rusqlite::Connection::open(&file).unwrap();
    for (name, words) in
        [("truncated", "byte"), ("garbage", "container"), ("other", "another schema"), ("empty", "container")]
    {
        let query = "SELECT reason, payload FROM Sample_dead WHERE mqtt_topic = ?";
        let (reason, payload): (String, Vec<u8>) =
            table.query_row(query, [format!("x/{name}")], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert!(reason.contains(words) && !reason.contains('\n'), "{name}: {reason}");
        assert_eq!(payload, std::fs::read(payloads.file(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_row_that_postgresql_refuses_is_a_dead_letter_and_the_others_go_in() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let server = Postgresql::start();
    let directory = tempfile::tempdir().unwrap();
    let (schema, payload) = (directory.path().join("s.avsc"), directory.path().join("p.json"));
    let text = r#"{"type": "record", "name": "T", "fields": [{"name": "a", "type": "string"}]}"#;
    std::fs::write(&schema, text).unwrap();
    // U+0000 is text to Avro and to JSON, and none to PostgreSQL.
    std::fs::write(&payload, r#"[{"a": "one"}, {"a": "t\u0000wo"}, {"a": "three"}, {"a": "four"}]"#).unwrap();
    let (url, place, password) = (broker.url("n/#"), server.place(), server.password_file());
    let ingester = Ingester::start([
        &*url,
        "--save",
        &place,
        "--save-password-file",
        password.to_str().unwrap(),
        "--schema",
        schema.to_str().unwrap(),
        "--format",
        "json",
        "--count",
        "4",
    ]);
    send(&broker, &["-r", "-t", "n/1", "-f", payload.to_str().unwrap()]);
    let settled = ingester.settled();
    assert_eq!((settled.total("saved"), settled.total("dead_lettered")), (3, 1), "{}", settled.err);
    let mut client = server.client();
    let row = client.query_one("SELECT record, reason, payload FROM \"T_dead\"", &[]).unwrap();
    assert_eq!(row.get::<_, i32>(0), 1);
    assert!(row.get::<_, String>(1).contains("0x00"), "{}", row.get::<_, String>(1));
    assert_eq!(row.get::<_, Vec<u8>>(2), std::fs::read(&payload).unwrap());
}

#[test]
fn prometheus_is_told_what_is_counted_and_a_stop_is_a_clean_one() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let port = free_port();
    let (url, place, metrics) = (broker.url("p/#"), format!("sqlite:{}", file.display()), format!(":{port}"));
    // Nothing but the end of the process can bring the last ones in.
    let ingester = Ingester::start([
        &*url,
        "--save",
        &place,
        "--metrics",
        &metrics,
        "--linger",
        "600s",
        "--mqtt-version",
        "3.1.1",
    ]);
    let ask = || Ingester::page(port);
    let has = |line: &str| ask().is_some_and(|page| page.lines().any(|it| it == line));
    soon("it is subscribed", || has("weir_ingest_subscribed 1"));
    for n in 0..3 {
        send(&broker, &["-t", "p/1", "-m", &format!("message {n}")]);
    }
    soon("they came", || has("weir_ingest_messages_total 3"));
    assert!(has("weir_ingest_records_saved_total 0") && has("weir_ingest_messages_unsettled 3"));
    assert!(ask().unwrap().starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved"), settled.total("acknowledged")), (Some(0), 3, 3));
    assert_eq!((settled.total("left"), rows(&file, "SELECT count(*) FROM messages")), (0, 3));
    assert_eq!(settled.summary["classic"].as_array().unwrap()[1], 3);
}

#[test]
fn a_table_that_does_not_fit_is_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let (file, schema) = (directory.path().join("rows.db"), directory.path().join("s.avsc"));
    let text = r#"{"type": "record", "name": "T", "fields": [{"name": "a", "type": "string"}]}"#;
    std::fs::write(&schema, text).unwrap();
    let table = rusqlite::Connection::open(&file).unwrap();
    table.execute_batch("CREATE TABLE T (b TEXT); CREATE TABLE U (a TEXT, must TEXT NOT NULL, topic, publisher, seq, record, received, payload_hash, conflict)").unwrap();
    let place = format!("sqlite:{}", file.display());
    let schema = schema.to_str().unwrap();
    for (arguments, words) in [
        (&["--save", &place, "--schema", schema][..], "table T has no column a; add it (ALTER TABLE"),
        (&["--save", &place, "--schema", schema, "--table", "U"], "column must that is NOT NULL"),
    ] {
        let said = says([&["ingest", "mqtt://127.0.0.1:9/a"][..], arguments].concat());
        assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
    for (arguments, code, words) in [
        // What is away is waited for, until the time is over; then it is a server that did not answer.
        (&["--save", &place, "-d", "300ms"][..], 97, "mqtt://127.0.0.1:9/a: Connection refused"),
        (&["--save", "postgres://u:s3cr3t@127.0.0.1:9/d", "-d", "300ms"], 97, "postgres://127.0.0.1:9/d: "),
        (&["--save", "sqlite:/no/such/directory/rows.db"], 1, "cannot be opened; name a file"),
        (&["--save", "postgres:u:s3cr3t@"], 2, "--save: this is no place to save to"),
        (&["--save", "mysql://u:s3cr3t@h/d"], 2, "sqlite:FILE, postgres://"),
        (&["--save", &place, "--schema", "/no/such"], 2, "/no/such"),
        (&["--save", &place, "--format", "xml"], 2, "xml"),
        (&["--save", &place, "--max-message", "1TB"], 2, "'1TB' is no size"),
    ] {
        let said = says([&["ingest", "mqtt://127.0.0.1:9/a"][..], arguments].concat());
        assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words) && !said.err.contains("s3cr3t"), "{arguments:?}: {}", said.err);
    }
}
