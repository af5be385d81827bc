//! One framed piece of a stream, shared by all who send it.

use std::ops::Range;
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
    /// Packets of a transport stream: its units, many in one packet.
    Transport,
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
    /// Units in it, all of one length. None: bytes that a fault has put in.
    pub(crate) units: u32,
    /// Bytes of the media units themselves, without framing.
    pub(crate) payload: u32,
    bytes: Arc<[u8]>,
    /// Where in `bytes` it lies, and how many bytes of framing lie before and behind that. Only some
    /// links want these: see [`View`].
    bare: Range<u32>,
    framing: (u16, u16),
}

/// Bytes beside its own that a packet takes in a log: its entry there, and the head and the rounding of its allocation.
/// A flood of messages of one byte is bounded by these.
const KEPT_WITH_EACH: u64 = 192;

/// What of a packet goes onto a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    /// All of it.
    #[default]
    Framed,
    /// What lies inside the framing that not every link wants.
    Bare,
}

impl Packet {
    /// One unit, framed as every link wants it.
    pub(crate) fn unit(
        kind: Kind,
        keyframe: bool,
        timestamp: i64,
        payload: usize,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Self {
        let bytes = bytes.into();
        let bare = 0..bytes.len() as u32;
        Self { kind, keyframe, timestamp, units: 1, payload: payload as u32, bytes, bare, framing: (0, 0) }
    }

    /// `units` units between `before` and `behind` bytes of framing, which some links go without.
    pub(crate) fn units(
        kind: Kind,
        units: usize,
        bytes: impl Into<Arc<[u8]>>,
        (before, behind): (usize, usize),
    ) -> Self {
        let bytes = bytes.into();
        let bare = before as u32..(bytes.len() - behind) as u32;
        let payload = bare.len() as u32;
        let framing = (before as u16, behind as u16);
        Self { kind, keyframe: true, timestamp: 0, units: units as u32, payload, bytes, bare, framing }
    }

    /// As it goes onto a link.
    pub(crate) fn view(&self, view: View) -> &[u8] {
        let (before, behind) = match view {
            View::Framed => (usize::from(self.framing.0), usize::from(self.framing.1)),
            View::Bare => (0, 0),
        };
        &self.bytes[self.bare.start as usize - before..self.bare.end as usize + behind]
    }

    /// All of its bytes.
    pub(crate) fn framed(&self) -> &[u8] {
        self.view(View::Framed)
    }

    /// Length of [`Self::framed`].
    pub(crate) fn len(&self) -> usize {
        self.bare.len() + usize::from(self.framing.0) + usize::from(self.framing.1)
    }

    /// Bytes that are kept for it: its own, and what goes with each packet however short it is.
    pub(crate) fn weight(&self) -> u64 {
        self.bytes.len() as u64 + KEPT_WITH_EACH
    }

    /// Units of which the last byte lies before byte `end` of `length`.
    pub(crate) fn units_before(&self, end: usize, length: usize) -> u64 {
        (end as u64 * u64::from(self.units)).checked_div(length as u64).unwrap_or(0)
    }

    /// Some of its units, without framing; the bytes are shared.
    pub(crate) fn slice(&self, units: Range<u32>) -> Self {
        let length = self.bare.len() as u32 / self.units.max(1);
        let bare = self.bare.start + units.start * length..self.bare.start + units.end * length;
        let payload = bare.len() as u32;
        Self { units: units.end - units.start, payload, bare, framing: (0, 0), ..self.clone() }
    }

    /// These bytes in its place: damaged, cut short, or put in by a fault.
    pub(crate) fn replaced(&self, units: u32, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { units, ..Self::units(self.kind, 0, bytes, (0, 0)) }
    }

    /// What lies inside the framing.
    pub(crate) fn bare(&self) -> &[u8] {
        self.view(View::Bare)
    }

    /// Whether nothing lies around it.
    pub(crate) fn is_bare(&self) -> bool {
        self.framing == (0, 0)
    }

    #[cfg(test)]
    pub(crate) fn shares_bytes_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }
}

/// Makes a packet, or a part of one, as links want it, its timestamp moved by the given microseconds; the
/// protocol knows where it stands.
pub(crate) type Remake = fn(&Packet, i64) -> Packet;

/// What decoders must know before they decode. All keyframes up to the next change share it.
#[derive(Debug)]
pub(crate) struct DecoderSettings {
    /// A number for each change.
    pub(crate) version: u64,
    /// As they came, each at the time of its own.
    pub(crate) packets: Box<[Packet]>,
}

impl DecoderSettings {
    /// Bytes that are kept for it.
    pub(crate) fn weight(&self) -> u64 {
        self.packets.iter().map(Packet::weight).sum()
    }
}

/// What a viewer must be sent before the keyframe that it starts at. Only a viewer that does start there has it framed:
/// a stream of small keyframes and large settings would otherwise be kept at thousands of times its size.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) settings: Arc<DecoderSettings>,
    /// The keyframe's media time in microseconds, at which all of it is sent.
    pub(crate) timestamp: i64,
    pub(crate) remake: Remake,
}

impl Opening {
    /// Which settings these are: openings of one version differ in timestamps at most.
    pub(crate) fn version(&self) -> u64 {
        self.settings.version
    }

    /// The same with a keyframe whose timestamp was moved by `by` microseconds.
    pub(crate) fn moved(&self, by: i64) -> Self {
        Self { timestamp: self.timestamp + by, ..self.clone() }
    }

    /// What is sent.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Packet> + '_ {
        self.settings.packets.iter().map(|packet| match self.timestamp - packet.timestamp {
            0 => packet.clone(),
            by => (self.remake)(packet, by),
        })
    }
}
