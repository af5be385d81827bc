//! The codecs of pictures that RTP carries, and what counting needs of their payloads: where a frame begins, what is a keyframe, and
//! what a decoder has to have before it. Nothing here looks into a picture.

use crate::account::Hints;
use crate::piece::{Piece, Unreadable};
use crate::sdp::Format;
use crate::{av1, h264, h265, vp8, vp9};

/// The most bytes of a unit that [`VideoCodec::unit_heads`] gives.
pub const UNIT_HEAD: usize = 64;

/// A codec of pictures whose payloads are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoCodec {
    /// RFC 7741.
    Vp8,
    /// RFC 6184.
    H264,
    /// AOM's "RTP Payload Format For AV1".
    Av1,
    /// RFC 9628.
    Vp9,
    /// RFC 7798.
    H265,
}

impl VideoCodec {
    /// All, in the order in which Chromium 140 offers them (H.265 where its machine decodes it).
    pub const ALL: [Self; 5] = [Self::Vp8, Self::H264, Self::Av1, Self::Vp9, Self::H265];

    /// The encoding name (`a=rtpmap`): RFC 7741 section 6.1, RFC 6184 section 8.2.1, "RTP Payload Format For AV1" section 7.2.1, RFC 9628
    /// section 7, RFC 7798 section 7.2.1.
    pub fn encoding_name(self) -> &'static str {
        match self {
            Self::Vp8 => "VP8",
            Self::H264 => "H264",
            Self::Av1 => "AV1",
            Self::Vp9 => "VP9",
            Self::H265 => "H265",
        }
    }

    /// The codec's usual name, as other protocols have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            other => other.encoding_name(),
        }
    }

    /// The codec of a format. H.265 whose payloads have the DONL field is not read (RFC 7798 section 4.4.1: where
    /// sprop-max-don-diff is greater than 0).
    pub fn of(format: &Format) -> Option<Self> {
        let has_decoding_order =
            format.parameter("sprop-max-don-diff").is_some_and(|most| most.trim() != "0");
        let codec = Self::ALL.into_iter().find(|codec| format.is(codec.encoding_name()));
        codec.filter(|codec| *codec != Self::H265 || !has_decoding_order)
    }

    /// What a decrypted payload says of its packet.
    pub fn hints(self, payload: &[u8]) -> Hints {
        if payload.is_empty() {
            return Hints { padding: true, ..Hints::default() };
        }
        let (start, keyframe) = match self {
            Self::Vp8 => vp8::marks(payload),
            Self::H264 => (Some(h264::starts_frame(payload)), Some(h264::is_keyframe(payload))),
            Self::Av1 => av1::marks(payload),
            Self::Vp9 => vp9::marks(payload),
            Self::H265 => h265::marks(payload),
        };
        Hints { start, keyframe, padding: false }
    }

    /// Whether units have their lengths in front of them where frames are put together. Those of VP8 and VP9 are frames.
    pub(crate) fn has_units(self) -> bool {
        matches!(self, Self::H264 | Self::H265 | Self::Av1)
    }

    /// Whether the types of units say what is a keyframe.
    pub(crate) fn is_key_by_unit(self) -> bool {
        matches!(self, Self::H264 | Self::H265)
    }

    /// Whether a unit that begins so makes its access unit a keyframe.
    pub(crate) fn is_key_unit(self, first: u8) -> bool {
        match self {
            Self::H264 => first & 0x1F == 5,
            Self::H265 => h265::is_random_access(first),
            Self::Vp8 | Self::Vp9 | Self::Av1 => false,
        }
    }

    /// The pieces of units in a payload, in their order.
    pub(crate) fn pieces<'a>(
        self,
        payload: &'a [u8],
        take: &mut impl FnMut(Piece<'a>),
    ) -> Result<(), Unreadable> {
        match self {
            Self::Vp8 => vp8::pieces(payload, take),
            Self::H264 => h264::pieces(payload, take),
            Self::Av1 => av1::pieces(payload, take),
            Self::Vp9 => vp9::pieces(payload, take),
            Self::H265 => h265::pieces(payload, take),
        }
    }

    /// Gives each NAL unit or OBU that begins in a payload: all of it that is there, or, where its header is apart from it, its first bytes,
    /// [`UNIT_HEAD`] at the most.
    pub fn unit_heads(self, payload: &[u8], mut take: impl FnMut(&[u8])) {
        if !self.has_units() {
            return;
        }
        let mut give = |piece: Piece<'_>| {
            let header = piece.header.as_slice();
            if !piece.start {
                return;
            }
            if header.is_empty() {
                return take(piece.bytes);
            }
            let mut head = [0; UNIT_HEAD];
            let length = piece.bytes.len().min(UNIT_HEAD - header.len());
            head[..header.len()].copy_from_slice(header);
            head[header.len()..header.len() + length].copy_from_slice(&piece.bytes[..length]);
            take(&head[..header.len() + length]);
        };
        // What is in front of the fault is given.
        _ = self.pieces(payload, &mut give);
    }

    /// The parameter sets in a session description, as NAL units. Of codecs without such there are none.
    pub fn described_sets(self, format: &Format) -> Vec<Vec<u8>> {
        match self {
            Self::H264 => h264::described_parameter_sets(format),
            Self::H265 => h265::described_parameter_sets(format),
            Self::Vp8 | Self::Vp9 | Self::Av1 => Vec::new(),
        }
    }
}

impl std::fmt::Display for VideoCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_codec_is_known_by_its_encoding_name_in_any_case() {
        let format = |name: &str| Format { name: name.to_owned(), ..Format::default() };
        for codec in VideoCodec::ALL {
            assert_eq!(VideoCodec::of(&format(codec.encoding_name())), Some(codec));
            assert_eq!(VideoCodec::of(&format(&codec.encoding_name().to_lowercase())), Some(codec));
        }
        assert_eq!(VideoCodec::of(&format("H266")), None);
        assert_eq!(VideoCodec::of(&format("rtx")), None);
    }

    #[test]
    fn a_payload_of_nothing_is_padding_in_every_codec() {
        for codec in VideoCodec::ALL {
            assert_eq!(codec.hints(&[]), Hints { padding: true, ..Hints::default() });
        }
    }

    proptest! {
        #[test]
        fn any_payload_is_read_without_harm(payload in prop::collection::vec(any::<u8>(), 0..80)) {
            for codec in VideoCodec::ALL {
                let mut length = 0;
                _ = codec.pieces(&payload, &mut |piece| length += piece.bytes.len());
                prop_assert!(length <= payload.len(), "{codec}: no byte is given twice");
                codec.unit_heads(&payload, |head| assert!(head.len() <= payload.len().max(UNIT_HEAD)));
                codec.hints(&payload);
            }
        }
    }
}
