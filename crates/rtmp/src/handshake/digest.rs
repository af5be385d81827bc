//! The digests in Adobe's handshake.
//!
//! C1 and S1 hold 764 bytes with a digest in them and 764 bytes with a Diffie-Hellman key, in either order. Where
//! in its 764 bytes the digest lies follows from four of them. It is an HMAC-SHA256 of the rest of the packet under
//! the first part of a fixed key. C2 and S2 end in a digest under a key made of the whole fixed key and the digest
//! that is being answered.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::PACKET_LEN;

pub(super) const DIGEST_LEN: usize = 32;

pub(super) type Digest = [u8; DIGEST_LEN];

/// Which of its two halves of 764 bytes a packet's digest lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schema {
    /// Key first, then digest. What SRS calls schema 0.
    KeyFirst,
    /// Digest first, then key. What SRS calls schema 1, and Flash Player 10 and ffmpeg send.
    DigestFirst,
}

/// The side that made a packet, which decides the fixed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeSide {
    Client,
    Server,
}

/// The part of the fixed keys that both have in common.
const KEY_TAIL: [u8; 32] = [
    0xF0, 0xEE, 0xC2, 0x4A, 0x80, 0x68, 0xBE, 0xE8, 0x2E, 0x00, 0xD0, 0xD1, 0x02, 0x9E, 0x7E, 0x57, 0x6E,
    0xEC, 0x5D, 0x2D, 0x29, 0x80, 0x6F, 0xAB, 0x93, 0xB8, 0xE6, 0x36, 0xCF, 0xEB, 0x31, 0xAE,
];

/// Where the halves begin, and how long each is.
const FIRST_HALF: usize = 8;
const SECOND_HALF: usize = 772;
const HALF_LEN: usize = 764;

impl Schema {
    /// Where the digest of a packet lies, by the four bytes that say so at the beginning of its half.
    fn digest_at(self, packet: &[u8; PACKET_LEN]) -> usize {
        let half = match self {
            Self::KeyFirst => SECOND_HALF,
            Self::DigestFirst => FIRST_HALF,
        };
        let sum: usize = packet[half..half + 4].iter().map(|&byte| usize::from(byte)).sum();
        half + 4 + sum % (HALF_LEN - DIGEST_LEN - 4)
    }
}

impl HandshakeSide {
    /// The part of the fixed key that C1 and S1 are signed with.
    fn words(self) -> &'static [u8] {
        match self {
            Self::Client => b"Genuine Adobe Flash Player 001",
            Self::Server => b"Genuine Adobe Flash Media Server 001",
        }
    }
}

/// Puts a digest into a C1 or S1, and returns it.
pub(super) fn sign(packet: &mut [u8; PACKET_LEN], schema: Schema, maker: HandshakeSide) -> Digest {
    let at = schema.digest_at(packet);
    let digest = digest_around(packet, at, maker);
    packet[at..at + DIGEST_LEN].copy_from_slice(&digest);
    digest
}

/// The digest of a C1 or S1, if it has one.
pub(super) fn find(packet: &[u8; PACKET_LEN], maker: HandshakeSide) -> Option<(Schema, Digest)> {
    [Schema::KeyFirst, Schema::DigestFirst].into_iter().find_map(|schema| {
        let at = schema.digest_at(packet);
        let digest = digest_around(packet, at, maker);
        (packet[at..at + DIGEST_LEN] == digest).then_some((schema, digest))
    })
}

/// Ends a C2 or S2 with the digest that answers that of a S1 or C1.
pub(super) fn answer(packet: &mut [u8; PACKET_LEN], answered: &Digest, maker: HandshakeSide) {
    let key =
        hmac(maker.words().iter().chain(&KEY_TAIL).copied().collect::<Vec<u8>>().as_slice(), &[answered]);
    let (contents, digest) = packet.split_at_mut(PACKET_LEN - DIGEST_LEN);
    digest.copy_from_slice(&hmac(&key, &[contents]));
}

fn digest_around(packet: &[u8; PACKET_LEN], at: usize, maker: HandshakeSide) -> Digest {
    hmac(maker.words(), &[&packet[..at], &packet[at + DIGEST_LEN..]])
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Digest {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        hmac.update(part);
    }
    hmac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(seed: u64) -> [u8; PACKET_LEN] {
        super::super::random_packet(&mut fastrand::Rng::with_seed(seed), [9, 0, 124, 2])
    }

    #[test]
    fn a_signed_packet_is_recognised_in_either_schema() {
        for seed in 0..100 {
            for schema in [Schema::KeyFirst, Schema::DigestFirst] {
                for maker in [HandshakeSide::Client, HandshakeSide::Server] {
                    let mut packet = packet(seed);
                    let digest = sign(&mut packet, schema, maker);
                    assert_eq!(find(&packet, maker), Some((schema, digest)));
                }
            }
        }
    }

    #[test]
    fn a_packet_of_the_other_side_is_not_recognised() {
        let mut packet = packet(1);
        sign(&mut packet, Schema::DigestFirst, HandshakeSide::Client);
        assert_eq!(find(&packet, HandshakeSide::Server), None);
    }

    #[test]
    fn a_digest_lies_in_its_half_wherever_the_packet_puts_it() {
        let mut packet = [0xFF; PACKET_LEN];
        assert!(Schema::DigestFirst.digest_at(&packet) + DIGEST_LEN <= SECOND_HALF);
        packet[SECOND_HALF..SECOND_HALF + 4].copy_from_slice(&[0xFF, 0xFF, 0xD9, 0x00]);
        assert_eq!(Schema::KeyFirst.digest_at(&packet), SECOND_HALF + 4 + 727);
        assert!(Schema::KeyFirst.digest_at(&packet) + DIGEST_LEN <= PACKET_LEN);
    }
}
