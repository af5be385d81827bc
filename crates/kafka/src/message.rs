//! A request and its answer, each behind its length ("Protocol Request Format": request header 1, response header 0).

use crate::bytes::{Input, Malformed, Output, put_i16, put_i32, put_text};

/// How a client calls itself, in quotas and logs of brokers.
pub const CLIENT_ID: &str = "weir";

/// What a client asks.
pub trait Request {
    /// The API key.
    const KEY: i16;
    /// The version that is spoken.
    const VERSION: i16;
    /// The answer.
    type Response: Response;
    /// Bytes of the answer, at most. Of two topics with 10,000 partitions each Metadata has 1 MiB.
    const LONGEST_ANSWER: usize = 4 << 20;

    /// Appends the body.
    fn put(&self, out: &mut Output);
}

/// What a broker answers.
pub trait Response: Sized {
    /// Reads the body.
    ///
    /// # Errors
    /// It is no such answer.
    fn read(input: &mut Input<'_>) -> Result<Self, Malformed>;
}

/// Writes a request with its length in front, over what is in the buffer.
pub fn request<R: Request>(request: &R, correlation_id: i32, frame: &mut Vec<u8>) {
    frame.clear();
    put_i32(0, frame);
    put_i16(R::KEY, frame);
    put_i16(R::VERSION, frame);
    put_i32(correlation_id, frame);
    put_text(CLIENT_ID, frame);
    request.put(frame);
    let length = (frame.len() - 4) as i32;
    frame[..4].copy_from_slice(&length.to_be_bytes());
}

/// Reads an answer without its length; returns the correlation id of the request as well.
///
/// # Errors
/// It is no answer to such a request.
pub fn answer<R: Request>(frame: &[u8]) -> Result<(i32, R::Response), Malformed> {
    let mut input = Input(frame);
    Ok((input.i32()?, R::Response::read(&mut input)?))
}
