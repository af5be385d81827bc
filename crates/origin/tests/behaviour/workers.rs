//! Several workers, one origin.

use crate::peers::{Peer, Publisher, address, start, until};
use std::time::Duration;
use weir_origin::OriginConfig;
use weir_rtmp::ClientOptions;

#[test]
fn what_is_published_on_one_worker_reaches_viewers_on_all() {
    let origin = start(OriginConfig { workers: 4, ..OriginConfig::default() });
    let address = address(&origin);
    let names = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.starts_with("weir-origin-")).count()
    };
    assert!(names() >= 4);
    // The kernel spreads connections over the workers; with forty of them, none is left out.
    let mut early: Vec<_> = (0..40).map(|_| Peer::player(address, "a")).collect();
    for viewer in &mut early {
        viewer.until("consent to play", |viewer| viewer.began);
    }
    let mut publisher = Publisher::begin(address, "a");
    publisher.frames(30, 25, Duration::from_millis(2));
    until("30 frames", || origin.counts().stream("live/a").unwrap().received.video == 30);
    let mut late: Vec<_> = (0..40).map(|_| Peer::player(address, "a")).collect();
    for viewer in &mut early {
        viewer.until("30 frames", |viewer| viewer.numbers().len() == 30);
        assert_eq!(viewer.numbers(), (1..=30).collect::<Vec<_>>());
    }
    for viewer in &mut late {
        viewer.until("five frames", |viewer| viewer.numbers().len() == 5);
        assert_eq!(viewer.numbers(), [26, 27, 28, 29, 30]);
    }
    let mut second: Vec<_> = (0..8)
        .map(|_| {
            let options = ClientOptions::publish(format!("rtmp://{address}/live"), "live", "a");
            Peer::connect(address, options)
        })
        .collect();
    for peer in &mut second {
        peer.until("the refusal", |peer| peer.has_status("NetStream.Publish.BadName"));
    }
    publisher.end();
    for viewer in early.iter_mut().chain(&mut late) {
        viewer.until("the end", |viewer| viewer.ended);
    }
    let counts = origin.counts();
    assert_eq!((counts.links, counts.viewers.len()), (89, 80));
    assert_eq!(counts.sent().video, 40 * 30 + 40 * 5);
    let numbers: Vec<_> = counts.viewers.iter().map(|viewer| viewer.number).collect();
    assert_eq!(numbers, (1..=80).collect::<Vec<_>>());
}
