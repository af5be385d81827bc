//! How a witness reads what is under way: as it comes, decrypted, or kept until it is known how.

use crate::hls::decryption::Decryption;

/// The longest part that is kept: half a second of 60 Mbit/s. Of one that is longer nothing is read.
const LONGEST_KEPT: usize = 4 << 20;

/// How a witness reads what is under way.
#[derive(Default)]
pub(super) enum Reading {
    /// As it comes.
    #[default]
    Clear,
    /// Decrypted.
    Encrypted(Box<Decryption>),
    /// The first part of an encrypted segment, of which it is a range: decrypted as if it were encrypted alone, which its padding shows.
    FirstRange(Box<Decryption>),
    /// Encrypted, of a segment that is not known yet: what has come of it.
    Kept(Vec<u8>),
    /// Encrypted, and not read.
    Opaque,
}

impl Reading {
    /// What can be read of the next piece.
    pub(super) fn readable<'a>(&'a mut self, piece: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Clear => piece,
            Self::Encrypted(decryption) | Self::FirstRange(decryption) => decryption.take(piece),
            Self::Kept(bytes) if bytes.len() + piece.len() > LONGEST_KEPT => {
                *self = Self::Opaque;
                &[]
            }
            Self::Kept(bytes) => {
                bytes.extend_from_slice(piece);
                &[]
            }
            Self::Opaque => &[],
        }
    }
}
