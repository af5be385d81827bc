//! What an experiment's report says, in each format.

mod fixture;

use serde_json::Value;
use weir_engine::experiment::{
    Account, Carried, Classic, Ending, ExperimentSummary, Facts, Imbalance, Repetition, Stage, Stretch,
};
use weir_report::{FORMATS, Text, experiment_schema, write_experiment};

/// A repetition of 5,000 records, of which so many became rows within so many seconds.
fn repetition(number: u32, encoding: &str, rows: u64, seconds: f64) -> Repetition {
    let stretch = |first, last| Some(Stretch { first_seconds: first, last_seconds: last });
    let lost = 5_000 - rows;
    let text = format!("mqtt://127.0.0.1:1883 did not deliver {lost} of 5000 messages");
    let imbalances = if lost > 0 { vec![Imbalance { stage: Stage::Broker, text }] } else { Vec::new() };
    Repetition {
        repetition: number,
        encoding: encoding.into(),
        background: None,
        classic: Classic(i64::from(lost > 0), rows, (seconds * 1e3) as u64),
        account: Account {
            planned: 5_000,
            published: 5_000,
            acknowledged: 5_000,
            received: rows,
            lost,
            saved: rows,
            dead_lettered: 0,
            duplicate: 0,
            counted: rows,
            counted_dead: 0,
        },
        imbalances,
        publish: stretch(0.0, 0.04),
        acknowledge: stretch(0.001, 0.05),
        receive: stretch(0.001, 0.05),
        decode: stretch(0.001, 0.05),
        commit: stretch(0.01, 0.01 + seconds),
        decode_seconds: Some(0.001 * seconds),
        save_seconds: Some(0.8 * seconds),
        commits: 5,
        payload_bytes: if encoding == "avro" { 5_000 * 952 } else { 5_000 * 2_245 },
        table_bytes: rows * 2_300,
        remarks: Vec::new(),
    }
}

fn summary(background: bool, repetitions: &[Repetition]) -> ExperimentSummary {
    let spec = serde_json::from_str(
        r#"{"publish": "mqtt://127.0.0.1/e/{encoding}/{seq}", "schema": "SimpleClass.avsc", "save": "sqlite:rows.db"}"#,
    );
    let facts = Facts {
        run: fixture::steps().run,
        spec: spec.unwrap(),
        encodings: vec!["avro".into(), "json".into()],
        background,
    };
    let thresholds = ["lost == 0".parse().unwrap(), "json.insert < 1".parse().unwrap()];
    ExperimentSummary::new(&facts, repetitions, Ending::Completed, &thresholds)
}

fn whole() -> Vec<Repetition> {
    vec![
        repetition(1, "avro", 5_000, 0.110),
        repetition(1, "json", 5_000, 0.152),
        repetition(2, "json", 5_000, 0.149),
        repetition(2, "avro", 5_000, 0.112),
    ]
}

fn text(width: u16, summary: &ExperimentSummary) -> String {
    let mut bytes = Vec::new();
    write_experiment(summary, "text", &Text { width, ..Text::default() }, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().replace('\u{a0}', " ")
}

#[test]
fn a_comparison_has_times_differences_and_an_account() {
    let summary = summary(false, &whole());
    insta::assert_snapshot!(text(100, &summary));
    for width in [40, 60, 80, 100] {
        let page = text(width, &summary);
        let long = page.lines().find(|line| line.chars().count() > width.into());
        assert_eq!(long, None, "{width}: {page}");
    }
}

#[test]
fn what_is_lost_is_named_with_its_stage_and_a_threshold_fails() {
    let mut repetitions = whole();
    repetitions[2] = repetition(2, "json", 4_990, 0.149);
    let summary = summary(false, &repetitions);
    let page = text(80, &summary);
    assert!(page.contains("JSON 2: broker: mqtt://127.0.0.1:1883 did not deliver 10 of 5000"), "{page}");
    assert!(page.contains("1 threshold failed"), "{page}");
    assert!(summary.alone.conclusion.starts_with("No comparison: "), "{}", summary.alone.conclusion);
}

#[test]
fn every_format_has_it_and_json_follows_the_published_schema() {
    let beside = whole()
        .into_iter()
        .map(|it| Repetition { background: Some(Carried { sent_bps: 9.4e9, received_bps: 9.1e9 }), ..it });
    let summary = summary(true, &whole().into_iter().chain(beside).collect::<Vec<_>>());
    for format in FORMATS.iter().filter(|format| **format != "clients") {
        let mut bytes = Vec::new();
        write_experiment(&summary, format, &Text::default(), &mut bytes).unwrap();
        assert!(bytes.len() > 500, "{format}");
    }
    let published =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiment.schema.json");
    if std::env::var_os("WEIR_WRITE").is_some() {
        std::fs::write(&published, experiment_schema()).unwrap();
    }
    let schema = std::fs::read_to_string(published).unwrap();
    assert!(
        schema == experiment_schema(),
        "it changed: WEIR_WRITE=1 cargo test -p weir-report --test experiment"
    );
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let mut bytes = Vec::new();
    write_experiment(&summary, "json", &Text::default(), &mut bytes).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(value["background"]["carried"]["sent_bps"], 9.4e9);
}
