//! Protocol control messages (RTMP 1.0 section 5.4).

use super::MessageKind;
use crate::chunk::{self, MessageHeader};

/// A protocol control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The sender's chunk size from here on (section 5.4.1).
    SetChunkSize(u32),
    /// The rest of the message on this chunk stream will not come (section 5.4.2).
    Abort {
        /// The chunk stream.
        chunk_stream_id: u32,
    },
    /// How many bytes the sender has received, modulo 2³² (section 5.4.3).
    Acknowledgement(u32),
    /// Bytes after which the sender expects an acknowledgement (section 5.4.4).
    WindowAcknowledgementSize(u32),
    /// Bytes that the receiver may send without an acknowledgement (section 5.4.5).
    SetPeerBandwidth {
        /// The window in bytes.
        window: u32,
        /// How it relates to a window set before.
        limit: BandwidthLimit,
    },
}

/// How a Set Peer Bandwidth message is meant (section 5.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BandwidthLimit {
    /// This window.
    Hard,
    /// This window or the one in effect, whichever is smaller.
    Soft,
    /// Hard if the last one was hard, else to be ignored.
    Dynamic,
}

/// A protocol control message that is not what its section says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Fewer bytes than the message has fields.
    #[error("a {kind} message of {length} bytes is too short")]
    Length {
        /// Which message.
        kind: MessageKind,
        /// Its length.
        length: usize,
    },
    /// A limit type other than 0, 1 and 2 (section 5.4.5).
    #[error("limit type {0} of a Set Peer Bandwidth message is not hard, soft or dynamic")]
    LimitType(u8),
}

impl Control {
    /// Parses a message's payload. `None` when the kind is not a protocol control message.
    pub fn parse(kind: MessageKind, payload: &[u8]) -> Result<Option<Self>, Error> {
        let too_short = Error::Length { kind, length: payload.len() };
        let word = || payload.first_chunk().map(|word| u32::from_be_bytes(*word)).ok_or(too_short);
        Ok(Some(match kind {
            MessageKind::SetChunkSize => Self::SetChunkSize(word()?),
            MessageKind::Abort => Self::Abort { chunk_stream_id: word()? },
            MessageKind::Acknowledgement => Self::Acknowledgement(word()?),
            MessageKind::WindowAcknowledgementSize => Self::WindowAcknowledgementSize(word()?),
            MessageKind::SetPeerBandwidth => Self::SetPeerBandwidth {
                window: word()?,
                limit: match payload.get(4).ok_or(too_short)? {
                    0 => BandwidthLimit::Hard,
                    1 => BandwidthLimit::Soft,
                    2 => BandwidthLimit::Dynamic,
                    other => return Err(Error::LimitType(*other)),
                },
            },
            _ => return Ok(None),
        }))
    }

    /// The kind of message that it is sent as.
    pub fn kind(&self) -> MessageKind {
        match self {
            Self::SetChunkSize(_) => MessageKind::SetChunkSize,
            Self::Abort { .. } => MessageKind::Abort,
            Self::Acknowledgement(_) => MessageKind::Acknowledgement,
            Self::WindowAcknowledgementSize(_) => MessageKind::WindowAcknowledgementSize,
            Self::SetPeerBandwidth { .. } => MessageKind::SetPeerBandwidth,
        }
    }

    /// Appends the framed message: chunk stream 2, message stream 0, timestamp 0, as section 5.4 demands.
    ///
    /// A Set Chunk Size only says the size. [`Writer::set_chunk_size`](chunk::Writer::set_chunk_size) also uses it.
    pub fn write(&self, writer: &mut chunk::Writer, out: &mut Vec<u8>) {
        let (word, limit) = match *self {
            Self::SetChunkSize(word)
            | Self::Abort { chunk_stream_id: word }
            | Self::Acknowledgement(word)
            | Self::WindowAcknowledgementSize(word) => (word, None),
            Self::SetPeerBandwidth { window, limit } => (window, Some(limit as u8)),
        };
        let mut payload = [0; 5];
        payload[..4].copy_from_slice(&word.to_be_bytes());
        payload[4] = limit.unwrap_or_default();
        let length = if limit.is_some() { 5 } else { 4 };
        writer.write(&connection_header(self.kind()), &payload[..length], out);
    }
}

/// The header of a message that concerns the connection and not a stream on it (section 5.4).
pub(super) fn connection_header(kind: MessageKind) -> MessageHeader {
    MessageHeader { chunk_stream_id: 2, kind, timestamp: 0, length: 0, message_stream_id: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_message_survives_the_round_trip() {
        for control in [
            Control::SetChunkSize(4096),
            Control::Abort { chunk_stream_id: 6 },
            Control::Acknowledgement(u32::MAX),
            Control::WindowAcknowledgementSize(2_500_000),
            Control::SetPeerBandwidth { window: 1, limit: BandwidthLimit::Hard },
            Control::SetPeerBandwidth { window: 2, limit: BandwidthLimit::Soft },
            Control::SetPeerBandwidth { window: 3, limit: BandwidthLimit::Dynamic },
        ] {
            let mut out = Vec::new();
            control.write(&mut chunk::Writer::new(), &mut out);
            assert_eq!(Control::parse(control.kind(), &out[12..]), Ok(Some(control)));
            assert!(Control::parse(control.kind(), &out[12..out.len() - 1]).is_err());
        }
    }

    #[test]
    fn a_bandwidth_limit_has_three_types() {
        assert_eq!(Control::parse(MessageKind::SetPeerBandwidth, &[0, 0, 0, 1, 3]), Err(Error::LimitType(3)));
    }
}
