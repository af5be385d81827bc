//! SUBACK and UNSUBACK (sections 3.9 and 3.11 of both standards).

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, PacketId, put_header};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, properties_len, put_properties, take_properties};
use crate::{ReasonCode, Version};
use std::fmt;

/// Reason codes that have been checked, one a topic filter, in the order of the filters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReasonCodes<'a> {
    codes: &'a [u8],
    kind: PacketKind,
    version: Version,
}

impl<'a> ReasonCodes<'a> {
    fn take(fields: &mut Fields<'a>, kind: PacketKind, version: Version) -> Result<Self, Violation> {
        let codes = fields.rest();
        if codes.iter().any(|code| ReasonCode::read(*code, kind, version).is_none()) {
            return Err(Violation::UnknownReason);
        }
        Ok(Self { codes, kind, version })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether the packet has no reason codes.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = ReasonCode> + 'a {
        let (kind, version) = (self.kind, self.version);
        self.codes.iter().filter_map(move |code| ReasonCode::read(*code, kind, version))
    }
}

impl fmt::Debug for ReasonCodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The server's answer to SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suback<'a> {
    /// That of the SUBSCRIBE.
    pub packet_id: PacketId,
    /// Properties.
    pub properties: Properties<'a>,
    /// What was granted, or why not.
    pub reasons: ReasonCodes<'a>,
}

/// The server's answer to UNSUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsuback<'a> {
    /// That of the UNSUBSCRIBE.
    pub packet_id: PacketId,
    /// Properties.
    pub properties: Properties<'a>,
    /// How it went, one a filter; MQTT 3.1.1 has none.
    pub reasons: ReasonCodes<'a>,
}

impl<'a> Suback<'a> {
    pub(super) fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        let (packet_id, properties, reasons) = take(fields, PacketKind::Suback, version)?;
        Ok(Self { packet_id, properties, reasons })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A property that SUBACK, or this version, does not have; codes of another version or packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(PacketKind::Suback, self.packet_id, &self.properties, &self.reasons, version, out)
    }

    /// Appends a SUBACK without properties.
    ///
    /// # Errors
    /// A reason that SUBACK, or this version, does not have.
    pub fn write(
        packet_id: PacketId,
        reasons: &[ReasonCode],
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        write(PacketKind::Suback, packet_id, reasons, version, out)
    }
}

impl<'a> Unsuback<'a> {
    pub(super) fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        let (packet_id, properties, reasons) = take(fields, PacketKind::Unsuback, version)?;
        Ok(Self { packet_id, properties, reasons })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A property that UNSUBACK, or this version, does not have; codes of another version or packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        encode(PacketKind::Unsuback, self.packet_id, &self.properties, &self.reasons, version, out)
    }

    /// Appends an UNSUBACK without properties; MQTT 3.1.1 says no reasons.
    ///
    /// # Errors
    /// A reason that UNSUBACK does not have.
    pub fn write(
        packet_id: PacketId,
        reasons: &[ReasonCode],
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let reasons = if version == Version::V311 { &[] } else { reasons };
        write(PacketKind::Unsuback, packet_id, reasons, version, out)
    }
}

fn take<'a>(
    fields: &mut Fields<'a>,
    kind: PacketKind,
    version: Version,
) -> Result<(PacketId, Properties<'a>, ReasonCodes<'a>), Violation> {
    let packet_id = fields.packet_id()?;
    let properties = take_properties(fields, kind, version)?;
    let reasons = ReasonCodes::take(fields, kind, version)?;
    let none = kind == PacketKind::Unsuback && version == Version::V311;
    if reasons.is_empty() && !none {
        Err(Violation::ReasonCount)
    } else {
        Ok((packet_id, properties, reasons))
    }
}

fn encode(
    kind: PacketKind,
    packet_id: PacketId,
    properties: &Properties<'_>,
    reasons: &ReasonCodes<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if (reasons.kind, reasons.version) != (kind, version) {
        return Err(EncodeError::Forbidden(Violation::UnknownReason));
    }
    let length = properties_len(properties, kind, version)?;
    put_header(kind.first_byte(), 2 + length + reasons.len(), out)?;
    out.extend_from_slice(&packet_id.get().to_be_bytes());
    put_properties(properties, version, out);
    out.extend_from_slice(reasons.codes);
    Ok(())
}

fn write(
    kind: PacketKind,
    packet_id: PacketId,
    reasons: &[ReasonCode],
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let start = out.len();
    let properties = properties_len(&Properties::NONE, kind, version)?;
    put_header(kind.first_byte(), 2 + properties + reasons.len(), out)?;
    out.extend_from_slice(&packet_id.get().to_be_bytes());
    put_properties(&Properties::NONE, version, out);
    for reason in reasons {
        let Some(code) = reason.code_in(kind, version) else {
            out.truncate(start);
            return Err(EncodeError::Forbidden(Violation::UnknownReason));
        };
        out.push(code);
    }
    Ok(())
}
