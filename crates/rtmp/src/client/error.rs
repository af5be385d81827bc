//! What a client cannot do now.

/// Media cannot be published before the stream has been created, or after it was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no stream to publish on")]
pub struct NotStreaming;
