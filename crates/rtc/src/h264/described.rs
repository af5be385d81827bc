//! Parameter sets out of a session description.

use crate::sdp::Format;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// More than an encoder has: 32 sequence parameter sets, and some pictures' for each.
const MOST_SETS: usize = 256;

/// The parameter sets in `sprop-parameter-sets` of a format (RFC 6184 section 8.1), as NAL units; what is no base64 is left out.
pub fn described_parameter_sets(format: &Format) -> Vec<Vec<u8>> {
    let sets = format.parameter("sprop-parameter-sets").unwrap_or_default();
    let units = sets.split(',').take(MOST_SETS).filter_map(|set| STANDARD.decode(set.trim()).ok());
    units.filter(|unit| !unit.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
