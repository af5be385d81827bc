//! How a witness reads what is under way: as it comes, or decrypted.

use crate::hls::decryption::Decryption;

/// How a witness reads what is under way.
#[derive(Default)]
pub(super) enum Reading {
    /// As it comes.
    #[default]
    Clear,
    /// Decrypted.
    Encrypted(Box<Decryption>),
    /// Encrypted, and not read.
    Opaque,
}

impl Reading {
    /// What can be read of the next piece.
    pub(super) fn readable<'a>(&'a mut self, piece: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Clear => piece,
            Self::Encrypted(decryption) => decryption.take(piece),
            Self::Opaque => &[],
        }
    }
}
