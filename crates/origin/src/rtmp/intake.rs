//! Sorts a publisher's messages into units, keyframes and decoder settings, which a new viewer gets first.

use super::framing::{frame, retime};
use crate::g711;
use crate::stream::{DecoderSettings, Kind, Opening, Packet};
use std::sync::Arc;
use weir_rtmp::flv::{AudioTag, VideoPacketType, VideoTag};
use weir_rtmp::message::MediaKind;
use weir_rtmp::server::MediaMessage;

/// Settings that are kept of one publication: metadata, and codec settings of each track.
const SETTINGS_KEPT: usize = 32;
/// Bytes of one setting that are kept: metadata of a file that lists the keyframes of ten hours.
const SETTING_LENGTH: usize = 256 * 1024;
/// Bytes of all of them together. Each viewer that starts is sent them, and a slow one has them kept for it.
const SETTINGS_LENGTH: usize = 1024 * 1024;
/// Without video, a viewer may start at an audio frame; so far apart, in milliseconds.
const AUDIO_ACCESS: u32 = 1_000;

/// Turns the messages of one publication into packets.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    settings: Vec<Setting>,
    version: u64,
    /// The settings as keyframes share them, until they change.
    shared: Option<Arc<DecoderSettings>>,
    has_video: bool,
    last_audio_access: Option<u32>,
}

#[derive(Debug)]
struct Setting {
    of: SettingOf,
    payload: Box<[u8]>,
    packet: Packet,
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
        let (kind_of, keyframe, setting) = match kind {
            MediaKind::Video => self.video(payload),
            MediaKind::Audio => self.audio(payload, timestamp),
            MediaKind::Data => (Kind::Data, false, None),
        };
        let packet = frame(kind_of, keyframe, kind, timestamp, payload);
        if let Some(of) = setting {
            self.keep(of, payload, &packet);
        }
        let opening = keyframe.then(|| self.opening(packet.timestamp));
        (packet, opening)
    }

    /// The packet of metadata that says that the stream's sound is G.711.
    pub(crate) fn describe_g711(&mut self, is_a_law: bool, timestamp: u32) -> Packet {
        let payload = &g711::metadata(is_a_law);
        self.metadata(&MediaMessage { message_stream_id: 1, kind: MediaKind::Data, timestamp, payload })
    }

    /// The packet of the stream's metadata.
    pub(super) fn metadata(&mut self, message: &MediaMessage<'_>) -> Packet {
        let packet = frame(Kind::Setup, false, MediaKind::Data, message.timestamp, message.payload);
        self.keep(SettingOf::Metadata, message.payload, &packet);
        packet
    }

    /// What a message is, whether a viewer may start at it, and the setting that it is.
    fn video(&mut self, payload: &[u8]) -> (Kind, bool, Option<SettingOf>) {
        self.has_video = true;
        match VideoTag::parse(payload) {
            Ok(tag) if tag.is_sequence_header() => {
                (Kind::Setup, false, Some(SettingOf::Video { track: tag.track }))
            }
            Ok(tag) if tag.is_frame() => (Kind::Video, tag.is_keyframe(), None),
            Ok(tag) if tag.packet_type == VideoPacketType::Metadata => {
                (Kind::Setup, false, Some(SettingOf::Colour { track: tag.track }))
            }
            // The end of a sequence, a seek: no frame, and nothing to begin with.
            Ok(_) => (Kind::Setup, false, None),
            Err(_) => (Kind::Video, false, None),
        }
    }

    fn audio(&mut self, payload: &[u8], timestamp: u32) -> (Kind, bool, Option<SettingOf>) {
        match AudioTag::parse(payload) {
            Ok(tag) if tag.is_sequence_header() => {
                (Kind::Setup, false, Some(SettingOf::Audio { track: tag.track }))
            }
            _ if self.has_video => (Kind::Audio, false, None),
            _ => {
                let due = |last: u32| timestamp.wrapping_sub(last) >= AUDIO_ACCESS;
                let access = self.last_audio_access.is_none_or(due);
                if access {
                    self.last_audio_access = Some(timestamp);
                }
                (Kind::Audio, access, None)
            }
        }
    }

    /// Keeps a setting for viewers that start later, unless it is too long for that.
    fn keep(&mut self, of: SettingOf, payload: &[u8], packet: &Packet) {
        let at = self.settings.binary_search_by_key(&of, |setting| setting.of);
        let before = at.map_or(0, |at| self.settings[at].payload.len());
        let others = self.settings.iter().map(|setting| setting.payload.len()).sum::<usize>() - before;
        if payload.len() > SETTING_LENGTH || others + payload.len() > SETTINGS_LENGTH {
            return;
        }
        let setting = Setting { of, payload: payload.into(), packet: packet.clone() };
        match at {
            Ok(at) if *self.settings[at].payload == *payload => return,
            Ok(at) => self.settings[at] = setting,
            Err(at) if self.settings.len() < SETTINGS_KEPT => self.settings.insert(at, setting),
            Err(_) => return,
        }
        self.version += 1;
        self.shared = None;
    }

    /// Metadata first, then what the decoders need, all at the keyframe's time. Framed only for a viewer that starts
    /// there: keyframes come often, and settings may be long.
    fn opening(&mut self, timestamp: i64) -> Arc<Opening> {
        let settings = self.shared.get_or_insert_with(|| {
            let packets = self.settings.iter().map(|setting| setting.packet.clone());
            Arc::new(DecoderSettings { version: self.version, packets: packets.collect() })
        });
        Arc::new(Opening { settings: settings.clone(), timestamp, remake: retime })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtmp::unframe;
    use crate::stream::{History, Log};
    use weir_metrics::Moment;

    fn message(payload: &[u8], timestamp: u32) -> MediaMessage<'_> {
        MediaMessage { message_stream_id: 1, kind: MediaKind::Video, timestamp, payload }
    }

    /// Settings of H.264 in `tracks` tracks, as enhanced RTMP has them, each of `length` bytes.
    fn publish_settings(intake: &mut Intake, log: &mut Log, tracks: u8, length: usize) {
        for track in 0..tracks {
            // IsExHeader, key frame, multitrack; one track with a sequence start of avc1 (enhanced RTMP v2).
            let mut payload = vec![0x96, 0x00, b'a', b'v', b'c', b'1', track];
            payload.resize(length, track);
            let (packet, opening) = intake.media(&message(&payload, 0));
            log.push(packet, opening, Moment::default());
        }
    }

    #[test]
    fn settings_are_kept_once_however_many_keyframes_come() {
        let (mut intake, mut log) = (Intake::default(), Log::new(History::default()));
        publish_settings(&mut intake, &mut log, 32, SETTING_LENGTH);
        assert_eq!(intake.settings.len(), SETTINGS_LENGTH / SETTING_LENGTH, "and of long ones few");
        let mut kept = std::collections::HashSet::new();
        for n in 0..1_000 {
            let (packet, opening) = intake.media(&message(&[0x17, 1, 0, 0, 0, 1], n));
            kept.extend(
                opening.iter().flat_map(|opening| {
                    opening.settings.packets.iter().map(|packet| packet.framed().as_ptr())
                }),
            );
            log.push(packet, opening, Moment::default());
        }
        assert_eq!(kept.len(), intake.settings.len(), "allocations behind a thousand keyframes");
    }

    #[test]
    fn an_opening_is_at_its_keyframes_time_whenever_the_settings_came() {
        let mut intake = Intake::default();
        intake.media(&message(&[0x17, 0, 0, 0, 0, 1, 2, 3], 5));
        for (timestamp, moved) in [(5, 0), (40_000, 0), (u32::MAX, 0), (40_000, 90_000)] {
            let (_, opening) = intake.media(&message(&[0x17, 1, 0, 0, 0, 1], timestamp));
            let opening = opening.unwrap().moved(moved * 1_000);
            let sent: Vec<_> = opening.packets().map(|packet| unframe(&packet).unwrap()).collect();
            let [(header, payload)] = &sent[..] else { panic!("{sent:?}") };
            assert_eq!(header.timestamp, timestamp.wrapping_add(moved as u32));
            assert_eq!(payload[..], [0x17, 0, 0, 0, 0, 1, 2, 3]);
        }
    }

    #[test]
    fn settings_that_change_all_the_time_count_as_what_they_take() {
        let history = History { queue_bytes: 4 << 20, gop_cache: false, ..History::default() };
        let (mut intake, mut log) = (Intake::default(), Log::new(history));
        let mut payload = vec![0x17, 0, 0, 0, 0];
        payload.resize(200 * 1024, 0);
        for n in 0..200 {
            payload[10] = n as u8;
            for payload in [&payload[..], &[0x17, 1, 0, 0, 0, 1]] {
                let (packet, opening) = intake.media(&message(payload, n));
                log.push(packet, opening, Moment::default());
            }
        }
        let openings = log.from(log.start()).filter_map(|entry| entry.opening.as_ref());
        let kept: u64 = openings.map(|opening| opening.settings.weight()).sum();
        assert!(kept <= history.queue_bytes, "{kept} bytes of settings");
    }
}
