//! What holds for any schema and any record.

mod schemas;

use proptest::prelude::*;
use schemas::{any_schema, every_type};
use weir_record::{Codec, Decoder, Encoder, Format, Framing, Generator, Record, Schema, Spread};

const FORMATS: [Format; 7] = [
    Format::Avro(Framing::Schemaless),
    Format::Avro(Framing::SingleObject),
    Format::Avro(Framing::Confluent),
    Format::Avro(Framing::Apicurio),
    Format::Avro(Framing::Container),
    Format::Json,
    Format::AvroJson,
];

/// A decoder of what an encoder of the same schema writes.
fn decoder(schema: &Schema, format: Format) -> Decoder {
    Decoder::new(schema, format).with_writers(Box::new(schema.clone()))
}

/// A record's bytes without anything around them: they say every bit of it.
fn bits(record: Record<'_>, schema: &Schema) -> Vec<u8> {
    let mut encoder = Encoder::new(schema, Format::Avro(Framing::Schemaless));
    encoder.push(record).unwrap();
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

fn payload(
    schema: &Schema,
    format: Format,
    codec: Codec,
    seed: u64,
    records: u64,
) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut generator = Generator::new(schema, seed).spread(Spread::Extreme);
    let mut encoder = Encoder::new(schema, format).compressed(codec);
    let mut expected = Vec::new();
    for number in 0..records {
        let record = generator.record(number).unwrap();
        expected.push(bits(record, schema));
        encoder.push(record).unwrap();
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    (out, expected)
}

fn any_codec() -> impl Strategy<Value = Codec> {
    prop::sample::select(Codec::ALL.to_vec())
}

fn read(schema: &Schema, format: Format, payload: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut decoder = decoder(schema, format);
    let mut records = decoder.records(payload);
    let mut found = Vec::new();
    while let Some(record) = records.next() {
        found.push(bits(record.map_err(|error| error.to_string())?, schema));
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn what_is_written_is_read_bit_for_bit(schema in any_schema(), seed: u64, records in 1_u64..4, codec in any_codec()) {
        let schema = Schema::parse(&schema).unwrap();
        for format in FORMATS {
            let (payload, expected) = payload(&schema, format, codec, seed, records);
            // Records without any byte cannot be counted.
            if payload.is_empty() && records > 1 {
                continue;
            }
            prop_assert_eq!(read(&schema, format, &payload).unwrap(), expected, "{}", format);
        }
    }

    #[test]
    fn a_payload_that_was_cut_or_lengthened_is_an_error(seed: u64, cut: prop::sample::Index) {
        let schema = Schema::parse(every_type()).unwrap();
        for format in FORMATS {
            let (mut payload, _) = payload(&schema, format, Codec::Null, seed, 1);
            let mut decoder = decoder(&schema, format);
            prop_assert!(decoder.one(&payload).is_ok());
            prop_assert!(decoder.one(&payload[..cut.index(payload.len())]).is_err(), "{} cut", format);
            payload.push(b'x');
            prop_assert!(decoder.one(&payload).is_err(), "{} lengthened", format);
        }
    }

    #[test]
    fn damaged_payloads_are_read_or_refused(
        seed: u64, codec in any_codec(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let schema = Schema::parse(every_type()).unwrap();
        for format in FORMATS {
            let (mut payload, _) = payload(&schema, format, codec, seed, 2);
            for (place, byte) in &places {
                let place = place.index(payload.len());
                payload[place] = *byte;
            }
            let _ = read(&schema, format, &payload);
        }
    }

    #[test]
    fn a_decoder_forgets_the_record_before(seed: u64, codec in any_codec()) {
        let schema = Schema::parse(every_type()).unwrap();
        for format in FORMATS {
            let mut decoder = decoder(&schema, format);
            for number in 0..4 {
                let (payload, expected) = payload(&schema, format, codec, seed ^ number, 1);
                let _ = decoder.one(&payload[..payload.len() / 2]);
                prop_assert_eq!(&bits(decoder.one(&payload).unwrap(), &schema), &expected[0]);
            }
        }
    }
}

#[test]
fn numbers_at_the_edge_survive_both_formats() {
    let schema = r#"{"type": "record", "name": "N", "fields": [
        {"name": "d", "type": "double"}, {"name": "f", "type": "float"}, {"name": "l", "type": "long"}]}"#;
    let schema = Schema::parse(schema).unwrap();
    let doubles = [
        0.0,
        -0.0,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        -f64::from_bits(0x000F_FFFF_FFFF_FFFF),
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7FF0_0000_0000_0001),
        f64::from_bits(0xFFFF_FFFF_FFFF_FFFF),
        0.1,
        9_007_199_254_740_993.0,
    ];
    for double in doubles {
        for float in [double as f32, f32::from_bits(1), f32::from_bits(0x7F80_0001), f32::MAX, 0.1] {
            for long in [i64::MIN, -1, 0, i64::MAX, 9_007_199_254_740_993] {
                let mut bytes = Vec::new();
                bytes.extend_from_slice(&double.to_le_bytes());
                bytes.extend_from_slice(&float.to_le_bytes());
                let mut rest = (long << 1) as u64 ^ (long >> 63) as u64;
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
                let mut avro = Decoder::new(&schema, Format::Avro(Framing::Schemaless));
                let mut encoder = Encoder::new(&schema, Format::Json);
                encoder.push(avro.one(&bytes).unwrap()).unwrap();
                let mut json = Vec::new();
                encoder.finish(&mut json);
                let mut decoder = Decoder::new(&schema, Format::Json);
                let record = decoder.one(&json).unwrap();
                assert_eq!(bits(record, &schema), bytes, "{}", String::from_utf8_lossy(&json));
            }
        }
    }
}
