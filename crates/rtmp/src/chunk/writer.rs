//! Cuts messages into chunks.

use super::header::{BasicHeader, EXTENDED};
use super::{DEFAULT_CHUNK_SIZE, MAX_CHUNK_SIZE, MAX_MESSAGE_LENGTH, MessageHeader};
use crate::message::MessageKind;

/// Appends a message to `out` as one type 0 chunk and as many type 3 chunks as it takes.
///
/// What comes out depends on nothing but the arguments, so that it may be sent on every connection whose chunk
/// size is `chunk_size`. The payload's own length is written, whatever `header.length` says.
///
/// # Panics
///
/// When the payload is longer than [`MAX_MESSAGE_LENGTH`].
pub fn frame(header: &MessageHeader, payload: &[u8], chunk_size: u32, out: &mut Vec<u8>) {
    out.reserve(framed_len(header, payload.len(), chunk_size));
    write_message(0, header.timestamp, header, payload, chunk_size, out);
}

/// How many bytes [`frame`] appends for a payload of `length` bytes.
pub fn framed_len(header: &MessageHeader, length: usize, chunk_size: u32) -> usize {
    let basic = match header.chunk_stream_id {
        ..64 => 1,
        64..320 => 2,
        _ => 3,
    };
    let extended = if header.timestamp >= EXTENDED { 4 } else { 0 };
    let chunks = length.div_ceil(clamp(chunk_size) as usize).max(1);
    chunks * (basic + extended) + 11 + length
}

/// The sending half of a chunk stream: frames messages with the chunk size that the peer has been told.
#[derive(Clone, Debug)]
pub struct Writer {
    chunk_size: u32,
    /// `None`: every message has a full header.
    sent: Option<Vec<Sent>>,
}

/// The last header sent on one chunk stream, and its timestamp field.
#[derive(Clone, Debug)]
struct Sent {
    header: MessageHeader,
    field: u32,
}

impl Writer {
    /// A writer that gives every message a full, type 0 header.
    pub fn new() -> Self {
        Self { chunk_size: DEFAULT_CHUNK_SIZE, sent: None }
    }

    /// A writer that leaves out what a message has in common with the one before it on its chunk stream, with
    /// headers of types 1 to 3 (section 5.3.1.2). It remembers one header for each chunk stream.
    pub fn compressing() -> Self {
        Self { chunk_size: DEFAULT_CHUNK_SIZE, sent: Some(Vec::new()) }
    }

    /// The present chunk size.
    pub fn chunk_size(&self) -> u32 {
        self.chunk_size
    }

    /// Appends a Set Chunk Size message, and uses that size from then on. Sizes outside
    /// 1 ..= [`MAX_CHUNK_SIZE`] are brought into it.
    pub fn set_chunk_size(&mut self, size: u32, out: &mut Vec<u8>) {
        let size = clamp(size);
        let header = MessageHeader {
            chunk_stream_id: 2,
            kind: MessageKind::SetChunkSize,
            timestamp: 0,
            length: 4,
            message_stream_id: 0,
        };
        self.write(&header, &size.to_be_bytes(), out);
        self.chunk_size = size;
    }

    /// Appends a message. The payload's own length is written, whatever `header.length` says.
    ///
    /// # Panics
    ///
    /// When the payload is longer than [`MAX_MESSAGE_LENGTH`].
    pub fn write(&mut self, header: &MessageHeader, payload: &[u8], out: &mut Vec<u8>) {
        let header = MessageHeader { length: payload.len() as u32, ..*header };
        let Some(sent) = &mut self.sent else {
            return frame(&header, payload, self.chunk_size, out);
        };
        let last = sent.iter_mut().find(|sent| sent.header.chunk_stream_id == header.chunk_stream_id);
        let (format, field) = match &last {
            Some(last) => shortest(last, &header),
            None => (0, header.timestamp),
        };
        match last {
            Some(last) => *last = Sent { header, field },
            None => sent.push(Sent { header, field }),
        }
        write_message(format, field, &header, payload, self.chunk_size, out);
    }
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

/// The shortest chunk format that can say `header` after `last`, and the timestamp field that goes with it.
fn shortest(last: &Sent, header: &MessageHeader) -> (u8, u32) {
    let delta = header.timestamp.wrapping_sub(last.header.timestamp);
    // Timestamps wrap; a step of more than half their range is a step back (section 5.3.1.2.1).
    let back = delta > u32::MAX / 2;
    if back || header.message_stream_id != last.header.message_stream_id {
        (0, header.timestamp)
    } else if header.kind != last.header.kind || header.length != last.header.length {
        (1, delta)
    } else if delta != last.field {
        (2, delta)
    } else {
        (3, delta)
    }
}

fn write_message(
    format: u8,
    field: u32,
    header: &MessageHeader,
    payload: &[u8],
    chunk_size: u32,
    out: &mut Vec<u8>,
) {
    assert!(payload.len() <= MAX_MESSAGE_LENGTH as usize, "a message of {} bytes", payload.len());
    let extended = (field >= EXTENDED).then(|| field.to_be_bytes());
    let mut chunks = payload.chunks(clamp(chunk_size) as usize);

    BasicHeader::write(format, header.chunk_stream_id, out);
    if format < 3 {
        out.extend(&field.min(EXTENDED).to_be_bytes()[1..]);
    }
    if format < 2 {
        out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
        out.push(header.kind.id());
    }
    if format < 1 {
        out.extend(header.message_stream_id.to_le_bytes());
    }
    out.extend(extended.iter().flatten());
    out.extend_from_slice(chunks.next().unwrap_or_default());

    for chunk in chunks {
        BasicHeader::write(3, header.chunk_stream_id, out);
        out.extend(extended.iter().flatten());
        out.extend_from_slice(chunk);
    }
}

fn clamp(chunk_size: u32) -> u32 {
    chunk_size.clamp(1, MAX_CHUNK_SIZE)
}
