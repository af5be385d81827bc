//! What a protocol outside of this crate needs to serve streams: their messages in a form of its own, and a viewer that is sent
//! them.

use crate::fault::{LinkEnd, LinkPhase, Subject};
use crate::http::{BASIC, FOUND, HttpLink, HttpRefusal};
use crate::policy::MissingStream;
use crate::rtmp::unframe;
use crate::stream::{Packet, View};
use crate::viewer::{Rewrite, Standing, Viewer, Watcher};
use crate::worker::Worker;
use std::sync::Arc;
use weir_metrics::Moment;
use weir_rtmp::message::MediaKind;
use weir_shard::Context;
use weir_web::Request;

/// A message of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamMessage<'a> {
    /// What it carries.
    pub kind: MediaKind,
    /// Milliseconds, modulo 2³².
    pub timestamp: u32,
    /// What an RTMP message of that kind has as its payload.
    pub body: &'a [u8],
}

/// Makes of a message what goes onto a viewer's link.
pub type FrameMessage = fn(&StreamMessage<'_>) -> Vec<u8>;

/// A viewer of a stream, counted, with the faults that befall viewers.
pub struct StreamViewer(Viewer);

/// How things stand with a [`StreamViewer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// The publication goes on.
    Goes,
    /// The publication is over, and everything of it was sent.
    Ended,
    /// The connection has to be closed.
    Close,
    /// The connection has to be reset.
    Reset,
}

impl StreamViewer {
    /// A viewer of the stream `name` (`app/stream`), which asks for it by `request` and to which `said` bytes were sent before.
    ///
    /// # Errors
    ///
    /// The refusal if a fault wants one, or if the stream is not published and the origin refuses such viewers; `None` if nothing is to
    /// be answered any more.
    pub fn join(
        name: &str,
        link: &mut HttpLink,
        request: &Request,
        said: u64,
        frame: FrameMessage,
        context: &mut Context<'_, Worker>,
    ) -> Result<Self, Option<HttpRefusal>> {
        let settings = context.world.settings().clone();
        let (number, peer) = (settings.next_viewer(), link.peer());
        let (who, offered) = (Some(Subject::Viewer(number)), request.basic());
        if let Some(answer) = link.fault(LinkPhase::Play, who, offered.as_deref(), context) {
            return Err(HttpRefusal::of(answer, BASIC, FOUND));
        }
        if settings.missing_stream == MissingStream::Refuse && !settings.registry.is_live(name) {
            return Err(Some(HttpRefusal::with(404)));
        }
        let watcher = Watcher::Viewer { number, peer, said, view: View::Framed };
        let rewrite = move || -> Rewrite { Box::new(move |packet, by| reframed(packet, by, frame)) };
        let name: Arc<str> = name.into();
        Ok(Self(Viewer::join(&watcher, &name, Some(rewrite()), rewrite, context)))
    }

    /// Sends what waits, until the link takes no more: at every event that concerns the stream or the link.
    pub fn pump(&mut self, context: &mut Context<'_, Worker>) -> StreamState {
        match self.0.pump(context) {
            Standing::Same | Standing::Begun => StreamState::Goes,
            Standing::Ended => StreamState::Ended,
            Standing::LinkEnd(LinkEnd::Close) => StreamState::Close,
            Standing::LinkEnd(LinkEnd::Reset) | Standing::Stuck => StreamState::Reset,
        }
    }

    /// The stream has woken the session ([`weir_shard::Event::Woken`]).
    pub fn on_woken(&mut self) {
        self.0.woken();
    }

    /// When [`Self::pump`] is to be called if nothing happens before.
    pub fn poll_timeout(&mut self, context: &Context<'_, Worker>) -> Option<Moment> {
        self.0.deadline(context.world, context.now)
    }

    /// The viewer leaves.
    pub fn leave(self, context: &mut Context<'_, Worker>) {
        self.0.leave(context);
    }
}

/// A packet of a stream in another form, `by` microseconds later.
fn reframed(packet: &Packet, by: i64, frame: FrameMessage) -> Option<Packet> {
    let (header, body) = unframe(packet)?;
    let kind = MediaKind::from_message_kind(header.kind)?;
    let timestamp = header.timestamp.wrapping_add_signed((by / 1_000) as i32);
    let bytes = frame(&StreamMessage { kind, timestamp, body: &body });
    Some(Packet::unit(packet.kind, packet.keyframe, packet.timestamp + by, body.len(), bytes))
}
