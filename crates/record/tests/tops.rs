//! Schemas whose top is no record: each record in the top's arrays, maps and unions is a row.

use weir_record::{Codec, Decoder, Encoder, Format, Framing, Kind, Schema};

const SCHEMALESS: Format = Format::Avro(Framing::Schemaless);
const READING: &str =
    r#"{"type": "record", "name": "Reading", "fields": [{"name": "celsius", "type": "int"}]}"#;
const DOOR: &str =
    r#"{"type": "record", "name": "site.Door", "fields": [{"name": "open", "type": "boolean"}]}"#;

fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap()
}

/// All rows of a payload, or what is wrong with it.
fn rows(decoder: &mut Decoder, payload: &[u8]) -> Result<Vec<String>, String> {
    let mut records = decoder.records(payload);
    let mut found = Vec::new();
    while let Some(record) = records.next() {
        found.push(format!("{:?}", record.map_err(|error| error.to_string())?));
    }
    Ok(found)
}

fn read(top: &str, format: Format, payload: &[u8]) -> Result<Vec<String>, String> {
    rows(&mut Decoder::new(&schema(top), format), payload)
}

#[test]
fn records_in_arrays_maps_and_beside_null_are_rows() {
    let array = format!(r#"{{"type": "array", "items": {READING}}}"#);
    let map = format!(r#"{{"type": "map", "values": {READING}}}"#);
    let optional = format!(r#"["null", {READING}]"#);
    let deep = format!(r#"{{"type": "map", "values": ["null", {{"type": "array", "items": {READING}}}]}}"#);
    let two = [r#"{"celsius":1}"#, r#"{"celsius":-1}"#];
    let cases: [(&str, &[u8], &str, &[&str]); 7] = [
        (&array, &[4, 2, 1, 0], r#"[{"celsius": 1}, {"celsius": -1}]"#, &two),
        (&array, &[0], "[]", &[]),
        (&array, &[2, 2, 0, 2, 1, 0], r#"[{"celsius": 1}] [{"celsius": -1}]"#, &two),
        (&map, &[4, 2, b'a', 2, 2, b'b', 1, 0], r#"{"a": {"celsius": 1}, "b": {"celsius": -1}}"#, &two),
        (&optional, &[2, 2], r#"{"celsius": 1}"#, &two[..1]),
        (&optional, &[0, 2, 2], r#"null {"celsius": 1}"#, &two[..1]),
        (
            &deep,
            &[6, 0, 0, 2, b'x', 2, 4, 2, 1, 0, 0, 2, 0, 0],
            r#"{"": null, "x": [{"celsius": 1}, {"celsius": -1}], "y": []}"#,
            &two,
        ),
    ];
    for (top, avro, json, expected) in cases {
        assert_eq!(schema(top).columns()[0].name(), "celsius");
        assert_eq!(read(top, SCHEMALESS, avro).unwrap(), expected, "{top} {avro:?}");
        assert_eq!(read(top, Format::Json, json.as_bytes()).unwrap(), expected, "{top} {json}");
    }
}

#[test]
fn one_of_several_records_is_a_row_with_its_name_and_value() {
    let both = format!(r#"[{READING}, {DOOR}, "null"]"#);
    let schema = schema(&format!(r#"{{"type": "array", "items": {both}}}"#));
    let columns: Vec<_> = schema.columns().iter().map(|column| (column.name(), column.kind())).collect();
    assert_eq!(columns, [("type", Kind::Enum), ("value", Kind::Union)]);
    let expected = [
        r#"{"type":"site.Door","value":{"site.Door":{"open":true}}}"#,
        r#"{"type":"Reading","value":{"Reading":{"celsius":3}}}"#,
        r#"{"type":"null","value":null}"#,
    ];
    let mut decoder = Decoder::new(&schema, SCHEMALESS);
    assert_eq!(rows(&mut decoder, &[6, 2, 1, 0, 6, 4, 0]).unwrap(), expected);
    let json = r#"[{"site.Door": {"open": true}}, {"Reading": {"celsius": 3}}, null]"#;
    for format in [Format::Json, Format::AvroJson] {
        assert_eq!(rows(&mut Decoder::new(&schema, format), json.as_bytes()).unwrap(), expected);
    }
    // The value alone, as a column has it, is that of its branch.
    let payload = [2, 2, 1, 0];
    let record = decoder.one(&payload).unwrap();
    assert_eq!(format!("{:?}", record.columns().collect::<Vec<_>>()), r#"["site.Door", {"open":true}]"#);
    assert_eq!(read(&both, SCHEMALESS, &[2, 1, 0, 6]).unwrap(), expected[..2]);
}

#[test]
fn what_is_wrong_is_said_with_its_place_in_the_top() {
    let array = format!(r#"{{"type": "array", "items": {DOOR}}}"#);
    let map = format!(r#"{{"type": "map", "values": {array}}}"#);
    let said = |top: &str, format, payload: &[u8]| read(top, format, payload).unwrap_err();
    assert_eq!(
        said(&array, SCHEMALESS, &[6, 1, 0, 2, 0]),
        "[2].open: byte 3: 2 is not a boolean; it is 0 or 1"
    );
    assert_eq!(
        said(&array, SCHEMALESS, &[2, 1, 0, 2, 7]),
        "record 1: [0].open: byte 4: 7 is not a boolean; it is 0 or 1"
    );
    assert_eq!(
        said(&map, SCHEMALESS, &[2, 2, b'k', 2, 2]),
        "[0][0].open: byte 4: 2 is not a boolean; it is 0 or 1"
    );
    assert_eq!(
        said(&array, Format::Json, br#"[{"open": true}, {"open": 1}]"#),
        "[1].open: byte 26: a boolean expected, found a number"
    );
    assert_eq!(
        said(&array, Format::Json, br#"{"open": true}"#),
        "byte 0: an array expected, found an object"
    );
    let huge = said(&array, SCHEMALESS, &[0x80, 0x80, 0x80, 0x80, 0x20]);
    assert!(huge.starts_with("byte 0: a block has 4294967296 items by its count"), "{huge}");
    let mut decoder = Decoder::new(&schema(&array), SCHEMALESS);
    assert!(decoder.one(&[2, 1, 0]).is_ok());
    assert_eq!(
        decoder.one(&[4, 1, 1, 0]).unwrap_err().to_string(),
        "byte 4: a second record follows, and there must be one"
    );
    assert_eq!(decoder.one(&[0]).unwrap_err().to_string(), "byte 1: the payload has no record");
    assert!(decoder.one(&[2, 1, 0]).is_ok());
    // A record in a record is no row of its own, and nothing else has any.
    for (top, name) in [(r#"{"type": "array", "items": "int"}"#, "array"), (r#"["null", "int"]"#, "union")] {
        assert_eq!(
            Schema::parse(top).unwrap_err().to_string(),
            format!(
                "schema: a record must be at the top, or an array, a map or a union with one; this is {name}"
            )
        );
    }
}

#[test]
fn a_container_of_a_union_is_read_by_the_schema_of_one_of_its_records() {
    let both = schema(&format!("[{READING}, {DOOR}]"));
    let container = Format::Avro(Framing::Container);
    let mut encoder = Encoder::new(&both, container).compressed(Codec::Zstandard);
    let mut decoder = Decoder::new(&both, SCHEMALESS);
    let mut records = decoder.records(&[0, 6, 2, 1]);
    while let Some(record) = records.next() {
        encoder.push(record.unwrap()).unwrap();
    }
    let mut payload = Vec::new();
    encoder.finish(&mut payload);
    assert_eq!(rows(&mut Decoder::new(&both, container), &payload).unwrap().len(), 2);
    let mut decoder = Decoder::new(&schema(READING), container);
    let mut records = decoder.records(&payload);
    assert_eq!(format!("{:?}", records.next().unwrap().unwrap()), r#"{"celsius":3}"#);
    let error = records.next().unwrap().unwrap_err().to_string();
    assert_eq!(
        error,
        "record 1: byte 3: it was written as record site.Door, which cannot be read as record Reading"
    );
}

#[test]
fn an_array_of_another_schema_is_resolved() {
    let list = |fields: &str| {
        schema(&format!(
            r#"{{"type": "array", "items": {{"type": "record", "name": "R", "fields": [{fields}]}}}}"#
        ))
    };
    let writer = list(r#"{"name": "gone", "type": "boolean"}, {"name": "a", "type": "int"}"#);
    let reader = list(r#"{"name": "a", "type": "long"}, {"name": "b", "type": "string", "default": "x"}"#);
    let mut decoder = Decoder::new(&reader, SCHEMALESS).written_by(&writer);
    assert_eq!(
        rows(&mut decoder, &[4, 1, 2, 0, 4, 0]).unwrap(),
        [r#"{"a":1,"b":"x"}"#, r#"{"a":2,"b":"x"}"#]
    );
}
