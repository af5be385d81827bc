//! One RTP packet, borrowed: a view of the caller's bytes that was checked once.

use super::Extensions;

/// The length in bytes of a header without contributing sources and extensions.
pub const HEADER_LENGTH: usize = 12;

/// One RTP or SRTP packet. In SRTP all but the payload is in clear.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    fixed: &'a [u8; HEADER_LENGTH],
    extension: &'a [u8],
    profile: u16,
    payload_at: usize,
}

/// Why bytes are no RTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum HeaderError {
    /// The datagram ends inside the header; the sender or a middlebox cut it.
    #[error("the RTP header is cut short: {0} bytes")]
    CutShort(usize),
    /// Another version of RTP, or no RTP.
    #[error("RTP version {0}; only version 2 exists in the field")]
    Version(u8),
}

impl<'a> Packet<'a> {
    /// The packet in a datagram.
    ///
    /// # Errors
    ///
    /// When the datagram ends inside the header, or is of another version.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        let Some((fixed, _)) = bytes.split_first_chunk::<HEADER_LENGTH>() else {
            return Err(HeaderError::CutShort(bytes.len()));
        };
        if fixed[0] >> 6 != 2 {
            return Err(HeaderError::Version(fixed[0] >> 6));
        }
        let mut payload_at = HEADER_LENGTH + 4 * usize::from(fixed[0] & 0x0F);
        let (mut extension, mut profile): (&[u8], u16) = (&[], 0);
        if fixed[0] & 0x10 != 0 {
            let head: Option<&[u8; 4]> = bytes.get(payload_at..).and_then(<[u8]>::first_chunk);
            let Some(&[a, b, c, d]) = head else { return Err(HeaderError::CutShort(bytes.len())) };
            profile = u16::from_be_bytes([a, b]);
            let extension_at = payload_at + 4;
            payload_at = extension_at + 4 * usize::from(u16::from_be_bytes([c, d]));
            extension = bytes.get(extension_at..payload_at).ok_or(HeaderError::CutShort(bytes.len()))?;
        }
        if payload_at > bytes.len() {
            return Err(HeaderError::CutShort(bytes.len()));
        }
        Ok(Self { bytes, fixed, extension, profile, payload_at })
    }

    /// The marker bit: with H.264 the last packet of a frame (RFC 6184 section 5.1).
    #[inline]
    pub fn marker(&self) -> bool {
        self.fixed[1] & 0x80 != 0
    }

    /// The payload type, 7 bits.
    #[inline]
    pub fn payload_type(&self) -> u8 {
        self.fixed[1] & 0x7F
    }

    /// The sequence number.
    #[inline]
    pub fn sequence_number(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// The time stamp, in ticks of the payload's clock.
    #[inline]
    pub fn timestamp(&self) -> u32 {
        u32::from_be_bytes([self.fixed[4], self.fixed[5], self.fixed[6], self.fixed[7]])
    }

    /// The synchronisation source.
    #[inline]
    pub fn ssrc(&self) -> u32 {
        u32::from_be_bytes([self.fixed[8], self.fixed[9], self.fixed[10], self.fixed[11]])
    }

    /// The elements of the header extension; none when it is of a kind that RFC 8285 does not know.
    #[inline]
    pub fn extensions(&self) -> Extensions<'a> {
        Extensions::new(self.profile, self.extension)
    }

    /// The element with this identifier.
    #[inline]
    pub fn extension(&self, identifier: u8) -> Option<&'a [u8]> {
        self.extensions().find_map(|(this, element)| (this == identifier).then_some(element))
    }

    /// The whole datagram.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The length of header, contributing sources and extension in bytes: what SRTP leaves in clear.
    #[inline]
    pub fn header_length(&self) -> usize {
        self.payload_at
    }

    /// What follows the header: of an SRTP packet the encrypted payload, padding and authentication tag.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.payload_at..]
    }

    /// Whether its body ends with padding. How much is in the last byte of the body, which SRTP encrypts.
    #[inline]
    pub fn has_padding(&self) -> bool {
        self.fixed[0] & 0x20 != 0
    }

    /// The payload of a packet that is not encrypted, without padding; `None` when the padding is longer than the body
    /// or of no length.
    pub fn payload(&self) -> Option<&'a [u8]> {
        let body = self.body();
        if !self.has_padding() {
            return Some(body);
        }
        let padding = usize::from(*body.last()?);
        if padding == 0 {
            return None;
        }
        body.get(..body.len().checked_sub(padding)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two contributing sources, a one-byte extension of two words, a payload of four bytes of which two are padding.
    const WHOLE: &[u8] = &[
        0xB2, 0xE2, 0xFF, 0xFE, 1, 2, 3, 4, 5, 6, 7, 8, //
        0, 0, 0, 9, 0, 0, 0, 10, //
        0xBE, 0xDE, 0, 2, 0x10, 0xAA, 0x00, 0x51, 0xBB, 0xCC, 0, 0, //
        0x65, 0x88, 0, 2,
    ];

    #[test]
    fn a_packet_with_all_parts_is_read() {
        let packet = Packet::parse(WHOLE).unwrap();
        assert!(packet.marker());
        assert_eq!(packet.payload_type(), 98);
        assert_eq!(packet.sequence_number(), 0xFFFE);
        assert_eq!(packet.timestamp(), 0x0102_0304);
        assert_eq!(packet.ssrc(), 0x0506_0708);
        assert_eq!(packet.extension(1), Some(&[0xAA][..]));
        assert_eq!(packet.extension(5), Some(&[0xBB, 0xCC][..]));
        assert_eq!(packet.extension(2), None);
        assert_eq!(packet.body(), [0x65, 0x88, 0, 2]);
        assert_eq!(packet.payload(), Some(&[0x65, 0x88][..]));
    }

    #[test]
    fn a_header_that_is_cut_anywhere_is_refused() {
        for length in 0..WHOLE.len() - 4 {
            assert_eq!(Packet::parse(&WHOLE[..length]).unwrap_err(), HeaderError::CutShort(length));
        }
        assert!(Packet::parse(&WHOLE[..WHOLE.len() - 4]).is_ok_and(|packet| packet.payload().is_none()));
    }

    #[test]
    fn another_version_is_refused() {
        assert_eq!(Packet::parse(&[0x40; 12]).unwrap_err(), HeaderError::Version(1));
    }

    #[test]
    fn padding_that_does_not_fit_leaves_no_payload() {
        let mut bytes = WHOLE.to_vec();
        for padding in [0, 5, 255] {
            *bytes.last_mut().unwrap() = padding;
            assert_eq!(Packet::parse(&bytes).unwrap().payload(), None);
        }
        *bytes.last_mut().unwrap() = 4;
        assert_eq!(Packet::parse(&bytes).unwrap().payload(), Some(&[][..]));
    }
}
