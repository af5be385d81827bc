//! Publishers that leave in the middle.

use crate::support::{air, config, start};
use std::time::Duration;
use weir_runner::ErrorKind::Thresholds;
use weir_testing::soon;

#[test]
fn a_publisher_that_leaves_ends_the_stream_of_its_viewers() {
    let air = air(&config(&[]));
    let watching = start(&format!("workloads: [{{play: '{}', clients: 5, duration: 7s}}]", air.url));
    soon("all five play", || air.origin.counts().present() == 5);
    std::thread::sleep(Duration::from_secs(1));
    air.end_publisher();
    let run = watching.finish();
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("stream_ended", 5, "remote"));
    assert!(words.contains("NetStream.Play"), "{words}");
    // All have played, and none was left.
    assert_eq!((run.total("played"), run.missed), (5.0, Some(Thresholds)));
}
