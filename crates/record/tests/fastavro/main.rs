//! fastavro and Python's json read what weir writes, and weir what they write, bit for bit.

mod python;

use python::{PYTHON, run};
use std::path::Path;
use std::process::Command;
use weir_record::{Codec, Decoder, Encoder, Format, Framing, Generator, Record, Schema, Spread};

const COUNT: usize = 200;
const SCHEMALESS: Format = Format::Avro(Framing::Schemaless);

fn judge(kind: &str, directory: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fastavro/judge.py");
    run(Command::new(&*PYTHON).args([script, kind]).arg(directory).arg(COUNT.to_string()));
}

/// A payload of all these records.
fn payload(schema: &Schema, format: Format, codec: Codec, spread: Spread) -> Vec<u8> {
    let mut generator = Generator::new(schema, 11).spread(spread);
    let mut encoder = Encoder::new(schema, format).compressed(codec);
    let mut left = COUNT;
    for number in 0.. {
        let record = generator.record(number).unwrap();
        if has_odd_float(record) {
            continue;
        }
        encoder.push(record).unwrap();
        left -= 1;
        if left == 0 {
            break;
        }
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

/// Whether there is a `float` that is a NaN other than the usual one: Python has no floats of 32 bits, and on the way
/// through one of 64 bits a signalling NaN becomes a quiet one.
fn has_odd_float(record: Record<'_>) -> bool {
    let mut text = String::new();
    record.write_json(&mut text);
    text.split("\"NaN:").skip(1).any(|rest| rest.find('"') == Some(8))
}

/// What weir reads, without anything around the records.
fn read(schema: &Schema, format: Format, payload: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(schema, format);
    let mut encoder = Encoder::new(schema, SCHEMALESS);
    let mut records = decoder.records(payload);
    while let Some(record) = records.next() {
        encoder.push(record.unwrap()).unwrap();
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

#[test]
fn fastavro_and_weir_read_each_others_records_of_all_types() {
    // fastavro makes dates of them, and tells float and double apart by no value that Python has.
    let text = include_str!("../schemas/every.avsc")
        .replace(r#", "logicalType": "timestamp-micros""#, "")
        .replace(r#"["float", "double"]"#, r#"["boolean", "double"]"#);
    let schema = Schema::parse(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    let expected = payload(&schema, SCHEMALESS, Codec::Null, Spread::Extreme);
    write("schema.avsc", text.as_bytes());
    write("weir.canonical", schema.canonical().as_bytes());
    write("weir.schemaless", &expected);
    let framed = |framing, codec| payload(&schema, Format::Avro(framing), codec, Spread::Extreme);
    write("weir.single", &framed(Framing::SingleObject, Codec::Null));
    for codec in Codec::ALL {
        write(&format!("weir.{}", codec.name()), &framed(Framing::Container, codec));
    }
    judge("avro", directory.path());
    for codec in Codec::ALL {
        let written = std::fs::read(directory.path().join(format!("peer.{}", codec.name()))).unwrap();
        let found = read(&schema, Format::Avro(Framing::Container), &written);
        assert!(found == expected, "{codec:?}");
    }
}

#[test]
fn fastavro_and_weir_read_each_others_json_encoding() {
    // As above; and fastavro's JSON knows no type that contains itself, which the last field has.
    let text = include_str!("../schemas/every.avsc")
        .replace(r#", "logicalType": "timestamp-micros""#, "")
        .replace(r#"["float", "double"]"#, r#"["boolean", "double"]"#);
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["fields"].as_array_mut().unwrap().pop();
    let text = json.to_string();
    let schema = Schema::parse(&text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    let expected = payload(&schema, SCHEMALESS, Codec::Null, Spread::Usual);
    write("schema.avsc", text.as_bytes());
    write("weir.schemaless", &expected);
    write("weir.avro-json", &payload(&schema, Format::AvroJson, Codec::Null, Spread::Usual));
    judge("avro-json", directory.path());
    let written = std::fs::read(directory.path().join("peer.avro-json")).unwrap();
    assert!(read(&schema, Format::AvroJson, &written) == expected);
}

#[test]
fn python_and_weir_read_each_others_json() {
    let text = include_str!("../../../../scenarios/schemas/SimpleClass.avsc");
    let schema = Schema::parse(text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    let expected = payload(&schema, SCHEMALESS, Codec::Null, Spread::Usual);
    write("schema.avsc", text.as_bytes());
    write("weir.schemaless", &expected);
    write("weir.json", &payload(&schema, Format::Json, Codec::Null, Spread::Usual));
    judge("json", directory.path());
    let written = std::fs::read(directory.path().join("peer.json")).unwrap();
    assert!(read(&schema, Format::Json, &written) == expected);
}
