//! How runs that end early end for the shell: exit codes, and what the lines said meanwhile.

use crate::support::{air, config, free_port, measure, play, shared};
use std::time::{Duration, Instant};

#[test]
fn an_aborting_threshold_is_108() {
    let _machine = shared();
    let air = air(&config(&["close viewer=2 at=1s"]));
    let began = Instant::now();
    let run =
        measure(["play", &air.url, "-c", "4", "-d", "60s", "--warmup", "0s", "--abort", "slots_failed < 1"]);
    assert_eq!((run.code, &run.summary["outcome"]["aborted"]), (108, &"slots_failed < 1".into()));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}

#[test]
fn a_run_whose_clients_all_fail_ends_and_its_lines_say_how() {
    let _machine = shared();
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let run = play(&url, "-c 7 -d 90s --warmup 0s --drain 200ms -v");
    assert_eq!((run.code, &run.summary["outcome"]), (97, &"nobody_left".into()));
    assert!(run.err.contains("7 failed (connection_refused: "), "{}", run.err);
}
