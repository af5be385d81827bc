//! Avro payloads in all framings, by a schema with all types: what is read is written and read again as the same. The same
//! payloads read by another schema than they were written by: what that gives is a record of the other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use weir_record::{Codec, Decoder, Encoder, Format, Framing, Schema};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse(include_str!("../../crates/record/tests/schemas/every.avsc")).expect("a schema")
});

/// What a reader may want of such a record who knows other names, wider numbers and more fields.
static READER: LazyLock<Schema> = LazyLock::new(|| {
    let text = r#"{"type": "record", "name": "Every", "fields": [
        {"name": "more", "type": "string", "default": "x"},
        {"name": "small", "type": "double"}, {"name": "words", "aliases": ["text"], "type": "bytes"},
        {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["SPADES", "OTHER"], "default": "OTHER"}},
        {"name": "either", "type": ["string", "null", {"type": "map", "values": "boolean"}, "double"]},
        {"name": "grid", "type": {"type": "array", "items": {"type": "array", "items": "double"}}},
        {"name": "pairs", "type": {"type": "map", "values": {"type": "array", "items":
            {"type": "record", "name": "Pair", "fields": [
                {"name": "new", "type": "int", "default": 1}, {"name": "right", "type": ["double", "null"]}]}}}},
        {"name": "tree", "type": ["null", {"type": "record", "name": "Tree", "fields": [
            {"name": "children", "type": {"type": "array", "items": "Tree"}}]}]}]}"#;
    Schema::parse(text).expect("a schema")
});

fuzz_target!(|input: &[u8]| {
    let Some((first, payload)) = input.split_first() else { return };
    let framing = Framing::ALL[usize::from(*first) % Framing::ALL.len()];
    again(Format::Avro(framing), payload);
    resolved(Format::Avro(framing), payload);
    if framing == Framing::Container {
        let codec = Codec::ALL[usize::from(*first) / Framing::ALL.len() % Codec::ALL.len()];
        again(Format::Avro(framing), &container(codec, payload));
    }
});

/// A file with one block that these bytes are, so that its decompression is reached without guessing header and marker.
fn container(codec: Codec, block: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    Encoder::new(&SCHEMA, Format::Avro(Framing::Container)).compressed(codec).finish(&mut file);
    let marker = file[file.len() - 16..].to_vec();
    // One record, and the length of the block in four bytes.
    let length = block.len() << 1;
    file.push(2);
    file.extend([0, 7, 14].map(|bits| (length >> bits) as u8 | 0x80));
    file.push((length >> 21) as u8 & 0x7F);
    file.extend_from_slice(block);
    file.extend_from_slice(&marker);
    file
}

fn resolved(format: Format, payload: &[u8]) {
    // A container says itself who wrote it.
    let plain = Format::Avro(Framing::Schemaless);
    let mut decoder =
        Decoder::new(&READER, format).with_writers(Box::new(SCHEMA.clone())).written_by(&SCHEMA);
    let mut records = decoder.records(payload);
    while let Some(Ok(record)) = records.next() {
        let mut encoder = Encoder::new(&READER, plain);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        encoder.push(record).expect("of this schema");
        encoder.finish(&mut first);
        let mut decoder = Decoder::new(&READER, plain);
        encoder.push(decoder.one(&first).expect("what was written")).expect("of this schema");
        encoder.finish(&mut second);
        assert_eq!(first, second);
    }
}

fn again(format: Format, payload: &[u8]) {
    let schema = &*SCHEMA;
    let mut decoder = Decoder::new(schema, format).with_writers(Box::new(schema.clone()));
    let mut records = decoder.records(payload);
    let plain = Format::Avro(Framing::Schemaless);
    while let Some(Ok(record)) = records.next() {
        let mut encoder = Encoder::new(schema, plain);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        encoder.push(record).expect("of this schema");
        encoder.finish(&mut first);
        let mut decoder = Decoder::new(schema, plain);
        encoder.push(decoder.one(&first).expect("what was written")).expect("of this schema");
        encoder.finish(&mut second);
        assert_eq!(first, second);
        // And by way of JSON.
        let mut encoder = Encoder::new(schema, Format::Json);
        encoder.push(record).expect("of this schema");
        let mut text = Vec::new();
        encoder.finish(&mut text);
        let mut decoder = Decoder::new(schema, Format::Json);
        let mut encoder = Encoder::new(schema, plain);
        // A map may have had a key twice in Avro, and in JSON as well: both are kept.
        encoder.push(decoder.one(&text).expect("what was written")).expect("of this schema");
        second.clear();
        encoder.finish(&mut second);
        assert_eq!(first, second);
    }
}
