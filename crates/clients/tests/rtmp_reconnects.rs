//! RTMP clients whose link is lost and who are to come back: one client each, however often that happens.

mod bench;

use bench::dialogue::{Answer, Dialogue, Manners, POLITE};
use std::time::Duration;
use weir_clients::{Ending, PlayOptions, PublishOptions, Return, RtmpOptions, Timeouts, Workload, rtmp};
use weir_metrics::common::{
    AWAY, AWAY_TIME, CUT_OFF, FRAMES, LEFT_AWAY, PLAYED, PLAYING, RECOVERY, RETURNED, SOURCE_TIME, STALLED,
    STALLS, STARTED, TIMESTAMP_JUMPS,
};
use weir_metrics::{Failure, Recorder};
use weir_rtmp::message::MediaKind;
use weir_shard::Event;

const URL: &str = "rtmp://127.0.0.1/live/a";
const FRAME: Duration = Duration::from_millis(40);
const SECOND: Duration = Duration::from_secs(1);

/// A witness, and one of the crowd.
const VIEWERS: [u32; 2] = [0, 5];

fn player(returns: Return) -> Workload {
    let options = PlayOptions { timeouts: Timeouts::all(5 * SECOND), returns, ..PlayOptions::default() };
    rtmp::play(&[URL.to_owned()], &options, &RtmpOptions::default()).unwrap()
}

/// The server sends N frames in time, with sound; the first is a keyframe.
fn stream(dialogue: &mut Dialogue, first: u32, frames: u32) {
    for frame in 0..frames {
        let timestamp = first + frame * 40;
        dialogue.video(timestamp, frame % 25 == 0, 1_000);
        dialogue.audio(timestamp);
        dialogue.advance(FRAME);
    }
}

fn lose(dialogue: &mut Dialogue, failure: Failure) {
    dialogue.dispatch(Event::Closed { failure, words: "" });
    assert!(dialogue.rig.stands_by && !dialogue.rig.closed);
}

/// Lets time pass up to the next attempt to connect.
fn await_attempt(dialogue: &mut Dialogue) {
    let end = dialogue.rig.now + 10 * SECOND;
    while dialogue.rig.reopened.is_none() {
        assert!(dialogue.rig.now < end, "no attempt");
        dialogue.advance(FRAME / 4);
    }
}

fn levels(figures: &Recorder) -> [u64; 2] {
    [PLAYING, AWAY].map(|level| figures.gauge(level))
}

#[test]
fn a_viewer_comes_back_to_its_stream_and_stalls_meanwhile() {
    for client in VIEWERS {
        let mut dialogue = Dialogue::new(&player(Return::USUAL), client, POLITE);
        dialogue.connect();
        stream(&mut dialogue, 90_000, 100);
        let (_, _, before) = dialogue.outcome();
        assert_eq!(([STARTED, PLAYED].map(|count| before.counter(count)), levels(&before)), ([1, 1], [1, 0]));

        lose(&mut dialogue, Failure::ClosedByPeer);
        let lost = dialogue.rig.now;
        await_attempt(&mut dialogue);
        assert!(dialogue.rig.now.since(lost) <= Duration::from_millis(100));
        dialogue.rig.reopened = None;
        lose(&mut dialogue, Failure::ConnectionRefused);
        dialogue.advance(3 * SECOND);
        let (ending, _, away) = dialogue.outcome();
        assert_eq!((ending, levels(&away), away.counter(CUT_OFF)), (None, [0, 1], 1), "client {client}");
        // A second of buffer, less what the crowd had not read.
        assert_eq!(away.counter(STALLS), 1);

        // The server has begun again, and so have its timestamps. What comes first is no beginning for a decoder.
        await_attempt(&mut dialogue);
        dialogue.begin_again(POLITE);
        dialogue.video(0, false, 1_000);
        dialogue.audio(0);
        let (_, _, opening) = dialogue.outcome();
        assert_eq!(levels(&opening), [0, 1], "client {client}");
        stream(&mut dialogue, 40, 100);
        dialogue.dispatch(Event::Stop);
        let (ending, failures, back) = dialogue.outcome();
        assert_eq!((ending, failures.len()), (Some(Ending::OnTime), 0), "client {client}");
        assert_eq!([STARTED, PLAYED, RETURNED].map(|count| back.counter(count)), [0, 0, 1]);
        assert_eq!(back.counter(TIMESTAMP_JUMPS), 0, "another link has timestamps of its own");
        assert_eq!(back.spread(AWAY_TIME).len(), 1);
        assert_eq!(back.spread(RECOVERY).len(), u64::from(client == 0));
        assert!(away.counter(STALLED) + opening.counter(STALLED) + back.counter(STALLED) > 1_000_000);
        // Four seconds of media, and none of the time without a link.
        let media = back.counter(SOURCE_TIME);
        assert!((3_900_000..4_100_000).contains(&media), "client {client}: {media}");
        assert_eq!(back.counter(FRAMES), 100, "client {client}");
    }
}

#[test]
fn without_being_asked_to_a_client_ends_with_its_link() {
    for client in VIEWERS {
        let mut dialogue = Dialogue::new(&player(Return::default()), client, POLITE);
        dialogue.connect();
        stream(&mut dialogue, 0, 25);
        dialogue.dispatch(Event::Closed { failure: Failure::ClosedByPeer, words: "" });
        let (ending, _, figures) = dialogue.outcome();
        assert_eq!(ending, Some(Ending::Failed(Failure::ClosedByPeer)));
        assert_eq!((figures.counter(CUT_OFF), levels(&figures)), (0, [0, 0]));
    }
}

#[test]
fn who_has_not_played_has_nothing_to_come_back_to() {
    let mut dialogue = Dialogue::new(&player(Return::USUAL), 0, POLITE);
    dialogue.dispatch(Event::Closed { failure: Failure::ConnectionRefused, words: "refused" });
    assert_eq!(dialogue.outcome().0, Some(Ending::Failed(Failure::ConnectionRefused)));
}

#[test]
fn a_viewer_whose_server_stays_away_fails_after_a_minute_by_what_broke_its_link() {
    let mut dialogue = Dialogue::new(&player(Return::USUAL), 5, POLITE);
    dialogue.connect();
    stream(&mut dialogue, 0, 25);
    lose(&mut dialogue, Failure::Reset);
    let lost = dialogue.rig.now;
    while !dialogue.rig.closed {
        assert!(dialogue.rig.now.since(lost) < 70 * SECOND);
        dialogue.advance(FRAME);
        if dialogue.rig.reopened.take().is_some() {
            dialogue.dispatch(Event::Closed { failure: Failure::ConnectionRefused, words: "refused" });
        }
    }
    assert!(dialogue.rig.now.since(lost) >= 60 * SECOND);
    let (ending, failures, figures) = dialogue.outcome();
    assert_eq!((ending, levels(&figures)), (Some(Ending::Failed(Failure::Reset)), [0, 0]));
    assert!(failures[0].words.contains("no connection again in "), "{}", failures[0].words);
}

#[test]
fn one_that_is_stopped_while_it_is_away_has_left_by_plan() {
    for has_link in [false, true] {
        let mut dialogue = Dialogue::new(&player(Return::USUAL), 5, POLITE);
        dialogue.connect();
        stream(&mut dialogue, 0, 25);
        lose(&mut dialogue, Failure::ClosedByPeer);
        if has_link {
            await_attempt(&mut dialogue);
            dialogue.begin_again(POLITE);
        }
        dialogue.dispatch(Event::Stop);
        let (ending, _, figures) = dialogue.outcome();
        assert_eq!((ending, figures.counter(LEFT_AWAY)), (Some(Ending::OnTime), 1), "{has_link}");
        assert!(dialogue.rig.closed);
    }
}

#[test]
fn a_publisher_comes_back_when_its_name_is_free_again_and_begins_its_material_anew() {
    let options = PublishOptions {
        timeouts: Timeouts::all(5 * SECOND),
        returns: Return::USUAL,
        ..PublishOptions::default()
    };
    let workload = rtmp::publish(&[URL.to_owned()], &options, &RtmpOptions::default()).unwrap();
    let mut dialogue = Dialogue::new(&workload, 0, POLITE);
    dialogue.connect();
    for _ in 0..50 {
        dialogue.advance(FRAME);
        dialogue.talk();
    }
    let first: Vec<_> = dialogue.got.drain(..).map(|got| (got.kind, got.timestamp)).take(20).collect();
    lose(&mut dialogue, Failure::Reset);
    await_attempt(&mut dialogue);
    let taken = Answer::Refuse("NetStream.Publish.BadName", "already publishing");
    dialogue.begin_again(Manners { request: taken, ..POLITE });
    assert!(dialogue.outcome().0.is_none(), "the server may hold the name for a while");
    await_attempt(&mut dialogue);
    dialogue.begin_again(POLITE);
    for _ in 0..50 {
        dialogue.advance(FRAME);
        dialogue.talk();
    }
    let second: Vec<_> = dialogue.got.drain(..).map(|got| (got.kind, got.timestamp)).take(20).collect();
    assert_eq!(first, second);
    assert!(first.iter().any(|(kind, _)| *kind == MediaKind::Video));
    let (ending, _, figures) = dialogue.outcome();
    assert_eq!((ending, levels(&figures), figures.counter(RETURNED)), (None, [1, 0], 1));
}
