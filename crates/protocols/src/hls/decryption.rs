//! Segments that are encrypted with AES-128, as a witness reads them: piece by piece, with one block held back, because the last
//! has padding. Knows neither playlists nor figures.

use aes::Aes128;
use cbc::cipher::{Block, BlockModeDecrypt, KeyIvInit};
use std::fmt;

/// Bytes of a block, of a key and of an initialization vector.
const BLOCK: usize = 16;

/// A key that was loaded. It is a secret, and is in no output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyBytes([u8; BLOCK]);

impl KeyBytes {
    /// Bytes of a key.
    pub(super) const LENGTH: usize = BLOCK;

    /// What a server sent as a key (RFC 8216, section 4.3.2.4: "a packed array of 16 octets").
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyBytes")
    }
}

/// An initialization vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InitializationVector(pub(super) [u8; BLOCK]);

impl InitializationVector {
    /// The attribute `IV`: "a hexadecimal-sequence that specifies a 128-bit unsigned integer" (RFC 8216, section 4.3.2.4).
    pub(super) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
        u128::from_str_radix(digits, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    /// That of a segment whose key names none: its Media Sequence Number, big-endian, padded on the left with zeros (RFC 8216,
    /// section 5.2).
    pub(super) fn of_segment(number: u64) -> Self {
        Self(u128::from(number).to_be_bytes())
    }
}

/// One segment under way.
pub(super) struct Decryption {
    cipher: cbc::Decryptor<Aes128>,
    /// The beginning of a block that is not whole.
    pending: [u8; BLOCK],
    length: usize,
    /// The last whole block, in clear text.
    held: Option<Block<Aes128>>,
    clear: Vec<Block<Aes128>>,
}

impl Decryption {
    pub(super) fn new(key: KeyBytes, iv: InitializationVector) -> Self {
        let cipher = cbc::Decryptor::new(&key.0.into(), &iv.0.into());
        Self { cipher, pending: [0; BLOCK], length: 0, held: None, clear: Vec::new() }
    }

    /// Takes what came; the clear text of what came so far, without its last block.
    pub(super) fn take(&mut self, mut piece: &[u8]) -> &[u8] {
        self.clear.clear();
        self.clear.extend(self.held.take());
        let decrypted = self.clear.len();
        if self.length > 0 {
            let (head, rest) = piece.split_at(piece.len().min(BLOCK - self.length));
            self.pending[self.length..][..head.len()].copy_from_slice(head);
            self.length += head.len();
            piece = rest;
            if self.length == BLOCK {
                self.clear.push(self.pending.into());
                self.length = 0;
            }
        }
        let (blocks, rest) = piece.as_chunks::<BLOCK>();
        self.clear.extend(blocks.iter().map(|block| Block::<Aes128>::from(*block)));
        if !rest.is_empty() {
            self.pending[..rest.len()].copy_from_slice(rest);
            self.length = rest.len();
        }
        self.cipher.decrypt_blocks(&mut self.clear[decrypted..]);
        self.held = self.clear.pop();
        Block::<Aes128>::slice_as_flattened(&self.clear)
    }

    /// The end of the clear text. `None`: what came is no whole number of blocks, or does not end in padding (PKCS #7: RFC 5652,
    /// section 6.3), as it does with another key.
    pub(super) fn finish(&mut self) -> Option<&[u8]> {
        let block = self.held.as_ref().filter(|_| self.length == 0)?;
        let padding = usize::from(block[BLOCK - 1]);
        let (clear, end) = block.split_at_checked(BLOCK.checked_sub(padding)?)?;
        let is_padding = padding > 0 && end.iter().all(|byte| usize::from(*byte) == padding);
        is_padding.then_some(clear)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// NIST SP 800-38A, section F.2.1 (CBC-AES128): its key, its vector, and the first two blocks of its text.
    const KEY: [u8; 16] = 0x2b7e1516_28aed2a6_abf71588_09cf4f3c_u128.to_be_bytes();
    const IV: [u8; 16] = 0x00010203_04050607_08090a0b_0c0d0e0f_u128.to_be_bytes();
    const TEXT: [u128; 2] = [0x6bc1bee2_2e409f96_e93d7e11_7393172a, 0xae2d8a57_1e03ac9c_9eb76fac_45af8e51];
    const CIPHERED: [u128; 2] =
        [0x7649abac_8119b246_cee98e9b_12e9197d, 0x5086cb9b_507219ee_95db113a_917678b2];

    fn decryption() -> Decryption {
        Decryption::new(KeyBytes(KEY), InitializationVector(IV))
    }

    fn encrypted(text: &[u8]) -> Vec<u8> {
        encrypt(text, &KEY, &IV)
    }

    /// As a server encrypts, with padding.
    pub(in crate::hls) fn encrypt(text: &[u8], key: &[u8; 16], iv: &[u8; 16]) -> Vec<u8> {
        use cbc::cipher::BlockModeEncrypt;
        let padding = BLOCK - text.len() % BLOCK;
        let padded: Vec<u8> =
            text.iter().copied().chain(std::iter::repeat_n(padding as u8, padding)).collect();
        let mut blocks: Vec<Block<Aes128>> =
            padded.as_chunks::<BLOCK>().0.iter().map(|block| (*block).into()).collect();
        cbc::Encryptor::<Aes128>::new(key.into(), iv.into()).encrypt_blocks(&mut blocks);
        Block::<Aes128>::slice_as_flattened(&blocks).to_vec()
    }

    #[test]
    fn what_the_standard_encrypts_is_read() {
        let mut decryption = decryption();
        let ciphered: Vec<u8> = CIPHERED.iter().flat_map(|block| block.to_be_bytes()).collect();
        assert_eq!(decryption.take(&ciphered), TEXT[0].to_be_bytes());
        assert_eq!(decryption.finish(), None, "its last block has no padding");
    }

    #[test]
    fn vectors_are_read_and_made_of_numbers() {
        let read = |text| InitializationVector::read(text).map(|it| u128::from_be_bytes(it.0));
        assert_eq!((read("0x0f"), read("0XFF"), read("12"), read("0xg")), (Some(15), Some(255), None, None));
        assert_eq!(read(&format!("0x1{}", "0".repeat(32))), None, "129 bits");
        assert_eq!(InitializationVector::of_segment(258).0[14..], [1, 2]);
    }

    #[test]
    fn another_key_and_half_a_block_are_told_apart_from_a_segment() {
        let ciphered = encrypted(&[7; 1_000]);
        let mut other = Decryption::new(KeyBytes([9; 16]), InitializationVector(IV));
        other.take(&ciphered);
        assert_eq!(other.finish(), None);
        let mut cut = decryption();
        cut.take(&ciphered[..ciphered.len() - 1]);
        assert_eq!(cut.finish(), None);
        assert_eq!(decryption().finish(), None, "nothing came");
    }

    proptest! {
        #[test]
        fn every_split_of_a_segment_is_read_alike(text in prop::collection::vec(any::<u8>(), 0..200), splits in prop::collection::vec(0..250_usize, 0..6)) {
            let ciphered = encrypted(&text);
            let mut splits: Vec<_> = splits.into_iter().map(|at| at.min(ciphered.len())).collect();
            splits.extend([0, ciphered.len()]);
            splits.sort_unstable();
            let (mut decryption, mut clear) = (decryption(), Vec::new());
            for ends in splits.windows(2) {
                clear.extend_from_slice(decryption.take(&ciphered[ends[0]..ends[1]]));
            }
            clear.extend_from_slice(decryption.finish().unwrap());
            prop_assert_eq!(clear, text);
        }
    }
}
