//! What one payload holds, borrowed.

use crate::piece::{Header, Piece, Unreadable};

use super::{FRAGMENT_END, FRAGMENT_START, REFERENCE, kind};

/// One decrypted payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// A whole NAL unit (section 5.6).
    Single(&'a [u8]),
    /// Several whole NAL units: STAP-A (section 5.7.1).
    Aggregate(Aggregate<'a>),
    /// A part of a NAL unit: FU-A (section 5.8).
    Fragment {
        /// The NAL unit's first byte, which is not in `bytes`.
        header: u8,
        /// The first part.
        start: bool,
        /// The last part.
        end: bool,
        /// The part, without the NAL unit's first byte.
        bytes: &'a [u8],
    },
}

/// Why bytes are no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PayloadError {
    /// The payload is empty, or ends inside a header.
    #[error("the H.264 payload is cut short")]
    CutShort,
    /// STAP-B, MTAP and FU-B belong to packetisation mode 2, which WebRTC has not; 0, 30 and 31 mean nothing.
    #[error("H.264 payload type {0}; packetisation mode 1 has no such type")]
    Type(u8),
}

/// The NAL units of an aggregation packet; what is cut short is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregate<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Aggregate<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.rest.split_first_chunk()?;
        let unit = rest.get(..u16::from_be_bytes(*length).into())?;
        self.rest = &rest[unit.len()..];
        Some(unit)
    }
}

impl<'a> Payload<'a> {
    /// What the payload holds.
    ///
    /// # Errors
    ///
    /// When it is cut short, or of a type that packetisation mode 1 has not.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PayloadError> {
        let (&first, rest) = bytes.split_first().ok_or(PayloadError::CutShort)?;
        match first & kind::MASK {
            1..=23 => Ok(Self::Single(bytes)),
            kind::STAP_A => Ok(Self::Aggregate(Aggregate { rest })),
            kind::FU_A => {
                let (&fragment, bytes) = rest.split_first().ok_or(PayloadError::CutShort)?;
                Ok(Self::Fragment {
                    header: first & REFERENCE | fragment & kind::MASK,
                    start: fragment & FRAGMENT_START != 0,
                    end: fragment & FRAGMENT_END != 0,
                    bytes,
                })
            }
            other => Err(PayloadError::Type(other)),
        }
    }

    /// The first byte of each NAL unit that begins here.
    fn begins(self) -> impl Iterator<Item = (u8, Option<u8>)> + use<'a> {
        let (alone, several) = match self {
            Self::Single(unit) => (Some((unit[0], unit.get(1).copied())), None),
            Self::Aggregate(units) => (None, Some(units)),
            Self::Fragment { header, start, bytes, .. } => {
                (start.then(|| (header, bytes.first().copied())), None)
            }
        };
        let several = several.into_iter().flatten();
        alone.into_iter().chain(several.filter_map(|unit| Some((*unit.first()?, unit.get(1).copied()))))
    }
}

/// The NAL units of a payload, or the fragment of one.
pub(crate) fn pieces<'a>(payload: &'a [u8], take: &mut impl FnMut(Piece<'a>)) -> Result<(), Unreadable> {
    match Payload::parse(payload) {
        Ok(Payload::Single(unit)) => take(Piece::whole(unit)),
        Ok(Payload::Aggregate(units)) => units.for_each(|unit| take(Piece::whole(unit))),
        Ok(Payload::Fragment { header, start, end, bytes }) => {
            let header = if start { Header::one(header) } else { Header::NONE };
            take(Piece { start, end, header, bytes });
        }
        Err(_) => return Err(Unreadable),
    }
    Ok(())
}

/// Whether a keyframe begins in this payload: an IDR slice, or the parameter sets that come before one.
pub fn is_keyframe(payload: &[u8]) -> bool {
    Payload::parse(payload).is_ok_and(|payload| {
        payload
            .begins()
            .any(|(header, _)| matches!(header & kind::MASK, kind::SLICE_IDR | kind::SEQUENCE_PARAMETER_SET))
    })
}

/// Whether this payload shows that a frame begins in it: a slice whose `first_mb_in_slice` is 0, or what
/// may only come in front of the first slice (H.264 section 7.4.1.2.3).
pub fn starts_frame(payload: &[u8]) -> bool {
    Payload::parse(payload).is_ok_and(|payload| {
        payload.begins().next().is_some_and(|(header, first)| match header & kind::MASK {
            // Exp-Golomb 0 is a single 1.
            1 | 2 | kind::SLICE_IDR => first.is_some_and(|first| first & 0x80 != 0),
            6..=9 | 14..=18 => true,
            _ => false,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_of_mode_1_are_read() {
        assert_eq!(Payload::parse(&[0x65, 1]), Ok(Payload::Single(&[0x65, 1])));
        let aggregate = [0x78, 0, 2, 0x67, 1, 0, 1, 0x68, 0, 9, 1];
        let Ok(Payload::Aggregate(units)) = Payload::parse(&aggregate) else { panic!("no aggregate") };
        assert_eq!(units.collect::<Vec<_>>(), [&[0x67, 1][..], &[0x68]]);
        let fragment = Payload::Fragment { header: 0x65, start: true, end: false, bytes: &[7] };
        assert_eq!(Payload::parse(&[0x7C, 0x85, 7]), Ok(fragment));
    }

    #[test]
    fn other_modes_are_named() {
        for kind in [0, 25, 26, 27, 29, 30, 31] {
            assert_eq!(Payload::parse(&[kind, 0, 0]), Err(PayloadError::Type(kind)));
        }
        assert_eq!(Payload::parse(&[]), Err(PayloadError::CutShort));
        assert_eq!(Payload::parse(&[28]), Err(PayloadError::CutShort));
    }

    #[test]
    fn beginnings_and_keyframes_are_seen_in_all_kinds_of_payload() {
        let keyframes: [&[u8]; 4] =
            [&[0x65, 0x88], &[0x78, 0, 1, 9, 0, 2, 0x67, 1], &[0x7C, 0x85, 0x88], &[0x67, 1]];
        for payload in keyframes {
            assert!(is_keyframe(payload) && starts_frame(payload), "{payload:?}");
        }
        assert!(starts_frame(&[0x41, 0x9A]) && !is_keyframe(&[0x41, 0x9A]));
        // A later slice of a picture, and a later part of a slice.
        assert!(!starts_frame(&[0x41, 0x40]));
        assert!(!starts_frame(&[0x7C, 0x05, 0x88]) && !is_keyframe(&[0x7C, 0x05, 0x88]));
    }
}
