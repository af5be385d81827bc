//! Session keys out of a master key (RFC 3711 section 4.3; RFC 7714 section 11).

use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};

use super::{MasterKey, SrtpError};

/// Labels (RFC 3711 sections 4.3.1 and 4.3.2); those of RTCP are three higher.
const ENCRYPTION: u8 = 0;
const AUTHENTICATION: u8 = 1;
const SALT: u8 = 2;

/// Which protocol keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Rtp,
    Rtcp,
}

/// The keys of one protocol in one direction.
pub(super) struct SessionKeys {
    pub(super) encryption: Vec<u8>,
    /// HMAC-SHA1's, 160 bits (section 8.2); unused in GCM.
    pub(super) authentication: [u8; 20],
    /// As long as the master salt.
    pub(super) salt: Vec<u8>,
}

impl SessionKeys {
    pub(super) fn derive(master: &MasterKey, protocol: Protocol) -> Result<Self, SrtpError> {
        let first = if protocol == Protocol::Rtp { 0 } else { 3 };
        let mut keys = Self {
            encryption: vec![0; master.profile.key_length()],
            authentication: [0; 20],
            salt: vec![0; master.profile.salt_length()],
        };
        fill(master, first + ENCRYPTION, &mut keys.encryption)?;
        fill(master, first + AUTHENTICATION, &mut keys.authentication)?;
        fill(master, first + SALT, &mut keys.salt)?;
        Ok(keys)
    }
}

/// AES in counter mode over zeros (section 4.3.3). The key derivation rate is 0, as WebRTC has it, so that the label is
/// all of `key_id`; a salt of 96 bits is followed by 16 zero bits.
fn fill(master: &MasterKey, label: u8, out: &mut [u8]) -> Result<(), SrtpError> {
    let mut counter = [0; 16];
    counter[..master.salt.len()].copy_from_slice(&master.salt);
    counter[7] ^= label;
    out.fill(0);
    counter_key(&master.key)?
        .less_safe_encrypt(out, EncryptionContext::Iv128(counter.into()))
        .map_err(|_| SrtpError::Refused)?;
    Ok(())
}

/// A key for AES in counter mode.
pub(super) fn counter_key(key: &[u8]) -> Result<EncryptingKey, SrtpError> {
    let algorithm = if key.len() == 32 { &AES_256 } else { &AES_128 };
    UnboundCipherKey::new(algorithm, key).and_then(EncryptingKey::ctr).map_err(|_| SrtpError::Refused)
}

#[cfg(test)]
mod tests {
    use super::super::Profile;
    use super::super::cipher::tests::hex;
    use super::*;

    /// RFC 3711 appendix B.3.
    #[test]
    fn keys_are_those_of_the_standards_vectors() {
        let key = hex("e1f97a0d3e018be0d64fa32c06de4139");
        let salt = hex("0ec675ad498afeebb6960b3aabe6");
        let master = MasterKey::new(Profile::Aes128CmHmacSha1_80, &key, &salt).unwrap();
        let keys = SessionKeys::derive(&master, Protocol::Rtp).unwrap();
        assert_eq!(keys.encryption, hex("c61e7a93744f39ee10734afe3ff7a087"));
        assert_eq!(keys.salt, hex("30cbbc08863d8c85d49db34a9ae1"));
        assert_eq!(keys.authentication[..], hex("cebe321f6ff7716b6fd4ab49af256a156d38baa4"));
    }

    /// RFC 3711 appendix B.2.
    #[test]
    fn the_key_stream_is_that_of_the_standards_vectors() {
        let key = counter_key(&hex("2b7e151628aed2a6abf7158809cf4f3c")).unwrap();
        let counter: [u8; 16] = hex("f0f1f2f3f4f5f6f7f8f9fafbfcfd0000").try_into().unwrap();
        let mut stream = [0; 32];
        key.less_safe_encrypt(&mut stream, EncryptionContext::Iv128(counter.into())).unwrap();
        let expected = "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab";
        assert_eq!(stream[..], hex(expected));
    }
}
