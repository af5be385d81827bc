//! REMB: the bit rate that a receiver believes it can take (draft-alvestrand-rmcat-remb-03 section 2.2).

use super::{begin, end, format, kind, u32_at};

/// A receiver's estimated maximum bit rate.
#[derive(Clone, Copy, Debug)]
pub struct Bitrate<'a> {
    /// The receiver.
    pub sender: u32,
    /// Bits per second; what does not fit 64 bits is held to that.
    pub bits_per_second: u64,
    sources: &'a [u8],
}

impl<'a> Bitrate<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Option<Self> {
        let word = u32_at(body, 12)?;
        let (count, exponent, mantissa) = (word >> 24, word >> 18 & 0x3F, u64::from(word & 0x3_FFFF));
        let fits = mantissa == 0 || exponent <= mantissa.leading_zeros();
        Some(Self {
            sender: u32_at(body, 0)?,
            bits_per_second: if fits { mantissa.checked_shl(exponent).unwrap_or(0) } else { u64::MAX },
            sources: body.get(16..16 + 4 * count as usize)?,
        })
    }

    /// The streams that share the rate.
    pub fn sources(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.sources.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word))
    }
}

/// Appends an estimate for up to 255 sources. Of the rate the upper 18 bits are kept.
pub fn append_bitrate(sender: u32, bits_per_second: u64, sources: &[u32], out: &mut Vec<u8>) {
    let sources = &sources[..sources.len().min(255)];
    let exponent = 46u32.saturating_sub(bits_per_second.leading_zeros());
    let start = begin(format::APPLICATION, kind::PAYLOAD_FEEDBACK, out);
    out.extend(sender.to_be_bytes());
    out.extend([0; 4]);
    out.extend(b"REMB");
    let mantissa = (bits_per_second >> exponent) as u32;
    out.extend(((sources.len() as u32) << 24 | exponent << 18 | mantissa).to_be_bytes());
    for source in sources {
        out.extend(source.to_be_bytes());
    }
    end(start, out);
}

#[cfg(test)]
mod tests {
    use super::super::{Compound, Packet};
    use super::*;

    fn there_and_back(rate: u64) -> u64 {
        let mut bytes = Vec::new();
        append_bitrate(1, rate, &[5, 6], &mut bytes);
        let Some(Ok(Packet::Bitrate(estimate))) = Compound::new(&bytes).next() else { panic!("no estimate") };
        assert_eq!((estimate.sender, estimate.sources().collect::<Vec<_>>()), (1, vec![5, 6]));
        estimate.bits_per_second
    }

    #[test]
    fn a_rate_keeps_its_upper_eighteen_bits() {
        for rate in [0, 1, 0x3_FFFF, 0x4_0000, 2_500_000 & !0xF, u64::MAX << 46] {
            assert_eq!(there_and_back(rate), rate);
        }
        assert_eq!(there_and_back(u64::MAX), u64::MAX << 46);
    }

    #[test]
    fn a_rate_beyond_64_bits_is_held() {
        let mut bytes = Vec::new();
        append_bitrate(1, 0x3_FFFF, &[], &mut bytes);
        bytes[17] |= 63 << 2;
        let Some(Ok(Packet::Bitrate(estimate))) = Compound::new(&bytes).next() else { panic!("no estimate") };
        assert_eq!(estimate.bits_per_second, u64::MAX);
    }
}
