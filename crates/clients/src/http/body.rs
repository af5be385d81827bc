//! The body of a response, taken out of its transfer coding as it comes (RFC 9112, sections 6.3 and 7.1).
//!
//! Payload is handed out as slices of what came; nothing is copied, and what surrounds it is bounded.

/// The longest line with a chunk's size and extensions.
const LONGEST_SIZE_LINE: u16 = 1_024;
/// The longest trailer section.
const LONGEST_TRAILER: u16 = 8 * 1_024;
/// The most digits of a chunk's size: 60 bits.
const MOST_DIGITS: u8 = 15;

/// How the end of a body is told, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// So many bytes are still to come.
    Length(u64),
    /// Chunks say.
    Chunked(Chunks),
    /// It ends with the link.
    UntilClose,
    /// It has ended, as it had been announced.
    Over,
}

/// Where in the chunked transfer coding the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunks {
    /// In a chunk's size, of which so many digits have come.
    Size { digits: u8, size: u64 },
    /// Behind the size, in extensions that nobody reads.
    Extension { size: u64, length: u16 },
    /// Before the line feed that ends the size.
    SizeEnd { size: u64 },
    /// In a chunk's data.
    Data { left: u64 },
    /// Before the carriage return behind the data.
    DataReturn,
    /// Before the line feed behind the data.
    DataEnd,
    /// In the trailer section: so many bytes of it, and of its present line.
    Trailer { length: u16, line: u16 },
    /// Before the line feed that ends everything, or a line of the trailer section.
    TrailerEnd { length: u16, line: u16 },
}

/// A transfer coding that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("a chunk begins with byte 0x{0:02x}, not with its size")]
    NoSize(u8),
    #[error("a chunk has a size of more than 60 bits")]
    TooLarge,
    #[error("a chunk's extensions, or the trailer section, are longer than any server needs")]
    TooLong,
    #[error("a line of the chunked coding ends with byte 0x{0:02x}")]
    NoLineEnd(u8),
    #[error("a chunk's data goes on behind its size")]
    NoEnd,
}

impl Chunks {
    /// Before the first chunk.
    pub(crate) const START: Self = Self::Size { digits: 0, size: 0 };
}

impl Body {
    /// Takes the next piece of payload off the front of `bytes`; `None` when they are used up, or the body has ended.
    pub(crate) fn take<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, BodyError> {
        loop {
            if bytes.is_empty() {
                return Ok(None);
            }
            match self {
                Self::Over => return Ok(None),
                Self::UntilClose => return Ok(Some(std::mem::take(bytes))),
                Self::Length(left) => {
                    let piece = cut(bytes, *left);
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        *self = Self::Over;
                    }
                    return Ok(Some(piece));
                }
                Self::Chunked(Chunks::Data { left }) => {
                    let piece = cut(bytes, *left);
                    *left -= piece.len() as u64;
                    if *left == 0 {
                        *self = Self::Chunked(Chunks::DataReturn);
                    }
                    return Ok(Some(piece));
                }
                Self::Chunked(chunks) => {
                    let byte = cut(bytes, 1)[0];
                    match chunks.step(byte)? {
                        Some(next) => *chunks = next,
                        None => *self = Self::Over,
                    }
                }
            }
        }
    }
}

impl Chunks {
    /// Where the coding stands behind a byte that is no data; `None` behind its last.
    fn step(self, byte: u8) -> Result<Option<Self>, BodyError> {
        Ok(Some(match self {
            Self::Size { digits, size } => match (byte as char).to_digit(16) {
                Some(_) if digits == MOST_DIGITS => return Err(BodyError::TooLarge),
                Some(digit) => Self::Size { digits: digits + 1, size: size << 4 | u64::from(digit) },
                None if digits == 0 => return Err(BodyError::NoSize(byte)),
                None => Self::Extension { size, length: 0 }.extension(byte)?,
            },
            Self::Extension { .. } => self.extension(byte)?,
            Self::SizeEnd { size } => match (byte, size) {
                (b'\n', 0) => Self::Trailer { length: 0, line: 0 },
                (b'\n', _) => Self::Data { left: size },
                _ => return Err(BodyError::NoLineEnd(byte)),
            },
            Self::Data { left } => Self::Data { left },
            Self::DataReturn if byte == b'\r' => Self::DataEnd,
            Self::DataEnd if byte == b'\n' => Self::START,
            Self::DataReturn | Self::DataEnd => return Err(BodyError::NoEnd),
            Self::Trailer { length: LONGEST_TRAILER, .. } => return Err(BodyError::TooLong),
            Self::Trailer { length, line } if byte == b'\r' => Self::TrailerEnd { length: length + 1, line },
            Self::Trailer { .. } if byte == b'\n' => return Err(BodyError::NoLineEnd(byte)),
            Self::Trailer { length, line } => Self::Trailer { length: length + 1, line: line + 1 },
            Self::TrailerEnd { .. } if byte != b'\n' => return Err(BodyError::NoLineEnd(byte)),
            Self::TrailerEnd { line: 0, .. } => return Ok(None),
            Self::TrailerEnd { length, .. } => Self::Trailer { length, line: 0 },
        }))
    }

    /// A byte behind the size: white space and extensions up to the line's end. A bare line feed is none.
    fn extension(self, byte: u8) -> Result<Self, BodyError> {
        let Self::Extension { size, length } = self else { return Ok(self) };
        match byte {
            b'\r' => Ok(Self::SizeEnd { size }),
            b'\n' => Err(BodyError::NoLineEnd(byte)),
            b';' | b' ' | b'\t' => self.longer(),
            _ if length > 0 => self.longer(),
            _ => Err(BodyError::NoSize(byte)),
        }
    }

    fn longer(self) -> Result<Self, BodyError> {
        match self {
            Self::Extension { size, length } if length < LONGEST_SIZE_LINE => {
                Ok(Self::Extension { size, length: length + 1 })
            }
            _ => Err(BodyError::TooLong),
        }
    }
}

/// Cuts at most so many bytes off the front.
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
    ) -> Result<(Vec<u8>, Body, usize), BodyError> {
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

    fn chunked(bytes: &[u8]) -> Result<(Vec<u8>, Body, usize), BodyError> {
        decode(Body::Chunked(Chunks::START), [bytes])
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
                let size = if number % 2 == 0 { format!("{:x}", chunk.len()) } else { format!("{:05X}", chunk.len()) };
                wire.extend_from_slice(format!("{size}{extension}\r\n").as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(format!("0\r\n{trailer}\r\nrest").as_bytes());
            let (payload, body, left) = decode(Body::Chunked(Chunks::START), split(&wire, &cuts)).unwrap();
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
            let pieces = decode(Body::Chunked(Chunks::START), split(&wire, &cuts));
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
        for (wire, expected) in [
            (&b"\r\n"[..], BodyError::NoSize(b'\r')),
            (b"G\r\n", BodyError::NoSize(b'G')),
            (b"-1\r\n", BodyError::NoSize(b'-')),
            (b"5x\r\n", BodyError::NoSize(b'x')),
            (b"5\n", BodyError::NoLineEnd(b'\n')),
            (b"5\rx", BodyError::NoLineEnd(b'x')),
            (b"5;a\n", BodyError::NoLineEnd(b'\n')),
            (b"1\r\nab", BodyError::NoEnd),
            (b"1\r\na\rb", BodyError::NoEnd),
            (b"0\r\nA: b\n", BodyError::NoLineEnd(b'\n')),
            (b"fffffffffffffffff\r\n", BodyError::TooLarge),
        ] {
            assert_eq!(chunked(wire), Err(expected), "{}", String::from_utf8_lossy(wire));
        }
    }

    #[test]
    fn extensions_and_trailers_without_end_are_cut_off() {
        let mut extension = b"5;".to_vec();
        extension.extend([b'a'; 2_000]);
        assert_eq!(chunked(&extension), Err(BodyError::TooLong));
        let mut trailer = b"0\r\n".to_vec();
        trailer.extend(b"A: b\r\n".repeat(3_000));
        assert_eq!(chunked(&trailer), Err(BodyError::TooLong));
    }
}
