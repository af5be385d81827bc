//! What a publisher's messages are: units, keyframes, settings; and what a new viewer is told first.

use super::framing::frame;
use crate::stream::{Kind, Opening, Packet};
use std::sync::Arc;
use weir_rtmp::flv::{AudioTag, VideoPacketType, VideoTag};
use weir_rtmp::message::MediaKind;
use weir_rtmp::server::MediaMessage;

/// Settings that are kept of one publication: metadata, and codec settings of each track.
const SETTINGS_KEPT: usize = 32;
/// Bytes of one setting that are kept.
const SETTING_LENGTH: usize = 256 * 1024;
/// Without video, a viewer may start at an audio frame; so far apart, in milliseconds.
const AUDIO_ACCESS: u32 = 1_000;

/// Turns the messages of one publication into packets.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    settings: Vec<Setting>,
    version: u64,
    has_video: bool,
    last_audio_access: Option<u32>,
}

#[derive(Debug)]
struct Setting {
    of: SettingOf,
    payload: Vec<u8>,
}

/// What a setting is of; a later one takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SettingOf {
    Metadata,
    Video { track: u8 },
    Colour { track: u8 },
    Audio { track: u8 },
}

impl Intake {
    /// The packet of a message; with a keyframe, what goes before it for a viewer that starts there.
    pub(crate) fn media(&mut self, message: &MediaMessage<'_>) -> (Packet, Option<Arc<Opening>>) {
        let MediaMessage { kind, timestamp, payload, .. } = *message;
        let (kind_of, keyframe) = match kind {
            MediaKind::Video => self.video(payload),
            MediaKind::Audio => self.audio(payload, timestamp),
            MediaKind::Data => (Kind::Data, false),
        };
        let opening = keyframe.then(|| self.opening(timestamp));
        (frame(kind_of, keyframe, kind, timestamp, payload), opening)
    }

    /// The packet of the stream's metadata.
    pub(super) fn metadata(&mut self, message: &MediaMessage<'_>) -> Packet {
        self.keep(SettingOf::Metadata, message.payload);
        frame(Kind::Setup, false, MediaKind::Data, message.timestamp, message.payload)
    }

    fn video(&mut self, payload: &[u8]) -> (Kind, bool) {
        self.has_video = true;
        match VideoTag::parse(payload) {
            Ok(tag) if tag.is_sequence_header() => {
                self.keep(SettingOf::Video { track: tag.track }, payload);
                (Kind::Setup, false)
            }
            Ok(tag) if tag.is_frame() => (Kind::Video, tag.is_keyframe()),
            Ok(tag) if tag.packet_type == VideoPacketType::Metadata => {
                self.keep(SettingOf::Colour { track: tag.track }, payload);
                (Kind::Setup, false)
            }
            // The end of a sequence, a seek: no frame, and nothing to begin with.
            Ok(_) => (Kind::Setup, false),
            Err(_) => (Kind::Video, false),
        }
    }

    fn audio(&mut self, payload: &[u8], timestamp: u32) -> (Kind, bool) {
        match AudioTag::parse(payload) {
            Ok(tag) if tag.is_sequence_header() => {
                self.keep(SettingOf::Audio { track: tag.track }, payload);
                (Kind::Setup, false)
            }
            _ if self.has_video => (Kind::Audio, false),
            _ => {
                let due = |last: u32| timestamp.wrapping_sub(last) >= AUDIO_ACCESS;
                let access = self.last_audio_access.is_none_or(due);
                if access {
                    self.last_audio_access = Some(timestamp);
                }
                (Kind::Audio, access)
            }
        }
    }

    fn keep(&mut self, of: SettingOf, payload: &[u8]) {
        self.has_video |= matches!(of, SettingOf::Video { .. });
        if payload.len() > SETTING_LENGTH {
            return;
        }
        match self.settings.binary_search_by_key(&of, |setting| setting.of) {
            Ok(at) if self.settings[at].payload == payload => return,
            Ok(at) => self.settings[at].payload = payload.to_vec(),
            Err(at) if self.settings.len() < SETTINGS_KEPT => {
                self.settings.insert(at, Setting { of, payload: payload.to_vec() });
            }
            Err(_) => return,
        }
        self.version += 1;
    }

    /// Metadata first, then what the decoders need, all at the keyframe's time.
    fn opening(&self, timestamp: u32) -> Arc<Opening> {
        let packets = self.settings.iter().map(|setting| {
            let media = match setting.of {
                SettingOf::Metadata => MediaKind::Data,
                SettingOf::Video { .. } | SettingOf::Colour { .. } => MediaKind::Video,
                SettingOf::Audio { .. } => MediaKind::Audio,
            };
            frame(Kind::Setup, false, media, timestamp, &setting.payload)
        });
        Arc::new(Opening { version: self.version, packets: packets.collect() })
    }
}
