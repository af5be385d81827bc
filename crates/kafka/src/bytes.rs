//! Numbers, texts and arrays as they lie on the wire: big-endian, with their lengths in front ("Protocol Primitive Types").

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// They end in the middle of a value.
    #[error("the answer ends too early")]
    Short,
    /// A length or a count that there cannot be.
    #[error("a length in the answer is impossible")]
    Length,
    /// A text that is no UTF-8.
    #[error("a text in the answer is no UTF-8")]
    Text,
    /// A batch of records whose CRC-32C is another's.
    #[error("a batch of records has another checksum than it says")]
    Checksum,
    /// Compressed records that are damaged, or compressed by an unknown codec.
    #[error("a batch of compressed records is damaged")]
    Compression,
    /// Records that have more than their [`Budget`](crate::Budget) when they are decompressed.
    #[error("a batch of records is larger than weir takes when it is decompressed")]
    TooLarge,
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn i8(&mut self) -> Result<i8, Malformed> {
        self.fixed().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, Malformed> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, Malformed> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.fixed().map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, Malformed> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// NULLABLE_STRING.
    pub(crate) fn nullable_text(&mut self) -> Result<Option<String>, Malformed> {
        let Some(length) = length(self.i16()?.into())? else { return Ok(None) };
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| Malformed::Text)?;
        Ok(Some(text.to_owned()))
    }

    /// STRING.
    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        self.nullable_text()?.ok_or(Malformed::Length)
    }

    /// NULLABLE_BYTES, which RECORDS are as well; nothing for null.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = length(self.i32()?)?.unwrap_or(0);
        self.take(length)
    }

    /// ARRAY; empty for null. Each element takes at least one byte of the input, which bounds what is kept.
    pub(crate) fn array<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = length(self.i32()?)?.unwrap_or(0);
        let mut elements = Vec::new();
        for _ in 0..count {
            let left = self.0.len();
            elements.push(element(self)?);
            if self.0.len() == left {
                return Err(Malformed::Length);
            }
        }
        Ok(elements)
    }

    /// VARLONG: zigzag, seven bits a byte, the lowest first.
    pub(crate) fn varlong(&mut self) -> Result<i64, Malformed> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Malformed::Length)
    }

    /// Bytes behind a VARINT with their length; `None` for null.
    pub(crate) fn varbytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let length = i32::try_from(self.varlong()?).map_err(|_| Malformed::Length)?;
        self::length(length)?.map(|length| self.take(length)).transpose()
    }
}

/// A length; `None` for null, which is written as −1.
fn length(written: i32) -> Result<Option<usize>, Malformed> {
    match written {
        -1 => Ok(None),
        written => usize::try_from(written).map(Some).map_err(|_| Malformed::Length),
    }
}

/// What values are appended to.
pub type Output = Vec<u8>;

pub(crate) fn put_i16(value: i16, out: &mut Output) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_i32(value: i32, out: &mut Output) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_i64(value: i64, out: &mut Output) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_bool(value: bool, out: &mut Output) {
    out.push(value.into());
}

/// STRING. What is longer than a STRING can be is cut: no name that is sent is.
pub(crate) fn put_text(text: &str, out: &mut Output) {
    let bytes = &text.as_bytes()[..text.len().min(i16::MAX as usize)];
    put_i16(bytes.len() as i16, out);
    out.extend_from_slice(bytes);
}

/// BYTES.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Output) {
    put_i32(bytes.len() as i32, out);
    out.extend_from_slice(bytes);
}

/// ARRAY.
pub(crate) fn put_array<T>(elements: &[T], out: &mut Output, mut put: impl FnMut(&T, &mut Output)) {
    put_i32(elements.len() as i32, out);
    elements.iter().for_each(|element| put(element, out));
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// VARLONG, and VARINT, which looks alike.
#[inline]
pub(crate) fn put_varlong(value: i64, out: &mut Output) {
    let mut value = zigzag(value);
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that a VARLONG takes.
#[inline]
pub(crate) fn varlong_size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_varlong_is_read_as_it_was_written(value in prop_oneof![any::<i64>(), -300_i64..300]) {
            let mut out = Vec::new();
            put_varlong(value, &mut out);
            prop_assert_eq!(out.len(), varlong_size(value));
            let mut input = Input(&out);
            prop_assert_eq!(input.varlong(), Ok(value));
            prop_assert!(input.0.is_empty());
        }
    }

    /// Protocol Buffers, "Signed Integers".
    #[test]
    fn small_numbers_of_either_sign_take_one_byte() {
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (63, 126), (-64, 127)] {
            let mut out = Vec::new();
            put_varlong(value, &mut out);
            assert_eq!(out, [byte]);
        }
    }

    #[test]
    fn a_count_without_its_elements_takes_no_memory() {
        let mut bytes = i32::MAX.to_be_bytes().to_vec();
        assert_eq!(Input(&bytes).array(Input::i32), Err(Malformed::Short));
        bytes.extend([0; 64]);
        assert_eq!(Input(&bytes).array(|_| Ok(())), Err(Malformed::Length));
        assert_eq!(Input(&(-2_i32).to_be_bytes()).array(Input::i8), Err(Malformed::Length));
    }
}
