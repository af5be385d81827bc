//! The sweeps that come with weir can be searched.

use std::path::Path;
use std::time::Duration;
use weir_answers::capacity::Subject;
use weir_engine::scenario::{Find, LoadKind, Variation};

#[test]
fn sweeps_search_each_of_their_variants() {
    for (file, names, kind) in [
        ("nginx-workers.yaml", &["one", "two"][..], LoadKind::Clients),
        ("mosquitto-inflight.yaml", &["default", "large"], LoadKind::Messages),
        (
            "oven-workers.yaml",
            &[
                "stream_workers-1-app_workers-1",
                "stream_workers-1-app_workers-2",
                "stream_workers-2-app_workers-1",
                "stream_workers-2-app_workers-2",
                "stream_workers-4-app_workers-1",
                "stream_workers-4-app_workers-2",
                "stream_workers-8-app_workers-1",
                "stream_workers-8-app_workers-2",
            ],
            LoadKind::Clients,
        ),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
        let variations = Variation::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<_> = variations.iter().map(|it| it.variant.as_ref().unwrap().name.as_str()).collect();
        assert_eq!(found, names, "{file}");
        for Variation { scenario, .. } in variations {
            assert_eq!(scenario.find.map(Find::kind), Some(kind), "{file}");
            let subject = Subject::new(scenario, kind, None, 100.0).unwrap();
            assert!(!subject.trial(&[100], 15, Duration::ZERO).plan().unwrap().slots.is_empty(), "{file}");
        }
    }
}
