//! AUTH (MQTT 5 section 3.15).

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, put_header};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, PropertyLocation, properties_len, put_properties};
use crate::{ReasonCode, Version};

/// A step of an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// Where it stands.
    pub reason: ReasonCode,
    /// Properties, the method among them.
    pub properties: Properties<'a>,
}

impl<'a> Auth<'a> {
    pub(super) fn take(fields: &mut Fields<'a>) -> Result<Self, Violation> {
        // A body that is left out means success without properties (section 3.15.2.1).
        if fields.is_empty() {
            return Ok(Self { reason: ReasonCode::Success, properties: Properties::NONE });
        }
        let reason =
            ReasonCode::from_code(fields.byte()?, PacketKind::Auth).ok_or(Violation::UnknownReason)?;
        let properties = Properties::take(fields, PropertyLocation::Packet(PacketKind::Auth))?;
        Ok(Self { reason, properties })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// MQTT 3.1.1 has no AUTH; a reason or a property that AUTH does not have.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if version == Version::V311 {
            return Err(EncodeError::NeedsVersion5);
        }
        let kind = PacketKind::Auth;
        let code =
            self.reason.code_in(kind, version).ok_or(EncodeError::Forbidden(Violation::UnknownReason))?;
        let length = properties_len(&self.properties, kind, version)?;
        put_header(kind.first_byte(), 1 + length, out)?;
        out.push(code);
        put_properties(&self.properties, version, out);
        Ok(())
    }
}
