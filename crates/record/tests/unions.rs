//! Unions of texts and bytes, which look alike in JSON and in Avro's binary encoding.

use weir_record::{Codec, Decoder, Encoder, Format, Framing, Schema, Value};

const FORMATS: [Format; 4] =
    [Format::Avro(Framing::Schemaless), Format::Avro(Framing::Container), Format::Json, Format::AvroJson];

fn schema(branches: &str) -> Schema {
    let text = r#"{"type": "record", "name": "Mixed", "fields": [{"name": "value", "type": BRANCHES},
        {"name": "list", "type": {"type": "array", "items": BRANCHES}}]}"#;
    Schema::parse(&text.replace("BRANCHES", branches)).unwrap()
}

/// What a value is, with its branch.
fn shown(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => format!("text {text}"),
        Value::Bytes(bytes) => format!("bytes {bytes:?}"),
        Value::Fixed(bytes) => format!("fixed {bytes:?}"),
        Value::Array(array) => array.items().map(shown).collect::<Vec<_>>().join(", "),
        other => panic!("{other:?}"),
    }
}

fn read(decoder: &mut Decoder, payload: &[u8]) -> Vec<String> {
    let mut records = decoder.records(payload);
    let mut read = Vec::new();
    while let Some(record) = records.next() {
        read.extend(record.unwrap().columns().map(shown));
    }
    read
}

#[test]
fn a_value_of_a_union_keeps_its_branch_in_every_format() {
    for branches in [r#"["string", "bytes"]"#, r#"["bytes", "string"]"#, r#"["null", "bytes", "string"]"#] {
        let schema = schema(branches);
        // The bytes of the text, and a text that looks like base64.
        let named = r#"{"value": {"string": "aGk="}, "list": [{"bytes": "aGk="}, {"string": "hi"}, {"bytes": ""}, {"string": ""}]}"#;
        let expected = ["text aGk=", "bytes [104, 105], text hi, bytes [], text "];
        let mut from_json = Decoder::new(&schema, Format::Json);
        assert_eq!(read(&mut from_json, named.as_bytes()), expected, "{branches}");
        for format in FORMATS {
            let mut encoder = Encoder::new(&schema, format);
            encoder.push(from_json.one(named.as_bytes()).unwrap()).unwrap();
            let mut payload = Vec::new();
            encoder.finish(&mut payload);
            assert_eq!(read(&mut Decoder::new(&schema, format), &payload), expected, "{branches} {format}");
        }
    }
}

#[test]
fn a_plain_text_in_json_is_a_text_whether_or_not_it_could_be_base64() {
    for branches in [r#"["string", "bytes"]"#, r#"["bytes", "string"]"#, r#"["null", "bytes", "string"]"#] {
        let mut decoder = Decoder::new(&schema(branches), Format::Json);
        let found = read(&mut decoder, br#"{"value": "abcd", "list": ["aGk=", "hi!", ""]}"#);
        assert_eq!(found, ["text abcd", "text aGk=, text hi!, text "], "{branches}");
    }
    // Where nothing else takes a text, it is bytes.
    let mut decoder = Decoder::new(&schema(r#"["long", "double", "bytes"]"#), Format::Json);
    assert_eq!(read(&mut decoder, br#"{"value": "aGk=", "list": []}"#), ["bytes [104, 105]", ""]);
}

#[test]
fn a_writers_text_or_bytes_is_the_branch_of_that_name_in_the_readers_union() {
    for (written, expected) in [("string", "text hi"), ("bytes", "bytes [104, 105]")] {
        for branches in [r#"["string", "bytes"]"#, r#"["bytes", "string"]"#] {
            let writer = schema(&format!("\"{written}\""));
            let mut encoder = Encoder::new(&writer, Format::Avro(Framing::Container));
            let plain = match written {
                "string" => r#"{"value": "hi", "list": ["hi"]}"#,
                _ => r#"{"value": "aGk=", "list": ["aGk="]}"#,
            };
            encoder.push(Decoder::new(&writer, Format::Json).one(plain.as_bytes()).unwrap()).unwrap();
            let mut payload = Vec::new();
            encoder.finish(&mut payload);
            let mut decoder = Decoder::new(&schema(branches), Format::Avro(Framing::Container));
            assert_eq!(read(&mut decoder, &payload), [expected, expected], "{written} as {branches}");
        }
    }
}

/// A container of three blocks, two records each, and where its blocks begin.
fn blocks(schema: &Schema, codec: Codec) -> (Vec<u8>, [usize; 4]) {
    let mut encoder = Encoder::new(schema, Format::Avro(Framing::Container)).compressed(codec);
    let mut json = Decoder::new(schema, Format::Json);
    for record in
        [r#"{"value": {"string": "one"}, "list": []}"#, r#"{"value": {"bytes": "AAE="}, "list": []}"#]
    {
        encoder.push(json.one(record.as_bytes()).unwrap()).unwrap();
    }
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    let marker = payload[payload.len() - 16..].to_vec();
    let begin = 16 + payload.windows(16).position(|bytes| *bytes == *marker).unwrap();
    let block = payload[begin..].to_vec();
    payload.extend_from_slice(&[&block[..], &block[..]].concat());
    (payload, [0, 1, 2, 3].map(|number| begin + number * block.len()))
}

#[test]
fn one_damaged_block_of_a_container_is_one_error_and_the_next_container_is_read() {
    let schema = schema(r#"["string", "bytes"]"#);
    for codec in Codec::ALL {
        let (whole, ends) = blocks(&schema, codec);
        let mut decoder = Decoder::new(&schema, Format::Avro(Framing::Container));
        assert_eq!(read(&mut decoder, &whole).len(), 3 * 2 * 2, "{codec:?}");
        // Count, size, marker and each byte between them, of the block in the middle.
        for at in ends[1]..ends[2] {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xFF;
            let mut records = decoder.records(&damaged);
            let mut errors = 0;
            let mut good = 0;
            while let Some(record) = records.next() {
                match record {
                    Ok(_) => good += 1,
                    Err(_) => errors += 1,
                }
            }
            // A bit that only changes a text or a compressor's padding is no damage that can be seen.
            assert!(errors == 1 && good >= 2 || errors == 0 && good == 6, "{codec:?} {at}: {errors} {good}");
            let is_marker = at >= ends[2] - 16;
            assert!(!is_marker || (errors, good) == (1, 2), "{codec:?} {at}");
            assert_eq!(read(&mut decoder, &whole).len(), 3 * 2 * 2, "{codec:?} {at}: behind a damaged one");
        }
    }
}
