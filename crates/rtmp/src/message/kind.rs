//! The one-byte type of a message.

use std::fmt;

/// What a message carries (RTMP 1.0 sections 5.4, 6.2 and 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// The sender's chunk size (1, section 5.4.1).
    SetChunkSize,
    /// A message cut short (2, section 5.4.2).
    Abort,
    /// Bytes received so far (3, section 5.4.3).
    Acknowledgement,
    /// A user control event (4, section 6.2).
    UserControl,
    /// How many bytes the sender sends between acknowledgements (5, section 5.4.4).
    WindowAcknowledgementSize,
    /// How many bytes the receiver may send between acknowledgements (6, section 5.4.5).
    SetPeerBandwidth,
    /// An audio frame (8, section 7.1.4).
    Audio,
    /// A video frame (9, section 7.1.5).
    Video,
    /// Metadata in AMF 3, in practice a zero byte and AMF 0 (15, section 7.1.2).
    DataAmf3,
    /// A shared object in AMF 3 (16, section 7.1.3).
    SharedObjectAmf3,
    /// A command in AMF 3, in practice a zero byte and AMF 0 (17, section 7.1.1).
    CommandAmf3,
    /// Metadata in AMF 0 (18, section 7.1.2).
    DataAmf0,
    /// A shared object in AMF 0 (19, section 7.1.3).
    SharedObjectAmf0,
    /// A command in AMF 0 (20, section 7.1.1).
    CommandAmf0,
    /// Several messages in one (22, section 7.1.6).
    Aggregate,
    /// A type that the specification does not name.
    Other(u8),
}

impl MessageKind {
    /// The type id on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Self::SetChunkSize => 1,
            Self::Abort => 2,
            Self::Acknowledgement => 3,
            Self::UserControl => 4,
            Self::WindowAcknowledgementSize => 5,
            Self::SetPeerBandwidth => 6,
            Self::Audio => 8,
            Self::Video => 9,
            Self::DataAmf3 => 15,
            Self::SharedObjectAmf3 => 16,
            Self::CommandAmf3 => 17,
            Self::DataAmf0 => 18,
            Self::SharedObjectAmf0 => 19,
            Self::CommandAmf0 => 20,
            Self::Aggregate => 22,
            Self::Other(id) => id,
        }
    }

    /// The kind of a type id.
    pub const fn from_id(id: u8) -> Self {
        match id {
            1 => Self::SetChunkSize,
            2 => Self::Abort,
            3 => Self::Acknowledgement,
            4 => Self::UserControl,
            5 => Self::WindowAcknowledgementSize,
            6 => Self::SetPeerBandwidth,
            8 => Self::Audio,
            9 => Self::Video,
            15 => Self::DataAmf3,
            16 => Self::SharedObjectAmf3,
            17 => Self::CommandAmf3,
            18 => Self::DataAmf0,
            19 => Self::SharedObjectAmf0,
            20 => Self::CommandAmf0,
            22 => Self::Aggregate,
            other => Self::Other(other),
        }
    }

    /// Whether messages of this kind make up the stream that a viewer plays.
    pub const fn is_media(self) -> bool {
        matches!(self, Self::Audio | Self::Video | Self::DataAmf0 | Self::DataAmf3)
    }
}

impl fmt::Display for MessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(id) => write!(f, "type {id}"),
            named => write!(f, "{named:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_survives_the_round_trip() {
        for id in 0..=u8::MAX {
            assert_eq!(MessageKind::from_id(id).id(), id);
        }
    }
}
