//! What carries a client's packets: its link, or a WebSocket on it (MQTT 5 section 6).

use crate::client_session::End;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use weir_metrics::Failure;
use weir_metrics::common::SENT;
use weir_shard::Context;
use weir_web::websocket::{self, Incoming, Role, WebSocket, WebSocketError};
use weir_web::{Message, Part, Response, Responses};

/// The subprotocol of MQTT (MQTT-6.0.0-3).
const SUBPROTOCOL: &str = "mqtt";

/// Bytes of the longest WebSocket message that is read. One may hold many packets, and a packet may come in several.
const LONGEST_MESSAGE: usize = 64 << 20;

/// Where a broker is asked for a WebSocket.
#[derive(Debug)]
pub(super) struct SocketRequest {
    /// Host, and port if it is not the scheme's own.
    pub(super) authority: String,
    pub(super) path: String,
}

/// What carries a client's packets.
#[derive(Debug)]
pub(super) enum Carrier {
    Link,
    WebSocket(Box<Socket>),
}

/// A WebSocket, from its request on.
#[derive(Debug)]
pub(super) struct Socket {
    request: Arc<SocketRequest>,
    key: String,
    responses: Responses,
    open: Option<WebSocket>,
    /// Frames to be sent, kept for its memory.
    wire: Vec<u8>,
}

impl Carrier {
    /// Packets on the link itself, or in a WebSocket that is asked for.
    pub(super) fn new(request: Option<Arc<SocketRequest>>) -> Self {
        request.map_or(Self::Link, |request| {
            Self::WebSocket(Box::new(Socket {
                request,
                key: String::new(),
                responses: Responses::asked(),
                open: None,
                wire: Vec::new(),
            }))
        })
    }

    /// There is a link, the first or another: asks for a WebSocket on it.
    pub(super) fn begin(&mut self, planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
        let Self::WebSocket(socket) = self else { return };
        (socket.key, socket.responses, socket.open) = (websocket::key(), Responses::asked(), None);
        let request = Message::request("GET", &socket.request.path, &socket.request.authority)
            .field("Upgrade", "websocket")
            .field("Connection", "Upgrade")
            .field("Sec-WebSocket-Key", &socket.key)
            .field("Sec-WebSocket-Version", 13)
            .field("Sec-WebSocket-Protocol", SUBPROTOCOL)
            .end();
        send(&request, planned, context);
    }

    /// The link, or an attempt at one, is gone.
    pub(super) fn end(&mut self) {
        if let Self::WebSocket(socket) = self {
            socket.open = None;
        }
    }

    /// The packets in bytes of the link; those of a WebSocket are put into `packets`.
    ///
    /// # Errors
    /// Why there is no WebSocket, or none any more.
    pub(super) fn read<'a>(
        &mut self,
        bytes: &'a [u8],
        packets: &'a mut Vec<u8>,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<&'a [u8], End> {
        let Self::WebSocket(socket) = self else { return Ok(bytes) };
        socket.read(bytes, packets, planned, context)?;
        Ok(packets)
    }

    /// Sends packets, if there is a way for them.
    pub(super) fn flush(
        &mut self,
        packets: &mut Vec<u8>,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        if packets.is_empty() {
            return;
        }
        match self {
            Self::Link => send(packets, planned, context),
            Self::WebSocket(socket) => {
                let Socket { open: Some(open), wire, .. } = &mut **socket else { return };
                open.binary(packets, wire);
                send(wire, planned, context);
                wire.clear();
                wire.shrink_to(4096);
            }
        }
        packets.clear();
    }

    /// Ends a WebSocket behind the last packet (RFC 6455 section 7.1.1).
    pub(super) fn close(&mut self, planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
        if let Self::WebSocket(socket) = self
            && let Some(mut open) = socket.open.take()
        {
            open.close(1000, &mut socket.wire);
            send(&socket.wire, planned, context);
            socket.wire.clear();
        }
    }
}

impl Socket {
    fn read(
        &mut self,
        mut bytes: &[u8],
        packets: &mut Vec<u8>,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        if self.open.is_none() {
            let Some(Part::Head(response)) = self.responses.take(&mut bytes).map_err(malformed)? else {
                return Ok(());
            };
            self.check(&response)?;
            self.open = Some(WebSocket::new(Role::Client, LONGEST_MESSAGE));
        }
        let Self { open: Some(open), wire, .. } = self else { return Ok(()) };
        open.input(bytes);
        let outcome = loop {
            match open.poll(wire) {
                Ok(Some(Incoming::Binary(message))) => packets.extend_from_slice(&message),
                // MQTT-6.0.0-1.
                Ok(Some(Incoming::Text(_))) => break Err(malformed(WebSocketError::Text)),
                Ok(Some(Incoming::Close(code, reason))) => {
                    let words = format!("the broker closed the WebSocket: {code} {reason}");
                    break Err((Failure::ClosedByPeer, words.trim_end().to_owned()));
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(malformed(error)),
            }
        };
        if !wire.is_empty() {
            send(wire, planned, context);
            wire.clear();
        }
        // What came before a close frame counts; the broker then closes the link as well.
        if outcome.as_ref().is_err_and(|(failure, _)| *failure == Failure::ClosedByPeer)
            && !packets.is_empty()
        {
            return Ok(());
        }
        outcome
    }

    fn check(&self, response: &Response) -> Result<(), End> {
        if response.status != 101 {
            let words = format!("no WebSocket: {}; see --ws-path", response.said());
            return Err((of_upgrade(response.status), words));
        }
        if response.fields.get("sec-websocket-accept") != Some(&websocket::accept(&self.key)) {
            return Err(malformed("the broker's Sec-WebSocket-Accept is not that of the key"));
        }
        if response.fields.get("sec-websocket-protocol") != Some(SUBPROTOCOL) {
            return Err(malformed("the broker did not take the WebSocket subprotocol mqtt (MQTT-6.0.0-4)"));
        }
        Ok(())
    }
}

/// The failure of a client that is refused a WebSocket.
fn of_upgrade(status: u16) -> Failure {
    match status {
        401 | 403 => Failure::Unauthorized,
        503 => Failure::Unavailable,
        _ => Failure::Rejected,
    }
}

fn send(bytes: &[u8], planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
    context.send(bytes);
    context.world.of(planned).count(SENT, bytes.len() as u64);
}

fn malformed(error: impl std::fmt::Display) -> End {
    (Failure::MalformedInput, error.to_string())
}
