//! The client's side of one RTMP connection, from the handshake to the last frame (RTMP 1.0 section 7.2).
//!
//! [`Client`] asks for what [`ClientOptions`] say as soon as the server lets it, answers what the protocol wants
//! answered, and reports what comes as [`ClientEvent`]s. It keeps no payload beyond the head of a frame. Servers
//! that leave out or reorder what is not essential (nginx-rtmp, SRS, node-media-server, ffmpeg) are followed.

mod dialogue;
mod error;
mod event;
mod login;
mod options;

pub use crate::error::Error;
pub use error::NotStreaming;
pub use event::{ClientEvent, Media};
pub use login::{Login, LoginMode, NotTaken};
pub use options::{ClientOptions, Role};

use std::sync::Arc;

use crate::assembly::{Appetite, Assembly, AssemblyError};
use crate::chunk::{Limits, MediaFraming, MessageHeader, Reader};
use crate::handshake::{self, Progress};
use crate::message::{MediaKind, MessageKind};
use dialogue::Dialogue;

/// How many bytes of an audio or video message are kept for [`Media::head`] unless [`Client::keep`] says more: its tag, and what encoders and servers
/// put in front of a picture, parameter sets with scaling lists included.
pub const HEAD_LEN: usize = 528;

/// How many bytes of a data message are kept for [`Media::head`]: a stream's metadata should fit.
pub const DATA_HEAD_LEN: usize = 4096;

/// The longest command or control message that a server may send.
pub const MAX_COMMAND_LEN: u32 = 64 * 1024;

/// One client's connection.
///
/// ```
/// use weir_rtmp::{Client, ClientEvent, ClientOptions};
///
/// let mut client = Client::new(ClientOptions::play("rtmp://localhost/live", "live", "camera"), 1);
/// // C0 and C1 are there to be sent before the server has said anything.
/// assert_eq!(client.output().len(), 1537);
/// client.output().clear();
/// client.input(&[3], &mut |event| if let ClientEvent::Connected = event { /* … */ })?;
/// # Ok::<(), weir_rtmp::client::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    /// Gone when it is over: it is by far the largest part.
    handshake: Option<Box<handshake::Client>>,
    reader: Reader,
    assembly: Assembly,
    dialogue: Dialogue,
}

impl Client {
    /// A client with C0 and C1 ready to be sent. Options may be shared between clients as an [`Arc`].
    /// The handshake's random bytes come from `seed`.
    pub fn new(options: impl Into<Arc<ClientOptions>>, seed: u64) -> Self {
        let options = options.into();
        let mut handshake = Box::new(handshake::Client::new(options.handshake, seed));
        let mut dialogue = Dialogue::new(options);
        handshake.start(&mut dialogue.output);
        Self {
            handshake: Some(handshake),
            reader: Reader::new(Limits::default()),
            assembly: Assembly::default(),
            dialogue,
        }
    }

    /// Keeps this many bytes of audio and video messages for [`Media::head`], and no fewer than [`HEAD_LEN`].
    pub fn keep(&mut self, head: u32) {
        self.dialogue.head = head.max(HEAD_LEN as u32);
    }

    /// Bytes to send. The caller takes off what it has sent.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.dialogue.output
    }

    /// Reads bytes from the server, in pieces of any size, and reports what happened.
    ///
    /// After an error the connection is of no further use.
    pub fn input(&mut self, bytes: &[u8], on: &mut impl FnMut(ClientEvent<'_>)) -> Result<(), Error> {
        let mut input = bytes;
        if let Some(handshake) = &mut self.handshake {
            match handshake.input(&mut input, &mut self.dialogue.output)? {
                Progress::Pending => return Ok(()),
                Progress::Done => {
                    let scheme = handshake.scheme();
                    self.handshake = None;
                    on(ClientEvent::HandshakeDone { scheme });
                    self.dialogue.connect();
                }
            }
        }
        self.dialogue.acknowledge(input.len());
        let appetite = HeadsAndCommands { head: self.dialogue.head };
        let mut pass = self.assembly.pass(&appetite);
        loop {
            while let Some((header, payload)) = self.reader.frame(&mut input) {
                let head = &payload[..payload.len().min(appetite.head as usize)];
                self.dialogue.message(&header, head, on)?;
            }
            let Some(event) = self.reader.next(&mut input)? else { break };
            pass.take(event, &mut |header, kept| self.dialogue.message(header, kept, on))?;
        }
        pass.finish();
        Ok(())
    }

    /// How media messages are framed to be published here, as soon as the server has given the stream its number: whole ones
    /// may be put on the wire after what [`Client::output`] holds.
    pub fn framing(&self) -> Option<MediaFraming> {
        self.dialogue.framing()
    }

    /// Publishes one message.
    pub fn send(&mut self, kind: MediaKind, timestamp: u32, payload: &[u8]) -> Result<(), NotStreaming> {
        let framing = self.framing().ok_or(NotStreaming)?;
        framing.frame(kind, timestamp, payload, &mut self.dialogue.output);
        Ok(())
    }

    /// Ends the stream: takes back the publication, deletes the stream. The connection may be closed when that is sent.
    pub fn close(&mut self) {
        self.dialogue.close();
    }

    /// Whether the stream is being played or published.
    pub fn is_streaming(&self) -> bool {
        self.dialogue.is_streaming()
    }
}

/// The head of each frame, commands and control messages whole, nothing of anything else.
#[derive(Clone, Copy, Debug)]
struct HeadsAndCommands {
    head: u32,
}

impl Appetite for HeadsAndCommands {
    #[inline]
    fn wanted(&self, header: &MessageHeader) -> Result<u32, AssemblyError> {
        let &MessageHeader { kind, length, .. } = header;
        match kind {
            MessageKind::Audio | MessageKind::Video => Ok(length.min(self.head)),
            MessageKind::DataAmf0 | MessageKind::DataAmf3 => Ok(length.min(DATA_HEAD_LEN as u32)),
            MessageKind::SharedObjectAmf0 | MessageKind::SharedObjectAmf3 | MessageKind::Other(_) => Ok(0),
            _ if length > MAX_COMMAND_LEN => {
                Err(AssemblyError::TooLong { kind, length, limit: MAX_COMMAND_LEN })
            }
            _ => Ok(length),
        }
    }
}
