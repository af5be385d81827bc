//! A body, taken out of its transfer coding as it comes (RFC 9112, sections 6.3 and 7.1).
//!
//! Payload is handed out as slices of what came; nothing is copied, and what surrounds it is bounded.

use crate::HttpError;
use std::io::Write as _;

/// What stands behind a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";
/// The end of a body in chunks, without a trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The longest line with a chunk's size and extensions.
const LONGEST_SIZE_LINE: usize = 1_024;
/// The longest trailer section.
const LONGEST_TRAILER: usize = 8 * 1_024;
/// How many bytes of a malformed line an error shows.
const SHOWN: usize = 25;

/// Appends what stands before a chunk of `length` bytes, at least one; [`CHUNK_END`] stands behind them.
pub fn begin_chunk(length: usize, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, "{length:X}\r\n");
}

/// How the end of a body is recognised, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes are still to come.
    Length(u64),
    /// Chunks say.
    Chunked(Chunks),
    /// It ends with the link.
    UntilClose,
    /// It has ended, as it had been announced.
    Over,
}

/// Where in the chunked transfer coding the next byte stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Data of the present chunk that is still to come.
    left: u64,
    next: Next,
    /// What has come of the line that is no data.
    line: Vec<u8>,
    /// Bytes of the trailer section.
    trailer: usize,
}

/// The line that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// A chunk's size, with extensions, which are ignored.
    #[default]
    Size,
    /// The end of a chunk's data.
    End,
    /// One of the trailer section, which an empty one ends.
    Trailer,
}

impl Body {
    /// A body of this length.
    pub(crate) fn of_length(length: u64) -> Self {
        if length == 0 { Self::Over } else { Self::Length(length) }
    }

    /// A body in chunks.
    pub(crate) fn chunked() -> Self {
        Self::Chunked(Chunks::default())
    }

    /// Takes the next piece of payload off the front of `bytes`; `None` when they are used up, or the body has ended.
    pub(crate) fn take<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, HttpError> {
        while !bytes.is_empty() {
            match self {
                Self::Over => break,
                Self::UntilClose => return Ok(Some(std::mem::take(bytes))),
                Self::Length(left) => {
                    let piece = cut(bytes, *left);
                    *self = Self::of_length(*left - piece.len() as u64);
                    return Ok(Some(piece));
                }
                Self::Chunked(chunks) if chunks.left > 0 => {
                    let piece = cut(bytes, chunks.left);
                    chunks.left -= piece.len() as u64;
                    return Ok(Some(piece));
                }
                Self::Chunked(chunks) => {
                    if chunks.is_over(cut(bytes, 1)[0])? {
                        *self = Self::Over;
                    }
                }
            }
        }
        Ok(None)
    }
}

impl Chunks {
    /// Takes a byte that is no data, and says whether it is the last.
    fn is_over(&mut self, byte: u8) -> Result<bool, HttpError> {
        self.line.push(byte);
        let longest =
            if self.next == Next::Trailer { LONGEST_TRAILER - self.trailer } else { LONGEST_SIZE_LINE };
        // A line without digits would have the size 0 to some: they would find the end of the body elsewhere.
        if self.next == Next::Size && !self.line[0].is_ascii_hexdigit() {
            return Err(HttpError::NoChunkSize(byte));
        }
        let is_end = self.next != Next::End || CHUNK_END.starts_with(&self.line);
        if !is_end || self.line.len() > longest || byte == b'\n' && !self.line.ends_with(CHUNK_END) {
            return Err(self.malformed());
        }
        if byte != b'\n' {
            return Ok(false);
        }
        match self.next {
            Next::Size => match httparse::parse_chunk_size(&self.line) {
                Ok(httparse::Status::Complete((_, 0))) => self.next = Next::Trailer,
                Ok(httparse::Status::Complete((_, size))) => (self.left, self.next) = (size, Next::End),
                Ok(httparse::Status::Partial) | Err(_) => return Err(self.malformed()),
            },
            Next::End => self.next = Next::Size,
            Next::Trailer if self.line == CHUNK_END => return Ok(true),
            Next::Trailer => self.trailer += self.line.len(),
        }
        self.line.clear();
        Ok(false)
    }

    fn malformed(&self) -> HttpError {
        HttpError::Chunk(
            self.line.iter().take(SHOWN).copied().collect::<Vec<u8>>().escape_ascii().to_string(),
        )
    }
}

/// Cuts at most `most` bytes off the front.
fn cut<'a>(bytes: &mut &'a [u8], most: u64) -> &'a [u8] {
    let at = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
    let (piece, rest) = bytes.split_at(at);
    *bytes = rest;
    piece
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a body brings when it comes in these pieces, and how far it came.
    fn decode<'a>(
        mut body: Body,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(Vec<u8>, Body, usize), HttpError> {
        let mut payload = Vec::new();
        let mut left = 0;
        for mut piece in pieces {
            while let Some(slice) = body.take(&mut piece)? {
                payload.extend_from_slice(slice);
            }
            left += piece.len();
        }
        Ok((payload, body, left))
    }

    fn chunked(bytes: &[u8]) -> Result<(Vec<u8>, Body, usize), HttpError> {
        decode(Body::chunked(), [bytes])
    }

    /// The bytes in pieces that end at these places.
    fn split<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }

    proptest! {
        #[test]
        fn any_split_of_a_chunked_body_decodes_the_same(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..20),
            extension in prop::sample::select(vec!["", ";a", " ;name=\"value\"", "\t"]),
            trailer in prop::sample::select(vec!["", "Expires: never\r\n", "A: b\r\nC: d\r\n"]),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let mut wire = Vec::new();
            for (number, chunk) in chunks.iter().enumerate() {
                match number % 3 {
                    0 => begin_chunk(chunk.len(), &mut wire),
                    1 => wire.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes()),
                    _ => wire.extend(format!("{:05X}{extension}\r\n", chunk.len()).bytes()),
                }
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(CHUNK_END);
            }
            let end = if trailer.is_empty() { LAST_CHUNK.to_vec() } else { format!("0\r\n{trailer}\r\n").into_bytes() };
            wire.extend([&end[..], b"rest"].concat());
            let (payload, body, left) = decode(Body::chunked(), split(&wire, &cuts)).unwrap();
            prop_assert_eq!(payload, chunks.concat());
            prop_assert_eq!((body, left), (Body::Over, 4), "what stands behind the body is left");
        }

        #[test]
        fn any_split_of_anything_has_the_same_outcome(
            wire in prop::collection::vec(
                prop::sample::select(b"0123aF;\r\n x".to_vec()), 0..80),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let whole = chunked(&wire);
            let pieces = decode(Body::chunked(), split(&wire, &cuts));
            prop_assert_eq!(whole, pieces);
        }

        #[test]
        fn a_length_is_kept_to(length in 1u64..500, wire in prop::collection::vec(any::<u8>(), 0..600)) {
            let (payload, body, left) = decode(Body::Length(length), [&wire[..]]).unwrap();
            let expected = wire.len().min(length as usize);
            prop_assert_eq!(&payload[..], &wire[..expected]);
            prop_assert_eq!(left, wire.len() - expected);
            prop_assert_eq!(body == Body::Over, payload.len() as u64 == length);
        }
    }

    #[test]
    fn a_coding_that_is_none_is_told_from_one() {
        for (wire, shown) in [
            (&b"5x\r\n"[..], "5x\\r\\n"),
            (b"5 5\r\n", "5 5\\r\\n"),
            (b"5\n", "5\\n"),
            (b"5\rx\r\n", "5\\rx\\r\\n"),
            (b"5;a\n", "5;a\\n"),
            (b"1\r\nab", "b"),
            (b"1\r\na\rb", "\\rb"),
            (b"0\r\nA: b\n", "A: b\\n"),
            (b"fffffffffffffffff\r\n", "fffffffffffffffff\\r\\n"),
        ] {
            assert_eq!(chunked(wire), Err(HttpError::Chunk(shown.to_owned())));
        }
        for byte in *b"\r\nG-; " {
            assert_eq!(chunked(&[byte]), Err(HttpError::NoChunkSize(byte)));
            assert_eq!(chunked(&[b"1\r\na\r\n", &[byte][..]].concat()), Err(HttpError::NoChunkSize(byte)));
        }
    }

    #[test]
    fn extensions_and_trailers_without_end_are_cut_off() {
        let long = |front: &[u8], more: &[u8]| chunked(&[front, &more.repeat(3_000)].concat());
        assert!(matches!(long(b"5;", b"a"), Err(HttpError::Chunk(shown)) if shown.starts_with("5;aaa")));
        assert!(matches!(long(b"0\r\n", b"A: b\r\n"), Err(HttpError::Chunk(_))));
        assert!(matches!(long(b"0\r\nA: ", b"bbb"), Err(HttpError::Chunk(_))));
    }
}
