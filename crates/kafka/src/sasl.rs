//! How a client logs in: the mechanism, and requests that carry its messages (KIP-43, KIP-152; KIP-368 for sessions that end).

use crate::bytes::{Input, Malformed, Output, put_bytes, put_text};
use crate::error_code::ErrorCode;
use crate::message::{Request, Response};

/// Bytes of an answer of whoever has not shown yet that it knows the user: a message of SCRAM has less than 1 KiB.
pub(crate) const BEFORE_LOGIN: usize = 64 << 10;

/// A way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// SCRAM with SHA-512: the password does not go over the link.
    ScramSha512,
    /// The same with SHA-256 (RFC 7677).
    ScramSha256,
    /// User and password as they are (RFC 4616).
    Plain,
}

impl Mechanism {
    /// All of them, the strongest first.
    pub const ALL: [Self; 3] = [Self::ScramSha512, Self::ScramSha256, Self::Plain];

    /// Its registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::Plain => "PLAIN",
        }
    }
}

/// SaslHandshake: names the mechanism of the login that follows.
#[derive(Clone, Copy, Debug)]
pub struct SaslHandshake {
    /// The mechanism.
    pub mechanism: Mechanism,
}

/// The answer to [`SaslHandshake`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanisms {
    /// Whether the mechanism is offered.
    pub error: ErrorCode,
    /// Names of all mechanisms that are, in the broker's own words.
    pub names: Vec<String>,
}

impl Mechanisms {
    /// Whether a mechanism is among them.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.names.iter().any(|name| name == mechanism.name())
    }
}

impl Request for SaslHandshake {
    const KEY: i16 = 17;
    const VERSION: i16 = 1;
    type Response = Mechanisms;
    const LONGEST_ANSWER: usize = BEFORE_LOGIN;

    fn put(&self, out: &mut Output) {
        put_text(self.mechanism.name(), out);
    }
}

impl Response for Mechanisms {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        Ok(Self { error: ErrorCode(input.i16()?), names: input.array(Input::text)? })
    }
}

/// SaslAuthenticate: a message of the mechanism.
#[derive(Clone, Copy, Debug)]
pub struct SaslAuthenticate<'a> {
    /// The message.
    pub message: &'a [u8],
}

/// The answer to [`SaslAuthenticate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaslResponse {
    /// Whether the message was accepted.
    pub error: ErrorCode,
    /// What the broker says about that.
    pub words: Option<String>,
    /// The broker's message of the mechanism.
    pub message: Vec<u8>,
    /// How long the login holds, in milliseconds; 0 for as long as the connection.
    pub lifetime: i64,
}

impl Request for SaslAuthenticate<'_> {
    const KEY: i16 = 36;
    const VERSION: i16 = 1;
    type Response = SaslResponse;
    const LONGEST_ANSWER: usize = BEFORE_LOGIN;

    fn put(&self, out: &mut Output) {
        put_bytes(self.message, out);
    }
}

impl Response for SaslResponse {
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed> {
        let (error, words) = (ErrorCode(input.i16()?), input.nullable_text()?);
        Ok(Self { error, words, message: input.bytes()?.to_vec(), lifetime: input.i64()? })
    }
}

/// The only message of [`Mechanism::Plain`] (RFC 4616 section 2). Neither has a zero byte, which parts them.
pub fn plain(user: &str, password: &str) -> Vec<u8> {
    ["", user, password].join("\0").into_bytes()
}
