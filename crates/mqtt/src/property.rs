//! The properties of MQTT 5 (section 2.2.2): checked once as a packet is read, then taken out of its bytes.
//!
//! MQTT 3.1.1 has none; there they are always empty.

use crate::Qos;
use crate::error::{EncodeError, Violation};
use crate::field::{Fields, field_len, integer_len, put_field, put_integer, text_len};
use crate::packet_kind::PacketKind;
use crate::version::Version;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};

/// Where properties stand: in a packet, or in a will.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PropertyLocation {
    /// In the variable header of a packet.
    Packet(PacketKind),
    /// In the payload of CONNECT, of the will (section 3.1.3.2).
    Will,
}

impl PropertyLocation {
    const fn bit(self) -> u16 {
        match self {
            Self::Packet(kind) => 1 << kind as u16,
            Self::Will => 1,
        }
    }
}

/// A subscription identifier, 1 to 268,435,455 (section 3.8.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionIdentifier(u32);

impl SubscriptionIdentifier {
    /// `None` for 0, and for what four bytes cannot say.
    pub const fn new(value: u32) -> Option<Self> {
        if value == 0 || value as usize > crate::MAX_REMAINING_LENGTH { None } else { Some(Self(value)) }
    }

    /// Its number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A value as it stands behind a property's identifier.
trait Value<'a>: Sized + Copy {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Violation>;
    fn length(self) -> Result<usize, EncodeError>;
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! values {
    ($($kind:ty: $take:expr, $length:expr, $put:expr;)*) => {
        $(impl<'a> Value<'a> for $kind {
            #[inline]
            fn take(fields: &mut Fields<'a>) -> Result<Self, Violation> {
                #[allow(clippy::redundant_closure_call)]
                ($take)(fields)
            }
            #[inline]
            fn length(self) -> Result<usize, EncodeError> {
                #[allow(clippy::redundant_closure_call)]
                ($length)(self)
            }
            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                #[allow(clippy::redundant_closure_call)]
                ($put)(self, out)
            }
        })*
    };
}

values! {
    bool:
        |fields: &mut Fields<'a>| match fields.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Violation::PropertyValue),
        },
        |_| Ok(1),
        |value, out: &mut Vec<u8>| out.push(u8::from(value));
    Qos:
        |fields: &mut Fields<'a>| match Qos::from_bits(fields.byte()?) {
            // Maximum QoS 2 is expressed by leaving the property out (section 3.2.2.3.4).
            Some(qos) if qos < Qos::ExactlyOnce => Ok(qos),
            _ => Err(Violation::PropertyValue),
        },
        |qos| if qos < Qos::ExactlyOnce { Ok(1) } else { Err(EncodeError::Forbidden(Violation::PropertyValue)) },
        |value: Qos, out: &mut Vec<u8>| out.push(value.bits());
    u16:
        Fields::two_bytes,
        |_| Ok(2),
        |value: u16, out: &mut Vec<u8>| out.extend_from_slice(&value.to_be_bytes());
    NonZeroU16:
        |fields: &mut Fields<'a>| NonZeroU16::new(fields.two_bytes()?).ok_or(Violation::PropertyValue),
        |_| Ok(2),
        |value: NonZeroU16, out: &mut Vec<u8>| out.extend_from_slice(&value.get().to_be_bytes());
    u32:
        Fields::four_bytes,
        |_| Ok(4),
        |value: u32, out: &mut Vec<u8>| out.extend_from_slice(&value.to_be_bytes());
    NonZeroU32:
        |fields: &mut Fields<'a>| NonZeroU32::new(fields.four_bytes()?).ok_or(Violation::PropertyValue),
        |_| Ok(4),
        |value: NonZeroU32, out: &mut Vec<u8>| out.extend_from_slice(&value.get().to_be_bytes());
    SubscriptionIdentifier:
        |fields: &mut Fields<'a>| SubscriptionIdentifier::new(fields.integer()?).ok_or(Violation::PropertyValue),
        |value: SubscriptionIdentifier| Ok(integer_len(value.0 as usize)),
        |value: SubscriptionIdentifier, out| put_integer(value.0 as usize, out);
    &'a str:
        Fields::text,
        text_len,
        |value: &str, out| put_field(value.as_bytes(), out);
    &'a [u8]:
        Fields::binary,
        field_len,
        put_field;
    (&'a str, &'a str):
        |fields: &mut Fields<'a>| Ok((fields.text()?, fields.text()?)),
        |(name, value)| Ok(text_len(name)? + text_len(value)?),
        |(name, value): (&str, &str), out: &mut Vec<u8>| {
            put_field(name.as_bytes(), out);
            put_field(value.as_bytes(), out);
        };
}

macro_rules! properties {
    ($($id:literal $name:ident $getter:ident: $kind:ty, $doc:literal, [$($location:tt)*];)*) => {
        /// One property (table 2-4).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Property<'a> {
            $(#[doc = $doc] $name($kind),)*
        }

        impl<'a> Property<'a> {
            /// The identifier on the wire.
            pub const fn identifier(&self) -> u8 {
                match self { $(Self::$name(_) => $id,)* }
            }

            #[inline]
            fn take(fields: &mut Fields<'a>) -> Result<Self, Violation> {
                // An identifier is a variable byte integer; none has a second byte.
                match fields.byte()? {
                    $($id => <$kind>::take(fields).map(Self::$name),)*
                    _ => Err(Violation::PropertyUnknown),
                }
            }

            fn length(&self) -> Result<usize, EncodeError> {
                match self { $(Self::$name(value) => value.length().map(|length| 1 + length),)* }
            }

            fn put(&self, out: &mut Vec<u8>) {
                out.push(self.identifier());
                match self { $(Self::$name(value) => value.put(out),)* }
            }
        }

        /// The places of each identifier.
        const PLACES: [u16; 64] = {
            let mut places = [0; 64];
            $(places[$id] = 0 $(| location!($location))*;)*
            places
        };

        impl<'a> Properties<'a> {
            $(properties!(@getter $id $name $getter: $kind, $doc);)*
        }
    };
    (@getter $id:literal $name:ident $getter:ident: $kind:ty, $doc:literal) => {
        #[doc = $doc]
        #[inline]
        pub fn $getter(&self) -> Option<$kind> {
            if !self.has($id) {
                return None;
            }
            self.iter().find_map(|property| match property {
                Property::$name(value) => Some(value),
                _ => None,
            })
        }
    };
}

macro_rules! location {
    (Will) => {
        PropertyLocation::Will.bit()
    };
    ($kind:ident) => {
        PropertyLocation::Packet(PacketKind::$kind).bit()
    };
}

const USER_PROPERTY: u8 = 0x26;
const SUBSCRIPTION_IDENTIFIER: u8 = 0x0B;

properties! {
    0x01 PayloadFormatIndicator payload_format_indicator: bool, "Whether the payload is UTF-8 text.", [Publish Will];
    0x02 MessageExpiryInterval message_expiry_interval: u32, "For how many seconds the message is of use.", [Publish Will];
    0x03 ContentType content_type: &'a str, "What the payload is.", [Publish Will];
    0x08 ResponseTopic response_topic: &'a str, "Where an answer is to go.", [Publish Will];
    0x09 CorrelationData correlation_data: &'a [u8], "What an answer is to carry.", [Publish Will];
    0x0B SubscriptionIdentifier subscription_identifier: SubscriptionIdentifier, "The subscription that matched; of several, the first.", [Publish Subscribe];
    0x11 SessionExpiryInterval session_expiry_interval: u32, "For how many seconds the session outlives its connection; 0xFFFFFFFF for ever.", [Connect Connack Disconnect];
    0x12 AssignedClientIdentifier assigned_client_identifier: &'a str, "The identifier of a client that named none.", [Connack];
    0x13 ServerKeepAlive server_keep_alive: u16, "The keep-alive, in seconds, that the server wants.", [Connack];
    0x15 AuthenticationMethod authentication_method: &'a str, "How to authenticate.", [Connect Connack Auth];
    0x16 AuthenticationData authentication_data: &'a [u8], "What the method needs.", [Connect Connack Auth];
    0x17 RequestProblemInformation request_problem_information: bool, "Whether the server may say reasons in words.", [Connect];
    0x18 WillDelayInterval will_delay_interval: u32, "For how many seconds the will waits.", [Will];
    0x19 RequestResponseInformation request_response_information: bool, "Whether the server is asked for response information.", [Connect];
    0x1A ResponseInformation response_information: &'a str, "What response topics are made from.", [Connack];
    0x1C ServerReference server_reference: &'a str, "Another server.", [Connack Disconnect];
    0x1F ReasonString reason_string: &'a str, "The reason, in words.", [Connack Puback Pubrec Pubrel Pubcomp Suback Unsuback Disconnect Auth];
    0x21 ReceiveMaximum receive_maximum: NonZeroU16, "How many messages of QoS 1 and 2 may wait for an acknowledgement.", [Connect Connack];
    0x22 TopicAliasMaximum topic_alias_maximum: u16, "The highest topic alias that the sender takes.", [Connect Connack];
    0x23 TopicAlias topic_alias: NonZeroU16, "A number instead of the topic's name.", [Publish];
    0x24 MaximumQos maximum_qos: Qos, "The highest QoS that the server supports, 0 or 1.", [Connack];
    0x25 RetainAvailable retain_available: bool, "Whether the server keeps messages.", [Connack];
    0x26 UserProperty first_user_property: (&'a str, &'a str), "A name and a value of the application's own.",
        [Connect Connack Publish Will Puback Pubrec Pubrel Pubcomp Subscribe Suback Unsubscribe Unsuback Disconnect Auth];
    0x27 MaximumPacketSize maximum_packet_size: NonZeroU32, "The largest packet, in bytes, that the sender takes.", [Connect Connack];
    0x28 WildcardSubscriptionAvailable wildcard_subscription_available: bool, "Whether the server has wildcards.", [Connack];
    0x29 SubscriptionIdentifierAvailable subscription_identifier_available: bool, "Whether the server has subscription identifiers.", [Connack];
    0x2A SharedSubscriptionAvailable shared_subscription_available: bool, "Whether the server has shared subscriptions.", [Connack];
}

/// Properties that have been checked.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Properties<'a> {
    bytes: &'a [u8],
    /// The identifiers that occur, a bit each.
    present: u64,
}

impl<'a> Properties<'a> {
    /// No properties.
    pub const NONE: Self = Self { bytes: &[], present: 0 };

    /// Takes a Property Length and that number of bytes of properties, which must be allowed in `location`.
    #[inline]
    pub(crate) fn take(fields: &mut Fields<'a>, location: PropertyLocation) -> Result<Self, Violation> {
        let length = fields.integer()?;
        if length == 0 {
            return Ok(Self::NONE);
        }
        let bytes = fields.bytes(length as usize).map_err(|_| Violation::PropertyLength)?;
        Ok(Self { bytes, present: check(bytes, location)? })
    }

    #[inline]
    fn has(&self, identifier: u8) -> bool {
        self.present & 1 << identifier != 0
    }

    /// Whether the packet has no properties.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// As they are on the wire, without the Property Length.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// One after the other, in the order in which they came.
    #[inline]
    pub fn iter(&self) -> Iter<'a> {
        Iter(Fields(self.bytes))
    }

    /// The user properties, in the order in which they came.
    pub fn user_properties(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let any = if self.has(USER_PROPERTY) { self.iter() } else { Iter(Fields(&[])) };
        any.filter_map(|property| match property {
            Property::UserProperty(pair) => Some(pair),
            _ => None,
        })
    }

    /// The value of the first user property of a name.
    #[inline]
    pub fn user_property(&self, name: &str) -> Option<&'a str> {
        self.user_properties().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Bytes on the wire with the Property Length; the length may be left out without properties.
    #[inline]
    pub(crate) fn wire_len(&self) -> usize {
        integer_len(self.bytes.len()) + self.bytes.len()
    }

    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_integer(self.bytes.len(), out);
        out.extend_from_slice(self.bytes);
    }

    /// Whether each may stand in `location`; what is put together need not be.
    pub(crate) fn fit(&self, location: PropertyLocation) -> Result<(), EncodeError> {
        let bit = location.bit();
        let misplaced = (0..64).any(|id| self.present & 1 << id != 0 && PLACES[id] & bit == 0);
        if misplaced { Err(EncodeError::Forbidden(Violation::PropertyMisplaced)) } else { Ok(()) }
    }
}

/// Checks all properties, and says which identifiers occur.
fn check(bytes: &[u8], location: PropertyLocation) -> Result<u64, Violation> {
    let mut fields = Fields(bytes);
    let mut present = 0;
    let bit = location.bit();
    while !fields.is_empty() {
        let property = match Property::take(&mut fields) {
            Err(Violation::Truncated) => return Err(Violation::PropertyLength),
            other => other?,
        };
        let identifier = property.identifier();
        if PLACES[usize::from(identifier)] & bit == 0 {
            return Err(Violation::PropertyMisplaced);
        }
        // Those may come several times (sections 3.1.2.11.8 and 3.3.2.3.8).
        let repeats = identifier == USER_PROPERTY
            || identifier == SUBSCRIPTION_IDENTIFIER
                && location == PropertyLocation::Packet(PacketKind::Publish);
        if !repeats && present & 1 << identifier != 0 {
            return Err(Violation::PropertyRepeated);
        }
        present |= 1 << identifier;
    }
    Ok(present)
}

impl<'a> IntoIterator for Properties<'a> {
    type Item = Property<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Properties one after the other.
#[derive(Clone, Debug)]
pub struct Iter<'a>(Fields<'a>);

impl<'a> Iterator for Iter<'a> {
    type Item = Property<'a>;

    #[inline]
    fn next(&mut self) -> Option<Property<'a>> {
        if self.0.is_empty() {
            return None;
        }
        Property::take(&mut self.0).ok()
    }
}

/// Where properties are put together; it may be used again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertyBuffer {
    bytes: Vec<u8>,
    present: u64,
}

impl PropertyBuffer {
    /// An empty one.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), present: 0 }
    }

    /// Adds a property.
    ///
    /// # Errors
    /// A field that is too long, or a value that the property cannot have.
    pub fn push(&mut self, property: Property<'_>) -> Result<(), EncodeError> {
        self.bytes.reserve(property.length()?);
        property.put(&mut self.bytes);
        self.present |= 1 << property.identifier();
        Ok(())
    }

    /// The same, to put several in a row.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn with(mut self, property: Property<'_>) -> Result<Self, EncodeError> {
        self.push(property)?;
        Ok(self)
    }

    /// What is in another one, and nothing else.
    pub fn copy_from(&mut self, other: &Self) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.present = other.present;
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.present = 0;
    }

    /// Bytes of memory that it holds beside itself.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// What is in it.
    pub fn properties(&self) -> Properties<'_> {
        Properties { bytes: &self.bytes, present: self.present }
    }
}

/// Takes the properties of a packet; of MQTT 3.1.1, none.
#[inline]
pub(crate) fn take_properties<'a>(
    fields: &mut Fields<'a>,
    kind: PacketKind,
    version: Version,
) -> Result<Properties<'a>, Violation> {
    match version {
        Version::V311 => Ok(Properties::NONE),
        Version::V5 => Properties::take(fields, PropertyLocation::Packet(kind)),
    }
}

/// How many bytes the properties of a packet take; of MQTT 3.1.1, none.
#[inline]
pub(crate) fn properties_len(
    properties: &Properties<'_>,
    kind: PacketKind,
    version: Version,
) -> Result<usize, EncodeError> {
    if properties.is_empty() {
        return Ok(usize::from(version == Version::V5));
    }
    if version == Version::V311 {
        return Err(EncodeError::NeedsVersion5);
    }
    properties.fit(PropertyLocation::Packet(kind))?;
    Ok(properties.wire_len())
}

/// Writes the properties of a packet; of MQTT 3.1.1, none.
#[inline]
pub(crate) fn put_properties(properties: &Properties<'_>, version: Version, out: &mut Vec<u8>) {
    if version == Version::V5 {
        properties.put(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], kind: PacketKind) -> Result<Properties<'_>, Violation> {
        Properties::take(&mut Fields(bytes), PropertyLocation::Packet(kind))
    }

    #[test]
    fn properties_are_found_by_name_and_in_order() {
        let mut buffer = PropertyBuffer::new();
        for property in [
            Property::UserProperty(("a", "1")),
            Property::TopicAlias(NonZeroU16::MIN),
            Property::UserProperty(("a", "2")),
            Property::SubscriptionIdentifier(SubscriptionIdentifier::new(7).unwrap()),
            Property::SubscriptionIdentifier(SubscriptionIdentifier::new(300).unwrap()),
        ] {
            buffer.push(property).unwrap();
        }
        let mut wire = Vec::new();
        buffer.properties().put(&mut wire);
        assert_eq!(wire.len(), buffer.properties().wire_len());
        let properties = read(&wire, PacketKind::Publish).unwrap();
        assert_eq!(properties, buffer.properties());
        assert_eq!(properties.user_properties().collect::<Vec<_>>(), [("a", "1"), ("a", "2")]);
        assert_eq!(properties.user_property("a"), Some("1"));
        assert_eq!(properties.topic_alias(), Some(NonZeroU16::MIN));
        assert_eq!(properties.content_type(), None);
        let identifiers = properties.iter().filter_map(|property| match property {
            Property::SubscriptionIdentifier(identifier) => Some(identifier.get()),
            _ => None,
        });
        assert_eq!(identifiers.collect::<Vec<_>>(), [7, 300]);
    }

    #[test]
    fn what_section_2_2_2_forbids_is_refused() {
        use PacketKind::{Connack, Connect, Publish, Subscribe};
        for (bytes, kind, violation) in [
            (&[2, 0x23, 0][..], Publish, Violation::PropertyLength),
            (&[4, 0x23, 0, 1], Publish, Violation::PropertyLength),
            (&[3, 0x23, 0, 0], Publish, Violation::PropertyValue),
            (&[3, 0x21, 0, 0], Connect, Violation::PropertyValue),
            (&[5, 0x27, 0, 0, 0, 0], Connect, Violation::PropertyValue),
            (&[2, 0x24, 2], Connack, Violation::PropertyValue),
            (&[2, 0x25, 2], Connack, Violation::PropertyValue),
            (&[2, 0x0B, 0], Subscribe, Violation::PropertyValue),
            (&[4, 0x0B, 1, 0x0B, 2], Subscribe, Violation::PropertyRepeated),
            (&[6, 0x23, 0, 1, 0x23, 0, 1], Publish, Violation::PropertyRepeated),
            (&[3, 0x21, 0, 1], Publish, Violation::PropertyMisplaced),
            (&[2, 0x04, 0], Publish, Violation::PropertyUnknown),
            (&[2, 0xFF, 0x01], Publish, Violation::PropertyUnknown),
        ] {
            assert_eq!(read(bytes, kind).map(|_| ()), Err(violation), "{bytes:x?}");
        }
    }

    #[test]
    fn what_a_property_cannot_have_is_not_written() {
        let mut buffer = PropertyBuffer::new();
        let long = "x".repeat(65_536);
        let error = buffer.push(Property::ReasonString(&long));
        assert_eq!(error, Err(EncodeError::FieldTooLong { length: 65_536 }));
        assert!(buffer.push(Property::MaximumQos(Qos::ExactlyOnce)).is_err());
        assert!(buffer.push(Property::UserProperty(("a", "\0"))).is_err());
        assert!(buffer.properties().is_empty());
    }
}
