//! What a client asks its server for.

use crate::error::EncodeError;
use crate::packet::{Connect, Will};
use crate::property::{Property, PropertyBuffer};
use crate::reader::Limits;
use crate::{MAX_PACKET_SIZE, Qos, Version};
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};

/// What acknowledges messages that come: the client itself, or its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Acknowledging {
    /// The client, as soon as it has passed the message to the caller.
    #[default]
    AtOnce,
    /// The caller, with [`Client::acknowledge`](super::Client::acknowledge), when it has done with it what it must; behind the end
    /// of the connection with [`Client::settle`](super::Client::settle).
    ByCaller,
}

/// A message that the server publishes when the client is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WillOptions {
    /// Its topic.
    pub topic: String,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its quality of service.
    pub qos: Qos,
    /// Whether the server is to keep it.
    pub retain: bool,
    /// Its properties; none in MQTT 3.1.1.
    pub properties: PropertyBuffer,
}

/// What a client asks its server for. [`ClientOptions::new`] fills in what is usual.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// The version to speak.
    pub version: Version,
    /// The client identifier; may be empty.
    pub client_id: String,
    /// Whether an earlier session is to be thrown away.
    pub clean_start: bool,
    /// For how long the session outlives the connection, in seconds; `u32::MAX` for ever. MQTT 5 only: in 3.1.1 a
    /// session that is not clean outlives it for ever.
    pub session_expiry: u32,
    /// Longest silence of the client, in seconds; 0 for any.
    pub keep_alive: u16,
    /// User name.
    pub user_name: Option<String>,
    /// Password; not shown by `Debug`.
    pub password: Option<Vec<u8>>,
    /// A last will.
    pub will: Option<WillOptions>,
    /// How many messages of QoS 1 and 2 the server may send before the first is acknowledged; MQTT 5 only, not 0.
    pub receive_maximum: u16,
    /// Whether the client disconnects from a server that sends more than that, with the reason (MQTT-3.3.4-9). mosquitto 2.0.11 sends a few
    /// more.
    pub strict_receive_maximum: bool,
    /// The largest packet that the server may send, in bytes; not 0.
    pub maximum_packet_size: u32,
    /// The largest message that is handed over whole, in bytes; see [`Limits::whole`].
    pub whole: u32,
    /// The highest topic alias that the server may use; MQTT 5 only.
    pub topic_alias_maximum: u16,
    /// How many messages of QoS 1 and 2 the client sends before the first is acknowledged, if the server takes as many.
    pub window: u16,
    /// What acknowledges messages that come: the client itself, or its caller.
    pub acknowledging: Acknowledging,
    /// How to authenticate beyond user name and password; MQTT 5 only.
    pub authentication_method: Option<String>,
    /// What the method needs at first; MQTT 5 only.
    pub authentication_data: Option<Vec<u8>>,
    /// User properties of CONNECT; MQTT 5 only.
    pub user_properties: Vec<(String, String)>,
}

impl ClientOptions {
    /// A client without credentials, with a clean session and a keep-alive of a minute.
    pub fn new(version: Version, client_id: impl Into<String>) -> Self {
        Self {
            version,
            client_id: client_id.into(),
            clean_start: true,
            session_expiry: 0,
            keep_alive: 60,
            user_name: None,
            password: None,
            will: None,
            receive_maximum: u16::MAX,
            strict_receive_maximum: true,
            maximum_packet_size: MAX_PACKET_SIZE,
            whole: Limits::default().whole,
            topic_alias_maximum: 0,
            window: 100,
            acknowledging: Acknowledging::AtOnce,
            authentication_method: None,
            authentication_data: None,
            user_properties: Vec::new(),
        }
    }

    /// Whether the options can be said in a CONNECT.
    ///
    /// # Errors
    /// What is too long, or what this version cannot say.
    pub fn check(&self) -> Result<(), EncodeError> {
        self.encode(&mut Vec::new())
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { packet: self.maximum_packet_size, whole: self.whole }
    }

    /// Appends CONNECT; nothing if it cannot be said.
    pub(super) fn write_connect(&self, out: &mut Vec<u8>) {
        let written = self.encode(out);
        debug_assert_eq!(written, Ok(()), "options are to be checked");
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let properties = match self.version {
            Version::V311 => PropertyBuffer::new(),
            Version::V5 => self.properties()?,
        };
        let connect = Connect {
            version: self.version,
            clean_start: self.clean_start,
            keep_alive: self.keep_alive,
            properties: properties.properties(),
            client_id: &self.client_id,
            will: self.will.as_ref().map(|will| Will {
                topic: &will.topic,
                payload: &will.payload,
                qos: will.qos,
                retain: will.retain,
                properties: will.properties.properties(),
            }),
            user_name: self.user_name.as_deref(),
            password: self.password.as_deref(),
        };
        connect.encode(out)
    }

    /// Those that say something else than if they were left out.
    fn properties(&self) -> Result<PropertyBuffer, EncodeError> {
        let mut properties = PropertyBuffer::new();
        if self.session_expiry > 0 {
            properties.push(Property::SessionExpiryInterval(self.session_expiry))?;
        }
        if let Some(most) = NonZeroU16::new(self.receive_maximum).filter(|most| *most != NonZeroU16::MAX) {
            properties.push(Property::ReceiveMaximum(most))?;
        }
        if let Some(size) =
            NonZeroU32::new(self.maximum_packet_size).filter(|size| size.get() < MAX_PACKET_SIZE)
        {
            properties.push(Property::MaximumPacketSize(size))?;
        }
        if self.topic_alias_maximum > 0 {
            properties.push(Property::TopicAliasMaximum(self.topic_alias_maximum))?;
        }
        if let Some(method) = &self.authentication_method {
            properties.push(Property::AuthenticationMethod(method))?;
        }
        if let Some(data) = &self.authentication_data {
            properties.push(Property::AuthenticationData(data))?;
        }
        for (name, value) in &self.user_properties {
            properties.push(Property::UserProperty((name, value)))?;
        }
        Ok(properties)
    }
}

/// Without user name and password: they never reach a log.
impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("version", &self.version)
            .field("client_id", &self.client_id)
            .field("clean_start", &self.clean_start)
            .field("keep_alive", &self.keep_alive)
            .field("user_name", &self.user_name.as_ref().map(|_| "…"))
            .field("password", &self.password.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}
