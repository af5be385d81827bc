//! What waits in the kernel when a run is interrupted is counted.

use crate::interruptions::seconds_written;
use crate::support::{air, config, quiet, soon, start_measuring, undisturbed, weir};

/// A viewer of the crowd leaves two thirds of a second of its stream in the kernel on the mean, which was a sixth of what is
/// measured here.
#[test]
fn an_interrupted_run_lacks_nothing_that_waits_for_its_crowd() {
    let _machine = quiet();
    undisturbed(|| {
        let air = air(&config(&[]));
        let mut command = weir();
        command.args([
            "play",
            &air.url,
            "-c",
            "64",
            "-d",
            "60s",
            "--warmup",
            "1s",
            "--witness-every",
            "1000",
        ]);
        command.args(["--drain", "300ms", "--threshold", "bitrate.ratio > 0.92"]);
        let measuring = start_measuring(&mut command);
        soon("six seconds are written", || seconds_written(&measuring.directory()) >= 6);
        measuring.process.interrupt();
        let run = measuring.finish();
        assert_eq!(run.code, 105);
        assert_eq!(run.summary["thresholds"][0]["passed"], true, "{:#}", run.summary["thresholds"]);
    });
}
