//! User control events (RTMP 1.0 sections 6.2 and 7.1.7).

use super::MessageKind;
use super::control::connection_header;
use crate::chunk;

/// A user control event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserControl {
    /// The stream can be used (0).
    StreamBegin {
        /// Which one.
        message_stream_id: u32,
    },
    /// The stream has been played to its end (1).
    StreamEof {
        /// Which one.
        message_stream_id: u32,
    },
    /// The server has nothing to send on the stream at present (2).
    StreamDry {
        /// Which one.
        message_stream_id: u32,
    },
    /// How much the client buffers; the server may send that much at once (3).
    SetBufferLength {
        /// Which stream.
        message_stream_id: u32,
        /// The buffer's length.
        milliseconds: u32,
    },
    /// The stream is a recording (4).
    StreamIsRecorded {
        /// Which one.
        message_stream_id: u32,
    },
    /// The server asks whether the client is there (6).
    PingRequest {
        /// The server's clock, in milliseconds.
        timestamp: u32,
    },
    /// The client is there (7).
    PingResponse {
        /// The timestamp of the request.
        timestamp: u32,
    },
    /// An event that section 7.1.7 does not list. Flash Media Server used 31 and 32 for a buffer empty and full.
    Other {
        /// Its type.
        event: u16,
    },
}

/// A user control message that is too short for its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a user control message of {length} bytes is too short for its event")]
pub struct Error {
    /// The message's length.
    pub length: usize,
}

impl UserControl {
    /// Parses the payload of a [`MessageKind::UserControl`] message.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let too_short = Error { length: payload.len() };
        let (event, fields) = payload.split_first_chunk().ok_or(too_short)?;
        let word = |at: usize| {
            let word = fields.get(at..).and_then(<[u8]>::first_chunk).ok_or(too_short)?;
            Ok(u32::from_be_bytes(*word))
        };
        Ok(match u16::from_be_bytes(*event) {
            0 => Self::StreamBegin { message_stream_id: word(0)? },
            1 => Self::StreamEof { message_stream_id: word(0)? },
            2 => Self::StreamDry { message_stream_id: word(0)? },
            3 => Self::SetBufferLength { message_stream_id: word(0)?, milliseconds: word(4)? },
            4 => Self::StreamIsRecorded { message_stream_id: word(0)? },
            6 => Self::PingRequest { timestamp: word(0)? },
            7 => Self::PingResponse { timestamp: word(0)? },
            event => Self::Other { event },
        })
    }

    /// Appends the framed message. An [`UserControl::Other`] is written without fields.
    pub fn write(&self, writer: &mut chunk::Writer, out: &mut Vec<u8>) {
        let (event, word, second) = match *self {
            Self::StreamBegin { message_stream_id } => (0, Some(message_stream_id), None),
            Self::StreamEof { message_stream_id } => (1, Some(message_stream_id), None),
            Self::StreamDry { message_stream_id } => (2, Some(message_stream_id), None),
            Self::SetBufferLength { message_stream_id, milliseconds } => {
                (3, Some(message_stream_id), Some(milliseconds))
            }
            Self::StreamIsRecorded { message_stream_id } => (4, Some(message_stream_id), None),
            Self::PingRequest { timestamp } => (6, Some(timestamp), None),
            Self::PingResponse { timestamp } => (7, Some(timestamp), None),
            Self::Other { event } => (event, None, None),
        };
        let mut payload = [0; 10];
        payload[..2].copy_from_slice(&u16::to_be_bytes(event));
        let mut length = 2;
        for word in word.into_iter().chain(second) {
            payload[length..length + 4].copy_from_slice(&word.to_be_bytes());
            length += 4;
        }
        writer.write(&connection_header(MessageKind::UserControl), &payload[..length], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_the_round_trip() {
        for event in [
            UserControl::StreamBegin { message_stream_id: 1 },
            UserControl::StreamEof { message_stream_id: 2 },
            UserControl::StreamDry { message_stream_id: 3 },
            UserControl::SetBufferLength { message_stream_id: 4, milliseconds: 3000 },
            UserControl::StreamIsRecorded { message_stream_id: 5 },
            UserControl::PingRequest { timestamp: 6 },
            UserControl::PingResponse { timestamp: 7 },
            UserControl::Other { event: 31 },
        ] {
            let mut out = Vec::new();
            event.write(&mut chunk::Writer::new(), &mut out);
            assert_eq!(UserControl::parse(&out[12..]), Ok(event));
        }
    }

    #[test]
    fn an_event_without_its_fields_is_an_error() {
        assert_eq!(UserControl::parse(&[0]), Err(Error { length: 1 }));
        assert_eq!(UserControl::parse(&[0, 3, 0, 0, 0, 1, 0, 0, 0]), Err(Error { length: 9 }));
    }
}
