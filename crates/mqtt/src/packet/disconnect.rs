//! DISCONNECT (section 3.14 of both standards).

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, put_header};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, PropertyLocation, properties_len, put_properties};
use crate::{ReasonCode, Version};

/// The end of a connection, with its reason. Only clients send it in MQTT 3.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// Why; in MQTT 3.1.1 always [`ReasonCode::Success`], a normal disconnection.
    pub reason: ReasonCode,
    /// Properties.
    pub properties: Properties<'a>,
}

impl<'a> Disconnect<'a> {
    /// For this reason.
    pub const fn of(reason: ReasonCode) -> Self {
        Self { reason, properties: Properties::NONE }
    }

    pub(super) fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        // Reason code and Property Length may be left out (section 3.14.2.1).
        if fields.is_empty() || version == Version::V311 {
            return Ok(Self::of(ReasonCode::Success));
        }
        let kind = PacketKind::Disconnect;
        let reason = ReasonCode::from_code(fields.byte()?, kind).ok_or(Violation::UnknownReason)?;
        let properties = if fields.is_empty() {
            Properties::NONE
        } else {
            Properties::take(fields, PropertyLocation::Packet(kind))?
        };
        Ok(Self { reason, properties })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A reason or a property that DISCONNECT, or this version, does not have.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = PacketKind::Disconnect;
        if self.reason == ReasonCode::Success && self.properties.is_empty() {
            return put_header(kind.first_byte(), 0, out);
        }
        if version == Version::V311 {
            return Err(EncodeError::NeedsVersion5);
        }
        let code =
            self.reason.code_in(kind, version).ok_or(EncodeError::Forbidden(Violation::UnknownReason))?;
        let length = properties_len(&self.properties, kind, version)?;
        put_header(kind.first_byte(), 1 + length, out)?;
        out.push(code);
        put_properties(&self.properties, version, out);
        Ok(())
    }
}
