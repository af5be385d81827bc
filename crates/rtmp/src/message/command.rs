//! Command messages (RTMP 1.0 sections 7.1.1 and 7.2).

use std::borrow::Cow;

use super::{MessageKind, Status};
use crate::amf0::{self, Decoder, Object, Value};

/// A command, or the answer to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Command<'a> {
    /// What is to be done; `_result` and `_error` are answers.
    pub name: Cow<'a, str>,
    /// Ties an answer to its command; 0 asks for none.
    pub transaction_id: f64,
    /// The command object: the properties of `connect`, and null for most others.
    pub object: Value<'a>,
    /// What follows the command object.
    pub arguments: Vec<Value<'a>>,
}

/// A command message that is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its values cannot be decoded.
    #[error(transparent)]
    Amf0(#[from] amf0::Error),
    /// It does not begin with a string, the command's name.
    #[error("a command does not begin with its name")]
    Name,
}

impl<'a> Command<'a> {
    /// A command without a command object.
    pub fn new(name: &'a str, transaction_id: f64, arguments: Vec<Value<'a>>) -> Self {
        Self { name: name.into(), transaction_id, object: Value::Null, arguments }
    }

    /// The answer to a command that was carried out.
    pub fn result(transaction_id: f64, object: Value<'a>, arguments: Vec<Value<'a>>) -> Self {
        Self { name: "_result".into(), transaction_id, object, arguments }
    }

    /// The answer to a command that failed.
    pub fn error(transaction_id: f64, status: &'a Status<'_>) -> Self {
        Self::new("_error", transaction_id, vec![status.to_value()])
    }

    /// How things stand on a stream, or on the connection (section 7.2.2).
    pub fn on_status(status: &'a Status<'_>) -> Self {
        Self::new("onStatus", 0.0, vec![status.to_value()])
    }

    /// Parses the payload of a command message. A message of kind [`MessageKind::CommandAmf3`] has a byte before
    /// its AMF 0 values. A missing transaction id is 0, and a missing command object null.
    pub fn parse(kind: MessageKind, payload: &'a [u8]) -> Result<Self, Error> {
        let payload = match (kind, payload) {
            (MessageKind::CommandAmf3, [0, values @ ..]) => values,
            _ => payload,
        };
        let mut values = Decoder::new(payload);
        let Value::String(name) = values.value()? else { return Err(Error::Name) };
        let mut next = || if values.is_empty() { Ok(None) } else { values.value().map(Some) };
        let transaction_id = next()?.and_then(|value| value.as_number()).unwrap_or_default();
        let object = next()?.unwrap_or(Value::Null);
        let mut arguments = Vec::new();
        while let Some(argument) = next()? {
            arguments.push(argument);
        }
        Ok(Self { name, transaction_id, object, arguments })
    }

    /// Appends the payload of a [`MessageKind::CommandAmf0`] message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        amf0::encode(&Value::String(Cow::Borrowed(&self.name)), out);
        amf0::encode(&Value::Number(self.transaction_id), out);
        amf0::encode(&self.object, out);
        amf0::encode_all(&self.arguments, out);
    }

    /// An argument as text, if it is there and a string.
    pub fn text(&self, index: usize) -> Option<&str> {
        self.arguments.get(index)?.as_str()
    }

    /// An argument as a number, if it is there and one.
    pub fn number(&self, index: usize) -> Option<f64> {
        self.arguments.get(index)?.as_number()
    }
}

/// Commands of the connection (section 7.2.1), and those that Flash Media Live Encoder added to it.
impl<'a> Command<'a> {
    /// Opens the connection to an application (section 7.2.1.1).
    pub fn connect(transaction_id: f64, properties: Object<'a>) -> Self {
        Self {
            name: "connect".into(),
            transaction_id,
            object: Value::Object(properties),
            arguments: Vec::new(),
        }
    }

    /// Asks for a message stream (section 7.2.1.3).
    pub fn create_stream(transaction_id: f64) -> Self {
        Self::new("createStream", transaction_id, Vec::new())
    }

    /// Gives up a message stream (section 7.2.2.3).
    pub fn delete_stream(transaction_id: f64, message_stream_id: u32) -> Self {
        Self::new("deleteStream", transaction_id, vec![Value::from(f64::from(message_stream_id))])
    }

    /// Frees a stream's name from a publisher that went away. Not in the specification.
    pub fn release_stream(transaction_id: f64, stream: &'a str) -> Self {
        Self::new("releaseStream", transaction_id, vec![stream.into()])
    }

    /// Announces a publisher to the server's edges. Not in the specification.
    pub fn fc_publish(transaction_id: f64, stream: &'a str) -> Self {
        Self::new("FCPublish", transaction_id, vec![stream.into()])
    }

    /// Takes back [`Command::fc_publish`]. Not in the specification.
    pub fn fc_unpublish(transaction_id: f64, stream: &'a str) -> Self {
        Self::new("FCUnpublish", transaction_id, vec![stream.into()])
    }
}

/// Commands of a stream (section 7.2.2).
impl<'a> Command<'a> {
    /// Starts playing (section 7.2.2.1). `start` in seconds; a negative number asks for the live stream.
    pub fn play(transaction_id: f64, stream: &'a str, start: f64) -> Self {
        Self::new("play", transaction_id, vec![stream.into(), start.into()])
    }

    /// Starts publishing live (section 7.2.2.6).
    pub fn publish(transaction_id: f64, stream: &'a str) -> Self {
        Self::new("publish", transaction_id, vec![stream.into(), "live".into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_the_round_trip() {
        let command = Command::connect(1.0, Object::new().with("app", "live").with("fpad", false));
        let mut payload = Vec::new();
        command.encode(&mut payload);
        assert_eq!(Command::parse(MessageKind::CommandAmf0, &payload), Ok(command));
    }

    #[test]
    fn an_amf3_command_has_a_byte_before_its_values() {
        let mut payload = vec![0];
        Command::play(4.0, "x", -2.0).encode(&mut payload);
        let command = Command::parse(MessageKind::CommandAmf3, &payload).unwrap();
        assert_eq!((&*command.name, command.text(0), command.number(1)), ("play", Some("x"), Some(-2.0)));
    }

    #[test]
    fn a_command_may_end_after_its_name() {
        let mut payload = Vec::new();
        amf0::encode(&"onBWDone".into(), &mut payload);
        let command = Command::parse(MessageKind::CommandAmf0, &payload).unwrap();
        assert_eq!((command.transaction_id, command.object), (0.0, Value::Null));
    }

    #[test]
    fn a_command_without_a_name_is_an_error() {
        assert_eq!(Command::parse(MessageKind::CommandAmf0, &[5]), Err(Error::Name));
        assert!(matches!(Command::parse(MessageKind::CommandAmf0, &[]), Err(Error::Amf0(_))));
    }
}
