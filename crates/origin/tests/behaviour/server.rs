//! Publishing, playing, refusing: the ordinary life of the origin.

use crate::peers::{Peer, Publisher, TEST_TIMEOUT, address, origin, start, until};
use std::net::TcpListener;
use std::time::Duration;
use weir_origin::{Departure, History, MissingStream, Origin, OriginConfig, OriginError, RTMP};
use weir_rtmp::ClientOptions;
use weir_rtmp::handshake::Scheme;

const TICK: Duration = Duration::from_millis(2);

#[test]
fn every_viewer_gets_every_unit_and_the_counts_say_so() {
    for merge in [0, 100] {
        let origin = start(OriginConfig { merge: Duration::from_millis(merge), ..OriginConfig::default() });
        let address = address(&origin);
        let mut viewers: Vec<_> = (0..5).map(|_| Peer::player(address, "a")).collect();
        for viewer in &mut viewers {
            viewer.until("consent to play", |viewer| viewer.began);
        }
        let mut publisher = Publisher::begin(address, "a");
        publisher.frames(100, 25, TICK);
        for viewer in &mut viewers {
            viewer.until("100 frames", |viewer| viewer.numbers().len() == 100);
            assert_eq!(viewer.numbers(), (1..=100).collect::<Vec<_>>());
            assert!(viewer.units.iter().find(|unit| unit.number().is_some()).unwrap().is_keyframe());
        }
        publisher.end();
        for viewer in &mut viewers {
            viewer.until("the end", |viewer| viewer.ended);
            assert!(viewer.has_status("NetStream.Play.UnpublishNotify"));
        }
        until("the counts of all", || origin.counts().viewers.len() == 5);
        let counts = origin.counts();
        assert_eq!(counts.links, 6);
        for viewer in &viewers {
            let truth = counts.viewer(viewer.local()).unwrap();
            assert_eq!((truth.sent.video, truth.sent.setup), (100, 2));
            assert_eq!(truth.link_bytes, viewer.received);
            // What the origin says of itself before the stream (onStatus and the like) is no media.
            let media: u64 = viewer
                .units
                .iter()
                .filter(|unit| unit.kind != weir_rtmp::message::MediaKind::Data)
                .map(|unit| u64::from(unit.length))
                .sum();
            let metadata = truth.sent.payload_bytes - media;
            assert!(metadata > 0 && metadata < 200, "{metadata}");
        }
        assert_eq!(counts.stream("live/a").unwrap().received.video, 100);
    }
}

#[test]
fn a_viewer_who_comes_late_starts_at_the_cached_keyframe() {
    let origin = origin(&[]);
    let mut publisher = Publisher::begin(address(&origin), "a");
    publisher.frames(30, 25, TICK);
    until("30 frames", || origin.counts().stream("live/a").is_some_and(|s| s.received.video == 30));
    let mut viewer = Peer::player(address(&origin), "a");
    viewer.until("five frames", |viewer| viewer.numbers().len() >= 5);
    assert_eq!(viewer.numbers(), [26, 27, 28, 29, 30]);
    publisher.frames(3, 25, TICK);
    viewer.until("three more", |viewer| viewer.numbers().len() >= 8);
    assert_eq!(viewer.numbers()[5..], [31, 32, 33]);
}

#[test]
fn without_a_cache_a_viewer_starts_at_the_next_keyframe() {
    let history = History { gop_cache: false, ..History::default() };
    let origin = start(OriginConfig { history, ..OriginConfig::default() });
    let mut publisher = Publisher::begin(address(&origin), "a");
    publisher.frames(30, 25, TICK);
    let mut viewer = Peer::player(address(&origin), "a");
    viewer.until("consent to play", |viewer| viewer.began);
    publisher.frames(30, 25, TICK);
    viewer.until("frames", |viewer| viewer.numbers().len() >= 10);
    assert_eq!(viewer.numbers(), (51..=60).collect::<Vec<_>>());
    let counts = origin.counts();
    let truth = counts.viewer(viewer.local()).unwrap();
    assert_eq!((truth.sent.video, truth.skipped), (10, 0));
}

#[test]
fn both_handshakes_are_understood() {
    let origin = origin(&[]);
    let address = address(&origin);
    let mut publisher = Publisher::begin(address, "a");
    publisher.frames(5, 25, TICK);
    for handshake in [Scheme::Simple, Scheme::Digest] {
        let options = ClientOptions::play(format!("rtmp://{address}/live"), "live", "a");
        let mut viewer = Peer::connect(address, ClientOptions { handshake, ..options });
        viewer.until("five frames", |viewer| viewer.numbers().len() == 5);
    }
}

#[test]
fn a_name_has_one_publisher_at_a_time() {
    let origin = origin(&[]);
    let address = address(&origin);
    let first = Publisher::begin(address, "a");
    let _other_name = Publisher::begin(address, "b");
    let options = ClientOptions::publish(format!("rtmp://{address}/live"), "live", "a?key=x");
    let mut second = Peer::connect(address, options);
    second.until("the refusal", |peer| peer.has_status("NetStream.Publish.BadName"));
    second.until("the connection's end", |peer| peer.end.is_some());
    first.end();
    until("the name is free", || !origin.counts().stream("live/a").unwrap().live);
    let _third = Publisher::begin(address, "a");
}

#[test]
fn a_viewer_of_a_missing_stream_waits_or_is_refused() {
    let waiting = origin(&[]);
    let mut viewer = Peer::player(address(&waiting), "a");
    viewer.until("consent to play", |viewer| viewer.began);
    Publisher::begin(address(&waiting), "a").frames(5, 25, TICK);
    viewer.until("five frames", |viewer| viewer.numbers().len() == 5);

    let refusing = start(OriginConfig { missing_stream: MissingStream::Refuse, ..OriginConfig::default() });
    let mut viewer = Peer::player(address(&refusing), "a");
    viewer.until("the refusal", |viewer| viewer.has_status("NetStream.Play.StreamNotFound"));
    viewer.until("the connection's end", |viewer| viewer.end.is_some());
    assert!(!viewer.began && refusing.counts().viewers.is_empty());
}

#[test]
fn viewers_stay_for_the_next_publisher_or_are_sent_away() {
    let staying = origin(&[]);
    let mut viewer = Peer::player(address(&staying), "a");
    viewer.until("consent to play", |viewer| viewer.began);
    for _ in 0..2 {
        let mut publisher = Publisher::begin(address(&staying), "a");
        publisher.frames(5, 25, TICK);
        viewer.until("five frames", |viewer| viewer.numbers().len() == 5);
        assert_eq!(viewer.numbers(), [1, 2, 3, 4, 5]);
        publisher.end();
        viewer.until("the end", |viewer| viewer.ended);
        viewer.until("its words", |viewer| viewer.has_status("NetStream.Play.Stop"));
        (viewer.ended, viewer.units, viewer.statuses) = (false, Vec::new(), Vec::new());
    }
    let closing = start(OriginConfig { departure: Departure::Close, ..OriginConfig::default() });
    let mut viewer = Peer::player(address(&closing), "a");
    viewer.until("consent to play", |viewer| viewer.began);
    let mut publisher = Publisher::begin(address(&closing), "a");
    publisher.frames(5, 25, TICK);
    // Gone without a word: the link just ends.
    drop(publisher);
    viewer.until("the connection's end", |viewer| viewer.end.is_some());
    assert!(viewer.ended && viewer.numbers().len() == 5);
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for workers in [1, 3] {
        let config = OriginConfig { workers, ..OriginConfig::default() }.listening(&RTMP, address);
        match Origin::start(&config) {
            Err(error @ OriginError::InUse { .. }) => {
                assert!(error.to_string().contains(&address.to_string()), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    let first = origin(&[]);
    let config = OriginConfig { workers: 2, ..OriginConfig::default() }
        .listening(&RTMP, first.address("rtmp").unwrap());
    assert!(matches!(Origin::start(&config), Err(OriginError::InUse { .. })));
}

#[test]
fn an_origin_that_stops_gives_its_port_and_threads_back() {
    let origin = start(OriginConfig { workers: 2, ..OriginConfig::default() });
    let address = address(&origin);
    let mut viewer = Peer::player(address, "a");
    viewer.until("consent to play", |viewer| viewer.began);
    let began = std::time::Instant::now();
    origin.stop();
    assert!(began.elapsed() < TEST_TIMEOUT);
    viewer.until("the connection's end", |viewer| viewer.end.is_some());
    Origin::start(&OriginConfig::default().listening(&RTMP, address)).unwrap().stop();
}
