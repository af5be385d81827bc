//! PUBLISH (section 3.3 of both standards): the packet that carries messages.

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, PacketId, put_field, put_header, text_len, variable_integer};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, properties_len, put_properties, take_properties};
use crate::{Qos, Version, topic};

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Whether this may be a repetition (section 3.3.1.1).
    pub dup: bool,
    /// Quality of service.
    pub qos: Qos,
    /// To a server: keep it. From a server: it was kept.
    pub retain: bool,
    /// Topic name; empty where an alias stands for it.
    pub topic: &'a str,
    /// Present at QoS 1 and 2, and only there.
    pub packet_id: Option<PacketId>,
    /// Properties.
    pub properties: Properties<'a>,
    /// The message itself.
    pub payload: &'a [u8],
}

impl<'a> Publish<'a> {
    /// A message of QoS 0 without properties.
    pub const fn new(topic: &'a str, payload: &'a [u8]) -> Self {
        Self {
            dup: false,
            qos: Qos::AtMostOnce,
            retain: false,
            topic,
            packet_id: None,
            properties: Properties::NONE,
            payload,
        }
    }

    #[inline]
    pub(crate) fn decode(flags: u8, body: &'a [u8], version: Version) -> Result<Self, Violation> {
        let qos = Qos::from_bits(flags >> 1 & 3).ok_or(Violation::QosBits)?;
        let dup = flags & 8 != 0;
        if dup && qos == Qos::AtMostOnce {
            return Err(Violation::DuplicateOfQos0);
        }
        let mut fields = Fields(body);
        let topic = topic::take_name(&mut fields)?;
        let packet_id = if qos == Qos::AtMostOnce { None } else { Some(fields.packet_id()?) };
        let properties = take_properties(&mut fields, PacketKind::Publish, version)?;
        if topic.is_empty() && properties.topic_alias().is_none() {
            return Err(Violation::TopicEmpty);
        }
        if let Some(response) = properties.response_topic() {
            topic::check_name(response)?;
        }
        Ok(Self { dup, qos, retain: flags & 1 != 0, topic, packet_id, properties, payload: fields.rest() })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// As [`Self::encode_head`].
    #[inline]
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.encode_head(self.payload.len(), version, out)?;
        out.extend_from_slice(self.payload);
        Ok(())
    }

    /// Appends all of the packet but its payload, which follows: it may be sent from where
    /// it lies.
    ///
    /// # Errors
    /// A topic that is too long, or none; a packet identifier where none belongs, or the other way round; what is
    /// too long, or what this version cannot say. Nothing is appended then.
    #[inline]
    pub fn encode_head(
        &self,
        payload: usize,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let kind = PacketKind::Publish;
        let id = match (self.qos, self.packet_id) {
            (Qos::AtMostOnce, None) => None,
            (Qos::AtMostOnce, Some(_)) | (_, None) => {
                return Err(EncodeError::Forbidden(Violation::PacketIdentifierZero));
            }
            (_, Some(id)) => Some(id),
        };
        if self.dup && self.qos == Qos::AtMostOnce {
            return Err(EncodeError::Forbidden(Violation::DuplicateOfQos0));
        }
        if !self.topic.is_empty() {
            topic::check_name(self.topic).map_err(EncodeError::Forbidden)?;
        } else if self.properties.topic_alias().is_none() {
            return Err(EncodeError::Forbidden(Violation::TopicEmpty));
        }
        let properties = properties_len(&self.properties, kind, version)?;
        let head = text_len(self.topic)? + if id.is_some() { 2 } else { 0 } + properties;
        let flags = u8::from(self.dup) << 3 | self.qos.bits() << 1 | u8::from(self.retain);
        put_header(kind.first_byte() | flags, head + payload, out)?;
        put_field(self.topic.as_bytes(), out);
        if let Some(id) = id {
            out.extend_from_slice(&id.get().to_be_bytes());
        }
        put_properties(&self.properties, version, out);
        Ok(())
    }
}

/// How long the variable header of a PUBLISH is whose body begins so; as a `Err` of the inner result, how many
/// bytes of the body must be there to know more.
pub(crate) fn head_len(flags: u8, body: &[u8], version: Version) -> Result<Result<usize, usize>, Violation> {
    let Some((topic, _)) = body.split_first_chunk::<2>() else { return Ok(Err(2)) };
    let id = if flags & 0b0110 == 0 { 0 } else { 2 };
    let head = 2 + usize::from(u16::from_be_bytes(*topic)) + id;
    if version == Version::V311 {
        return Ok(Ok(head));
    }
    let Some(rest) = body.get(head..) else { return Ok(Err(head + 1)) };
    Ok(match variable_integer(rest)? {
        Some(integer) => Ok(head + integer.length + integer.value as usize),
        None => Err(body.len() + 1),
    })
}
