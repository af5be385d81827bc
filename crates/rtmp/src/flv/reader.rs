//! Reads an FLV file as it arrives (FLV 10.1 section E.2 and E.3).
//!
//! A tag whose bytes lie in one piece of input is returned where it lies, any other is put together in one buffer.
//! There is no resynchronisation: an FLV file has no marker to search for, so a broken one ends in an error. Two things
//! that servers get wrong are none, as to ffmpeg and flv.js: the length after a tag, which is for reading backwards and is
//! not looked at, and a file header between two tags, where a relay joins two files.

use crate::message::MediaKind;

/// What a [`Reader`] will put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest tag body to be put together.
    pub tag_length: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { tag_length: crate::chunk::MAX_MESSAGE_LENGTH }
    }
}

/// One tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a> {
    /// What it carries.
    pub kind: MediaKind,
    /// Milliseconds from the beginning of the file.
    pub timestamp: u32,
    /// What an RTMP message of that kind has as its payload.
    pub body: &'a [u8],
}

/// A file that is not FLV, or not whole. `at` counts bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It does not begin with `FLV` and a version of 1 (section E.2).
    #[error("the file does not begin like an FLV file")]
    Signature,
    /// The header says it is shorter than a header.
    #[error("the FLV header says it is {0} bytes long, at least 9 are needed")]
    HeaderLength(u32),
    /// The tag is neither audio nor video nor script data, or it is encrypted (section E.4.1).
    #[error("byte {at}: an FLV tag of type {kind:#04x}")]
    TagType {
        /// Where the tag begins.
        at: u64,
        /// The type byte.
        kind: u8,
    },
    /// The tag is longer than [`Limits`] allows.
    #[error("byte {at}: an FLV tag of {length} bytes, allowed are {limit}")]
    TagTooLong {
        /// Where the tag begins.
        at: u64,
        /// Its length.
        length: u32,
        /// The longest allowed.
        limit: u32,
    },
}

/// A streaming parser of FLV files.
#[derive(Clone, Debug)]
pub struct Reader {
    limits: Limits,
    phase: ReaderPhase,
    consumed: u64,
    /// A header or a body that did not come in one piece.
    gathered: Vec<u8>,
    /// The buffer holds what has been returned.
    returned: bool,
}

const FILE_HEADER_LEN: usize = 9;
const TAG_HEADER_LEN: usize = 11;
const TRAILER_LEN: u64 = 4;

#[derive(Clone, Copy, Debug)]
enum ReaderPhase {
    FileHeader,
    /// What is not looked at before the next tag: the rest of a file header that is longer than today's, and the length
    /// after header or tag.
    Skip {
        left: u64,
    },
    TagHeader,
    Body {
        kind: MediaKind,
        timestamp: u32,
        length: u32,
    },
}

impl Reader {
    /// A reader at the first byte of a file.
    pub fn new(limits: Limits) -> Self {
        Self { limits, phase: ReaderPhase::FileHeader, consumed: 0, gathered: Vec::new(), returned: false }
    }

    /// Takes bytes off the front of `input` up to the end of the next tag. `None` when `input` is used up.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<Tag<'a>>, Error> {
        loop {
            match self.phase {
                ReaderPhase::FileHeader => {
                    let Some(header) = self.gather::<FILE_HEADER_LEN>(input) else { return Ok(None) };
                    self.file_header(header, 0)?;
                }
                ReaderPhase::Skip { left: 0 } => self.phase = ReaderPhase::TagHeader,
                ReaderPhase::Skip { .. } if input.is_empty() => return Ok(None),
                ReaderPhase::Skip { left } => {
                    let skipped = (input.len() as u64).min(left);
                    *input = &input[skipped as usize..];
                    self.consumed += skipped;
                    self.phase = ReaderPhase::Skip { left: left - skipped };
                }
                ReaderPhase::TagHeader => {
                    let Some(header) = self.gather::<TAG_HEADER_LEN>(input) else { return Ok(None) };
                    self.tag_header(header)?;
                }
                ReaderPhase::Body { kind, timestamp, length } => {
                    if !self.has(length as usize, input) {
                        return Ok(None);
                    }
                    self.phase = ReaderPhase::Skip { left: TRAILER_LEN };
                    let body = self.take(length as usize, input);
                    return Ok(Some(Tag { kind, timestamp, body }));
                }
            }
        }
    }

    /// How many bytes of the file have been consumed.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Skips what follows the nine bytes of a file header, of which `taken` have been read already.
    fn file_header(&mut self, header: [u8; FILE_HEADER_LEN], taken: usize) -> Result<(), Error> {
        let [b'F', b'L', b'V', 1, _flags, length @ ..] = header else { return Err(Error::Signature) };
        let length = u32::from_be_bytes(length);
        let rest = length.checked_sub(FILE_HEADER_LEN as u32).ok_or(Error::HeaderLength(length))?;
        self.phase = ReaderPhase::Skip { left: u64::from(rest) + TRAILER_LEN - taken as u64 };
        Ok(())
    }

    fn tag_header(&mut self, header: [u8; TAG_HEADER_LEN]) -> Result<(), Error> {
        let at = self.consumed - TAG_HEADER_LEN as u64;
        if let [file @ .., _, _] = header
            && file.starts_with(b"FLV\x01")
        {
            return self.file_header(file, TAG_HEADER_LEN - FILE_HEADER_LEN);
        }
        let [kind, l2, l1, l0, t2, t1, t0, t3, ..] = header;
        // The two highest bits are reserved, the next one says that the tag is encrypted.
        let media = match kind & 0x3F {
            8 => MediaKind::Audio,
            9 => MediaKind::Video,
            18 => MediaKind::Data,
            _ => return Err(Error::TagType { at, kind }),
        };
        let length = u32::from_be_bytes([0, l2, l1, l0]);
        let limit = self.limits.tag_length;
        if length > limit {
            return Err(Error::TagTooLong { at, length, limit });
        }
        let timestamp = u32::from_be_bytes([t3, t2, t1, t0]);
        self.phase = ReaderPhase::Body { kind: media, timestamp, length };
        Ok(())
    }

    fn gather<const N: usize>(&mut self, input: &mut &[u8]) -> Option<[u8; N]> {
        if !self.has(N, input) {
            return None;
        }
        self.consumed += N as u64;
        if self.gathered.is_empty() {
            let (bytes, rest) = input.split_first_chunk()?;
            *input = rest;
            return Some(*bytes);
        }
        let bytes = self.gathered.first_chunk().copied();
        self.gathered.clear();
        bytes
    }

    /// Whether `len` bytes can be taken. If not, all of `input` has been put away.
    fn has(&mut self, len: usize, input: &mut &[u8]) -> bool {
        if std::mem::take(&mut self.returned) {
            self.gathered.clear();
        }
        if self.gathered.is_empty() && input.len() >= len {
            return true;
        }
        let (bytes, rest) = input.split_at(input.len().min(len - self.gathered.len()));
        self.gathered.extend_from_slice(bytes);
        *input = rest;
        self.gathered.len() == len
    }

    /// Takes `len` bytes that are there.
    fn take<'a, 'i: 'a>(&'a mut self, len: usize, input: &mut &'i [u8]) -> &'a [u8] {
        self.consumed += len as u64;
        if self.gathered.is_empty() {
            let (bytes, rest) = input.split_at(len);
            *input = rest;
            return bytes;
        }
        self.returned = true;
        &self.gathered
    }
}
