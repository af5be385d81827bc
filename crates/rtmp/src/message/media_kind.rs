//! The three kinds of message that a stream is made of.

use super::MessageKind;

/// A kind of message that viewers are sent (RTMP 1.0 sections 7.1.2, 7.1.4 and 7.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaKind {
    /// An audio tag.
    Audio,
    /// A video tag.
    Video,
    /// Metadata, cue points, and other data of the stream.
    Data,
}

impl MediaKind {
    /// The media kind of a message kind, if it has one.
    #[inline]
    pub const fn from_message_kind(kind: MessageKind) -> Option<Self> {
        match kind {
            MessageKind::Audio => Some(Self::Audio),
            MessageKind::Video => Some(Self::Video),
            MessageKind::DataAmf0 | MessageKind::DataAmf3 => Some(Self::Data),
            _ => None,
        }
    }

    /// The message kind that it is sent as.
    pub const fn message_kind(self) -> MessageKind {
        match self {
            Self::Audio => MessageKind::Audio,
            Self::Video => MessageKind::Video,
            Self::Data => MessageKind::DataAmf0,
        }
    }

    /// The chunk stream that weir sends it on. Any id would do; these are the ones that ffmpeg and librtmp use.
    pub const fn chunk_stream_id(self) -> u32 {
        match self {
            Self::Audio => 4,
            Self::Data => 5,
            Self::Video => 6,
        }
    }
}
