//! Viewers of a server that has no keyframe for those who ask: they wait for the source's next as long as media comes, how far apart
//! those are is learnt from others, and what never shows a picture has failed in the end.

use super::stage::{PHASE_TIMEOUT, Stage, counter, server_address};
use std::time::Duration;
use weir_clients::{Ending, ShardRecorder};
use weir_metrics::Failure;
use weir_rtc::VideoCodec;
use weir_shard::Event;

/// A tenth of a second is between two pictures.
const PICTURE: Duration = Duration::from_millis(100);
const SECOND: u32 = 10;
/// A witness, and another client.
const VIEWERS: [u32; 2] = [0, 5];

/// The payloads of a keyframe and of another picture.
type Pictures = [&'static [&'static [u8]]; 2];

const H264: Pictures = [&[&[0x67, 66, 0, 30], &[0x68, 0xCE], &[0x65, 0x88, 1]], &[&[0x41, 0x9A, 1]]];
/// Parameter sets are in front of every picture.
const H264_SETS: Pictures = [H264[0], &[&[0x67, 66, 0, 30], &[0x68, 0xCE], &[0x41, 0x9A, 1]]];
/// A recovery point and no other keyframe.
const H264_REFRESH: Pictures =
    [&[&[0x67, 66, 0, 30], &[0x68, 0xCE], &[0x06, 6, 1, 0xC4, 0x80], &[0x41, 0x9A, 1]], H264[1]];
const H265: Pictures =
    [&[&[0x40, 1, 7], &[0x42, 1, 7], &[0x44, 1, 7], &[0x26, 1, 0xAF, 8]], &[&[0x02, 1, 0xD0, 8]]];
const VP8: Pictures = [&[&[0x10, 0x10, 1], &[0x00, 2]], &[&[0x10, 0x11, 1], &[0x00, 2]]];
const VP9: Pictures = [&[&[0x8C, 5, 0x82, 1]], &[&[0xCC, 5, 0x86, 1]]];
const AV1: Pictures = [&[&[0x28, 3, 0x08, 7, 7, 0x30, 0x10]], &[&[0x10, 0x30, 0x30, 8]]];

fn all() -> [(VideoCodec, Pictures); 7] {
    [
        (VideoCodec::H264, H264),
        (VideoCodec::H264, H264_SETS),
        (VideoCodec::H264, H264_REFRESH),
        (VideoCodec::H265, H265),
        (VideoCodec::Vp8, VP8),
        (VideoCodec::Vp9, VP9),
        (VideoCodec::Av1, AV1),
    ]
}

fn viewer(client: u32, codec: VideoCodec, recorder: Option<ShardRecorder>) -> Stage {
    Stage::of_codec(client, codec, recorder)
}

/// It gets a picture.
fn show(stage: &mut Stage, payloads: &[&[u8]]) {
    for packet in stage.server.as_mut().unwrap().picture(payloads) {
        stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &packet);
    }
    pass(stage);
}

fn pass(stage: &mut Stage) {
    stage.exchange();
    stage.handle_timeout(PICTURE);
}

/// It gets so many pictures without a keyframe.
fn wait(stage: &mut Stage, pictures: &Pictures, tenths: u32) {
    (0..tenths).for_each(|_| show(stage, pictures[1]));
}

/// Waits that began and that are over, those that play, and those that failed.
fn outcome(stage: &mut Stage) -> [u64; 4] {
    let figures = stage.figures();
    let counts = ["keyframe_waits", "keyframe_waits_over", "played"].map(|name| counter(&figures, name));
    let failed = stage.rig.world.take_ended().iter().filter(|it| matches!(it.1, Ending::Failed(_))).count();
    [counts[0], counts[1], counts[2], failed as u64]
}

/// What a thread knows once a witness has had two keyframes this far apart.
fn learnt(codec: VideoCodec, pictures: &Pictures, tenths: u32) -> ShardRecorder {
    let mut stage = viewer(0, codec, None);
    for _ in 0..2 {
        show(&mut stage, pictures[0]);
        wait(&mut stage, pictures, tenths - 1);
    }
    show(&mut stage, pictures[0]);
    stage.dispatch(Event::Stop);
    assert_eq!(outcome(&mut stage), [1, 1, 1, 0], "{codec}");
    stage.rig.world
}

#[test]
fn a_viewer_waits_for_the_next_keyframe_while_media_comes_and_asks_on() {
    for client in VIEWERS {
        for (codec, pictures) in all() {
            let mut stage = viewer(client, codec, None);
            wait(&mut stage, &pictures, 12 * SECOND);
            assert!(PHASE_TIMEOUT * 4 <= PICTURE * 12 * SECOND);
            assert_eq!(outcome(&mut stage), [1, 0, 0, 0], "{client}, {codec}");
            show(&mut stage, pictures[0]);
            assert_eq!(outcome(&mut stage), [0, 1, 1, 0], "{client}, {codec}");
            stage.dispatch(Event::Stop);
            let plis = counter(&stage.figures(), "rtc.plis");
            assert!((11..=13).contains(&plis), "{client}, {codec}: {plis}");
        }
    }
}

#[test]
fn what_comes_while_it_waits_is_known() {
    let mut stage = viewer(0, VideoCodec::H264, None);
    wait(&mut stage, &H264, 4 * SECOND);
    show(&mut stage, H264[0]);
    wait(&mut stage, &H264, 10);
    let figures = stage.figures();
    let [waited, frames] = ["waited_frames", "frames"].map(|name| counter(&figures, name));
    // The beginning of the keyframe came while it waited for its end.
    assert_eq!((waited, frames), (41, 51));
    let [waited, media] = ["waited_media", "media"].map(|name| counter(&figures, name));
    assert!(waited >= 40 * 3 && waited < media, "{waited} {media}");
}

#[test]
fn how_far_apart_keyframes_are_is_learnt_of_each_codec() {
    for client in VIEWERS {
        for (codec, pictures) in all() {
            // Longer than a time-out, and shorter: of no other viewer a keyframe has passed this one by.
            for (apart, later, is_excused) in [(80, 7, true), (80, 13, false), (10, 2, true), (10, 10, false)]
            {
                let mut stage = viewer(client, codec, Some(learnt(codec, &pictures, apart)));
                wait(&mut stage, &pictures, later * SECOND);
                let over = u64::from(!is_excused);
                assert_eq!(outcome(&mut stage), [1, over, 0, 0], "{client}, {codec}, {apart}, {later}");
            }
        }
    }
}

#[test]
fn a_viewer_that_never_gets_a_keyframe_has_failed_in_the_end() {
    for client in VIEWERS {
        let mut stage = viewer(client, VideoCodec::H264, None);
        wait(&mut stage, &H264, 17 * SECOND);
        assert_eq!(outcome(&mut stage), [1, 0, 0, 0], "{client}");
        wait(&mut stage, &H264, SECOND + 1);
        let (failure, words) = stage.failure();
        assert_eq!((failure, outcome(&mut stage)), (Failure::NoMedia, [0, 1, 0, 0]), "{client}");
        assert!(words.contains("no decodable frame"), "{words}");
    }
}

#[test]
fn silence_is_no_wait_for_a_keyframe() {
    for client in VIEWERS {
        let mut stage = viewer(client, VideoCodec::H264, None);
        wait(&mut stage, &H264, 4 * SECOND);
        (0..28).for_each(|_| pass(&mut stage));
        assert_eq!(outcome(&mut stage)[3], 0, "{client}");
        (0..2).for_each(|_| pass(&mut stage));
        assert_eq!(stage.failure().0, Failure::NoMedia, "{client}");
    }
}

#[test]
fn a_viewer_that_joins_within_a_keyframe_waits_for_the_next() {
    for client in VIEWERS {
        for (codec, [keyframe, other]) in
            [(VideoCodec::H264, H264), (VideoCodec::H265, H265), (VideoCodec::Vp8, VP8)]
        {
            let mut stage = viewer(client, codec, None);
            show(&mut stage, &keyframe[keyframe.len() - 1..]);
            wait(&mut stage, &[keyframe, other], 12 * SECOND);
            assert_eq!(outcome(&mut stage), [1, 0, 0, 0], "{client}, {codec}");
            show(&mut stage, keyframe);
            assert_eq!(outcome(&mut stage), [0, 1, 1, 0], "{client}, {codec}");
        }
    }
    // What lacks its parameter sets again is no keyframe to wait for.
    let mut stage = viewer(0, VideoCodec::H264, None);
    let idr = &H264[0][2..];
    show(&mut stage, idr);
    wait(&mut stage, &H264, 15);
    show(&mut stage, idr);
    wait(&mut stage, &H264, 20);
    let (failure, words) = stage.failure();
    assert!(failure == Failure::NoMedia && words.contains("without SPS and PPS"), "{words}");
}

/// It gets sound for this many tenths of a second.
fn hear(stage: &mut Stage, tenths: u32) {
    for _ in 0..tenths {
        for _ in 0..5 {
            let sound = stage.server.as_mut().unwrap().sound();
            stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &sound);
        }
        pass(stage);
    }
}

/// A server that holds pictures back until a keyframe comes sends sound meanwhile. A camera that is off has none at all.
#[test]
fn sound_is_media_where_pictures_were_agreed_on_and_the_whole_stream_in_the_end() {
    for client in VIEWERS {
        let mut stage = viewer(client, VideoCodec::H264, None);
        hear(&mut stage, 17 * SECOND);
        assert_eq!(outcome(&mut stage), [1, 0, 0, 0], "{client}");
        hear(&mut stage, 15);
        let figures = stage.figures();
        let counts =
            ["keyframe_waits_over", "played", "rtc.without_pictures"].map(|name| counter(&figures, name));
        assert_eq!(counts, [1, 1, 1], "{client}");
        let startup = figures.spread(weir_metrics::common::STARTUP);
        assert!(
            (startup.len(), startup.max() < 1_000_000) == (1, true),
            "it has played since the first sound"
        );
        hear(&mut stage, 10 * SECOND);
        let figures = stage.figures();
        assert_eq!(["stalls", "starved"].map(|name| counter(&figures, name)), [0, 0], "{client}");
        let played = counter(&figures, "source_time");
        assert!((9_000_000..=11_000_000).contains(&played), "{client}: {played}");
        // The camera is switched on.
        show(&mut stage, H264[0]);
        wait(&mut stage, &H264, 3 * SECOND);
        let figures = stage.figures();
        assert_eq!(["stalls", "starved"].map(|name| counter(&figures, name)), [0, 0], "{client}");
        let played = counter(&figures, "source_time");
        assert!((2_500_000..=3_500_000).contains(&played), "{client}: {played}");
        // Another one, which joins later, has had no keyframe pass by either.
        stage.dispatch(Event::Stop);
        assert_eq!(outcome(&mut stage)[3], 0);
    }
}

#[test]
fn sound_alone_is_a_failure_where_another_viewer_has_had_pictures() {
    let mut stage = viewer(5, VideoCodec::H264, Some(learnt(VideoCodec::H264, &H264, 10)));
    hear(&mut stage, 19 * SECOND);
    assert_eq!(outcome(&mut stage)[2..], [0, 1]);
    assert_eq!(counter(&stage.figures(), "rtc.without_pictures"), 0);
}

#[test]
fn sound_alone_is_played_and_waits_for_nothing() {
    let (mut stage, offer) = Stage::new(0);
    let (server, answer) = super::stage::Server::answer(&offer, stage.rig.now);
    stage.server = Some(server);
    let (before, video) = answer.split_once("m=video").unwrap();
    let behind = video.split_once("m=audio").map(|(_, behind)| format!("m=audio{behind}"));
    let refused =
        format!("{before}m=video 0 UDP/TLS/RTP/SAVPF 0\r\na=inactive\r\n{}", behind.unwrap_or_default());
    stage.answer("201 Created", "Location: /session/1\r\n", &refused);
    stage.agree_on_keys();
    let sound = stage.server.as_mut().unwrap().sound();
    stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &sound);
    assert_eq!(outcome(&mut stage), [0, 0, 1, 0]);
}

#[test]
fn a_keyframe_of_which_a_packet_came_late_is_not_held_against_the_server() {
    let mut stage = viewer(0, VideoCodec::H264, None);
    wait(&mut stage, &H264, 2 * SECOND);
    let mut packets = stage.server.as_mut().unwrap().picture(H264[0]);
    let late = packets.remove(1);
    for packet in packets.iter().chain([&late]) {
        stage.rig.tell_datagram(&mut *stage.viewer, server_address(), packet);
        pass(&mut stage);
    }
    wait(&mut stage, &H264, 12 * SECOND);
    assert_eq!(outcome(&mut stage), [1, 0, 0, 0]);
    show(&mut stage, H264[0]);
    assert_eq!(outcome(&mut stage), [0, 1, 1, 0]);
}

#[test]
fn keyframes_that_are_not_whole_are_no_excuse() {
    for client in VIEWERS {
        let mut stage = viewer(client, VideoCodec::H264, None);
        let cut = |stage: &mut Stage| {
            let mut packets = stage.server.as_mut().unwrap().picture(H264[0]);
            packets.remove(1);
            for packet in packets {
                stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &packet);
            }
            pass(stage);
        };
        // The first may have been under way when it joined.
        cut(&mut stage);
        wait(&mut stage, &H264, 25);
        assert_eq!(outcome(&mut stage), [1, 0, 0, 0], "{client}");
        cut(&mut stage);
        // What is missing is given up after two seconds.
        wait(&mut stage, &H264, 15);
        assert_eq!(outcome(&mut stage), [0; 4], "{client}");
        wait(&mut stage, &H264, 8);
        assert_eq!(outcome(&mut stage), [0, 1, 0, 0], "{client}");
        wait(&mut stage, &H264, 10);
        assert_eq!(stage.failure().0, Failure::NoMedia, "{client}");
        // It asks on after each.
        let plis = counter(&stage.figures(), "rtc.plis");
        assert!((5..=8).contains(&plis), "{client}: {plis}");
    }
}
