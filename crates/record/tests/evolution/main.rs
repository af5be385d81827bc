//! Records that were written by another schema than they are read by ("Schema Resolution").

mod fastavro;
mod pairs;
mod plain;

use weir_record::{
    Codec, DecodeError, Decoder, Encoder, Format, Framing, Generator, Problem, Record, Schema, Spread,
    WriterId, WriterSchemas,
};

const SCHEMALESS: Format = Format::Avro(Framing::Schemaless);

fn record(fields: &str) -> Schema {
    Schema::parse(&format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#)).unwrap()
}

fn field(kind: &str) -> Schema {
    record(&format!(r#"{{"name": "a", "type": {kind}}}"#))
}

/// What the reader makes of a record of the writer, which is given as JSON.
fn read(writer: &Schema, reader: &Schema, json: &str) -> Result<String, String> {
    let payload = written(writer, json, SCHEMALESS);
    let mut decoder = Decoder::new(reader, SCHEMALESS).written_by(writer);
    decoder.one(&payload).map(|record| format!("{record:?}")).map_err(|error| error.to_string())
}

fn written(writer: &Schema, json: &str, format: Format) -> Vec<u8> {
    let mut decoder = Decoder::new(writer, Format::Json);
    let mut encoder = Encoder::new(writer, format).schema_id(7);
    encoder.push(decoder.one(json.as_bytes()).unwrap()).unwrap();
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    payload
}

fn value(written_as: &str, read_as: &str, json: &str) -> Result<String, String> {
    read(&field(written_as), &field(read_as), &format!(r#"{{"a": {json}}}"#))
}

#[test]
fn numbers_and_texts_are_promoted() {
    for (from, to, value_written, value_read) in [
        ("int", "long", "-5", "-5"),
        ("int", "float", "5", "5.0"),
        ("int", "double", "5", "5.0"),
        ("long", "float", "16777217", "16777216.0"),
        ("long", "double", "9007199254740993", "9007199254740992.0"),
        ("float", "double", "0.1", "0.10000000149011612"),
        ("string", "bytes", r#""é""#, r#""w6k=""#),
        ("bytes", "string", r#""w6k=""#, r#""é""#),
    ] {
        let read = value(&format!("{from:?}"), &format!("{to:?}"), value_written).unwrap();
        assert_eq!(read, format!(r#"{{"a":{value_read}}}"#), "{from} to {to}");
    }
    let bytes = value("\"bytes\"", "\"string\"", "\"/w==\"").unwrap_err();
    assert_eq!(bytes, "a: byte 1: a string is not well-formed UTF-8");
    for (from, to) in [("long", "int"), ("double", "float"), ("double", "long"), ("boolean", "int")] {
        let json = if from == "boolean" { "true" } else { "1" };
        let error = value(&format!("{from:?}"), &format!("{to:?}"), json).unwrap_err();
        assert_eq!(error, format!("a: byte 0: it was written as {from}, which cannot be read as {to}"));
    }
    let array = |items: &str| format!(r#"{{"type": "array", "items": "{items}"}}"#);
    assert_eq!(value(&array("int"), &array("double"), "[1, 2]").unwrap(), r#"{"a":[1.0,2.0]}"#);
}

#[test]
fn fields_are_found_by_name_and_alias_skipped_and_filled() {
    let writer = record(
        r#"{"name": "gone", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
           {"name": "b", "type": "int"}, {"name": "old", "type": "string"}, {"name": "a", "type": "boolean"}"#,
    );
    let reader = record(
        r#"{"name": "a", "type": "boolean"}, {"name": "b", "type": "long"},
           {"name": "new", "type": "string", "aliases": ["older", "old"]},
           {"name": "more", "type": ["null", "bytes"], "default": null},
           {"name": "raw", "type": "bytes", "default": "\u00ff\u0000"},
           {"name": "deep", "default": {"list": [1, 2]}, "type": {"type": "record", "name": "Deep", "fields": [
               {"name": "list", "type": {"type": "array", "items": "double"}},
               {"name": "suit", "type": {"type": "enum", "name": "S", "symbols": ["X", "Y"]}, "default": "Y"}]}}"#,
    );
    let json = r#"{"gone": [{"x": "y"}, {}], "b": 3, "old": "text", "a": true}"#;
    assert_eq!(
        read(&writer, &reader, json).unwrap(),
        r#"{"a":true,"b":3,"new":"text","more":null,"raw":"/wA=","deep":{"list":[1.0,2.0],"suit":"Y"}}"#
    );
    let needy = record(r#"{"name": "c", "type": "int"}"#);
    let error = read(&writer, &needy, json).unwrap_err();
    assert_eq!(error, "byte 0: the writer has no field 'c', and it has no default");
}

#[test]
fn symbols_are_found_by_name_and_unknown_ones_become_the_default() {
    let suit = |symbols: &str, more: &str| {
        format!(r#"{{"type": "enum", "name": "x.Suit", "symbols": [{symbols}]{more}}}"#)
    };
    let writer = suit(r#""A", "B", "C""#, "");
    let reader = suit(r#""C", "A""#, "");
    assert_eq!(value(&writer, &reader, "\"C\"").unwrap(), r#"{"a":"C"}"#);
    assert_eq!(
        value(&writer, &reader, "\"B\"").unwrap_err(),
        "a: byte 0: the enum has no symbol 'B' of the writer's, and no default"
    );
    let reader = suit(r#""C", "A""#, r#", "default": "A""#);
    assert_eq!(value(&writer, &reader, "\"B\"").unwrap(), r#"{"a":"A"}"#);
    let other = writer.replace("x.Suit", "x.Other");
    assert_eq!(
        value(&other, &reader, "\"A\"").unwrap_err(),
        "a: byte 0: it was written as enum x.Other, which cannot be read as enum x.Suit"
    );
    // Names match by their last part, and by aliases.
    assert!(value(&writer.replace("x.Suit", "Suit"), &reader, "\"A\"").is_ok());
    let known = suit(r#""A""#, r#", "aliases": ["Other"]"#);
    assert!(value(&other, &known, "\"A\"").is_ok());
}

#[test]
fn unions_are_resolved_by_the_branch_that_came() {
    assert_eq!(value("\"int\"", r#"["null", "long"]"#, "3").unwrap(), r#"{"a":3}"#);
    assert_eq!(value(r#"["null", "int"]"#, "\"long\"", "3").unwrap(), r#"{"a":3}"#);
    assert_eq!(
        value(r#"["null", "int"]"#, "\"long\"", "null").unwrap_err(),
        "a: byte 1: it was written as null, which cannot be read as long"
    );
    // The same type before one that it could become.
    let kinds = r#"["null", "string", "bytes", "long"]"#;
    let read = value(kinds, &kinds.replace("long", "double"), r#"{"bytes": "/w=="}"#).unwrap();
    assert_eq!(read, r#"{"a":{"bytes":"/w=="}}"#);
    let read = value(r#"["int", "string", "null"]"#, r#"["null", "bytes", "double"]"#, "3").unwrap();
    assert_eq!(read, r#"{"a":{"double":3.0}}"#);
    assert_eq!(
        value(r#"["boolean", "string"]"#, r#"["null", "string"]"#, r#"{"boolean": true}"#).unwrap_err(),
        "a: byte 1: it was written as boolean, which cannot be read as a union of null, string"
    );
}

#[test]
fn what_means_something_else_is_no_match() {
    let time = |unit: &str| format!(r#"{{"type": "long", "logicalType": "timestamp-{unit}"}}"#);
    assert_eq!(
        value(&time("millis"), &time("micros"), "5").unwrap_err(),
        "a: byte 0: it was written as timestamp-millis, which cannot be read as timestamp-micros"
    );
    assert_eq!(value(&time("millis"), "\"long\"", "5").unwrap(), r#"{"a":5}"#);
    assert_eq!(value("\"long\"", &time("micros"), "5").unwrap(), r#"{"a":5}"#);
    let decimal =
        |scale| format!(r#"{{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": {scale}}}"#);
    assert_eq!(
        value(&decimal(2), &decimal(3), "\"AQ==\"").unwrap_err(),
        "a: byte 0: it was written as decimal(9, 2), which cannot be read as decimal(9, 3)"
    );
}

#[test]
fn a_list_of_itself_gets_a_field() {
    let list = |more: &str| {
        record(&format!(r#"{{"name": "next", "type": ["null", "R"]}}, {{"name": "v", "type": "int"}}{more}"#))
    };
    let (writer, reader) = (list(""), list(r#", {"name": "w", "type": "int", "default": 9}"#));
    let json = r#"{"next": {"next": null, "v": 1}, "v": 2}"#;
    assert_eq!(read(&writer, &reader, json).unwrap(), r#"{"next":{"next":null,"v":1,"w":9},"v":2,"w":9}"#);
    assert_eq!(
        read(&reader, &writer, r#"{"next": {"next": null, "v": 1, "w": 3}, "v": 2, "w": 4}"#).unwrap(),
        r#"{"next":{"next":null,"v":1},"v":2}"#
    );
}

/// The schemas of a registry, which counts how often it is asked.
struct Registry(Vec<(u64, Schema)>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl WriterSchemas for Registry {
    fn find(&mut self, writer: WriterId) -> Result<Schema, String> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let found = self.0.iter().find(|(id, schema)| match writer {
            WriterId::Id(wanted) => wanted == *id,
            WriterId::Fingerprint(wanted) => wanted == schema.fingerprint(),
        });
        found.map(|(_, schema)| schema.clone()).ok_or_else(|| "there is none".to_owned())
    }
}

#[test]
fn frames_say_who_wrote_and_each_writer_is_asked_for_once() {
    let writer = record(r#"{"name": "a", "type": "int"}"#);
    let reader = record(r#"{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "x"}"#);
    for framing in [Framing::SingleObject, Framing::Confluent, Framing::Apicurio] {
        let format = Format::Avro(framing);
        let asked = std::sync::Arc::default();
        let registry = Registry(vec![(7, writer.clone())], std::sync::Arc::clone(&asked));
        let mut decoder = Decoder::new(&reader, format).with_writers(Box::new(registry));
        let payload = written(&writer, r#"{"a": 5}"#, format);
        for _ in 0..3 {
            assert_eq!(format!("{:?}", decoder.one(&payload).unwrap()), r#"{"a":5,"b":"x"}"#, "{format}");
        }
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
        // Two records in a message.
        let twice = payload.repeat(2);
        let mut records = decoder.records(&twice);
        assert!(
            records.next().unwrap().is_ok() && records.next().unwrap().is_ok() && records.next().is_none()
        );
    }
    let confluent = Format::Avro(Framing::Confluent);
    assert_eq!(written(&writer, r#"{"a": 5}"#, confluent), [0, 0, 0, 0, 7, 10]);
    assert_eq!(
        written(&writer, r#"{"a": 5}"#, Format::Avro(Framing::Apicurio)),
        [0, 0, 0, 0, 0, 0, 0, 0, 7, 10]
    );
}

#[test]
fn what_no_registry_knows_is_said_in_one_line() {
    let schema = field("\"int\"");
    let format = Format::Avro(Framing::Confluent);
    let error = |decoder: &mut Decoder, payload: &[u8]| decoder.one(payload).unwrap_err().to_string();
    let mut without = Decoder::new(&schema, format);
    assert_eq!(
        error(&mut without, &[0, 0, 0, 1, 0, 2]),
        "byte 1: it was written by the schema with id 256, and no registry of schemas is known"
    );
    let registry = Registry(Vec::new(), std::sync::Arc::default());
    let mut decoder = Decoder::new(&schema, format).with_writers(Box::new(registry));
    assert_eq!(
        error(&mut decoder, &[0, 0, 0, 0, 7, 2]),
        "byte 1: the schema with id 7 that it was written by cannot be had: there is none"
    );
    assert_eq!(
        error(&mut decoder, &[1, 0, 0, 0, 7, 2]),
        "byte 0: this is not a record with the id of a schema in four bytes: it begins with other bytes"
    );
    assert_eq!(error(&mut decoder, &[0, 0, 0]), "byte 1: the record ends within the id of the schema");
}

#[test]
fn a_container_of_another_schema_is_read_by_its_header() {
    let writer = record(r#"{"name": "a", "type": "int"}"#);
    let reader = record(r#"{"name": "a", "type": "double"}"#);
    let container = Format::Avro(Framing::Container);
    let mut encoder = Encoder::new(&writer, container).compressed(Codec::Deflate);
    let mut generator = Generator::new(&writer, 3).spread(Spread::Extreme);
    for number in 0..50 {
        encoder.push(generator.record(number).unwrap()).unwrap();
    }
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    let mut decoder = Decoder::new(&reader, container);
    for _ in 0..2 {
        let mut records = decoder.records(&payload);
        for number in 0..50 {
            let found = format!("{:?}", records.next().unwrap().unwrap());
            let expected = format!("{:?}", generator.record(number).unwrap()).replace('}', ".0}");
            assert_eq!(found, expected);
        }
        assert!(records.next().is_none());
    }
    // And by its own schema behind that.
    let own = written(&reader, r#"{"a": 1.5}"#, container);
    assert_eq!(format!("{:?}", decoder.one(&own).unwrap()), r#"{"a":1.5}"#);
}

#[test]
fn a_writer_cannot_make_a_short_payload_long() {
    // Each record has two of the one before: more than anyone could read, and not a byte of it.
    let mut fields = r#"{"name": "f0", "type": {"type": "record", "name": "R0", "fields": []}}"#.to_owned();
    for number in 1..60 {
        let before = number - 1;
        fields += &format!(
            r#", {{"name": "f{number}", "type": {{"type": "record", "name": "R{number}", "fields": [
                {{"name": "a", "type": "R{before}"}}, {{"name": "b", "type": "R{before}"}}]}}}}"#
        );
    }
    let writer = record(&format!(r#"{fields}, {{"name": "a", "type": "int"}}"#));
    let reader = field("\"int\"");
    let mut decoder = Decoder::new(&reader, SCHEMALESS).written_by(&writer);
    assert_eq!(format!("{:?}", decoder.one(&[6]).unwrap()), r#"{"a":3}"#);
    // Defaults that multiply.
    let text = "x".repeat(100_000);
    let items = |fields: &str| {
        field(&format!(
            r#"{{"type": "array", "items": {{"type": "record", "name": "I", "fields": [{fields}]}}}}"#
        ))
    };
    let reader = items(&format!(r#"{{"name": "t", "type": "string", "default": "{text}"}}"#));
    let mut decoder = Decoder::new(&reader, SCHEMALESS).written_by(&items(""));
    assert!(decoder.one(&[20, 0]).is_ok());
    let error: DecodeError = decoder.one(&[0x80, 0x80, 2, 0]).unwrap_err();
    assert_eq!(error.problem, Problem::TooManyValues);
}

#[test]
fn nesting_ends_where_it_ends_without_another_schema() {
    let list = |more: &str| record(&format!(r#"{{"name": "next", "type": ["null", "R"]}}{more}"#));
    let (writer, reader) = (list(""), list(r#", {"name": "w", "type": "int", "default": 9}"#));
    let ends = |depth| [[2; 100][..depth].as_ref(), &[0]].concat();
    for depth in 60..70 {
        let plain = Decoder::new(&writer, SCHEMALESS).one(&ends(depth)).is_ok();
        let mut decoder = Decoder::new(&reader, SCHEMALESS).written_by(&writer);
        assert_eq!(decoder.one(&ends(depth)).is_ok(), plain, "{depth}");
    }
}

/// A record's bytes without anything around them: they say every bit of it.
fn bits(record: Record<'_>, schema: &Schema) -> Vec<u8> {
    let mut encoder = Encoder::new(schema, SCHEMALESS);
    encoder.push(record).unwrap();
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

#[test]
fn a_record_that_was_resolved_is_a_record_of_the_readers_schema() {
    for seed in 0..300 {
        let (writer, reader) = pairs::pair(seed);
        let [writer, reader] = [writer, reader].map(|json| Schema::parse(&json.to_string()).unwrap());
        let mut generator = Generator::new(&writer, seed).spread(Spread::Extreme);
        let payload = bits(generator.record(0).unwrap(), &writer);
        let mut decoder = Decoder::new(&reader, SCHEMALESS).written_by(&writer);
        let Ok(record) = decoder.one(&payload) else { continue };
        let again = bits(record, &reader);
        let mut plain = Decoder::new(&reader, SCHEMALESS);
        assert_eq!(bits(plain.one(&again).unwrap(), &reader), again, "{seed}");
    }
}
