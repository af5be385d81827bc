//! A bit writer with the descriptors of H.264, clause 7.2, and of AAC (both write the most significant bit
//! first). It knows no syntax element.

/// Bits gathered into bytes, most significant bit first.
#[derive(Debug, Default, Clone)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// The bits that do not fill a byte yet, at the low end.
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// The number of bits written.
    pub(crate) fn len_bits(&self) -> usize {
        self.bytes.len() * 8 + self.pending_bits as usize
    }

    /// u(n): the low `count` bits of `value`; `count` is at most 32.
    pub(crate) fn bits(&mut self, value: u32, count: u32) {
        debug_assert!(count <= 32 && (count == 32 || value < 1 << count), "{value} in {count} bits");
        self.pending = self.pending << count | u64::from(value);
        self.pending_bits += count;
        while self.pending_bits >= 8 {
            self.pending_bits -= 8;
            self.bytes.push((self.pending >> self.pending_bits) as u8);
        }
        self.pending &= (1 << self.pending_bits) - 1;
    }

    /// u(1).
    pub(crate) fn flag(&mut self, value: bool) {
        self.bits(u32::from(value), 1);
    }

    /// ue(v): unsigned Exp-Golomb, clause 9.1; `value` is at most 2^32 − 2.
    pub(crate) fn unsigned_golomb(&mut self, value: u32) {
        let code = u64::from(value) + 1;
        let suffix_bits = code.ilog2();
        self.bits(0, suffix_bits);
        self.bits(1, 1);
        self.bits((code - (1 << suffix_bits)) as u32, suffix_bits);
    }

    /// se(v): signed Exp-Golomb, clause 9.1.1.
    pub(crate) fn signed_golomb(&mut self, value: i32) {
        let magnitude = value.unsigned_abs();
        self.unsigned_golomb(if value > 0 { 2 * magnitude - 1 } else { 2 * magnitude });
    }

    /// Zero bits up to the next byte boundary.
    pub(crate) fn align(&mut self) {
        self.bits(0, (8 - self.pending_bits) % 8);
    }

    /// Whole bytes; the writer must be aligned.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.pending_bits, 0, "bytes() needs align()");
        self.bytes.extend_from_slice(bytes);
    }

    /// rbsp_trailing_bits(), clause 7.3.2.11: a one, then zeros to the byte boundary.
    pub(crate) fn trailing_bits(&mut self) {
        self.flag(true);
        self.align();
    }

    /// The bytes; the writer must be aligned.
    pub(crate) fn finish(self) -> Vec<u8> {
        debug_assert_eq!(self.pending_bits, 0, "finish() needs align()");
        self.bytes
    }
}

/// Bits out of bytes, most significant bit first; `None` behind the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The bits that were read.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// u(1).
    pub(crate) fn flag(&mut self) -> Option<bool> {
        let byte = *self.bytes.get(self.at / 8)?;
        self.at += 1;
        Some(byte << ((self.at - 1) % 8) & 0x80 != 0)
    }

    /// u(n), of 32 bits at the most.
    pub(crate) fn bits(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |value: u32, _| Some(value << 1 | u32::from(self.flag()?)))
    }

    pub(crate) fn skip(&mut self, count: u32) -> Option<()> {
        self.at += count as usize;
        (self.at <= self.bytes.len() * 8).then_some(())
    }

    /// ue(v), clause 9.1.
    pub(crate) fn unsigned_golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1_u32 << zeros) - 1 + self.bits(zeros)?)
    }

    /// se(v), clause 9.1.1.
    pub(crate) fn signed_golomb(&mut self) -> Option<i32> {
        let code = i64::from(self.unsigned_golomb()?);
        let magnitude = (code + 1) / 2;
        i32::try_from(if code % 2 == 0 { -magnitude } else { magnitude }).ok()
    }

    /// Four of ue(v).
    pub(crate) fn four(&mut self) -> Option<[u32; 4]> {
        let mut next = || self.unsigned_golomb();
        Some([next()?, next()?, next()?, next()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An independent, slow reader: one character a bit.
    fn as_text(writer: BitWriter) -> String {
        let length = writer.len_bits();
        let mut writer = writer;
        writer.align();
        let text: String = writer.finish().iter().map(|byte| format!("{byte:08b}")).collect();
        text[..length].to_owned()
    }

    #[test]
    fn exp_golomb_codes_are_those_of_table_9_2() {
        for (value, code) in [(0, "1"), (1, "010"), (2, "011"), (3, "00100"), (6, "00111"), (7, "0001000")] {
            let mut writer = BitWriter::default();
            writer.unsigned_golomb(value);
            assert_eq!(as_text(writer), code);
        }
        for (value, code) in [(0, "1"), (1, "010"), (-1, "011"), (2, "00100"), (-2, "00101")] {
            let mut writer = BitWriter::default();
            writer.signed_golomb(value);
            assert_eq!(as_text(writer), code);
        }
    }

    proptest! {
        #[test]
        fn bits_come_out_in_the_order_they_went_in(fields in prop::collection::vec((any::<u32>(), 1u32..=32), 0..64)) {
            let mut writer = BitWriter::default();
            let mut expected = String::new();
            for (value, count) in fields {
                let value = if count == 32 { value } else { value & ((1 << count) - 1) };
                writer.bits(value, count);
                expected += &format!("{value:0width$b}", width = count as usize);
            }
            prop_assert_eq!(as_text(writer), expected);
        }

        #[test]
        fn exp_golomb_reads_back(values in prop::collection::vec(0..u32::MAX, 1..32)) {
            let mut writer = BitWriter::default();
            for value in &values {
                writer.unsigned_golomb(*value);
            }
            let text = as_text(writer);
            let mut rest = text.as_str();
            for value in values {
                let zeros = rest.find('1').unwrap();
                let code = u64::from_str_radix(&rest[zeros..=2 * zeros], 2).unwrap();
                rest = &rest[2 * zeros + 1..];
                prop_assert_eq!(code - 1, u64::from(value));
            }
            prop_assert!(rest.is_empty());
        }
    }
}
