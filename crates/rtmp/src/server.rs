//! The server's side of one RTMP connection (RTMP 1.0 section 7.2).
//!
//! [`Server`] answers by itself what has only one answer, and reports what its owner must decide as
//! [`ServerEvent`]s; the owner answers with one of the `accept` and `reject` methods when it likes. What it says,
//! and in which order, is what ffmpeg, OBS, librtmp and nginx's relay are known to be content with.

mod dialogue;
mod event;
mod options;

pub use crate::error::Error;
pub use event::{ConnectRequest, MediaMessage, ServerEvent};
pub use options::ServerOptions;

use crate::assembly::{Appetite, Assembly, AssemblyError};
use crate::chunk::{Limits, MediaFraming, MessageHeader, Reader};
use crate::handshake::{self, Progress};
use crate::message::{MediaKind, MessageKind, Status};
use dialogue::Dialogue;
use std::cell::Cell;

/// Bytes of unfinished messages that are kept of a client that has not said `connect`: its longest command.
pub const MOST_HELD_BEFORE_CONNECT: usize = MAX_COMMAND_LEN as usize;

/// The longest command or control message that a client may send.
pub const MAX_COMMAND_LEN: u32 = 64 * 1024;

/// How many message streams a client may have at once. Every known client has one.
pub const MAX_STREAMS: usize = 16;

/// One connection from a client.
#[derive(Clone, Debug)]
pub struct Server {
    /// Gone when it is over: it is by far the largest part.
    handshake: Option<Box<handshake::Server>>,
    reader: Reader,
    assembly: Assembly,
    dialogue: Dialogue,
}

impl Server {
    /// A server that waits for C0. The handshake's random bytes come from `seed`.
    pub fn new(options: ServerOptions, seed: u64) -> Self {
        let limits = Limits { message_length: options.max_message_length, ..Limits::default() };
        Self {
            handshake: Some(Box::new(handshake::Server::new(seed))),
            reader: Reader::new(limits),
            assembly: Assembly::default(),
            dialogue: Dialogue::new(options),
        }
    }

    /// Bytes to send. The caller takes off what it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.dialogue.output
    }

    /// Reads bytes from the client, in pieces of any size, and reports what happened.
    ///
    /// After an error the connection is of no further use.
    pub fn input(&mut self, bytes: &[u8], on: &mut impl FnMut(ServerEvent<'_>)) -> Result<(), Error> {
        let mut input = bytes;
        if let Some(handshake) = &mut self.handshake {
            match handshake.input(&mut input, &mut self.dialogue.output)? {
                Progress::Pending => return Ok(()),
                Progress::Done => {
                    let scheme = handshake.scheme();
                    self.handshake = None;
                    on(ServerEvent::HandshakeDone { scheme });
                }
            }
        }
        self.dialogue.acknowledge(input.len());
        // What may be kept grows when `connect` arrives, in the middle of an input.
        let appetite = WholeMessages { most_held: Cell::new(self.dialogue.most_held()) };
        let mut pass = self.assembly.pass(&appetite);
        while let Some(event) = self.reader.next(&mut input)? {
            pass.take(event, &mut |header, payload| self.dialogue.message(header, payload, on))?;
            appetite.most_held.set(self.dialogue.most_held());
        }
        pass.finish();
        Ok(())
    }

    /// Accepts the client's [`connect`](ServerEvent::Connect).
    pub fn accept_connect(&mut self) {
        self.dialogue.accept_connect();
    }

    /// Refuses the client's [`connect`](ServerEvent::Connect), in words such as `NetConnection.Connect.Rejected`.
    pub fn reject_connect(&mut self, status: &Status<'_>) {
        self.dialogue.reject_connect(status);
    }

    /// Accepts a [publication](ServerEvent::Publish).
    pub fn accept_publish(&mut self, message_stream_id: u32) {
        self.dialogue.accept_publish(message_stream_id);
    }

    /// Accepts a [player](ServerEvent::Play): what is sent from here on is media.
    pub fn accept_play(&mut self, message_stream_id: u32) {
        self.dialogue.accept_play(message_stream_id);
    }

    /// Says how things stand on a stream. Refuses a publication or a player with a status of level error, such as
    /// `NetStream.Publish.BadName` or `NetStream.Play.StreamNotFound`.
    pub fn send_status(&mut self, message_stream_id: u32, status: &Status<'_>) {
        self.dialogue.send_status(message_stream_id, status);
    }

    /// Notifies a player that the stream is over.
    pub fn end_play(&mut self, message_stream_id: u32) {
        self.dialogue.end_play(message_stream_id);
    }

    /// How media messages are framed to be sent on a stream of this connection.
    pub fn framing(&self, message_stream_id: u32) -> MediaFraming {
        self.dialogue.framing(message_stream_id)
    }

    /// Sends one media message. To send the same message to many, frame it once with [`Server::framing`].
    pub fn send(&mut self, message_stream_id: u32, kind: MediaKind, timestamp: u32, payload: &[u8]) {
        let framing = self.framing(message_stream_id);
        framing.frame(kind, timestamp, payload, &mut self.dialogue.output);
    }

    /// Asks the client whether it is there; [`ServerEvent::Pong`] is the answer (user control event 6).
    pub fn ping(&mut self, timestamp: u32) {
        self.dialogue.ping(timestamp);
    }
}

/// Media whole, commands and control messages whole, nothing of anything else.
#[derive(Clone, Debug)]
struct WholeMessages {
    most_held: Cell<usize>,
}

impl Appetite for WholeMessages {
    #[inline]
    fn wanted(&self, header: &MessageHeader) -> Result<u32, AssemblyError> {
        let &MessageHeader { kind, length, .. } = header;
        match kind {
            kind if kind.is_media() => Ok(length),
            MessageKind::SharedObjectAmf0 | MessageKind::SharedObjectAmf3 | MessageKind::Other(_) => Ok(0),
            _ if length > MAX_COMMAND_LEN => {
                Err(AssemblyError::TooLong { kind, length, limit: MAX_COMMAND_LEN })
            }
            _ => Ok(length),
        }
    }

    fn most_held(&self) -> usize {
        self.most_held.get()
    }
}
