//! Parameter sets out of a session description.

use crate::sdp::Format;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// As cameras write it, with padding and without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// More than an encoder has: 32 sequence parameter sets, and some pictures' for each.
const MOST_SETS: usize = 256;

/// The parameter sets in `sprop-parameter-sets` of a format (RFC 6184 section 8.1), as NAL units; what is no base64 is left out.
pub fn described_parameter_sets(format: &Format) -> Vec<Vec<u8>> {
    decoded_sets(format.parameter("sprop-parameter-sets").unwrap_or_default()).collect()
}

/// NAL units in base64, with commas between them.
pub(crate) fn decoded_sets(sets: &str) -> impl Iterator<Item = Vec<u8>> {
    let units = sets.split(',').take(MOST_SETS).filter_map(|set| LENIENT.decode(set.trim()).ok());
    units.filter(|unit| !unit.is_empty())
}

/// The other way round.
pub(crate) fn encoded_sets(sets: &[&[u8]]) -> String {
    sets.iter().map(|set| LENIENT.encode(set)).collect::<Vec<_>>().join(",")
}

/// A format that describes a stream with these parameter sets, the first of which is a sequence's.
pub fn described_format(payload_type: u8, sets: &[&[u8]]) -> Format {
    let level = sets.first().and_then(|set| set.get(1..4)).map_or_else(String::new, |level| {
        format!(";profile-level-id={:02X}{:02X}{:02X}", level[0], level[1], level[2])
    });
    let encoded = match encoded_sets(sets) {
        encoded if encoded.is_empty() => encoded,
        encoded => format!(";sprop-parameter-sets={encoded}"),
    };
    Format {
        payload_type,
        name: "H264".to_owned(),
        clock_rate: super::CLOCK_RATE,
        parameters: format!("packetization-mode=1{level}{encoded}"),
        ..Format::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_described_is_read() {
        let sets: [&[u8]; 2] = [&[0x67, 66, 0, 30], &[0x68, 0xCE]];
        let format = described_format(96, &sets);
        assert_eq!(described_parameter_sets(&format), sets);
        assert_eq!(format.parameter("profile-level-id"), Some("42001E"));
    }

    #[test]
    fn parameter_sets_of_a_description_are_units() {
        let units = |parameters: &str| {
            described_parameter_sets(&Format { parameters: parameters.to_owned(), ..Format::default() })
        };
        assert_eq!(
            units("packetization-mode=1;sprop-parameter-sets=Z0IAHg==,aM4="),
            [&[0x67, 66, 0, 30][..], &[0x68, 0xCE]]
        );
        assert_eq!(units("sprop-parameter-sets=, ,%%,aM4="), [[0x68, 0xCE]]);
        assert!(units("packetization-mode=1").is_empty());
        assert_eq!(units("sprop-parameter-sets=Z0IAHg,aM4"), [&[0x67, 66, 0, 30][..], &[0x68, 0xCE]]);
        assert_eq!(units("sprop-parameter-sets=aM5="), [[0x68, 0xCE]]);
    }
}
