//! What carries a client's packets (MQTT 5 section 6): `weir-web`'s, whose bytes are sent and counted here.

use super::SOCKET_SCHEMES;
use super::options::MqttOptions;
use crate::client_session::End;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use crate::target::Target;
use std::sync::Arc;
use weir_metrics::Failure;
use weir_metrics::common::SENT;
use weir_setting::WS_PATH;
use weir_shard::Context;
use weir_web::websocket::OpeningError;
use weir_web::{CarrierError, SocketRequest};

/// The subprotocol of MQTT (MQTT-6.0.0-3).
const SUBPROTOCOL: &str = "mqtt";

/// The WebSocket that a target's scheme asks for, if it does.
pub(super) fn socket_request(target: &Target, options: &MqttOptions) -> Option<Arc<SocketRequest>> {
    SOCKET_SCHEMES.contains(&target.scheme).then(|| {
        let base = target.base();
        let authority = base.split_once("://").map_or("", |(_, authority)| authority).to_owned();
        let (path, fields) = (options.socket_path.clone(), options.given.clone());
        Arc::new(SocketRequest { authority, path, fields, subprotocol: SUBPROTOCOL })
    })
}

/// What carries a client's packets.
#[derive(Debug)]
pub(super) struct Carrier {
    carrier: weir_web::Carrier,
    /// What is to be sent, kept for its memory.
    wire: Vec<u8>,
}

impl Carrier {
    /// Packets on the link itself, or in a WebSocket that is asked for.
    pub(super) fn new(request: Option<Arc<SocketRequest>>) -> Self {
        Self { carrier: weir_web::Carrier::new(request), wire: Vec::new() }
    }

    /// There is a link, the first or another: asks for a WebSocket on it.
    pub(super) fn begin(&mut self, planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
        self.carrier.begin(&mut self.wire);
        self.send(planned, context);
    }

    /// The link, or an attempt at one, is gone.
    pub(super) fn end(&mut self) {
        self.carrier.end();
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
        let outcome = self.carrier.read(bytes, packets, &mut self.wire);
        self.send(planned, context);
        outcome.map_err(|error| failure(&error))
    }

    /// Sends packets, if there is a way for them.
    pub(super) fn flush(
        &mut self,
        packets: &mut Vec<u8>,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        if !packets.is_empty()
            && let Some(bytes) = self.carrier.wrap(packets, &mut self.wire)
        {
            send(bytes, planned, context);
            packets.clear();
            self.forget();
        }
    }

    /// Ends a WebSocket behind the last packet.
    pub(super) fn close(&mut self, planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
        self.carrier.close(&mut self.wire);
        self.send(planned, context);
    }

    fn send(&mut self, planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
        if !self.wire.is_empty() {
            send(&self.wire, planned, context);
            self.forget();
        }
    }

    /// Thousands that say little must cost little.
    fn forget(&mut self) {
        self.wire.clear();
        self.wire.shrink_to(4096);
    }
}

fn send(bytes: &[u8], planned: PlannedStart, context: &mut Context<'_, ShardRecorder>) {
    context.send(bytes);
    context.world.of(planned).count(SENT, bytes.len() as u64);
}

fn failure(error: &CarrierError) -> End {
    let failure = match error {
        CarrierError::Closed(_) => Failure::ClosedByPeer,
        CarrierError::Opening(OpeningError::Refused { status, .. }) => {
            let failure = match status {
                401 | 403 => Failure::Unauthorized,
                503 => Failure::Unavailable,
                _ => Failure::Rejected,
            };
            return (failure, format!("{error}; see {WS_PATH}"));
        }
        _ => Failure::MalformedInput,
    };
    (failure, error.to_string())
}
