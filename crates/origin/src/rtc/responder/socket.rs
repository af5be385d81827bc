//! OvenMediaEngine's dialogue in a WebSocket: an offer is asked for, and answered.

use super::{MOVED, SignallingResponder, role};
use crate::fault::LinkEnd;
use crate::http::{HttpRefusal, Responder};
use crate::rtc::hub::{Hub, NewPeer, remote};
use crate::rtc::identity::Identity;
use crate::rtc::offers::sent;
use crate::worker::Worker;
use std::sync::Arc;
use weir_metrics::Moment;
use weir_rtc::sdp::{Description, agree};
use weir_rtc::signalling::oven::{self, Offer};
use weir_rtc::signalling::websocket::{self, Incoming, Role, WebSocket};
use weir_rtc::transport::Transport;
use weir_shard::Context;
use weir_web::{Message, reason};

pub(super) struct Socket {
    pub(super) socket: WebSocket,
    stream: Arc<str>,
    /// Media is to come by a relay.
    relayed: bool,
    offered: Option<PendingOffer>,
    /// The session of the viewer that came of it.
    pub(super) session: Option<u64>,
    /// When the viewer is asked whether it is there: nothing else may be said for hours.
    pub(super) ping_at: Option<Moment>,
}

/// What was offered, until it is answered.
struct PendingOffer {
    transport: Transport,
    description: Description,
    sources: [u32; 2],
    number: u64,
    session: u64,
}

impl SignallingResponder {
    /// A WebSocket is opened.
    pub(super) fn open(
        &mut self,
        stream: &Arc<str>,
        key: &str,
        relayed: bool,
        context: &mut Context<'_, Worker>,
    ) {
        let answer = Message::response(101)
            .field("Upgrade", "websocket")
            .field("Connection", "Upgrade")
            .field("Sec-WebSocket-Accept", websocket::accept(key));
        context.send(&answer.end());
        let socket = WebSocket::new(Role::Server, oven::MOST_BYTES);
        let stream = stream.clone();
        let (offered, session, ping_at) = (None, None, None);
        self.socket = Some(Box::new(Socket { socket, stream, relayed, offered, session, ping_at }));
        self.link.take_over();
    }

    /// Handles what has come over a WebSocket.
    pub(super) fn converse(&mut self, context: &mut Context<'_, Worker>) {
        let mut out = Vec::new();
        while let Some(socket) = &mut self.socket {
            match socket.socket.poll(&mut out) {
                Ok(Some(Incoming::Text(text))) => {
                    if let Some(said) = self.on_message(&text, context)
                        && let Some(socket) = &mut self.socket
                    {
                        socket.socket.text(&said, &mut out);
                    }
                }
                Ok(None) => break,
                Ok(Some(Incoming::Binary(_) | Incoming::Close(..))) | Err(_) => {
                    self.link.end(LinkEnd::Close);
                    break;
                }
            }
        }
        context.send(&out);
        self.close_if_unread(context);
    }

    /// The answer to a message.
    fn on_message(&mut self, text: &str, context: &mut Context<'_, Worker>) -> Option<String> {
        let request = match oven::Request::parse(text) {
            Ok(request) => request,
            Err(error) => return Some(oven::refusal(400, &error.to_string())),
        };
        match request {
            oven::Request::Offer => self.offer(context),
            oven::Request::Answer { sdp, .. } => {
                self.answered(&sdp, context).err().map(|words| oven::refusal(400, &words))
            }
            oven::Request::Stop => {
                self.leave(context);
                None
            }
            oven::Request::Other(_) => None,
        }
    }

    fn offer(&mut self, context: &mut Context<'_, Worker>) -> Option<String> {
        if !self.may_begin(context) {
            return Some(oven::refusal(503, "too many offers were asked for just now"));
        }
        let socket = self.socket.as_ref()?;
        let (stream, relayed) = (socket.stream.clone(), socket.relayed);
        let number = match self.number(&stream, context) {
            Ok(number) => number,
            Err(answer) => {
                let Some(HttpRefusal { status, words, .. }) = HttpRefusal::of(answer, "Bearer", MOVED) else {
                    self.socket = None;
                    self.link.fall_silent(context);
                    return None;
                };
                let words = words.unwrap_or_else(|| reason(status).to_owned());
                return Some(oven::refusal(status.into(), &words));
            }
        };
        let made = {
            let hub = context.world.state::<Hub>()?;
            self.transport(hub)
        };
        let made = made.and_then(|made| Some((made, Identity::new()?)));
        let Some(((transport, local), identity)) = made else {
            return Some(oven::refusal(503, "no transport can be made"));
        };
        let pictures = context.world.settings().registry.pictures(&stream);
        let mut description = local.offer(&sent(pictures));
        identity.name_sources(&mut description);
        let Identity { session, sources } = identity;
        let offer = Offer {
            // OvenMediaEngine's are of 32 bits.
            id: session & 0x7FFF_FFFF,
            sdp: description.to_string(),
            candidates: local.candidates.clone(),
            ice_servers: context.world.settings().turn.iter().filter(|_| relayed).cloned().collect(),
        };
        if let Some(socket) = &mut self.socket {
            socket.offered = Some(PendingOffer { transport, description, sources, number, session });
        }
        Some(oven::offer(&offer))
    }

    fn answered(&mut self, sdp: &str, context: &mut Context<'_, Worker>) -> Result<(), String> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        let Some(offered) = socket.offered.take() else { return Err("nothing was offered".to_owned()) };
        let answer: Description = sdp.parse().map_err(|error| format!("{error}"))?;
        let theirs = remote(&answer).ok_or("no ICE credentials or fingerprint")?;
        let agreed = agree(&offered.description, &answer, false);
        if agreed.is_empty() {
            return Err("nothing of the offer was taken".to_owned());
        }
        let PendingOffer { mut transport, sources, number, session, .. } = offered;
        transport.connect(context.now, theirs, role(&agreed));
        socket.session = Some(session);
        socket.ping_at = Some(context.now + context.world.settings().patience.idle / 2);
        context.established();
        let stream = socket.stream.clone();
        let new_peer =
            NewPeer { transport, agreed, sources, number, peer: self.link.peer(), stream, session };
        if let Some(mut hub) = context.world.take_state::<Hub>() {
            hub.admit(new_peer, context.world, context.now);
            context.wake(hub.port);
            context.world.put_state(hub);
        }
        Ok(())
    }

    /// Pings the peer of a WebSocket, to notice one that is gone.
    pub(super) fn ping(&mut self, context: &mut Context<'_, Worker>) {
        let Some(socket) = &mut self.socket else { return };
        if socket.ping_at.is_some_and(|at| at <= context.now) {
            socket.ping_at = Some(context.now + context.world.settings().patience.idle / 2);
            let mut out = Vec::new();
            socket.socket.ping(&mut out);
            context.send(&out);
        }
    }
}
