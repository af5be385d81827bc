//! Bytes and messages, to the last one.

use crate::support::{air, config, measure};
use std::time::Duration;

#[test]
fn viewers_count_every_byte_and_message_that_the_origin_sent() {
    for merge in [Duration::ZERO, Duration::from_millis(350)] {
        let air = air(&weir_origin::OriginConfig { merge, ..config(&[]) });
        // Four of the seven are witnesses, three read in batches.
        let run = air.play_to_its_end(&air.url, 7, Duration::from_millis(2_500));
        let (kind, clients, _, words) = run.failure();
        assert_eq!((kind.as_str(), clients), ("stream_ended", 7), "{words}");
        let counts = air.origin.counts();
        let sent = counts.sent();
        assert!(sent.video >= 7 * 40, "{sent:?}");
        // By the second's edge, what waits unread counts by its likely share of media; of a message that is not whole then it may be too
        // much, which is not taken back (`engine/src/arrivals.rs`).
        let beyond = (run.total("media") as u64).checked_sub(sent.payload_bytes).expect("all that was sent");
        assert!(beyond * 100 < sent.payload_bytes, "{beyond} of {}", sent.payload_bytes);
        assert_eq!(run.total("units") as u64, sent.packets());
        assert_eq!(run.total("frames") as u64, sent.video);
        assert_eq!(run.total("rtmp.audio_frames") as u64, sent.audio);
        // All bytes of the links, both ways of looking at them.
        let link_bytes: u64 = counts.viewers.iter().map(|viewer| viewer.link_bytes).sum();
        assert_eq!(run.total("received") as u64, link_bytes);
        assert_eq!(counts.viewers.len(), 7);
    }
}

#[test]
fn a_publisher_counts_what_the_origin_received() {
    let origin = weir_origin::Origin::start(&config(&[])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = measure(&format!("drain: 500ms\nworkloads: [{{publish: '{url}', duration: 3s}}]"));
    let counts = origin.counts();
    let received = counts.stream("live/a").unwrap().received;
    assert!(received.video >= 50, "{received:?}");
    assert_eq!(run.total("frames") as u64, received.video);
    assert_eq!(run.total("rtmp.audio_frames") as u64, received.audio);
    assert_eq!(run.total("units") as u64, received.packets());
    assert_eq!(run.well(), 1);
}

#[test]
fn one_publisher_command_feeds_two_servers_the_same() {
    let servers = [(); 2].map(|()| weir_origin::Origin::start(&config(&[])).unwrap());
    let urls = servers.each_ref().map(|origin| format!("rtmp://{}/live/a", origin.address("rtmp").unwrap()));
    let run = measure(&format!(
        "drain: 500ms\nworkloads: [{{publish: ['{}', '{}'], duration: 3s}}]",
        urls[0], urls[1]
    ));
    assert_eq!((run.slots("planned"), run.well()), (2, 2));
    let received = servers.each_ref().map(|origin| origin.counts().stream("live/a").unwrap().received);
    assert!(received.iter().all(|tally| tally.video >= 50), "{received:?}");
    assert_eq!(run.total("units") as u64, received[0].packets() + received[1].packets());
    assert_eq!(run.total("frames") as u64, received[0].video + received[1].video);
}
