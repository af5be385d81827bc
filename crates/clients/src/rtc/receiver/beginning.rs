//! Where a decoder can begin with a track of H.264: behind its parameter sets, which are in front of a picture or in the session
//! description (RFC 6184 section 8.2.2).

use crate::parameter_sets::{NalCodec, ParameterSets, UNIT_HEAD};
use weir_rtc::h264::{AccessUnit, Payload, described_parameter_sets};
use weir_rtc::sdp::Format;

/// What of a track's parameter sets has come.
pub(super) struct Beginning {
    sets: ParameterSets,
    /// The time stamp of the last access unit that says that decoding can begin with it.
    recovery: Option<u32>,
    /// Decoding could have begun, but for parameter sets.
    missed: bool,
}

impl Beginning {
    /// The beginning of a track whose description says this.
    pub(super) fn new(format: &Format) -> Self {
        let mut sets = ParameterSets::new(NalCodec::H264);
        described_parameter_sets(format).iter().for_each(|unit| _ = sets.take(unit));
        Self { sets, recovery: None, missed: false }
    }

    /// A decrypted payload came.
    pub(super) fn payload(&mut self, timestamp: u32, payload: &[u8]) {
        match Payload::parse(payload) {
            Ok(Payload::Single(unit)) => self.unit(timestamp, unit),
            Ok(Payload::Aggregate(units)) => units.for_each(|unit| self.unit(timestamp, unit)),
            Ok(Payload::Fragment { header, start: true, bytes, .. }) => {
                let mut head = [header; UNIT_HEAD];
                let length = bytes.len().min(UNIT_HEAD - 1);
                head[1..=length].copy_from_slice(&bytes[..length]);
                self.unit(timestamp, &head[..=length]);
            }
            Ok(Payload::Fragment { .. }) | Err(_) => {}
        }
    }

    fn unit(&mut self, timestamp: u32, unit: &[u8]) {
        self.sets.take(unit);
        if self.sets.codec().is_recovery_point(unit) {
            self.recovery = Some(timestamp);
        }
    }

    /// Whether a decoder can begin with an access unit, whose payloads have all come.
    pub(super) fn begins(&mut self, unit: &AccessUnit<'_>) -> bool {
        let is_start = unit.complete && (unit.keyframe || self.recovery == Some(unit.timestamp));
        self.missed |= is_start && !self.sets.are_whole();
        is_start && self.sets.are_whole()
    }

    /// What is missing, if decoding could have begun without it.
    pub(super) fn missing(&self) -> Option<String> {
        self.sets.missing().filter(|_| self.missed)
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
        Beginning::new(&Format { parameters: parameters.to_owned(), ..Format::default() })
    }

    #[test]
    fn a_keyframe_begins_nothing_without_parameter_sets_in_band_or_described() {
        let mut none = described("packetization-mode=1");
        assert!(!begins(&mut none, 1, &[&[0x41, 0x9A]]));
        assert_eq!(none.missing(), None, "it is within a group of pictures");
        assert!(!begins(&mut none, 2, &[IDR]) && !begins(&mut none, 3, &[SETS[0], IDR]));
        assert_eq!(none.missing().unwrap(), "PPS");
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
    fn a_recovery_point_is_a_beginning() {
        let mut refreshed = described("");
        assert!(!begins(&mut refreshed, 1, &[SETS[0], SETS[1], &[0x41, 0x9A]]));
        assert!(begins(&mut refreshed, 2, &[RECOVERY, &[0x41, 0x9A]]));
        assert!(!begins(&mut refreshed, 3, &[&[0x41, 0x9A]]));
        // In a fragment.
        assert!(begins(&mut refreshed, 4, &[&[0x1C, 0x86, 6, 1, 0xC4], &[0x41, 0x9A]]));
    }
}
