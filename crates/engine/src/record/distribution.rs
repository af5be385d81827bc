//! A distribution as it stands in `histograms.hlog`: its head is checked before anything is allocated for it, and it is decoded
//! when the interval that it belongs to is read, so that many of them cost no more than their text.
//!
//! The form is HdrHistogram's V2, deflated: a cookie and the length of what is deflated, and in it a head of 40 bytes and the counts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::Deserializer;
use std::io::Read as _;
use weir_metrics::Histogram;

/// Significant digits of the distributions that weir writes. Those of other precision are not added to weir's own, and may take a
/// hundred times the memory.
const DIGITS: u8 = 3;
/// Bytes of the cookie and of the length before what is deflated.
const ENVELOPE: usize = 8;
/// Bytes of the head: cookie, length of the counts, offset, digits, lowest and highest value, and ratio.
const HEAD: usize = 40;
/// Bytes of counts: one for each cell of three digits over the range of a `u64`, nine bytes each at the most (LEB128-64b9B).
const MOST_COUNTS: u32 = 55 * 1_024 * 9;

/// A distribution that is not decoded yet.
#[derive(Debug)]
pub(crate) struct EncodedDistribution(String);

impl EncodedDistribution {
    /// Takes what stands in a line of the log.
    pub(super) fn new(encoded: &str) -> Result<Self, String> {
        let bytes = BASE64.decode(encoded).map_err(|error| error.to_string())?;
        let mut head = [0; HEAD];
        let deflated = bytes.get(ENVELOPE..).ok_or("a distribution without a head")?;
        ZlibDecoder::new(deflated).read_exact(&mut head).map_err(|error| error.to_string())?;
        let number = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (counts, digits) = (number(4), number(12));
        // The library allocates what is announced before it reads any of it.
        if counts > MOST_COUNTS {
            return Err(format!(
                "a distribution that announces {counts} bytes of counts; {MOST_COUNTS} are the most"
            ));
        }
        if digits != u32::from(DIGITS) {
            return Err(format!("a distribution of {digits} digits"));
        }
        Ok(Self(encoded.to_owned()))
    }

    /// Decodes it.
    pub(super) fn histogram(&self) -> Result<Histogram<u64>, String> {
        let bytes = BASE64.decode(&self.0).map_err(|error| error.to_string())?;
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice());
        let mut histogram: Histogram<u64> = histogram.map_err(|error| error.to_string())?;
        histogram.auto(true);
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
    use std::io::Write as _;

    fn deflated(inner: &[u8]) -> String {
        let mut deflater = ZlibEncoder::new(Vec::new(), Compression::best());
        deflater.write_all(inner).unwrap();
        let deflated = deflater.finish().unwrap();
        let mut bytes = [0x1c84_9314_u32.to_be_bytes(), (deflated.len() as u32).to_be_bytes()].concat();
        bytes.extend(deflated);
        BASE64.encode(bytes)
    }

    fn head(counts: u32) -> Vec<u8> {
        let numbers = [0x1c84_9313, counts, 0, DIGITS.into()].map(u32::to_be_bytes).concat();
        [numbers, [1_u64, u64::MAX, 1.0_f64.to_bits()].map(u64::to_be_bytes).concat()].concat()
    }

    #[test]
    fn a_distribution_that_announces_more_than_any_has_is_refused_before_it_is_decoded() {
        let line = deflated(&head(u32::MAX));
        assert!(line.len() < 85, "{}", line.len());
        let refusal = EncodedDistribution::new(&line).unwrap_err();
        assert!(refusal.starts_with("a distribution that announces 4294967295 bytes of counts"), "{refusal}");
        // What is announced and does not come costs no more than the largest distribution.
        let short = EncodedDistribution::new(&deflated(&head(MOST_COUNTS))).unwrap();
        assert!(short.histogram().is_err());
        for malformed in ["", "AA==", "!", &deflated(b"x")] {
            assert!(EncodedDistribution::new(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn the_widest_distribution_that_weir_can_write_is_read_back() {
        let mut histogram: Histogram<u64> = Histogram::new_with_bounds(1, u64::MAX, DIGITS).unwrap();
        let mut value = 1;
        while value < u64::MAX / 2 {
            histogram.record_n(value, 1 << 40).unwrap();
            value = histogram.next_non_equivalent(value);
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        let back = EncodedDistribution::new(&BASE64.encode(bytes)).unwrap().histogram().unwrap();
        assert_eq!((back.len(), back.distinct_values()), (histogram.len(), histogram.distinct_values()));
    }
}
