//! A transport stream as packets of a stream: the first H.264 and the first AAC of it, as an RTMP publisher would have sent them.

use crate::rtmp::Intake;
use crate::stream::{Opening, Packet};
use std::sync::Arc;
use weir_media::{Framing, UnitType, append_decoder_configuration, units};
use weir_rtmp::flv::{aac_frame, aac_sequence_header, avc_frame, avc_sequence_header};
use weir_rtmp::message::MediaKind;
use weir_rtmp::server::MediaMessage;
use weir_ts::pes::{TIMESTAMP_WRAP, timestamp_since};
use weir_ts::{Analyser, Codec, ElementaryPiece, ElementaryStreams, Options};

/// The longest access unit: larger than any picture of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_UNIT: usize = 8 * 1024 * 1024;
/// Samples of a frame of AAC.
const SAMPLES: i64 = 1_024;
/// Bytes of an ADTS header without its check.
const ADTS_HEADER: usize = 7;
/// Sampling frequencies by their index (ISO/IEC 14496-3 table 1.18).
const RATES: [i64; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// What becomes of a packet; with a keyframe, what goes before it.
pub(super) type Take<'a> = &'a mut dyn FnMut(Packet, Option<Arc<Opening>>);

/// One publication.
pub(super) struct Demuxer {
    analyser: Box<Analyser>,
    pictures: Option<Track>,
    sound: Option<Track>,
    frames: Frames,
}

/// A PES packet under way.
struct Track {
    pid: u16,
    bytes: Vec<u8>,
    /// When it is shown and decoded: 90 kHz ticks, as they stand in the stream.
    times: Option<(u64, u64)>,
    /// Frames of sound that it has brought.
    frames: i64,
}

/// What was made of the stream so far.
#[derive(Default)]
struct Frames {
    intake: Intake,
    /// A decoding time in the stream, and the same on a clock that goes on.
    clock: Option<(u64, i64)>,
    configuration: Vec<u8>,
    specific_config: [u8; 2],
    has_begun: bool,
    unit: Vec<u8>,
    body: Vec<u8>,
}

impl Demuxer {
    pub(super) fn new() -> Self {
        let mut analyser = Box::new(Analyser::new(Options::default()));
        analyser.keep_elementary(Some(ElementaryStreams::All));
        Self { analyser, pictures: None, sound: None, frames: Frames::default() }
    }

    /// Takes bytes of the stream.
    pub(super) fn take(&mut self, bytes: &[u8], take: Take<'_>) {
        self.analyser.feed(bytes);
        let (pictures, sound, frames) = (&mut self.pictures, &mut self.sound, &mut self.frames);
        self.analyser.take_elementary(|piece| match piece.codec {
            Codec::H264 => {
                if let Some(track) = Track::of(pictures, &piece) {
                    if piece.start {
                        frames.picture(track, take);
                        track.begin(&piece);
                    }
                    track.add(&piece);
                }
            }
            Codec::Aac => {
                if let Some(track) = Track::of(sound, &piece) {
                    if piece.start {
                        track.begin(&piece);
                    }
                    track.add(&piece);
                    frames.sound(track, take);
                }
            }
            _ => {}
        });
    }

    /// Nothing more comes: the last picture is whole.
    pub(super) fn finish(&mut self, take: Take<'_>) {
        if let Some(track) = &mut self.pictures {
            self.frames.picture(track, take);
        }
    }
}

impl Track {
    /// The track that a piece belongs to, if it is the first of its kind.
    fn of<'a>(place: &'a mut Option<Self>, piece: &ElementaryPiece<'_>) -> Option<&'a mut Self> {
        let new = || Self { pid: piece.pid, bytes: Vec::new(), times: None, frames: 0 };
        Some(place.get_or_insert_with(new)).filter(|track| track.pid == piece.pid)
    }

    fn begin(&mut self, piece: &ElementaryPiece<'_>) {
        self.bytes.clear();
        (self.times, self.frames) = (piece.times, 0);
    }

    fn add(&mut self, piece: &ElementaryPiece<'_>) {
        if self.bytes.len() + piece.bytes.len() > LONGEST_UNIT {
            (self.times, self.bytes) = (None, Vec::new());
        }
        if self.times.is_some() {
            self.bytes.extend_from_slice(piece.bytes);
        }
    }
}

impl Frames {
    /// A time of the stream in 90 kHz ticks from its first decoding time on.
    fn ticks(&mut self, time: u64) -> i64 {
        let (before, ticks) = *self.clock.get_or_insert((time, 0));
        let ticks = ticks + timestamp_since(time % TIMESTAMP_WRAP, before);
        self.clock = Some((time, ticks));
        ticks
    }

    /// The access unit of a PES packet is whole.
    fn picture(&mut self, track: &mut Track, take: Take<'_>) {
        let Some((shown, decoded)) = track.times.take() else { return };
        let (mut sequence, mut picture) = (Vec::new(), Vec::new());
        let (mut keyframe, mut has_picture) = (false, false);
        self.unit.clear();
        for unit in units(&track.bytes, Framing::AnnexB) {
            match UnitType::of(unit) {
                Some(UnitType::SequenceParameterSet) => sequence.push(unit),
                Some(UnitType::PictureParameterSet) => picture.push(unit),
                Some(UnitType::AccessUnitDelimiter) => continue,
                Some(UnitType::Slice { idr, .. }) => {
                    keyframe |= idr;
                    has_picture = true;
                }
                _ => {}
            }
            self.unit.extend_from_slice(&(unit.len() as u32).to_be_bytes());
            self.unit.extend_from_slice(unit);
        }
        let ticks = self.ticks(decoded);
        let composition = timestamp_since(shown, decoded).clamp(-90_000 * 10, 90_000 * 10);
        let timestamp = (ticks / 90) as u32;
        let mut configuration = Vec::new();
        if append_decoder_configuration(&sequence, &picture, &mut configuration)
            && configuration != self.configuration
        {
            self.body.clear();
            avc_sequence_header(&configuration, &mut self.body);
            self.configuration = configuration;
            self.message(MediaKind::Video, timestamp, take);
        }
        self.has_begun |= keyframe && !self.configuration.is_empty();
        if has_picture && self.has_begun {
            self.body.clear();
            avc_frame(keyframe, (composition / 90) as i32, &self.unit, &mut self.body);
            self.message(MediaKind::Video, timestamp, take);
        }
    }

    /// Takes the frames of sound that are whole.
    fn sound(&mut self, track: &mut Track, take: Take<'_>) {
        let Some((shown, _)) = track.times else { return };
        let mut at = 0;
        while let Some(header) = track.bytes.get(at..).and_then(|rest| rest.first_chunk::<ADTS_HEADER>()) {
            // ISO/IEC 14496-3 section 1.A.2.2.
            let length =
                usize::from(header[3] & 3) << 11 | usize::from(header[4]) << 3 | usize::from(header[5] >> 5);
            let begin = if header[1] & 1 == 0 { ADTS_HEADER + 2 } else { ADTS_HEADER };
            let index = header[2] >> 2 & 15;
            let rate = RATES.get(usize::from(index)).copied();
            let (true, Some(rate)) = (header[0] == 0xFF && header[1] & 0xF6 == 0xF0 && length > begin, rate)
            else {
                // No frame begins here: the rest of the packet says nothing.
                track.times = None;
                return;
            };
            let Some(frame) = track.bytes.get(at + begin..at + length) else { break };
            // The first track's clock is the stream's.
            let ticks = self.clock.map_or(0, |(before, ticks)| ticks + timestamp_since(shown, before));
            let timestamp = ((ticks + track.frames * SAMPLES * 90_000 / rate) / 90) as u32;
            let channels = (header[2] & 1) << 2 | header[3] >> 6;
            let config = [((header[2] >> 6) + 1) << 3 | index >> 1, index << 7 | channels << 3];
            if self.has_begun {
                if config != self.specific_config {
                    self.specific_config = config;
                    self.body.clear();
                    aac_sequence_header(&config, &mut self.body);
                    self.message(MediaKind::Audio, timestamp, take);
                }
                self.body.clear();
                aac_frame(frame, &mut self.body);
                self.message(MediaKind::Audio, timestamp, take);
            }
            track.frames += 1;
            at += length;
        }
        track.bytes.drain(..at);
    }

    fn message(&mut self, kind: MediaKind, timestamp: u32, take: Take<'_>) {
        let message = MediaMessage { message_stream_id: 1, kind, timestamp, payload: &self.body };
        let (packet, opening) = self.intake.media(&message);
        take(packet, opening);
    }
}
