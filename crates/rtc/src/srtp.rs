//! SRTP and SRTCP (RFC 3711), with AES-GCM (RFC 7714) and AES in counter mode with HMAC-SHA1: packets are protected and
//! opened in place, in the caller's buffer.
//!
//! [`Outbound`] and [`Inbound`] are the two directions of one transport, keyed by what DTLS exports
//! ([`KeyingMaterial`], RFC 5764 section 4.2). No key is ever printed. Streams are distinguished by their SSRCs and come
//! into being with their first packet, inbound ones only after it proved authentic.

mod cipher;
mod derivation;
mod inbound;
mod keying;
mod outbound;
mod profile;
mod window;

pub use inbound::{Inbound, MAX_STREAMS};
pub use keying::{KeyingMaterial, MasterKey};
pub use outbound::Outbound;
pub use profile::Profile;

use crate::rtp::HeaderError;

/// Why a packet was neither protected nor opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SrtpError {
    /// It is no RTP packet.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// It ends before its authentication tag does, or is no RTCP packet.
    #[error("the packet is too short for SRTP: {0} bytes")]
    TooShort(usize),
    /// It came before, or something that looks like it did.
    #[error("the packet was received before")]
    Replayed,
    /// It is so far behind the newest that the replay window no longer covers it.
    #[error("the packet is too old")]
    TooOld,
    /// Its tag is not what the keys make of it: it was changed, or the sender has other keys.
    #[error("the packet is not authentic: changed on its way, or protected with other keys")]
    Unauthentic,
    /// More sources than any session has.
    #[error("over {MAX_STREAMS} sources in one transport")]
    TooManyStreams,
    /// 2³¹ RTCP or 2⁴⁸ RTP packets were sent (RFC 3711 section 9.2); negotiate new keys.
    #[error("the keys are used up")]
    Exhausted,
    /// Key and salt are not as long as the profile has them.
    #[error("keys of {key} bytes and salt of {salt} do not fit the profile")]
    KeyLength {
        /// Length of the key.
        key: usize,
        /// Length of the salt.
        salt: usize,
    },
    /// The library refused; it does so for packets over 64 GB only.
    #[error("the cryptographic library refused the packet")]
    Refused,
}
