//! The dialogue of one client with its server: packets sent, packets received, and the session's state.
//!
//! Messages that are sent are not kept: each has a token of the caller's, and when a session is resumed the caller is
//! asked for the message of a token again. What a [`Session`] holds is a few bytes a message in flight.

mod dispatcher;
mod event;
mod flight;
mod granted;
mod options;
mod session;

pub use event::{ClientEvent, Message};
pub use granted::ServerLimits;
pub use options::{Acknowledging, ClientOptions, WillOptions};
pub use session::{Resend, Session};

use crate::error::{EncodeError, Error};
use crate::packet::{
    Acknowledgement, Disconnect, Packet, PacketId, Publish, Subscribe, Subscription, Unsubscribe,
};
use crate::property::Properties;
use crate::reader::Reader;
use crate::{Aliases, Qos, ReasonCode, Version};
use dispatcher::Dispatcher;
use flight::Awaits;
use std::sync::Arc;
use std::time::Duration;

/// One client's connection.
///
/// ```
/// use std::time::Duration;
/// use weir_mqtt::{Client, ClientEvent, ClientOptions, Publish, Qos, Version};
/// use weir_mqtt::client::Session;
///
/// let now = Duration::ZERO;
/// let mut client = Client::new(ClientOptions::new(Version::V5, "c"), Session::new(), now);
/// // CONNECT is there to be sent; the caller takes off what it has sent.
/// client.output().clear();
/// client.input(&[0x20, 3, 0, 0, 0], now, &mut |event| {
///     assert!(matches!(event, ClientEvent::Connected(_)));
/// })?;
/// let message = Publish { qos: Qos::AtLeastOnce, ..Publish::new("a/b", b"hello") };
/// client.publish(&message, 1, now)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    options: Arc<ClientOptions>,
    reader: Reader,
    session: Session,
    phase: ClientPhase,
    output: Vec<u8>,
    aliases: Aliases,
    granted: ServerLimits,
    /// The large message that is under way.
    large: Option<(Qos, Option<PacketId>, bool)>,
    /// When the last packet was written.
    last_sent: Duration,
    /// When the PINGREQ was written that no answer has come to.
    pinged: Option<Duration>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPhase {
    Connecting,
    Connected,
    Over,
}

/// A message that cannot be published now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// There is no connection, or none any more.
    #[error("the client is not connected")]
    NotConnected,
    /// As many messages wait for an acknowledgement as may.
    #[error("as many messages wait for an acknowledgement as may")]
    WindowFull,
    /// The server does not take messages of this QoS (MQTT 5 section 3.2.2.3.4).
    #[error("the server takes no messages of this QoS")]
    QosNotSupported,
    /// The server keeps no messages (MQTT 5 section 3.2.2.3.5).
    #[error("the server keeps no messages")]
    RetainNotSupported,
    /// The topic alias is above what the server takes (MQTT 5 section 3.2.2.3.8).
    #[error("the server takes no topic alias as high as this")]
    TopicAliasTooHigh,
    /// The packet is larger than the server takes (MQTT 5 section 3.2.2.3.6).
    #[error("the packet has {size} bytes, and the server takes {limit}")]
    TooLarge {
        /// Its size, in bytes.
        size: usize,
        /// What the server takes, in bytes.
        limit: u32,
    },
    /// It cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The server let a PINGREQ go without an answer for as long as the keep-alive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server did not answer PINGREQ within {seconds} s (MQTT 5 section 3.1.2.10)")]
pub struct PingUnanswered {
    /// How long was waited.
    pub seconds: u16,
}

impl Client {
    /// A client with CONNECT ready to be sent. Options may be shared between clients as an [`Arc`].
    ///
    /// # Panics
    /// Never: options are checked as they are made.
    pub fn new(options: impl Into<Arc<ClientOptions>>, mut session: Session, now: Duration) -> Self {
        let options = options.into();
        let mut output = Vec::new();
        options.write_connect(&mut output);
        if options.clean_start {
            session.clear();
        }
        Self {
            reader: Reader::new(options.version, options.limits()),
            session,
            phase: ClientPhase::Connecting,
            output,
            aliases: Aliases::default(),
            granted: ServerLimits::before(&options),
            large: None,
            last_sent: now,
            pinged: None,
            options,
        }
    }

    /// Bytes to send. The caller takes off what it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Reads bytes from the server, in pieces of any size, and reports what happened.
    ///
    /// # Errors
    /// The rule that the server breaks. A DISCONNECT that says so is then ready to be sent, and the connection is of
    /// no further use.
    #[inline]
    pub fn input(
        &mut self,
        bytes: &[u8],
        now: Duration,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), Error> {
        let mut input = bytes;
        // The dialogue and the reader side by side: an event borrows the reader's buffer.
        let Self { options, reader, session, phase, output, aliases, granted, large, last_sent, pinged } =
            self;
        let written = output.len();
        let mut dispatcher = Dispatcher { options, session, phase, output, aliases, granted, large, pinged };
        let read = loop {
            match reader.next(&mut input) {
                Ok(Some(event)) => {
                    if let Err((packet, violation)) = dispatcher.on_event(&event, on) {
                        break Err(Error {
                            packet: Some(packet),
                            violation,
                            version: dispatcher.options.version,
                        });
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if output.len() > written {
            *last_sent = now;
        }
        if let Err(error) = read {
            self.refuse(error.reason());
        }
        read
    }

    /// Whether the server has accepted the connection, and it goes on.
    pub fn is_connected(&self) -> bool {
        self.phase == ClientPhase::Connected
    }

    /// What the server takes.
    pub fn granted(&self) -> &ServerLimits {
        &self.granted
    }

    /// How many more messages of QoS 1 and 2 may be published before one must be acknowledged.
    #[inline]
    pub fn room(&self) -> u16 {
        let window = self.options.window.min(self.granted.receive_maximum);
        window.saturating_sub(self.session.flight.publishes())
    }

    /// Publishes a message. Its packet identifier and DUP are set here; `token` comes back with the acknowledgement,
    /// and is what the message is asked for by when a session is resumed.
    ///
    /// # Errors
    /// See [`PublishError`]. Nothing was written.
    #[inline]
    pub fn publish(
        &mut self,
        message: &Publish<'_>,
        token: u64,
        now: Duration,
    ) -> Result<Option<PacketId>, PublishError> {
        self.may_publish(message)?;
        if message.qos == Qos::AtMostOnce {
            self.write_publish(&Publish { dup: false, packet_id: None, ..*message }, now)?;
            return Ok(None);
        }
        if self.room() == 0 {
            return Err(PublishError::WindowFull);
        }
        let awaits = if message.qos == Qos::AtLeastOnce { Awaits::Puback } else { Awaits::Pubrec };
        let id = self.session.flight.begin(awaits, token).ok_or(PublishError::WindowFull)?;
        let written = self.write_publish(&Publish { dup: false, packet_id: Some(id), ..*message }, now);
        if let Err(error) = written {
            self.session.flight.end(id);
            return Err(error);
        }
        Ok(Some(id))
    }

    /// The next message that a resumed session has to send again, in the order in which they were sent first
    /// (MQTT-4.6.0-1). Give the message to [`Self::resend`].
    pub fn next_resend(&mut self) -> Option<Resend> {
        if self.is_connected() { self.session.resend.pop_front() } else { None }
    }

    /// Sends a message again, with its packet identifier and DUP.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub fn resend(
        &mut self,
        resend: Resend,
        message: &Publish<'_>,
        now: Duration,
    ) -> Result<(), PublishError> {
        self.may_publish(message)?;
        self.write_publish(&Publish { dup: true, packet_id: Some(resend.packet_id), ..*message }, now)
    }

    /// Subscribes. The answer carries `token`.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn subscribe(
        &mut self,
        subscriptions: &[Subscription<'_>],
        properties: &Properties<'_>,
        token: u64,
        now: Duration,
    ) -> Result<PacketId, PublishError> {
        let count = subscriptions.len() as u16;
        self.request(Awaits::Suback(count), token, now, |id, version, out| {
            Subscribe::write(id, properties, subscriptions, version, out)
        })
    }

    /// Unsubscribes. The answer carries `token`.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn unsubscribe(
        &mut self,
        filters: &[&str],
        properties: &Properties<'_>,
        token: u64,
        now: Duration,
    ) -> Result<PacketId, PublishError> {
        let count = filters.len() as u16;
        self.request(Awaits::Unsuback(count), token, now, |id, version, out| {
            Unsubscribe::write(id, properties, filters, version, out)
        })
    }

    /// Acknowledges a message that came, where the options leave that to the caller; in the order in which messages
    /// came (MQTT-4.6.0-2). `reason` is for MQTT 5; MQTT 3.1.1 can only say that all is well.
    ///
    /// # Errors
    /// A reason that PUBACK and PUBREC do not have.
    pub fn acknowledge(
        &mut self,
        packet_id: PacketId,
        reason: ReasonCode,
        now: Duration,
    ) -> Result<(), EncodeError> {
        let reason = if self.options.version == Version::V311 { ReasonCode::Success } else { reason };
        let kind = self.session.answer(packet_id, reason);
        self.last_sent = now;
        Acknowledgement::of(packet_id, reason).encode(kind, self.options.version, &mut self.output)
    }

    /// The caller is done with a message that came by an earlier connection of this session, which the server has not lost since. At
    /// QoS 2 it is acknowledged when it has come again, at once if it has; at QoS 1 each coming is a message of its own, and
    /// nothing is done. Says whether it was acknowledged.
    pub fn settle(&mut self, packet_id: PacketId, now: Duration) -> bool {
        let answers = self.session.settle(packet_id) && self.is_connected();
        // Success is a reason that both versions have.
        answers && self.acknowledge(packet_id, ReasonCode::Success, now).is_ok()
    }

    /// Sends PINGREQ.
    pub fn ping(&mut self, now: Duration) {
        let written = Packet::Pingreq.encode(self.options.version, &mut self.output);
        debug_assert_eq!(written, Ok(()), "PINGREQ always fits");
        self.last_sent = now;
        self.pinged.get_or_insert(now);
    }

    /// Sends DISCONNECT. The connection may be closed when it is sent.
    ///
    /// # Errors
    /// A reason or a property that DISCONNECT, or this version, does not have.
    pub fn disconnect(&mut self, disconnect: &Disconnect<'_>) -> Result<(), EncodeError> {
        if self.phase == ClientPhase::Connected {
            disconnect.encode(self.options.version, &mut self.output)?;
        }
        self.phase = ClientPhase::Over;
        Ok(())
    }

    /// When to call [`Self::handle_timeout`]; `None` if nothing is due.
    pub fn deadline(&self) -> Option<Duration> {
        let keep_alive = Duration::from_secs(self.granted.keep_alive.into());
        if self.phase != ClientPhase::Connected || keep_alive.is_zero() {
            return None;
        }
        Some(match self.pinged {
            // A client that has to send something every T sends it a little earlier.
            None => self.last_sent + keep_alive * 3 / 4,
            Some(pinged) => pinged + keep_alive,
        })
    }

    /// Time passed: sends PINGREQ when one is due (MQTT-3.1.2-20).
    ///
    /// # Errors
    /// The server did not answer the last one.
    pub fn handle_timeout(&mut self, now: Duration) -> Result<(), PingUnanswered> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return Ok(());
        }
        if self.pinged.is_some() {
            return Err(PingUnanswered { seconds: self.granted.keep_alive });
        }
        self.ping(now);
        Ok(())
    }

    /// What outlives the connection; give it to the next one. Of messages of QoS 2 that the caller has been handed, and has not
    /// acknowledged, it is to keep what it was handed: they are not handed out again in this session ([`Self::settle`]).
    pub fn into_session(mut self) -> Session {
        self.end_session();
        self.session
    }

    fn end_session(&mut self) {
        // One of which only a part was handed out comes again.
        if let Some((Qos::ExactlyOnce, Some(id), true)) = self.large.take() {
            self.session.forget(id);
        }
        self.session.disconnect();
    }

    /// The connection is gone: begins the next one, with CONNECT ready to be sent.
    pub fn reconnect(&mut self, now: Duration) {
        self.end_session();
        let session = std::mem::take(&mut self.session);
        *self = Self::new(self.options.clone(), session, now);
    }

    /// The tokens of messages that were sent and wait for an acknowledgement, in the order of sending.
    pub fn in_flight(&self) -> Vec<u64> {
        let waiting = |it| matches!(it, Awaits::Puback | Awaits::Pubrec | Awaits::Pubcomp);
        self.session.flight.waiting(waiting).into_iter().map(|(_, token)| token).collect()
    }

    /// See [`Session::lost`].
    pub fn lost(&mut self) -> Vec<u64> {
        self.session.lost()
    }

    /// Whether a message has begun to come and is not complete.
    pub fn is_inside_message(&self) -> bool {
        self.large.is_some() || self.reader.is_inside_message()
    }

    /// What outlives the connection.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Bytes of memory that the client holds beside itself.
    pub fn memory(&self) -> usize {
        self.reader.memory() + self.output.capacity() + self.session.memory() + self.aliases.memory()
    }

    #[inline]
    fn may_publish(&self, message: &Publish<'_>) -> Result<(), PublishError> {
        if self.phase != ClientPhase::Connected {
            return Err(PublishError::NotConnected);
        }
        if message.qos > self.granted.maximum_qos {
            return Err(PublishError::QosNotSupported);
        }
        if message.retain && !self.granted.retain_available {
            return Err(PublishError::RetainNotSupported);
        }
        if let Some(alias) = message.properties.topic_alias()
            && alias.get() > self.granted.topic_alias_maximum
        {
            return Err(PublishError::TopicAliasTooHigh);
        }
        Ok(())
    }

    #[inline]
    fn write_publish(&mut self, message: &Publish<'_>, now: Duration) -> Result<(), PublishError> {
        let start = self.output.len();
        message.encode(self.options.version, &mut self.output)?;
        self.within_limit(start)?;
        self.last_sent = now;
        Ok(())
    }

    /// Takes back what was written from `start` on if it is larger than the server takes.
    fn within_limit(&mut self, start: usize) -> Result<(), PublishError> {
        let (size, limit) = (self.output.len() - start, self.granted.maximum_packet_size);
        if size > limit as usize {
            self.output.truncate(start);
            return Err(PublishError::TooLarge { size, limit });
        }
        Ok(())
    }

    fn request(
        &mut self,
        awaits: Awaits,
        token: u64,
        now: Duration,
        write: impl FnOnce(PacketId, Version, &mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<PacketId, PublishError> {
        if self.phase != ClientPhase::Connected {
            return Err(PublishError::NotConnected);
        }
        let id = self.session.flight.begin(awaits, token).ok_or(PublishError::WindowFull)?;
        let start = self.output.len();
        let written = write(id, self.options.version, &mut self.output)
            .map_err(PublishError::from)
            .and_then(|()| self.within_limit(start));
        if let Err(error) = written {
            self.session.flight.end(id);
            return Err(error);
        }
        self.last_sent = now;
        Ok(id)
    }

    /// Disconnects with the reason code of the server's violation (MQTT 5 section 4.13.1).
    fn refuse(&mut self, reason: ReasonCode) {
        if self.phase == ClientPhase::Connected && self.options.version == Version::V5 {
            // A reason that DISCONNECT does not have is left to the closing of the connection.
            let _ = Disconnect::of(reason).encode(Version::V5, &mut self.output);
        }
        self.phase = ClientPhase::Over;
    }
}
