//! Frames that a viewer never gets, gets twice, or gets out of order: told by the stamp's sequence number.

use crate::support::{air, config, play};

#[test]
fn every_tenth_frame_dropped_is_every_tenth_frame_lost() {
    let air = air(&config(&["drop unit=every:10 kind=video viewers=1..2"]));
    let run = air.play_to_its_end(&air.url, 4, std::time::Duration::from_secs(3));
    assert_eq!(run.failure().0, "stream_ended");
    let counts = air.origin.counts();
    let dropped: u64 = counts.viewers.iter().map(|viewer| viewer.dropped.video).sum();
    // A frame after which nothing came is not known to be missing.
    let last = |viewer: &&weir_origin::ViewerCounts| {
        viewer.dropped.video > 0 && (viewer.sent.video + viewer.dropped.video).is_multiple_of(10)
    };
    let unseen = counts.viewers.iter().filter(last).count() as u64;
    assert!(dropped >= 10, "{counts:?}");
    assert_eq!(run.total("lost") as u64, dropped - unseen);
    assert_eq!(run.total("frames") as u64, counts.sent().video);
    assert_eq!((run.total("duplicate"), run.total("reordered")), (0.0, 0.0));
}

#[test]
fn loss_duplicates_and_reordering_are_told_apart() {
    let air = air(&config(&[
        "drop unit=30..34 kind=video viewer=1",
        "duplicate unit=40..42 kind=video viewer=2",
        "swap unit=50 kind=video viewers=3..4",
        "drop unit=60 kind=video viewer=4",
    ]));
    let run = play(&air.url, "clients: 4, duration: 6s");
    assert_eq!(run.well(), 4, "{:?}", run.failures());
    assert_eq!((run.total("lost"), run.total("duplicate"), run.total("reordered")), (5.0 + 1.0, 3.0, 2.0));
    assert_eq!(run.total("timestamp_jumps"), 0.0);
}
