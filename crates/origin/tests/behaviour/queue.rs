//! Viewers that are slow.

use crate::peers::{Peer, Publisher, address, start, until};
use std::time::Duration;
use weir_origin::{History, OriginConfig, Patience};

#[test]
fn a_slow_viewer_is_skipped_to_a_keyframe_and_loses_what_is_counted() {
    for merge in [0, 20] {
        let history = History { queue_bytes: 2_000_000, ..History::default() };
        let merge = Duration::from_millis(merge);
        let origin = start(OriginConfig { merge, history, ..OriginConfig::default() });
        let address = address(&origin);
        let mut slow = Peer::player(address, "a");
        slow.until("consent to play", |viewer| viewer.began);
        let mut publisher = Publisher::begin(address, "a");
        // The kernel's buffers take several megabytes before the origin feels anything.
        for n in 0..600_u32 {
            publisher.frame(n.is_multiple_of(20), 50_000);
            if n.is_multiple_of(50) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        until("600 frames", || origin.counts().stream("live/a").unwrap().received.video == 600);
        slow.until("the last frame", |viewer| viewer.numbers().last() == Some(&600));

        let numbers = slow.numbers();
        let gaps: Vec<_> = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).collect();
        assert!(!gaps.is_empty(), "30 MB fitted into the kernel's buffers");
        for gap in gaps {
            assert!(slow.frame(gap[1]).is_keyframe(), "{gap:?}");
        }
        let counts = origin.counts();
        let truth = counts.viewer(slow.local()).unwrap();
        assert_eq!(truth.sent.video, numbers.len() as u64);
        assert_eq!(truth.sent.video + truth.skipped, 600);
        assert_eq!(truth.link_bytes, slow.received);
    }
}

#[test]
fn a_viewer_that_takes_nothing_is_let_go() {
    let patience = Patience { viewer: Duration::from_millis(500), ..Patience::default() };
    let history = History { queue_bytes: 1_000_000, ..History::default() };
    let origin = start(OriginConfig { patience, history, ..OriginConfig::default() });
    let mut dead = Peer::player(address(&origin), "a");
    dead.until("consent to play", |viewer| viewer.began);
    let mut publisher = Publisher::begin(address(&origin), "a");
    let mut n = 0_u32;
    until("the viewer is let go", || {
        publisher.frame(n.is_multiple_of(20), 100_000);
        n += 1;
        origin.counts().present() == 0
    });
}
