//! fastavro reads what weir wrote by one schema with another, and weir reads it as the same.

#[path = "../fastavro/python.rs"]
mod python;

use super::plain::plain;
use super::{SCHEMALESS, bits, pairs};
use serde_json::{Value as Json, json};
use std::process::Command;
use weir_record::{Decoder, Generator, Schema, Value};

const PAIRS: u64 = 1_000;

#[test]
fn a_thousand_pairs_of_schemas_are_resolved_as_fastavro_resolves_them() {
    let (mut asked, mut found) = (Vec::new(), Vec::new());
    for seed in 0..PAIRS {
        let (writer, reader) = pairs::pair(seed);
        let [from, to] = [&writer, &reader].map(|json| Schema::parse(&json.to_string()).unwrap());
        let payload = bits(Generator::new(&from, seed).record(0).unwrap(), &from);
        let mut decoder = Decoder::new(&to, SCHEMALESS).written_by(&from);
        found.push(decoder.one(&payload).map(|record| plain(Value::Record(record))).ok());
        let payload: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        asked.push(json!({"writer": writer, "reader": reader, "payload": payload}));
    }
    let directory = tempfile::tempdir().unwrap();
    let [questions, answers] = ["asked.json", "read.json"].map(|name| directory.path().join(name));
    std::fs::write(&questions, Json::from(asked.clone()).to_string()).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/evolution/judge.py");
    python::run(Command::new(&*python::PYTHON).args([script]).args([&questions, &answers]));
    let answers: Vec<Option<Json>> = serde_json::from_slice(&std::fs::read(&answers).unwrap()).unwrap();
    assert_eq!(answers.len(), found.len());
    for (seed, (theirs, ours)) in answers.iter().zip(&found).enumerate() {
        assert_eq!(ours, theirs, "seed {seed}: {}", asked[seed]);
    }
    // There is something to compare, and some of it cannot be read.
    let read = found.iter().flatten().count();
    assert!((500..1_000).contains(&read), "{read}");
}
