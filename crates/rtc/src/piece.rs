//! A part of a unit as a payload has it, whatever the codec.

/// A part of a unit: of a NAL unit, of an OBU, or of a frame of VP8 and VP9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The unit begins with it.
    pub(crate) start: bool,
    /// The unit ends with it.
    pub(crate) end: bool,
    /// The first bytes of a unit that are not in `bytes`, because its payload has another form of them.
    pub(crate) header: Header,
    /// The rest.
    pub(crate) bytes: &'a [u8],
}

/// Up to two bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    bytes: [u8; 2],
    length: u8,
}

impl Header {
    pub(crate) const NONE: Self = Self { bytes: [0; 2], length: 0 };

    pub(crate) fn one(byte: u8) -> Self {
        Self { bytes: [byte, 0], length: 1 }
    }

    pub(crate) fn two(bytes: [u8; 2]) -> Self {
        Self { bytes, length: 2 }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length.into()]
    }
}

impl<'a> Piece<'a> {
    /// A unit that is whole.
    pub(crate) fn whole(bytes: &'a [u8]) -> Self {
        Self { start: true, end: true, header: Header::NONE, bytes }
    }
}

/// The payload ends inside of one of its headers, or is of a form that its standard does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("the payload is cut short, or of no known form")]
pub(crate) struct Unreadable;
