use super::*;
use proptest::prelude::*;
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};
use weir_ts::packet::{PACKET_LENGTH, Packet};

/// Pictures a second of what is written here.
const FPS: u64 = 25;
/// The PID of pictures.
const VIDEO: u16 = 0x0101;

/// Segments of transport streams of one second, keyframes first.
pub(in crate::hls) struct Transport {
    muxer: Muxer,
    next: u64,
}

impl Transport {
    pub(in crate::hls) fn new() -> Self {
        // Tables are at the beginning of each segment only.
        let settings = MuxSettings { table_interval: u64::MAX / 4, ..MuxSettings::default() };
        Self { muxer: Muxer::new(settings), next: 0 }
    }

    /// Pictures, of which these are left out, each with sound beside it.
    fn pictures(&mut self, count: u64, left_out: &[u64], bytes: &mut Vec<u8>) {
        for number in 0..count {
            let dts = 90_000 + self.next * 90_000 / FPS;
            let is_keyframe = self.next.is_multiple_of(FPS);
            self.next += 1;
            let mut unit = vec![0, 0, 0, 1, if is_keyframe { 0x65 } else { 0x41 }];
            unit.resize(2_000, 7);
            if !left_out.contains(&number) {
                let unit = AccessUnit { pts: dts + 7_200, dts, random_access: is_keyframe, bytes: &unit };
                self.muxer.video(&unit, bytes);
            }
            let sound = [0xFF, 0xF1, 0x4C, 0x80, 0x02, 0x1F, 0xFC, 1, 2, 3, 4, 5, 6, 7, 8, 9];
            self.muxer.audio(&AccessUnit { pts: dts, dts, random_access: true, bytes: &sound }, bytes);
        }
    }

    pub(in crate::hls) fn segment(&mut self, left_out: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.muxer.repeat_tables();
        self.pictures(FPS, left_out, &mut bytes);
        bytes
    }
}

/// A box of ISO/IEC 14496-12.
fn iso_box(kind: &[u8; 4], body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    [&((body.len() + 8) as u32).to_be_bytes()[..], kind, &body].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A map of sound with the ID 1 and of pictures with the ID 2, of 12,800 ticks a second, whose samples are no sync samples and last
/// 512 ticks if fragments do not say otherwise.
pub(in crate::hls) fn map() -> Vec<u8> {
    let trak = |id: u32, timescale: u32, handler: &[u8]| {
        let tkhd = iso_box(b"tkhd", &[&words(&[3, 0, 0, id]), &[0; 64]]);
        let mdhd = iso_box(b"mdhd", &[&words(&[0, 0, 0, timescale, 0, 0])]);
        let hdlr = iso_box(b"hdlr", &[&words(&[0, 0]), handler, &[0; 13]]);
        iso_box(b"trak", &[&tkhd, &iso_box(b"mdia", &[&mdhd, &hdlr])])
    };
    let trex = |id: u32| iso_box(b"trex", &[&words(&[0, id, 1, 512, 0, NON_SYNC_FLAGS])]);
    let mvex = iso_box(b"mvex", &[&trex(1), &trex(2)]);
    let moov = iso_box(b"moov", &[&trak(1, 48_000, b"soun"), &trak(2, 12_800, b"vide"), &mvex]);
    [iso_box(b"ftyp", &[b"iso6"]), moov].concat()
}

const NON_SYNC_FLAGS: u32 = 0x0101_0000;

/// A fragment of pictures that begins at a tick; the first is a keyframe.
pub(in crate::hls) fn fragment(sequence_number: u32, decoding: u64, durations: &[u32]) -> Vec<u8> {
    let mfhd = iso_box(b"mfhd", &[&words(&[0, sequence_number])]);
    let tfhd = iso_box(b"tfhd", &[&words(&[0x02_0000, 2])]);
    let tfdt = iso_box(b"tfdt", &[&words(&[0x0100_0000]), &decoding.to_be_bytes()]);
    // data-offset, first-sample-flags, sample-duration and sample-size are there.
    let samples: Vec<u8> = durations.iter().flat_map(|duration| words(&[*duration, 9])).collect();
    let trun = iso_box(b"trun", &[&words(&[0x305, durations.len() as u32, 100, 0x0200_0000]), &samples]);
    let sound = iso_box(b"traf", &[&iso_box(b"tfhd", &[&words(&[0x02_0000, 1])])]);
    let pictures = iso_box(b"traf", &[&tfhd, &tfdt, &trun]);
    let moof = iso_box(b"moof", &[&mfhd, &sound, &pictures]);
    [moof, iso_box(b"mdat", &[&vec![5; durations.len() * 9]])].concat()
}

fn announced(number: u64, milliseconds: u64) -> AnnouncedUnit {
    AnnouncedUnit { duration: Duration::from_millis(milliseconds), number, is_discontinuous: false }
}

fn inspect(
    inspector: &mut Inspector,
    kind: UnitKind,
    bytes: &[u8],
    announced: AnnouncedUnit,
) -> Option<Inspection> {
    inspector.begin(kind);
    bytes.chunks(999).for_each(|piece| inspector.take(piece));
    inspector.finish(announced)
}

fn whole(frames: u64, keyframes: u64) -> Inspection {
    Inspection { frames, keyframes, announced: frames, ..Inspection::default() }
}

fn load_map(inspector: &mut Inspector) {
    inspector.begin(UnitKind::Map);
    map().chunks(7).for_each(|piece| inspector.take(piece));
    inspector.finish_map();
}

#[test]
fn a_transport_stream_has_the_frames_that_its_durations_stand_for() {
    let (mut stream, mut inspector) = (Transport::new(), Inspector::default());
    for number in 0..20 {
        let seen = inspect(&mut inspector, UnitKind::Segment, &stream.segment(&[]), announced(number, 1_000));
        assert_eq!(seen, Some(whole(25, 1)), "{number}");
    }
}

/// As of servers that begin with 0 in each segment.
#[test]
fn continuity_counters_and_times_of_another_stream_are_no_fault_behind_a_discontinuity() {
    let mut inspector = Inspector::default();
    for number in 0..8 {
        let mut stream = Transport::new();
        let announced = AnnouncedUnit { is_discontinuous: number > 0, ..announced(number, 1_000) };
        let seen = inspect(&mut inspector, UnitKind::Segment, &stream.segment(&[]), announced).unwrap();
        assert_eq!((seen.lost_packets, seen.time_jumps, seen.frames), (0, 0, 25));
    }
}

#[test]
fn packets_that_are_missing_are_counted_exactly() {
    let (mut stream, mut inspector) = (Transport::new(), Inspector::default());
    for (number, lost) in (0..).zip([0, 1, 0, 5, 15, 0]) {
        let segment = stream.segment(&[]);
        let packets: Vec<_> = segment.as_chunks::<PACKET_LENGTH>().0.iter().collect();
        let is_video = |at: usize| {
            Packet::at(packets[at], 0)
                .is_some_and(|packet| packet.header().pid() == VIDEO && packet.header().has_payload())
        };
        let mut left = lost;
        let cut: Vec<u8> = (0..packets.len())
            .filter(|at| {
                let goes = left > 0 && *at > 20 && is_video(*at);
                left -= u64::from(goes);
                !goes
            })
            .flat_map(|at| *packets[at])
            .collect();
        assert_eq!(cut.len(), segment.len() - lost as usize * PACKET_LENGTH);
        let seen = inspect(&mut inspector, UnitKind::Segment, &cut, announced(number, 1_000)).unwrap();
        assert_eq!((seen.lost_packets, seen.time_jumps), (lost, 0), "{number}");
    }
}

#[test]
fn frames_that_are_missing_are_counted_exactly_wherever_they_were() {
    let (mut stream, mut inspector) = (Transport::new(), Inspector::default());
    let (mut frames, mut due) = (0, 0);
    for number in 0..20 {
        let left_out: &[u64] = match number {
            5 => &[7],
            // At the end, at the beginning, and many in a row.
            9 => &[24],
            12 => &[0, 1],
            15 => &[3, 4, 5, 6, 7],
            _ => &[],
        };
        // Durations of whole seconds, and of others.
        let duration = if number < 11 { 1_000 } else { 1_001 };
        let seen = inspect(
            &mut inspector,
            UnitKind::Segment,
            &stream.segment(left_out),
            announced(number, duration),
        );
        let seen = seen.unwrap();
        (frames, due) = (frames + seen.frames, due + seen.announced);
        assert_eq!((seen.lost_packets, seen.time_jumps), (0, 0));
    }
    assert_eq!((frames, due), (20 * 25 - 9, 20 * 25));
    assert_eq!(inspector.missed(announced(0, 2_000)), 50, "what was never there");
}

#[test]
fn durations_that_are_rounded_to_seconds_stand_for_what_came() {
    let (mut stream, mut inspector) = (Transport::new(), Inspector::default());
    for number in 0..20 {
        let mut bytes = Vec::new();
        stream.muxer.repeat_tables();
        stream.pictures(36, &[], &mut bytes);
        // 1.44 s, as version 2 of playlists writes it.
        let seen = inspect(&mut inspector, UnitKind::Segment, &bytes, announced(number, 1_000)).unwrap();
        assert_eq!((seen.frames, seen.announced), (36, 36));
    }
}

#[test]
fn a_source_whose_rate_varies_owes_nothing() {
    let mut inspector = Inspector::default();
    load_map(&mut inspector);
    let mut decoding = 0;
    for number in 0..10 {
        let durations: Vec<u32> = (0..12).map(|at| 400 + (at * 7 + number as u32 * 5) % 9 * 230).collect();
        let seen = inspect(
            &mut inspector,
            UnitKind::Segment,
            &fragment(1, decoding, &durations),
            announced(number, 2_000),
        );
        decoding += durations.iter().map(|it| u64::from(*it)).sum::<u64>();
        assert_eq!(seen, Some(whole(12, 1)));
    }
}

#[test]
fn a_source_that_goes_from_30_pictures_a_second_to_25_soon_owes_25() {
    let mut inspector = Inspector::default();
    load_map(&mut inspector);
    let (mut decoding, mut owed) = (0, 0);
    for number in 0..60 {
        let rate = if number < 20 { 30 } else { 25 };
        let ends: Vec<u32> = (0..=rate).map(|at| 12_800 * at / rate).collect();
        let durations: Vec<u32> = ends.windows(2).map(|it| it[1] - it[0]).collect();
        let bytes = fragment(1, decoding, &durations);
        decoding += 12_800;
        let seen = inspect(&mut inspector, UnitKind::Segment, &bytes, announced(number, 1_000)).unwrap();
        owed += seen.announced as i64 - seen.frames as i64;
        assert_eq!(seen.time_jumps, 0);
        if number >= 30 {
            assert!(seen.announced.abs_diff(25) <= 1, "{seen:?}");
        }
    }
    assert!(owed.abs() <= 12, "{owed}");
}

#[test]
fn times_at_the_end_of_the_world_and_runs_without_samples_cost_little() {
    let mut inspector = Inspector::default();
    load_map(&mut inspector);
    for (number, decoding) in (0..).zip([0, u64::MAX, 0, 1 << 62, 3, 4]) {
        inspect(&mut inspector, UnitKind::Segment, &fragment(1, decoding, &[1; 9]), announced(number, 1_000));
    }
    // A megabyte of runs of 65,536 samples each, which are described by no byte.
    let run = iso_box(b"trun", &[&words(&[0, 1 << 16])]);
    let tfhd = iso_box(b"tfhd", &[&words(&[0x02_0000, 2])]);
    let moof = iso_box(b"moof", &[&iso_box(b"traf", &[&tfhd, &run.repeat(60_000)])]);
    assert_eq!(inspect(&mut inspector, UnitKind::Segment, &moof, announced(9, 1_000)), None);
}

#[test]
fn a_map_behind_one_that_was_cut_off_is_read_alone() {
    let mut inspector = Inspector::default();
    inspector.begin(UnitKind::Map);
    inspector.take(&map()[..90]);
    load_map(&mut inspector);
    let seen = inspect(&mut inspector, UnitKind::Segment, &fragment(1, 0, &[512; 25]), announced(0, 1_000));
    assert_eq!(seen.map(|seen| seen.frames), Some(25));
}

#[test]
fn times_that_jump_are_counted_once_each() {
    let mut inspector = Inspector::default();
    load_map(&mut inspector);
    let (mut decoding, mut jumps) = (900_000_u64, 0);
    for number in 0..12 {
        // Half a second is left out inside of one, and before another; a third goes back.
        let mut durations = [512; 25];
        match number {
            3 => durations[10] = 512 * 15,
            6 => decoding += 12_800,
            9 => decoding -= 2 * 12_800,
            _ => {}
        }
        let bytes = fragment(number, decoding, &durations);
        decoding += durations.iter().map(|it| u64::from(*it)).sum::<u64>();
        let seen = inspect(&mut inspector, UnitKind::Segment, &bytes, announced(number.into(), 1_000));
        jumps += seen.unwrap().time_jumps;
    }
    assert_eq!(jumps, 3);
}

#[test]
fn fragments_that_are_missing_inside_of_a_segment_are_seen() {
    let mut inspector = Inspector::default();
    load_map(&mut inspector);
    let segment = |numbers: &[u32]| -> Vec<u8> {
        numbers.iter().flat_map(|number| fragment(*number, u64::from(*number) * 2_560, &[512; 5])).collect()
    };
    let styp = iso_box(b"styp", &[b"msdh"]);
    for (number, (numbers, gaps, frames)) in
        (0..).zip([(&[1, 2, 3, 4, 5][..], 0, 25), (&[6, 7, 9, 10], 1, 20), (&[11, 12, 13, 14, 15], 0, 25)])
    {
        let bytes = [styp.clone(), segment(numbers)].concat();
        let seen = inspect(&mut inspector, UnitKind::Segment, &bytes, announced(number, 1_000)).unwrap();
        assert_eq!((seen.fragment_gaps, seen.frames, seen.announced), (gaps, frames, 25), "{number}");
    }
}

#[test]
fn parts_of_a_transport_stream_go_on_with_the_tables_of_their_segment() {
    let (mut stream, mut inspector) = (Transport::new(), Inspector::default());
    for number in 0..8 {
        stream.muxer.repeat_tables();
        for _ in 0..5 {
            let mut part = Vec::new();
            stream.pictures(5, &[], &mut part);
            let seen = inspect(&mut inspector, UnitKind::Part, &part, announced(number, 200)).unwrap();
            assert_eq!((seen.frames, seen.announced, seen.lost_packets, seen.time_jumps), (5, 5, 0, 0));
        }
    }
    // A part that did not come takes those behind it in its segment with it, and no packet counts as lost.
    stream.muxer.repeat_tables();
    let mut part = Vec::new();
    stream.pictures(5, &[], &mut part);
    assert_eq!(inspector.missed(announced(0, 200)), 5);
    part.clear();
    stream.pictures(5, &[], &mut part);
    assert_eq!(inspect(&mut inspector, UnitKind::Part, &part, announced(8, 200)), None);
}

#[test]
fn what_is_no_container_is_not_looked_into() {
    let mut inspector = Inspector::default();
    for bytes in [&b"ID3\x04packed audio"[..], b"WEBVTT\n\n00:00", b"media", b"", &fragment(1, 0, &[1])] {
        assert_eq!(inspect(&mut inspector, UnitKind::Segment, bytes, announced(0, 1_000)), None, "{bytes:?}");
    }
    load_map(&mut inspector);
    let bytes = fragment(1, 0, &[512; 20]);
    assert_eq!(inspect(&mut inspector, UnitKind::Segment, &bytes[..90], announced(0, 1_000)), None, "cut");
    assert!(inspect(&mut inspector, UnitKind::Segment, &bytes, announced(0, 1_000)).is_some());
}

proptest! {
    #[test]
    fn every_split_of_a_segment_is_seen_alike(splits in prop::collection::vec(0..5_000_usize, 0..9)) {
        let transport = Transport::new().segment(&[3]);
        let fragments = [fragment(1, 0, &[512; 9]), fragment(3, 9 * 512, &[512; 9])].concat();
        for bytes in [transport, fragments] {
            let mut inspector = Inspector::default();
            load_map(&mut inspector);
            let all = inspect(&mut inspector, UnitKind::Segment, &bytes, announced(0, 1_001));
            let mut inspector = Inspector::default();
            load_map(&mut inspector);
            inspector.begin(UnitKind::Segment);
            let mut splits: Vec<_> = splits.iter().map(|at| at % bytes.len()).collect();
            splits.extend([0, bytes.len()]);
            splits.sort_unstable();
            splits.windows(2).for_each(|ends| inspector.take(&bytes[ends[0]..ends[1]]));
            prop_assert!(all.is_some());
            prop_assert_eq!(inspector.finish(announced(0, 1_001)), all);
        }
    }

    #[test]
    fn whatever_comes_is_taken(map in prop::collection::vec(any::<u8>(), 0..300), bytes in prop::collection::vec(any::<u8>(), 0..900), kind in 0..3) {
        let mut inspector = Inspector::default();
        inspector.begin(UnitKind::Map);
        inspector.take(&map);
        inspector.finish_map();
        load_map(&mut inspector);
        let front: &[u8] = [&b"G"[..], b"\0\0\x01\0moof", b""][kind as usize];
        inspect(&mut inspector, UnitKind::Segment, &[front, &bytes].concat(), announced(0, 1_000));
    }
}
