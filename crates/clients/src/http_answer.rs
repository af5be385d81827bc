//! What a connection of HTTP brings: parts of answers.

use std::ops::Deref;
use weir_metrics::Failure;
use weir_web::Response;

/// What bytes of the link brought.
#[derive(Debug)]
pub enum Answer<'a> {
    /// The head of the answer.
    Head(Response),
    /// A piece of its body.
    Piece(Piece<'a>),
    /// All of it has come, as announced. Another request may follow.
    End,
    /// Nothing before more bytes come.
    More,
    /// What came is no answer, or leads nowhere.
    Failed(Failure, String),
    /// The server has given up this request alone: others go on. Another may follow.
    Reset(Failure, String),
}

/// A piece of a body: where it lay in what came, or in a frame of HTTP/2.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Of what came.
    Borrowed(&'a [u8]),
    /// Of a frame.
    Shared(bytes::Bytes),
}

impl Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}
