//! What a decoder needs before it can begin with an FLV stream, and what of that has come.
//!
//! H.264 and H.265 have their parameter sets, and AAC its AudioSpecificConfig, in a tag of their own (FLV 10.1 sections E.4.2.2
//! and E.4.3.2); a stream may repeat parameter sets in front of a picture. What other codecs need is not checked.

use crate::parameter_sets::{NalCodec, ParameterSets};
use weir_rtmp::flv::{AudioCodec, AudioTag, FourCc, VideoCodec, VideoTag};

/// NAL units that are looked at in front of a picture: delimiter, parameter sets and a few messages.
const MOST_UNITS: usize = 16;

/// Which configurations have come, of the tracks that have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Configuration {
    video: Need,
    audio: Need,
}

/// What is known of one track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Need {
    /// Nothing of it has come.
    #[default]
    Unknown,
    /// Frames that no decoder can begin with.
    Missing,
    /// A decoder can begin, or needs what is not checked.
    Met,
}

impl Configuration {
    /// A decoder's configuration of the pictures came, in a body that begins so.
    pub(super) fn video_header(&mut self, tag: &VideoTag, head: &[u8]) {
        if tag.multitrack.is_some()
            || !is_checked(tag.codec)
            || has_parameter_sets(tag.codec, payload(head, tag.payload_offset))
        {
            self.video = Need::Met;
        }
    }

    /// A picture came, in a body that begins so: whether a decoder can begin with it. Behind the first that it can begin with nothing is to be
    /// asked any more.
    pub(super) fn picture(&mut self, tag: &VideoTag, head: &[u8]) -> bool {
        let (mut has_sets, mut recovers) = (false, false);
        if let Some(codec) = nal_codec(tag.codec).filter(|_| tag.multitrack.is_none()) {
            let mut sets = ParameterSets::new(codec);
            for unit in units(payload(head, tag.payload_offset)) {
                sets.take(unit);
                recovers |= codec.is_recovery_point(unit);
            }
            has_sets = sets.are_whole();
        }
        let is_met =
            self.video == Need::Met || !is_checked(tag.codec) || tag.multitrack.is_some() || has_sets;
        self.video = if is_met { Need::Met } else { Need::Missing };
        is_met && (tag.is_keyframe() || recovers)
    }

    /// A decoder's configuration of the sound came.
    pub(super) fn audio_header(&mut self, tag: &AudioTag, length: u32) {
        // An AudioSpecificConfig has two bytes at the least (ISO/IEC 14496-3 section 1.6.2.1).
        if length as usize >= tag.payload_offset + 2 {
            self.audio = Need::Met;
        }
    }

    /// Sound came.
    pub(super) fn sound(&mut self, tag: &AudioTag) {
        if self.audio == Need::Unknown {
            let is_aac = tag.codec == AudioCodec::FourCc(FourCc::AAC) && tag.multitrack.is_none();
            self.audio = if is_aac { Need::Missing } else { Need::Met };
        }
    }

    /// Whether sound came that no decoder can begin with.
    pub(super) fn lacks_sound(&self) -> bool {
        self.audio == Need::Missing
    }

    /// What is missing, if anything is known to be.
    pub(super) fn missing(&self) -> Option<&'static str> {
        match (self.video, self.audio) {
            (Need::Missing, Need::Missing) => {
                Some("the decoders' configurations (sequence headers) of pictures and sound")
            }
            (Need::Missing, _) => {
                Some("the decoder's configuration (sequence header with SPS and PPS) of the pictures")
            }
            (_, Need::Missing) => Some(
                "the decoder's configuration (sequence header with the AudioSpecificConfig) of the sound",
            ),
            _ => None,
        }
    }
}

fn payload(head: &[u8], offset: usize) -> &[u8] {
    head.get(offset..).unwrap_or_default()
}

/// Whether what the codec needs is looked for.
fn is_checked(codec: VideoCodec) -> bool {
    nal_codec(codec).is_some()
}

/// H.264 and H.265, whose parameter sets are known.
pub(super) fn nal_codec(codec: VideoCodec) -> Option<NalCodec> {
    match codec {
        VideoCodec::FourCc(FourCc::AVC) => Some(NalCodec::H264),
        VideoCodec::FourCc(FourCc::HEVC) => Some(NalCodec::H265),
        _ => None,
    }
}

/// Whether a decoder configuration record has parameter sets (ISO/IEC 14496-15 sections 5.3.3.1 and 8.3.3.1). Those of H.265
/// are arrays, of which a record has at least one.
fn has_parameter_sets(codec: VideoCodec, record: &[u8]) -> bool {
    match codec {
        VideoCodec::FourCc(FourCc::AVC) => record.get(5).is_some_and(|count| count & 0x1F > 0),
        _ => record.get(22).is_some_and(|arrays| *arrays > 0),
    }
}

/// NAL units with four bytes of length in front of each, within the head of the body. Encoders for live streams use no other size.
fn units(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = (u32::from_be_bytes(*length) as usize).min(rest.len());
        let (unit, after) = rest.split_at(length);
        bytes = after;
        (!unit.is_empty()).then_some(unit)
    })
    .take(MOST_UNITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: &[u8] = &[0x67, 66, 0, 30];
    const PPS: &[u8] = &[0x68, 0xCE];
    const IDR: &[u8] = &[0x65, 1, 2, 3];
    const SLICE: &[u8] = &[0x41, 1, 2, 3];
    /// User data, and a recovery point.
    const MESSAGE: &[u8] = &[0x06, 5, 1, 0x80];
    const RECOVERY: &[u8] = &[0x06, 6, 1, 0x80];

    /// Whether a decoder can begin with a picture of these units, and what is missing behind it.
    fn begins(configuration: &mut Configuration, key: bool, units: &[&[u8]]) -> (bool, bool) {
        let mut body = vec![if key { 0x17 } else { 0x27 }, 1, 0, 0, 0];
        for unit in units {
            body.extend((unit.len() as u32).to_be_bytes());
            body.extend(*unit);
        }
        let tag = VideoTag::parse(&body).unwrap();
        (configuration.picture(&tag, &body), configuration.missing().is_some())
    }

    fn header(configuration: &mut Configuration, record: &[u8]) {
        let body = [&[0x17, 0, 0, 0, 0], record].concat();
        configuration.video_header(&VideoTag::parse(&body).unwrap(), &body);
    }

    #[test]
    fn a_keyframe_begins_nothing_without_its_parameter_sets() {
        let mut none = Configuration::default();
        assert_eq!(begins(&mut none, true, &[IDR]), (false, true));
        header(&mut none, &[]);
        header(&mut none, &[1, 66, 0, 30, 0xFF, 0xE0, 0]);
        assert_eq!(
            begins(&mut none, true, &[SPS, IDR]),
            (false, true),
            "an empty configuration, and one without a PPS"
        );
        header(&mut none, &[1, 66, 0, 30, 0xFF, 0xE1, 0, 4, 0x67, 66, 0, 30, 1, 0, 2, 0x68, 0xCE]);
        assert_eq!(begins(&mut none, false, &[SLICE]), (false, false), "it is within a group of pictures");
        assert_eq!(begins(&mut none, true, &[IDR]), (true, false));
        let mut in_band = Configuration::default();
        assert_eq!(begins(&mut in_band, true, &[SPS, PPS, IDR]), (true, false));
    }

    #[test]
    fn a_recovery_point_is_a_beginning() {
        let mut refreshed = Configuration::default();
        assert_eq!(begins(&mut refreshed, false, &[SPS, PPS, MESSAGE, SLICE]), (false, false));
        assert_eq!(begins(&mut refreshed, false, &[MESSAGE, RECOVERY, SLICE]), (true, false));
    }

    #[test]
    fn hostile_lengths_end_the_search() {
        for body in [
            &[0x17, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF][..],
            &[0x17, 1, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0x17, 1, 0, 0, 0, 0],
        ] {
            let tag = VideoTag::parse(body).unwrap();
            assert!(!Configuration::default().picture(&tag, body));
        }
    }

    #[test]
    fn what_is_not_checked_is_not_missed() {
        // VP6, and AV1 by its name.
        for body in [&[0x14, 0, 0][..], b"\x91av01\x12\x00"] {
            let mut configuration = Configuration::default();
            assert!(configuration.picture(&VideoTag::parse(body).unwrap(), body), "{body:?}");
            assert_eq!(configuration.missing(), None);
        }
        let of_sound = |bodies: &[&[u8]]| {
            let mut configuration = Configuration::default();
            for body in bodies {
                let tag = AudioTag::parse(body).unwrap();
                if tag.is_frame() {
                    configuration.sound(&tag);
                } else {
                    configuration.audio_header(&tag, body.len() as u32);
                }
            }
            configuration.lacks_sound()
        };
        assert!(!of_sound(&[&[0x2F, 0xFF]]), "MP3");
        assert!(of_sound(&[&[0xAF, 1, 0x21]]), "AAC without its configuration");
        assert!(of_sound(&[&[0xAF, 0], &[0xAF, 1, 0x21]]), "with an empty one");
        assert!(!of_sound(&[&[0xAF, 1, 0x21], &[0xAF, 0, 0x11, 0x90]]), "with one that is late");
    }
}
