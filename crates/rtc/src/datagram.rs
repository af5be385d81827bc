//! Which protocol a datagram belongs to, where several share a socket (RFC 7983 section 7, RFC 5761 section 4).

/// The protocol of a datagram, recognised by its first two bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Datagram {
    /// STUN, and TURN messages: a first byte of 0 to 3.
    Stun,
    /// ZRTP: 16 to 19.
    Zrtp,
    /// DTLS: 20 to 63.
    Dtls,
    /// TURN channel data: 64 to 79.
    TurnChannel,
    /// RTP or SRTP: 128 to 191, and a second byte that is no RTCP packet type.
    Rtp,
    /// RTCP or SRTCP: 128 to 191, and a packet type of 192 to 223 in the second byte.
    Rtcp,
    /// Anything else, and what is too short to be recognised.
    Unknown,
}

impl Datagram {
    /// The protocol of this datagram.
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        match *bytes {
            [128..=191, second, ..] => {
                if (192..=223).contains(&second) {
                    Self::Rtcp
                } else {
                    Self::Rtp
                }
            }
            [0..=3, _, ..] => Self::Stun,
            [16..=19, _, ..] => Self::Zrtp,
            [20..=63, _, ..] => Self::Dtls,
            [64..=79, _, ..] => Self::TurnChannel,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_protocols_apart_at_the_limits_of_each_range() {
        let kinds = [0, 3, 4, 15, 16, 19, 20, 63, 64, 79, 80, 127, 128, 191, 192, 255]
            .map(|first| Datagram::of(&[first, 0, 0, 0]));
        use Datagram::{Dtls, Rtp, Stun, TurnChannel, Unknown, Zrtp};
        assert_eq!(
            kinds,
            [
                Stun,
                Stun,
                Unknown,
                Unknown,
                Zrtp,
                Zrtp,
                Dtls,
                Dtls,
                TurnChannel,
                TurnChannel,
                Unknown,
                Unknown,
                Rtp,
                Rtp,
                Unknown,
                Unknown
            ]
        );
    }

    #[test]
    fn a_packet_type_of_192_to_223_is_rtcp_and_a_marked_payload_type_is_not() {
        let kinds = [96, 111, 191, 192, 200, 206, 223, 224, 255].map(|second| Datagram::of(&[0x80, second]));
        use Datagram::{Rtcp, Rtp};
        assert_eq!(kinds, [Rtp, Rtp, Rtp, Rtcp, Rtcp, Rtcp, Rtcp, Rtp, Rtp]);
    }

    #[test]
    fn what_is_too_short_is_unknown() {
        assert_eq!(Datagram::of(&[]), Datagram::Unknown);
        assert_eq!(Datagram::of(&[0x80]), Datagram::Unknown);
    }
}
