//! The published schema and what is written agree.

mod fixture;

use weir_engine::summary::Summary;
use weir_report::{Format, Json, schema};

fn published() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/summary.schema.json")
}

#[test]
fn the_published_schema_is_the_one_made_from_the_types() {
    if std::env::var_os("WEIR_WRITE").is_some() {
        std::fs::write(published(), schema()).unwrap();
    }
    let text = std::fs::read_to_string(published()).unwrap();
    assert!(text == schema(), "the summary changed: WEIR_WRITE=1 cargo test -p weir-report --test schema");
}

#[test]
fn every_made_up_summary_follows_it() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let follows = |summary: &Summary| {
        let mut bytes = Vec::new();
        Json.write(summary, &mut bytes).unwrap();
        let value = serde_json::from_slice(&bytes).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
        value
    };
    for summary in [
        fixture::steps(),
        fixture::failures(),
        fixture::drift(),
        fixture::both(),
        fixture::empty(),
        fixture::saved(),
    ] {
        follows(&summary);
    }
    let mut value: serde_json::Value = follows(&fixture::invalid());
    value["verdict"]["state"] = "fine".into();
    assert!(!validator.is_valid(&value));
}
