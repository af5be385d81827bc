//! PUBACK, PUBREC, PUBREL and PUBCOMP (MQTT 5 sections 3.4 to 3.7): one form, four meanings.

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, PacketId, put_header};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, PropertyLocation, properties_len, put_properties};
use crate::{ReasonCode, Version};

/// What PUBACK, PUBREC, PUBREL and PUBCOMP say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement<'a> {
    /// Of which message.
    pub packet_id: PacketId,
    /// How it went; in MQTT 3.1.1 always well.
    pub reason: ReasonCode,
    /// Properties.
    pub properties: Properties<'a>,
}

impl<'a> Acknowledgement<'a> {
    /// The acknowledgement of a message that was accepted.
    pub const fn success(packet_id: PacketId) -> Self {
        Self::of(packet_id, ReasonCode::Success)
    }

    /// The acknowledgement of a message with this reason.
    pub const fn of(packet_id: PacketId, reason: ReasonCode) -> Self {
        Self { packet_id, reason, properties: Properties::NONE }
    }

    #[inline]
    pub(super) fn take(
        kind: PacketKind,
        fields: &mut Fields<'a>,
        version: Version,
    ) -> Result<Self, Violation> {
        let packet_id = fields.packet_id()?;
        // The reason code may be left out, and the Property Length behind it (section 3.4.2.1).
        if fields.is_empty() || version == Version::V311 {
            return Ok(Self::success(packet_id));
        }
        let reason = ReasonCode::from_code(fields.byte()?, kind).ok_or(Violation::UnknownReason)?;
        let properties = if fields.is_empty() {
            Properties::NONE
        } else {
            Properties::take(fields, PropertyLocation::Packet(kind))?
        };
        Ok(Self { packet_id, reason, properties })
    }

    /// Appends it as a packet of this kind.
    ///
    /// # Errors
    /// A reason or a property that this packet, or this version, does not have.
    #[inline]
    pub fn encode(&self, kind: PacketKind, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let [high, low] = self.packet_id.get().to_be_bytes();
        if self.reason == ReasonCode::Success && self.properties.is_empty() {
            out.extend_from_slice(&[kind.first_byte(), 2, high, low]);
            return Ok(());
        }
        if version == Version::V311 {
            return Err(EncodeError::NeedsVersion5);
        }
        let code =
            self.reason.code_in(kind, version).ok_or(EncodeError::Forbidden(Violation::UnknownReason))?;
        let length = properties_len(&self.properties, kind, version)?;
        put_header(kind.first_byte(), 3 + length, out)?;
        out.extend_from_slice(&[high, low, code]);
        put_properties(&self.properties, version, out);
        Ok(())
    }
}
