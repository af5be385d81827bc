//! The packets of a compound packet, one after the other (RFC 3550 section 6.1).

use super::{
    Bitrate, Extended, Nack, ReceiverReport, SenderReport, TransportFeedback, bye, format, kind, u32_at,
};

/// The packets in a datagram.
#[derive(Clone, Copy, Debug)]
pub struct Compound<'a> {
    rest: &'a [u8],
}

/// One RTCP packet.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// SR (RFC 3550 section 6.4.1).
    SenderReport(SenderReport<'a>),
    /// RR (section 6.4.2).
    ReceiverReport(ReceiverReport<'a>),
    /// Generic NACK (RFC 4585 section 6.2.1).
    Nack(Nack<'a>),
    /// Transport-wide congestion control.
    TransportFeedback(TransportFeedback<'a>),
    /// PLI (RFC 4585 section 6.3.1).
    PictureLoss {
        /// The SSRC of the receiver that asks.
        sender: u32,
        /// The stream that needs a keyframe.
        media: u32,
    },
    /// FIR (RFC 5104 section 4.3.1).
    FullIntraRequest,
    /// REMB.
    Bitrate(Bitrate<'a>),
    /// XR (RFC 3611).
    Extended(Extended<'a>),
    /// A packet of a type that weir has no use for.
    Other {
        /// The packet type.
        kind: u8,
        /// The count of reports, or the feedback message type.
        format: u8,
    },
}

/// Why a datagram is no compound packet, from the packet in question on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ParseError {
    /// The datagram ends inside a packet.
    #[error("an RTCP packet is cut short")]
    CutShort,
    /// Another version of RTP, or no RTCP.
    #[error("RTCP version {0}; only version 2 exists in the field")]
    Version(u8),
    /// More padding than packet.
    #[error("padding of {0} bytes does not fit the RTCP packet")]
    Padding(u8),
    /// The content contradicts the type.
    #[error("an RTCP packet of type {0} is malformed")]
    Malformed(u8),
}

impl<'a> Compound<'a> {
    /// The packets of a decrypted datagram.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn split(&mut self) -> Result<Packet<'a>, ParseError> {
        let &[first, kind, a, b] = self.rest.first_chunk().ok_or(ParseError::CutShort)?;
        if first >> 6 != 2 {
            return Err(ParseError::Version(first >> 6));
        }
        let length = 4 + 4 * usize::from(u16::from_be_bytes([a, b]));
        let (packet, rest) = self.rest.split_at_checked(length).ok_or(ParseError::CutShort)?;
        self.rest = rest;
        let mut body = &packet[4..];
        if first & 0x20 != 0 {
            let padding = body.last().copied().unwrap_or(0);
            let kept = body.len().checked_sub(padding.into()).filter(|_| padding != 0);
            body = &body[..kept.ok_or(ParseError::Padding(padding))?];
        }
        Packet::parse(kind, first & 0x1F, body).ok_or(ParseError::Malformed(kind))
    }
}

impl<'a> Iterator for Compound<'a> {
    type Item = Result<Packet<'a>, ParseError>;

    /// The next packet. A malformed one is passed over; after one whose end is unknown no packet can be read.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let packet = self.split();
        if matches!(packet, Err(ParseError::CutShort | ParseError::Version(_))) {
            self.rest = &[];
        }
        Some(packet)
    }
}

impl<'a> Packet<'a> {
    fn parse(kind: u8, format: u8, body: &'a [u8]) -> Option<Self> {
        Some(match (kind, format) {
            (kind::SENDER_REPORT, count) => Self::SenderReport(SenderReport::parse(count, body)?),
            (kind::RECEIVER_REPORT, count) => Self::ReceiverReport(ReceiverReport::parse(count, body)?),
            (kind::BYE, count) if !bye::is_whole(count, body) => return None,
            (kind::TRANSPORT_FEEDBACK, format::NACK) => Self::Nack(Nack::parse(body)?),
            (kind::TRANSPORT_FEEDBACK, format::TRANSPORT_CC) => {
                Self::TransportFeedback(TransportFeedback::parse(body)?)
            }
            (kind::PAYLOAD_FEEDBACK, format::PICTURE_LOSS) => {
                Self::PictureLoss { sender: u32_at(body, 0)?, media: u32_at(body, 4)? }
            }
            (kind::PAYLOAD_FEEDBACK, format::FULL_INTRA_REQUEST) => {
                let entries = body.get(8..)?;
                entries.len().is_multiple_of(8).then_some(Self::FullIntraRequest)?
            }
            (kind::PAYLOAD_FEEDBACK, format::APPLICATION) if body.get(8..12) == Some(b"REMB") => {
                Self::Bitrate(Bitrate::parse(body)?)
            }
            (kind::EXTENDED, _) => Self::Extended(Extended::parse(body)?),
            (kind, format) => Self::Other { kind, format },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{append_bye, append_canonical_name, append_picture_loss, append_receiver_report};
    use super::*;

    #[test]
    fn packets_follow_each_other() {
        let mut bytes = Vec::new();
        append_receiver_report(1, &[], &mut bytes);
        append_canonical_name(1, "weir", &mut bytes);
        append_picture_loss(1, 2, &mut bytes);
        append_bye(1, &mut bytes);
        let packets: Vec<_> = Compound::new(&bytes).map(Result::unwrap).collect();
        assert!(matches!(
            packets[..],
            [
                Packet::ReceiverReport(_),
                Packet::Other { kind: kind::DESCRIPTION, .. },
                Packet::PictureLoss { sender: 1, media: 2 },
                Packet::Other { kind: kind::BYE, .. }
            ]
        ));
    }

    #[test]
    fn padding_is_taken_off_and_must_fit() {
        let mut bytes = vec![0xA1, 206, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4];
        let mut packets = Compound::new(&bytes);
        assert!(matches!(packets.next(), Some(Ok(Packet::PictureLoss { sender: 1, media: 2 }))));
        assert!(packets.next().is_none());
        for padding in [0, 13] {
            bytes[15] = padding;
            assert_eq!(Compound::new(&bytes).next().unwrap().unwrap_err(), ParseError::Padding(padding));
        }
    }

    #[test]
    fn a_malformed_packet_is_passed_over_and_a_cut_one_ends_the_compound() {
        let mut bytes = vec![0x81, 206, 0, 1, 0, 0, 0, 1];
        append_bye(7, &mut bytes);
        bytes.extend([0x80, 203, 0]);
        let packets: Vec<_> = Compound::new(&bytes).collect();
        assert!(matches!(
            packets[..],
            [
                Err(ParseError::Malformed(206)),
                Ok(Packet::Other { kind: kind::BYE, .. }),
                Err(ParseError::CutShort)
            ]
        ));
    }

    #[test]
    fn unknown_types_are_named() {
        let packet = Compound::new(&[0x85, 204, 0, 0]).next().unwrap().unwrap();
        assert!(matches!(packet, Packet::Other { kind: 204, format: 5 }));
    }
}
