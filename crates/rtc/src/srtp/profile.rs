//! The protection profiles of WebRTC.

/// What packets are protected with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// AES-128 in counter mode, HMAC-SHA1 with tags of 80 bits (RFC 5764 section 4.1.2).
    Aes128CmHmacSha1_80,
    /// The same with tags of 32 bits in RTP; those of RTCP have 80.
    Aes128CmHmacSha1_32,
    /// AES-128-GCM with tags of 128 bits (RFC 7714 section 14.2).
    AeadAes128Gcm,
    /// AES-256-GCM with tags of 128 bits.
    AeadAes256Gcm,
}

impl Profile {
    /// All of them, the best first.
    pub const ALL: [Self; 4] =
        [Self::AeadAes128Gcm, Self::AeadAes256Gcm, Self::Aes128CmHmacSha1_80, Self::Aes128CmHmacSha1_32];

    /// The identifier in the DTLS extension `use_srtp`.
    pub fn identifier(self) -> u16 {
        match self {
            Self::Aes128CmHmacSha1_80 => 1,
            Self::Aes128CmHmacSha1_32 => 2,
            Self::AeadAes128Gcm => 7,
            Self::AeadAes256Gcm => 8,
        }
    }

    /// The length of a master key in bytes.
    pub fn key_length(self) -> usize {
        match self {
            Self::AeadAes256Gcm => 32,
            _ => 16,
        }
    }

    /// The length of a master salt in bytes.
    pub fn salt_length(self) -> usize {
        if self.is_gcm() { 12 } else { 14 }
    }

    /// How many bytes an RTP packet grows by.
    pub fn rtp_overhead(self) -> usize {
        match self {
            Self::Aes128CmHmacSha1_80 => 10,
            Self::Aes128CmHmacSha1_32 => 4,
            Self::AeadAes128Gcm | Self::AeadAes256Gcm => 16,
        }
    }

    pub(super) fn is_gcm(self) -> bool {
        matches!(self, Self::AeadAes128Gcm | Self::AeadAes256Gcm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_the_registry() {
        for (identifier, profile) in [
            (1, Profile::Aes128CmHmacSha1_80),
            (2, Profile::Aes128CmHmacSha1_32),
            (7, Profile::AeadAes128Gcm),
            (8, Profile::AeadAes256Gcm),
        ] {
            assert_eq!(profile.identifier(), identifier);
        }
    }
}
