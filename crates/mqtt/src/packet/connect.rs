//! CONNECT (section 3.1 of both standards).

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, field_len, put_field, put_header, text_len};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, PropertyLocation, properties_len, put_properties, take_properties};
use crate::{Qos, Version, topic};
use std::fmt;

const PROTOCOL_NAME: &[u8] = b"MQTT";

/// A client asks for a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Connect<'a> {
    /// The version that the connection is to speak.
    pub version: Version,
    /// Whether an earlier session is to be thrown away (Clean Session in MQTT 3.1.1, section 3.1.2.4).
    pub clean_start: bool,
    /// The longest time between two packets of the client, in seconds; 0 for any.
    pub keep_alive: u16,
    /// Properties.
    pub properties: Properties<'a>,
    /// The client identifier; may be empty.
    pub client_id: &'a str,
    /// What to publish if the connection ends in disorder.
    pub will: Option<Will<'a>>,
    /// User name.
    pub user_name: Option<&'a str>,
    /// Password.
    pub password: Option<&'a [u8]>,
}

/// A message that the server publishes when its client is gone (section 3.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its payload, 65,535 bytes at most.
    pub payload: &'a [u8],
    /// Its quality of service.
    pub qos: Qos,
    /// Whether the server is to keep it.
    pub retain: bool,
    /// Its properties.
    pub properties: Properties<'a>,
}

impl<'a> Connect<'a> {
    pub(super) fn take(fields: &mut Fields<'a>) -> Result<Self, Violation> {
        if fields.binary()? != PROTOCOL_NAME {
            return Err(Violation::ProtocolName);
        }
        let version = match fields.byte()? {
            4 => Version::V311,
            5 => Version::V5,
            _ => return Err(Violation::ProtocolVersion),
        };
        let flags = Flags::read(fields.byte()?, version)?;
        let keep_alive = fields.two_bytes()?;
        let properties = take_properties(fields, PacketKind::Connect, version)?;
        if properties.authentication_data().is_some() && properties.authentication_method().is_none() {
            return Err(Violation::AuthenticationData);
        }
        let client_id = fields.text()?;
        let will = match flags.will {
            Some((qos, retain)) => Some(Will::take(fields, qos, retain, version)?),
            None => None,
        };
        let user_name = if flags.user_name { Some(fields.text()?) } else { None };
        let password = if flags.password { Some(fields.binary()?) } else { None };
        let clean_start = flags.clean_start;
        Ok(Self { version, clean_start, keep_alive, properties, client_id, will, user_name, password })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A field that is too long; what this version cannot say; a will with an invalid topic.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = PacketKind::Connect;
        let version = self.version;
        if version == Version::V311 && self.password.is_some() && self.user_name.is_none() {
            return Err(EncodeError::Forbidden(Violation::PasswordAlone));
        }
        let mut remaining = 10 + properties_len(&self.properties, kind, version)? + text_len(self.client_id)?;
        if let Some(will) = &self.will {
            remaining += will.length(version)?;
        }
        remaining += self.user_name.map_or(Ok(0), text_len)?;
        remaining += self.password.map_or(Ok(0), field_len)?;
        put_header(kind.first_byte(), remaining, out)?;
        put_field(PROTOCOL_NAME, out);
        out.extend_from_slice(&[version.level(), self.flags()]);
        out.extend_from_slice(&self.keep_alive.to_be_bytes());
        put_properties(&self.properties, version, out);
        put_field(self.client_id.as_bytes(), out);
        if let Some(will) = &self.will {
            put_properties(&will.properties, version, out);
            put_field(will.topic.as_bytes(), out);
            put_field(will.payload, out);
        }
        if let Some(user_name) = self.user_name {
            put_field(user_name.as_bytes(), out);
        }
        if let Some(password) = self.password {
            put_field(password, out);
        }
        Ok(())
    }

    fn flags(&self) -> u8 {
        let will =
            self.will.as_ref().map_or(0, |will| 1 << 2 | will.qos.bits() << 3 | u8::from(will.retain) << 5);
        u8::from(self.clean_start) << 1
            | will
            | u8::from(self.password.is_some()) << 6
            | u8::from(self.user_name.is_some()) << 7
    }
}

/// Without the password: it never reaches a log.
impl fmt::Debug for Connect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect")
            .field("version", &self.version)
            .field("clean_start", &self.clean_start)
            .field("keep_alive", &self.keep_alive)
            .field("properties", &self.properties)
            .field("client_id", &self.client_id)
            .field("will", &self.will)
            .field("user_name", &self.user_name.map(|_| "…"))
            .field("password", &self.password.map(|_| "…"))
            .finish()
    }
}

impl<'a> Will<'a> {
    fn take(fields: &mut Fields<'a>, qos: Qos, retain: bool, version: Version) -> Result<Self, Violation> {
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 => Properties::take(fields, PropertyLocation::Will)?,
        };
        let topic = fields.text()?;
        topic::check_name(topic)?;
        Ok(Self { topic, payload: fields.binary()?, qos, retain, properties })
    }

    fn length(&self, version: Version) -> Result<usize, EncodeError> {
        topic::check_name(self.topic).map_err(EncodeError::Forbidden)?;
        let properties = match version {
            Version::V311 if self.properties.is_empty() => 0,
            Version::V311 => return Err(EncodeError::NeedsVersion5),
            Version::V5 => {
                self.properties.fit(PropertyLocation::Will)?;
                self.properties.wire_len()
            }
        };
        Ok(properties + text_len(self.topic)? + field_len(self.payload)?)
    }
}

/// The connect flags (section 3.1.2.3).
struct Flags {
    clean_start: bool,
    will: Option<(Qos, bool)>,
    password: bool,
    user_name: bool,
}

impl Flags {
    fn read(flags: u8, version: Version) -> Result<Self, Violation> {
        let bit = |number: u8| flags & 1 << number != 0;
        if bit(0) {
            return Err(Violation::ConnectFlags);
        }
        let will = if bit(2) {
            Some((Qos::from_bits(flags >> 3 & 3).ok_or(Violation::WillQos)?, bit(5)))
        } else if flags & 0b0011_1000 != 0 {
            return Err(Violation::WillFlags);
        } else {
            None
        };
        let (password, user_name) = (bit(6), bit(7));
        if version == Version::V311 && password && !user_name {
            return Err(Violation::PasswordAlone);
        }
        Ok(Self { clean_start: bit(1), will, password, user_name })
    }
}
