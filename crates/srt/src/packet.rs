//! Packets: their headers, and what control packets say (draft-sharabayko-srt-01, section 3).

use crate::loss_report::LossReport;
use crate::sequence::SequenceNumber;

/// Bytes of a header.
pub const HEADER_LENGTH: usize = 16;
/// Bytes of a payload at the most: 1,500 bytes less the headers of IPv4, UDP and SRT.
pub const MOST_PAYLOAD: usize = 1_456;
/// Bytes of a datagram at the most. libsrt's never have more than 1,472.
pub const MOST_DATAGRAM: usize = HEADER_LENGTH + MOST_PAYLOAD;

const CONTROL: u32 = 0x8000_0000;
const IN_ORDER: u32 = 1 << 29;
const RETRANSMITTED: u32 = 1 << 26;
const MESSAGE_NUMBER: u32 = RETRANSMITTED - 1;
/// "A PP equal to "11b" indicates a packet that forms the whole message" (section 4.2.1).
const WHOLE_MESSAGE: u32 = 0b11 << 30;

const HANDSHAKE: u16 = 0x0000;
const KEEP_ALIVE: u16 = 0x0001;
const ACK: u16 = 0x0002;
const NAK: u16 = 0x0003;
const CONGESTION_WARNING: u16 = 0x0004;
const SHUTDOWN: u16 = 0x0005;
const ACKACK: u16 = 0x0006;
const DROP_REQUEST: u16 = 0x0007;
const PEER_ERROR: u16 = 0x0008;
const USER_DEFINED: u16 = 0x7FFF;
/// Subtypes of the user-defined type: SRT_CMD_KMREQ and SRT_CMD_KMRSP.
const KEY_MATERIAL_REQUEST: u16 = 3;
const KEY_MATERIAL_RESPONSE: u16 = 4;

/// Whom a datagram is for: the fourth word of any header (section 3).
pub fn destination(bytes: &[u8]) -> Option<u32> {
    bytes.get(12..HEADER_LENGTH)?.try_into().ok().map(u32::from_be_bytes)
}

/// The bytes are no packet of SRT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// They end before their header, or before a field does that the type has.
    #[error("a packet of {0} bytes is too short for its type")]
    TooShort(usize),
    /// More than any packet has.
    #[error("a packet of {0} bytes is longer than any of SRT")]
    TooLong(usize),
}

/// One packet.
#[derive(Clone, Debug)]
pub enum Packet<'a> {
    /// Data.
    Data(DataHeader, &'a [u8]),
    /// Control.
    Control(ControlHeader, Control<'a>),
}

/// The header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The number of the packet.
    pub sequence_number: SequenceNumber,
    /// Whether the packet is a whole message, as all of live mode are.
    pub is_whole: bool,
    /// KK: 0 for none, 1 for the even key, 2 for the odd one.
    pub key: u8,
    /// Whether it was sent before.
    pub retransmitted: bool,
    /// The number of its message, 26 bits.
    pub message_number: u32,
    /// Microseconds since the sender's connection began, 32 bits that wrap.
    pub timestamp: u32,
    /// The socket that it is for.
    pub destination: u32,
}

/// What all control packets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlHeader {
    /// As in data packets.
    pub timestamp: u32,
    /// The socket that it is for.
    pub destination: u32,
}

/// What a control packet says.
#[derive(Clone, Debug)]
pub enum Control<'a> {
    /// A handshake, for [`Handshake::parse`](crate::handshake::Handshake::parse).
    Handshake(&'a [u8]),
    /// The sender is still there.
    KeepAlive,
    /// An acknowledgement.
    Ack(Acknowledgement),
    /// A loss report.
    Nak(LossReport<'a>),
    /// Reserved.
    CongestionWarning,
    /// The sender ends the connection.
    Shutdown,
    /// The full acknowledgement of this number has come.
    AckAck(u32),
    /// These packets will not be sent again.
    DropRequest {
        /// The first of them.
        first: SequenceNumber,
        /// The last of them.
        last: SequenceNumber,
    },
    /// The peer's application failed.
    PeerError(u32),
    /// Keys to come.
    KeyMaterialRequest(&'a [u8]),
    /// Keys were taken.
    KeyMaterialResponse(&'a [u8]),
    /// A type that is in no list.
    Unknown(u16),
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Its own number; 0 of light ones, which are not acknowledged.
    pub number: u32,
    /// The first packet that is not acknowledged.
    pub next: SequenceNumber,
    /// What else there is in one that is not light: microseconds of RTT and RTTVar, and packets for which there is room.
    pub state: Option<[u32; 3]>,
    /// Packets a second, the link's capacity in packets a second, and bytes a second, if it has them.
    pub rates: Option<[u32; 3]>,
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is no packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_LENGTH>() else {
            return Err(PacketError::TooShort(bytes.len()));
        };
        if bytes.len() > MOST_DATAGRAM {
            return Err(PacketError::TooLong(bytes.len()));
        }
        let [first, second, timestamp, destination] = words(header);
        if first & CONTROL == 0 {
            let header = DataHeader {
                sequence_number: SequenceNumber::new(first),
                is_whole: second & WHOLE_MESSAGE == WHOLE_MESSAGE,
                key: (second >> 27 & 0b11) as u8,
                retransmitted: second & RETRANSMITTED != 0,
                message_number: second & MESSAGE_NUMBER,
                timestamp,
                destination,
            };
            return Ok(Self::Data(header, rest));
        }
        let too_short = PacketError::TooShort(bytes.len());
        let word =
            |at: usize| rest.get(at * 4..).and_then(<[u8]>::first_chunk).map(|it| u32::from_be_bytes(*it));
        let three = |at: usize| Some([word(at)?, word(at + 1)?, word(at + 2)?]);
        let control = match (first >> 16) as u16 & 0x7FFF {
            HANDSHAKE => Control::Handshake(rest),
            KEEP_ALIVE => Control::KeepAlive,
            ACK => Control::Ack(Acknowledgement {
                number: second,
                next: SequenceNumber::new(word(0).ok_or(too_short)?),
                state: three(1),
                rates: three(4),
            }),
            NAK => Control::Nak(LossReport::new(rest)),
            CONGESTION_WARNING => Control::CongestionWarning,
            // Control packets without a field have four bytes of zeros behind the header where libsrt sends them.
            SHUTDOWN => Control::Shutdown,
            ACKACK => Control::AckAck(second),
            DROP_REQUEST => Control::DropRequest {
                first: SequenceNumber::new(word(0).ok_or(too_short)?),
                last: SequenceNumber::new(word(1).ok_or(too_short)?),
            },
            PEER_ERROR => Control::PeerError(second),
            USER_DEFINED if first as u16 == KEY_MATERIAL_REQUEST => Control::KeyMaterialRequest(rest),
            USER_DEFINED if first as u16 == KEY_MATERIAL_RESPONSE => Control::KeyMaterialResponse(rest),
            kind => Control::Unknown(kind),
        };
        Ok(Self::Control(ControlHeader { timestamp, destination }, control))
    }

    /// The socket that it is for.
    pub fn destination(&self) -> u32 {
        match self {
            Self::Data(header, _) => header.destination,
            Self::Control(header, _) => header.destination,
        }
    }
}

fn words(header: &[u8; HEADER_LENGTH]) -> [u32; 4] {
    let (words, _) = header.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_be_bytes(words[at]))
}

impl DataHeader {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let second = if self.is_whole { WHOLE_MESSAGE } else { 0 }
            | u32::from(self.key & 0b11) << 27
            | if self.retransmitted { RETRANSMITTED } else { 0 }
            | self.message_number & MESSAGE_NUMBER;
        for word in [self.sequence_number.value(), second & !IN_ORDER, self.timestamp, self.destination] {
            out.extend(word.to_be_bytes());
        }
    }
}

impl ControlHeader {
    fn write(self, kind: u16, subtype: u16, information: u32, out: &mut Vec<u8>) {
        let first = CONTROL | u32::from(kind) << 16 | u32::from(subtype);
        for word in [first, information, self.timestamp, self.destination] {
            out.extend(word.to_be_bytes());
        }
    }

    /// Appends the header of a handshake, whose field follows.
    pub(crate) fn handshake(self, out: &mut Vec<u8>) {
        self.write(HANDSHAKE, 0, 0, out);
    }

    pub(crate) fn keep_alive(self, out: &mut Vec<u8>) {
        self.write(KEEP_ALIVE, 0, 0, out);
        out.extend([0; 4]);
    }

    pub(crate) fn shutdown(self, out: &mut Vec<u8>) {
        self.write(SHUTDOWN, 0, 0, out);
        out.extend([0; 4]);
    }

    pub(crate) fn ack(self, ack: &Acknowledgement, out: &mut Vec<u8>) {
        self.write(ACK, 0, ack.number, out);
        out.extend(ack.next.value().to_be_bytes());
        for word in ack.state.iter().chain(&ack.rates).flatten() {
            out.extend(word.to_be_bytes());
        }
    }

    pub(crate) fn ack_ack(self, number: u32, out: &mut Vec<u8>) {
        self.write(ACKACK, 0, number, out);
        out.extend([0; 4]);
    }

    /// Appends the header of a loss report, whose list follows.
    pub(crate) fn nak(self, out: &mut Vec<u8>) {
        self.write(NAK, 0, 0, out);
    }

    pub(crate) fn drop_request(self, first: SequenceNumber, last: SequenceNumber, out: &mut Vec<u8>) {
        // "In this case the Message Number field must be set to zero" (section 3.2.9): the packets are gone.
        self.write(DROP_REQUEST, 0, 0, out);
        out.extend(first.value().to_be_bytes());
        out.extend(last.value().to_be_bytes());
    }

    pub(crate) fn key_material(self, is_request: bool, message: &[u8], out: &mut Vec<u8>) {
        let subtype = if is_request { KEY_MATERIAL_REQUEST } else { KEY_MATERIAL_RESPONSE };
        self.write(USER_DEFINED, subtype, 0, out);
        out.extend_from_slice(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_packet_is_written_and_read() {
        let header = DataHeader {
            sequence_number: SequenceNumber::new(0x7FFF_FFFF),
            is_whole: true,
            key: 2,
            retransmitted: true,
            message_number: 0x03FF_FFFF,
            timestamp: u32::MAX,
            destination: 7,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        bytes.extend(b"payload");
        let Ok(Packet::Data(read, payload)) = Packet::parse(&bytes) else { panic!("it is data") };
        assert_eq!((read, payload), (header, &b"payload"[..]));
    }

    #[test]
    fn acknowledgements_are_light_or_full() {
        let header = ControlHeader { timestamp: 1, destination: 2 };
        for (state, rates, length) in
            [(None, None, 20), (Some([1, 2, 3]), None, 32), (Some([1, 2, 3]), Some([4, 5, 6]), 44)]
        {
            let ack = Acknowledgement { number: 9, next: SequenceNumber::new(4), state, rates };
            let mut bytes = Vec::new();
            header.ack(&ack, &mut bytes);
            assert_eq!(bytes.len(), length);
            let Ok(Packet::Control(_, Control::Ack(read))) = Packet::parse(&bytes) else { panic!("an ACK") };
            assert_eq!(read, ack);
        }
    }

    #[test]
    fn what_is_too_short_or_too_long_is_refused() {
        assert_eq!(Packet::parse(&[0; 15]).unwrap_err(), PacketError::TooShort(15));
        assert_eq!(Packet::parse(&[0; 1_473]).unwrap_err(), PacketError::TooLong(1_473));
        let mut ack = vec![0x80, 2, 0, 0];
        ack.resize(18, 0);
        assert_eq!(Packet::parse(&ack).unwrap_err(), PacketError::TooShort(18));
    }
}
