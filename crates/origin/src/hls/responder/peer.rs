//! The peer of a connection, and what its requests come to, whatever version of HTTP carries them.

use super::answer::{Answer, Waiting, words};
use super::outcome::{Outcome, outcome};
use crate::counts::UnitCounts;
use crate::fault::{LinkEnd, LinkPhase, Script, ScriptedAnswer, Subject};
use crate::hls::answer::{ByteRange, Range};
use crate::hls::path::Resource;
use crate::hls::playlist::{Directives, Playlist};
use crate::hls::segmenter::LONGEST_FIRST;
use crate::hls::shelf::is_multivariant;
use crate::hls::window::Window;
use crate::http::{BASIC, FOUND, HttpLink, HttpRefusal};
use crate::policy::MissingStream;
use crate::worker::{CountKey, StreamKey, Worker};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::Context;
use weir_web::{Message, PRODUCT, Request};

/// The status where a stream has no codec that segments may have.
const NOT_ACCEPTABLE: u16 = 406;
/// How long the next part of a stream is waited for, at the least: a publisher may stand still.
const SHORTEST_HOLD: Duration = Duration::from_secs(3);
/// The same before the first segment of a stream is whole, which is as long at most, with a second for what is on its way.
const FIRST_HOLD: Duration = Duration::from_millis(LONGEST_FIRST as u64 + 1_000);

/// The peer of a connection.
pub(super) struct HlsPeer {
    pub(super) link: HttpLink,
    /// Since it has asked for something of a stream.
    viewer: Option<HlsViewer>,
    /// Bytes sent before.
    said: u64,
    /// Streams whose news its requests wait for, each once.
    watched: Vec<(Arc<str>, StreamKey)>,
}

/// Who loads, whatever of the stream.
pub(super) struct HlsViewer {
    counts: CountKey,
    pub(super) script: Option<Box<Script>>,
    /// The playlist that was sent last.
    pub(super) playlist: Option<Playlist>,
}

/// What a request comes to when it is read.
pub(super) enum RequestOutcome {
    Answer(Answer),
    /// It is to be [looked at](HlsPeer::look).
    Waits(Box<Waiting>),
    /// Neither this nor any other request is answered, because of a fault.
    Silence,
}

impl HlsPeer {
    pub(super) fn new(link: HttpLink) -> Self {
        Self { link, viewer: None, said: 0, watched: Vec::new() }
    }

    /// Takes a request.
    pub(super) fn ask(&mut self, request: &Request, context: &mut Context<'_, Worker>) -> RequestOutcome {
        let offered = request.basic();
        if let Some(answer) = self.link.fault(LinkPhase::Connect, None, offered.as_deref(), context) {
            return refused(answer, request);
        }
        let (head_only, keep_alive) = (request.method == "HEAD", request.keep_alive);
        let status =
            |status| RequestOutcome::Answer(Answer::status(words(status), status, head_only, keep_alive));
        if !matches!(&*request.method, "GET" | "HEAD") {
            let answer = words(405).field("Allow", "GET, HEAD");
            return RequestOutcome::Answer(Answer::status(answer, 405, false, keep_alive));
        }
        let settings = context.world.settings().clone();
        let Some((shelves, (name, resource))) =
            settings.hls.as_ref().zip(Resource::find(&request.segments()))
        else {
            return status(404);
        };
        let range = ByteRange::read(request.fields.get("range"));
        let shelf = shelves.get(&name);
        if shelf.is_none()
            && resource == Resource::Playlist
            && let Some(playlist) = shelves.multivariant(&name)
        {
            let container = shelves.settings().container;
            let flags = (head_only, keep_alive);
            return RequestOutcome::Answer(Answer::body(
                &resource,
                container,
                flags,
                Range::All,
                vec![playlist],
            ));
        }
        let is_there = shelf.is_some() || settings.registry.is_live(&name);
        let may_wait = settings.missing_stream == MissingStream::Wait && resource == Resource::Playlist;
        if !is_there && !may_wait {
            return status(404);
        }
        let Some(directives) = Directives::read(request) else { return status(400) };
        let stream: Arc<str> = name.as_str().into();
        if self.viewer.is_none() {
            let number = settings.next_viewer();
            let who = Some(Subject::Viewer(number));
            if let Some(answer) = self.link.fault(LinkPhase::Play, who.clone(), offered.as_deref(), context) {
                return refused(answer, request);
            }
            let counts = context.world.count_viewer(number, self.link.peer(), &stream);
            context.world.viewer_counts(counts).link_bytes = self.said;
            let mut script = who.and_then(|who| Script::of(&settings.faults, who));
            script.iter_mut().for_each(|script| script.begin(context.now));
            self.viewer = Some(HlsViewer { counts, script, playlist: None });
            context.established();
        }
        // Draft-pantos-hls-rfc8216bis-22, section 6.2.5.2: "A Server that cannot provide the requested Playlist after blocking for more
        // than three Target Durations SHOULD return Service Unavailable, such as HTTP 503."
        let target = shelf.as_ref().and_then(|shelf| shelf.look(Window::target));
        let hold = match target {
            Some(target) => Duration::from_secs(3 * target).max(SHORTEST_HOLD),
            // The first segment is as long as the publisher's keyframes are apart.
            None => FIRST_HOLD,
        };
        // Only who waits for a publisher waits without end: of one that sends nothing that can be cut there is never a segment. Who waits
        // for several streams is woken by none of them.
        let waits_for_publisher =
            shelf.is_none() && resource == Resource::Playlist && !is_multivariant(&stream);
        RequestOutcome::Waits(Box::new(Waiting {
            stream,
            resource,
            directives,
            range,
            head_only,
            keep_alive,
            deadline: (!waits_for_publisher).then(|| context.now + hold),
            not_before: None,
            look_again: None,
            is_ruled: false,
            lost_packets: 0,
        }))
    }

    /// The answer to what waits, if it can be answered now. Without one it waits on, unless the connection is cut:
    /// then the session is woken when there is something new of the stream.
    pub(super) fn look(
        &mut self,
        waiting: &mut Waiting,
        context: &mut Context<'_, Worker>,
    ) -> Option<Answer> {
        let settings = context.world.settings().clone();
        let shelves = settings.hls.as_ref()?;
        let seen = shelves.version(&waiting.stream);
        let outcome = outcome(waiting, self.viewer.as_mut(), shelves, context);
        if let Some(script) = self.viewer.as_mut().and_then(|viewer| viewer.script.as_mut()) {
            context.world.note(script.take_effects());
        }
        let flags = (waiting.head_only, waiting.keep_alive);
        match outcome {
            Outcome::Wait => self.watch(&waiting.stream, seen, context),
            Outcome::LinkEnd(cut) => self.link.end(cut),
            Outcome::Answer(200, body) => {
                let container = shelves.settings().container;
                return Some(Answer::body(&waiting.resource, container, flags, waiting.range, body));
            }
            // RFC 9110, section 15.5.7: there is nothing of the stream that a viewer of segments would take.
            Outcome::Unsupported(codec) => {
                let reason = format!("the stream is {codec}, and segments are made of H.264 alone");
                let answer = Message::response_in(NOT_ACCEPTABLE, &reason).field("Server", PRODUCT);
                return Some(Answer::status(answer, NOT_ACCEPTABLE, flags.0, flags.1));
            }
            Outcome::Answer(status, _) => {
                return Some(Answer::status(words(status), status, flags.0, flags.1));
            }
        }
        None
    }

    /// Has the session woken when there is something newer of a stream than what was `seen`.
    fn watch(&mut self, stream: &Arc<str>, seen: u64, context: &mut Context<'_, Worker>) {
        // Another request may wait for the same: it has seen nothing newer.
        if self.watched.iter().any(|(watched, _)| watched == stream) {
            return;
        }
        let (key, id) = (context.world.stream_of(stream), context.id());
        context.world.join(key, id);
        context.world.await_segments(key, id, seen);
        self.watched.push((stream.clone(), key));
    }

    /// The session is woken no longer but for these streams.
    pub(super) fn watch_only(
        &mut self,
        is_awaited: impl Fn(&Arc<str>) -> bool,
        context: &mut Context<'_, Worker>,
    ) {
        let id = context.id();
        for (_, key) in self.watched.extract_if(.., |(stream, _)| !is_awaited(stream)) {
            context.world.leave(key, id);
        }
    }

    /// The link took this many bytes.
    pub(super) fn count_link(&mut self, bytes: usize, context: &mut Context<'_, Worker>) {
        match &self.viewer {
            Some(viewer) => context.world.viewer_counts(viewer.counts).link_bytes += bytes as u64,
            None => self.said += bytes as u64,
        }
    }

    /// An answer was sent, with this many bytes of media if it has some.
    pub(super) fn count_answer(&mut self, media: Option<u64>, context: &mut Context<'_, Worker>) {
        let Some(viewer) = &self.viewer else { return context.answered() };
        if let Some(media) = media {
            let (payload_bytes, framed_bytes) = (media, media);
            context.world.viewer_counts(viewer.counts).sent.add(&UnitCounts {
                data: 1,
                payload_bytes,
                framed_bytes,
                ..UnitCounts::default()
            });
        }
    }

    /// When a fault of the viewer ends the connection next.
    pub(super) fn next_cut(&self) -> Option<Moment> {
        self.viewer.as_ref()?.script.as_ref()?.next_cut()
    }

    /// The end that a fault of the viewer has for the connection now.
    pub(super) fn overdue_cut(&mut self, context: &mut Context<'_, Worker>) -> Option<LinkEnd> {
        let script = self.viewer.as_mut()?.script.as_mut()?;
        let cut = script.cut(context.now)?;
        context.world.note(script.take_effects());
        Some(cut)
    }

    /// The connection has ended.
    pub(super) fn depart(&mut self, context: &mut Context<'_, Worker>) {
        self.watch_only(|_| false, context);
        if let Some(viewer) = self.viewer.take() {
            context.world.depart(viewer.counts);
        }
    }
}

/// A request that is answered as a fault wants it.
fn refused(answer: ScriptedAnswer, request: &Request) -> RequestOutcome {
    let Some(refusal) = HttpRefusal::of(answer, BASIC, FOUND) else {
        return RequestOutcome::Silence;
    };
    let status = refusal.status;
    let answer = match &refusal.words {
        Some(said) => Message::response_in(status, said).field("Server", PRODUCT),
        None => words(status),
    };
    let answer = refusal.complete(answer);
    RequestOutcome::Answer(Answer::status(answer, status, request.method == "HEAD", request.keep_alive))
}
