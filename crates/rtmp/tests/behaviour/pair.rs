//! A client and a server on a wire of memory, which deliver each other's bytes in pieces of a given size.

use weir_rtmp::client::Role;
use weir_rtmp::handshake::Scheme;
use weir_rtmp::message::{Level, MediaKind, Status};
use weir_rtmp::{Client, ClientEvent, ClientOptions, Server, ServerEvent, ServerOptions};

/// What the server's owner decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Accepts,
    RejectsConnect,
    RejectsStream,
}

/// What was heard, in words: a test compares these.
pub(crate) type Log = Vec<String>;

pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) client_heard: Log,
    pub(crate) server_heard: Log,
    owner: Owner,
    piece: usize,
}

impl Pair {
    pub(crate) fn new(options: ClientOptions, owner: Owner, piece: usize) -> Self {
        Self {
            client: Client::new(options, 1),
            server: Server::new(ServerOptions::default(), 2),
            client_heard: Log::new(),
            server_heard: Log::new(),
            owner,
            piece,
        }
    }

    pub(crate) fn playing(piece: usize) -> Self {
        let mut pair = Self::new(options(Role::Play), Owner::Accepts, piece);
        pair.settle();
        assert!(pair.client.is_streaming());
        pair
    }

    pub(crate) fn publishing(piece: usize) -> Self {
        let mut pair = Self::new(options(Role::Publish), Owner::Accepts, piece);
        pair.settle();
        assert!(pair.client.is_streaming());
        pair
    }

    /// Delivers bytes both ways until neither side has anything more to say.
    pub(crate) fn settle(&mut self) {
        while self.settle_towards_server() | self.settle_towards_client() {}
    }

    /// Delivers what the client has to say. Whether that was anything.
    pub(crate) fn settle_towards_server(&mut self) -> bool {
        let said = std::mem::take(self.client.output());
        for piece in said.chunks(self.piece) {
            self.server_input(piece);
        }
        !said.is_empty()
    }

    /// Delivers what the server has to say. Whether that was anything.
    pub(crate) fn settle_towards_client(&mut self) -> bool {
        let said = std::mem::take(self.server.output());
        for piece in said.chunks(self.piece) {
            let heard = &mut self.client_heard;
            self.client.input(piece, &mut |event| heard.push(client_words(&event))).unwrap();
        }
        !said.is_empty()
    }

    fn server_input(&mut self, bytes: &[u8]) {
        let (mut connect, mut publish, mut play) = (false, None, None);
        let heard = &mut self.server_heard;
        let read = self.server.input(bytes, &mut |event| {
            heard.push(server_words(&event));
            match event {
                ServerEvent::Connect(_) => connect = true,
                ServerEvent::Publish { message_stream_id, .. } => publish = Some(message_stream_id),
                ServerEvent::Play { message_stream_id, .. } => play = Some(message_stream_id),
                _ => {}
            }
        });
        read.unwrap();
        match self.owner {
            Owner::RejectsConnect if connect => {
                self.server.reject_connect(&Status::error("NetConnection.Connect.Rejected", "closed today"));
            }
            _ if connect => self.server.accept_connect(),
            _ => {}
        }
        if let Some(stream) = publish {
            match self.owner {
                Owner::RejectsStream => {
                    self.server.send_status(stream, &Status::error("NetStream.Publish.BadName", "in use"));
                }
                _ => self.server.accept_publish(stream),
            }
        }
        if let Some(stream) = play {
            match self.owner {
                Owner::RejectsStream => {
                    self.server.send_status(stream, &Status::error("NetStream.Play.StreamNotFound", "none"));
                }
                _ => self.server.accept_play(stream),
            }
        }
    }
}

pub(crate) fn options(role: Role) -> ClientOptions {
    let url = "rtmp://localhost/live";
    match role {
        Role::Play => ClientOptions::play(url, "live", "camera?key=1"),
        Role::Publish => {
            ClientOptions { handshake: Scheme::Digest, ..ClientOptions::publish(url, "live", "camera?key=1") }
        }
    }
}

pub(crate) fn client_words(event: &ClientEvent<'_>) -> String {
    match event {
        ClientEvent::Status(status) => {
            let level = if status.level == Level::Error { "error " } else { "" };
            format!("{level}{status}")
        }
        ClientEvent::Media(media) => {
            let (kind, timestamp, length) = (media.kind, media.timestamp, media.length);
            match kind {
                MediaKind::Data => format!("Data at {timestamp}"),
                _ => format!("{kind:?} at {timestamp}, {length} bytes, head {}", summary(media.head)),
            }
        }
        other => format!("{other:?}"),
    }
}

pub(crate) fn server_words(event: &ServerEvent<'_>) -> String {
    match event {
        ServerEvent::Connect(request) => format!("connect {} {}", request.app, request.tc_url),
        ServerEvent::Publish { message_stream_id, stream } => {
            format!("publish {stream} on {message_stream_id}")
        }
        ServerEvent::Play { message_stream_id, stream, start } => {
            format!("play {stream} on {message_stream_id} from {start}")
        }
        ServerEvent::Media(media) => {
            format!("{:?} at {}, {}", media.kind, media.timestamp, summary(media.payload))
        }
        ServerEvent::Metadata(media) => format!("metadata at {}", media.timestamp),
        other => format!("{other:?}"),
    }
}

/// Length and a checksum.
pub(crate) fn summary(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(0_u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{}:{sum:08x}", bytes.len())
}

/// Bytes that differ from their neighbours.
pub(crate) fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
}
