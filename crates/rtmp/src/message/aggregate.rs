//! Aggregate messages: several messages in the payload of one (RTMP 1.0 section 7.1.6).
//!
//! Each is laid out like an FLV tag: eleven bytes of header, the payload, four bytes that repeat their length.
//! [`Splitter`] works on the pieces of the payload as they arrive and keeps none of it.

use super::MessageKind;
use crate::chunk::{Event, MessageHeader};

/// An aggregate message that does not add up. `at` counts bytes of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A message inside is longer than what is left of the aggregate.
    #[error("byte {at} of an aggregate: a message of {length} bytes where {left} are left")]
    TooLong {
        /// Where its payload begins.
        at: u32,
        /// The announced length.
        length: u32,
        /// What is left of the aggregate.
        left: u32,
    },
    /// The aggregate ends inside the header of a message.
    #[error("an aggregate of {length} bytes ends inside the header of a message")]
    Truncated {
        /// The aggregate's length.
        length: u32,
    },
    /// An aggregate within an aggregate.
    #[error("byte {at} of an aggregate: another aggregate")]
    Nested {
        /// Where its header ends.
        at: u32,
    },
}

/// Splits one aggregate message, piece by piece, into the messages inside it.
///
/// Their events are those of a chunk stream, on the chunk stream and message stream of the aggregate. Their
/// timestamps are moved so that the first is that of the aggregate, as section 7.1.6 says.
#[derive(Clone, Debug)]
pub struct Splitter {
    aggregate: MessageHeader,
    consumed: u32,
    phase: AggregatePhase,
    header: [u8; HEADER_LEN],
    header_len: u8,
    /// What to add to a timestamp inside; known from the first message on.
    offset: Option<u32>,
}

const HEADER_LEN: usize = 11;
const TRAILER_LEN: u32 = 4;

#[derive(Clone, Copy, Debug)]
enum AggregatePhase {
    Header,
    Payload { left: u32 },
    Trailer { left: u32 },
}

impl Splitter {
    /// A splitter for the aggregate message that has just begun.
    pub fn new(aggregate: MessageHeader) -> Self {
        Self {
            aggregate,
            consumed: 0,
            phase: AggregatePhase::Header,
            header: [0; HEADER_LEN],
            header_len: 0,
            offset: None,
        }
    }

    /// The aggregate message that is being split.
    pub fn aggregate(&self) -> &MessageHeader {
        &self.aggregate
    }

    /// Takes bytes off the front of a piece of the aggregate's payload up to the next event.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Error> {
        let chunk_stream_id = self.aggregate.chunk_stream_id;
        loop {
            match self.phase {
                AggregatePhase::Payload { left: 0 } => {
                    self.phase = AggregatePhase::Trailer { left: TRAILER_LEN };
                    return Ok(Some(Event::End { chunk_stream_id }));
                }
                _ if input.is_empty() => return Ok(None),
                AggregatePhase::Header => {
                    let missing = HEADER_LEN - usize::from(self.header_len);
                    let bytes = self.take(input, missing);
                    let at = usize::from(self.header_len);
                    self.header[at..at + bytes.len()].copy_from_slice(bytes);
                    self.header_len += bytes.len() as u8;
                    if usize::from(self.header_len) == HEADER_LEN {
                        self.header_len = 0;
                        return self.begin().map(Some);
                    }
                }
                AggregatePhase::Payload { left } => {
                    let bytes = self.take(input, left as usize);
                    self.phase = AggregatePhase::Payload { left: left - bytes.len() as u32 };
                    return Ok(Some(Event::Payload { chunk_stream_id, bytes }));
                }
                AggregatePhase::Trailer { left: 0 } => self.phase = AggregatePhase::Header,
                AggregatePhase::Trailer { left } => {
                    let bytes = self.take(input, left as usize);
                    self.phase = AggregatePhase::Trailer { left: left - bytes.len() as u32 };
                }
            }
        }
    }

    /// Checks that the aggregate ended where a message inside it did. The last message's repeated length may be
    /// missing.
    pub fn finish(&self) -> Result<(), Error> {
        match self.phase {
            AggregatePhase::Header if self.header_len > 0 => {
                Err(Error::Truncated { length: self.aggregate.length })
            }
            _ => Ok(()),
        }
    }

    fn take<'a>(&mut self, input: &mut &'a [u8], most: usize) -> &'a [u8] {
        let (bytes, rest) = input.split_at(input.len().min(most));
        *input = rest;
        self.consumed += bytes.len() as u32;
        bytes
    }

    fn begin<'a>(&mut self) -> Result<Event<'a>, Error> {
        // Type, length, low 24 bits of the timestamp, its high 8 bits, stream id (FLV 10.1 section E.4.1).
        let [kind, l2, l1, l0, t2, t1, t0, t3, ..] = self.header;
        let kind = MessageKind::from_id(kind);
        let length = u32::from_be_bytes([0, l2, l1, l0]);
        let timestamp = u32::from_be_bytes([t3, t2, t1, t0]);
        let left = self.aggregate.length.saturating_sub(self.consumed);
        if length > left {
            return Err(Error::TooLong { at: self.consumed, length, left });
        }
        if kind == MessageKind::Aggregate {
            return Err(Error::Nested { at: self.consumed });
        }
        let offset = *self.offset.get_or_insert(self.aggregate.timestamp.wrapping_sub(timestamp));
        self.phase = AggregatePhase::Payload { left: length };
        Ok(Event::Start(MessageHeader {
            kind,
            timestamp: timestamp.wrapping_add(offset),
            length,
            ..self.aggregate
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub_message(kind: u8, timestamp: u32, payload: &[u8]) -> Vec<u8> {
        let [t3, t2, t1, t0] = timestamp.to_be_bytes();
        let mut bytes = vec![kind, 0, 0, payload.len() as u8, t2, t1, t0, t3, 0, 0, 0];
        bytes.extend(payload);
        bytes.extend((payload.len() as u32 + 11).to_be_bytes());
        bytes
    }

    fn aggregate(length: usize) -> MessageHeader {
        MessageHeader {
            chunk_stream_id: 6,
            kind: MessageKind::Aggregate,
            timestamp: 1000,
            length: length as u32,
            message_stream_id: 1,
        }
    }

    /// Kind, timestamp and payload of each message, with the payload's pieces joined.
    fn split(payload: &[u8], piece: usize) -> Result<Vec<(MessageKind, u32, Vec<u8>)>, Error> {
        let mut splitter = Splitter::new(aggregate(payload.len()));
        let mut messages: Vec<(MessageKind, u32, Vec<u8>)> = Vec::new();
        for mut input in payload.chunks(piece) {
            while let Some(event) = splitter.next(&mut input)? {
                match event {
                    Event::Start(header) => messages.push((header.kind, header.timestamp, Vec::new())),
                    Event::Payload { bytes, .. } => messages.last_mut().unwrap().2.extend(bytes),
                    _ => {}
                }
            }
        }
        splitter.finish()?;
        Ok(messages)
    }

    #[test]
    fn messages_inside_keep_their_distance_and_take_the_aggregates_timestamp() {
        let payload =
            [sub_message(8, 500, b"a"), sub_message(9, 540, b""), sub_message(9, 0x0100_0000, b"bc")];
        let payload = payload.concat();
        for piece in 1..=payload.len() {
            let messages = split(&payload, piece).unwrap();
            assert_eq!(
                messages,
                [
                    (MessageKind::Audio, 1000, b"a".to_vec()),
                    (MessageKind::Video, 1040, b"".to_vec()),
                    (MessageKind::Video, 0x0100_0000 + 500, b"bc".to_vec()),
                ]
            );
        }
    }

    #[test]
    fn the_last_repeated_length_may_be_missing() {
        let payload = sub_message(8, 0, b"abc");
        assert_eq!(split(&payload[..payload.len() - 4], 100).unwrap().len(), 1);
    }

    #[test]
    fn a_message_longer_than_its_aggregate_is_an_error() {
        let payload = sub_message(8, 0, b"abc");
        assert_eq!(split(&payload[..13], 100), Err(Error::TooLong { at: 11, length: 3, left: 2 }));
        assert_eq!(split(&payload[..10], 100), Err(Error::Truncated { length: 10 }));
    }

    #[test]
    fn an_aggregate_holds_no_aggregate() {
        assert_eq!(split(&sub_message(22, 0, b"abc"), 100), Err(Error::Nested { at: 11 }));
    }
}
