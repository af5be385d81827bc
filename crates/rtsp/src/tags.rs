//! Payloads of a described track as the bodies of FLV tags, the form in which every viewer is measured and the origin keeps
//! its streams.

mod h265;

use crate::MediaKind;
use crate::clock::{DecodeOrder, TrackClock};
use crate::payloads::picture_codec;
use std::time::Duration;
use weir_media::{Framing, aac_format, append_obus, units};
use weir_rtc::aac;
use weir_rtc::sdp::Format;
use weir_rtc::{AccessUnit, Assembler, VideoCodec};
use weir_rtmp::flv;

/// Bytes in front of a picture in a tag (FLV 10.1 section E.4.3.1).
const PICTURE_HEADER: usize = 5;

/// Samples in a frame of AAC (ISO/IEC 14496-3 section 4.5.2.1.1).
const AAC_SAMPLES: i64 = 1_024;

/// In front of raw AAC (FLV 10.1 section E.4.2.2).
const AAC_FRAME: [u8; 2] = [0xAF, 1];

/// NAL units of H.264 (ITU-T H.264 table 7-1).
const SEQUENCE_PARAMETER_SET: u8 = 7;
const PICTURE_PARAMETER_SET: u8 = 8;

/// Extended tags of enhanced RTMP: coded frames of a codec that is named by four characters.
const EXTENDED_VIDEO_FRAME: u8 = 0x81;
const EXTENDED_AUDIO_FRAME: u8 = 0x91;
/// The kinds of frame in a video tag.
const KEY: u8 = 1 << 4;
const INTER: u8 = 2 << 4;
/// Sound of G.711 in an audio tag (FLV 10.1 section E.4.2.1): 16 bit, mono.
const G711_A: u8 = 7 << 4 | 2;
const G711_MU: u8 = 8 << 4 | 2;

/// The body of a tag.
#[derive(Clone, Copy, Debug)]
pub struct Tag<'a> {
    /// Pictures or sound.
    pub kind: MediaKind,
    /// Milliseconds of the stream, modulo 2³².
    pub timestamp: u32,
    /// Its length in bytes.
    pub length: usize,
    /// Its first bytes, as many as are kept.
    pub head: &'a [u8],
    /// Packets of the picture are missing.
    pub is_broken: bool,
}

/// One packet of a track.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// Its extended sequence number.
    pub number: u64,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// Whether a frame ends with it.
    pub marker: bool,
    /// What is in it.
    pub bytes: &'a [u8],
    /// How long ago the first packet of the stream came.
    pub since: Duration,
}

/// Reads the payloads of one track.
#[derive(Debug)]
pub struct TagReader {
    kind: MediaKind,
    payloads: Payloads,
    tags: Tags,
}

/// How payloads become frames.
#[derive(Debug)]
enum Payloads {
    Read {
        codec: VideoCodec,
        assembler: Box<Assembler>,
        order: DecodeOrder,
    },
    Aac {
        depacketiser: Box<aac::Depacketiser>,
        ticks: i64,
    },
    /// A frame a packet, behind these bytes.
    Frames(Vec<u8>),
    /// Pictures of a codec that is not read here, which end with a marker, or where another timestamp begins.
    Pictures {
        header: [u8; PICTURE_HEADER],
        timestamp: Option<u32>,
        length: usize,
        has_begun: bool,
    },
}

/// What makes tags of frames.
#[derive(Debug)]
struct Tags {
    clock: TrackClock,
    /// What a decoder begins with, until its first frame comes.
    configuration: Option<Vec<u8>>,
    /// Parameter sets that came in packets of their own: two of H.264, three of H.265.
    sets: [Vec<u8>; 3],
    kept: usize,
    body: Vec<u8>,
}

impl TagReader {
    /// The payloads of a track of pictures or sound with this format. Up to `kept` bytes of each tag are kept.
    pub fn new(kind: MediaKind, format: &Format, kept: usize) -> Self {
        let (payloads, configuration) = Payloads::of(kind, format, kept);
        let clock = TrackClock::new(format.clock_rate);
        Self {
            kind,
            payloads,
            tags: Tags { clock, configuration, sets: Default::default(), kept, body: Vec::new() },
        }
    }

    /// Whether what weir cannot look into is passed on frame by frame.
    pub fn is_opaque(&self) -> bool {
        matches!(self.payloads, Payloads::Pictures { .. })
    }

    /// What a decoder begins with as it was described, before any packet: a receiver that passes tags on tells of all tracks first.
    pub fn begin(&mut self, emit: &mut impl FnMut(&Tag<'_>)) {
        self.tags.configure(self.kind, 0, emit);
    }

    /// The numbers of packets begin again.
    pub fn restart(&mut self) {
        if let Payloads::Read { assembler, .. } = &mut self.payloads {
            assembler.restart();
        }
    }

    /// Takes a packet; `emit` gets the tags that end with it. Whether it could be read.
    pub fn push(&mut self, packet: &Payload<'_>, emit: &mut impl FnMut(&Tag<'_>)) -> bool {
        let Payload { number, timestamp, marker, bytes, since } = *packet;
        let tags = &mut self.tags;
        match &mut self.payloads {
            Payloads::Read { codec, assembler, order } => {
                assembler.push(number, timestamp, marker, bytes, |unit| match codec {
                    VideoCodec::H264 | VideoCodec::H265 => {
                        tags.picture(*codec, &unit, order, since, emit);
                    }
                    VideoCodec::Vp8 | VideoCodec::Vp9 | VideoCodec::Av1 => {
                        tags.frame(*codec, &unit, since, emit);
                    }
                });
                true
            }
            Payloads::Aac { depacketiser, ticks } => {
                depacketiser.push(number, timestamp, bytes, |place, frame| {
                    tags.sound((timestamp, i64::from(place) * *ticks), since, &AAC_FRAME, frame, emit);
                })
            }
            Payloads::Frames(header) => {
                tags.sound((timestamp, 0), since, header, bytes, emit);
                !bytes.is_empty()
            }
            Payloads::Pictures { header, timestamp: current, length, has_begun } => {
                let mut end = |timestamp: Option<u32>, length: usize| {
                    let Some(timestamp) = timestamp else { return };
                    // Which frames a decoder can begin with is not known: it is given the first that comes.
                    header[0] =
                        EXTENDED_VIDEO_FRAME | if std::mem::replace(has_begun, true) { INTER } else { KEY };
                    tags.opaque_picture(timestamp, since, header, length, emit);
                };
                if current.is_some_and(|current| current != timestamp) {
                    end(current.take(), std::mem::take(length));
                }
                *length += bytes.len();
                *current = Some(timestamp);
                if marker {
                    end(current.take(), std::mem::take(length));
                }
                true
            }
        }
    }
}

impl Payloads {
    /// How payloads of a format are read, and what a decoder begins with, as a tag's body.
    fn of(kind: MediaKind, format: &Format, kept: usize) -> (Self, Option<Vec<u8>>) {
        if kind != MediaKind::Audio {
            if let Some(codec) = VideoCodec::of(format) {
                let assembler = Box::new(Assembler::new(codec, kept.saturating_sub(header_length(codec))));
                let payloads = Self::Read { codec, assembler, order: DecodeOrder::default() };
                return (payloads, sequence_header(codec, &codec.described_sets(format)));
            }
            let mut header = [0; PICTURE_HEADER];
            header[1..].copy_from_slice(&four_characters(&format.name));
            return (Self::Pictures { header, timestamp: None, length: 0, has_begun: false }, None);
        }
        if let Some(layout) = aac::Layout::described(format).filter(|_| format.is("MPEG4-GENERIC")) {
            let config = aac::described_config(format);
            let rate = config.as_deref().and_then(aac_format).map_or(format.clock_rate, |it| it.sample_rate);
            let ticks = AAC_SAMPLES * i64::from(format.clock_rate) / i64::from(rate.max(1));
            let configuration = config.map(|config| {
                let mut body = Vec::new();
                flv::aac_sequence_header(&config, &mut body);
                body
            });
            return (
                Self::Aac { depacketiser: Box::new(aac::Depacketiser::new(layout)), ticks },
                configuration,
            );
        }
        if format.is("PCMA") {
            return (Self::Frames(vec![G711_A]), None);
        }
        if format.is("PCMU") {
            return (Self::Frames(vec![G711_MU]), None);
        }
        let configuration = format.is("opus").then(|| {
            let mut body = Vec::new();
            flv::opus_sequence_header(format.channels.unwrap_or(2), &mut body);
            body
        });
        let header = [&[EXTENDED_AUDIO_FRAME][..], &four_characters(&format.name)].concat();
        (Self::Frames(header), configuration)
    }
}

/// The four characters by which Enhanced RTMP names a codec; of one that it does not list, the first of its name.
fn four_characters(name: &str) -> [u8; 4] {
    let known = [
        ("AV1", b"av01"),
        ("VP8", b"vp08"),
        ("VP9", b"vp09"),
        ("opus", b"Opus"),
        ("AC3", b"ac-3"),
        ("MPA", b".mp3"),
        ("MP4A-LATM", b"latm"),
    ];
    if let Some((_, characters)) = known.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)) {
        return **characters;
    }
    let mut characters = *b"    ";
    let signs = name.bytes().filter(u8::is_ascii_graphic);
    characters.iter_mut().zip(signs).for_each(|(character, sign)| *character = sign.to_ascii_lowercase());
    // A name that only begins as one of these does not mean their codec, of which more is asked before it plays.
    if [*b"mp4a", *b"avc1", *b"hvc1"].contains(&characters) {
        characters[3] = b'?';
    }
    characters
}

/// Bytes in front of a picture in its tag.
fn header_length(codec: VideoCodec) -> usize {
    match codec {
        VideoCodec::H265 => h265::PICTURE_HEADER,
        _ => PICTURE_HEADER,
    }
}

/// The body of a tag with these parameter sets; `None` if some are missing, or the codec has none.
fn sequence_header<Set: AsRef<[u8]>>(codec: VideoCodec, sets: &[Set]) -> Option<Vec<u8>> {
    // A decoder of H.264 cannot begin with one kind alone.
    if codec == VideoCodec::H264 && !sets.iter().any(|set| is_picture_set(set.as_ref())) {
        return None;
    }
    let codec = picture_codec(codec);
    let record = codec.record_of(sets.iter().map(AsRef::as_ref))?;
    let mut body = Vec::new();
    flv::picture_configuration(codec.four_cc(), &record, &mut body);
    Some(body)
}

fn is_picture_set(set: &[u8]) -> bool {
    set.first().is_some_and(|first| first & 0x1F == PICTURE_PARAMETER_SET)
}

impl Tags {
    /// A frame of a codec that has no parameter sets and sends its pictures in the order of their times.
    fn frame(
        &mut self,
        codec: VideoCodec,
        unit: &AccessUnit<'_>,
        since: Duration,
        emit: &mut impl FnMut(&Tag<'_>),
    ) {
        let ticks = self.clock.ticks(unit.timestamp, since);
        self.body.clear();
        flv::picture_header(picture_codec(codec).four_cc(), unit.keyframe, 0, &mut self.body);
        if codec == VideoCodec::Av1 {
            // "Enhanced RTMP": OBUs have their sizes in a tag.
            append_obus(units(unit.bytes, Framing::LengthPrefixed), &mut self.body);
        } else {
            self.body.extend_from_slice(unit.bytes);
        }
        let is_whole = unit.bytes.len() == unit.length;
        let length = if is_whole { self.body.len() } else { PICTURE_HEADER + unit.length };
        let timestamp = self.clock.millis(ticks);
        self.put(MediaKind::Video, timestamp, length, !unit.complete, emit);
    }

    fn picture(
        &mut self,
        codec: VideoCodec,
        unit: &AccessUnit<'_>,
        order: &mut DecodeOrder,
        since: Duration,
        emit: &mut impl FnMut(&Tag<'_>),
    ) {
        let is_whole = unit.bytes.len() == unit.length;
        if is_whole && !self.has_slice(codec, unit) {
            return;
        }
        let shown = self.clock.ticks(unit.timestamp, since);
        let decoded = order.place(shown, self.clock.jump());
        let timestamp = self.clock.millis(decoded);
        self.configure(MediaKind::Video, timestamp, emit);
        self.body.clear();
        let composition_time = self.clock.span(shown - decoded);
        flv::picture_header(picture_codec(codec).four_cc(), unit.keyframe, composition_time, &mut self.body);
        self.body.extend_from_slice(unit.bytes);
        let length = header_length(codec) + unit.length;
        self.put(MediaKind::Video, timestamp, length, !unit.complete, emit);
    }

    /// Whether there is a part of a picture in it; some cameras send parameter sets as if they were one. What differs from what a
    /// decoder was given is kept for it.
    fn has_slice(&mut self, codec: VideoCodec, unit: &AccessUnit<'_>) -> bool {
        let (mut has_slice, mut is_new) = (false, false);
        for unit in units(unit.bytes, Framing::LengthPrefixed) {
            let Some(&first) = unit.first() else { continue };
            let (is_slice, place) = match codec {
                VideoCodec::H265 => (h265::unit_type(first) < 32, h265::set_place(first)),
                _ => match first & 0x1F {
                    1..=5 => (true, None),
                    SEQUENCE_PARAMETER_SET => (false, Some(0)),
                    PICTURE_PARAMETER_SET => (false, Some(1)),
                    _ => (false, None),
                },
            };
            has_slice |= is_slice;
            if is_slice {
                break;
            }
            let Some(place) = place else { continue };
            if self.sets[place] != unit {
                (self.sets[place], is_new) = (unit.to_vec(), true);
            }
        }
        if is_new && let Some(header) = sequence_header(codec, &self.sets) {
            self.configuration = Some(header);
        }
        has_slice
    }

    fn sound(
        &mut self,
        (timestamp, later): (u32, i64),
        since: Duration,
        header: &[u8],
        frame: &[u8],
        emit: &mut impl FnMut(&Tag<'_>),
    ) {
        let ticks = self.clock.ticks(timestamp, since) + later;
        let timestamp = self.clock.millis(ticks);
        self.configure(MediaKind::Audio, timestamp, emit);
        self.body.clear();
        self.body.extend_from_slice(header);
        self.body.extend_from_slice(&frame[..frame.len().min(self.kept.saturating_sub(header.len()))]);
        self.put(MediaKind::Audio, timestamp, header.len() + frame.len(), false, emit);
    }

    fn opaque_picture(
        &mut self,
        timestamp: u32,
        since: Duration,
        header: &[u8],
        length: usize,
        emit: &mut impl FnMut(&Tag<'_>),
    ) {
        let ticks = self.clock.ticks(timestamp, since);
        self.body.clear();
        self.body.extend_from_slice(header);
        let timestamp = self.clock.millis(ticks);
        self.put(MediaKind::Video, timestamp, header.len() + length, false, emit);
    }

    /// In front of the first frame stands what a decoder begins with.
    fn configure(&mut self, kind: MediaKind, timestamp: u32, emit: &mut impl FnMut(&Tag<'_>)) {
        if let Some(configuration) = self.configuration.take() {
            emit(&Tag {
                kind,
                timestamp,
                length: configuration.len(),
                head: &configuration,
                is_broken: false,
            });
        }
    }

    fn put(
        &self,
        kind: MediaKind,
        timestamp: u32,
        length: usize,
        is_broken: bool,
        emit: &mut impl FnMut(&Tag<'_>),
    ) {
        emit(&Tag { kind, timestamp, length, head: &self.body, is_broken });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_rtc::h264::described_format;
    use weir_rtmp::flv::{AudioTag, VideoTag};

    const SETS: [&[u8]; 2] = [&[0x67, 66, 0, 30, 1], &[0x68, 0xCE]];

    /// The tags of packets: timestamp, whether it is a decoder's configuration, whether a keyframe.
    fn tags(reader: &mut TagReader, packets: &[(u32, &[u8])]) -> Vec<(u32, bool, bool)> {
        let mut found = Vec::new();
        for (number, (timestamp, bytes)) in (0..).zip(packets) {
            let packet =
                Payload { number, timestamp: *timestamp, marker: true, bytes, since: Duration::ZERO };
            reader.push(&packet, &mut |tag| {
                let read = match tag.kind {
                    MediaKind::Audio => {
                        let audio = AudioTag::parse(tag.head).unwrap();
                        (audio.is_sequence_header(), false)
                    }
                    _ => {
                        let video = VideoTag::parse(tag.head).unwrap();
                        (video.is_sequence_header(), video.is_keyframe() && video.is_frame())
                    }
                };
                found.push((tag.timestamp, read.0, read.1));
            });
        }
        found
    }

    #[test]
    fn a_configuration_stands_in_front_of_the_first_picture_and_of_one_after_other_parameter_sets() {
        let mut reader = TagReader::new(MediaKind::Video, &described_format(96, &SETS), 528);
        let other = [&[0x78, 0, 5][..], &[0x67, 66, 0, 31, 1], &[0, 2], SETS[1]].concat();
        let packets =
            [(0, &[0x65, 0x88][..]), (3_600, &[0x41, 0x9A]), (7_200, &other), (7_200, &[0x65, 0x88])];
        let expected =
            [(0, true, false), (0, false, true), (40, false, false), (80, true, false), (80, false, true)];
        assert_eq!(tags(&mut reader, &packets), expected);
    }

    #[test]
    fn pictures_of_every_codec_that_is_read_are_keyframes_where_they_say_so() {
        let read = |name: &str, packets: &[(u32, &[u8])]| {
            let format = Format { name: name.to_owned(), clock_rate: 90_000, ..Format::default() };
            let mut reader = TagReader::new(MediaKind::Video, &format, 528);
            assert!(!reader.is_opaque());
            tags(&mut reader, packets)
        };
        let expected = [(0, false, true), (100, false, false)];
        assert_eq!(read("VP8", &[(0, &[0x10, 0x10, 0, 0]), (9_000, &[0x10, 0x11, 0, 0])]), expected);
        assert_eq!(read("VP9", &[(0, &[0x08, 0x82, 0x49]), (9_000, &[0x08, 0x86, 0])]), expected);
        assert_eq!(read("AV1", &[(0, &[0x18, 0x30, 0x10]), (9_000, &[0x10, 0x30, 0x30])]), expected);
        let h265 = [(0, &[0x26, 0x01, 0xAF][..]), (9_000, &[0x02, 0x01, 0xD0])];
        assert_eq!(read("H265", &h265), expected);
    }

    #[test]
    fn codecs_that_are_not_read_are_passed_on_frame_by_frame() {
        let format = Format { name: "JPEG".to_owned(), clock_rate: 90_000, ..Format::default() };
        let mut reader = TagReader::new(MediaKind::Video, &format, 528);
        assert!(reader.is_opaque());
        assert_eq!(tags(&mut reader, &[(0, b"a"), (9_000, b"b")]), [(0, false, true), (100, false, false)]);
        for (name, expected) in
            [("MP4A-LATM", b"latm"), ("mp4a-other", b"mp4?"), ("avc1", b"avc?"), ("X", b"x   ")]
        {
            assert_eq!(&four_characters(name), expected, "{name}");
        }
        let format = Format { name: "PCMU".to_owned(), clock_rate: 8_000, ..Format::default() };
        let mut reader = TagReader::new(MediaKind::Audio, &format, 528);
        assert_eq!(tags(&mut reader, &[(0, b"a"), (160, b"b")]), [(0, false, false), (20, false, false)]);
    }
}
