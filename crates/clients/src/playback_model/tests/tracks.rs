//! Pictures that stop while sound goes on, and the reverse, on a made-up clock: no stall where nothing stopped, and each that
//! something made.

use super::*;
use weir_metrics::common::{WITHOUT_PICTURES, WITHOUT_SOUND};

const START: u64 = 1_000;
const LENGTH: u64 = 30_000;

/// A source with sound, and how a server sends it on.
#[derive(Clone, Copy, Debug)]
struct Source {
    bits_per_second: u64,
    frames_per_second: u64,
    /// The server writes what has gathered, once in this many milliseconds.
    burst: u64,
}

/// Everything that the source sends: (timestamp in milliseconds, track, bytes, keyframe), in the order of a multiplexer.
type Sent = (u64, Track, u32, bool);

impl Source {
    fn all() -> impl Iterator<Item = Self> {
        let rates = [60_000, 235_000, 1_000_000, 8_000_000];
        let frames = [5, 12, 25, 60];
        rates.into_iter().flat_map(move |bits_per_second| {
            frames.into_iter().flat_map(move |frames_per_second| {
                [0, 100, 350, 1_800].map(|burst| Self { bits_per_second, frames_per_second, burst })
            })
        })
    }

    fn pictures(self) -> Vec<Sent> {
        let (fps, group) = (self.frames_per_second, self.frames_per_second * 2);
        let mean = self.bits_per_second * 3 / 4 / 8 / fps;
        let picture = |number: u64| {
            let keyframe = number.is_multiple_of(group);
            let bytes = if keyframe { mean * 4 } else { mean * 4 / 5 };
            (number * 1_000 / fps, Track::Video, bytes.max(9) as u32, keyframe)
        };
        (0..LENGTH * fps / 1_000).map(picture).collect()
    }

    /// Frames of 1,024 samples at 48 kHz.
    fn sound(self) -> Vec<Sent> {
        let bytes = (self.bits_per_second / 4 / 8 * 64 / 3_000).max(9) as u32;
        (0..LENGTH * 3 / 64).map(|number| (number * 64 / 3, Track::Audio, bytes, false)).collect()
    }

    /// What comes of these, each after it was sent, in bursts; what `held` says comes later still.
    fn arrivals(self, mut sent: Vec<Sent>, held: impl Fn(&Sent) -> i64) -> Vec<Arrival> {
        let sent_at = |frame: &Sent| frame.0.saturating_add_signed(held(frame));
        sent.sort_by_key(sent_at);
        let arrive = |frame: Sent| {
            let written = sent_at(&frame).next_multiple_of(self.burst.max(1));
            let (timestamp, track, bytes, keyframe) = frame;
            (at(START + written), ReceivedFrame { track, timestamp, bytes, keyframe })
        };
        sent.into_iter().map(arrive).collect()
    }

    /// A viewer's buffer, which outlasts the server's bursts.
    fn buffer(self) -> Duration {
        Duration::from_millis(if self.burst > 500 { 2_500 } else { 1_000 })
    }
}

fn at(milliseconds: u64) -> Moment {
    Moment::from_nanos(milliseconds * 1_000_000)
}

/// What a viewer measured: stalls, their time in milliseconds, and whether it is without pictures and without sound in the end.
#[derive(Clone, Copy, Debug)]
struct Measurements {
    stalls: u64,
    stalled: u64,
    without: [u64; 2],
}

fn seen(source: Source, reading: Reading, number: u32, arrivals: &[Arrival]) -> Measurements {
    let playout = Playout::new(source.buffer(), source.buffer());
    let mut reader = Reader {
        playback: PlaybackModel::new(reading, number, Timeline::new(1_000, 32), playout, arrivals[0].0),
        waiting: Vec::new(),
        recorder: Recorder::new(Schema::new(&[])),
        reads: Vec::new(),
    };
    let end = at(START + LENGTH);
    for &(now, seen) in arrivals.iter().take_while(|(now, _)| *now < end) {
        reader.pass_until(now);
        reader.waiting.push((now, seen));
        reader.wake(now);
    }
    reader.pass_until(end);
    reader.read(end);
    let without = [WITHOUT_PICTURES, WITHOUT_SOUND].map(|gauge| reader.recorder.gauge(gauge));
    reader.playback.leave(end, &mut reader.recorder);
    let left = [WITHOUT_PICTURES, WITHOUT_SOUND].map(|gauge| reader.recorder.gauge(gauge));
    assert_eq!(left, [0, 0], "a viewer that has left is without nothing");
    let [stalls, stalled] = [STALLS, STALLED].map(|counter| reader.recorder.counter(counter));
    Measurements { stalls, stalled: stalled / 1_000, without }
}

const READINGS: [(Reading, u32); 2] = [(Reading::Witness, 0), (Reading::Crowd, 37)];

/// The viewers of each reading, beside what they are of.
fn each(arrivals: impl Fn(Source) -> Vec<Arrival>, judge: impl Fn(Source, Reading, Measurements)) {
    for source in Source::all() {
        let arrivals = arrivals(source);
        for (reading, number) in READINGS {
            judge(source, reading, seen(source, reading, number, &arrivals));
        }
    }
}

/// A stream in which nothing stops has no stall, whatever it is like.
fn is_whole(name: &str, change: impl Fn(Source) -> Vec<Sent>) {
    let arrivals = |source: Source| source.arrivals(change(source), |_| 0);
    each(arrivals, |source, reading, seen| {
        assert_eq!((seen.stalls, seen.without), (0, [0, 0]), "{name}: {reading:?} of {source:?}: {seen:?}");
    });
}

#[test]
fn a_stream_of_which_both_tracks_go_on_has_no_stall() {
    is_whole("pictures and sound", |source| [source.pictures(), source.sound()].concat());
    is_whole("an announced track that never comes", Source::pictures);
    is_whole("sound alone", Source::sound);
    let apart = |source: Source| {
        let later = source.sound().into_iter().map(|(at, track, bytes, key)| (at + 3_000, track, bytes, key));
        let all = source.pictures().into_iter().chain(later).collect();
        source.arrivals(all, |frame| if frame.1 == Track::Audio { -3_000 } else { 0 })
    };
    each(apart, |source, reading, seen| {
        assert_eq!(
            (seen.stalls, seen.without),
            (0, [0, 0]),
            "3 s apart: {reading:?} of {source:?}: {seen:?}"
        );
    });
}

#[test]
fn frames_that_come_when_they_come_are_no_stall() {
    is_whole("pictures of a variable rate", |source| {
        let mut state = 7u64;
        let pictures = source.pictures().into_iter().filter(move |frame| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            frame.3 || state >> 62 == 0
        });
        pictures.chain(source.sound()).collect()
    });
    is_whole("a screen of which a picture is sent in 5 s", |source| {
        let pictures = (0..LENGTH / 5_000).map(|number| (number * 5_000, Track::Video, 9_000, true));
        pictures.chain(source.sound()).collect()
    });
    is_whole("a muted microphone, with a frame of silence in 400 ms", |source| {
        let is_muted = |at: u64| (10_000..20_000).contains(&at);
        let sound = source.sound().into_iter();
        let sound = sound.filter(|(at, ..)| !is_muted(*at) || at % 400 < 22);
        source.pictures().into_iter().chain(sound).collect()
    });
    is_whole("a camera and a microphone that both pause", |source| {
        let all = [source.pictures(), source.sound()].concat().into_iter();
        // Twice, each for less than the buffer.
        all.filter(|(at, ..)| !(8_000..8_500).contains(at) && !(15_000..15_500).contains(at)).collect()
    });
}

/// The track that stops, and the level of viewers that are without it.
const TRACKS: [(Track, [u64; 2]); 2] = [(Track::Video, [1, 0]), (Track::Audio, [0, 1])];

#[test]
fn a_viewer_stalls_when_either_of_its_tracks_stops_for_good() {
    for (stops, without) in TRACKS {
        let sent = |source: Source| {
            let all = [source.pictures(), source.sound()].concat().into_iter();
            source.arrivals(all.filter(|frame| frame.1 != stops || frame.0 < 10_000).collect(), |_| 0)
        };
        each(sent, |source, reading, seen| {
            let words = format!("{stops:?} stop: {reading:?} of {source:?}: {seen:?}");
            assert_eq!((seen.stalls, seen.without), (1, without), "{words}");
            // From the end of its buffer on.
            let longest = LENGTH - 10_000 - 800;
            assert!(
                (longest - source.buffer().as_millis() as u64 - source.burst..=longest)
                    .contains(&seen.stalled),
                "{words}"
            );
        });
    }
}

#[test]
fn a_viewer_plays_on_when_the_track_comes_again() {
    for (stops, _) in TRACKS {
        for length in [2_500, 5_000, 9_000] {
            let gap = 10_000..10_000 + length;
            let left_out = |source: Source| {
                let all = [source.pictures(), source.sound()].concat().into_iter();
                source.arrivals(
                    all.filter(|frame| frame.1 != stops || !gap.contains(&frame.0)).collect(),
                    |_| 0,
                )
            };
            let held = |source: Source| {
                let all = [source.pictures(), source.sound()].concat();
                source.arrivals(
                    all,
                    |frame| if frame.1 == stops && frame.0 >= 10_000 { length as i64 } else { 0 },
                )
            };
            let judge = |source: Source, reading: Reading, seen: Measurements| {
                // What the buffer and three intervals bridge is no stall, and bursts make either of it.
                if length == 2_500 && source.burst == 1_800 {
                    return;
                }
                let words = format!("{length} ms without {stops:?}: {reading:?} of {source:?}: {seen:?}");
                assert_eq!((seen.stalls, seen.without), (1, [0, 0]), "{words}");
                let buffered = source.buffer().as_millis() as u64;
                let slack = 2 * source.burst + 500;
                assert!(seen.stalled + buffered + slack >= length, "{words}");
                assert!(seen.stalled <= length + slack - 500, "{words}");
            };
            each(left_out, judge);
            each(held, judge);
        }
    }
}

#[test]
fn a_crowd_reads_a_stream_without_pictures_no_more_often_than_the_whole() {
    for source in Source::all() {
        let whole = [source.pictures(), source.sound()].concat();
        let stops: Vec<_> =
            whole.iter().filter(|frame| frame.1 != Track::Video || frame.0 < 10_000).copied().collect();
        let reads = |sent: Vec<Sent>| {
            let arrivals = source.arrivals(sent, |_| 0);
            let late = |at: &Moment| *at > self::at(START + 14_000);
            Reader::run(Reading::Crowd, 37, &arrivals, at(START + LENGTH))
                .reads
                .iter()
                .filter(|at| late(at))
                .count()
        };
        let (whole, stopped) = (reads(whole), reads(stops));
        // Once a second, as in any stall.
        assert!(stopped <= whole.max(18), "{source:?}: {stopped} reads and not {whole}");
    }
}

proptest! {
    #[test]
    fn a_crowd_stalls_for_a_track_as_long_as_witnesses_do(
        // Where the pictures or the sound are left out, for how long, and which of them.
        gaps in [(3_000u64..9_000, 200u64..5_000, any::<bool>()), (15_000u64..22_000, 200u64..5_000, any::<bool>())],
        bits_per_second in prop_oneof![Just(60_000u64), Just(500_000), Just(4_000_000)],
        frames_per_second in prop_oneof![Just(10u64), Just(25), Just(50)],
        number in any::<u32>(),
    ) {
        let source = Source { bits_per_second, frames_per_second, burst: 0 };
        let is_left_out = |frame: &Sent| {
            let mut of = gaps.iter().filter(|gap| gap.2 == (frame.1 == Track::Video));
            of.any(|(from, length, _)| (*from..from + length).contains(&frame.0))
        };
        let all = [source.pictures(), source.sound()].concat();
        let arrivals = source.arrivals(all.into_iter().filter(|frame| !is_left_out(frame)).collect(), |_| 0);
        let [witness, crowd] = [Reading::Witness, Reading::Crowd].map(|reading| seen(source, reading, number, &arrivals));
        // A viewer that waits for a track reads once a second, and knows by its media when the track came.
        prop_assert!(witness.stalled.abs_diff(crowd.stalled) <= 500, "{:?} {:?} {:?}", witness, crowd, gaps);
    }
}
