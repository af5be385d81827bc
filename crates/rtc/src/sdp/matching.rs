//! Whether a format of one description is the configuration that the other one means: its encoding, and the parameters that both sides have to
//! agree on. Others, such as levels, each side says for itself.

use super::Format;

/// A profile of H.264 (RFC 6184 table 5, and the constrained one of ITU-T H.264 section A.2.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum H264Profile {
    ConstrainedBaseline,
    Baseline,
    Main,
    Extended,
    ConstrainedHigh,
    /// By `profile_idc`, and the constraints that tell intra profiles from others (ITU-T H.264 sections A.2.8 to A.2.10).
    Other(u8, bool),
}

impl H264Profile {
    /// That of `profile-level-id`: three bytes in hexadecimal. "If no profile-level-id is present, the Baseline profile, without
    /// additional constraints at Level 1, MUST be inferred" (RFC 6184 section 8.1).
    fn of(format: &Format) -> Option<Self> {
        let Some(value) = format.parameter("profile-level-id") else { return Some(Self::Baseline) };
        let bytes = u32::from_str_radix(value, 16).ok().filter(|_| value.len() == 6)?;
        let [_, profile, constraints, _] = bytes.to_be_bytes();
        let set = |number: u8| constraints & 0x80 >> number != 0;
        Some(match profile {
            66 if set(1) => Self::ConstrainedBaseline,
            77 if set(0) => Self::ConstrainedBaseline,
            88 if set(0) && set(1) => Self::ConstrainedBaseline,
            66 => Self::Baseline,
            88 if set(0) => Self::Baseline,
            77 => Self::Main,
            88 if set(1) => Self::Main,
            88 => Self::Extended,
            100 if set(4) && set(5) => Self::ConstrainedHigh,
            other => Self::Other(other, set(3)),
        })
    }
}

impl Format {
    /// Whether a format of the other side's description is this configuration.
    pub fn matches(&self, other: &Self) -> bool {
        let same = |name: &str, default: &str| {
            self.parameter(name).unwrap_or(default) == other.parameter(name).unwrap_or(default)
        };
        if !self.is(&other.name) || self.clock_rate != other.clock_rate {
            return false;
        }
        match &*self.name.to_ascii_uppercase() {
            // "The parameters identifying a media format configuration for H.264 are profile-level-id and packetization-mode. These media
            // format configuration parameters (except for the level part of profile-level-id) MUST be used symmetrically" (RFC 6184
            // section 8.2.2).
            "H264" => {
                let profile = H264Profile::of(self);
                same("packetization-mode", "0") && profile.is_some() && profile == H264Profile::of(other)
            }
            // "profile-id: … When this parameter is not present, … 0" (RFC 9628 section 7.1).
            "VP9" => same("profile-id", "0"),
            // RFC 7798 section 7.2.2, and the defaults of section 7.1.
            "H265" => {
                same("profile-space", "0")
                    && same("profile-id", "1")
                    && same("tier-flag", "0")
                    && same("tx-mode", "SRST")
            }
            // "RTP Payload Format For AV1" section 7.2.2.
            "AV1" => same("profile", "0"),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, parameters: &str) -> Format {
        let (name, parameters) = (name.to_owned(), parameters.to_owned());
        Format { name, parameters, clock_rate: 90_000, ..Format::default() }
    }

    #[test]
    fn h264_is_one_configuration_if_profile_and_packetization_mode_are() {
        let h264 = |mode: &str, level: &str| {
            format(
                "H264",
                &format!("level-asymmetry-allowed=1;packetization-mode={mode};profile-level-id={level}"),
            )
        };
        let matches = |one: &str, other: &str| h264("1", one).matches(&h264("1", other));
        assert!(matches("42e01f", "42E034") && matches("42e01f", "42c00d"), "levels, and constraint_set2");
        assert!(matches("42e01f", "4d801f") && matches("42e01f", "58c01f"), "constrained by its flags");
        assert!(!matches("42e01f", "42001f") && !matches("42001f", "4d001f") && !matches("4d001f", "64001f"));
        assert!(!matches("64001f", "640c1f") && !matches("6e001f", "6e101f"));
        assert!(!h264("1", "42e01f").matches(&h264("0", "42e01f")));
        assert!(format("H264", "").matches(&h264("0", "42000a")), "what is not said");
        assert!(!format("H264", "packetization-mode=1;profile-level-id=42").matches(&h264("1", "42e01f")));
    }

    #[test]
    fn other_codecs_have_profiles_as_well() {
        let matches = |name, one, other| format(name, one).matches(&format(name, other));
        assert!(matches("VP9", "", "profile-id=0") && !matches("VP9", "profile-id=2", "profile-id=0"));
        assert!(matches("AV1", "level-idx=5;profile=0;tier=0", "") && !matches("AV1", "profile=1", ""));
        assert!(matches("H265", "level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST", "level-id=93"));
        assert!(!matches("H265", "profile-id=2", "profile-id=1") && matches("VP8", "max-fr=30", ""));
        assert!(!format("VP8", "").matches(&format("VP9", "")));
    }
}
