//! What an RTMP player measures equals what was done to it, on a made-up clock.

mod bench;

use bench::dialogue::{Dialogue, POLITE, STREAM};
use std::time::Duration;
use weir_clients::{Ending, HostClock, PlayOptions, RtmpOptions, Timeouts, Workload, rtmp};
use weir_media::{Framing, Stamp};
use weir_metrics::common::{
    CONNECT, DRIFT, DUPLICATE, FIRST_BYTE, FIRST_FRAME, FRAMES, HANDSHAKE, KEYFRAMES, LATENCY, LOST, MEDIA,
    PLAYED, PLAYING, READS, RECEIVED, REORDERED, REQUEST, SOURCE, SOURCE_TIME, STALL_LENGTH, STALLED, STALLS,
    STAMPED, STARTUP, STARVED, STARVING, TIMESTAMP_JUMP, TIMESTAMP_JUMPS, UNITS,
};
use weir_metrics::{Failure, Recorder, Spread};
use weir_rtmp::amf0::Object;
use weir_rtmp::flv;
use weir_rtmp::message::{MediaKind, data};
use weir_rtmp::{Server, ServerOptions};
use weir_shard::Event;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const WITNESS: u32 = 0;
const CROWD: u32 = 7;

fn players() -> Workload {
    rtmp::play(&["rtmp://127.0.0.1/live/a".to_owned()], &PlayOptions::default(), &RtmpOptions::default())
        .unwrap()
}

fn connected(client: u32) -> Dialogue {
    let mut dialogue = Dialogue::new(&players(), client, POLITE);
    dialogue.connect();
    dialogue
}

/// The one value of a distribution, in milliseconds; histograms keep three digits.
fn value(figures: &Recorder, spread: Spread) -> u64 {
    let histogram = figures.spread(spread);
    assert_eq!(histogram.len(), 1);
    (histogram.max() + 500) / 1_000
}

#[test]
fn each_startup_phase_is_as_long_as_the_clock_says() {
    let workload = players();
    let mut dialogue = Dialogue::new(&workload, WITNESS, POLITE);
    dialogue.advance(ms(10));
    dialogue.dispatch(Event::Connected);
    // The server answers the handshake after 20 ms, the rest after 30 ms, at once.
    dialogue.advance(ms(20));
    dialogue.talk();
    dialogue.advance(ms(40));
    dialogue.audio(0);
    dialogue.video(0, false, 100);
    dialogue.advance(ms(80));
    dialogue.video(80, true, 100);
    let (_, _, figures) = dialogue.outcome();
    let phases = [CONNECT, HANDSHAKE, FIRST_BYTE, FIRST_FRAME, STARTUP].map(|spread| value(&figures, spread));
    assert_eq!(phases, [10, 20, 40, 80, 150]);
    assert_eq!(value(&figures, REQUEST), 0);
    assert_eq!(figures.counter(PLAYED), 1);
}

#[test]
fn every_byte_message_and_frame_is_counted_once() {
    let mut dialogue = connected(WITNESS);
    dialogue.configure_video();
    let before = dialogue.outcome().2;
    let mut wire = 0;
    for frame in 0..250u32 {
        let mut body = Vec::new();
        flv::avc_frame(frame % 50 == 0, 0, &[1; 995], &mut body);
        dialogue.server.send(STREAM, MediaKind::Video, frame * 40, &body);
        wire += dialogue.server.output().len();
        dialogue.talk();
        dialogue.advance(ms(40));
    }
    let figures = dialogue.outcome().2;
    assert!(before.counter(RECEIVED) > 3_073, "the handshake counts too");
    assert_eq!(figures.counter(RECEIVED), wire as u64);
    assert_eq!((figures.counter(MEDIA), figures.counter(UNITS)), (250_000, 250));
    assert_eq!((figures.counter(FRAMES), figures.counter(KEYFRAMES)), (250, 5));
    assert_eq!(figures.counter(READS), 250);
    // All frames but the first, 1,000 bytes in 40 ms each.
    assert_eq!((figures.counter(SOURCE), figures.counter(SOURCE_TIME)), (249_000, 9_960_000));
    assert_eq!(figures.counter(STALLS), 0);
}

/// Plays 25 frames a second for 60 s; from 20 s on the network holds them for 1.5 s in every 5.
fn held(client: u32) -> Recorder {
    let mut dialogue = connected(client);
    dialogue.configure_video();
    for tick in 0..1_500u64 {
        let due = tick * 40;
        let hold = due >= 20_000 && due % 5_000 >= 3_500;
        if !hold {
            // What was held comes at once.
            let first = if due > 20_000 && due % 5_000 == 0 { tick - 37 } else { tick };
            for frame in first..=tick {
                let mut body = Vec::new();
                flv::avc_frame(frame % 50 == 0, 0, &[1; 1_000], &mut body);
                dialogue.server.send(STREAM, MediaKind::Video, frame as u32 * 40, &body);
            }
            let bytes = std::mem::take(dialogue.server.output());
            dialogue.deliver(&bytes);
        }
        dialogue.advance(ms(40));
    }
    dialogue.dispatch(Event::Stop);
    dialogue.outcome().2
}

#[test]
fn a_viewer_whose_source_stops_plays_no_more_after_its_timeout_and_again_with_the_next_frame() {
    for client in [WITNESS, CROWD] {
        let mut dialogue = connected(client);
        dialogue.configure_video();
        let send = |dialogue: &mut Dialogue, frame: u32| {
            let mut body = Vec::new();
            flv::avc_frame(frame.is_multiple_of(50), 0, &[1; 1_000], &mut body);
            dialogue.server.send(STREAM, MediaKind::Video, frame * 40, &body);
            let bytes = std::mem::take(dialogue.server.output());
            dialogue.deliver(&bytes);
        };
        // Playing, starving, and how often it began to starve since the last look.
        let supply = |dialogue: &mut Dialogue| {
            let figures = dialogue.outcome().2;
            (figures.gauge(PLAYING), figures.gauge(STARVING), figures.counter(STARVED))
        };
        for frame in 0..500 {
            send(&mut dialogue, frame);
            dialogue.advance(ms(40));
        }
        // Other messages come, and are no media.
        for _ in 0..9 {
            dialogue.server.send(STREAM, MediaKind::Audio, 20_000, &[]);
            let bytes = std::mem::take(dialogue.server.output());
            dialogue.deliver(&bytes);
            dialogue.advance(ms(1_000));
        }
        assert_eq!(supply(&mut dialogue), (1, 0, 0), "client {client} after 9 s of nothing");
        // A crowd client may have read the last frames up to two seconds after they came.
        dialogue.advance(ms(3_100));
        assert_eq!(supply(&mut dialogue), (0, 1, 1), "client {client} after 12 s of nothing");
        dialogue.advance(ms(60_000));
        assert_eq!(supply(&mut dialogue), (0, 1, 0));
        send(&mut dialogue, 500);
        dialogue.advance(ms(1_100));
        assert_eq!(supply(&mut dialogue), (1, 0, 0), "client {client} has a frame again");
        dialogue.dispatch(Event::Stop);
        assert_eq!(supply(&mut dialogue), (0, 0, 0));
    }
}

/// What the kernel kept while weir itself stood still is read in pieces, and the first may hold no whole frame.
#[test]
fn a_pause_of_weir_itself_starves_nobody() {
    for client in [WITNESS, CROWD] {
        let mut dialogue = connected(client);
        dialogue.configure_video();
        let frame = |dialogue: &mut Dialogue, number: u32, length: usize| {
            let mut body = Vec::new();
            flv::avc_frame(number.is_multiple_of(50), 0, &vec![1; length], &mut body);
            dialogue.server.send(STREAM, MediaKind::Video, number * 40, &body);
            std::mem::take(dialogue.server.output())
        };
        for number in 0..50 {
            let bytes = frame(&mut dialogue, number, 1_000);
            dialogue.deliver(&bytes);
            dialogue.advance(ms(40));
        }
        dialogue.rig.now = dialogue.rig.now + ms(15_000);
        let bytes = frame(&mut dialogue, 50, 300_000);
        let (first, rest) = bytes.split_at(200_000);
        dialogue.deliver(first);
        dialogue.deliver(rest);
        dialogue.advance(ms(40));
        let figures = dialogue.outcome().2;
        let supply = (figures.gauge(PLAYING), figures.gauge(STARVING), figures.counter(STARVED));
        assert_eq!(supply, (1, 0, 0), "client {client}");
    }
}

#[test]
fn a_crowd_client_with_a_short_timeout_looks_before_it_says_that_nothing_came() {
    let options = PlayOptions { timeouts: Timeouts::all(ms(500)), ..PlayOptions::default() };
    let workload =
        rtmp::play(&["rtmp://127.0.0.1/live/a".to_owned()], &options, &RtmpOptions::default()).unwrap();
    let mut dialogue = Dialogue::new(&workload, CROWD, POLITE);
    dialogue.connect();
    // Its batches are 1.5 s apart.
    for frame in 0..1_000u32 {
        let mut body = Vec::new();
        flv::avc_frame(frame.is_multiple_of(50), 0, &[1; 1_000], &mut body);
        dialogue.server.send(STREAM, MediaKind::Video, frame * 40, &body);
        let bytes = std::mem::take(dialogue.server.output());
        dialogue.deliver(&bytes);
        dialogue.advance(ms(40));
    }
    assert_eq!(dialogue.outcome().2.counter(STARVED), 0);
}

#[test]
fn a_crowd_client_finds_the_same_stalls_as_a_witness_with_a_tenth_of_the_reads() {
    let (witness, crowd) = (held(WITNESS), held(CROWD));
    // Eight holds, of which the last lasts to the end. The first eats the one second of buffer; since
    // what comes late is shown late, the buffer is larger from then on by the length of the stall.
    assert!(witness.counter(STALLS) >= 1, "{}", witness.counter(STALLS));
    assert_eq!(witness.counter(STALLS), crowd.counter(STALLS));
    assert_eq!(witness.counter(STALLED), crowd.counter(STALLED));
    assert_eq!(witness.spread(STALL_LENGTH), crowd.spread(STALL_LENGTH));
    assert_eq!(witness.counter(FRAMES), crowd.counter(FRAMES));
    assert_eq!(witness.counter(SOURCE), crowd.counter(SOURCE));
    assert!(crowd.counter(READS) * 8 < witness.counter(READS), "{} reads", crowd.counter(READS));
    // Drift is for witnesses: the held frame of a hold is 1.48 s late.
    assert_eq!(crowd.signed(DRIFT).len(), 0);
    let highest = witness.signed(DRIFT).value_at_quantile(1.0);
    assert!((1_470_000..=1_530_000).contains(&highest), "{highest}");
}

#[test]
fn a_crowd_client_of_a_steady_stream_never_stalls_and_reads_about_once_a_second() {
    let mut dialogue = connected(CROWD);
    for frame in 0..1_500u32 {
        dialogue.video(frame * 40, frame % 50 == 0, 1_000);
        dialogue.advance(ms(40));
    }
    let figures = dialogue.outcome().2;
    assert_eq!(figures.counter(STALLS), 0);
    assert!(figures.counter(READS) < 170, "{} reads in 60 s", figures.counter(READS));
    assert!(dialogue.rig.low_water >= 20_000, "{}", dialogue.rig.low_water);
}

#[test]
fn a_stream_that_stops_stalls_until_the_end_and_drifts_on() {
    for client in [WITNESS, CROWD] {
        let mut dialogue = connected(client);
        for frame in 0..100u32 {
            dialogue.video(frame * 40, frame % 50 == 0, 1_000);
            dialogue.advance(ms(40));
        }
        dialogue.advance(Duration::from_secs(30));
        // 1 s of buffer, started with the frame of 1,000 ms; the last frame is of 3,960 ms.
        let figures = dialogue.outcome().2;
        assert_eq!(figures.counter(STALLS), 1);
        assert!(
            (28_000_000..=29_100_000).contains(&figures.counter(STALLED)),
            "{}",
            figures.counter(STALLED)
        );
        assert!(dialogue.rig.low_water < 10_000, "a stalled client reads more often");
        if client == WITNESS {
            let highest = figures.signed(DRIFT).value_at_quantile(1.0);
            assert!((29_900_000..=30_100_000).contains(&highest), "{highest}");
        }
        dialogue.dispatch(Event::Stop);
        let figures = dialogue.outcome().2;
        assert_eq!(value(&figures, STALL_LENGTH) / 100, 290);
    }
}

#[test]
fn a_jump_of_timestamps_is_told_in_size_and_is_no_drift() {
    let mut dialogue = connected(WITNESS);
    for frame in 0..500u32 {
        let jump = if frame >= 250 { 60_000 } else { 0 };
        dialogue.video(frame * 40 + jump, frame % 50 == 0, 1_000);
        dialogue.advance(ms(40));
    }
    let figures = dialogue.outcome().2;
    assert_eq!(figures.counter(TIMESTAMP_JUMPS), 1);
    let size = figures.signed(TIMESTAMP_JUMP).value_at_quantile(1.0);
    assert!((59_900_000..=60_100_000).contains(&size), "{size}");
    assert_eq!(figures.counter(STALLS), 0);
    assert!(figures.signed(DRIFT).value_at_quantile(1.0).abs() < 1_000);
}

/// Plays twelve seconds of a stream of which the server leaves out, or sends late, what a decoder needs: how the viewer ended, and its startup in
/// tenths of a second.
fn undecodable(
    before: impl FnOnce(&mut Dialogue),
    late: impl Fn(&mut Dialogue),
    sound: bool,
) -> (Option<Ending>, String, u64) {
    let mut dialogue = connected(WITNESS);
    before(&mut dialogue);
    for frame in 0..300u32 {
        if sound {
            let mut body = Vec::new();
            flv::aac_frame(&[0x21; 20], &mut body);
            dialogue.server.send(STREAM, MediaKind::Audio, frame * 40, &body);
        }
        let mut body = Vec::new();
        flv::avc_frame(frame % 50 == 0, 0, &[0, 0, 0, 3, 0x65, 0x88, 0x80], &mut body);
        dialogue.server.send(STREAM, MediaKind::Video, frame * 40, &body);
        dialogue.talk();
        dialogue.advance(ms(40));
        if frame == 151 {
            late(&mut dialogue);
        }
    }
    let (ending, failures, figures) = dialogue.outcome();
    let words = failures.first().map(|it| it.words.clone()).unwrap_or_default();
    let startup = if figures.counter(PLAYED) > 0 { value(&figures, STARTUP) / 100 } else { 0 };
    (ending, words, startup)
}

#[test]
fn a_stream_that_no_decoder_can_begin_with_does_not_play() {
    let no_media = Some(Ending::Failed(Failure::NoMedia));
    let (ending, words, _) = undecodable(|_| {}, |_| {}, false);
    assert_eq!(ending, no_media);
    assert!(words.contains("sequence header with SPS and PPS"), "{words}");
    let (ending, words, _) = undecodable(Dialogue::configure_video, |_| {}, true);
    assert_eq!(ending, no_media);
    assert!(words.contains("AudioSpecificConfig"), "{words}");
    // With the keyframe behind the configuration that was late.
    assert_eq!(undecodable(|_| {}, Dialogue::configure_video, false), (None, String::new(), 80));
    assert_eq!(undecodable(Dialogue::configure_video, Dialogue::configure_audio, true).2, 80);
    let both = |dialogue: &mut Dialogue| {
        dialogue.configure_video();
        dialogue.configure_audio();
    };
    assert_eq!(undecodable(both, |_| {}, true), (None, String::new(), 0));
}

#[test]
fn sound_alone_plays_from_its_first_frame() {
    let mut dialogue = connected(WITNESS);
    dialogue.advance(ms(70));
    for frame in 0..300u32 {
        dialogue.audio(frame * 20);
        dialogue.advance(ms(20));
    }
    let figures = dialogue.outcome().2;
    assert_eq!((value(&figures, STARTUP), figures.counter(PLAYED)), (70, 1));
}

/// A viewer of sound, behind metadata if there is any, that is watched for this long: how many played, and their startup in milliseconds.
fn sound(metadata: Option<Object<'_>>, milliseconds: u32) -> (u64, u64) {
    let mut dialogue = connected(WITNESS);
    dialogue.advance(ms(70));
    if let Some(metadata) = metadata {
        let mut body = Vec::new();
        data::set_metadata(metadata, &mut body);
        dialogue.server.send(STREAM, MediaKind::Data, 0, data::for_viewers(&body));
    }
    for frame in 0..milliseconds / 20 {
        dialogue.audio(frame * 20);
        dialogue.advance(ms(20));
    }
    let figures = dialogue.outcome().2;
    (figures.counter(PLAYED), (figures.spread(STARTUP).max() + 500) / 1_000)
}

#[test]
fn a_stream_that_is_described_as_sound_alone_plays_at_once() {
    let described = || Object::new().with("audiocodecid", 10.0).with("audiodatarate", 128.0);
    assert_eq!(sound(Some(described()), 100), (1, 70));
    // As MediaMTX does.
    let without = described().with("videocodecid", 0.0).with("videodatarate", 0.0);
    assert_eq!(sound(Some(without), 100), (1, 70));
    // Of one that is not described, five seconds have to come.
    assert_eq!((sound(None, 4_900).0, sound(None, 5_100)), (0, (1, 70)));
    assert_eq!(sound(Some(Object::new().with("title", 1.0)), 4_900).0, 0);
    // What says that there are pictures promises no sound alone.
    assert_eq!(sound(Some(described().with("videocodecid", 7.0)), 6_000).0, 0);
}

#[test]
fn pictures_that_no_metadata_spoke_of_are_played_all_the_same() {
    let mut dialogue = connected(WITNESS);
    let mut body = Vec::new();
    data::set_metadata(Object::new().with("audiocodecid", 10.0), &mut body);
    dialogue.server.send(STREAM, MediaKind::Data, 0, data::for_viewers(&body));
    for frame in 0..100u32 {
        dialogue.audio(frame * 40);
        dialogue.video(frame * 40, frame % 25 == 0, 100);
        dialogue.advance(ms(40));
    }
    let figures = dialogue.outcome().2;
    assert_eq!([PLAYED, FRAMES, STALLS].map(|counter| figures.counter(counter)), [1, 100, 0]);
}

#[test]
fn sound_before_promised_pictures_is_not_yet_playing() {
    let mut dialogue = connected(WITNESS);
    let mut body = Vec::new();
    data::set_metadata(Object::new().with("width", 640.0), &mut body);
    dialogue.server.send(STREAM, MediaKind::Data, 0, data::for_viewers(&body));
    for frame in 0..300u32 {
        dialogue.audio(frame * 20);
        dialogue.advance(ms(20));
    }
    assert_eq!(dialogue.outcome().2.counter(PLAYED), 0);
    dialogue.video(6_000, true, 100);
    let figures = dialogue.outcome().2;
    assert_eq!(figures.counter(PLAYED), 1);
    assert!(figures.spread(STARTUP).equivalent(figures.spread(STARTUP).max(), 6_000_000));
}

#[test]
fn a_stamp_tells_latency_and_which_frames_are_missing() {
    const LATENCY_MS: u64 = 35;
    let clock = HostClock::read();
    let mut dialogue = connected(WITNESS);
    dialogue.configure_video();
    let mut dropped = 0;
    for frame in 0..500u32 {
        if frame % 10 == 7 {
            dropped += 1;
        } else {
            // A picture behind a stamp.
            let mut unit = vec![0, 0, 0, 3, if frame % 50 == 0 { 0x65 } else { 0x41 }, 0x88, 0x80];
            let captured = clock.at(dialogue.rig.now - ms(LATENCY_MS));
            Stamp { captured, sequence_number: frame }.put(&mut unit);
            assert!(Stamp::find(&unit, Framing::LengthPrefixed).is_some());
            let mut body = Vec::new();
            flv::avc_frame(frame % 50 == 0, 0, &unit, &mut body);
            dialogue.server.send(STREAM, MediaKind::Video, frame * 40, &body);
            dialogue.talk();
        }
        dialogue.advance(ms(40));
    }
    dialogue.dispatch(Event::Stop);
    let figures = dialogue.outcome().2;
    assert_eq!((figures.counter(STAMPED), figures.counter(LOST)), (450, dropped));
    assert_eq!((figures.counter(REORDERED), figures.counter(DUPLICATE)), (0, 0));
    let latency = figures.signed(LATENCY).above();
    assert!(latency.equivalent(latency.min(), 35_000) && latency.equivalent(latency.max(), 35_000));
}

#[test]
fn a_stamp_is_found_behind_all_that_an_encoder_puts_in_front_of_a_keyframe() {
    // What x264 and ffmpeg write, re-muxed from a transport stream, by their lengths: access unit delimiter,
    // parameter sets (the second with scaling lists, --cqmfile), a buffering period; and behind the stamp
    // x264's own message.
    let in_front: [(u8, usize); 4] = [(9, 2), (0x67, 36), (0x68, 206), (6, 9)];
    let clock = HostClock::read();
    for chunk_size in [128, 60_000] {
        let mut dialogue = Dialogue::new(&players(), WITNESS, POLITE);
        dialogue.server = Server::new(ServerOptions { chunk_size, ..ServerOptions::default() }, 7);
        dialogue.connect();
        for frame in 0..100u32 {
            let keyframe = frame % 25 == 0;
            let mut unit = Vec::new();
            let mut put = |kind: u8, length: usize| {
                unit.extend_from_slice(&(length as u32).to_be_bytes());
                unit.push(kind);
                // A buffering period message is of type 0.
                unit.resize(unit.len() + length - 1, if kind == 6 { 0 } else { 0x55 });
            };
            let in_front: &[_] = if keyframe { &in_front } else { &in_front[..1] };
            in_front.iter().for_each(|&(kind, length)| put(kind, length));
            if keyframe {
                put(0x65, 30_000);
            } else {
                put(0x41, 4_000);
            }
            Stamp { captured: clock.at(dialogue.rig.now), sequence_number: frame }.put(&mut unit);
            let mut body = Vec::new();
            flv::avc_frame(keyframe, 0, &unit, &mut body);
            dialogue.server.send(STREAM, MediaKind::Video, frame * 40, &body);
            dialogue.talk();
            dialogue.advance(ms(40));
        }
        dialogue.dispatch(Event::Stop);
        let figures = dialogue.outcome().2;
        assert_eq!((figures.counter(STAMPED), figures.counter(LOST)), (100, 0), "chunks of {chunk_size}");
    }
}

#[test]
fn messages_whose_codec_is_named_are_counted_whether_they_are_heard_or_seen() {
    let mut dialogue = connected(WITNESS);
    let mut send = |kind, payload: &[u8]| {
        dialogue.server.send(STREAM, kind, 0, payload);
        dialogue.talk();
    };
    // Named: configuration, frame and channels of Opus; configuration and keyframe of H.265; the end.
    for payload in [&b"\x90OpusOpusHead"[..], b"\x91Opus....", b"\x94Opus\x01\x02", b"\x92Opus"] {
        send(MediaKind::Audio, payload);
    }
    for payload in [&b"\x90hvc1...."[..], b"\x91hvc1\0\0\0...."] {
        send(MediaKind::Video, payload);
    }
    // Numbered: AAC and H.264.
    send(MediaKind::Audio, &[0xAF, 1, 0x21]);
    send(MediaKind::Video, &[0x17, 1, 0, 0, 0, 1]);
    let figures = dialogue.outcome().2;
    let count = |name| figures.number(figures.schema().position(name).unwrap());
    assert_eq!((count("rtmp.enhanced"), count("rtmp.sequence_headers")), (6, 2));
    assert_eq!((count("rtmp.audio_frames"), count("frames"), count("rtmp.unreadable_tags")), (2, 2, 0));
}
