//! What ends a connection, on either side.

use crate::assembly::AssemblyError;
use crate::message::{command, control, user_control};
use crate::server::MAX_STREAMS;
use crate::{chunk, handshake};

/// The peer broke the protocol. What a server refuses in good order is a
/// [`Status`](crate::ClientEvent::Status) and no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// In the handshake.
    #[error("handshake: {0}")]
    Handshake(#[from] handshake::Error),
    /// In the chunk stream.
    #[error("chunk stream: {0}")]
    Chunk(#[from] chunk::Error),
    /// In putting messages together.
    #[error("message: {0}")]
    Assembly(#[from] AssemblyError),
    /// In a protocol control message.
    #[error("control message: {0}")]
    Control(#[from] control::Error),
    /// In a user control event.
    #[error("user control event: {0}")]
    UserControl(#[from] user_control::Error),
    /// In a command.
    #[error("command: {0}")]
    Command(#[from] command::Error),
    /// A server's answer to `createStream` holds no number that a stream could have (section 7.2.1.3).
    #[error("the server created a stream without a usable number")]
    StreamNumber,
    /// A client created more than [`MAX_STREAMS`].
    #[error("the client asks for more than {MAX_STREAMS} streams")]
    TooManyStreams,
}
