//! What the muxer writes, judged by others: ffprobe, ffmpeg and the crate mpeg2ts.

use std::path::Path;
use std::process::Command;

use mpeg2ts::ts::{ReadTsPacket, TsPacketReader, TsPayload};
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};
use weir_ts::remux::{Loop, LoopError};
use weir_ts::{Analyser, Counts, Options};

/// What a command printed; it must have succeeded.
fn output(command: &mut Command) -> (Vec<u8>, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {errors}");
    (output.stdout, errors)
}

fn ffmpeg(arguments: &str) -> Vec<u8> {
    output(Command::new("ffmpeg").args(["-nostdin", "-v", "warning"]).args(arguments.split(' '))).0
}

/// Access units of a raw H.264 stream in which each begins with a delimiter.
fn pictures(stream: &[u8]) -> Vec<&[u8]> {
    let delimiter = |at: &usize| stream[*at..].starts_with(&[0, 0, 0, 1, 9]);
    let begins: Vec<usize> = (0..stream.len()).filter(delimiter).chain([stream.len()]).collect();
    begins.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
}

/// Frames of an ADTS stream.
fn frames(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while stream.len() > 7 {
        let length =
            usize::from(stream[3] & 3) << 11 | usize::from(stream[4]) << 3 | usize::from(stream[5] >> 5);
        let (frame, rest) = stream.split_at(length);
        frames.push(frame);
        stream = rest;
    }
    frames
}

/// Four seconds of a test picture and a tone.
fn programme(settings: MuxSettings) -> Vec<u8> {
    let video = ffmpeg(
        "-f lavfi -i testsrc2=s=320x240:r=25:d=4 -c:v libx264 -b:v 600k -g 25 -bf 0 -pix_fmt yuv420p \
         -bsf:v h264_metadata=aud=insert -f h264 -",
    );
    let audio = ffmpeg("-f lavfi -i sine=r=48000:d=4 -c:a aac -b:a 96k -f adts -");
    let (pictures, frames) = (pictures(&video), frames(&audio));
    assert_eq!(pictures.len(), 100);
    let mut muxer = Muxer::new(settings);
    let mut bytes = Vec::new();
    let (mut next_picture, mut next_frame) = (0, 0);
    while next_picture < pictures.len() {
        let (picture_dts, frame_dts) =
            (90_000 + next_picture as u64 * 3600, 90_000 + next_frame as u64 * 1920);
        if picture_dts <= frame_dts || next_frame == frames.len() {
            let random_access = next_picture % 25 == 0;
            let bytes_of = pictures[next_picture];
            let unit = AccessUnit { pts: picture_dts, dts: picture_dts, random_access, bytes: bytes_of };
            muxer.video(&unit, &mut bytes);
            next_picture += 1;
        } else {
            let unit =
                AccessUnit { pts: frame_dts, dts: frame_dts, random_access: true, bytes: frames[next_frame] };
            muxer.audio(&unit, &mut bytes);
            next_frame += 1;
        }
    }
    assert_eq!(muxer.late_units(), 0);
    assert_eq!(muxer.packets() * 188, bytes.len() as u64);
    bytes
}

/// Whatever ffmpeg has to say of a stream that it decodes to its end.
fn complaints(file: &Path) -> String {
    let file = file.to_str().expect("a path in UTF-8");
    let decode = ["-nostdin", "-v", "warning", "-i", file, "-f", "null", "-"];
    output(Command::new("ffmpeg").args(decode)).1
}

fn probe(file: &Path) -> String {
    let (found, errors) = output(
        Command::new("ffprobe")
            .args(["-v", "warning", "-count_frames", "-of", "csv=p=0"])
            .args(["-show_entries", "stream=codec_name,nb_read_frames:program_tags=service_name"])
            .arg(file),
    );
    assert_eq!(errors, "");
    String::from_utf8(found).expect("csv")
}

fn check(settings: MuxSettings) {
    let bytes = programme(settings);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("programme.ts");
    std::fs::write(&file, &bytes).expect("a file");
    assert_eq!(complaints(&file), "");
    let found = probe(&file);
    assert!(found.contains("h264,100"), "{found}");
    assert!(found.contains("aac,18"), "{found}");
    assert!(found.contains("weir"), "{found}");

    let mut analyser = Analyser::new(Options::default());
    analyser.feed(&bytes);
    analyser.finish();
    let counts = analyser.counts();
    let sound = Counts {
        bytes: counts.bytes,
        packets: bytes.len() as u64 / 188,
        null_packets: counts.null_packets,
        pcrs: counts.pcrs,
        random_access_indicators: counts.random_access_indicators,
        ..Counts::default()
    };
    assert_eq!(counts, sound, "{:?}", analyser.findings());
}

#[test]
fn ffmpeg_has_nothing_to_say_of_a_stream_without_null_packets() {
    check(MuxSettings::default());
}

#[test]
fn ffmpeg_has_nothing_to_say_of_a_constant_bit_rate() {
    check(MuxSettings { bit_rate: Some(2_000_000), ..MuxSettings::default() });
}

#[test]
fn another_parser_sees_the_same_packets() {
    let bytes = programme(MuxSettings { bit_rate: Some(2_000_000), ..MuxSettings::default() });
    let mut reader = TsPacketReader::new(&bytes[..]);
    let (mut packets, mut nulls, mut starts, mut clocks, mut programs, mut streams) = (0, 0, 0, 0, 0, 0);
    while let Some(packet) = reader.read_ts_packet().expect("packets as the standard has them") {
        packets += 1;
        clocks += u64::from(packet.adaptation_field.is_some_and(|field| field.pcr.is_some()));
        match packet.payload {
            Some(TsPayload::Pat(pat)) => programs = pat.table.len(),
            Some(TsPayload::Pmt(pmt)) => streams = pmt.es_info.len(),
            Some(TsPayload::PesStart(_)) => starts += 1,
            Some(TsPayload::Null(_)) => nulls += 1,
            _ => {}
        }
    }
    let mut analyser = Analyser::new(Options::default());
    analyser.feed(&bytes);
    analyser.finish();
    let (counts, report) = (analyser.counts(), analyser.report());
    assert_eq!((packets, nulls, clocks), (counts.packets, counts.null_packets, counts.pcrs));
    assert_eq!(starts, report.pids.iter().map(|pid| pid.counts.pes_packets).sum::<u64>());
    assert_eq!((programs, streams), (1, 2));
}

#[test]
fn a_loop_goes_on_without_a_break() {
    for bit_rate in [None, Some(2_000_000)] {
        let bytes = programme(MuxSettings { bit_rate, ..MuxSettings::default() });
        let looped = Loop::new(&bytes, None).expect("a stream with a clock");
        assert_eq!(looped.packets() * 188, bytes.len());
        let seconds = looped.duration() as f64 / 27e6;
        assert!((seconds - 4.0).abs() < 0.001, "{seconds}");
        let mut passes = Vec::new();
        for pass in 0..3 {
            looped.extend(pass, 0..looped.packets(), &mut passes);
        }
        let mut analyser = Analyser::new(Options::default());
        analyser.feed(&passes);
        analyser.finish();
        let counts = analyser.counts();
        let faults =
            (counts.gap_events, counts.illegal_duplicates, counts.legal_duplicates, counts.pts_jumps);
        assert_eq!(faults, (0, 0, 0, 0), "{:?}", analyser.findings());
        assert_eq!((counts.pcr_discontinuities, counts.pcr_discontinuity_indicator_error), (0, 0));
        let time = analyser.time().expect("a clock").as_seconds();
        assert!((11.8..12.2).contains(&time), "{time}");

        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("looped.ts");
        std::fs::write(&file, &passes).expect("a file");
        assert_eq!(complaints(&file), "");
        assert!(probe(&file).contains("h264,300"));
    }
}

#[test]
fn what_is_no_stream_is_no_loop() {
    assert_eq!(Loop::new(&[0; 1000], None).err(), Some(LoopError::Empty));
    let nulls = [weir_ts::mux::NULL_PACKET; 20].concat();
    assert_eq!(Loop::new(&nulls, None).err(), Some(LoopError::NoClock));
}
