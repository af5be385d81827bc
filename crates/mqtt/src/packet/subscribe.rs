//! SUBSCRIBE and UNSUBSCRIBE (sections 3.8 and 3.10 of both standards).

use crate::error::{EncodeError, Violation};
use crate::field::{Fields, PacketId, put_field, put_header, text_len};
use crate::packet_kind::PacketKind;
use crate::property::{Properties, properties_len, put_properties, take_properties};
use crate::topic::SHARE;
use crate::{Qos, Version};
use std::fmt;

/// Whether a server sends what it has kept when a client subscribes (MQTT 5 section 3.8.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RetainHandling {
    /// Each time.
    #[default]
    Always,
    /// Only if the subscription is a new one.
    New,
    /// Never.
    Never,
}

/// How to be sent what matches (MQTT 5 section 3.8.3.1; of MQTT 3.1.1, the QoS only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SubscriptionOptions {
    /// The highest QoS of what is sent.
    pub qos: Qos,
    /// Not what the client itself published.
    pub no_local: bool,
    /// With the retain flag that it was published with.
    pub retain_as_published: bool,
    /// What to do with messages that were kept.
    pub retain_handling: RetainHandling,
}

impl SubscriptionOptions {
    /// Of this QoS, else as in MQTT 3.1.1.
    pub const fn qos(qos: Qos) -> Self {
        Self { qos, no_local: false, retain_as_published: false, retain_handling: RetainHandling::Always }
    }

    fn read(byte: u8, version: Version) -> Result<Self, Violation> {
        let reserved = if version == Version::V311 { 0b1111_1100 } else { 0b1100_0000 };
        let qos = Qos::from_bits(byte & 3).filter(|_| byte & reserved == 0);
        Ok(Self {
            qos: qos.ok_or(Violation::SubscriptionOptions)?,
            no_local: byte & 4 != 0,
            retain_as_published: byte & 8 != 0,
            retain_handling: match byte >> 4 & 3 {
                0 => RetainHandling::Always,
                1 => RetainHandling::New,
                2 => RetainHandling::Never,
                _ => return Err(Violation::RetainHandling),
            },
        })
    }

    fn byte(self) -> u8 {
        self.qos.bits()
            | u8::from(self.no_local) << 2
            | u8::from(self.retain_as_published) << 3
            | (self.retain_handling as u8) << 4
    }
}

/// One topic filter of a SUBSCRIBE, and how to be sent what matches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// The topic filter: UTF-8, else not yet checked; see [`topic::Filter`](crate::topic::Filter).
    pub filter: &'a str,
    /// Its options.
    pub options: SubscriptionOptions,
}

/// Subscriptions that have been checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Subscriptions<'a> {
    bytes: &'a [u8],
    version: Version,
}

impl<'a> Subscriptions<'a> {
    fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        let bytes = fields.0;
        if bytes.is_empty() {
            return Err(Violation::NothingToSubscribe);
        }
        while !fields.is_empty() {
            let subscription = take_subscription(fields, version)?;
            if subscription.options.no_local && subscription.filter.starts_with(SHARE) {
                return Err(Violation::SharedNoLocal);
            }
        }
        Ok(Self { bytes, version })
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Subscription<'a>> + use<'a> {
        let (mut fields, version) = (Fields(self.bytes), self.version);
        std::iter::from_fn(move || take_subscription(&mut fields, version).ok())
    }
}

fn take_subscription<'a>(fields: &mut Fields<'a>, version: Version) -> Result<Subscription<'a>, Violation> {
    let filter = fields.text()?;
    Ok(Subscription { filter, options: SubscriptionOptions::read(fields.byte()?, version)? })
}

impl fmt::Debug for Subscriptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A client subscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Which SUBACK will answer it.
    pub packet_id: PacketId,
    /// Properties.
    pub properties: Properties<'a>,
    /// To what; at least one.
    pub subscriptions: Subscriptions<'a>,
}

impl<'a> Subscribe<'a> {
    pub(super) fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        let packet_id = fields.packet_id()?;
        let properties = take_properties(fields, PacketKind::Subscribe, version)?;
        Ok(Self { packet_id, properties, subscriptions: Subscriptions::take(fields, version)? })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A property that SUBSCRIBE, or this version, does not have; subscriptions of another version.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.subscriptions.version != version {
            return Err(EncodeError::Forbidden(Violation::SubscriptionOptions));
        }
        let kind = PacketKind::Subscribe;
        let length = properties_len(&self.properties, kind, version)?;
        put_header(kind.first_byte(), 2 + length + self.subscriptions.bytes.len(), out)?;
        out.extend_from_slice(&self.packet_id.get().to_be_bytes());
        put_properties(&self.properties, version, out);
        out.extend_from_slice(self.subscriptions.bytes);
        Ok(())
    }

    /// Appends a SUBSCRIBE to these.
    ///
    /// # Errors
    /// No subscription, a filter that is too long, No Local on a shared one, or what this version cannot say.
    pub fn write(
        packet_id: PacketId,
        properties: &Properties<'_>,
        subscriptions: &[Subscription<'_>],
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let kind = PacketKind::Subscribe;
        if subscriptions.is_empty() {
            return Err(EncodeError::Forbidden(Violation::NothingToSubscribe));
        }
        let mut remaining = 2 + properties_len(properties, kind, version)?;
        for Subscription { filter, options } in subscriptions {
            if version == Version::V311 && *options != SubscriptionOptions::qos(options.qos) {
                return Err(EncodeError::NeedsVersion5);
            }
            if options.no_local && filter.starts_with(SHARE) {
                return Err(EncodeError::Forbidden(Violation::SharedNoLocal));
            }
            remaining += text_len(filter)? + 1;
        }
        put_header(kind.first_byte(), remaining, out)?;
        out.extend_from_slice(&packet_id.get().to_be_bytes());
        put_properties(properties, version, out);
        for Subscription { filter, options } in subscriptions {
            put_field(filter.as_bytes(), out);
            out.push(options.byte());
        }
        Ok(())
    }
}

/// Topic filters that have been checked to be UTF-8.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Filters<'a>(&'a [u8]);

impl<'a> Filters<'a> {
    fn take(fields: &mut Fields<'a>) -> Result<Self, Violation> {
        let bytes = fields.0;
        if bytes.is_empty() {
            return Err(Violation::NothingToUnsubscribe);
        }
        while !fields.is_empty() {
            fields.text()?;
        }
        Ok(Self(bytes))
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut fields = Fields(self.0);
        std::iter::from_fn(move || fields.text().ok())
    }
}

impl fmt::Debug for Filters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A client unsubscribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Which UNSUBACK will answer it.
    pub packet_id: PacketId,
    /// Properties.
    pub properties: Properties<'a>,
    /// From what; at least one.
    pub filters: Filters<'a>,
}

impl<'a> Unsubscribe<'a> {
    pub(super) fn take(fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        let packet_id = fields.packet_id()?;
        let properties = take_properties(fields, PacketKind::Unsubscribe, version)?;
        Ok(Self { packet_id, properties, filters: Filters::take(fields)? })
    }

    /// Appends the packet.
    ///
    /// # Errors
    /// A property that UNSUBSCRIBE, or this version, does not have.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let kind = PacketKind::Unsubscribe;
        let length = properties_len(&self.properties, kind, version)?;
        put_header(kind.first_byte(), 2 + length + self.filters.0.len(), out)?;
        out.extend_from_slice(&self.packet_id.get().to_be_bytes());
        put_properties(&self.properties, version, out);
        out.extend_from_slice(self.filters.0);
        Ok(())
    }

    /// Appends an UNSUBSCRIBE from these.
    ///
    /// # Errors
    /// No filter, or one that is too long; a property that UNSUBSCRIBE, or this version, does not have.
    pub fn write(
        packet_id: PacketId,
        properties: &Properties<'_>,
        filters: &[&str],
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let kind = PacketKind::Unsubscribe;
        if filters.is_empty() {
            return Err(EncodeError::Forbidden(Violation::NothingToUnsubscribe));
        }
        let mut remaining = 2 + properties_len(properties, kind, version)?;
        for filter in filters {
            remaining += text_len(filter)?;
        }
        put_header(kind.first_byte(), remaining, out)?;
        out.extend_from_slice(&packet_id.get().to_be_bytes());
        put_properties(properties, version, out);
        for filter in filters {
            put_field(filter.as_bytes(), out);
        }
        Ok(())
    }
}
