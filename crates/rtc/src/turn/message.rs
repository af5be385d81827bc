//! STUN messages as TURN has them (RFC 8489 sections 5, 14; RFC 8656 section 18).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;

/// In every message.
const COOKIE: u32 = 0x2112_A442;
/// Bytes before the attributes.
const HEADER: usize = 20;
/// Bytes of an attribute with a tag.
const TAG_ATTRIBUTE: usize = 24;

/// Methods of requests, indications and responses.
pub(super) mod method {
    pub(in crate::turn) const ALLOCATE: u16 = 3;
    pub(in crate::turn) const REFRESH: u16 = 4;
    pub(in crate::turn) const SEND: u16 = 6;
    pub(in crate::turn) const DATA: u16 = 7;
    pub(in crate::turn) const CREATE_PERMISSION: u16 = 8;
    pub(in crate::turn) const CHANNEL_BIND: u16 = 9;
}

/// Attributes by their numbers.
pub(super) mod attribute {
    pub(in crate::turn) const USERNAME: u16 = 0x0006;
    pub(in crate::turn) const MESSAGE_INTEGRITY: u16 = 0x0008;
    pub(in crate::turn) const ERROR_CODE: u16 = 0x0009;
    pub(in crate::turn) const CHANNEL_NUMBER: u16 = 0x000C;
    pub(in crate::turn) const LIFETIME: u16 = 0x000D;
    pub(in crate::turn) const XOR_PEER_ADDRESS: u16 = 0x0012;
    pub(in crate::turn) const DATA: u16 = 0x0013;
    pub(in crate::turn) const REALM: u16 = 0x0014;
    pub(in crate::turn) const NONCE: u16 = 0x0015;
    pub(in crate::turn) const XOR_RELAYED_ADDRESS: u16 = 0x0016;
    pub(in crate::turn) const REQUESTED_TRANSPORT: u16 = 0x0019;
}

/// The number of a transaction.
pub(super) type Transaction = [u8; 12];

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Request,
    Indication,
    Success,
    Error,
}

/// A message that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) method: u16,
    pub(super) class: Class,
    pub(super) transaction: Transaction,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a message; `None` if the bytes are malformed.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let kind = u16::from_be_bytes(*bytes.first_chunk()?);
        let length = usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
        let transaction = *bytes.get(8..HEADER)?.first_chunk()?;
        if kind >= 0x4000 || bytes.get(4..8)? != COOKIE.to_be_bytes() || bytes.len() != HEADER + length {
            return None;
        }
        // The bits of the class stand among those of the method.
        let method = kind & 0x000F | (kind & 0x00E0) >> 1 | (kind & 0x3E00) >> 2;
        let class = match (kind & 0x0100 != 0, kind & 0x0010 != 0) {
            (false, false) => Class::Request,
            (false, true) => Class::Indication,
            (true, false) => Class::Success,
            (true, true) => Class::Error,
        };
        Some(Self { method, class, transaction, bytes })
    }

    /// Where the value of the first attribute of this kind lies in the message.
    pub(super) fn place_of(&self, kind: u16) -> Option<std::ops::Range<usize>> {
        self.attributes().find(|(this, _)| *this == kind).map(|(_, place)| place)
    }

    /// The value of the first attribute of this kind.
    pub(super) fn value(&self, kind: u16) -> Option<&'a [u8]> {
        self.bytes.get(self.place_of(kind)?)
    }

    fn attributes(&self) -> impl Iterator<Item = (u16, std::ops::Range<usize>)> + use<'a> {
        let bytes = self.bytes;
        let mut at = HEADER;
        std::iter::from_fn(move || {
            let &[a, b, c, d] = bytes.get(at..)?.first_chunk()?;
            let length = usize::from(u16::from_be_bytes([c, d]));
            let place = at + 4..at + 4 + length;
            at = place.start + length.next_multiple_of(4);
            (place.end <= bytes.len()).then_some((u16::from_be_bytes([a, b]), place))
        })
    }

    /// The number in an attribute.
    pub(super) fn number(&self, kind: u16) -> Option<u32> {
        self.value(kind)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// The address in an attribute (RFC 8489 section 14.2).
    pub(super) fn address(&self, kind: u16) -> Option<SocketAddr> {
        let value = self.value(kind)?;
        let port = u16::from_be_bytes([*value.get(2)?, *value.get(3)?]) ^ (COOKIE >> 16) as u16;
        let mask = self.mask();
        let address: IpAddr = match (value.get(1)?, value.get(4..)?) {
            (1, bytes) if bytes.len() == 4 => {
                let bytes: [u8; 4] = *bytes.first_chunk()?;
                Ipv4Addr::from(u32::from_be_bytes(bytes) ^ COOKIE).into()
            }
            (2, bytes) if bytes.len() == 16 => {
                let bytes: [u8; 16] = *bytes.first_chunk()?;
                Ipv6Addr::from(u128::from_be_bytes(bytes) ^ mask).into()
            }
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }

    fn mask(&self) -> u128 {
        mask(&self.transaction)
    }

    /// The code of an error and its words (section 14.8).
    pub(super) fn error(&self) -> (u16, String) {
        let value = self.value(attribute::ERROR_CODE).unwrap_or_default();
        let code = match value {
            [_, _, class, number, ..] => u16::from(class & 7) * 100 + u16::from(number % 100),
            _ => 0,
        };
        let words: String = String::from_utf8_lossy(value.get(4..).unwrap_or_default())
            .chars()
            .filter(|c| !c.is_control())
            .take(128)
            .collect();
        (code, words)
    }

    /// Whether it was made with this key; `None` if it does not say.
    pub(super) fn is_authentic(&self, key: &[u8]) -> Option<bool> {
        let place = self.place_of(attribute::MESSAGE_INTEGRITY)?;
        let tag = tag(key, &self.bytes[..place.start - 4]);
        Some(verify_slices_are_equal(tag.as_ref(), &self.bytes[place]).is_ok())
    }
}

/// A message that is being written to the end of a buffer.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    transaction: Transaction,
}

impl<'a> Writer<'a> {
    pub(super) fn new(method: u16, class: Class, transaction: Transaction, out: &'a mut Vec<u8>) -> Self {
        let class = match class {
            Class::Request => 0,
            Class::Indication => 0x0010,
            Class::Success => 0x0100,
            Class::Error => 0x0110,
        };
        let start = out.len();
        let kind = method & 0x000F | (method & 0x0070) << 1 | (method & 0x0F80) << 2 | class;
        out.extend(kind.to_be_bytes());
        out.extend([0, 0]);
        out.extend(COOKIE.to_be_bytes());
        out.extend(transaction);
        Self { out, start, transaction }
    }

    /// Appends an attribute; one that does not fit is left out.
    pub(super) fn value(mut self, kind: u16, value: &[u8]) -> Self {
        let padded = value.len().next_multiple_of(4);
        let fits = self.out.len() - self.start - HEADER + 4 + padded + TAG_ATTRIBUTE <= usize::from(u16::MAX);
        if let Some(length) = u16::try_from(value.len()).ok().filter(|_| fits) {
            self.out.extend(kind.to_be_bytes());
            self.out.extend(length.to_be_bytes());
            self.out.extend_from_slice(value);
            self.out.extend(std::iter::repeat_n(0, padded - value.len()));
            self.set_length();
        }
        self
    }

    pub(super) fn number(self, kind: u16, number: u32) -> Self {
        self.value(kind, &number.to_be_bytes())
    }

    pub(super) fn address(self, kind: u16, address: SocketAddr) -> Self {
        let port = address.port() ^ (COOKIE >> 16) as u16;
        let mut value = vec![0, if address.is_ipv4() { 1 } else { 2 }];
        value.extend(port.to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => value.extend((u32::from(ip) ^ COOKIE).to_be_bytes()),
            IpAddr::V6(ip) => value.extend((u128::from(ip) ^ mask(&self.transaction)).to_be_bytes()),
        }
        self.value(kind, &value)
    }

    /// Signs the message: its last attribute.
    pub(super) fn sign(self, key: &[u8]) {
        let tag = tag(key, &self.out[self.start..]);
        self.value(attribute::MESSAGE_INTEGRITY, tag.as_ref());
    }

    fn set_length(&mut self) {
        let length = (self.out.len() - self.start - HEADER) as u16;
        self.out[self.start + 2..self.start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// The tag over all that stands before its attribute, with the length as it is behind it (section 14.5).
fn tag(key: &[u8], before: &[u8]) -> hmac::Tag {
    let length = (before.len() - HEADER + TAG_ATTRIBUTE) as u16;
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key));
    context.update(&before[..2]);
    context.update(&length.to_be_bytes());
    context.update(&before[4..]);
    context.sign()
}

/// What an address of version 6 is hidden with.
fn mask(transaction: &Transaction) -> u128 {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&COOKIE.to_be_bytes());
    bytes[4..].copy_from_slice(transaction);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let mut out = b"before".to_vec();
        let peers: [SocketAddr; 2] = ["1.2.3.4:5".parse().unwrap(), "[2001:db8::1]:65535".parse().unwrap()];
        Writer::new(method::CHANNEL_BIND, Class::Error, [9; 12], &mut out)
            .value(attribute::USERNAME, b"weir")
            .value(attribute::ERROR_CODE, b"\0\0\x04\x26Stale Nonce")
            .address(attribute::XOR_PEER_ADDRESS, peers[0])
            .address(attribute::XOR_RELAYED_ADDRESS, peers[1])
            .number(attribute::LIFETIME, 600)
            .sign(b"key");
        let message = Message::parse(&out[6..]).unwrap();
        assert_eq!((message.method, message.class, message.transaction), (9, Class::Error, [9; 12]));
        assert_eq!(message.value(attribute::USERNAME), Some(&b"weir"[..]));
        assert_eq!(message.error(), (438, "Stale Nonce".to_owned()));
        assert_eq!(message.address(attribute::XOR_PEER_ADDRESS), Some(peers[0]));
        assert_eq!(message.address(attribute::XOR_RELAYED_ADDRESS), Some(peers[1]));
        assert_eq!(message.number(attribute::LIFETIME), Some(600));
        assert_eq!((message.is_authentic(b"key"), message.is_authentic(b"yek")), (Some(true), Some(false)));
        assert_eq!(message.address(attribute::NONCE), None);
    }

    /// RFC 5769 section 2.4: a request with long-term authentication.
    #[test]
    fn the_standards_own_message_is_authentic() {
        let text = "000100602112a44278ad3433c6ad72c029da412e00060012e3839ee38388e383aae38383e382afe382b90000\
                    0015001c662f2f3439396b39353464364f4c33346f4c394653547679363473410014000b6578616d706c652e6f726700\
                    00080014f67024656dd64a3e02b8e0712e85c9a28ca89666";
        let bytes: Vec<u8> =
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect();
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.value(attribute::REALM), Some(&b"example.org"[..]));
        let key = super::super::client::key(
            "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}",
            b"example.org",
            "TheMatrIX",
        );
        assert_eq!(message.is_authentic(&key), Some(true));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            attributes in proptest::collection::vec((0_u16..40, proptest::collection::vec(any::<u8>(), 0..20)), 0..6),
        ) {
            let mut written = Vec::new();
            let mut writer = Writer::new(3, Class::Success, [1; 12], &mut written);
            for (kind, value) in &attributes {
                writer = writer.value(*kind, value);
            }
            let _ = writer;
            for bytes in [&bytes, &written] {
                let Some(message) = Message::parse(bytes) else { continue };
                message.error();
                message.is_authentic(b"key");
                for kind in 0..40 {
                    message.address(kind);
                    message.number(kind);
                }
            }
        }
    }
}
