//! Segments and parts that are encrypted with AES-128 (RFC 8216, section 4.3.2.4): all of each, in CBC that begins anew with it, padded.

use aes::Aes128;
use cbc::cipher::{Block, BlockModeEncrypt, KeyIvInit};
use std::fmt;
use std::str::FromStr;

/// Bytes of a block, of a key and of an initialization vector.
const BLOCK: usize = 16;

/// A key of segments. It is a secret, and is in no output but the answer to who asks for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SegmentKey([u8; BLOCK]);

/// The text is no key of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of AES-128 has 32 hexadecimal digits")]
pub struct UnknownSegmentKey;

impl SegmentKey {
    /// Its octets, as they are sent (RFC 8216, section 5.1: "a packed array of 16 octets in binary format").
    pub(super) fn octets(&self) -> &[u8] {
        &self.0
    }

    /// A segment, or a part of one, with this Media Sequence Number, as it is sent. Without an `IV` the vector is that number in 128 bits,
    /// big-endian (RFC 8216, section 5.2); a part has the key and the vector of its segment (draft-pantos-hls-rfc8216bis-22,
    /// section 4.4.4.9: tags of a Parent Segment apply to its parts), and is decrypted alone.
    pub(super) fn encrypt(&self, clear: &[u8], number: u64) -> Vec<u8> {
        let vector = u128::from(number).to_be_bytes();
        let padding = BLOCK - clear.len() % BLOCK;
        let padded = clear.iter().copied().chain(std::iter::repeat_n(padding as u8, padding));
        let padded: Vec<u8> = padded.collect();
        let mut blocks: Vec<Block<Aes128>> =
            padded.as_chunks::<BLOCK>().0.iter().map(|block| Block::<Aes128>::from(*block)).collect();
        cbc::Encryptor::<Aes128>::new(&self.0.into(), &vector.into()).encrypt_blocks(&mut blocks);
        Block::<Aes128>::slice_as_flattened(&blocks).to_vec()
    }
}

impl FromStr for SegmentKey {
    type Err = UnknownSegmentKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hexadecimal = text.len() == 2 * BLOCK && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        number.map(|number| Self(number.to_be_bytes())).ok_or(UnknownSegmentKey)
    }
}

impl fmt::Debug for SegmentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SegmentKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cbc::cipher::BlockModeDecrypt;

    #[test]
    fn keys_are_read_and_never_shown() {
        let key: SegmentKey = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        assert_eq!(key.octets(), (0..16).collect::<Vec<_>>());
        assert_eq!(format!("{key:?}"), "SegmentKey");
        for none in [
            "",
            "0x0102030405060708090a0b0c0d0e0f",
            "000102030405060708090a0b0c0d0e0",
            "+00102030405060708090a0b0c0d0e0f",
        ] {
            assert_eq!(none.parse::<SegmentKey>(), Err(UnknownSegmentKey), "{none}");
        }
    }

    #[test]
    fn what_is_encrypted_is_whole_blocks_that_end_in_padding() {
        let key = SegmentKey([7; BLOCK]);
        for length in [0, 1, 15, 16, 17, 188 * 9] {
            let clear: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let encrypted = key.encrypt(&clear, 258);
            let mut blocks: Vec<Block<Aes128>> =
                encrypted.as_chunks::<BLOCK>().0.iter().map(|block| (*block).into()).collect();
            let mut vector = [0; BLOCK];
            vector[14..].copy_from_slice(&[1, 2]);
            cbc::Decryptor::<Aes128>::new(&[7; BLOCK].into(), &vector.into()).decrypt_blocks(&mut blocks);
            let padded = Block::<Aes128>::slice_as_flattened(&blocks);
            let padding = usize::from(*padded.last().unwrap());
            assert_eq!((&padded[..length], padded.len() - padding), (&clear[..], length));
            assert!((1..=BLOCK).contains(&padding));
        }
    }
}
