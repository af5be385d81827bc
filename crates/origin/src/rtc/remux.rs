//! Access units and sound out of RTP as packets of a stream, as an RTMP publisher would have sent them: players of every
//! protocol get them. Nothing inside an access unit is changed.

use crate::rtmp::Intake;
use crate::stream::{Opening, Packet};
use std::sync::Arc;
use weir_media::{Framing, UnitType, append_decoder_configuration, units};
use weir_rtmp::flv::{avc_frame, avc_sequence_header, opus_frame, opus_sequence_header};
use weir_rtmp::message::MediaKind;
use weir_rtmp::server::MediaMessage;

/// Channels of Opus, whatever is inside (RFC 7587 section 4.1).
const CHANNELS: u8 = 2;

/// What becomes of a packet; with a keyframe, what goes before it.
pub(super) type Take<'a> = &'a mut dyn FnMut(Packet, Option<Arc<Opening>>);

/// The packets of one publication. Nothing is passed on before its first keyframe.
#[derive(Debug, Default)]
pub(super) struct Remux {
    intake: Intake,
    /// The decoder configuration that was sent last.
    configuration: Vec<u8>,
    /// Whether a keyframe came that can be decoded.
    has_begun: bool,
    has_told_of_sound: bool,
    /// The latest decoding time, in milliseconds.
    decoding: i64,
    body: Vec<u8>,
}

impl Remux {
    /// Takes an access unit, its NAL units each after its length, shown at a media time in microseconds. Whether it was
    /// passed on.
    pub(super) fn picture(&mut self, access_unit: &[u8], keyframe: bool, shown: i64, take: Take<'_>) -> bool {
        let shown = (shown + 500) / 1_000;
        // Pictures come in decoding order without a decoding time; the latest possible one is used.
        self.decoding = self.decoding.max(shown);
        let timestamp = self.decoding as u32;
        if let Some(configuration) = configuration(access_unit)
            && configuration != self.configuration
        {
            self.body.clear();
            avc_sequence_header(&configuration, &mut self.body);
            self.configuration = configuration;
            self.message(MediaKind::Video, timestamp, take);
        }
        let has_picture = units(access_unit, Framing::LengthPrefixed)
            .any(|unit| matches!(UnitType::of(unit), Some(UnitType::Slice { .. })));
        self.has_begun |= keyframe && !self.configuration.is_empty();
        if !has_picture || !self.has_begun {
            return false;
        }
        self.body.clear();
        avc_frame(keyframe, (shown - self.decoding) as i32, access_unit, &mut self.body);
        self.message(MediaKind::Video, timestamp, take);
        true
    }

    /// Takes an Opus packet that is heard at a media time in microseconds. Whether it was passed on.
    pub(super) fn sound(&mut self, packet: &[u8], heard: i64, take: Take<'_>) -> bool {
        if !self.has_begun || packet.is_empty() {
            return false;
        }
        let timestamp = ((heard + 500) / 1_000) as u32;
        if !std::mem::replace(&mut self.has_told_of_sound, true) {
            self.body.clear();
            opus_sequence_header(CHANNELS, &mut self.body);
            self.message(MediaKind::Audio, timestamp, take);
        }
        self.body.clear();
        opus_frame(packet, &mut self.body);
        self.message(MediaKind::Audio, timestamp, take);
        true
    }

    fn message(&mut self, kind: MediaKind, timestamp: u32, take: Take<'_>) {
        let message = MediaMessage { message_stream_id: 1, kind, timestamp, payload: &self.body };
        let (packet, opening) = self.intake.media(&message);
        take(packet, opening);
    }
}

/// The decoder's configuration, if the access unit has parameter sets.
fn configuration(access_unit: &[u8]) -> Option<Vec<u8>> {
    let of = |kind: UnitType| -> Vec<&[u8]> {
        units(access_unit, Framing::LengthPrefixed).filter(|unit| UnitType::of(unit) == Some(kind)).collect()
    };
    let sequence = of(UnitType::SequenceParameterSet);
    if sequence.is_empty() {
        return None;
    }
    let mut configuration = Vec::new();
    let picture = of(UnitType::PictureParameterSet);
    append_decoder_configuration(&sequence, &picture, &mut configuration).then_some(configuration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtmp::unframe;
    use crate::stream::Kind;
    use weir_rtmp::flv::VideoTag;

    fn access_unit(units: &[&[u8]]) -> Vec<u8> {
        units.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect()
    }

    const SEQUENCE: &[u8] = &[0x67, 66, 0xe0, 31, 1];
    const PICTURE: &[u8] = &[0x68, 2];

    #[derive(Default)]
    struct RemuxedFrames(Vec<(Kind, bool, i64)>, Vec<Vec<u8>>, Vec<usize>);

    impl RemuxedFrames {
        fn take(&mut self, packet: &Packet, opening: Option<&Opening>) {
            self.0.push((packet.kind, packet.keyframe, packet.timestamp));
            self.1.push(unframe(packet).unwrap().1);
            self.2.extend(opening.map(|opening| opening.settings.packets.len()));
        }
    }

    #[test]
    fn a_stream_begins_with_its_first_keyframe_and_what_decoders_need() {
        let (mut remux, mut taken) = (Remux::default(), RemuxedFrames::default());
        let mut take =
            |packet: Packet, opening: Option<Arc<Opening>>| taken.take(&packet, opening.as_deref());
        assert!(!remux.sound(&[0xFC, 1], 0, &mut take));
        assert!(!remux.picture(&access_unit(&[&[0x41, 1]]), false, 10_000, &mut take));
        let keyframe = access_unit(&[SEQUENCE, PICTURE, &[0x65, 1]]);
        assert!(remux.picture(&keyframe, true, 43_333, &mut take));
        assert!(remux.sound(&[0xFC, 1], 50_000, &mut take));
        remux.picture(&access_unit(&[&[0x41, 1]]), false, 76_666, &mut take);
        remux.picture(&keyframe, true, 110_000, &mut take);
        let RemuxedFrames(kinds, payloads, openings) = taken;
        assert_eq!(
            kinds,
            [
                (Kind::Setup, false, 43_000),
                (Kind::Video, true, 43_000),
                (Kind::Setup, false, 50_000),
                (Kind::Audio, false, 50_000),
                (Kind::Video, false, 77_000),
                (Kind::Video, true, 110_000),
            ]
        );
        // Pictures alone, then pictures and sound.
        assert_eq!(openings, [1, 2]);
        assert!(payloads[1].ends_with(&keyframe));
    }

    #[test]
    fn pictures_that_are_shown_before_others_keep_their_times() {
        let (mut remux, mut taken) = (Remux::default(), RemuxedFrames::default());
        let mut take =
            |packet: Packet, opening: Option<Arc<Opening>>| taken.take(&packet, opening.as_deref());
        remux.picture(&access_unit(&[SEQUENCE, PICTURE, &[0x65, 1]]), true, 0, &mut take);
        for shown in [120_000, 40_000, 80_000] {
            remux.picture(&access_unit(&[&[0x41, 1]]), false, shown, &mut take);
        }
        let times: Vec<_> = taken.0[2..].iter().map(|(.., timestamp)| *timestamp).collect();
        assert_eq!(times, [120_000; 3]);
        let composition = |payload: &Vec<u8>| VideoTag::parse(payload).unwrap().composition_time;
        assert_eq!(taken.1[2..].iter().map(composition).collect::<Vec<_>>(), [0, -80, -40]);
    }
}
