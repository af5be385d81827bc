//! Access units and sound out of RTP as packets of a stream, as an RTMP publisher would have sent them: players of every
//! protocol get them. Nothing inside an access unit is changed.

use super::encoding::SoundCodec;
use crate::rtmp::Intake;
use crate::stream::{Opening, Packet};
use std::sync::Arc;
use weir_media::{Framing, PictureCodec, append_obus, units};
use weir_rtmp::flv::{g711_frame, opus_frame, opus_sequence_header, picture_configuration, picture_header};
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
    /// Takes an access unit as [`weir_rtc::AccessUnit::bytes`] has it, shown at a media time in microseconds. Whether it was passed on.
    pub(super) fn picture(
        &mut self,
        codec: PictureCodec,
        access_unit: &[u8],
        keyframe: bool,
        shown: i64,
        take: Take<'_>,
    ) -> bool {
        let shown = (shown + 500) / 1_000;
        // Pictures come in decoding order without a decoding time; the latest possible one is used.
        self.decoding = self.decoding.max(shown);
        let timestamp = self.decoding as u32;
        let has_units = !matches!(codec, PictureCodec::Vp8 | PictureCodec::Vp9);
        let framed = has_units.then(|| units(access_unit, Framing::LengthPrefixed));
        let units = framed.into_iter().flatten().chain((!has_units).then_some(access_unit));
        // Parameter sets of H.264 and H.265 may come in front of any picture.
        let may_describe = keyframe || matches!(codec, PictureCodec::H264 | PictureCodec::H265);
        if may_describe
            && let Some(configuration) = codec.record_of(units.clone())
            && configuration != self.configuration
        {
            self.body.clear();
            picture_configuration(codec.four_cc(), &configuration, &mut self.body);
            self.configuration = configuration;
            self.message(MediaKind::Video, timestamp, take);
        }
        let has_picture = units.clone().any(|unit| codec.is_picture(unit));
        self.has_begun |= keyframe && !self.configuration.is_empty();
        if !has_picture || !self.has_begun {
            return false;
        }
        self.body.clear();
        picture_header(codec.four_cc(), keyframe, (shown - self.decoding) as i32, &mut self.body);
        if codec == PictureCodec::Av1 {
            // Enhanced RTMP v1: OBUs have their sizes in a tag.
            append_obus(units, &mut self.body);
        } else {
            self.body.extend_from_slice(access_unit);
        }
        self.message(MediaKind::Video, timestamp, take);
        true
    }

    /// Takes a payload of sound that is heard at a media time in microseconds. Whether it was passed on.
    pub(super) fn sound(&mut self, codec: SoundCodec, payload: &[u8], heard: i64, take: Take<'_>) -> bool {
        if !self.has_begun || payload.is_empty() {
            return false;
        }
        let timestamp = ((heard + 500) / 1_000) as u32;
        if !std::mem::replace(&mut self.has_told_of_sound, true) {
            match codec {
                SoundCodec::Opus => {
                    self.body.clear();
                    opus_sequence_header(CHANNELS, &mut self.body);
                    self.message(MediaKind::Audio, timestamp, take);
                }
                SoundCodec::G711 { is_a_law } => take(self.intake.describe_g711(is_a_law, timestamp), None),
            }
        }
        self.body.clear();
        match codec {
            SoundCodec::Opus => opus_frame(payload, &mut self.body),
            SoundCodec::G711 { is_a_law } => g711_frame(is_a_law, payload, &mut self.body),
        }
        self.message(MediaKind::Audio, timestamp, take);
        true
    }

    fn message(&mut self, kind: MediaKind, timestamp: u32, take: Take<'_>) {
        let message = MediaMessage { message_stream_id: 1, kind, timestamp, payload: &self.body };
        let (packet, opening) = self.intake.media(&message);
        take(packet, opening);
    }
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
        assert!(!remux.sound(SoundCodec::Opus, &[0xFC, 1], 0, &mut take));
        assert!(!remux.picture(PictureCodec::H264, &access_unit(&[&[0x41, 1]]), false, 10_000, &mut take));
        let keyframe = access_unit(&[SEQUENCE, PICTURE, &[0x65, 1]]);
        assert!(remux.picture(PictureCodec::H264, &keyframe, true, 43_333, &mut take));
        assert!(remux.sound(SoundCodec::Opus, &[0xFC, 1], 50_000, &mut take));
        remux.picture(PictureCodec::H264, &access_unit(&[&[0x41, 1]]), false, 76_666, &mut take);
        remux.picture(PictureCodec::H264, &keyframe, true, 110_000, &mut take);
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
        remux.picture(PictureCodec::H264, &access_unit(&[SEQUENCE, PICTURE, &[0x65, 1]]), true, 0, &mut take);
        for shown in [120_000, 40_000, 80_000] {
            remux.picture(PictureCodec::H264, &access_unit(&[&[0x41, 1]]), false, shown, &mut take);
        }
        let times: Vec<_> = taken.0[2..].iter().map(|(.., timestamp)| *timestamp).collect();
        assert_eq!(times, [120_000; 3]);
        let composition = |payload: &Vec<u8>| VideoTag::parse(payload).unwrap().composition_time;
        assert_eq!(taken.1[2..].iter().map(composition).collect::<Vec<_>>(), [0, -80, -40]);
    }

    #[test]
    fn a_stream_of_every_codec_begins_with_its_configuration() {
        let av1 = [0x08, 0x00, 0x00, 0x00, 0x04, 0x3C, 0xFE, 0xCC, 0xDA, 0xF9, 0x00, 0x40];
        for (codec, key, inter) in [
            (PictureCodec::Vp8, vec![0x10, 0x62, 0, 0x9D, 1, 0x2A, 0x40, 1, 0xB4, 0], vec![0x11, 1]),
            (PictureCodec::Vp9, vec![0x82, 0x49, 0x83, 0x42, 0, 0x13, 0xF0, 0x0B, 0x36, 0], vec![0x86, 1]),
            (PictureCodec::Av1, access_unit(&[&av1, &[0x30, 0x10, 1]]), access_unit(&[&[0x30, 0x30]])),
        ] {
            let (mut remux, mut taken) = (Remux::default(), RemuxedFrames::default());
            let mut take =
                |packet: Packet, opening: Option<Arc<Opening>>| taken.take(&packet, opening.as_deref());
            assert!(!remux.picture(codec, &inter, false, 0, &mut take), "{codec:?}");
            assert!(remux.picture(codec, &key, true, 40_000, &mut take), "{codec:?}");
            assert!(remux.sound(SoundCodec::G711 { is_a_law: true }, &[1; 160], 40_000, &mut take));
            assert!(remux.picture(codec, &inter, false, 80_000, &mut take));
            assert!(remux.picture(codec, &key, true, 120_000, &mut take));
            let kinds: Vec<_> = taken.0.iter().map(|(kind, keyframe, _)| (*kind, *keyframe)).collect();
            let expected = [
                (Kind::Setup, false),
                (Kind::Video, true),
                (Kind::Setup, false),
                (Kind::Audio, false),
                (Kind::Video, false),
                (Kind::Video, true),
            ];
            assert_eq!((&kinds[..], &taken.2[..]), (&expected[..], &[1, 2][..]), "{codec:?}");
            let tag = VideoTag::parse(&taken.1[1]).unwrap();
            let frame = &taken.1[1][tag.payload_offset..];
            let expected = match codec {
                // With their sizes.
                PictureCodec::Av1 => [&[0x0A, 11][..], &av1[1..], &[0x32, 2, 0x10, 1]].concat(),
                _ => key,
            };
            assert_eq!((PictureCodec::of_tag(&tag), frame), (Some(codec), &expected[..]));
        }
    }
}
