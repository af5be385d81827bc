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
    /// Encrypted, of a segment that is not known yet: what has come of it.
    Kept(Vec<u8>),
    /// Encrypted, and not read.
    Opaque,
}

impl Reading {
    /// What of a whole that was encrypted is clear at its end only.
    pub(super) fn last(&mut self) -> Option<&[u8]> {
        match self {
            Self::Encrypted(decryption) => decryption.finish(),
            _ => None,
        }
    }

    /// What can be read of the next piece.
    pub(super) fn readable<'a>(&'a mut self, piece: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Clear => piece,
            Self::Encrypted(decryption) => decryption.take(piece),
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
