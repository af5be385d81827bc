//! What E-RTMP v2 puts between the first byte of a tag and its codec: modifiers, and several tracks in one tag.

use super::{Error, FourCc};

/// How several tracks share a tag (E-RTMP v2, AvMultitrackType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Multitrack {
    /// One track, which is numbered.
    OneTrack,
    /// Several tracks of one codec.
    ManyTracks,
    /// Several tracks, each with its own codec.
    ManyTracksManyCodecs,
    /// A type that is reserved.
    Reserved(u8),
}

impl Multitrack {
    pub(super) fn from_id(id: u8) -> Self {
        match id {
            0 => Self::OneTrack,
            1 => Self::ManyTracks,
            2 => Self::ManyTracksManyCodecs,
            other => Self::Reserved(other),
        }
    }
}

/// The first part of an E-FLV header: the packet type and the modifiers before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModifierPrefix {
    pub(super) packet_type: u8,
    /// What a timestamp-offset modifier adds to the message's timestamp, in nanoseconds.
    pub(super) nanoseconds: u32,
    /// Where what follows begins.
    pub(super) len: usize,
}

/// The second part: the codec, and the tracks before or behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracks {
    /// Of the tracks, if there are several, else that of the first part.
    pub(super) packet_type: u8,
    pub(super) multitrack: Option<Multitrack>,
    /// Of the first track.
    pub(super) codec: FourCc,
    /// The first track's number, when tracks are numbered.
    pub(super) track: u8,
    /// Where what follows begins.
    pub(super) len: usize,
}

/// The packet type that announces several tracks: 5 in audio, 6 in video.
#[derive(Clone, Copy, Debug)]
pub(super) struct MultitrackType(pub(super) u8);

/// The packet type that announces a modifier, in audio and video alike.
const MODIFIER: u8 = 7;

/// The modifier that is a timestamp offset (E-RTMP v2, TimestampOffsetNano).
const TIMESTAMP_OFFSET_NANO: u8 = 0;

impl ModifierPrefix {
    /// Parses a tag from its first byte on, whose low four bits are the packet type.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut rest = Cursor { bytes, at: 0 };
        let mut packet_type = rest.byte()? & 0x0F;
        let mut nanoseconds = 0;
        while packet_type == MODIFIER {
            let mut size = usize::from(rest.byte()?) + 1;
            if size == 256 {
                size = usize::from(u16::from_be_bytes([rest.byte()?, rest.byte()?])) + 1;
            }
            let modifier = rest.take(size)?;
            let types = rest.byte()?;
            if let (TIMESTAMP_OFFSET_NANO, [n2, n1, n0, ..]) = (types >> 4, modifier) {
                nanoseconds = u32::from_be_bytes([0, *n2, *n1, *n0]);
            }
            packet_type = types & 0x0F;
        }
        Ok(Self { packet_type, nanoseconds, len: rest.at })
    }

    /// Parses what follows in the same tag.
    pub(super) fn tracks(self, bytes: &[u8], several: MultitrackType) -> Result<Tracks, Error> {
        let mut rest = Cursor { bytes, at: self.len };
        let mut packet_type = self.packet_type;
        if packet_type != several.0 {
            let codec = rest.four_cc()?;
            return Ok(Tracks { packet_type, multitrack: None, codec, track: 0, len: rest.at });
        }
        let types = rest.byte()?;
        let multitrack = Multitrack::from_id(types >> 4);
        packet_type = types & 0x0F;
        if packet_type == several.0 {
            return Err(Error::NestedMultitrack);
        }
        // The codec of all tracks, or of the first: it lies in the same place.
        let codec = rest.four_cc()?;
        let track = rest.byte()?;
        if multitrack != Multitrack::OneTrack {
            rest.take(3)?;
        }
        Ok(Tracks { packet_type, multitrack: Some(multitrack), codec, track, len: rest.at })
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let taken = self.bytes[self.at..].get(..len).ok_or(Error::Truncated { length: self.bytes.len() })?;
        self.at += len;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    fn four_cc(&mut self) -> Result<FourCc, Error> {
        let taken = self.take(4)?;
        Ok(FourCc([taken[0], taken[1], taken[2], taken[3]]))
    }
}
