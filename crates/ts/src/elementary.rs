//! The bytes of elementary streams, kept from one call to the next for a caller that reads them.

use crate::stream_type::Codec;

/// Which elementary streams a caller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementaryStreams {
    /// Those whose first bytes say whether decoding can begin: what decoding a program depends on, and sound whose
    /// configuration is sent now and then.
    Beginnings,
    /// All pictures and sound.
    All,
}

/// A part of an elementary stream, as one packet brought it: in clear, and each only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementaryPiece<'a> {
    /// Its PID.
    pub pid: u16,
    /// What it is.
    pub codec: Codec,
    /// Decoding a program depends on this stream.
    pub needed: bool,
    /// A PES packet begins here.
    pub start: bool,
    /// The stream says here, or shows with its first bytes, that decoding can begin.
    pub random_access: bool,
    /// When the unit that begins here is shown and when it is decoded, if that is said: 90 kHz ticks of 33 bits.
    pub times: Option<(u64, u64)>,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// What came since it was last taken.
#[derive(Debug)]
pub(crate) struct Tap {
    pub(crate) streams: ElementaryStreams,
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    pid: u16,
    codec: Codec,
    needed: bool,
    start: bool,
    random_access: bool,
    times: Option<(u64, u64)>,
    /// Where it ends in `bytes`.
    end: usize,
}

impl Tap {
    pub(crate) fn new(streams: ElementaryStreams) -> Self {
        Self { streams, bytes: Vec::new(), pieces: Vec::new() }
    }

    pub(crate) fn push(&mut self, piece: &ElementaryPiece<'_>) {
        let ElementaryPiece { pid, codec, needed, start, random_access, times, bytes } = *piece;
        self.bytes.extend_from_slice(bytes);
        self.pieces.push(Piece { pid, codec, needed, start, random_access, times, end: self.bytes.len() });
    }

    pub(crate) fn take(&mut self, mut each: impl FnMut(ElementaryPiece<'_>)) {
        let mut begin = 0;
        for Piece { pid, codec, needed, start, random_access, times, end } in self.pieces.drain(..) {
            let bytes = &self.bytes[begin..end];
            each(ElementaryPiece { pid, codec, needed, start, random_access, times, bytes });
            begin = end;
        }
        self.bytes.clear();
    }

    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}
