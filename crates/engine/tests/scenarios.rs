//! The scenarios that come with weir are scenarios, and their schema is published.

use std::path::{Path, PathBuf};
use weir_engine::scenario::{Order, Scenario, Variation, turns};
use weir_engine::summary::Role;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files in `scenarios/` whose clients are held for a time, in order of name.
fn files() -> Vec<PathBuf> {
    let mut files = all();
    files.retain(|path| !read(path).workloads.iter().any(weir_engine::scenario::WorkloadSpec::saves));
    files
}

fn all() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        root().join("scenarios").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// Those whose streams weir publishes itself and plays as it publishes them: RTMP.
fn published() -> Vec<PathBuf> {
    let mut files = files();
    let is_rtmp = |urls: &[String]| urls.iter().any(|url| url.starts_with("rtmp://"));
    files.retain(|path| {
        let scenario = read(path);
        let played = scenario.workloads.last().map_or(&[][..], |spec| &spec.play.0);
        is_rtmp(&scenario.workloads[0].publish.0) && is_rtmp(played)
    });
    assert!(files.len() >= 3);
    files
}

fn read(path: &Path) -> Scenario {
    let mut variations = Variation::read(path).unwrap_or_else(|error| panic!("{error}"));
    variations.swap_remove(0).scenario
}

#[test]
fn what_is_shipped_to_place_agents_holds_a_scenario_that_is_planned() {
    let folders = root().join("deploy").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = folders.map(|folder| folder.join("scenario.yaml")).filter(|it| it.exists()).collect();
    assert!(!files.is_empty());
    for path in files {
        let plan = read(&path).plan().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!plan.slots.is_empty());
    }
}

#[test]
fn each_scenario_is_read_and_planned() {
    assert!(files().len() >= 3);
    for path in files() {
        let name = path.display();
        let scenario = read(&path);
        let plan = scenario.plan().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!plan.slots.is_empty(), "{name} plans no client");
        scenario.check_during(&plan).unwrap_or_else(|(_, error)| panic!("{name}: {error}"));
        for stage in &plan.stages {
            let seconds = stage.window_end - stage.window_begin;
            assert!(seconds >= 10, "{name}: the stage of {} has a window of {seconds} s", stage.clients);
        }
    }
}

#[test]
fn each_scenario_plays_watches_and_asks() {
    for path in files() {
        let name = path.display();
        let scenario = read(&path);
        let roles: Vec<Role> = scenario.workloads.iter().map(|spec| spec.verb().unwrap().0).collect();
        let publishes = !scenario.workloads[0].publish.0.is_empty();
        let expected = if publishes { &[Role::Publish, Role::Play][..] } else { &[Role::Play] };
        assert_eq!(roles, expected, "{name}");
        assert!(!scenario.watch.is_empty() && !scenario.thresholds.is_empty(), "{name}");
        for watch in &scenario.watch {
            watch.parse::<weir_observe::Watch>().unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let urls = scenario.workloads.iter().flat_map(|spec| spec.publish.0.iter().chain(&spec.play.0));
        // Services of Mirakurun are streams over HTTP.
        let protocols = urls.map(|url| url.split("://").next().unwrap().trim_start_matches("mirakurun+"));
        let schemas: Vec<_> =
            protocols.map(|it| weir_protocols::schema_of(it).expect("weir speaks it")).collect();
        for threshold in &scenario.thresholds {
            threshold.check(&schemas).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn viewers_play_what_is_published_beside_them() {
    for path in published() {
        let scenario = read(&path);
        let (published, played) = (&scenario.workloads[0].publish, &scenario.workloads[1].play);
        assert_eq!(published, played, "{}", path.display());
    }
}

#[test]
fn the_tables_have_the_rows_of_the_classic_benchmarks() {
    let clients = |file: &str| -> Vec<u32> {
        let scenario = read(&root().join("scenarios").join(file));
        scenario.workloads[1].stages.iter().map(|stage| stage.clients).collect()
    };
    assert_eq!(clients("srs.yaml"), [500, 1_000, 1_500, 2_000, 2_500]);
    assert_eq!(clients("nginx-rtmp.yaml"), clients("srs.yaml"));
    assert_eq!(clients("raspberry-pi.yaml"), [10, 20, 30, 40, 50]);
}

#[test]
fn eight_services_are_read_at_once() {
    for (file, minutes) in [("mirakurun.yaml", 10), ("mirakurun-1m.yaml", 1)] {
        let scenario = read(&root().join("scenarios").join(file));
        assert_eq!(scenario.plan().unwrap().slots.len(), 8, "{file}");
        let duration = scenario.workloads[0].duration.as_ref().unwrap().get();
        assert_eq!(duration.as_secs(), 60 * minutes, "{file}");
    }
}

#[test]
fn the_original_measurement_is_a_series_of_runs_that_end_with_their_messages() {
    let path = root().join("scenarios/mqtt-avro-json.yaml");
    let variations = Variation::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let topics: Vec<_> = variations.iter().map(|it| it.scenario.workloads[1].publish.0[0].as_str()).collect();
    assert_eq!(
        topics,
        ["mqtt://127.0.0.1:1883//XGH/PYAVRO/{seq}", "mqtt://127.0.0.1:1883//XGH/PYJSON/{seq}"]
    );
    for Variation { scenario, .. } in &variations {
        assert_eq!(scenario.repeat, Some(30));
        let into = scenario.workloads[0].into.as_ref().unwrap();
        assert!(root().join("scenarios").join(into.schema.as_ref().unwrap()).exists());
        assert!(into.empty && !scenario.watch.is_empty());
        let output = scenario.workloads[1].output().unwrap();
        assert_eq!((output.count, output.acknowledged), (Some(5_000), true));
        let plan = scenario.plan().unwrap();
        assert!(plan.about.is_some() && scenario.warmup().is_zero());
    }
    // One more saves what it receives: `ingesters.yaml`.
    assert_eq!(all().len(), files().len() + 2);
}

#[test]
fn variants_of_a_server_differ_in_its_file() {
    let path = root().join("scenarios/nginx-chunk-size.yaml");
    let variations = Variation::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let values: Vec<_> =
        variations.iter().map(|it| it.variant.as_ref().unwrap().values["chunk_size"].as_str()).collect();
    assert_eq!(values, ["4096", "60000"]);
    assert!(turns(2, variations[0].scenario.repeat.unwrap(), Order::default(), 0).len() >= 8);
}

#[test]
fn the_example_of_the_readme_is_a_scenario() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let yaml = readme.split("```yaml").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    Scenario::parse(yaml).unwrap().plan().unwrap();
}

/// `weir schema scenario > docs/scenario.schema.json`, or this test with `WEIR_WRITE=1`, brings it up to date.
#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = root().join("docs/scenario.schema.json");
    let schema = Scenario::schema() + "\n";
    if std::env::var_os("WEIR_WRITE").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == schema,
        "docs/scenario.schema.json is not up to date; run this test with WEIR_WRITE=1"
    );
}
