//! What `weir codec` says.

use crate::fixture;
use weir_report::{CodecComparison, CodecSubject, EncodingTimes, SavingComparison, SavingTimes, Text};

fn comparison(avro: &[f64], json: &[f64]) -> CodecComparison {
    let subject = CodecSubject {
        schema: "schemas/SimpleClass.avsc".into(),
        record: "SimpleClass".into(),
        fingerprint: 0x2A,
        seed: 0,
        records: 1_000,
    };
    let side = |encoding: &str, record_bytes, seconds: &[f64]| EncodingTimes {
        encoding: encoding.into(),
        decoder: "weir".into(),
        record_bytes,
        seconds: seconds.into(),
    };
    let (avro, json) = (side("avro", 955.0, avro), side("json", 2_250.0, json));
    CodecComparison::new(subject, [&avro, &json], &[]).unwrap()
}

fn faster() -> CodecComparison {
    comparison(&[120e-9, 121e-9, 119e-9], &[1.68e-6, 1.7e-6, 1.66e-6])
}

fn saved() -> CodecComparison {
    let side = |encoding: &str, factor: f64| SavingTimes {
        encoding: encoding.into(),
        seconds: vec![18e-6 * factor, 20e-6 * factor, 19e-6 * factor],
        cpu_seconds: vec![9e-6 * factor, 10e-6 * factor, 9.5e-6 * factor],
        row_bytes: 1_150.0,
    };
    let compare = |place: &str, factor| {
        SavingComparison::new(place.into(), 1_000, &side("avro", 1.0), &side("json", factor)).unwrap()
    };
    let saving = vec![compare("sqlite:rows.db", 1.25), compare("postgres://127.0.0.1/weir", 1.0)];
    CodecComparison { saving, ..faster() }
}

fn text(width: u16, comparison: &CodecComparison) -> String {
    let mut bytes = Vec::new();
    Text { width, ..Text::default() }.write_codec(comparison, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().replace('\u{a0}', " ")
}

#[test]
fn a_difference_is_a_table_and_a_sentence() {
    insta::assert_snapshot!(text(100, &faster()));
}

#[test]
fn what_was_saved_is_a_table_of_its_own() {
    insta::assert_snapshot!(text(100, &saved()));
}

#[test]
fn what_cannot_be_told_is_said() {
    let none = comparison(&[120e-9, 180e-9, 130e-9], &[150e-9, 120e-9, 170e-9]);
    assert!(none.conclusion.starts_with("No difference in decoding can be told: "), "{}", none.conclusion);
    let other = comparison(&[2e-6, 2.1e-6, 2.2e-6], &[1e-6, 1.1e-6, 1.05e-6]);
    assert!(
        other.conclusion.starts_with("JSON is decoded 2.0 times as fast as Avro"),
        "{}",
        other.conclusion
    );
}

#[test]
fn what_is_written_follows_the_published_schema() {
    let mut bytes = Vec::new();
    saved().write_json(&mut bytes).unwrap();
    let value = fixture::schema::follows("codec", &bytes);
    assert_eq!(value["fingerprint"], "000000000000002a");
    assert_eq!(value["avro"]["decode_seconds"]["mean"], 120e-9);
}
