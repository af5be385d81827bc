//! A run directory comes from disk: whatever numbers stand in it, it is read or refused with a line.

mod facts;

use facts::facts_of;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use weir_engine::EventLine;
use weir_engine::record::{self, RecordError, RecordWriter, RunHead};
use weir_engine::scenario::Scenario;
use weir_engine::summary::{Outcome, Role, RunFacts};
use weir_metrics::common::{MEDIA, PLAYED, PLAYING, SOURCE, SOURCE_TIME, STARTUP, TURN_LAG};
use weir_metrics::{Interval, IntervalKey, Recorder, Schema};
use weir_observe::{HostSample, ProcessSample, Sample};

const SCENARIO: &str = "{warmup: 0s, workloads: [{name: source, publish: rtmp://h/a/b}, \
    {play: rtmp://h/a/b, stages: [{clients: 4, hold: 12s, ramp: 0s}]}]}";
const SCHEMA: Schema = Schema::new(&[]);

/// Writes a run of 12 s.
fn write(directory: &Path) {
    let scenario = Scenario::parse(SCENARIO).unwrap();
    let workloads: Vec<_> = scenario.workloads.iter().map(facts_of).collect();
    let run = RunFacts {
        name: "x".to_owned(),
        started_at_seconds: 1.7e9,
        duration_seconds: 12.0,
        ..RunFacts::default()
    };
    assert_eq!(workloads[1].role, Role::Play);
    let head = RunHead { run, origin_ns: 5_000_000_000, scenario, workloads, segment: None };
    let mut writer = RecordWriter::create(directory, &head).unwrap();
    for second in 0..12 {
        for workload in 0..2 {
            let mut figures = Recorder::new(SCHEMA);
            figures.set(PLAYING, 4);
            figures.set(TURN_LAG, 2_000);
            figures.count(PLAYED, u64::from(second == 0));
            figures.count(MEDIA, 777_001);
            figures.count(SOURCE, 777_001);
            figures.count(SOURCE_TIME, 1_000_003);
            figures.record(STARTUP, 70_000);
            writer.interval(&Interval::new(IntervalKey { second, workload, server: None }, figures)).unwrap();
        }
        let generator =
            ProcessSample { processes: 1, cpu_seconds: f64::from(second), ..ProcessSample::default() };
        let at_ns = 5_000_000_000 + u64::from(second) * 1_000_000_000;
        let (host, targets, machines, others) = (HostSample::default(), Vec::new(), Vec::new(), Vec::new());
        writer.sample(&Sample { at_ns, targets, generator, host, machines, others }).unwrap();
    }
    writer.event(&EventLine::Stopped { at_seconds: 11.25 }).unwrap();
    writer.flush().unwrap();
}

fn read(directory: &Path) -> Result<(), RecordError> {
    let (head, aggregator) = record::read(directory, |_| Some(SCHEMA))?;
    aggregator.finish(head.run, Outcome::Completed, &head.scenario);
    Ok(())
}

#[test]
fn a_number_that_cannot_be_is_a_line_and_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let original = directory.path().join("original");
    fs::create_dir(&original).unwrap();
    write(&original);
    read(&original).unwrap();
    const MANY: &str = "18446744073709551615";
    let mut refused = 0;
    for (file, number, others) in [
        ("intervals.ndjson", "\"second\":7", &["4294967295", "4294967294", "315532800", "-1", "1e9"][..]),
        ("intervals.ndjson", "777001", &[MANY, "1e300", "-1e300", "-5"]),
        (
            "intervals.ndjson",
            "\"second\":8",
            &["8,\"seconds\":0", "8,\"seconds\":4294967295", "8,\"seconds\":3"],
        ),
        ("intervals.ndjson", "\"workload\":1", &["65535"]),
        ("intervals.ndjson", "0.002", &["1e300", "-1e300"]),
        ("intervals.ndjson", "1.000003", &["1e300", "1e-300", "-7"]),
        ("observe.ndjson", "9000000000", &[MANY, "0"]),
        ("observe.ndjson", "\"cpu_seconds\":4", &["1e300", "-1e300"]),
        ("events.ndjson", "11.25", &["1e300", "-1e300", "4294967295"]),
        ("run.json", "5000000000", &[MANY, "9223372036854775808", "0"]),
        ("run.json", "\"clients\": 4", &["4294967295"]),
        ("run.json", "12s", &["366d", "0s"]),
        ("run.json", "1700000000.0", &["1e300", "-1e300"]),
        ("run.json", "12.0", &["1e300"]),
    ] {
        let text = fs::read_to_string(original.join(file)).unwrap();
        assert!(text.contains(number), "{number} is not in {file}: {text}");
        for other in others {
            let copy = tempfile::tempdir().unwrap();
            for entry in fs::read_dir(&original).unwrap() {
                let entry = entry.unwrap();
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
            // Of `"second":7` the part behind the colon is the number.
            let key = number.rfind(':').map_or("", |at| &number[..=at]);
            fs::write(copy.path().join(file), text.replace(number, &format!("{key}{other}"))).unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| read(copy.path())));
            let outcome = outcome.unwrap_or_else(|_| panic!("{file}: {number} as {other}"));
            if let Err(error) = outcome {
                let line = error.to_string();
                assert!(
                    line.contains(file) && line.contains(": damaged: ") && !line.contains('\n'),
                    "{line}"
                );
                refused += 1;
            }
        }
    }
    assert!(refused >= 8, "{refused} are refused");
}
