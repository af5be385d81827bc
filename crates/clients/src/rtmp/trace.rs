//! A client's dialogue, for the search for an error in it. Names of streams are keys and stay away, as do the
//! server's descriptions, which may quote them.

use tracing::debug;
use weir_rtmp::ClientEvent;

/// Shows what client number `client` received. What comes all the time, media and acknowledgements, is not shown.
pub(super) fn heard(client: u32, event: &ClientEvent<'_>) {
    match event {
        ClientEvent::HandshakeDone { scheme } => {
            debug!(target: "rtmp", client, ?scheme, "handshake done, sends connect");
        }
        ClientEvent::Connected => debug!(target: "rtmp", client, "_result of connect, sends createStream"),
        ClientEvent::StreamCreated { message_stream_id: id } => {
            debug!(target: "rtmp", client, id, "_result of createStream, sends play or publish");
        }
        ClientEvent::Playing => debug!(target: "rtmp", client, "the server plays the stream"),
        ClientEvent::Publishing => debug!(target: "rtmp", client, "the server takes the stream"),
        ClientEvent::Status(status) => {
            debug!(target: "rtmp", client, level = status.level.as_str(), code = &*status.code, "onStatus");
        }
        ClientEvent::StreamBegin { message_stream_id: id } => {
            debug!(target: "rtmp", client, id, "StreamBegin");
        }
        ClientEvent::StreamEof { message_stream_id: id } => debug!(target: "rtmp", client, id, "StreamEOF"),
        ClientEvent::StreamDry { message_stream_id: id } => debug!(target: "rtmp", client, id, "StreamDry"),
        ClientEvent::Media(_) | ClientEvent::Acknowledged { .. } => {}
    }
}
