//! Which pictures a publication has, as its decoder settings say: viewers' sessions are negotiated by it.

use crate::g711::is_a_law_by;
use crate::rtmp::unframe;
use crate::stream::{Opening, Packet};
use weir_media::PictureCodec;
use weir_rtc::VideoCodec;
use weir_rtc::sdp::Profile;
use weir_rtmp::flv::{AudioCodec, AudioTag, FourCc, Multitrack, VideoTag};
use weir_rtmp::message::MessageKind;
use weir_rtsp::video_codec;

/// The pictures of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pictures {
    pub(crate) codec: VideoCodec,
    /// Where it is said.
    pub(crate) profile: Option<Profile>,
    /// The encoding name of the sound beside them, where it is described and browsers play it.
    pub(crate) sound: Option<&'static str>,
}

impl Pictures {
    /// What stands in front of a keyframe says of it, or its own tag; `None` of a codec that RTP does not carry, and of sound.
    pub(crate) fn of(opening: &Opening, keyframe: &Packet) -> Option<Self> {
        let settings = &opening.settings.packets;
        let sound = settings.iter().find_map(sound_of);
        let pictures = settings.iter().chain([keyframe]).find_map(Self::of_packet)?;
        Some(Self { sound, ..pictures })
    }

    fn of_packet(packet: &Packet) -> Option<Self> {
        let (header, body) = unframe(packet)?;
        if header.kind != MessageKind::Video {
            return None;
        }
        let (tag, codec) = carried(&body)?;
        let record = body.get(tag.payload_offset..).filter(|_| tag.is_sequence_header());
        let codec = video_codec(codec);
        let profile = record.and_then(|record| Profile::of_record(codec, record));
        Some(Self { codec, profile, sound: None })
    }
}

/// The sound that a setting is of.
fn sound_of(setting: &Packet) -> Option<&'static str> {
    let (header, body) = unframe(setting)?;
    match header.kind {
        MessageKind::Audio => {
            let is_opus =
                AudioTag::parse(&body).is_ok_and(|tag| tag.codec == AudioCodec::FourCc(FourCc::OPUS));
            is_opus.then_some("opus")
        }
        MessageKind::Video => None,
        _ => is_a_law_by(&body).map(|is_a_law| if is_a_law { "PCMA" } else { "PCMU" }),
    }
}

/// A tag of the first track whose codec RTP carries, alone in its message.
pub(crate) fn carried(body: &[u8]) -> Option<(VideoTag, PictureCodec)> {
    let tag = VideoTag::parse(body).ok()?;
    let is_alone = tag.track == 0 && tag.multitrack.is_none_or(|it| it == Multitrack::OneTrack);
    let codec = PictureCodec::of_tag(&tag).filter(|_| is_alone)?;
    Some((tag, codec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtmp::Intake;
    use weir_rtmp::flv::{picture_configuration, picture_header};
    use weir_rtmp::message::MediaKind;
    use weir_rtmp::server::MediaMessage;

    #[test]
    fn settings_say_codec_and_profile_and_without_any_the_keyframe_says_its_codec() {
        let keyframe = |codec: PictureCodec, record: Option<&[u8]>| {
            let mut intake = Intake::default();
            let mut take = |payload: &[u8]| {
                let message =
                    MediaMessage { message_stream_id: 1, kind: MediaKind::Video, timestamp: 0, payload };
                intake.media(&message)
            };
            let mut body = Vec::new();
            if let Some(record) = record {
                picture_configuration(codec.four_cc(), record, &mut body);
                take(&body);
                body.clear();
            }
            picture_header(codec.four_cc(), true, 0, &mut body);
            body.extend([0; 8]);
            let (packet, opening) = take(&body);
            Pictures::of(&opening.unwrap(), &packet)
        };
        let h264 =
            Pictures { codec: VideoCodec::H264, profile: Some(Profile::H264([100, 0, 31])), sound: None };
        assert_eq!(keyframe(PictureCodec::H264, Some(&[1, 100, 0, 31, 255])), Some(h264));
        let vp9 = Pictures { codec: VideoCodec::Vp9, profile: Some(Profile::Vp9(2)), sound: None };
        assert_eq!(keyframe(PictureCodec::Vp9, Some(&[2, 31, 0xA2])), Some(vp9));
        let bare = Pictures { codec: VideoCodec::Vp9, profile: None, sound: None };
        assert_eq!(keyframe(PictureCodec::Vp9, None), Some(bare));
        let vp8 = Pictures { codec: VideoCodec::Vp8, profile: None, sound: None };
        assert_eq!(keyframe(PictureCodec::Vp8, Some(&[0; 8])), Some(vp8));
    }
}
