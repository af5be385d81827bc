//! Schemas: what is read gives a canonical form that is read as the same; records of it survive all formats, and are records
//! of another schema where that reads them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_record::{Decoder, Encoder, Format, Framing, Generator, Schema, Spread};

fuzz_target!(|text: &str| {
    let (text, reader) = text.split_once('\0').unwrap_or((text, ""));
    let Ok(schema) = Schema::parse(text) else { return };
    let reader = Schema::parse(reader).unwrap_or_else(|_| schema.clone());
    let canonical = Schema::parse(schema.canonical()).expect("a canonical form");
    assert_eq!(canonical.canonical(), schema.canonical());
    // What would take long to make: lengths that the schema asks for.
    if text.contains("weir.length") || text.contains("size") {
        return;
    }
    let mut generator = Generator::new(&schema, 1).spread(Spread::Extreme);
    // Records in records multiply.
    if generator.record(0).is_err() {
        return;
    }
    let plain = Format::Avro(Framing::Schemaless);
    for format in [plain, Format::Json, Format::AvroJson] {
        let mut encoder = Encoder::new(&schema, format);
        encoder.push(generator.record(0).expect("as before")).expect("of this schema");
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        let mut decoder = Decoder::new(&schema, format);
        let mut encoder = Encoder::new(&schema, plain);
        let [mut expected, mut found] = [Vec::new(), Vec::new()];
        encoder.push(generator.record(0).expect("as before")).expect("of this schema");
        encoder.finish(&mut expected);
        encoder.push(decoder.one(&payload).expect("what was written")).expect("of this schema");
        encoder.finish(&mut found);
        assert_eq!(expected, found);
    }
    let mut encoder = Encoder::new(&schema, plain);
    encoder.push(generator.record(0).expect("as before")).expect("of this schema");
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    if let Ok(record) = Decoder::new(&reader, plain).written_by(&schema).one(&payload) {
        Encoder::new(&reader, plain).push(record).expect("of the reader's schema");
    }
});
