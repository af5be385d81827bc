//! The keys of both directions, as DTLS exports them. They are never printed.

use std::fmt;

use super::{Profile, SrtpError};

/// A master key and its salt.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    pub(super) profile: Profile,
    pub(super) key: Vec<u8>,
    pub(super) salt: Vec<u8>,
}

impl MasterKey {
    /// A key of a profile.
    ///
    /// # Errors
    ///
    /// When key or salt are not as long as the profile has them.
    pub fn new(profile: Profile, key: &[u8], salt: &[u8]) -> Result<Self, SrtpError> {
        if (key.len(), salt.len()) != (profile.key_length(), profile.salt_length()) {
            return Err(SrtpError::KeyLength { key: key.len(), salt: salt.len() });
        }
        Ok(Self { profile, key: key.to_vec(), salt: salt.to_vec() })
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MasterKey").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// What a DTLS association exports for SRTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyingMaterial {
    /// The key that the DTLS client sends with.
    pub client: MasterKey,
    /// The key that the DTLS server sends with.
    pub server: MasterKey,
}

impl KeyingMaterial {
    /// How many bytes to export.
    pub fn length(profile: Profile) -> usize {
        2 * (profile.key_length() + profile.salt_length())
    }

    /// Takes exported material apart: both keys, then both salts, the client's first.
    ///
    /// # Errors
    ///
    /// When the material is not as long as [`Self::length`] says.
    pub fn split(profile: Profile, material: &[u8]) -> Result<Self, SrtpError> {
        let (key, salt) = (profile.key_length(), profile.salt_length());
        if material.len() != Self::length(profile) {
            return Err(SrtpError::KeyLength { key: material.len(), salt: 0 });
        }
        let (keys, salts) = material.split_at(2 * key);
        Ok(Self {
            client: MasterKey::new(profile, &keys[..key], &salts[..salt])?,
            server: MasterKey::new(profile, &keys[key..], &salts[salt..])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_keys_come_first_and_then_both_salts() {
        for profile in Profile::ALL {
            let material: Vec<u8> = (0..KeyingMaterial::length(profile) as u8).collect();
            let keys = KeyingMaterial::split(profile, &material).unwrap();
            let whole = [keys.client.key, keys.server.key, keys.client.salt, keys.server.salt].concat();
            assert_eq!(whole, material);
            assert!(KeyingMaterial::split(profile, &material[1..]).is_err());
        }
    }

    #[test]
    fn a_key_is_not_printed() {
        let key = MasterKey::new(Profile::AeadAes128Gcm, &[77; 16], &[78; 12]).unwrap();
        assert_eq!(format!("{key:?}"), "MasterKey { profile: AeadAes128Gcm, .. }");
    }
}
