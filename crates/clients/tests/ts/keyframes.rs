//! Viewers that join a transport stream between two keyframes: how far apart those are is learnt from others' pictures, and a wait
//! that is longer is the server's.

use super::{CROWD, Framing, Response, Viewer, WITNESS, ms};
use crate::bench::transport::PARAMETER_SETS;
use weir_clients::ShardRecorder;
use weir_metrics::common::{KEYFRAME_WAITS, KEYFRAME_WAITS_OVER, PLAYED};
use weir_metrics::{Failure, Recorder};
use weir_shard::Event;
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};

/// Pictures, 25 a second, of which one in `group` is a keyframe, and sound of which each unit is marked as a random access point, as
/// ffmpeg marks it; without null packets.
struct Source {
    muxer: Muxer,
    picture: u64,
    group: u64,
    /// Whether a keyframe is marked as well: not all muxers do that.
    marks: bool,
}

impl Source {
    fn new(group: u64, marks: bool) -> Self {
        Self { muxer: Muxer::new(MuxSettings::default()), picture: 0, group, marks }
    }

    /// The same from this picture on, as a viewer finds it that joins.
    fn joined_at(self, picture: u64) -> Self {
        Self { picture, ..self }
    }

    /// The next 40 ms.
    fn next(&mut self) -> Vec<u8> {
        let (time, key) = (90_000 + self.picture * 3_600, self.picture.is_multiple_of(self.group));
        let content: Vec<u8> = (0..2_000).map(|at| (at / 16 + self.picture) as u8 | 0x40).collect();
        let content = if key { [PARAMETER_SETS, &content].concat() } else { content };
        self.picture += 1;
        let mut bytes = Vec::new();
        let picture = AccessUnit { pts: time, dts: time, random_access: key && self.marks, bytes: &content };
        self.muxer.video(&picture, &mut bytes);
        let sound =
            AccessUnit { pts: time, dts: time, random_access: true, bytes: &[0xFF, 0xF1, 0x4C, 0x80, 9, 9] };
        self.muxer.audio(&sound, &mut bytes);
        bytes
    }
}

fn joined(client: u32, recorder: Option<ShardRecorder>) -> Viewer {
    let mut viewer = Viewer::beside(client, recorder);
    viewer.dispatch(Event::Connected);
    viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
    viewer
}

/// It gets so much of a source, as it comes.
fn play(viewer: &mut Viewer, source: &mut Source, seconds: u64) {
    for _ in 0..seconds * 25 {
        viewer.deliver(&source.next());
        viewer.advance(ms(40));
    }
}

/// What a thread knows once a viewer has played so much of a source.
fn learnt(client: u32, mut source: Source, seconds: u64) -> ShardRecorder {
    let mut viewer = joined(client, None);
    play(&mut viewer, &mut source, seconds);
    viewer.dispatch(Event::Stop);
    let figures = viewer.outcome().2;
    assert_eq!(figures.counter(PLAYED), 1);
    viewer.rig.world
}

fn waits(figures: &Recorder) -> (u64, u64) {
    (figures.counter(KEYFRAME_WAITS), figures.counter(KEYFRAME_WAITS_OVER))
}

#[test]
fn sound_that_is_marked_is_no_keyframe_and_pictures_need_no_mark() {
    for (client, marks) in [(WITNESS, true), (WITNESS, false), (CROWD, true), (CROWD, false)] {
        // Keyframes are twelve seconds apart: one that joins behind one is excused until the next has come.
        let recorder = learnt(client, Source::new(300, marks), 26);
        let mut viewer = joined(client, Some(recorder));
        let mut source = Source::new(300, marks).joined_at(5);
        play(&mut viewer, &mut source, 11);
        assert_eq!(waits(&viewer.outcome().2), (1, 0), "client {client}");
        play(&mut viewer, &mut source, 3);
        let figures = viewer.outcome().2;
        assert_eq!((figures.counter(PLAYED), waits(&figures)), (1, (0, 1)), "client {client}");
    }
}

#[test]
fn a_viewer_that_gets_no_keyframe_where_others_do_is_held_against_the_server() {
    for client in [WITNESS, CROWD] {
        let recorder = learnt(client, Source::new(50, false), 6);
        let mut viewer = joined(client, Some(recorder));
        let mut source = Source::new(u64::MAX, false).joined_at(5);
        play(&mut viewer, &mut source, 9);
        assert_eq!(waits(&viewer.outcome().2), (1, 0), "client {client}");
        // From its timeout on.
        play(&mut viewer, &mut source, 2);
        assert_eq!(waits(&viewer.outcome().2), (0, 1), "client {client}");
        play(&mut viewer, &mut source, 60);
        viewer.assert_failed(Failure::NoMedia, "no PAT, PMT and random access point");
    }
}

/// A viewer of sound begins with any of it, and one that gets none is no longer excused than others took.
#[test]
fn sound_alone_is_learnt_from_sound() {
    let settings = MuxSettings { video: None, ..MuxSettings::default() };
    let muxer = || Muxer::new(settings.clone());
    let unit = |at: u64| {
        let time = 90_000 + at * 3_600;
        AccessUnit { pts: time, dts: time, random_access: false, bytes: &[0xFF, 0xF1, 0x4C, 0x80, 9, 9] }
    };
    let (mut viewer, mut source) = (joined(WITNESS, None), muxer());
    for at in 0..100 {
        let mut bytes = Vec::new();
        source.audio(&unit(at), &mut bytes);
        viewer.deliver(&bytes);
        viewer.advance(ms(40));
    }
    assert_eq!(viewer.outcome().2.counter(PLAYED), 1);
    // Tables alone come to the next one.
    let tables = crate::stream(1)[..3 * 188].to_vec();
    let mut next = joined(WITNESS, Some(viewer.rig.world));
    for _ in 0..120 {
        next.deliver(&tables);
        next.advance(ms(100));
    }
    assert_eq!(waits(&next.outcome().2), (1, 1));
}
