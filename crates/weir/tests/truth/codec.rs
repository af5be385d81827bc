//! `weir codec`: Avro against JSON.

use crate::support::{KilledOnDrop, Postgresql, says, soon, weir};
use serde_json::Value;
use std::process::Stdio;

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");

#[test]
fn a_comparison_says_what_a_record_takes_in_each() {
    let said = says(["codec", SCHEMA, "--records", "50", "--repetitions", "3", "--json", "-"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&value["record"], &value["repetitions"]), (&"SimpleClass".into(), &3.into()));
    // 803 bytes of doubles, 102 of bytes, 22 of texts, 13 of other fixed sizes; at most 15 of integers.
    let bytes = value["avro"]["record_bytes"].as_f64().unwrap();
    assert!((940.0..=955.0).contains(&bytes), "{bytes}");
    assert!(value["json"]["record_bytes"].as_f64().unwrap() > 2.0 * bytes);
    for side in ["avro", "json"] {
        let [low, mean, high] =
            ["low", "mean", "high"].map(|key| value[side]["decode_seconds"][key].as_f64().unwrap());
        assert!(low <= mean && mean <= high && mean > 0.0, "{side}: {low} {mean} {high}");
    }
}

#[test]
fn an_interrupted_comparison_says_how_far_it_came_and_what_was_measured_by_then() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut command = weir();
    command.args(["codec", SCHEMA, "--records", "10", "--repetitions", "10000"]);
    command
        .stdout(std::fs::File::create(at("out")).unwrap())
        .stderr(std::fs::File::create(at("err")).unwrap());
    let mut codec = KilledOnDrop::start(command.stdin(Stdio::null()));
    let stat = format!("/proc/{}/stat", codec.pid());
    // A turn takes 20 ms of CPU time (proc(5), utime in hundredths): three repetitions of both, and more.
    soon("several repetitions are measured", || {
        let text = std::fs::read_to_string(&stat).unwrap();
        let (_, fields) = text.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(11).unwrap().parse::<u64>().unwrap() >= 150
    });
    codec.interrupt();
    assert_eq!(codec.ended().code(), Some(105));
    let [out, err] = ["out", "err"].map(|name| std::fs::read_to_string(at(name)).unwrap());
    let line = err.trim_end();
    let whole = line
        .strip_prefix("weir: interrupted after ")
        .and_then(|it| it.strip_suffix(" of 10,000 repetitions"));
    let whole: u64 = whole.unwrap_or_else(|| panic!("{err}")).parse().unwrap();
    assert!(whole >= 2 && out.contains("times"), "{err}{out}");
}

#[test]
fn libraries_decode_beside_weir_and_read_the_same_values() {
    let all = "sonic-rs,apache-avro,weir,serde_json,sonic-rs";
    let said =
        says(["codec", SCHEMA, "--records", "50", "--repetitions", "3", "--json", "-", "--decoder", all]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!([&value["avro"]["decoder"], &value["json"]["decoder"]], ["apache-avro", "sonic-rs"]);
    let others: Vec<_> = value["others"].as_array().unwrap().iter().map(|side| &side["decoder"]).collect();
    assert_eq!(others, ["weir", "weir", "serde_json"]);
    // Values of every type, in columns and within them.
    let directory = tempfile::tempdir().unwrap();
    let schema = directory.path().join("all.avsc");
    std::fs::write(&schema, ALL_TYPES).unwrap();
    let schema = schema.to_str().unwrap();
    let said = says(["codec", schema, "--records", "200", "--repetitions", "2", "--decoder", all]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let framed = ["--avro-encoding", "container", "--decoder", "apache-avro"];
    let said = says(["codec", SCHEMA].into_iter().chain(framed));
    assert!(said.code == Some(2) && said.err.contains("leave --avro-encoding out"), "{}", said.err);
}

/// A record with all that is not in `SimpleClass`.
const ALL_TYPES: &str = r#"{"type": "record", "name": "All", "fields": [
    {"name": "maybe", "type": ["null", "long"]}, {"name": "perhaps", "type": ["null", "string"]},
    {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}},
    {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 8}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {"name": "floats", "type": {"type": "array", "items": "float"}},
    {"name": "names", "type": {"type": "array", "items": "string"}},
    {"name": "place", "type": {"type": "record", "name": "Place", "fields": [
        {"name": "x", "type": "int"}, {"name": "name", "type": "string"}]}}]}"#;

#[test]
fn containers_are_compressed_and_records_in_them_are_the_same() {
    let record_bytes = |more: &[&str]| {
        let arguments = ["codec", SCHEMA, "--records", "200", "--per-message", "100", "--repetitions", "2"];
        let said = says(arguments.iter().chain(&["--json", "-"]).chain(more));
        assert_eq!(said.code, Some(0), "{more:?}: {}", said.err);
        let value: Value = serde_json::from_str(&said.out).unwrap();
        (value["avro"]["encoding"].clone(), value["avro"]["record_bytes"].as_f64().unwrap())
    };
    let container = ["--avro-encoding", "container", "--avro-codec"];
    let (_, plain) = record_bytes(&[&container[..], &["null"]].concat());
    for codec in ["deflate", "snappy", "zstandard", "bzip2", "xz"] {
        let (encoding, bytes) = record_bytes(&[&container[..], &[codec]].concat());
        assert_eq!(encoding, format!("avro (container, {codec})"));
        // Its numbers have no order that a general compression would find; its texts and names do.
        assert!(bytes < 1.01 * plain, "{codec}: {bytes} of {plain}");
    }
    let said = says(["codec", SCHEMA, "--avro-codec", "xz"]);
    assert!(said.code == Some(2) && said.err.contains("only a container is compressed"), "{}", said.err);
}

#[test]
fn what_is_saved_is_in_the_tables_and_its_bytes_are_theirs() {
    let server = Postgresql::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let places = [
        format!("sqlite:{}", file.display()),
        server.place(),
        format!("parquet:{}", directory.path().join("files").display()),
    ];
    let password = server.password_file();
    let mut arguments = vec!["codec", SCHEMA, "--records", "250", "--repetitions", "2", "--batch", "100"];
    arguments.extend(["--json", "-", "--save-password-file", password.to_str().unwrap()]);
    arguments.extend(places.iter().flat_map(|place| ["--save", place]));
    let said = says(arguments);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let saving = value["saving"].as_array().unwrap();
    assert_eq!(saving.len(), 3);
    for place in saving {
        for side in ["avro", "json"] {
            let figures = &place[side];
            let number = |value: &Value| value.as_f64().unwrap();
            assert!(
                number(&figures["record_seconds"]["mean"]) >= number(&figures["cpu_seconds"]["mean"]) * 0.5
            );
        }
    }
    let connection = rusqlite::Connection::open(&file).unwrap();
    let mut client = server.client();
    let row_bytes = |place: usize, side: &str| saving[place][side]["row_bytes"].as_f64().unwrap();
    let tables = 250.0 * (row_bytes(0, "avro") + row_bytes(0, "json"));
    let length = std::fs::metadata(&file).unwrap().len() as f64;
    assert!((0.9 * length..=length).contains(&tables), "{tables} of {length}");
    for side in ["avro", "json"] {
        let size = format!("SELECT pg_total_relation_size('weir_codec_{side}')");
        let size = client.query_one(&size, &[]).unwrap().get::<_, i64>(0);
        assert_eq!((row_bytes(1, side) * 250.0).round() as i64, size);
        let files = std::fs::read_dir(directory.path().join(format!("files/weir_codec_{side}"))).unwrap();
        let files = files.map(|entry| entry.unwrap()).filter(|it| it.file_type().unwrap().is_file());
        let length: u64 = files.map(|entry| entry.metadata().unwrap().len()).sum();
        assert_eq!((row_bytes(2, side) * 250.0).round() as u64, length);
        let query = format!("SELECT count(*), min(seq), max(seq) FROM weir_codec_{side}");
        let row = connection.query_row(&query, (), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        });
        assert_eq!(row.unwrap(), (250, 0, 249));
        let row = client.query_one(&query, &[]).unwrap();
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(2)), (250, 249));
    }
}

#[test]
fn a_place_that_cannot_be_had_is_one_clear_line_without_a_password() {
    for (place, code, words) in [
        ("mysql:x", 2, "--save: this is no place to save to"),
        ("sqlite::memory:", 2, "--save: what is in memory is not saved; write sqlite:FILE"),
        ("sqlite:/no/such/directory/x.db", 1, "/no/such/directory/x.db"),
        // A server that does not answer, as any other.
        ("postgres://u:s3cr3t@127.0.0.1:9/d", 97, "postgres://127.0.0.1:9/d"),
    ] {
        let said = says(["codec", SCHEMA, "--save", place]);
        assert_eq!((said.code, said.err.lines().count()), (Some(code), 1), "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
        assert!(!said.err.contains("s3cr3t"));
    }
}

#[test]
fn a_password_that_is_missing_or_wrong_is_a_mistake_that_says_what_gives_it() {
    let server = Postgresql::start();
    let directory = tempfile::tempdir().unwrap();
    let wrong = directory.path().join("password");
    std::fs::write(&wrong, "not this\n").unwrap();
    std::fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let place = server.place();
    let arguments = ["codec", SCHEMA, "--save", &place];
    for more in [&[][..], &["--save-password-file", wrong.to_str().unwrap()]] {
        let said = says(arguments.iter().chain(more));
        assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
        assert!(said.err.contains("PGPASSWORD") && said.err.contains("save_password_file"), "{}", said.err);
    }
}

/// The lines of `--original` by their heads: what was decoded into which place, and [decode, save, total] of each repetition.
fn original(text: &str) -> Vec<(&str, Vec<[f64; 3]>)> {
    let mut found: Vec<(&str, Vec<[f64; 3]>)> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_suffix(": [decode, save, total] in ms") {
            found.push((head, Vec::new()));
        } else if let (Ok(times), Some((_, all))) = (serde_json::from_str(line), found.last_mut()) {
            all.push(times);
        }
    }
    found
}

#[test]
fn the_original_measurement_has_a_line_for_each_repetition() {
    let directory = tempfile::tempdir().unwrap();
    let [file, schema, payload] = ["rows.db", "r.avsc", "r.json"].map(|name| directory.path().join(name));
    std::fs::write(
        &schema,
        r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "double"}]}"#,
    )
    .unwrap();
    std::fs::write(&payload, r#"[{"a": 1.5}, {"a": 2}, {"a": -3}]"#).unwrap();
    let place = format!("sqlite:{}", file.display());
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for (messages, rows) in
        [(["--per-message".to_owned(), "8".to_owned()], 24), (["--payload".to_owned(), path(&payload)], 21)]
    {
        let mut arguments =
            ["codec", &path(&schema), "--save", &place, "--original"].map(str::to_owned).to_vec();
        arguments.extend(["--records", "20", "--repetitions", "3"].map(str::to_owned));
        arguments.extend(messages);
        let said = says(&arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.err);
        let found = original(&said.out);
        let heads: Vec<_> = found.iter().map(|(head, _)| *head).collect();
        assert_eq!(heads, [format!("avro into {place}"), format!("json into {place}")]);
        for (head, times) in found {
            assert_eq!(times.len(), 3, "{head}: {}", said.out);
            for [decode, save, total] in times {
                // Each is rounded to a microsecond. What decoding took alone may be more than all of a repetition in which nothing
                // interrupted it: saving is what is left, and not below 0.
                assert!(decode >= 0.0 && save >= 0.0 && total > 0.0, "{}", said.out);
                assert!((decode + save - total).abs() < 0.002, "{}", said.out);
            }
        }
        let connection = rusqlite::Connection::open(&file).unwrap();
        let count = "SELECT count(*) FROM weir_codec_avro JOIN weir_codec_json USING (seq, record, a)";
        assert_eq!(connection.query_row(count, (), |row| row.get::<_, i64>(0)).unwrap(), rows);
    }
    let said = says(["codec", SCHEMA, "--original", "--records", "20", "--repetitions", "3"]);
    let lines: Vec<_> = said.out.lines().take(8).collect();
    let decoded = |lines: &[&str]| lines.iter().all(|line| serde_json::from_str::<[f64; 1]>(line).is_ok());
    assert_eq!(
        (said.code, lines[0], lines[4]),
        (Some(0), "avro by weir: [decode] in ms", "json by weir: [decode] in ms")
    );
    assert!(decoded(&lines[1..4]) && decoded(&lines[5..8]), "{}", said.out);
}

#[test]
fn what_is_no_schema_is_one_clear_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong.avsc");
    std::fs::write(&file, r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "integer"}]}"#)
        .unwrap();
    for (path, words) in [
        (file.to_str().unwrap(), "schema: a: 'integer' is not a type"),
        ("/no/such/file", "/no/such/file: No such file"),
    ] {
        let said = says(["codec", path]);
        assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
        assert!(said.err.contains(words), "{}", said.err);
    }
}
