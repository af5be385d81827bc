//! Handshakes and their extensions (draft-sharabayko-srt-01, sections 3.2.1 and 4.3).

use crate::sequence::SequenceNumber;
use crate::stream_id;
use std::net::IpAddr;

/// Bytes of a handshake without extensions.
const FIXED: usize = 48;
/// Extensions that one handshake may have: there are eight kinds.
const MOST_EXTENSIONS: usize = 16;

/// "Extension Field: SRT magic code 0x4A17" (section 4.3.1.1).
pub(crate) const MAGIC: u16 = 0x4A17;
/// INDUCTION.
pub(crate) const INDUCTION: u32 = 1;
/// CONCLUSION.
pub(crate) const CONCLUSION: u32 = 0xFFFF_FFFF;

/// Flags of extensions (table 3).
pub(crate) const FLAG_HSREQ: u16 = 1;
pub(crate) const FLAG_KMREQ: u16 = 2;
pub(crate) const FLAG_CONFIG: u16 = 4;

const HSREQ: u16 = 1;
const HSRSP: u16 = 2;
const KMREQ: u16 = 3;
const KMRSP: u16 = 4;
const SID: u16 = 5;
const CONGESTION: u16 = 6;
const FILTER: u16 = 7;
const GROUP: u16 = 8;

/// Flags of the handshake extension message (table 6).
pub(crate) mod capability {
    pub(crate) const TSBPD_SEND: u32 = 0x01;
    pub(crate) const TSBPD_RECEIVE: u32 = 0x02;
    pub(crate) const CRYPT: u32 = 0x04;
    pub(crate) const TOO_LATE_DROP: u32 = 0x08;
    pub(crate) const PERIODIC_NAK: u32 = 0x10;
    pub(crate) const RETRANSMIT_FLAG: u32 = 0x20;
    pub(crate) const STREAM: u32 = 0x40;
    /// What this implementation does.
    pub(crate) const OURS: u32 =
        TSBPD_SEND | TSBPD_RECEIVE | CRYPT | TOO_LATE_DROP | PERIODIC_NAK | RETRANSMIT_FLAG;
}

/// The version of libsrt whose behaviour this is: 1.5.0.
pub(crate) const SRT_VERSION: u32 = 0x01_05_00;

/// The bytes are no handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// They end before the fields do that every handshake has.
    #[error("a handshake of {0} bytes is too short")]
    TooShort(usize),
    /// An extension is longer than what is there, or there are more of them than kinds.
    #[error("the extensions of the handshake are malformed")]
    Extensions,
}

/// What the two sides say of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Of the library: 0x010501 is 1.5.1.
    pub version: u32,
    /// Table 6.
    pub flags: u32,
    /// Milliseconds that it holds what it receives.
    pub receive_delay: u16,
    /// Milliseconds that it wants its peer to hold what it sends.
    pub send_delay: u16,
}

/// A handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// 4 or 5.
    pub version: u32,
    /// Length of keys in words of 64 bits; 0 for none.
    pub encryption: u16,
    /// Flags of extensions, or the magic code.
    pub extension: u16,
    /// The first data packet's number.
    pub initial_sequence_number: SequenceNumber,
    /// Bytes of an IP packet at the most.
    pub mtu: u32,
    /// Packets that may be on their way.
    pub flow_window: u32,
    /// What it is, or why it is refused.
    pub handshake_type: u32,
    /// The sender's socket.
    pub socket: u32,
    /// The cookie.
    pub cookie: u32,
    /// The receiver's address.
    pub address: [u8; 16],
    /// The handshake extension message, as a request or as a response.
    pub capabilities: Option<Capabilities>,
    /// The key material message, as a request or as a response. Four bytes are a state.
    pub key_material: Option<Vec<u8>>,
    /// What the caller asks for.
    pub stream_id: Option<String>,
    /// The congestion control, if it is named.
    pub congestion: Option<String>,
    /// Whether a packet filter is asked for.
    pub has_filter: bool,
    /// Whether a group is asked for.
    pub has_group: bool,
}

impl Handshake {
    /// Reads the field of a handshake packet.
    ///
    /// # Errors
    /// It is malformed.
    pub fn parse(field: &[u8]) -> Result<Self, HandshakeError> {
        let Some((fixed, mut rest)) = field.split_first_chunk::<FIXED>() else {
            return Err(HandshakeError::TooShort(field.len()));
        };
        let word = |at: usize| {
            let (words, _) = fixed.as_chunks::<4>();
            u32::from_be_bytes(words[at])
        };
        let mut read = Self {
            version: word(0),
            encryption: (word(1) >> 16) as u16,
            extension: word(1) as u16,
            initial_sequence_number: SequenceNumber::new(word(2)),
            mtu: word(3),
            flow_window: word(4),
            handshake_type: word(5),
            socket: word(6),
            cookie: word(7),
            ..Self::default()
        };
        read.address.copy_from_slice(&fixed[32..]);
        // An induction has none, whatever its field says; other bytes behind it are padding.
        if read.version < 5 || read.handshake_type == INDUCTION {
            return Ok(read);
        }
        for _ in 0..MOST_EXTENSIONS {
            let Some((head, after)) = rest.split_first_chunk::<4>() else { return Ok(read) };
            let kind = u16::from_be_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_be_bytes([head[2], head[3]])) * 4;
            let (contents, after) = after.split_at_checked(length).ok_or(HandshakeError::Extensions)?;
            read.extension(kind, contents)?;
            rest = after;
        }
        Err(HandshakeError::Extensions)
    }

    fn extension(&mut self, kind: u16, contents: &[u8]) -> Result<(), HandshakeError> {
        match kind {
            HSREQ | HSRSP => {
                let (words, _) = contents.as_chunks::<4>();
                let [version, flags, delays, ..] = words else { return Err(HandshakeError::Extensions) };
                let delays = u32::from_be_bytes(*delays);
                self.capabilities = Some(Capabilities {
                    version: u32::from_be_bytes(*version),
                    flags: u32::from_be_bytes(*flags),
                    receive_delay: (delays >> 16) as u16,
                    send_delay: delays as u16,
                });
            }
            KMREQ | KMRSP => self.key_material = Some(contents.to_vec()),
            SID => self.stream_id = Some(stream_id::read(contents).ok_or(HandshakeError::Extensions)?),
            CONGESTION => {
                self.congestion = Some(stream_id::read(contents).ok_or(HandshakeError::Extensions)?);
            }
            FILTER => self.has_filter = true,
            GROUP => self.has_group = true,
            _ => {}
        }
        Ok(())
    }

    /// Appends it, as a request of a caller or as a response of a listener.
    pub fn write(&self, is_request: bool, out: &mut Vec<u8>) {
        let fields = u32::from(self.encryption) << 16 | u32::from(self.extension);
        for word in [
            self.version,
            fields,
            self.initial_sequence_number.value(),
            self.mtu,
            self.flow_window,
            self.handshake_type,
            self.socket,
            self.cookie,
        ] {
            out.extend(word.to_be_bytes());
        }
        out.extend(self.address);
        let response = u16::from(!is_request);
        if let Some(said) = &self.capabilities {
            let delays = u32::from(said.receive_delay) << 16 | u32::from(said.send_delay);
            begin(HSREQ + response, 12, out);
            for word in [said.version, said.flags, delays] {
                out.extend(word.to_be_bytes());
            }
        }
        if let Some(message) = &self.key_material {
            begin(KMREQ + response, message.len(), out);
            out.extend_from_slice(message);
        }
        if let Some(text) = &self.stream_id {
            begin(SID, text.len().next_multiple_of(4), out);
            stream_id::write(text, out);
        }
    }
}

fn begin(kind: u16, bytes: usize, out: &mut Vec<u8>) {
    out.extend(kind.to_be_bytes());
    out.extend(((bytes / 4) as u16).to_be_bytes());
}

/// An address as handshakes have it. libsrt writes the bytes of each word in reverse.
pub(crate) fn address_field(address: IpAddr) -> [u8; 16] {
    let mut field = [0; 16];
    match address {
        IpAddr::V4(address) => field[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => field = address.octets(),
    }
    field.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_is_written_and_read() {
        let said = Handshake {
            version: 5,
            encryption: 2,
            extension: FLAG_HSREQ | FLAG_KMREQ | FLAG_CONFIG,
            initial_sequence_number: SequenceNumber::new(77),
            mtu: 1_500,
            flow_window: 8_192,
            handshake_type: CONCLUSION,
            socket: 5,
            cookie: 6,
            address: address_field("127.0.0.1".parse().unwrap()),
            capabilities: Some(Capabilities {
                version: SRT_VERSION,
                flags: capability::OURS,
                receive_delay: 120,
                send_delay: 7,
            }),
            key_material: Some(vec![1; 56]),
            stream_id: Some("#!::r=a".to_owned()),
            ..Handshake::default()
        };
        let mut bytes = Vec::new();
        said.write(true, &mut bytes);
        assert_eq!(Handshake::parse(&bytes).unwrap(), said);
        assert_eq!(bytes[32..36], [1, 0, 0, 127]);
        for length in 0..FIXED {
            assert_eq!(Handshake::parse(&bytes[..length]).unwrap_err(), HandshakeError::TooShort(length));
        }
        assert_eq!(Handshake::parse(&bytes[..FIXED + 6]).unwrap_err(), HandshakeError::Extensions);
    }
}
