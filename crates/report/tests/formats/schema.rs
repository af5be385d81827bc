//! The published schema and what is written agree.

use crate::fixture;
use weir_engine::summary::Summary;
use weir_report::{Report, Text};

#[test]
fn every_made_up_summary_follows_it() {
    let follows = |summary: &Summary| {
        let mut bytes = Vec::new();
        summary.write("json", &Text::default(), &mut bytes).unwrap();
        fixture::schema::follows("summary", &bytes)
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
    let mut value = follows(&fixture::invalid());
    value["verdict"]["state"] = "fine".into();
    assert!(!fixture::schema::published("summary").is_valid(&value));
}
