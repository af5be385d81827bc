//! Frames and decoder settings, read from the packets of a stream.

use crate::rtmp::unframe;
use crate::stream::{Kind, Packet};
use std::sync::Arc;
use weir_rtmp::flv::{AudioCodec, AudioTag, FourCc, VideoCodec, VideoTag};
use weir_rtmp::message::MessageKind;

/// What decoders must know of the tracks of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracks {
    /// The AVCDecoderConfigurationRecord (ISO/IEC 14496-15, clause 5.3.3.1).
    pub(crate) video: Option<Arc<[u8]>>,
    pub(crate) audio: Option<Sound>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    /// The AudioSpecificConfig (ISO/IEC 14496-3, clause 1.6.2.1).
    Aac(Arc<[u8]>),
    /// The identification header (RFC 7845, section 5.1).
    Opus(Arc<[u8]>),
}

/// A frame. Times are in milliseconds of the stream, which do not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit<'a> {
    pub(crate) is_video: bool,
    /// Decoding can begin with it.
    pub(crate) keyframe: bool,
    /// When it is decoded.
    pub(crate) decoding: i64,
    /// When it is shown or heard.
    pub(crate) presentation: i64,
    /// NAL units, each after its length; or a frame of sound.
    pub(crate) bytes: &'a [u8],
}

/// Reads the packets of one publication.
#[derive(Debug, Default)]
pub(crate) struct UnitReader {
    tracks: Tracks,
    /// The latest timestamp in milliseconds: of the message, and as it goes on.
    latest: Option<(u32, i64)>,
}

impl UnitReader {
    /// Takes a packet; hands on the frame that it carries, if one that segments can carry.
    pub(crate) fn read(&mut self, packet: &Packet, on: impl FnOnce(&Tracks, Unit<'_>)) {
        match packet.kind {
            Kind::Video | Kind::Audio | Kind::Setup => {}
            Kind::Data | Kind::Transport => return,
        }
        let Some((header, payload)) = unframe(packet) else { return };
        let decoding = self.unwrapped(header.timestamp);
        // Settings have the kind `Setup` whatever they are for.
        match header.kind {
            MessageKind::Video => self.video(&payload, decoding, on),
            MessageKind::Audio => self.audio(&payload, decoding, on),
            _ => {}
        }
    }

    fn video(&mut self, payload: &[u8], decoding: i64, on: impl FnOnce(&Tracks, Unit<'_>)) {
        let Ok(tag) = VideoTag::parse(payload) else { return };
        let body = payload.get(tag.payload_offset..).unwrap_or_default();
        if tag.codec != VideoCodec::FourCc(FourCc::AVC) {
            return;
        }
        if tag.is_sequence_header() {
            self.tracks.video = Some(body.into());
        } else if tag.is_frame() && self.tracks.video.is_some() && !body.is_empty() {
            let presentation = decoding + i64::from(tag.composition_time);
            let keyframe = tag.is_keyframe();
            on(&self.tracks, Unit { is_video: true, keyframe, decoding, presentation, bytes: body });
        }
    }

    fn audio(&mut self, payload: &[u8], decoding: i64, on: impl FnOnce(&Tracks, Unit<'_>)) {
        let Ok(tag) = AudioTag::parse(payload) else { return };
        let body = payload.get(tag.payload_offset..).unwrap_or_default();
        let sound: fn(Arc<[u8]>) -> Sound = match tag.codec {
            AudioCodec::FourCc(FourCc::AAC) => Sound::Aac,
            AudioCodec::FourCc(FourCc::OPUS) => Sound::Opus,
            _ => return,
        };
        if tag.is_sequence_header() {
            self.tracks.audio = Some(sound(body.into()));
        } else if tag.is_frame() && self.tracks.audio.is_some() && !body.is_empty() {
            let (is_video, keyframe, presentation) = (false, true, decoding);
            on(&self.tracks, Unit { is_video, keyframe, decoding, presentation, bytes: body });
        }
    }

    /// Timestamps of messages have 32 bits of milliseconds and wrap after 49 days.
    fn unwrapped(&mut self, timestamp: u32) -> i64 {
        let time = match self.latest {
            Some((before, time)) => time + i64::from(timestamp.wrapping_sub(before) as i32),
            None => i64::from(timestamp),
        };
        self.latest = Some((timestamp, time));
        time
    }
}
