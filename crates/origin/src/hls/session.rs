//! One accepted HTTP connection of a client that loads playlists and segments, one after the other.

mod outcome;

use self::outcome::{Outcome, outcome};
use super::answer::{ByteRange, Range, cut, http_date};
use super::path::Resource;
use super::playlist::{Directives, Playlist};
use super::segmenter::LONGEST_FIRST;
use super::shelf::is_multivariant;
use super::window::Window;
use crate::counts::UnitCounts;
use crate::fault::{LinkEnd, LinkFaults, LinkPhase, Script, ScriptedAnswer, Subject, Why};
use crate::policy::MissingStream;
use crate::worker::{CountKey, StreamKey, Worker};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Session, clock};
use weir_web::{Message, PRODUCT, Request, Requests, reason};

/// How long a peer may take to go when the kernel has taken the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Requests of one peer that are answered before others have their turn.
const ANSWERS_A_TURN: usize = 16;
/// Buffers that one write takes at most.
const BUFFERS: usize = 32;
/// How long the next part of a stream is waited for, at the least: a publisher may stand still.
const SHORTEST_HOLD: Duration = Duration::from_secs(3);
/// The same before the first segment of a stream is whole, which is as long at most, with a second for what is on its way.
const FIRST_HOLD: Duration = Duration::from_millis(LONGEST_FIRST as u64 + 1_000);
/// How often is looked whether all streams of a Multivariant Playlist are there.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// Bytes a second that a reader takes at the least of what it has asked for, 64 kbit/s: the slowest sound is as fast, and who is slower would
/// keep a segment for as long as it likes.
const SLOWEST_READER: u64 = 8_000;
/// How many times the patience with a reader that takes nothing a whole answer may take beside that.
const PATIENCE_WITH_ANSWERS: u32 = 4;

/// A session of an HTTP connection.
pub(crate) struct HlsSession {
    peer: SocketAddr,
    faults: LinkFaults,
    phase: HlsPhase,
    requests: Requests,
    /// Since it has asked for something of a stream.
    viewer: Option<HlsViewer>,
    /// Bytes sent before.
    said: u64,
    /// The end of the connection, if it is decided.
    cut: Option<LinkEnd>,
    /// What came while an answer was under way, and is read behind it.
    has_unread: bool,
}

enum HlsPhase {
    /// Has asked for nothing that is not answered.
    Asking,
    /// What it has asked for is not there yet, or held back by a fault.
    Waiting(Box<Waiting>),
    Sending(Box<Sending>),
    /// Was answered for the last time; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

/// Who loads, whatever of the stream.
struct HlsViewer {
    counts: CountKey,
    script: Option<Box<Script>>,
    /// The playlist that was sent last.
    playlist: Option<Playlist>,
}

/// A request that cannot be answered yet.
struct Waiting {
    stream: Arc<str>,
    resource: Resource,
    directives: Directives,
    range: Range,
    head_only: bool,
    keep_alive: bool,
    /// When it is refused; it is waited for a publisher without end.
    deadline: Option<Moment>,
    /// Before this a fault allows no answer.
    not_before: Option<Moment>,
    /// When nothing wakes it, and it is looked again.
    look_again: Option<Moment>,
    /// Faults have decided about it.
    is_ruled: bool,
    /// Packets that are not to be in it.
    lost_packets: usize,
    /// Where it waits to be woken.
    waits_for: Option<StreamKey>,
}

/// An answer under way.
struct Sending {
    /// The head, then buffers that are shared by all.
    buffers: Vec<Arc<[u8]>>,
    /// How many of them, and bytes of the next, the link has taken.
    sent: (usize, usize),
    /// The media that it has, for the counts.
    media: Option<u64>,
    keep_alive: bool,
    /// Since when the link takes nothing.
    blocked: Option<Moment>,
    /// When all of it has to have been taken.
    deadline: Moment,
}

impl HlsSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr) -> Self {
        let link = worker.accept();
        Self {
            peer,
            faults: LinkFaults::of(&worker.settings().faults, link),
            phase: HlsPhase::Asking,
            // Nothing here takes a body.
            requests: Requests::new(0),
            viewer: None,
            said: 0,
            cut: None,
            has_unread: false,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        if matches!(self.phase, HlsPhase::Leaving(_) | HlsPhase::Silent) {
            return;
        }
        if self.requests.is_empty() && self.fault(LinkPhase::Handshake, None, None, context).is_some() {
            self.fall_silent(context);
            return;
        }
        let (mut rest, mut answered) = (bytes, 0);
        while self.cut.is_none() && !rest.is_empty() {
            if matches!(self.phase, HlsPhase::Waiting(_) | HlsPhase::Sending(_)) {
                // Answers go in the order of requests (RFC 9112, section 9.3.2).
                self.has_unread = true;
                context.pause_reading(true);
                return context.give_back(rest);
            }
            if !matches!(self.phase, HlsPhase::Asking) {
                return;
            }
            if answered == ANSWERS_A_TURN {
                return context.give_back(rest);
            }
            answered += 1;
            match self.requests.take(&mut rest) {
                Ok(Some(request)) => self.answer(&request, context),
                Ok(None) => {}
                Err(bad) => self.respond(words(bad.status()), bad.status(), false, false, context),
            }
        }
    }

    /// Nothing is answered any more, because of a fault, and the link stays.
    fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.phase = HlsPhase::Silent;
        context.established();
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        let offered = request.basic();
        if let Some(answer) = self.fault(LinkPhase::Connect, None, offered.as_deref(), context) {
            return self.refuse(answer, request, context);
        }
        let (head_only, keep_alive) = (request.method == "HEAD", request.keep_alive);
        if !matches!(&*request.method, "GET" | "HEAD") {
            return self.respond(words(405).field("Allow", "GET, HEAD"), 405, false, keep_alive, context);
        }
        let settings = context.world.settings().clone();
        let Some((shelves, (name, resource))) =
            settings.hls.as_ref().zip(Resource::find(&request.segments()))
        else {
            return self.respond(words(404), 404, head_only, keep_alive, context);
        };
        let range = ByteRange::read(request.fields.get("range"));
        let shelf = shelves.get(&name);
        if shelf.is_none()
            && resource == Resource::Playlist
            && let Some(playlist) = shelves.multivariant(&name)
        {
            return self.deliver(&resource, (head_only, keep_alive), Range::All, vec![playlist], context);
        }
        let is_there = shelf.is_some() || settings.registry.is_live(&name);
        let may_wait = settings.missing_stream == MissingStream::Wait && resource == Resource::Playlist;
        if !is_there && !may_wait {
            return self.respond(words(404), 404, head_only, keep_alive, context);
        }
        let Some(directives) = Directives::read(request) else {
            return self.respond(words(400), 400, head_only, keep_alive, context);
        };
        let stream: Arc<str> = name.as_str().into();
        if self.viewer.is_none() {
            let number = settings.next_viewer();
            let who = Some(Subject::Viewer(number));
            if let Some(answer) = self.fault(LinkPhase::Play, who.clone(), offered.as_deref(), context) {
                return self.refuse(answer, request, context);
            }
            let counts = context.world.count_viewer(number, self.peer, &stream);
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
        self.phase = HlsPhase::Waiting(Box::new(Waiting {
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
            waits_for: None,
        }));
        self.go_on(context);
    }

    /// Answers what waits, if it can be answered now.
    fn go_on(&mut self, context: &mut Context<'_, Worker>) {
        let HlsPhase::Waiting(waiting) = &mut self.phase else { return };
        let settings = context.world.settings().clone();
        let Some(shelves) = &settings.hls else { return };
        let seen = shelves.version(&waiting.stream);
        let outcome = outcome(waiting, self.viewer.as_mut(), shelves, context);
        if let Some(script) = self.viewer.as_mut().and_then(|viewer| viewer.script.as_mut()) {
            context.world.note(script.take_effects());
        }
        let id = context.id();
        if let Some(key) = waiting.waits_for.take() {
            context.world.leave(key, id);
        }
        match outcome {
            Outcome::Wait => {
                let key = context.world.stream_of(&waiting.stream);
                context.world.join(key, id);
                context.world.await_segments(key, id, seen);
                waiting.waits_for = Some(key);
            }
            Outcome::LinkEnd(cut) => self.cut = Some(cut),
            Outcome::Answer(200, body) => {
                let HlsPhase::Waiting(waiting) = std::mem::replace(&mut self.phase, HlsPhase::Asking) else {
                    return;
                };
                let Waiting { resource, range, head_only, keep_alive, .. } = *waiting;
                self.deliver(&resource, (head_only, keep_alive), range, body, context);
            }
            Outcome::Answer(status, _) => {
                let (head_only, keep_alive) = (waiting.head_only, waiting.keep_alive);
                self.phase = HlsPhase::Asking;
                self.respond(words(status), status, head_only, keep_alive, context);
            }
        }
    }

    fn deliver(
        &mut self,
        resource: &Resource,
        (head_only, keep_alive): (bool, bool),
        range: Range,
        body: Vec<Arc<[u8]>>,
        context: &mut Context<'_, Worker>,
    ) {
        let whole: usize = body.iter().map(|piece| piece.len()).sum();
        let is_playlist = *resource == Resource::Playlist;
        // RFC 9110, section 14.2: a server may ignore a Range; those of playlists change while they are read.
        let range = if is_playlist { Range::All } else { range };
        let (status, body, content_range) = match range {
            Range::All => (200, body, None),
            Range::Of(range) => match range.within(whole) {
                Some((first, length)) => {
                    let last = first + length - 1;
                    (206, cut(body, first, length), Some(format!("bytes {first}-{last}/{whole}")))
                }
                None => (416, Vec::new(), Some(format!("bytes */{whole}"))),
            },
        };
        let length: usize = body.iter().map(|piece| piece.len()).sum();
        let container = context.world.settings().hls.as_ref().map(|it| it.settings().container);
        let head = Message::response(status)
            .field("Server", PRODUCT)
            // RFC 9110, section 6.6.1: "An origin server with a clock [...] MUST generate a Date header field in all 2xx (Successful) [...]
            // responses". Viewers tell by it what dates in playlists are worth.
            .field("Date", http_date(clock::wall_nanos() / 1_000_000_000))
            .field("Content-Type", resource.content_type(container.unwrap_or_default()))
            .field("Content-Length", length)
            .maybe("Content-Range", content_range)
            // What a segment is never changes; a playlist may with each request.
            .field("Cache-Control", if is_playlist { "no-cache" } else { "max-age=3600" })
            // Players in browsers load from other origins.
            .field("Access-Control-Allow-Origin", "*")
            .keep_alive(keep_alive)
            .end_of_head();
        let mut buffers: Vec<Arc<[u8]>> = vec![head.into()];
        let is_media = !is_playlist && *resource != Resource::Key;
        let media = (is_media && !head_only && status != 416).then_some(length as u64);
        if !head_only {
            buffers.extend(body.into_iter().filter(|piece| !piece.is_empty()));
        }
        self.send(buffers, media, keep_alive, context);
    }

    fn send(
        &mut self,
        buffers: Vec<Arc<[u8]>>,
        media: Option<u64>,
        keep_alive: bool,
        context: &mut Context<'_, Worker>,
    ) {
        let length: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let longest = Duration::from_millis(length as u64 * 1_000 / SLOWEST_READER);
        let patience = context.world.settings().patience.viewer * PATIENCE_WITH_ANSWERS;
        let deadline = context.now + patience + longest;
        let (sent, blocked) = ((0, 0), None);
        self.phase =
            HlsPhase::Sending(Box::new(Sending { buffers, sent, media, keep_alive, blocked, deadline }));
        self.pump(context);
    }

    /// Sends what the link takes of an answer.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let HlsPhase::Sending(sending) = &mut self.phase else { return };
        let mut bytes = 0;
        while sending.sent.0 < sending.buffers.len() {
            let (number, offset) = sending.sent;
            let mut slices = [IoSlice::new(&[]); BUFFERS];
            let mut asked = 0;
            let left = &sending.buffers[number..];
            for (place, (slice, buffer)) in slices.iter_mut().zip(left).enumerate() {
                let piece = if place == 0 { &buffer[offset..] } else { &buffer[..] };
                *slice = IoSlice::new(piece);
                asked += piece.len();
            }
            let taken = context.write(&slices[..left.len().min(BUFFERS)]);
            bytes += taken as u64;
            sending.advance(taken);
            if taken < asked {
                if taken > 0 || sending.blocked.is_none() {
                    sending.blocked = Some(context.now);
                }
                break;
            }
        }
        let is_whole = sending.sent.0 == sending.buffers.len();
        if let Some(viewer) = &self.viewer {
            let counts = context.world.viewer_counts(viewer.counts);
            counts.link_bytes += bytes;
            if let Some(media) = sending.media.filter(|_| is_whole) {
                let (payload_bytes, framed_bytes) = (media, media);
                counts.sent.add(&UnitCounts {
                    data: 1,
                    payload_bytes,
                    framed_bytes,
                    ..UnitCounts::default()
                });
            }
        }
        if is_whole {
            let keep_alive = sending.keep_alive;
            self.after_answer(keep_alive, context);
        }
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, answer: ScriptedAnswer, request: &Request, context: &mut Context<'_, Worker>) {
        match answer {
            ScriptedAnswer::Nothing => self.fall_silent(context),
            ScriptedAnswer::Refusal { why, code, words: said } => {
                let usual = match why {
                    Why::Unauthorized { .. } => 401,
                    Why::Rejected => 503,
                    Why::Moved { .. } => 302,
                };
                let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual);
                let answer = match said {
                    Some(said) => Message::response_in(status, &said).field("Server", PRODUCT),
                    None => words(status),
                };
                let answer = match why {
                    Why::Unauthorized { .. } => answer.field("WWW-Authenticate", "Basic realm=\"weir\""),
                    Why::Moved { to } => answer.field("Location", to),
                    Why::Rejected => answer,
                };
                self.respond(answer, status, request.method == "HEAD", request.keep_alive, context);
            }
        }
    }

    /// Sends an answer without anything of a stream.
    fn respond(
        &mut self,
        answer: Message,
        status: u16,
        head_only: bool,
        keep_alive: bool,
        context: &mut Context<'_, Worker>,
    ) {
        let answer = answer.field("Access-Control-Allow-Origin", "*").keep_alive(keep_alive);
        let answer = answer.body(format!("{}\n", reason(status)));
        let bytes = if head_only { answer.end_of_head() } else { answer.end() };
        self.said += bytes.len() as u64;
        self.send(vec![bytes.into()], None, keep_alive, context);
    }

    fn after_answer(&mut self, keep_alive: bool, context: &mut Context<'_, Worker>) {
        self.phase = HlsPhase::Asking;
        if !keep_alive {
            self.phase = HlsPhase::Leaving(context.now + CLOSE_TIMEOUT);
        } else if self.viewer.is_none() {
            context.answered();
        }
        if std::mem::take(&mut self.has_unread) {
            context.pause_reading(false);
        }
    }

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let deadline = match &self.phase {
            HlsPhase::Waiting(waiting) => waiting.not_before.or(waiting.look_again).or(waiting.deadline),
            HlsPhase::Sending(sending) => Some(sending.due(context.world.settings().patience.viewer)),
            HlsPhase::Leaving(at) => Some(*at),
            HlsPhase::Asking | HlsPhase::Silent => None,
        };
        let script = self.viewer.as_ref().and_then(|viewer| viewer.script.as_ref());
        let cut = script.and_then(|script| script.next_cut());
        context.set_timer([deadline, cut, self.faults.next_cut()].into_iter().flatten().min());
    }

    fn fault(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        offered: Option<&str>,
        context: &mut Context<'_, Worker>,
    ) -> Option<ScriptedAnswer> {
        self.faults.answer(phase, who, offered, context.world, context.now)
    }

    /// The end that a fault has for the connection now.
    fn overdue_cut(&mut self, context: &mut Context<'_, Worker>) -> Option<LinkEnd> {
        let now = context.now;
        if let Some(cut) = self.faults.cut(context.world, now) {
            return Some(cut);
        }
        let script = self.viewer.as_mut()?.script.as_mut()?;
        let cut = script.cut(now)?;
        context.world.note(script.take_effects());
        Some(cut)
    }

    fn end(&mut self, cut: Option<LinkEnd>, context: &mut Context<'_, Worker>) {
        if let HlsPhase::Waiting(waiting) = &mut self.phase
            && let Some(key) = waiting.waits_for.take()
        {
            let id = context.id();
            context.world.leave(key, id);
        }
        if let Some(viewer) = self.viewer.take() {
            context.world.depart(viewer.counts);
        }
        if let Some(cut) = cut {
            cut.carry_out(context);
        }
    }
}

impl Sending {
    /// When its reader is given up.
    fn due(&self, patience: Duration) -> Moment {
        self.blocked.map_or(self.deadline, |since| self.deadline.min(since + patience))
    }

    fn advance(&mut self, mut taken: usize) {
        while let Some(buffer) = self.buffers.get(self.sent.0) {
            let left = buffer.len() - self.sent.1;
            if taken < left {
                self.sent.1 += taken;
                return;
            }
            taken -= left;
            self.sent = (self.sent.0 + 1, 0);
        }
    }
}

/// The head of an answer with nothing but its status.
fn words(status: u16) -> Message {
    Message::response(status).field("Server", PRODUCT)
}

impl Session<Worker> for HlsSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        self.faults.begin(context.now);
        if self.fault(LinkPhase::Accept, None, None, context).is_some() {
            self.fall_silent(context);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        self.go_on(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(cut) = self.overdue_cut(context) {
            self.cut = Some(cut);
            return;
        }
        let (now, patience) = (context.now, context.world.settings().patience.viewer);
        match &self.phase {
            HlsPhase::Waiting(_) => self.go_on(context),
            HlsPhase::Sending(sending) if now >= sending.due(patience) => {
                self.cut = Some(LinkEnd::Reset);
            }
            HlsPhase::Leaving(at) if now >= *at => self.cut = Some(LinkEnd::Close),
            _ => {}
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end(Some(LinkEnd::Close), context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.end(None, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        match self.cut.take() {
            Some(cut) => self.end(Some(cut), context),
            None => self.arm(context),
        }
    }
}

#[cfg(test)]
mod tests;
