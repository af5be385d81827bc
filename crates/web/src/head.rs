//! A head, gathered in pieces of any size up to its empty line.

use crate::HttpError;

/// The longest head, with the empty lines and interim answers (1xx) before it. Browsers send one or two thousand bytes.
const LONGEST: usize = 16 * 1_024;

/// The most fields of a head: browsers send about twenty.
pub(crate) const MOST_FIELDS: usize = 64;

/// How many bytes of what is no head an error shows.
const SHOWN: usize = 25;

/// Bytes before the payload of a frame of HTTP/2 (RFC 9113, section 4.1).
const FRAME_HEADER: usize = 9;

/// Whether this is the header of a frame by which a server of HTTP/2 begins: SETTINGS, or GOAWAY where it has been spoken to
/// in another protocol, on stream 0, and no longer than either has reason to be.
fn is_first_frame(bytes: &[u8]) -> bool {
    matches!(*bytes, [0, 0..=1, _, 4 | 7, _, 0, 0, 0, 0])
}

/// Gathers one head after the other.
#[derive(Debug)]
pub(crate) struct Head {
    /// How each begins, if that is known.
    beginning: &'static [u8],
    bytes: Vec<u8>,
    /// Bytes that belong to no head and stood before this one.
    passed: usize,
    /// Whole lines of it.
    lines: usize,
    /// The present line has nothing in it so far.
    line_is_empty: bool,
}

impl Head {
    pub(crate) fn new(beginning: &'static [u8]) -> Self {
        Self { beginning, bytes: Vec::new(), passed: 0, lines: 0, line_is_empty: true }
    }

    /// Takes bytes off the front until the head is whole, and says whether it is.
    pub(crate) fn take(&mut self, bytes: &mut &[u8]) -> Result<bool, HttpError> {
        if !self.beginning.is_empty() && self.bytes.first().or(bytes.first()) == Some(&0) {
            return self.take_frame(bytes);
        }
        while let Some((&byte, rest)) = bytes.split_first() {
            let (at, all) = (self.bytes.len(), *bytes);
            if self.beginning.get(at).is_some_and(|expected| *expected != byte) {
                let shown = self.bytes.iter().chain(&all[..all.len().min(SHOWN - at)]);
                let shown: Vec<u8> = shown.copied().collect();
                return Err(HttpError::NotHttp(String::from_utf8_lossy(&shown).into_owned()));
            }
            if byte.is_ascii_control() && !matches!(byte, b'\r' | b'\n' | b'\t') {
                return Err(httparse::Error::Token.into());
            }
            if at + self.passed == LONGEST {
                return Err(HttpError::HeadTooLong);
            }
            *bytes = rest;
            // Empty lines before a request are passed over (RFC 9112, section 2.2).
            if at == 0 && matches!(byte, b'\r' | b'\n') {
                self.passed += 1;
                continue;
            }
            self.bytes.push(byte);
            let ends = byte == b'\n' && self.line_is_empty;
            self.line_is_empty = byte == b'\n' || byte == b'\r' && self.line_is_empty;
            if ends {
                return Ok(true);
            }
            self.lines += usize::from(byte == b'\n');
            if self.lines > 1 + MOST_FIELDS {
                return Err(httparse::Error::TooManyHeaders.into());
            }
        }
        Ok(false)
    }

    /// Takes what begins with a byte 0, as a frame of HTTP/2 does.
    fn take_frame(&mut self, bytes: &mut &[u8]) -> Result<bool, HttpError> {
        let (now, later) = bytes.split_at(bytes.len().min(FRAME_HEADER - self.bytes.len()));
        self.bytes.extend_from_slice(now);
        *bytes = later;
        match &self.bytes[..] {
            frame if is_first_frame(frame) => Err(HttpError::Http2),
            frame if frame.len() < FRAME_HEADER => Ok(false),
            other => Err(HttpError::NotHttp(String::from_utf8_lossy(other).into_owned())),
        }
    }

    /// The head, once it is whole.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Goes on to the next head, which has all the room that there is.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.beginning);
    }

    /// Goes on to another head of the same answer, which has what room is left.
    pub(crate) fn continue_with_next(&mut self) {
        let passed = self.passed + self.bytes.len();
        *self = Self { passed, ..Self::new(self.beginning) };
    }

    /// Whether nothing of it has come yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.passed == 0
    }
}
