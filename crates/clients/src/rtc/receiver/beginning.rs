//! Where a decoder can begin with a track: behind its parameter sets, which are in front of a picture or in the session description
//! (RFC 6184 section 8.2.2, RFC 7798 section 7.1), behind the sequence header of AV1, or with a keyframe of VP8 and VP9, which need
//! nothing else.

use crate::parameter_sets::{NalCodec, ParameterSets};
use weir_rtc::sdp::Format;
use weir_rtc::{AccessUnit, VideoCodec, av1};

/// The newest keyframe of a track: each counts once, however often its packets come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewestKeyframe(Option<u32>);

impl NewestKeyframe {
    /// Whether a keyframe with this time stamp is newer than those before.
    pub(super) fn is_new(&mut self, timestamp: u32) -> bool {
        let is_new = self.0.is_none_or(|newest| timestamp.wrapping_sub(newest) as i32 > 0);
        if is_new {
            self.0 = Some(timestamp);
        }
        is_new
    }
}

/// What of a track has come that its decoder needs first.
pub(super) struct Beginning {
    codec: VideoCodec,
    needs: Needs,
    /// The time stamp of the last access unit that says that decoding can begin with it.
    recovery: Option<u32>,
    /// Decoding could have begun, but for what is needed; and could have so with another access unit than the first, whose front may have
    /// passed before the viewer joined.
    missed: bool,
    lacks: bool,
    is_first: bool,
    has_begun: bool,
}

/// What a decoder needs before a keyframe.
enum Needs {
    Sets(ParameterSets),
    /// Whether the sequence header has come.
    SequenceHeader(bool),
    Nothing,
}

impl Beginning {
    /// The beginning of a track of this codec whose description says this.
    pub(super) fn new(codec: VideoCodec, format: &Format) -> Self {
        let needs = match nal_codec(codec) {
            Some(nal_codec) => Needs::Sets(ParameterSets::new(nal_codec)),
            None if codec == VideoCodec::Av1 => Needs::SequenceHeader(false),
            None => Needs::Nothing,
        };
        let mut beginning = Self {
            codec,
            needs,
            recovery: None,
            missed: false,
            lacks: false,
            is_first: true,
            has_begun: false,
        };
        beginning.describe(format);
        beginning
    }

    /// Takes the parameter sets of a format of the same codec.
    pub(super) fn describe(&mut self, format: &Format) {
        if let Needs::Sets(sets) = &mut self.needs {
            self.codec.described_sets(format).iter().for_each(|unit| _ = sets.take(unit));
        }
    }

    /// A decrypted payload came.
    pub(super) fn payload(&mut self, timestamp: u32, payload: &[u8]) {
        let (needs, recovery) = (&mut self.needs, &mut self.recovery);
        match needs {
            Needs::Sets(sets) => self.codec.unit_heads(payload, |unit| {
                sets.take(unit);
                if sets.codec().is_recovery_point(unit) {
                    *recovery = Some(timestamp);
                }
            }),
            Needs::SequenceHeader(has_come) => {
                self.codec.unit_heads(payload, |unit| *has_come |= av1::is_sequence_header(unit));
            }
            Needs::Nothing => {}
        }
    }

    /// Whether an access unit, whole or not, is one with which decoders begin.
    pub(super) fn is_keyframe(&self, unit: &AccessUnit<'_>) -> bool {
        unit.keyframe || self.recovery == Some(unit.timestamp)
    }

    /// Whether a decoder can begin with an access unit, whose payloads have all come.
    pub(super) fn begins(&mut self, unit: &AccessUnit<'_>) -> bool {
        let is_start = unit.complete && self.is_keyframe(unit);
        let has_all = match &self.needs {
            Needs::Sets(sets) => sets.are_whole(),
            Needs::SequenceHeader(has_come) => *has_come,
            Needs::Nothing => true,
        };
        self.missed |= is_start && !has_all;
        self.lacks |= is_start && !has_all && !self.is_first;
        self.is_first = false;
        self.has_begun |= is_start && has_all;
        is_start && has_all
    }

    /// Whether it could with one so far.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether decoding could have begun, but for what the server does not send.
    pub(super) fn lacks(&self) -> bool {
        self.lacks
    }

    /// What is missing, if decoding could have begun without it.
    pub(super) fn missing(&self) -> Option<String> {
        match &self.needs {
            Needs::Sets(sets) => {
                let missing = sets.missing().filter(|_| self.missed)?;
                let described = match self.codec {
                    VideoCodec::H265 => "sprop-vps, sprop-sps and sprop-pps",
                    _ => "sprop-parameter-sets",
                };
                Some(format!("{missing} of the {}, in front of a picture or as {described}", self.codec))
            }
            Needs::SequenceHeader(false) if self.missed => {
                Some(format!("a sequence header of the {}", self.codec))
            }
            Needs::SequenceHeader(_) | Needs::Nothing => None,
        }
    }
}

/// The codecs that are made of NAL units.
pub(in crate::rtc) fn nal_codec(codec: VideoCodec) -> Option<NalCodec> {
    match codec {
        VideoCodec::H264 => Some(NalCodec::H264),
        VideoCodec::H265 => Some(NalCodec::H265),
        VideoCodec::Vp8 | VideoCodec::Vp9 | VideoCodec::Av1 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETS: [&[u8]; 2] = [&[0x67, 66, 0, 30], &[0x68, 0xCE]];
    const IDR: &[u8] = &[0x65, 0x88];
    const RECOVERY: &[u8] = &[0x06, 6, 1, 0xC4];

    /// Whether decoding begins with an access unit of these payloads.
    fn begins(beginning: &mut Beginning, timestamp: u32, payloads: &[&[u8]]) -> bool {
        payloads.iter().for_each(|payload| beginning.payload(timestamp, payload));
        let keyframe = payloads.contains(&IDR);
        beginning.begins(&AccessUnit { timestamp, bytes: &[], length: 9, complete: true, keyframe })
    }

    fn described(parameters: &str) -> Beginning {
        Beginning::new(VideoCodec::H264, &Format { parameters: parameters.to_owned(), ..Format::default() })
    }

    #[test]
    fn a_keyframe_begins_nothing_without_parameter_sets_in_band_or_described() {
        let mut none = described("packetization-mode=1");
        assert!(!begins(&mut none, 1, &[&[0x41, 0x9A]]));
        assert_eq!((none.missing(), none.lacks()), (None, false), "it is within a group of pictures");
        assert!(!begins(&mut none, 2, &[IDR]) && !begins(&mut none, 3, &[SETS[0], IDR]));
        assert!(none.lacks());
        assert!(none.missing().unwrap().starts_with("PPS of the H.264, in front of a picture or as sprop-"));
        assert!(begins(&mut none, 4, &[SETS[1], IDR]));
        assert_eq!(none.missing(), None);
        let together = [&[0x78, 0, 4][..], SETS[0], &[0, 2], SETS[1]].concat();
        assert!(begins(&mut described(""), 1, &[&together, IDR]));
        let mut described_in_session = described("packetization-mode=1; sprop-parameter-sets=Z0IAHg==,aM4=");
        assert!(begins(&mut described_in_session, 1, &[IDR]));
        assert!(!begins(&mut described("sprop-parameter-sets=Z0IAHg=="), 1, &[IDR]));
        assert!(!begins(&mut described("sprop-parameter-sets=,,%%,aM4=, "), 1, &[IDR]));
    }

    #[test]
    fn a_keyframe_is_new_once_however_time_stamps_wrap() {
        let mut newest = NewestKeyframe::default();
        let seen = [u32::MAX - 5, u32::MAX - 5, 90_000, u32::MAX - 5, 90_000, 180_000];
        assert_eq!(seen.map(|timestamp| newest.is_new(timestamp)), [true, false, true, false, false, true]);
    }

    #[test]
    fn of_a_keyframe_that_comes_first_the_front_may_have_passed() {
        let mut joined = described("");
        assert!(!begins(&mut joined, 1, &[IDR]));
        assert!(joined.missing().is_some() && !joined.lacks());
        assert!(!begins(&mut joined, 2, &[IDR]));
        assert!(joined.lacks());
    }

    #[test]
    fn a_recovery_point_is_a_beginning() {
        let mut refreshed = described("");
        assert!(!begins(&mut refreshed, 1, &[SETS[0], SETS[1], &[0x41, 0x9A]]));
        assert!(begins(&mut refreshed, 2, &[RECOVERY, &[0x41, 0x9A]]));
        assert!(!begins(&mut refreshed, 3, &[&[0x41, 0x9A]]));
        // In a fragment.
        assert!(begins(&mut refreshed, 4, &[&[0x1C, 0x86, 6, 1, 0xC4], &[0x41, 0x9A]]));
    }

    #[test]
    fn each_codec_begins_with_what_it_needs_and_says_what_is_missing() {
        let unit = |keyframe| AccessUnit { timestamp: 1, bytes: &[], length: 9, complete: true, keyframe };
        for codec in [VideoCodec::Vp8, VideoCodec::Vp9] {
            let mut beginning = Beginning::new(codec, &Format::default());
            assert!(!beginning.begins(&unit(false)) && beginning.begins(&unit(true)), "{codec}");
            assert_eq!(beginning.missing(), None);
        }
        let mut av1 = Beginning::new(VideoCodec::Av1, &Format::default());
        assert!(!av1.begins(&unit(true)));
        assert_eq!(av1.missing().unwrap(), "a sequence header of the AV1");
        av1.payload(1, &[0x18, 0x08, 0, 0]);
        assert!(av1.begins(&unit(true)));
        assert_eq!(av1.missing(), None);
        let mut h265 = Beginning::new(VideoCodec::H265, &Format::default());
        assert!(!h265.begins(&unit(true)));
        assert!(h265.missing().unwrap().starts_with("VPS, SPS and PPS of the H.265, "));
        for first in [0x40, 0x42, 0x44] {
            h265.payload(1, &[first, 1, 7]);
        }
        assert!(h265.begins(&unit(true)));
        let described = "sprop-vps=QAEM;sprop-sps=QgEB;sprop-pps=RAHA".to_owned();
        let format = Format { parameters: described, ..Format::default() };
        assert!(Beginning::new(VideoCodec::H265, &format).begins(&unit(true)));
    }
}
