//! One chunk header, from the bytes that hold it (RTMP 1.0 section 5.3.1).

use super::MIN_CHUNK_STREAM_ID;

/// The longest header: three bytes of basic header, eleven of message header, four of extended timestamp.
pub(super) const MAX_HEADER_LEN: usize = 3 + 11 + 4;

/// A 24-bit timestamp field that says: the timestamp follows in 32 bits (section 5.3.1.3).
pub(super) const EXTENDED: u32 = 0xFF_FFFF;

/// The first one to three bytes of a chunk (section 5.3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BasicHeader {
    pub(super) format: u8,
    pub(super) chunk_stream_id: u32,
    /// Its own length in bytes.
    pub(super) len: usize,
}

impl BasicHeader {
    /// `None` when `bytes` ends before the header does.
    #[inline]
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (&first, rest) = bytes.split_first()?;
        let format = first >> 6;
        let (chunk_stream_id, len) = match first & 0x3F {
            0 => (64 + u32::from(*rest.first()?), 2),
            1 => (64 + u32::from(*rest.first()?) + 256 * u32::from(*rest.get(1)?), 3),
            id => (u32::from(id), 1),
        };
        Some(Self { format, chunk_stream_id, len })
    }

    /// Appends the shortest form that can carry the chunk stream id.
    pub(super) fn write(format: u8, chunk_stream_id: u32, out: &mut Vec<u8>) {
        debug_assert!((MIN_CHUNK_STREAM_ID..=super::MAX_CHUNK_STREAM_ID).contains(&chunk_stream_id));
        let top = format << 6;
        match chunk_stream_id {
            ..64 => out.push(top | chunk_stream_id as u8),
            64..320 => out.extend([top, (chunk_stream_id - 64) as u8]),
            _ => {
                let [low, high, ..] = (chunk_stream_id - 64).to_le_bytes();
                out.extend([top | 1, low, high]);
            }
        }
    }
}

/// How long the message header of each chunk format is (section 5.3.1.2).
pub(super) const MESSAGE_HEADER_LEN: [usize; 4] = [11, 7, 3, 0];

/// Three bytes, most significant first.
#[inline]
pub(super) fn u24(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) << 16 | u32::from(bytes[1]) << 8 | u32::from(bytes[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_basic_header_has_three_forms() {
        for (id, len) in [(2, 1), (63, 1), (64, 2), (319, 2), (320, 3), (65_599, 3)] {
            let mut bytes = Vec::new();
            BasicHeader::write(2, id, &mut bytes);
            assert_eq!(bytes.len(), len);
            assert_eq!(BasicHeader::parse(&bytes), Some(BasicHeader { format: 2, chunk_stream_id: id, len }));
            assert_eq!(BasicHeader::parse(&bytes[..len - 1]), None);
        }
    }

    #[test]
    fn a_long_form_may_carry_a_small_id() {
        assert_eq!(
            BasicHeader::parse(&[0x01, 0x00, 0x00]),
            Some(BasicHeader { format: 0, chunk_stream_id: 64, len: 3 })
        );
    }
}
