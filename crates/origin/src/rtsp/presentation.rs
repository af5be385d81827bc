//! What a stream's decoder settings say of its tracks, as a description has it.

use crate::g711;
use crate::pictures::carried;
use crate::rtmp::unframe;
use crate::stream::{Opening, Packet};
use weir_media::aac_format;
use weir_rtc::sdp::Format;
use weir_rtc::{aac, opus};
use weir_rtmp::flv::{AudioCodec, AudioTag, FourCc};
use weir_rtmp::message::MediaKind as Message;
use weir_rtsp::{Description, Media, MediaKind, described_format};

/// The payload types of pictures and sound.
const PICTURES: u8 = 96;
const SOUND: u8 = 97;

/// The tracks of a stream: pictures, and sound.
#[derive(Clone, Debug, Default)]
pub(super) struct Presentation {
    pub(super) pictures: Option<Format>,
    pub(super) sound: Option<Format>,
}

impl Presentation {
    /// The tracks that these settings describe. Codecs that have no payload format here are left out.
    pub(super) fn of(opening: &Opening) -> Self {
        let mut presentation = Self::default();
        opening.settings.packets.iter().for_each(|setting| presentation.take(setting));
        presentation
    }

    fn take(&mut self, setting: &Packet) {
        let Some((header, body)) = unframe(setting) else { return };
        match Message::from_message_kind(header.kind) {
            Some(Message::Video) => {
                let Some((tag, codec)) = carried(&body).filter(|(tag, _)| tag.is_sequence_header()) else {
                    return;
                };
                let record = body.get(tag.payload_offset..).unwrap_or_default();
                self.pictures = Some(described_format(codec, PICTURES, record));
            }
            Some(Message::Data) => {
                if let Some(is_a_law) = g711::is_a_law_by(&body) {
                    // RFC 3551 table 4: payload types that are fixed.
                    let (payload_type, name) = if is_a_law { (8, "PCMA") } else { (0, "PCMU") };
                    let (name, clock_rate) = (name.to_owned(), g711::RATE);
                    self.sound = Some(Format { payload_type, name, clock_rate, ..Format::default() });
                }
            }
            Some(Message::Audio) => {
                let Ok(tag) = AudioTag::parse(&body) else { return };
                let config = body.get(tag.payload_offset..).unwrap_or_default();
                if !tag.is_sequence_header() {
                    return;
                }
                match tag.codec {
                    AudioCodec::FourCc(FourCc::AAC) => {
                        let format = aac_format(config);
                        self.sound = format.map(|format| {
                            let channels = format.channels.unwrap_or(2);
                            aac::described_format(SOUND, format.sample_rate, channels, config)
                        });
                    }
                    AudioCodec::FourCc(FourCc::OPUS) => {
                        self.sound = Some(Format {
                            payload_type: SOUND,
                            name: "opus".to_owned(),
                            clock_rate: opus::CLOCK_RATE,
                            channels: Some(2),
                            ..Format::default()
                        });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Its tracks, in the order of their numbers.
    pub(super) fn formats(&self) -> impl Iterator<Item = (MediaKind, &Format)> {
        let pictures = self.pictures.iter().map(|format| (MediaKind::Video, format));
        pictures.chain(self.sound.iter().map(|format| (MediaKind::Audio, format)))
    }

    /// As DESCRIBE is answered.
    pub(super) fn description(&self) -> Description {
        let media = self.formats().enumerate().map(|(at, (kind, format))| Media {
            kind,
            is_secure: false,
            formats: vec![format.clone()],
            control: Some(format!("trackID={at}")),
            is_back_channel: false,
        });
        Description { control: Some("*".to_owned()), range: None, media: media.collect() }
    }
}
