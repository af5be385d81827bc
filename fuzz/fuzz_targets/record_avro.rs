//! Avro payloads in all framings, by a schema with all types: what is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use weir_record::{Decoder, Encoder, Format, Framing, Schema};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse(include_str!("../../crates/record/tests/schemas/every.avsc")).expect("a schema")
});

fuzz_target!(|input: &[u8]| {
    let Some((first, payload)) = input.split_first() else { return };
    let framing = Framing::ALL[usize::from(*first) % 3];
    again(Format::Avro(framing), payload);
});

fn again(format: Format, payload: &[u8]) {
    let schema = &*SCHEMA;
    let mut decoder = Decoder::new(schema, format);
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
