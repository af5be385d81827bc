//! Cuts on a made-up clock.

use super::super::unit::Sound;
use super::super::window::Lookup;
use super::*;

/// A configuration with one set of each kind, of a baseline profile.
const RECORD: &[u8] = &[1, 66, 0, 30, 0xFF, 0xE1, 0, 4, 0x67, 66, 0, 30, 1, 0, 2, 0x68, 1];
/// A slice of an IDR picture behind its length.
const SLICE: &[u8] = &[0, 0, 0, 2, 0x65, 7];
/// The wall clock at the first frame.
const WALL: i64 = 1_700_000_000_000_000_000;

struct Bench {
    cutter: Cutter,
    window: Window,
    tracks: Tracks,
    /// Segments that are gaps, by number.
    gaps: Vec<u64>,
    begun: u64,
}

impl Bench {
    fn new(settings: HlsSettings) -> Self {
        Self {
            cutter: Cutter::new(settings.clone()),
            window: Window::new(settings),
            tracks: Tracks { video: Some(RECORD.into()), audio: None },
            gaps: Vec::new(),
            begun: 0,
        }
    }

    fn frame(&mut self, at: i64, keyframe: bool) -> bool {
        let unit = Unit { is_video: true, keyframe, decoding: at, presentation: at, bytes: SLICE };
        let wall = WALL + at * 1_000_000;
        let Self { cutter, window, tracks, gaps, begun } = self;
        let mut gap = || {
            *begun += 1;
            gaps.contains(&(*begun - 1))
        };
        cutter.take(tracks, &unit, wall, &mut gap, window)
    }

    /// Frames of a rate up to a time, with a keyframe each `group` of them.
    fn frames(&mut self, rate: i64, group: i64, from: i64, count: i64) {
        for n in from..from + count {
            self.frame((n * 1_000 + rate / 2) / rate, n % group == 0);
        }
    }

    fn durations(&self) -> Vec<u128> {
        self.window.listed().map(|segment| segment.duration.as_millis()).collect()
    }

    fn bytes(&self, number: u64) -> Vec<u8> {
        match self.window.segment(number) {
            Lookup::Found(pieces) => pieces.concat(),
            other => panic!("{other:?}"),
        }
    }
}

fn settings(part: Option<u64>) -> HlsSettings {
    HlsSettings { part: part.map(Duration::from_millis), ..HlsSettings::default() }
}

#[test]
fn segments_end_at_the_first_keyframe_from_their_duration_on() {
    for (group, expected) in [(25, 2_000), (50, 2_000), (40, 3_200), (75, 3_000)] {
        let mut bench = Bench::new(settings(None));
        bench.frames(25, group, 0, 300);
        let durations = bench.durations();
        assert!(durations.len() >= 3 && durations.iter().all(|it| *it == expected), "{durations:?}");
        assert_eq!(u128::from(bench.window.target().unwrap()), (expected + 500) / 1_000);
        for (n, segment) in bench.window.listed().enumerate() {
            assert_eq!((segment.number, segment.discontinuity), (n as u64, false));
            assert_eq!(segment.date, WALL + n as i64 * expected as i64 * 1_000_000);
            assert!(segment.parts.len() == 1 && segment.parts[0].independent);
        }
    }
}

#[test]
fn what_comes_before_the_first_keyframe_is_left_out() {
    let mut bench = Bench::new(settings(None));
    bench.frames(25, 1_000, 7, 20);
    assert!(bench.cutter.open.is_none() && bench.window.is_empty());
    bench.frame(1_080, true);
    assert!(bench.cutter.open.is_some());
}

#[test]
fn without_keyframes_no_segment_is_longer_than_the_target_duration_allows() {
    let mut bench = Bench::new(settings(None));
    bench.frames(25, 50, 0, 101);
    // From here on without a keyframe.
    bench.frames(25, 10_000, 101, 300);
    let durations = bench.durations();
    assert_eq!(durations[..2], [2_000, 2_000]);
    assert!(durations.len() > 5 && durations.iter().all(|it| *it <= 2_499), "{durations:?}");
    assert!(bench.window.listed().skip(2).any(|segment| !segment.parts[0].independent));
}

#[test]
fn parts_are_as_long_as_asked_for_whatever_the_rate_of_frames() {
    for (rate, each) in [(25, 5), (30, 6), (50, 10), (60, 12)] {
        let mut bench = Bench::new(settings(Some(200)));
        bench.frames(rate, rate, 0, 6 * rate);
        let part = |part: &super::super::window::Part| part.duration.as_millis();
        for segment in bench.window.listed() {
            assert_eq!(segment.parts.len(), 10, "{rate} frames a second");
            assert!(segment.parts.iter().map(part).all(|it| (170..=202).contains(&it)), "{segment:?}");
            assert!(segment.parts[0].independent && segment.parts[5].independent);
            assert_eq!(segment.parts.iter().map(part).sum::<u128>(), segment.duration.as_millis());
        }
        let making = bench.window.making().unwrap();
        assert_eq!(making.number, bench.window.next().0);
        assert!(each > 0 && bench.window.part(bench.window.next_part()) == Lookup::NotYet);
        assert_eq!(bench.window.part(bench.window.next_part() + 1), Lookup::Missing);
    }
}

#[test]
fn other_tracks_and_other_timestamps_are_discontinuities() {
    let mut bench = Bench::new(settings(None));
    bench.frames(25, 25, 0, 60);
    bench.tracks.audio = Some(Sound::Aac([0x12, 0x10][..].into()));
    bench.frames(25, 25, 60, 60);
    for n in 0..60 {
        bench.frame(500_000 + n * 40, n % 25 == 0);
    }
    let all: Vec<_> = bench.window.listed().map(|it| (it.duration.as_millis(), it.discontinuity)).collect();
    // At 3 s the tracks are others, and at 4.8 s the timestamps.
    assert_eq!(all, [(2_000, false), (1_000, false), (1_800, true), (2_000, true)]);
}

#[test]
fn a_track_that_turns_up_behind_the_first_picture_is_in_the_first_segment() {
    let container = SegmentContainer::FragmentedMp4;
    let mut bench = Bench::new(HlsSettings { container, ..settings(Some(200)) });
    bench.frame(0, true);
    bench.tracks.audio = Some(Sound::Aac([0x12, 0x10][..].into()));
    let unit = Unit { is_video: false, keyframe: true, decoding: 10, presentation: 10, bytes: &[1, 2, 3] };
    bench.cutter.take(&bench.tracks, &unit, WALL, &mut || false, &mut bench.window);
    bench.frames(25, 25, 1, 120);
    assert!(bench.window.listed().all(|segment| !segment.discontinuity));
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|it| it == what);
    let maps: Vec<_> = bench.window.listed().filter_map(|segment| segment.map.clone()).collect();
    assert!(maps.iter().all(|map| has(&map.bytes, b"avc1") && has(&map.bytes, b"mp4a")));
    // The picture that came before, and the sound.
    assert!(has(&bench.bytes(0), &[SLICE, SLICE].concat()) && has(&bench.bytes(0), &[7, 1, 2, 3]));
}

#[test]
fn sound_that_is_hours_away_is_left_out() {
    let mut bench = Bench::new(settings(None));
    bench.tracks.audio = Some(Sound::Aac([0x12, 0x10][..].into()));
    bench.frames(25, 25, 0, 30);
    for decoding in [1 << 40, -(1 << 40)] {
        let (is_video, keyframe, presentation) = (false, true, decoding);
        let unit = Unit { is_video, keyframe, decoding, presentation, bytes: &[1] };
        bench.cutter.take(&bench.tracks, &unit, WALL, &mut || false, &mut bench.window);
    }
    bench.frames(25, 25, 30, 30);
    assert!(bench.bytes(0).len() < 100_000);
}

#[test]
fn the_next_publication_goes_on_behind_a_discontinuity() {
    let mut bench = Bench::new(settings(Some(200)));
    bench.frames(25, 25, 0, 60);
    bench.cutter.finish(&mut bench.window);
    assert!(bench.window.has_ended());
    assert_eq!(bench.durations(), [2_000, 400]);
    let next = bench.window.next_part();
    assert_eq!(bench.window.part(next), Lookup::Missing);
    bench.cutter = Cutter::new(settings(Some(200)));
    bench.window.resume();
    bench.frames(25, 25, 0, 60);
    let all: Vec<_> = bench.window.listed().map(|it| (it.number, it.discontinuity)).collect();
    assert_eq!(all, [(0, false), (1, false), (2, true)]);
}

#[test]
fn a_gap_is_named_and_not_there() {
    let mut bench = Bench::new(settings(Some(400)));
    bench.gaps = vec![1];
    bench.frames(25, 25, 0, 160);
    assert_eq!(bench.window.listed().map(|it| it.gap).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(bench.window.segment(1), Lookup::Missing);
    assert_eq!(bench.window.part(5), Lookup::Missing);
    assert!(matches!(bench.window.part(4), Lookup::Found(_)));
}

#[test]
fn playlists_have_three_target_durations_and_segments_outlive_them() {
    let mut bench = Bench::new(HlsSettings { segments: 2, ..settings(None) });
    bench.frames(25, 50, 0, 50 * 20 + 1);
    let numbers: Vec<_> = bench.window.listed().map(|segment| segment.number).collect();
    assert_eq!(numbers, [17, 18, 19]);
    // For their own duration and that of the playlist: four more.
    assert_eq!(bench.window.kept().collect::<Vec<_>>(), [13, 14, 15, 16, 17, 18, 19]);
}

#[test]
fn every_segment_of_a_transport_stream_begins_with_its_tables() {
    let mut bench = Bench::new(settings(None));
    bench.frames(25, 25, 0, 160);
    for number in 0..3 {
        let bytes = bench.bytes(number);
        assert_eq!(bytes.len() % 188, 0);
        let pids: Vec<_> = bytes.chunks(188).map(|it| u16::from_be_bytes([it[1] & 0x1F, it[2]])).collect();
        assert_eq!(pids[..2], [0, 0x100], "segment {number}");
        let begun = bytes.chunks(188).filter(|it| it[1] & 0x40 != 0 && it[2] == 1 && it[1] & 0x1F == 1);
        assert_eq!(begun.count(), 50, "pictures of segment {number}");
    }
}

#[test]
fn a_fragment_says_where_its_samples_are_and_when() {
    let container = SegmentContainer::FragmentedMp4;
    let mut bench = Bench::new(HlsSettings { container, ..settings(Some(200)) });
    bench.frames(25, 25, 0, 60);
    let map = bench.window.listed().next().unwrap().map.clone().unwrap();
    assert_eq!(kinds(&map.bytes), ["ftyp", "moov"]);
    let bytes = bench.bytes(0);
    assert_eq!(kinds(&bytes), ["moof", "mdat"].repeat(10));
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    // The first sample lies where the fragment says, and lasts a 25th of a second.
    let trun = bytes.windows(4).position(|it| it == b"trun").unwrap() + 8;
    assert_eq!((word(trun), &bytes[word(trun + 4)..][..6]), (5, SLICE));
    assert_eq!((word(trun + 8), word(trun + 12)), (3_600, 6));
}

/// The boxes of a file.
fn kinds(mut bytes: &[u8]) -> Vec<&str> {
    let mut kinds = Vec::new();
    while let Some((size, rest)) = bytes.split_first_chunk::<4>() {
        kinds.push(std::str::from_utf8(&rest[..4]).unwrap());
        bytes = &bytes[u32::from_be_bytes(*size) as usize..];
    }
    kinds
}
