//! What is not HTTP.

/// Bytes that are not HTTP, that can be read in two ways, or that have no end. The connection is of no more use: where the
/// next message begins is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// Another protocol.
    #[error("the answer is not HTTP: it begins with {0:?}")]
    NotHttp(String),
    /// HTTP/2, by a server that does not wait for the client's preface (RFC 9113, section 3.4).
    #[error("the server speaks HTTP/2 only, and weir asks by HTTP/1.1: let the server take HTTP/1.1 as well")]
    Http2,
    /// More than any browser or server says before the body.
    #[error("the head is longer than 16 KiB")]
    HeadTooLong,
    /// Not a first line and lines of fields, or too many of them.
    #[error("the head is no HTTP head: {0}")]
    Malformed(#[from] httparse::Error),
    /// Hosts or framings that contradict each other (RFC 9112, section 11.2).
    #[error("the head can be read in two ways: {0}")]
    Ambiguous(&'static str),
    /// A Content-Length that is not a number, or several that differ.
    #[error("the length of the body is not a number: {0:?}")]
    Length(String),
    /// A transfer coding other than chunked.
    #[error("the transfer coding is not one that was asked for: {0:?}")]
    Coding(String),
    /// A chunk without a size.
    #[error("a chunk begins with byte 0x{0:02x}, not with its size")]
    NoChunkSize(u8),
    /// Another line of the chunked coding, or one that is longer than any server needs.
    #[error("a line of the chunked coding is malformed: '{0}'")]
    Chunk(String),
    /// More than the caller takes.
    #[error("the body is longer than what is taken")]
    BodyTooLong,
    /// There was no request that it could be an answer to.
    #[error("an answer came without a request")]
    Unasked,
}

impl HttpError {
    /// The status by which a server says so.
    pub fn status(&self) -> u16 {
        match self {
            Self::HeadTooLong | Self::Malformed(httparse::Error::TooManyHeaders) => 431,
            Self::BodyTooLong => 413,
            Self::Coding(_) => 501,
            _ => 400,
        }
    }
}
