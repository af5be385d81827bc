//! One framed piece of a stream, shared by all who send it.

use std::sync::Arc;

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A video frame, or a part of one that is sent on its own.
    Video,
    /// An audio frame.
    Audio,
    /// Other media of the stream, such as cue points.
    Data,
    /// What a decoder needs to know before it decodes: codec settings, metadata. Not a media unit:
    /// it is not numbered, and no fault befalls it.
    Setup,
}

/// A framed piece of a stream. A clone shares the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) kind: Kind,
    /// Whether a viewer may start here.
    pub(crate) keyframe: bool,
    /// Media time in microseconds.
    pub(crate) timestamp: i64,
    /// Bytes of the media unit itself, without framing.
    pub(crate) payload: u32,
    /// As it goes onto a link.
    pub(crate) bytes: Arc<[u8]>,
}

impl Packet {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// What a viewer must be sent before the keyframe that it starts at.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// Which settings these are: openings of one version differ in timestamps at most.
    pub(crate) version: u64,
    pub(crate) packets: Box<[Packet]>,
}
