//! Payloads that nobody should have sent: each is one clear line, and soon.

use std::io::Write;
use weir_record::{Codec, Decoder, Encoder, Format, Framing, MAX_BLOCK, Problem, Schema};

const SCHEMALESS: Format = Format::Avro(Framing::Schemaless);

fn schema(fields: &str) -> Schema {
    Schema::parse(&format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#)).unwrap()
}

fn field(kind: &str) -> Schema {
    schema(&format!(r#"{{"name": "a", "type": {kind}}}"#))
}

fn error(schema: &Schema, format: Format, payload: &[u8]) -> String {
    match Decoder::new(schema, format).one(payload) {
        Ok(record) => panic!("{record:?}"),
        Err(error) => error.to_string(),
    }
}

fn avro(kind: &str, payload: &[u8]) -> String {
    error(&field(kind), SCHEMALESS, payload)
}

fn json(kind: &str, payload: &str) -> String {
    error(&field(kind), Format::Json, payload.as_bytes())
}

/// 2 to the power of 60, as a count.
const HUGE: [u8; 9] = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20];

#[test]
fn counts_and_lengths_are_held_against_what_is_left() {
    let array = |items: &str| format!(r#"{{"type": "array", "items": {items}}}"#);
    let huge = avro(&array("\"double\""), &HUGE);
    assert_eq!(
        huge,
        "a: byte 0: a block has 1152921504606846976 items by its count, and 0 bytes are left for them"
    );
    assert_eq!(avro(&array("\"string\""), &HUGE), huge);
    assert_eq!(
        avro(&array("\"null\""), &HUGE),
        "a: byte 9: the record has more than 65536 items that take no byte"
    );
    assert_eq!(
        avro(&array(r#"{"type": "fixed", "name": "F", "size": 0}"#), &HUGE),
        "a: byte 9: the record has more than 65536 items that take no byte"
    );
    assert!(avro(r#"{"type": "map", "values": "null"}"#, &HUGE).contains("a block has 1152921504606846976"));
    assert_eq!(
        avro("\"bytes\"", &HUGE),
        "a: byte 0: bytes has 1152921504606846976 bytes by its length, and 0 are left"
    );
    assert_eq!(avro("\"string\"", &[1]), "a: byte 0: a string has -1 bytes by its length, and 0 are left");
    // The least of all counts has no positive one.
    let least = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0];
    assert!(avro(&array("\"double\""), &least).contains("a block has -9223372036854775808 items"));
    assert!(avro(&array("\"null\""), &least).contains("more than 65536 items"));
    assert_eq!(
        avro(&array("\"boolean\""), &[1, 4, 1, 0, 0]),
        "a: byte 3: a block has 1 bytes by its length, and its items do not"
    );
}

#[test]
fn blocks_with_lengths_are_read_as_those_without() {
    let schema = field(r#"{"type": "array", "items": "boolean"}"#);
    let mut decoder = Decoder::new(&schema, SCHEMALESS);
    let read = |payload: &[u8]| format!("{:?}", decoder.one(payload).unwrap());
    let forms: [&[u8]; 3] = [&[4, 1, 0, 0], &[3, 4, 1, 0, 0], &[2, 1, 1, 2, 0, 0]];
    assert_eq!(forms.map(read), [r#"{"a":[true,false]}"#; 3]);
}

#[test]
fn values_are_those_of_their_types() {
    assert_eq!(avro("\"boolean\"", &[2]), "a: byte 0: 2 is not a boolean; it is 0 or 1");
    assert_eq!(
        avro("\"int\"", &[0x80, 0x80, 0x80, 0x80, 0x10]),
        "a: byte 0: 2147483648 is not an int of 32 bits"
    );
    assert_eq!(avro("\"string\"", &[4, b'a', 0xFF]), "a: byte 2: a string is not well-formed UTF-8");
    assert_eq!(
        avro(r#"{"type": "enum", "name": "E", "symbols": ["A"]}"#, &[2]),
        "a: byte 0: the symbol 1 does not exist; there are 1"
    );
    assert_eq!(avro(r#"["null", "int"]"#, &[1]), "a: byte 0: the branch -1 does not exist; there are 2");
    assert_eq!(avro("\"double\"", &[0; 7]), "a: byte 0: the record ends within a double");
    assert_eq!(avro("\"double\"", &[0; 9]), "byte 8: 1 bytes follow that belong to no record");
    assert_eq!(avro("\"long\"", &[0xFF; 11]), "a: byte 0: a variable-length integer has more than 64 bits");
    assert_eq!(avro("\"long\"", &[]), "a: byte 0: the record ends within a long");
}

#[test]
fn nesting_ends() {
    let list = schema(r#"{"name": "next", "type": ["null", "R"]}"#);
    assert!(Decoder::new(&list, SCHEMALESS).one(&[[2; 60].as_slice(), &[0]].concat()).is_ok());
    assert!(error(&list, SCHEMALESS, &[2; 100]).ends_with("byte 65: values are nested deeper than 64"));
    let deep = r#"{"next": "#.repeat(1_000);
    assert!(error(&list, Format::Json, deep.as_bytes()).contains("nested deeper than 64"));
    let unknown = format!(r#"{{"x": {}"#, "[".repeat(100_000));
    assert!(error(&list, Format::Json, unknown.as_bytes()).contains("nested deeper than 64"));
}

#[test]
fn the_number_of_values_ends() {
    let items = vec![1; weir_record::MAX_VALUES + 1];
    let mut payload = vec![0x82, 0x80, 0x80, 4];
    payload.extend(items);
    payload.push(0);
    let error = avro(r#"{"type": "array", "items": "boolean"}"#, &payload);
    assert!(error.ends_with("the record has more than 4194304 values"), "{error}");
}

#[test]
fn framings_are_recognised() {
    let schema = field("\"boolean\"");
    let other = error(&schema, Format::Avro(Framing::SingleObject), &[0xC3, 1, 1, 2, 3, 4, 5, 6, 7, 8, 1]);
    assert!(other.starts_with("byte 2: it was written by another schema, with fingerprint 0807060504030201"));
    let none = error(&schema, Format::Avro(Framing::SingleObject), &[1]);
    assert_eq!(none, "byte 0: this is not a single object: it begins with other bytes");
    let none = error(&schema, Format::Avro(Framing::Container), b"Obj\x02");
    assert!(none.contains("this is not an object container file"), "{none}");
    let header = |text: &[u8], codec: &str| {
        let mut payload = b"Obj\x01\x04".to_vec();
        for part in [b"avro.schema", text, b"avro.codec", codec.as_bytes()] {
            payload.push(part.len() as u8 * 2);
            payload.extend_from_slice(part);
        }
        payload.extend_from_slice(&[0; 17]);
        error(&schema, Format::Avro(Framing::Container), &payload)
    };
    assert!(
        header(b"\"int\"", "null").contains("the schema in the header: schema: a record must be at the top")
    );
    assert!(header(b"{}", "lzo").contains("the codec 'lzo' is not read; null, deflate, snappy, zstandard,"));
}

#[test]
fn a_block_cannot_have_more_records_than_bytes() {
    let schema = schema("");
    let mut payload = b"Obj\x01\x02\x16avro.schema".to_vec();
    let text = r#"{"type":"record","name":"R","fields":[]}"#;
    payload.push(text.len() as u8 * 2);
    payload.extend_from_slice(text.as_bytes());
    payload.extend_from_slice(&[0; 17]);
    payload.extend_from_slice(&HUGE);
    payload.extend_from_slice(&[0; 17]);
    let error = error(&schema, Format::Avro(Framing::Container), &payload);
    assert!(error.contains("a block has 1152921504606846976 items"), "{error}");
}

/// An object container file with one block of one record, compressed elsewhere.
fn container(schema: &Schema, codec: Codec, block: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    Encoder::new(schema, Format::Avro(Framing::Container)).compressed(codec).finish(&mut payload);
    let marker = payload[payload.len() - 16..].to_vec();
    let length = block.len() << 1;
    payload.push(2);
    payload.extend([0, 7, 14].map(|bits| (length >> bits) as u8 | 0x80));
    payload.push((length >> 21) as u8);
    payload.extend_from_slice(block);
    payload.extend_from_slice(&marker);
    payload
}

/// More than a block may have, all of it zeros, in a fraction of that.
fn bomb(codec: Codec) -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    let write = |out: &mut dyn Write| (0..=MAX_BLOCK >> 20).for_each(|_| out.write_all(&zeros).unwrap());
    match codec {
        Codec::Null => unreachable!(),
        Codec::Deflate => {
            let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            write(&mut out);
            out.finish().unwrap()
        }
        // It says what it becomes in front.
        Codec::Snappy => vec![0x80, 0x80, 0x80, 0x80, 2, 0, 0, 0, 0, 0],
        Codec::Zstandard => {
            // A window of 1 KiB, and blocks of 1 KiB of one byte (RFC 8878, sections 3.1.1.1 and 3.1.1.2).
            let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0];
            let header = (1_024_u32 << 3 | 1 << 1).to_le_bytes();
            for _ in 0..MAX_BLOCK / 1_024 + 4 {
                out.extend_from_slice(&[header[0], header[1], header[2], 0]);
            }
            out
        }
        Codec::Bzip2 => {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            write(&mut out);
            out.finish().unwrap()
        }
        Codec::Xz => {
            let options = lzma_rust2::XzOptions::with_preset(0);
            let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            write(&mut out);
            out.finish().unwrap()
        }
    }
}

#[test]
fn what_is_packed_well_does_not_take_all_memory() {
    let schema = field("\"boolean\"");
    for codec in &Codec::ALL[1..] {
        let payload = container(&schema, *codec, &bomb(*codec));
        assert!(payload.len() < 4 << 20, "{codec:?}: {}", payload.len());
        let error = error(&schema, Format::Avro(Framing::Container), &payload);
        assert!(
            error.ends_with(": a block has more than 268435456 bytes once it is decompressed"),
            "{codec:?}: {error}"
        );
    }
}

#[test]
fn a_block_that_is_not_what_its_codec_makes_is_refused() {
    let schema = field("\"boolean\"");
    let container_format = Format::Avro(Framing::Container);
    for codec in &Codec::ALL[1..] {
        let mut encoder = Encoder::new(&schema, container_format).compressed(*codec);
        let (mut head, mut whole) = (Vec::new(), Vec::new());
        encoder.finish(&mut head);
        encoder.push(Decoder::new(&schema, SCHEMALESS).one(&[1]).unwrap()).unwrap();
        encoder.finish(&mut whole);
        // Behind the count of one and a length below 64.
        let block = &whole[head.len() + 2..whole.len() - 16];
        let mut decoder = Decoder::new(&schema, container_format);
        assert!(decoder.one(&container(&schema, *codec, block)).is_ok(), "{codec:?}");
        let cut = &block[..block.len() - 1];
        let more = [block, b"more than four bytes"].concat();
        for wrong in [b"".as_slice(), b"neither", cut, &more] {
            let error = error(&schema, container_format, &container(&schema, *codec, wrong));
            let words = format!("a block of {} cannot be decompressed: it is damaged", codec.name());
            assert!(error.contains(&words), "{codec:?} {wrong:?}: {error}");
        }
        // A sum says what no length does; deflate has none.
        if *codec != Codec::Deflate {
            let mut wrong = block.to_vec();
            let at = wrong.len() - if *codec == Codec::Xz { 24 } else { 3 };
            wrong[at] ^= 1;
            assert!(decoder.one(&container(&schema, *codec, &wrong)).is_err(), "{codec:?}");
        }
    }
    // As much as a gigabyte in a window, for a payload of a few bytes.
    let wide = [0x28, 0xB5, 0x2F, 0xFD, 0, 20 << 3, 1, 0, 0];
    let error = error(&schema, container_format, &container(&schema, Codec::Zstandard, &wide));
    assert!(error.contains("or wants more memory than it may have"), "{error}");
}

#[test]
fn json_says_what_was_expected_and_what_was_found() {
    assert_eq!(json("\"int\"", r#"{"a": "1"}"#), "a: byte 6: a number expected, found a string");
    assert_eq!(json("\"int\"", r#"{"a": 1.5}"#), "a: byte 6: the number is no int");
    assert_eq!(json("\"int\"", r#"{"a": 2147483648}"#), "a: byte 6: the number is no int");
    assert_eq!(json("\"long\"", r#"{"a": 9223372036854775808}"#), "a: byte 6: the number is no long");
    assert_eq!(json("\"double\"", r#"{"a": 01}"#), "a: byte 6: the number is no double");
    assert_eq!(json("\"double\"", r#"{"a": 1e999}"#), "a: byte 6: the number is no double");
    assert_eq!(json("\"boolean\"", r#"{"a": null}"#), "a: byte 6: a boolean expected, found null");
    assert_eq!(json("\"bytes\"", r#"{"a": "A"}"#), "a: byte 7: the string is no base64");
    assert_eq!(json("\"int\"", "{}"), "byte 1: the field 'a' is missing");
    assert_eq!(json("\"int\"", r#"{"a": 1, "a": 1}"#), "byte 10: the field 'a' comes twice");
    assert_eq!(json("\"int\"", r#"{"a": 1} x"#), "byte 9: a second record follows, and there must be one");
    assert_eq!(
        json("\"int\"", r#"[{"a": 1}, {"a": 1}]"#),
        "byte 11: a second record follows, and there must be one"
    );
    assert_eq!(json("\"int\"", r#"[{"a": 1}] 5"#), "byte 11: 1 bytes follow that belong to no record");
    assert_eq!(json("\"int\"", ""), "byte 0: an object expected, found the end");
    assert_eq!(json("\"int\"", "[]"), "byte 2: the payload has no record");
    assert_eq!(
        json("\"string\"", "{\"a\": \"\\ud800\"}"),
        "a: byte 7: a string has an escape that JSON does not have"
    );
    assert_eq!(
        json(
            r#"{"type": "array", "items": {"type": "array", "items": "double"}}"#,
            r#"{"a": [[1], [2, true]]}"#
        ),
        "a[1][1]: byte 16: a number expected, found a boolean"
    );
    assert_eq!(
        json(r#"["null", "int", "boolean"]"#, r#"{"a": "x"}"#),
        "a: byte 6: no branch of the union takes a string"
    );
}

#[test]
fn json_of_others_is_read() {
    let schema = schema(
        r#"{"name": "blob", "type": "bytes"}, {"name": "number", "type": "double"}, {"name": "single", "type": "float"},
           {"name": "maybe", "type": ["null", "string"]}, {"name": "any", "type": ["null", "long", "double", "string"]}"#,
    );
    let mut decoder = Decoder::new(&schema, Format::Json);
    let mut read = |text: &str| format!("{:?}", decoder.one(text.as_bytes()).unwrap());
    // Any order, members that the schema does not name, bytes as the original measurement writes them, Python's words.
    assert_eq!(
        read(
            r#" {"any": 5, "more": {"x": [1, "]", null]}, "single": -Infinity, "maybe": null, "number": NaN, "blob": ["AAE="]} "#
        ),
        r#"{"blob":"AAE=","number":"NaN","single":"-Infinity","maybe":null,"any":{"long":5}}"#
    );
    assert_eq!(
        read(
            r#"{"blob": "AAE", "number": 1, "single": 0.10000000149011612, "maybe": "\u00e9", "any": {"double": 1e300}}"#
        ),
        r#"{"blob":"AAE=","number":1.0,"single":0.1,"maybe":"é","any":{"double":1e+300}}"#
    );
    assert_eq!(
        read(r#"{"blob": "", "number": -0, "single": 1, "maybe": "a", "any": 1.5}"#),
        r#"{"blob":"","number":-0.0,"single":1.0,"maybe":"a","any":{"double":1.5}}"#
    );
}

#[test]
fn several_records_are_read_in_every_form_that_json_has_for_them() {
    let schema = field("\"int\"");
    let mut decoder = Decoder::new(&schema, Format::Json);
    for payload in
        [r#"[{"a":1},{"a":2}]"#, "{\"a\":1}\n{\"a\":2}\n", r#" [ {"a":1} , {"a":2} ] "#, r#"{"a":1}{"a":2}"#]
    {
        let mut records = decoder.records(payload.as_bytes());
        let mut found = Vec::new();
        while let Some(record) = records.next() {
            found.push(format!("{:?}", record.unwrap()));
        }
        assert_eq!(found, [r#"{"a":1}"#, r#"{"a":2}"#], "{payload}");
    }
    let mut records = decoder.records(br#"[{"a":1},{"a":2},]"#);
    assert!(records.next().unwrap().is_ok() && records.next().unwrap().is_ok());
    let error = records.next().unwrap().unwrap_err();
    assert_eq!(error.problem, Problem::Unexpected { expected: "an object", found: "punctuation" });
    assert_eq!(error.to_string(), "record 2: byte 17: an object expected, found punctuation");
    assert!(records.next().is_none());
}
