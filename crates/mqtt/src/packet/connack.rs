//! CONNACK (section 3.2 of both standards).

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, put_header};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, properties_len, put_properties, take_properties};
use crate::{ReasonCode, Version};

/// The server's answer to CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connack<'a> {
    /// Whether the server has kept the session (section 3.2.2.1).
    pub session_present: bool,
    /// Accepted, or why not.
    pub reason: ReasonCode,
    /// Properties.
    pub properties: Properties<'a>,
}

impl<'a> Connack<'a> {
    pub(super) fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        let flags = fields.byte()?;
        if flags > 1 {
            return Err(Violation::ConnackFlags);
        }
        let session_present = flags == 1;
        let (code, kind) = (fields.byte()?, PacketKind::Connack);
        // A server that speaks only 3.1.1 refuses a client of MQTT 5 in its own words (3.1.1, MQTT-3.1.2-2).
        let old = if fields.is_empty() { ReasonCode::read(code, kind, Version::V311) } else { None };
        let reason = ReasonCode::read(code, kind, version)
            .or(old.filter(|reason| reason.is_error()))
            .ok_or(Violation::UnknownReason)?;
        if session_present && reason != ReasonCode::Success {
            return Err(Violation::SessionOfRefusal);
        }
        let properties = if fields.is_empty() && reason.is_error() {
            Properties::NONE
        } else {
            take_properties(fields, kind, version)?
        };
        Ok(Self { session_present, reason, properties })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A reason or a property that CONNACK, or this version, does not have; a session of a refusal.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = PacketKind::Connack;
        let code = self.reason.code_in(kind, version).ok_or(match version {
            Version::V311 => EncodeError::NeedsVersion5,
            Version::V5 => EncodeError::Forbidden(Violation::UnknownReason),
        })?;
        if self.session_present && self.reason != ReasonCode::Success {
            return Err(EncodeError::Forbidden(Violation::SessionOfRefusal));
        }
        let length = properties_len(&self.properties, kind, version)?;
        put_header(kind.first_byte(), 2 + length, out)?;
        out.extend_from_slice(&[u8::from(self.session_present), code]);
        put_properties(&self.properties, version, out);
        Ok(())
    }
}
