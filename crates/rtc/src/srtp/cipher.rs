//! One protocol in one direction: encryption and tags, with nothing known of order and replay.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{EncryptingKey, EncryptionContext};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

use super::derivation::{Protocol, SessionKeys, counter_key};
use super::{MasterKey, Profile, SrtpError};

/// The part of an RTCP packet that stays in clear (RFC 3711 section 3.4).
pub(super) const RTCP_HEADER: usize = 8;

/// The bit before an SRTCP index that says that the packet is encrypted.
pub(super) const ENCRYPTED: u32 = 1 << 31;

/// The length of GCM's tags.
const GCM_TAG: usize = 16;

/// The longest tag of HMAC-SHA1 that is sent.
const HMAC_TAG: usize = 10;

/// The keys of one protocol, ready to use.
#[derive(Debug)]
pub(super) enum Cipher {
    Counter { key: Box<EncryptingKey>, salt: [u8; 14], authentication: Box<hmac::Key>, tag_length: usize },
    Gcm { key: Box<LessSafeKey>, salt: [u8; 12] },
}

impl Cipher {
    pub(super) fn new(master: &MasterKey, protocol: Protocol) -> Result<Self, SrtpError> {
        Self::from_session_keys(master.profile, protocol, &SessionKeys::derive(master, protocol)?)
    }

    fn from_session_keys(
        profile: Profile,
        protocol: Protocol,
        keys: &SessionKeys,
    ) -> Result<Self, SrtpError> {
        if profile.is_gcm() {
            let algorithm = if keys.encryption.len() == 32 { &AES_256_GCM } else { &AES_128_GCM };
            let key = UnboundKey::new(algorithm, &keys.encryption).map_err(|_| SrtpError::Refused)?;
            let salt = keys.salt.first_chunk().ok_or(SrtpError::Refused)?;
            return Ok(Self::Gcm { key: Box::new(LessSafeKey::new(key)), salt: *salt });
        }
        let tag_length = if protocol == Protocol::Rtp { profile.rtp_overhead() } else { HMAC_TAG };
        Ok(Self::Counter {
            key: Box::new(counter_key(&keys.encryption)?),
            salt: *keys.salt.first_chunk().ok_or(SrtpError::Refused)?,
            authentication: Box::new(hmac::Key::new(
                hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
                &keys.authentication,
            )),
            tag_length,
        })
    }

    /// Protects the RTP packet that `buffer` ends with, from `at` on, and appends its tag.
    pub(super) fn seal_rtp(
        &self,
        (ssrc, index): (u32, u64),
        header_length: usize,
        buffer: &mut Vec<u8>,
        at: usize,
    ) -> Result<(), SrtpError> {
        match self {
            Self::Counter { key, salt, authentication, tag_length } => {
                counter(key, salt, (ssrc, index), &mut buffer[at + header_length..])?;
                let tag = rtp_tag(authentication, &buffer[at..], index);
                buffer.extend_from_slice(&tag.as_ref()[..*tag_length]);
            }
            Self::Gcm { key, salt } => {
                let (header, body) = buffer[at..].split_at_mut(header_length);
                let nonce = rtp_nonce(salt, ssrc, index);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&*header), body);
                buffer.extend_from_slice(tag.map_err(|_| SrtpError::Refused)?.as_ref());
            }
        }
        Ok(())
    }

    /// Opens an RTP packet in place; the length of what is in clear then, header included.
    pub(super) fn open_rtp(
        &self,
        (ssrc, index): (u32, u64),
        header_length: usize,
        packet: &mut [u8],
    ) -> Result<usize, SrtpError> {
        let too_short = SrtpError::TooShort(packet.len());
        match self {
            Self::Counter { key, salt, authentication, tag_length } => {
                let end = packet.len().checked_sub(*tag_length).filter(|end| *end >= header_length);
                let (packet, sent) = packet.split_at_mut(end.ok_or(too_short)?);
                verify(&rtp_tag(authentication, packet, index), sent)?;
                counter(key, salt, (ssrc, index), &mut packet[header_length..])?;
                Ok(packet.len())
            }
            Self::Gcm { key, salt } => {
                let (header, body) = packet.split_at_mut(header_length);
                if body.len() < GCM_TAG {
                    return Err(too_short);
                }
                let opened = key.open_in_place(rtp_nonce(salt, ssrc, index), Aad::from(&*header), body);
                opened.map(|body| header_length + body.len()).map_err(|_| SrtpError::Unauthentic)
            }
        }
    }

    /// Protects the compound RTCP packet that `buffer` ends with, from `at` on, and appends its tag and index.
    pub(super) fn seal_rtcp(
        &self,
        (ssrc, index): (u32, u32),
        buffer: &mut Vec<u8>,
        at: usize,
    ) -> Result<(), SrtpError> {
        let word = (ENCRYPTED | index).to_be_bytes();
        match self {
            Self::Counter { key, salt, authentication, tag_length } => {
                counter(key, salt, (ssrc, index.into()), &mut buffer[at + RTCP_HEADER..])?;
                buffer.extend(word);
                let tag = hmac::sign(authentication, &buffer[at..]);
                buffer.extend_from_slice(&tag.as_ref()[..*tag_length]);
            }
            Self::Gcm { key, salt } => {
                let (header, body) = buffer[at..].split_at_mut(RTCP_HEADER);
                let associated = rtcp_associated(header, word);
                let nonce = rtcp_nonce(salt, ssrc, index);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(associated), body);
                buffer.extend_from_slice(tag.map_err(|_| SrtpError::Refused)?.as_ref());
                buffer.extend(word);
            }
        }
        Ok(())
    }

    /// Where the index stands in a protected RTCP packet, and what it says.
    pub(super) fn rtcp_word(&self, packet: &[u8]) -> Option<u32> {
        let behind = match self {
            Self::Counter { tag_length, .. } => *tag_length,
            Self::Gcm { .. } => 0,
        };
        let least = RTCP_HEADER + 4 + if behind == 0 { GCM_TAG } else { behind };
        let end = packet.len().checked_sub(behind).filter(|_| packet.len() >= least)?;
        packet[..end].last_chunk().map(|word| u32::from_be_bytes(*word))
    }

    /// Opens a compound RTCP packet in place, of which [`Self::rtcp_word`] said that it is long enough; the length of
    /// what is in clear then.
    pub(super) fn open_rtcp(&self, ssrc: u32, word: u32, packet: &mut [u8]) -> Result<usize, SrtpError> {
        let (encrypted, index) = (word & ENCRYPTED != 0, word & !ENCRYPTED);
        match self {
            Self::Counter { key, salt, authentication, tag_length } => {
                let (packet, sent) = packet.split_at_mut(packet.len() - tag_length);
                verify(&hmac::sign(authentication, packet), sent)?;
                let end = packet.len() - 4;
                if encrypted {
                    counter(key, salt, (ssrc, index.into()), &mut packet[RTCP_HEADER..end])?;
                }
                Ok(end)
            }
            Self::Gcm { key, salt } => {
                let (nonce, end) = (rtcp_nonce(salt, ssrc, index), packet.len() - 4);
                let opened = if encrypted {
                    let (header, body) = packet[..end].split_at_mut(RTCP_HEADER);
                    let associated = rtcp_associated(header, word.to_be_bytes());
                    key.open_in_place(nonce, Aad::from(associated), body).map(|_| ())
                } else {
                    // All is associated data, and only the tag is left (RFC 7714 section 9.3). This is rare enough to
                    // make a copy.
                    let (clear, tag) = packet[..end].split_at_mut(end - GCM_TAG);
                    let associated = [&*clear, &word.to_be_bytes()].concat();
                    key.open_in_place(nonce, Aad::from(associated), tag).map(|_| ())
                };
                opened.map(|()| end - GCM_TAG).map_err(|_| SrtpError::Unauthentic)
            }
        }
    }
}

/// RFC 3711 section 4.1.1: salt · 2¹⁶ ⊕ SSRC · 2⁶⁴ ⊕ index · 2¹⁶.
fn counter(
    key: &EncryptingKey,
    salt: &[u8; 14],
    (ssrc, index): (u32, u64),
    bytes: &mut [u8],
) -> Result<(), SrtpError> {
    let mut padded = [0; 16];
    padded[..14].copy_from_slice(salt);
    let counter = u128::from_be_bytes(padded) ^ u128::from(ssrc) << 64 ^ u128::from(index) << 16;
    let context = EncryptionContext::Iv128(counter.to_be_bytes().into());
    key.less_safe_encrypt(bytes, context).map(|_| ()).map_err(|_| SrtpError::Refused)
}

/// Section 4.2: over the packet and the roll-over counter.
fn rtp_tag(key: &hmac::Key, packet: &[u8], index: u64) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    context.update(packet);
    context.update(&((index >> 16) as u32).to_be_bytes());
    context.sign()
}

fn verify(tag: &hmac::Tag, sent: &[u8]) -> Result<(), SrtpError> {
    verify_slices_are_equal(&tag.as_ref()[..sent.len()], sent).map_err(|_| SrtpError::Unauthentic)
}

/// RFC 7714 section 8.1: two zero bytes, SSRC, roll-over counter, sequence number, ⊕ salt.
fn rtp_nonce(salt: &[u8; 12], ssrc: u32, index: u64) -> Nonce {
    nonce(salt, u128::from(ssrc) << 48 | u128::from(index & 0xFFFF_FFFF_FFFF))
}

/// Section 9.1: two zero bytes, SSRC, two zero bytes, index, ⊕ salt.
fn rtcp_nonce(salt: &[u8; 12], ssrc: u32, index: u32) -> Nonce {
    nonce(salt, u128::from(ssrc) << 48 | u128::from(index))
}

fn nonce(salt: &[u8; 12], value: u128) -> Nonce {
    let mut bytes = *salt;
    for (byte, other) in bytes.iter_mut().zip(&value.to_be_bytes()[4..]) {
        *byte ^= other;
    }
    Nonce::assume_unique_for_key(bytes)
}

/// Section 9.2: the packet's first eight bytes and the word with its index.
fn rtcp_associated(header: &[u8], word: [u8; 4]) -> [u8; 12] {
    let mut associated = [0; 12];
    associated[..8].copy_from_slice(&header[..8]);
    associated[8..].copy_from_slice(&word);
    associated
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn hex(text: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    const RTP: &str = "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064697669736120696e2070617274\
        65732074726573";
    const RTCP: &str = "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeef\
        deadbeefdeadbeef";

    /// RFC 7714 section 16 and 17 give session keys: a key whose bytes count up, and one salt.
    fn gcm(profile: Profile, protocol: Protocol) -> Cipher {
        let keys = SessionKeys {
            encryption: (0..profile.key_length() as u8).collect(),
            authentication: [0; 20],
            salt: hex("517569642070726f2071756f"),
        };
        Cipher::from_session_keys(profile, protocol, &keys).unwrap()
    }

    /// RFC 7714 sections 16.1.1 and 16.2.1.
    #[test]
    fn rtp_in_gcm_is_that_of_the_standards_vectors() {
        for (profile, expected) in [
            (
                Profile::AeadAes128Gcm,
                "f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27\
                 beb16a9152cf765ee4390cce",
            ),
            (
                Profile::AeadAes256Gcm,
                "32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36\
                 dfffd6b0f9bb7878d7a76c13",
            ),
        ] {
            let cipher = gcm(profile, Protocol::Rtp);
            let mut packet = hex(RTP);
            cipher.seal_rtp((0x5501_A0B2, 0xF17B), 12, &mut packet, 0).unwrap();
            assert_eq!((&packet[..12], &packet[12..]), (&hex(RTP)[..12], &hex(expected)[..]));
            let length = cipher.open_rtp((0x5501_A0B2, 0xF17B), 12, &mut packet).unwrap();
            assert_eq!(packet[..length], hex(RTP));
        }
    }

    /// RFC 7714 sections 17.1 and 17.2.
    #[test]
    fn rtcp_in_gcm_is_that_of_the_standards_vectors() {
        for (profile, expected) in [
            (
                Profile::AeadAes128Gcm,
                "63e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9\
                 275bc84aa45896cf4d2fc5abf87245d9eade800005d4",
            ),
            (
                Profile::AeadAes256Gcm,
                "d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658c61de0476f1b\
                 6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4",
            ),
        ] {
            let cipher = gcm(profile, Protocol::Rtcp);
            let mut packet = hex(RTCP);
            cipher.seal_rtcp((0x4D61_7273, 0x5D4), &mut packet, 0).unwrap();
            assert_eq!((&packet[..8], &packet[8..]), (&hex(RTCP)[..8], &hex(expected)[..]));
            let word = cipher.rtcp_word(&packet).unwrap();
            assert_eq!(word, ENCRYPTED | 0x5D4);
            let length = cipher.open_rtcp(0x4D61_7273, word, &mut packet).unwrap();
            assert_eq!(packet[..length], hex(RTCP));
        }
    }

    /// RFC 7714 section 17.3.
    #[test]
    fn rtcp_that_is_only_authenticated_is_opened() {
        let cipher = gcm(Profile::AeadAes128Gcm, Protocol::Rtcp);
        let mut packet = hex(RTCP);
        packet.extend(hex("841dd9683dd78ec92ae58790125f62b3000005d4"));
        let length = cipher.open_rtcp(0x4D61_7273, 0x5D4, &mut packet).unwrap();
        assert_eq!(packet[..length], hex(RTCP));
    }
}
