//! Reads a chunk stream as it arrives, without keeping what it reads.
//!
//! The reader is pulled: it takes bytes off the front of the caller's slice and returns one [`Event`] at a time, so
//! that a payload is never copied and the caller stays free to act between two events. What it remembers is one
//! header for each chunk stream and, when the input ends inside a chunk header, the bytes of that header.

use super::header::{BasicHeader, EXTENDED, MAX_HEADER_LEN, MESSAGE_HEADER_LEN, u24};
use super::{
    ChunkFormat, DEFAULT_CHUNK_SIZE, Error, MAX_CHUNK_SIZE, MAX_MESSAGE_LENGTH, MIN_CHUNK_STREAM_ID,
    MessageHeader,
};
use crate::message::MessageKind;

/// What a [`Reader`] will put up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many chunk streams the peer may use. Each costs about 40 bytes; real peers use four to six.
    pub chunk_streams: usize,
    /// The longest message the peer may announce.
    pub message_length: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_streams: 64, message_length: MAX_MESSAGE_LENGTH }
    }
}

/// One thing that happened on the chunk stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message begins.
    Start(MessageHeader),
    /// The next piece of the payload of the message that is under way on a chunk stream; never empty.
    Payload {
        /// The chunk stream.
        chunk_stream_id: u32,
        /// The piece.
        bytes: &'a [u8],
    },
    /// The message on a chunk stream is complete.
    End {
        /// The chunk stream.
        chunk_stream_id: u32,
    },
    /// The peer gave up the message that was under way on a chunk stream (section 5.4.2).
    Abort {
        /// The chunk stream.
        chunk_stream_id: u32,
    },
}

/// A streaming parser of the chunk stream (RTMP 1.0 section 5.3).
///
/// Set Chunk Size and Abort messages take effect as they end, and are reported like any other message.
///
/// Peers differ on whether a type 3 chunk repeats an extended timestamp. The four bytes after its basic header are
/// taken for one when they equal the timestamp that the chunk stream last extended, and for payload otherwise;
/// that reads both sorts of peers.
///
/// A type 3 chunk that begins a message right after one with a type 0 chunk takes that chunk's timestamp as its
/// delta, as section 5.3.1.2.4 says, and as ffmpeg, librtmp and SRS write it.
#[derive(Clone, Debug)]
pub struct Reader {
    limits: Limits,
    chunk_size: u32,
    phase: ReaderPhase,
    /// Index of the chunk stream that the last chunk header named.
    current: usize,
    /// What is left of the current chunk.
    chunk_remaining: u32,
    /// Bytes of the chunk stream consumed as headers or payload.
    consumed: u64,
    streams: Vec<ChunkStream>,
    /// Bytes taken from earlier input and not yet consumed: the beginning of a chunk header.
    pending: [u8; MAX_HEADER_LEN],
    pending_len: u8,
}

impl Reader {
    /// A reader at the first byte after the handshake.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            chunk_size: DEFAULT_CHUNK_SIZE,
            phase: ReaderPhase::Header,
            current: 0,
            chunk_remaining: 0,
            consumed: 0,
            streams: Vec::new(),
            pending: [0; MAX_HEADER_LEN],
            pending_len: 0,
        }
    }

    /// Takes bytes off the front of `input` up to the next event. `None` when `input` is used up.
    ///
    /// After an error the chunk stream cannot be read on; what further calls return is of no use.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Error> {
        loop {
            match self.phase {
                ReaderPhase::Header => match self.header(input)? {
                    Chunk::Incomplete => return Ok(None),
                    Chunk::Begins(header) => return Ok(Some(Event::Start(header))),
                    Chunk::Continues => {}
                },
                ReaderPhase::Payload => return Ok(self.payload(input)),
                ReaderPhase::End => return self.end().map(Some),
                ReaderPhase::Abort { chunk_stream_id } => {
                    self.phase = ReaderPhase::Header;
                    return Ok(Some(Event::Abort { chunk_stream_id }));
                }
            }
        }
    }

    /// Takes an audio or video message off the front of `input` if it lies there whole, in one chunk of a known
    /// chunk stream: its header and payload. Most messages of a live stream go this short way; of any other nothing
    /// is taken, and [`Self::next`] tells it event by event.
    #[inline]
    pub fn frame<'a>(&mut self, input: &mut &'a [u8]) -> Option<(MessageHeader, &'a [u8])> {
        if self.phase != ReaderPhase::Header || self.pending_len > 0 {
            return None;
        }
        let bytes = *input;
        let first = *bytes.first()?;
        let (format, id) = (usize::from(first >> 6), u32::from(first & 0x3F));
        // Chunk stream 2 has no media, and longer forms of the basic header begin with 0 and 1.
        let known = if id > MIN_CHUNK_STREAM_ID { self.find(id)? } else { return None };
        let stream = &mut self.streams[known];
        if stream.remaining > 0 {
            return None;
        }
        let header_len = 1 + MESSAGE_HEADER_LEN[format];
        let fields = bytes.get(1..header_len)?;
        let field = if format < 3 { u24(fields) } else { stream.field };
        let (length, kind) = match fields {
            [_, _, _, a, b, c, kind, ..] => (u24(&[*a, *b, *c]), MessageKind::from_id(*kind)),
            _ => (stream.length, stream.kind),
        };
        let extended = field == EXTENDED || format == 3 && stream.extended;
        let whole = length > 0 && length <= self.chunk_size.min(self.limits.message_length);
        let is_frame = matches!(kind, MessageKind::Audio | MessageKind::Video);
        if extended || !whole || !is_frame {
            return None;
        }
        let payload = bytes.get(header_len..header_len + length as usize)?;
        if let &[.., a, b, c, d] = fields
            && format == 0
        {
            stream.message_stream_id = u32::from_le_bytes([a, b, c, d]);
            stream.timestamp = field;
        } else {
            stream.timestamp = stream.timestamp.wrapping_add(field);
        }
        (stream.field, stream.extended, stream.length, stream.kind) = (field, false, length, kind);
        let header = MessageHeader {
            chunk_stream_id: id,
            kind,
            timestamp: stream.timestamp,
            length,
            message_stream_id: stream.message_stream_id,
        };
        self.current = known;
        let len = header_len + payload.len();
        self.consumed += len as u64;
        *input = &bytes[len..];
        Some((header, payload))
    }

    /// Reads all of `input` and calls `on` for each event.
    #[inline]
    pub fn read<'a>(&mut self, mut input: &'a [u8], mut on: impl FnMut(Event<'a>)) -> Result<(), Error> {
        while let Some(event) = self.next(&mut input)? {
            on(event);
        }
        Ok(())
    }

    /// The peer's present chunk size.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// How many bytes of chunk headers and payload have been consumed.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderPhase {
    Header,
    Payload,
    End,
    Abort { chunk_stream_id: u32 },
}

/// What the last headers on one chunk stream said, and how far its message has come.
#[derive(Clone, Debug)]
struct ChunkStream {
    id: u32,
    /// The last timestamp field, 24 bits or extended: absolute in a type 0 chunk, else a delta.
    field: u32,
    timestamp: u32,
    length: u32,
    message_stream_id: u32,
    remaining: u32,
    /// The payload of a Set Chunk Size or Abort message that has come so far.
    control: u32,
    kind: MessageKind,
    extended: bool,
}

/// A chunk header that is complete.
struct ScannedHeader {
    basic: BasicHeader,
    /// Basic and message header and extended timestamp, in bytes.
    len: usize,
    stream: Option<usize>,
    extended: bool,
    field: u32,
}

enum Chunk {
    Incomplete,
    Begins(MessageHeader),
    Continues,
}

impl Reader {
    #[inline]
    fn header(&mut self, input: &mut &[u8]) -> Result<Chunk, Error> {
        if self.pending_len > 0 {
            return self.straddling_header(input);
        }
        match self.scan(input)? {
            Some(scanned) => {
                let (bytes, rest) = input.split_at(scanned.len);
                *input = rest;
                self.begin_chunk(&scanned, bytes)
            }
            None => {
                self.pending[..input.len()].copy_from_slice(input);
                self.pending_len = input.len() as u8;
                *input = &[];
                Ok(Chunk::Incomplete)
            }
        }
    }

    /// A header whose first bytes came with earlier input. A scan may also find that the last of those were not
    /// header at all (a type 3 chunk without the extended timestamp they looked like); they then stay pending.
    #[cold]
    fn straddling_header(&mut self, input: &mut &[u8]) -> Result<Chunk, Error> {
        let before = usize::from(self.pending_len);
        let fresh = input.len().min(MAX_HEADER_LEN - before);
        let mut bytes = self.pending;
        bytes[before..before + fresh].copy_from_slice(&input[..fresh]);
        let Some(scanned) = self.scan(&bytes[..before + fresh])? else {
            self.pending = bytes;
            self.pending_len += fresh as u8;
            *input = &input[fresh..];
            return Ok(Chunk::Incomplete);
        };
        *input = &input[scanned.len.saturating_sub(before)..];
        self.pending_len = before.saturating_sub(scanned.len) as u8;
        self.pending[..usize::from(self.pending_len)]
            .copy_from_slice(&bytes[scanned.len..scanned.len + usize::from(self.pending_len)]);
        self.begin_chunk(&scanned, &bytes[..scanned.len])
    }

    /// `None` when `bytes` ends before the header does, which is before [`MAX_HEADER_LEN`].
    #[inline]
    fn scan(&self, bytes: &[u8]) -> Result<Option<ScannedHeader>, Error> {
        let Some(basic) = BasicHeader::parse(bytes) else { return Ok(None) };
        let stream = self.find(basic.chunk_stream_id);
        let len = basic.len + MESSAGE_HEADER_LEN[usize::from(basic.format)];
        if basic.format == 3 {
            let Some(known) = stream else { return Err(self.no_header(basic)) };
            let ChunkStream { field, extended, .. } = self.streams[known];
            let repeats = if extended { begins_with(&bytes[len..], field) } else { Some(false) };
            return Ok(repeats.map(|repeats| {
                let len = if repeats { len + 4 } else { len };
                ScannedHeader { basic, len, stream, extended, field }
            }));
        }
        if bytes.len() < len {
            return Ok(None);
        }
        let field = u24(&bytes[basic.len..]);
        if field != EXTENDED {
            return Ok(Some(ScannedHeader { basic, len, stream, extended: false, field }));
        }
        let field =
            bytes.get(len..len + 4).map(|field| u32::from_be_bytes([field[0], field[1], field[2], field[3]]));
        Ok(field.map(|field| ScannedHeader { basic, len: len + 4, stream, extended: true, field }))
    }

    /// Index of a chunk stream; most chunks follow one of their own.
    #[inline]
    fn find(&self, id: u32) -> Option<usize> {
        match self.streams.get(self.current) {
            Some(stream) if stream.id == id => Some(self.current),
            _ => self.streams.iter().position(|stream| stream.id == id),
        }
    }

    #[inline]
    fn begin_chunk(&mut self, scanned: &ScannedHeader, bytes: &[u8]) -> Result<Chunk, Error> {
        let &ScannedHeader { basic, stream, extended, field, .. } = scanned;
        let at = self.consumed;
        self.current = match stream {
            Some(known) => known,
            None => self.open(basic)?,
        };
        self.consumed += bytes.len() as u64;
        let stream = &mut self.streams[self.current];

        if stream.remaining > 0 {
            if basic.format != 3 {
                return Err(Error::Interrupted {
                    at,
                    chunk_stream_id: stream.id,
                    format: ChunkFormat(basic.format),
                    missing: stream.remaining,
                });
            }
            self.chunk_remaining = stream.remaining.min(self.chunk_size);
            self.phase = ReaderPhase::Payload;
            return Ok(Chunk::Continues);
        }

        let fields = &bytes[basic.len..];
        if basic.format < 2 {
            stream.length = u24(&fields[3..]);
            stream.kind = MessageKind::from_id(fields[6]);
        }
        if basic.format == 0 {
            // The one little-endian number of the protocol (section 5.3.1.2.1).
            stream.message_stream_id = u32::from_le_bytes([fields[7], fields[8], fields[9], fields[10]]);
            stream.timestamp = field;
        } else {
            stream.timestamp = stream.timestamp.wrapping_add(field);
        }
        stream.field = field;
        stream.extended = extended;
        let header = MessageHeader {
            chunk_stream_id: stream.id,
            kind: stream.kind,
            timestamp: stream.timestamp,
            length: stream.length,
            message_stream_id: stream.message_stream_id,
        };
        if governs_chunks(header.kind) && header.length != 4 {
            return Err(Error::ControlLength { at, length: header.length });
        }
        if header.length > self.limits.message_length {
            return Err(Error::MessageTooLong {
                at,
                chunk_stream_id: header.chunk_stream_id,
                length: header.length,
                limit: self.limits.message_length,
            });
        }
        stream.remaining = header.length;
        self.chunk_remaining = header.length.min(self.chunk_size);
        self.phase = if header.length > 0 { ReaderPhase::Payload } else { ReaderPhase::End };
        Ok(Chunk::Begins(header))
    }

    /// A chunk stream that has not been used before. librtmp opens some with a type 1 chunk, so that is allowed;
    /// it stands on a timestamp of 0 and the message stream 0.
    #[cold]
    fn open(&mut self, basic: BasicHeader) -> Result<usize, Error> {
        if basic.format > 1 {
            return Err(self.no_header(basic));
        }
        if self.streams.len() >= self.limits.chunk_streams {
            return Err(Error::TooManyChunkStreams {
                at: self.consumed,
                chunk_stream_id: basic.chunk_stream_id,
                limit: self.limits.chunk_streams,
            });
        }
        debug_assert!(basic.chunk_stream_id >= MIN_CHUNK_STREAM_ID);
        self.streams.push(ChunkStream {
            id: basic.chunk_stream_id,
            field: 0,
            timestamp: 0,
            length: 0,
            message_stream_id: 0,
            remaining: 0,
            control: 0,
            kind: MessageKind::Other(0),
            extended: false,
        });
        Ok(self.streams.len() - 1)
    }

    #[inline]
    fn payload<'a>(&mut self, input: &mut &'a [u8]) -> Option<Event<'a>> {
        let bytes = if self.pending_len > 0 {
            self.pending_byte()
        } else {
            let (bytes, rest) = input.split_at(input.len().min(self.chunk_remaining as usize));
            *input = rest;
            bytes
        };
        if bytes.is_empty() {
            return None;
        }
        let stream = &mut self.streams[self.current];
        if governs_chunks(stream.kind) {
            stream.control = bytes.iter().fold(stream.control, |value, &byte| value << 8 | u32::from(byte));
        }
        self.consumed += bytes.len() as u64;
        self.chunk_remaining -= bytes.len() as u32;
        stream.remaining -= bytes.len() as u32;
        self.phase = match (stream.remaining, self.chunk_remaining) {
            (0, _) => ReaderPhase::End,
            (_, 0) => ReaderPhase::Header,
            _ => ReaderPhase::Payload,
        };
        Some(Event::Payload { chunk_stream_id: stream.id, bytes })
    }

    /// The first pending byte, as a slice that does not borrow from the reader.
    #[cold]
    fn pending_byte(&mut self) -> &'static [u8] {
        let byte = self.pending[0];
        self.pending.copy_within(1.., 0);
        self.pending_len -= 1;
        std::slice::from_ref(&EVERY_BYTE[usize::from(byte)])
    }

    #[inline]
    fn end<'a>(&mut self) -> Result<Event<'a>, Error> {
        let stream = &self.streams[self.current];
        let ended = Event::End { chunk_stream_id: stream.id };
        let control = stream.control;
        self.phase = ReaderPhase::Header;
        match stream.kind {
            MessageKind::SetChunkSize if control == 0 || control >> 31 == 1 => {
                return Err(Error::ChunkSize { at: self.consumed, size: control });
            }
            MessageKind::SetChunkSize => self.chunk_size = control.min(MAX_CHUNK_SIZE),
            MessageKind::Abort => {
                let aborted =
                    self.streams.iter_mut().find(|stream| stream.id == control && stream.remaining > 0);
                if let Some(stream) = aborted {
                    stream.remaining = 0;
                    self.phase = ReaderPhase::Abort { chunk_stream_id: control };
                }
            }
            _ => {}
        }
        Ok(ended)
    }

    fn no_header(&self, basic: BasicHeader) -> Error {
        Error::NoHeader {
            at: self.consumed,
            chunk_stream_id: basic.chunk_stream_id,
            format: ChunkFormat(basic.format),
        }
    }
}

#[inline]
fn governs_chunks(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::SetChunkSize | MessageKind::Abort)
}

/// Whether `bytes` begins with the four bytes of `field`; `None` when it ends before that is certain.
#[inline]
fn begins_with(bytes: &[u8], field: u32) -> Option<bool> {
    let field = field.to_be_bytes();
    let seen = bytes.len().min(field.len());
    match bytes[..seen] == field[..seen] {
        true if seen < field.len() => None,
        equal => Some(equal),
    }
}

/// Each byte at its own index.
static EVERY_BYTE: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut value = 0;
    while value < bytes.len() {
        bytes[value] = value as u8;
        value += 1;
    }
    bytes
};
