//! Avro's Java implementation reads what weir writes, and weir what it writes, by 1,000 schemas and 1,000 pairs of them.

#[path = "../evolution/pairs.rs"]
mod pairs;
#[path = "../evolution/plain.rs"]
mod plain;
#[path = "../schemas/mod.rs"]
mod schemas;

use plain::plain;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use std::process::Command;
use weir_record::{Codec, Decoder, Encoder, Format, Framing, Generator, Schema, Spread, Value};
use weir_testing::maven;

const SCHEMALESS: Format = Format::Avro(Framing::Schemaless);
const SCHEMAS: usize = 1_000;
/// Records of a schema.
const RECORDS: u64 = 3;

/// What Java answers to questions.
fn judge(questions: &[Json]) -> Vec<Json> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java");
    let archives = maven("avro-java", &format!("{source}/pom.xml"), &[]);
    let directory = tempfile::tempdir().unwrap();
    let [asked, answered] = ["asked.json", "answered.json"].map(|name| directory.path().join(name));
    std::fs::write(&asked, Json::from(questions).to_string()).unwrap();
    let path = format!("{}/*", archives.display());
    run(Command::new("java").args(["-cp", &path, &format!("{source}/Judge.java")]).args([&asked, &answered]));
    let answers: Vec<Json> = serde_json::from_slice(&std::fs::read(&answered).unwrap()).unwrap();
    assert_eq!(answers.len(), questions.len());
    answers
}

fn run(command: &mut Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(answer: &Json) -> Vec<u8> {
    let text = answer.as_str().unwrap_or_else(|| panic!("{answer}"));
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn payload(schema: &Schema, format: Format, codec: Codec, spread: Spread, records: u64) -> Vec<u8> {
    let mut generator = Generator::new(schema, 5).spread(spread);
    let mut encoder = Encoder::new(schema, format).compressed(codec);
    for number in 0..records {
        encoder.push(generator.record(number).unwrap()).unwrap();
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

fn read(schema: &Schema, format: Format, payload: &[u8]) -> Result<Vec<Json>, String> {
    let mut decoder = Decoder::new(schema, format);
    let (mut records, mut found) = (decoder.records(payload), Vec::new());
    while let Some(record) = records.next() {
        found.push(plain(Value::Record(record.map_err(|error| error.to_string())?)));
    }
    Ok(found)
}

#[test]
fn a_thousand_schemas_are_written_and_read_as_java_writes_and_reads_them() {
    let mut runner = TestRunner::deterministic();
    let mut schema = || schemas::any_schema().new_tree(&mut runner).unwrap().current();
    // Records without a byte cannot be counted.
    let mut counted = || loop {
        let text = schema();
        let parsed = Schema::parse(&text).unwrap();
        if !payload(&parsed, SCHEMALESS, Codec::Null, Spread::Usual, 1).is_empty() {
            return (text, parsed);
        }
    };
    let every = (schemas::every_type().to_owned(), Schema::parse(schemas::every_type()).unwrap());
    let all = std::iter::once(every).chain(std::iter::repeat_with(&mut counted).take(SCHEMAS));
    let cases: Vec<_> = all.zip(Codec::ALL.into_iter().cycle()).collect();
    let questions = cases.iter().map(|((text, schema), codec)| {
        let framed =
            |framing, records| hex(&payload(schema, Format::Avro(framing), *codec, Spread::Extreme, records));
        let usual = |format| payload(schema, format, Codec::Null, Spread::Usual, RECORDS);
        json!({
            "schema": text, "count": RECORDS, "codec": codec.name(),
            "plain": framed(Framing::Schemaless, RECORDS), "container": framed(Framing::Container, RECORDS),
            "single": framed(Framing::SingleObject, 1), "usual": hex(&usual(SCHEMALESS)),
            "json": String::from_utf8(usual(Format::AvroJson)).unwrap(),
        })
    });
    let questions: Vec<_> = questions.collect();
    for (answer, ((text, schema), codec)) in judge(&questions).iter().zip(&cases) {
        let spread = |spread, records| {
            read(schema, SCHEMALESS, &payload(schema, SCHEMALESS, Codec::Null, spread, records)).unwrap()
        };
        let expected = spread(Spread::Extreme, RECORDS);
        assert_eq!(answer["canonical"], schema.canonical(), "{text}");
        assert_eq!(answer["fingerprint"], format!("{:x}", schema.fingerprint()), "{text}");
        assert_eq!(read(schema, SCHEMALESS, &bytes(&answer["plain"])).unwrap(), expected, "{text}");
        let container = read(schema, Format::Avro(Framing::Container), &bytes(&answer["container"]));
        assert_eq!(container.unwrap(), expected, "{codec:?}: {text}");
        let single = read(schema, Format::Avro(Framing::SingleObject), &bytes(&answer["single"]));
        assert_eq!(single.unwrap(), expected[..1], "{text}");
        let json = read(schema, Format::AvroJson, answer["json"].as_str().unwrap().as_bytes());
        assert_eq!(json.unwrap(), spread(Spread::Usual, RECORDS), "{text}");
    }
}

#[test]
fn a_thousand_pairs_of_schemas_are_resolved_as_java_resolves_them() {
    let cases = (0..SCHEMAS as u64).map(|seed| {
        let (writer, reader) = pairs::pair(seed);
        let schema = Schema::parse(&writer.to_string()).unwrap();
        let payload = payload(&schema, SCHEMALESS, Codec::Null, Spread::Usual, 1);
        (writer.to_string(), reader.to_string(), payload)
    });
    let cases: Vec<_> = cases.collect();
    let question = |(writer, reader, payload): &(String, String, Vec<u8>)| json!({"writer": writer, "reader": reader, "payload": hex(payload)});
    let questions: Vec<_> = cases.iter().map(question).collect();
    let mut resolved = 0;
    for (answer, (writer, reader, payload)) in judge(&questions).iter().zip(&cases) {
        let [from, to] = [writer, reader].map(|text| Schema::parse(text).unwrap());
        let mut decoder = Decoder::new(&to, SCHEMALESS).written_by(&from);
        let ours = decoder.one(payload).map(|record| vec![plain(Value::Record(record))]).ok();
        let theirs = answer.get("plain").map(|plain| read(&to, SCHEMALESS, &bytes(plain)).unwrap());
        assert_eq!(ours, theirs, "{writer} read as {reader}: {answer}");
        resolved += usize::from(ours.is_some());
    }
    assert!((SCHEMAS / 2..SCHEMAS).contains(&resolved), "{resolved}");
}
