//! JSON payloads, weir's and those of Avro's own encoding, by a schema with all types: what is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use weir_record::{Decoder, Encoder, Format, Framing, Schema};

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse(include_str!("../../crates/record/tests/schemas/every.avsc")).expect("a schema")
});

fuzz_target!(|payload: &[u8]| {
    again(Format::Json, payload);
    again(Format::AvroJson, payload);
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
    }
}
