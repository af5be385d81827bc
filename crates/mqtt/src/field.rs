//! The fields that packets are made of (MQTT 5 section 1.5, MQTT 3.1.1 section 1.5).

use crate::error::{EncodeError, Violation};
use crate::{MAX_FIELD_LENGTH, MAX_REMAINING_LENGTH};
use std::num::NonZeroU16;

/// A packet identifier (MQTT 5 section 2.2.1): never 0.
pub type PacketId = NonZeroU16;

/// Bytes from which fields are taken, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Violation> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Violation::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Violation> {
        let (byte, rest) = self.0.split_first().ok_or(Violation::Truncated)?;
        self.0 = rest;
        Ok(*byte)
    }

    #[inline]
    pub(crate) fn two_bytes(&mut self) -> Result<u16, Violation> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Violation::Truncated)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    #[inline]
    pub(crate) fn four_bytes(&mut self) -> Result<u32, Violation> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Violation::Truncated)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    /// A variable byte integer of MQTT 5 (section 1.5.5).
    #[inline]
    pub(crate) fn integer(&mut self) -> Result<u32, Violation> {
        match variable_integer(self.0)? {
            Some(integer) if !integer.minimal => Err(Violation::IntegerNotMinimal),
            Some(integer) => {
                self.0 = &self.0[integer.length..];
                Ok(integer.value)
            }
            None => Err(Violation::Truncated),
        }
    }

    #[inline]
    pub(crate) fn binary(&mut self) -> Result<&'a [u8], Violation> {
        let length = self.two_bytes()?;
        self.bytes(usize::from(length))
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Result<&'a str, Violation> {
        let bytes = self.binary()?;
        let text = std::str::from_utf8(bytes).map_err(|_| Violation::IllFormedText)?;
        if bytes.contains(&0) { Err(Violation::NullCharacter) } else { Ok(text) }
    }

    #[inline]
    pub(crate) fn packet_id(&mut self) -> Result<PacketId, Violation> {
        PacketId::new(self.two_bytes()?).ok_or(Violation::PacketIdentifierZero)
    }

    #[inline]
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn end(&self) -> Result<(), Violation> {
        if self.is_empty() { Ok(()) } else { Err(Violation::TrailingBytes) }
    }
}

/// A variable byte integer that is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableInteger {
    pub(crate) value: u32,
    /// Bytes on the wire.
    pub(crate) length: usize,
    /// Whether fewer bytes could not say it.
    pub(crate) minimal: bool,
}

/// The integer at the beginning of `bytes`, `None` if they end within it.
#[inline]
pub(crate) fn variable_integer(bytes: &[u8]) -> Result<Option<VariableInteger>, Violation> {
    let mut value = 0;
    for (position, byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7F) << (7 * position);
        if byte & 0x80 == 0 {
            let minimal = *byte != 0 || position == 0;
            return Ok(Some(VariableInteger { value, length: position + 1, minimal }));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(Violation::IntegerTooLong) }
}

/// How many bytes a variable byte integer takes.
#[inline]
pub(crate) const fn integer_len(value: usize) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}

#[inline]
pub(crate) fn put_integer(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7F {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes a fixed header, and makes room for what follows it.
#[inline]
pub(crate) fn put_header(first: u8, remaining: usize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_remaining(remaining)?;
    out.reserve(5 + remaining);
    out.push(first);
    put_integer(remaining, out);
    Ok(())
}

#[inline]
pub(crate) fn check_remaining(remaining: usize) -> Result<(), EncodeError> {
    if remaining > MAX_REMAINING_LENGTH {
        return Err(EncodeError::PacketTooLong { length: remaining });
    }
    Ok(())
}

/// How many bytes a string or binary field takes, if it is not too long.
#[inline]
pub(crate) fn field_len(bytes: &[u8]) -> Result<usize, EncodeError> {
    if bytes.len() > MAX_FIELD_LENGTH {
        return Err(EncodeError::FieldTooLong { length: bytes.len() });
    }
    Ok(2 + bytes.len())
}

/// The same for a string, which must not contain U+0000.
#[inline]
pub(crate) fn text_len(text: &str) -> Result<usize, EncodeError> {
    if text.as_bytes().contains(&0) {
        return Err(EncodeError::Forbidden(Violation::NullCharacter));
    }
    field_len(text.as_bytes())
}

/// Writes a field whose length has been checked.
#[inline]
pub(crate) fn put_field(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MQTT 5 table 1-1, MQTT 3.1.1 table 2.4.
    #[test]
    fn variable_byte_integers_change_length_where_the_table_says() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (127, &[0x7F]),
            (128, &[0x80, 0x01]),
            (16_383, &[0xFF, 0x7F]),
            (16_384, &[0x80, 0x80, 0x01]),
            (2_097_151, &[0xFF, 0xFF, 0x7F]),
            (2_097_152, &[0x80, 0x80, 0x80, 0x01]),
            (268_435_455, &[0xFF, 0xFF, 0xFF, 0x7F]),
        ] {
            let mut out = Vec::new();
            put_integer(value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(integer_len(value), bytes.len());
            assert_eq!(Fields(bytes).integer(), Ok(value as u32));
            assert!(variable_integer(&bytes[..bytes.len() - 1]).unwrap().is_none());
        }
    }

    #[test]
    fn longer_integers_than_needed_and_longer_ones_than_four_bytes_are_malformed() {
        assert_eq!(Fields(&[0x80, 0x00]).integer(), Err(Violation::IntegerNotMinimal));
        assert_eq!(Fields(&[0xFF, 0xFF, 0xFF, 0xFF, 0x01]).integer(), Err(Violation::IntegerTooLong));
        assert_eq!(Fields(&[0x80, 0x80, 0x80, 0x80]).integer(), Err(Violation::IntegerTooLong));
    }

    /// MQTT 5 section 1.5.4: U+002A6D4, the non-normative example "A𪛔"; and U+FEFF stays.
    #[test]
    fn text_is_taken_as_the_standard_writes_it() {
        let mut fields = Fields(&[0x00, 0x05, 0x41, 0xF0, 0xAA, 0x9B, 0x94, 0x00, 0x03, 0xEF, 0xBB, 0xBF]);
        assert_eq!(fields.text(), Ok("A\u{2A6D4}"));
        assert_eq!(fields.text(), Ok("\u{FEFF}"));
        assert_eq!(Fields(&[0, 3, 0xED, 0xA0, 0x80]).text(), Err(Violation::IllFormedText));
        assert_eq!(Fields(&[0, 1, 0]).text(), Err(Violation::NullCharacter));
        assert_eq!(Fields(&[0, 2, 0x41]).text(), Err(Violation::Truncated));
    }
}
