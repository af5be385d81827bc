//! One stream as RTP payloads, made once for all viewers of a worker, and kept for those who come, or ask again.

use super::encoding::{SoundCodec, of_pictures, of_sound};
use crate::g711;
use crate::pictures::carried;
use crate::rtmp::unframe;
use crate::stream::{Kind, Log, Packet};
use crate::worker::{StreamKey, Worker};
use std::sync::Arc;
use weir_media::PictureCodec;
use weir_metrics::Moment;
use weir_rtc::random_number;
use weir_rtmp::flv::{AudioCodec, AudioPacketType, AudioTag, FourCc};
use weir_rtsp::{PicturePayloads, video_codec};

/// Bytes of a payload: with header, tag, UDP and IP a datagram that fits every path of the field.
const PAYLOAD: usize = 1_160;
/// Before the payload of a unit: its encoding, and whether it has the marker; how many units of each track came before it.
const PREFIX: usize = 9;
/// The marker among the bits of the first byte; the encoding's number is above it.
const MARKER: u8 = 1;

/// The two tracks of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackKind {
    Video,
    Audio,
}

/// One stream.
pub(super) struct Feed {
    pub(super) name: Arc<str>,
    pub(super) key: StreamKey,
    /// The units, each one RTP payload.
    pub(super) units: Log,
    /// How many viewers watch it.
    pub(super) peers: usize,
    publication: u64,
    /// The next packet of the stream.
    next: u64,
    /// What cuts its pictures, once there were any.
    payloads: Option<PicturePayloads>,
    /// The publication and the version of the settings that were looked at last.
    settings: Option<(u64, u64)>,
    ordinals: [u32; 2],
    /// What is added to the timestamps of this publication, so that they go on; known with its first frame.
    offset: Option<i64>,
    /// The latest media time, and when it came.
    newest: Option<(i64, Moment)>,
    /// Whether sound came that no browser plays.
    pub(super) sound_left_out: bool,
    /// When the publisher was last asked for a keyframe.
    pub(super) asked_at: Option<Moment>,
}

impl Feed {
    pub(super) fn new(name: &Arc<str>, key: StreamKey, worker: &Worker) -> Self {
        let stream = worker.stream(key);
        let cached = stream.log.last_keyframe().filter(|_| stream.log.history().gop_cache);
        Self {
            name: name.clone(),
            key,
            units: Log::new(*stream.log.history()),
            peers: 0,
            publication: stream.publication,
            next: cached.unwrap_or_else(|| stream.log.end()),
            payloads: None,
            ordinals: [0; 2],
            offset: None,
            newest: None,
            sound_left_out: false,
            settings: None,
            asked_at: None,
        }
    }

    /// Takes what the stream has brought since the last time.
    pub(super) fn follow(&mut self, worker: &Worker) {
        let stream = worker.stream(self.key);
        if stream.publication != self.publication {
            self.publication = stream.publication;
            self.next = stream.log.start();
            self.offset = None;
        }
        for entry in stream.log.from(self.next) {
            if let Some(opening) = &entry.opening
                && self.settings != Some((self.publication, opening.version()))
            {
                self.settings = Some((self.publication, opening.version()));
                opening.settings.packets.iter().for_each(|setup| self.take(setup, entry.arrived));
            }
            self.take(&entry.packet, entry.arrived);
        }
        self.next = stream.log.end();
    }

    fn take(&mut self, packet: &Packet, arrived: Moment) {
        match packet.kind {
            Kind::Video | Kind::Audio | Kind::Setup => {}
            Kind::Data | Kind::Transport => return,
        }
        let Some((_, payload)) = unframe(packet) else { return };
        if packet.kind == Kind::Audio {
            return self.sound(packet, &payload, arrived);
        }
        let Some((tag, codec)) = carried(&payload) else { return };
        let body = payload.get(tag.payload_offset..).unwrap_or_default();
        if tag.is_sequence_header() {
            self.payloads_of(codec).describe(body);
        } else if packet.kind == Kind::Video && tag.is_frame() {
            let shown = packet.timestamp + i64::from(tag.composition_time) * 1_000;
            self.picture(codec, body, tag.is_keyframe(), shown, arrived);
        }
    }

    /// What cuts pictures of this codec: those of a publication are of one.
    fn payloads_of(&mut self, codec: PictureCodec) -> &mut PicturePayloads {
        self.payloads.take_if(|payloads| payloads.codec() != codec);
        self.payloads.get_or_insert_with(|| {
            // RFC 7741 section 4.2, of the picture's number: it "SHOULD be initialized to a random number".
            let number = random_number().unwrap_or_default() as u16;
            PicturePayloads::of_stream(codec, PAYLOAD, number)
        })
    }

    fn picture(&mut self, codec: PictureCodec, picture: &[u8], keyframe: bool, shown: i64, arrived: Moment) {
        let timestamp = self.media_time(shown, arrived);
        self.payloads_of(codec);
        let Some(mut payloads) = self.payloads.take() else { return };
        let encoding = of_pictures(video_codec(codec));
        let mut first = keyframe;
        payloads.packetise(picture, keyframe, |payload, last| {
            let begins = std::mem::take(&mut first);
            self.push((TrackKind::Video, encoding), payload, last, begins, timestamp, arrived);
        });
        self.payloads = Some(payloads);
    }

    fn sound(&mut self, packet: &Packet, payload: &[u8], arrived: Moment) {
        let Ok(tag) = AudioTag::parse(payload) else { return };
        let is_opus = tag.codec == AudioCodec::FourCc(FourCc::OPUS);
        let g711 = || g711::is_a_law(tag.codec).map(|is_a_law| SoundCodec::G711 { is_a_law });
        let Some(codec) = is_opus.then_some(SoundCodec::Opus).or_else(g711) else {
            self.sound_left_out = true;
            return;
        };
        let frame = payload.get(tag.payload_offset..).unwrap_or_default();
        if tag.packet_type != AudioPacketType::CodedFrames || frame.is_empty() {
            return;
        }
        let timestamp = self.media_time(packet.timestamp, arrived);
        let track = (TrackKind::Audio, of_sound(codec));
        match codec {
            SoundCodec::Opus if frame.len() > PAYLOAD => {}
            SoundCodec::Opus => self.push(track, frame, false, false, timestamp, arrived),
            SoundCodec::G711 { .. } => {
                for (since, piece) in g711::pieces(frame, PAYLOAD) {
                    self.push(track, piece, false, false, timestamp + since.as_micros() as i64, arrived);
                }
            }
        }
    }

    /// The media time of a timestamp: that of the next publication goes on where this one's has ended.
    fn media_time(&mut self, timestamp: i64, arrived: Moment) -> i64 {
        let newest = self.newest;
        let offset = *self.offset.get_or_insert_with(|| match newest {
            Some((before, at)) => before + arrived.micros_since(at).max(1) - timestamp,
            None => 0,
        });
        let media = timestamp + offset;
        if newest.is_none_or(|(before, _)| before < media) {
            self.newest = Some((media, arrived));
        }
        media
    }

    fn push(
        &mut self,
        (track, encoding): (TrackKind, u8),
        payload: &[u8],
        marker: bool,
        keyframe: bool,
        timestamp: i64,
        arrived: Moment,
    ) {
        let mut bytes = Vec::with_capacity(PREFIX + payload.len());
        bytes.push(encoding << 1 | u8::from(marker));
        bytes.extend(self.ordinals.iter().flat_map(|ordinal| ordinal.to_be_bytes()));
        bytes.extend_from_slice(payload);
        let kind = if track == TrackKind::Video { Kind::Video } else { Kind::Audio };
        let mut unit = Packet::units(kind, 1, bytes, (PREFIX, 0));
        (unit.keyframe, unit.timestamp) = (keyframe, timestamp);
        self.ordinals[track as usize] = self.ordinals[track as usize].wrapping_add(1);
        self.units.push(unit, None, arrived);
    }

    /// The unit of a track with this ordinal, if it is still kept.
    pub(super) fn find(&self, track: TrackKind, ordinal: u32) -> Option<&Packet> {
        // Ordinals rise with the numbers, and are compared as sequence numbers are: around the newest.
        let (mut low, mut high) = (self.units.start(), self.units.end());
        while low < high {
            let middle = low + (high - low) / 2;
            let unit = &self.units.get(middle)?.packet;
            // The number of the track's units that lie before the one behind this.
            let behind = ordinal_of(unit, track).wrapping_add(u32::from(track_kind_of(unit) == track));
            if behind.wrapping_sub(ordinal) as i32 <= 0 { low = middle + 1 } else { high = middle }
        }
        let unit = &self.units.get(low)?.packet;
        (track_kind_of(unit) == track && ordinal_of(unit, track) == ordinal).then_some(unit)
    }

    /// How many units of a track there were.
    pub(super) fn ordinal(&self, track: TrackKind) -> u32 {
        self.ordinals[track as usize]
    }

    /// The latest media time, as of now.
    pub(super) fn media_time_at(&self, now: Moment) -> Option<i64> {
        self.newest.map(|(media, at)| media + now.micros_since(at).max(0))
    }
}

/// The track of a unit.
pub(super) fn track_kind_of(unit: &Packet) -> TrackKind {
    if unit.kind == Kind::Audio { TrackKind::Audio } else { TrackKind::Video }
}

/// Whether a unit is the last of its frame.
pub(super) fn has_marker(unit: &Packet) -> bool {
    unit.framed().first().is_some_and(|first| first & MARKER != 0)
}

/// The number of a unit's encoding.
pub(super) fn encoding_of(unit: &Packet) -> usize {
    unit.framed().first().map_or(0, |first| usize::from(first >> 1))
}

/// How many units of a track came before this one.
pub(super) fn ordinal_of(unit: &Packet, track: TrackKind) -> u32 {
    let at = 1 + 4 * track as usize;
    unit.framed().get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes))
}
