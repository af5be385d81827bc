//! The pictures and the sound of FLV tags as a decoder is given them.

use super::FlvBody;
use super::configuration::nal_codec;
use crate::decoding::DecodedWitness;
use crate::parameter_sets::NalCodec;
use weir_media::{Framing, PictureCodec, parameter_sets};
use weir_metrics::Moment;
use weir_rtmp::flv::{AudioCodec, AudioTag, FourCc, VideoCodec, VideoTag};

/// The frames of one viewer that are decoded: H.264, H.265, VP8, VP9, AV1 and AAC, of one track each.
pub(super) struct DecodedTags {
    witness: DecodedWitness,
    /// Lengths of NAL units have four bytes, the one size that encoders for live streams use.
    has_long_lengths: bool,
}

impl DecodedTags {
    pub(super) fn new(witness: DecodedWitness) -> Self {
        Self { witness, has_long_lengths: true }
    }

    /// A decoder's configuration of the pictures came (ISO/IEC 14496-15 sections 5.3.3.1 and 8.3.3.1).
    pub(super) fn video_header(&mut self, tag: &VideoTag, body: &FlvBody<'_>) {
        let Some(codec) = nal_codec(tag.codec).filter(|_| tag.multitrack.is_none()) else { return };
        let record = body.head.get(tag.payload_offset..).unwrap_or_default();
        let length_size_at = match codec {
            NalCodec::H264 => 4,
            NalCodec::H265 => 21,
        };
        // Without a record the sets are in front of each keyframe.
        self.has_long_lengths = record.get(length_size_at).is_none_or(|byte| byte & 3 == 3);
        match codec {
            NalCodec::H264 => self.witness.describe(codec, parameter_sets(record)),
            NalCodec::H265 => self.witness.describe(codec, arrays(record)),
        }
    }

    /// A picture came.
    pub(super) fn picture(&mut self, tag: &VideoTag, body: &FlvBody<'_>, now: Moment) {
        if tag.multitrack.is_some() {
            return;
        }
        let whole = body.head.get(tag.payload_offset..).filter(|_| body.is_whole());
        match (nal_codec(tag.codec), frame_codec(tag.codec), whole) {
            (Some(codec), _, Some(unit)) if self.has_long_lengths => {
                self.witness.picture(codec, unit, Framing::LengthPrefixed, now);
            }
            (None, Some(codec), Some(frame)) => self.witness.frame(codec, frame, now),
            (None, None, _) => {}
            _ => self.witness.broken_picture(),
        }
    }

    /// A decoder's configuration of the sound came.
    pub(super) fn audio_header(&mut self, tag: &AudioTag, body: &FlvBody<'_>) {
        let is_aac = is_aac(tag);
        self.witness
            .describe_sound(body.head.get(tag.payload_offset..).filter(|_| is_aac).unwrap_or_default());
    }

    /// Sound came; `alone`: there are no pictures.
    pub(super) fn sound(&mut self, tag: &AudioTag, body: &FlvBody<'_>, alone: bool, now: Moment) {
        if let Some(payload) = body.head.get(tag.payload_offset..).filter(|_| is_aac(tag) && body.is_whole())
        {
            self.witness.sound(payload, alone, now);
        }
    }
}

/// Codecs without NAL units.
fn frame_codec(codec: VideoCodec) -> Option<PictureCodec> {
    match codec {
        VideoCodec::FourCc(FourCc::VP8) => Some(PictureCodec::Vp8),
        VideoCodec::FourCc(FourCc::VP9) => Some(PictureCodec::Vp9),
        VideoCodec::FourCc(FourCc::AV1) => Some(PictureCodec::Av1),
        _ => None,
    }
}

fn is_aac(tag: &AudioTag) -> bool {
    tag.codec == AudioCodec::FourCc(FourCc::AAC) && tag.multitrack.is_none()
}

/// The NAL units in the arrays of an HEVCDecoderConfigurationRecord (ISO/IEC 14496-15 section 8.3.3.1.2); a damaged one gives those
/// before the damage.
fn arrays(record: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = record.get(23..).unwrap_or_default();
    let mut units_left = 0;
    std::iter::from_fn(move || {
        while units_left == 0 {
            let (&[_, high, low], behind) = rest.split_first_chunk::<3>()?;
            (units_left, rest) = (u16::from_be_bytes([high, low]), behind);
        }
        units_left -= 1;
        let (length, behind) = rest.split_first_chunk::<2>()?;
        let (unit, behind) = behind.split_at_checked(u16::from_be_bytes(*length).into())?;
        rest = behind;
        Some(unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_sets_come_out_of_their_arrays() {
        let mut record = vec![0; 23];
        for unit in [&[0x40, 1, 9][..], &[0x42, 1], &[0x44, 1, 2, 3]] {
            record.extend([unit[0] >> 1, 0, 1, 0, unit.len() as u8]);
            record.extend_from_slice(unit);
        }
        let units: Vec<_> = arrays(&record).collect();
        assert_eq!(units, [&[0x40, 1, 9][..], &[0x42, 1], &[0x44, 1, 2, 3]]);
        assert_eq!(arrays(&record[..record.len() - 1]).count(), 2);
        assert_eq!(arrays(&[0; 40]).count(), 0);
    }
}
