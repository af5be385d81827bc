//! What an RTMP publisher sends, and when, on a made-up clock.

mod bench;

use bench::dialogue::{Dialogue, POLITE};
use std::time::Duration;
use weir_clients::{Ending, PublishOptions, RtmpOptions, rtmp};
use weir_media::{Framing, Stamp};
use weir_metrics::common::{FRAMES, KEYFRAMES, MEDIA, PLAYED, SEND_LAG, SENT, UNITS};
use weir_metrics::{Failure, Moment};
use weir_rtmp::amf0::Value;
use weir_rtmp::flv::{AudioTag, VideoTag};
use weir_rtmp::message::{MediaKind, data};

const URL: &str = "rtmp://127.0.0.1/live/a";

fn publishing(options: &PublishOptions) -> (Dialogue, Moment) {
    let workload = rtmp::publish(&[URL.to_owned()], options, &RtmpOptions::default()).unwrap();
    let mut dialogue = Dialogue::new(&workload, 0, POLITE);
    dialogue.advance(Duration::from_millis(30));
    dialogue.connect();
    let start = dialogue.rig.now;
    (dialogue, start)
}

/// Lets time pass in steps of a millisecond, so that the server sees when each frame came.
fn run(dialogue: &mut Dialogue, milliseconds: u64) {
    for _ in 0..milliseconds {
        dialogue.advance(Duration::from_millis(1));
        dialogue.talk();
    }
}

#[test]
fn a_stream_begins_with_its_description_and_its_decoders() {
    let (mut dialogue, _) = publishing(&PublishOptions::default());
    dialogue.talk();
    let metadata = data::metadata(&dialogue.got[0].payload).unwrap().unwrap();
    assert_eq!(metadata.get("width").and_then(Value::as_number), Some(640.0));
    assert_eq!(metadata.get("framerate").and_then(Value::as_number), Some(25.0));
    assert!(VideoTag::parse(&dialogue.got[1].payload).unwrap().is_sequence_header());
    assert!(AudioTag::parse(&dialogue.got[2].payload).unwrap().is_sequence_header());
    assert!(VideoTag::parse(&dialogue.got[3].payload).unwrap().is_keyframe());
}

#[test]
fn frames_are_sent_when_the_source_says() {
    let (mut dialogue, start) = publishing(&PublishOptions::default());
    run(&mut dialogue, 10_000);
    let pictures: Vec<_> = dialogue
        .got
        .iter()
        .filter(|got| got.kind == MediaKind::Video && VideoTag::parse(&got.payload).unwrap().is_frame())
        .collect();
    assert_eq!(pictures.len(), 251);
    for (frame, got) in pictures.iter().enumerate() {
        assert_eq!(u64::from(got.timestamp), frame as u64 * 40);
        assert_eq!(got.at.since(start), Duration::from_millis(frame as u64 * 40));
        assert_eq!(VideoTag::parse(&got.payload).unwrap().is_keyframe(), frame % 50 == 0);
        let stamp = Stamp::find(&got.payload[5..], Framing::LengthPrefixed).unwrap();
        assert_eq!(
            (stamp.sequence_number as usize, stamp.captured.monotonic_nanos),
            (frame, got.at.as_nanos())
        );
    }
    let (_, _, figures) = dialogue.outcome();
    assert_eq!((figures.counter(FRAMES), figures.counter(KEYFRAMES)), (251, 6));
    assert_eq!(figures.counter(UNITS), dialogue.got.len() as u64);
    let payload: usize = dialogue.got.iter().map(|got| got.payload.len()).sum();
    // The server has taken the wrapper off the metadata.
    assert_eq!(figures.counter(MEDIA), payload as u64 + 16);
    assert!(figures.counter(SENT) > figures.counter(MEDIA));
    assert_eq!((figures.counter(PLAYED), figures.spread(SEND_LAG).max()), (1, 0));
    let rate = figures.counter(MEDIA) as f64 * 8.0 / 10.0;
    assert!((0.97e6..=1.03e6).contains(&rate), "{rate} bit/s");
}

#[test]
fn a_generator_that_was_late_sends_everything_and_says_how_late() {
    let (mut dialogue, _) = publishing(&PublishOptions::default());
    dialogue.talk();
    let before = dialogue.outcome().2.counter(FRAMES);
    // The clock leaps: the loop was busy elsewhere for a second.
    dialogue.rig.now = dialogue.rig.now + Duration::from_secs(1);
    dialogue.dispatch(weir_shard::Event::Timer);
    dialogue.talk();
    let figures = dialogue.outcome().2;
    assert_eq!(before + figures.counter(FRAMES), 26);
    let longest = figures.spread(SEND_LAG).max();
    assert!((975_000..=985_000).contains(&longest), "the frame of 21 ms was {longest} µs late");
}

#[test]
fn without_stamps_there_are_none() {
    let (mut dialogue, _) = publishing(&PublishOptions { stamp: false, ..PublishOptions::default() });
    run(&mut dialogue, 1_000);
    for got in dialogue.got.iter().filter(|got| got.kind == MediaKind::Video) {
        assert!(Stamp::find(&got.payload[5..], Framing::LengthPrefixed).is_none());
    }
}

#[test]
fn a_server_that_takes_nothing_any_more_is_a_send_timeout() {
    let (mut dialogue, _) = publishing(&PublishOptions::default());
    run(&mut dialogue, 1_000);
    dialogue.rig.room = 0;
    dialogue.advance(Duration::from_millis(9_900));
    assert_eq!(dialogue.outcome().0, None);
    // No more than the limit and a frame waits; the rest is not made yet.
    assert!(dialogue.rig.unsent.len() < 320 * 1024, "{}", dialogue.rig.unsent.len());
    dialogue.advance(Duration::from_millis(200));
    let (ending, _, _) = dialogue.outcome();
    assert_eq!(ending, Some(Ending::Failed(Failure::SendTimeout)));
    assert!(dialogue.rig.closed);
}

#[test]
fn a_server_that_reads_slowly_is_no_send_timeout_until_it_reads_no_more() {
    let (mut dialogue, _) = publishing(&PublishOptions::default());
    run(&mut dialogue, 1_000);
    // Its machine acknowledges what the kernel held; the kernel takes nothing new all the while.
    dialogue.rig.room = 0;
    for _ in 0..10 {
        dialogue.advance(Duration::from_secs(4));
        dialogue.rig.acknowledged += 1_000;
    }
    assert_eq!(dialogue.outcome().0, None);
    // What it took last is seen within a second.
    dialogue.advance(Duration::from_millis(9_900));
    assert_eq!(dialogue.outcome().0, None);
    dialogue.advance(Duration::from_millis(1_200));
    assert_eq!(dialogue.outcome().0, Some(Ending::Failed(Failure::SendTimeout)));
}

#[test]
fn a_server_that_takes_again_gets_everything_with_its_lag() {
    let (mut dialogue, _) = publishing(&PublishOptions::default());
    run(&mut dialogue, 1_000);
    dialogue.rig.room = 0;
    dialogue.advance(Duration::from_secs(8));
    dialogue.rig.make_room(&mut *dialogue.client, usize::MAX);
    dialogue.talk();
    run(&mut dialogue, 1_000);
    let (ending, _, figures) = dialogue.outcome();
    assert_eq!((ending, figures.counter(FRAMES)), (None, 251));
    let pictures = dialogue.got.iter().filter(|got| got.kind == MediaKind::Video).count();
    assert_eq!(pictures, 252, "all frames and the decoder's configuration");
    assert!(figures.spread(SEND_LAG).max() > 5_000_000, "{}", figures.spread(SEND_LAG).max());
}
