//! A hash that distinguishes two payloads with the same publisher and sequence number.
//!
//! Any client that may publish to a broker can write any mark on a message. A message is a repetition only if its payload is the
//! same, which a hash kept beside the row shows. A publisher must not be able to construct a second payload for it, so it
//! is a cryptographic one; a keyed one would need a key that outlives the process and all ingesters of a table share.

use aws_lc_rs::digest::{Context, SHA256};

/// Bytes that are kept of a SHA-256: a second payload with the same ones takes 2¹²⁸ attempts.
pub(crate) const LENGTH: usize = 16;

/// The hash of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PayloadHash(pub [u8; 16]);

impl PayloadHash {
    /// Of a payload without its mark. Of one over the limit, `kept` is the beginning and `size` its length: what is kept
    /// of it is a dead letter with both.
    pub(crate) fn of(kept: &[u8], size: u32) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(kept);
        if size > 0 {
            context.update(&size.to_be_bytes());
        }
        let mut hash = [0; LENGTH];
        hash.copy_from_slice(&context.finish().as_ref()[..LENGTH]);
        Self(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables outlive versions of weir: FIPS 180-4, example "abc", the first half.
    #[test]
    fn it_is_the_first_half_of_sha_256() {
        let hash = PayloadHash::of(b"abc", 0).0;
        assert_eq!(
            hash,
            [0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23]
        );
        assert_ne!(PayloadHash::of(b"abc", 1_000).0, hash);
    }
}
