//! The scenario for CI that README.md shows.

use crate::support::{Nginx, measure, quiet, undisturbed};

#[test]
fn the_scenario_of_the_readme_passes_at_an_idle_nginx() {
    let _machine = quiet();
    undisturbed(|| {
        let nginx = Nginx::start();
        let readme = include_str!("../../../../../README.md");
        let scenario = readme.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("load.yaml");
        std::fs::write(&file, scenario.replace("rtmp://127.0.0.1/live/a", &nginx.url("a"))).unwrap();
        // Of all that are called nginx on this machine, the test's own; and for as long as makes a window of ten seconds.
        let watch = format!("watch.0=pid={}", nginx.pid());
        let run = measure(["run", file.to_str().unwrap(), "-d", "12s", "--set", &watch]);
        assert_eq!(run.code, 0, "{}", run.err);
        assert_eq!(run.summary["workloads"][1]["total"]["played"]["total"], 200.0);
    });
}
