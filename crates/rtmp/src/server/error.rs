//! What ends a server's connection.

use super::MAX_STREAMS;
use crate::assembly::AssemblyError;
use crate::message::{command, control, user_control};
use crate::{chunk, handshake};

/// The client broke the protocol.
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
    /// The client created more than [`MAX_STREAMS`].
    #[error("the client asks for more than {MAX_STREAMS} streams")]
    TooManyStreams,
}
