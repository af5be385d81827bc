//! Profile, tier and level of the pictures that are sent, as a session description says them.

use crate::VideoCodec;

/// What a sender's format says of its pictures, beside the codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// `profile-level-id` (RFC 6184 section 8.1): "profile_idc, [...] profile-iop, [...] level_idc", the three bytes behind the first of a
    /// sequence parameter set.
    H264([u8; 3]),
    /// RFC 7798 section 7.1.
    H265 {
        /// `profile-space`: general_profile_space.
        space: u8,
        /// `profile-id`: general_profile_idc.
        profile: u8,
        /// `tier-flag`: general_tier_flag.
        tier: u8,
        /// `level-id`: general_level_idc.
        level: u8,
    },
    /// `profile-id` (RFC 9628 section 6).
    Vp9(u8),
    /// "RTP Payload Format For AV1" section 7.2.1.
    Av1 {
        /// `profile`: seq_profile.
        profile: u8,
        /// `level-idx`: seq_level_idx.
        level: u8,
        /// `tier`: seq_tier.
        tier: u8,
    },
}

impl Profile {
    /// The most compatible profile of H.264: Constrained Baseline at level 3.1, which every WebRTC endpoint decodes (RFC 7742 section 6.2).
    pub const CONSTRAINED_BASELINE: Self = Self::H264([0x42, 0xE0, 0x1F]);

    /// What a decoder configuration record says (ISO/IEC 14496-15 sections 5.3.3.1.2 and 8.3.3.1.2, "AV1 Codec ISO Media File Format Binding"
    /// section 2.3.3, "VP Codec ISO Media File Format Binding" without the header of the box). `None` of VP8, which has no profiles in
    /// descriptions, and of a record that is cut short.
    pub fn of_record(codec: VideoCodec, record: &[u8]) -> Option<Self> {
        match codec {
            VideoCodec::H264 => {
                let &[_, profile, constraints, level, ..] = record else { return None };
                Some(Self::H264([profile, constraints, level]))
            }
            VideoCodec::H265 => {
                let (&first, &level) = (record.get(1)?, record.get(12)?);
                Some(Self::H265 { space: first >> 6, profile: first & 0x1F, tier: first >> 5 & 1, level })
            }
            VideoCodec::Av1 => {
                let &[_, first, second, ..] = record else { return None };
                Some(Self::Av1 { profile: first >> 5, level: first & 0x1F, tier: second >> 7 })
            }
            VideoCodec::Vp9 => record.first().map(|profile| Self::Vp9(*profile)),
            VideoCodec::Vp8 => None,
        }
    }

    /// The codec that it is a profile of.
    pub fn codec(self) -> VideoCodec {
        match self {
            Self::H264(_) => VideoCodec::H264,
            Self::H265 { .. } => VideoCodec::H265,
            Self::Vp9(_) => VideoCodec::Vp9,
            Self::Av1 { .. } => VideoCodec::Av1,
        }
    }

    /// The format parameters of a session that sends it by WebRTC. Of H.264, levels may differ by direction (`level-asymmetry-allowed`), and
    /// pictures are larger than packets (`packetization-mode`).
    pub fn parameters(self) -> String {
        match self {
            Self::H264([profile, constraints, level]) => {
                let id = format!("{profile:02x}{constraints:02x}{level:02x}");
                format!("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={id}")
            }
            Self::H265 { space: 0, profile, tier, level } => {
                format!("level-id={level};profile-id={profile};tier-flag={tier};tx-mode=SRST")
            }
            Self::H265 { space, profile, tier, level } => {
                format!(
                    "level-id={level};profile-id={profile};profile-space={space};tier-flag={tier};tx-mode=SRST"
                )
            }
            Self::Vp9(profile) => format!("profile-id={profile}"),
            Self::Av1 { profile, level, tier } => format!("level-idx={level};profile={profile};tier={tier}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_say_what_formats_say() {
        let said = |codec, record: &[u8]| Profile::of_record(codec, record).map(Profile::parameters);
        let expected = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=640028";
        assert_eq!(said(VideoCodec::H264, &[1, 0x64, 0, 0x28, 0xFF]).as_deref(), Some(expected));
        let record = [1, 0x22, 0x20, 0, 0, 0, 0x90, 0, 0, 0, 0, 0, 93, 0xF0];
        let expected = "level-id=93;profile-id=2;tier-flag=1;tx-mode=SRST";
        assert_eq!(said(VideoCodec::H265, &record).as_deref(), Some(expected));
        let expected = "level-idx=8;profile=0;tier=1";
        assert_eq!(said(VideoCodec::Av1, &[0x81, 0x08, 0x8C, 0]).as_deref(), Some(expected));
        assert_eq!(said(VideoCodec::Vp9, &[2, 31, 0xA2]).as_deref(), Some("profile-id=2"));
        for codec in VideoCodec::ALL {
            assert_eq!(said(codec, &[]), None);
        }
    }
}
