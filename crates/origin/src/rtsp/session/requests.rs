//! What requests for a stream do: DESCRIBE, ANNOUNCE, SETUP, PLAY, PAUSE and RECORD (RFC 2326, section 10).

use super::{Handler, Publishing, REPORT, RtspPhase, name_of, number, offered};
use crate::fault::{LinkPhase, Subject};
use crate::policy::MissingStream;
use crate::publisher::Publisher;
use crate::rtmp::retime;
use crate::rtsp::counts::RtspCounts;
use crate::rtsp::datagrams::{DatagramRoutes, channels_of};
use crate::rtsp::framer::{Framer, ssrc};
use crate::rtsp::intake::{Arrives, PublishedTracks};
use crate::rtsp::presentation::Presentation;
use crate::stream::View;
use crate::viewer::{Rewrite, Sink, Viewer, Watcher};
use crate::worker::{StreamKey, Worker};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_rtsp::{Description, Lower, Request, Transport};
use weir_shard::Context;

/// Bytes that are read at a time from a publisher that is read slowly.
const SLOW_READ: usize = 4 * 1024;

impl Handler {
    pub(super) fn describe(&mut self, request: Request, context: &mut Context<'_, Worker>) {
        let cseq = number(&request).to_owned();
        if self.has_stream() {
            return self.error(455, &cseq, context);
        }
        self.stop_waiting(context);
        let settings = context.world.settings().clone();
        let viewer = *self.viewer.get_or_insert_with(|| settings.next_viewer());
        let offered = offered(&request);
        if let Some(answer) =
            self.fault(LinkPhase::Play, Some(Subject::Viewer(viewer)), offered.as_deref(), context)
        {
            return self.refuse(answer, &cseq, context);
        }
        let Some(name) = name_of(&request.uri) else { return self.error(404, &cseq, context) };
        if settings.missing_stream == MissingStream::Refuse && !settings.registry.is_live(&name) {
            return self.error(404, &cseq, context);
        }
        let (id, worker) = (context.id(), &mut *context.world);
        let key = worker.stream_of(&name);
        match presentation(key, worker) {
            Some(presentation) => {
                let base = request.uri.trim_end_matches('/').to_owned() + "/";
                let description = presentation.description();
                if description.media.is_empty() {
                    return self.error(415, &cseq, context);
                }
                let channels = vec![None; description.media.len()];
                self.choose();
                self.phase = RtspPhase::Choosing { name, presentation: Box::new(presentation), channels };
                let answer = self.response(200, &cseq).field("Content-Base", base);
                self.say(answer.body("application/sdp", description.to_string()), context);
            }
            None => {
                worker.join(key, id);
                worker.wait(key, id);
                context.established();
                self.phase = RtspPhase::Waiting { request: Box::new(request), key };
            }
        }
    }

    /// The stream whose description was asked for has begun.
    pub(super) fn on_stream(&mut self, context: &mut Context<'_, Worker>) {
        if let RtspPhase::Waiting { request, .. } = &self.phase {
            let request = (**request).clone();
            self.describe(request, context);
        }
    }

    pub(super) fn stop_waiting(&mut self, context: &mut Context<'_, Worker>) {
        if let RtspPhase::Waiting { key, .. } = self.phase {
            let id = context.id();
            context.world.leave(key, id);
            self.phase = RtspPhase::Asking;
        }
    }

    pub(super) fn announce(&mut self, request: &Request, number: &str, context: &mut Context<'_, Worker>) {
        if self.has_stream() {
            return self.error(455, number, context);
        }
        self.stop_waiting(context);
        let settings = context.world.settings().clone();
        let publisher = settings.registry.next_publisher();
        let offered = offered(request);
        let who = Some(Subject::Publisher(publisher));
        if let Some(answer) = self.fault(LinkPhase::Publish, who, offered.as_deref(), context) {
            return self.refuse(answer, number, context);
        }
        let Some(name) = name_of(&request.uri) else { return self.error(404, number, context) };
        if settings.registry.is_live(&name) {
            return self.error(403, number, context);
        }
        match PublishedTracks::announced(&Description::parse(&request.body)) {
            Some(tracks) => {
                self.viewer = Some(publisher);
                self.choose();
                self.phase = RtspPhase::Announcing { name, tracks: Box::new(tracks) };
                let answer = self.response(200, number);
                self.say(answer, context);
            }
            None => self.error(415, number, context),
        }
    }

    /// Whether a stream plays or is published, so that no other can be asked for.
    fn has_stream(&self) -> bool {
        let phase = &self.phase;
        matches!(phase, RtspPhase::Playing { .. } | RtspPhase::Paused { .. } | RtspPhase::Publishing(_))
    }

    /// Tracks are to be set up, and none is.
    fn choose(&mut self) {
        self.lower = None;
        self.routes.iter().for_each(|routes| routes.borrow_mut().clear());
    }

    pub(super) fn set_up(&mut self, request: &Request, number: &str, context: &mut Context<'_, Worker>) {
        let wanted = request.fields.get("transport").unwrap_or_default();
        let transport = Transport::parse(wanted).find(|it| {
            let has_ports = it.lower == Lower::Tcp || it.client_port.is_some_and(|(rtp, _)| rtp > 0);
            let is_like_others = self.lower.is_none_or(|lower| lower == it.lower);
            has_ports && is_like_others && !it.is_secure && !it.is_multicast
        });
        // RFC 2326 section 11.3.11: "461 Unsupported Transport: The Transport field did not contain a supported transport."
        let Some(transport) = transport else { return self.error(461, number, context) };
        let track = match &self.phase {
            RtspPhase::Choosing { channels, .. } => {
                let track = request.uri.trim_end_matches('/').rsplit("trackID=").next();
                track.and_then(|track| track.parse::<usize>().ok()).filter(|track| *track < channels.len())
            }
            RtspPhase::Announcing { tracks, .. } => tracks.find(&request.uri),
            _ => return self.error(455, number, context),
        };
        let Some(track) = track else { return self.error(404, number, context) };
        let (pair, answer) = match transport.client_port.filter(|_| transport.lower == Lower::Udp) {
            Some(ports) => {
                // 503 (Service Unavailable) is for what may be there later; RFC 2326 has no status for a server without ports.
                let Some(answer) = self.route(track, ports, context) else {
                    return self.error(503, number, context);
                };
                (channels_of(track), answer)
            }
            None => {
                let pair = transport.interleaved.unwrap_or(channels_of(track));
                (pair, Transport::tcp(pair))
            }
        };
        let answer = match &mut self.phase {
            RtspPhase::Choosing { channels, .. } => {
                channels[track] = Some(pair);
                Transport { ssrc: Some(ssrc(self.number, track)), ..answer }
            }
            RtspPhase::Announcing { tracks, .. } => {
                let arrives = match answer.client_port {
                    Some((port, _)) => Arrives::From(port),
                    None => Arrives::In(pair.0, pair.1),
                };
                tracks.set_up(track, arrives);
                answer.recording()
            }
            _ => return,
        };
        (self.lower, self.has_session) = (Some(transport.lower), true);
        let answer = self.response(200, number).field("Transport", answer);
        self.say(answer, context);
    }

    /// A track is to be carried by datagrams to and from these ports of the peer's; `None` if no ports are left. They go to the address
    /// of the peer itself, whatever it says: a `destination` could be another's (RFC 2326 section 12.39, on denial of service).
    fn route(
        &mut self,
        track: usize,
        (rtp, rtcp): (u16, u16),
        context: &mut Context<'_, Worker>,
    ) -> Option<Transport> {
        if self.routes.is_none() {
            let port = *context.open_datagram_pairs(1).ok()?.first()?;
            self.routes = Some(Rc::new(RefCell::new(DatagramRoutes::new((port, port.saturating_add(1))))));
        }
        let mut routes = self.routes.as_ref()?.borrow_mut();
        let to = |port| SocketAddr::new(self.peer.ip(), port);
        routes.set(track, to(rtp), to(rtcp));
        Some(Transport { server_port: Some(routes.ports), ..Transport::udp((rtp, rtcp)) })
    }

    pub(super) fn play(&mut self, request: &Request, number: &str, context: &mut Context<'_, Worker>) {
        let base = request.uri.trim_end_matches('/').to_owned();
        let (name, presentation, channels) = match &self.phase {
            RtspPhase::Choosing { name, presentation, channels } if channels.iter().any(Option::is_some) => {
                (name.clone(), presentation, channels)
            }
            RtspPhase::Paused { .. } => return self.resume(&base, number, context),
            // A viewer that plays may ask again, as some do to keep their session alive.
            RtspPhase::Playing { .. } => return self.error(200, number, context),
            _ => return self.error(455, number, context),
        };
        let framer = Rc::new(RefCell::new(Framer::new(presentation, channels, self.number)));
        self.answer_play(&framer, &base, number, context);
        let viewer = self.viewer.unwrap_or_default();
        let watcher =
            Watcher::Viewer { number: viewer, peer: self.peer, said: self.said, view: View::Framed };
        let rewrite = || -> Rewrite {
            let framer = Rc::clone(&framer);
            Box::new(move |packet, by| framer.borrow_mut().frame(packet, by))
        };
        let mut viewer = Box::new(Viewer::join(&watcher, &name, Some(rewrite()), rewrite, context));
        if let Some(routes) = self.routes.clone().filter(|_| self.lower == Some(Lower::Udp)) {
            let sink: Sink = Box::new(move |slices, link| {
                let mut routes = routes.borrow_mut();
                slices.iter().for_each(|slice| routes.send(slice, link));
                slices.iter().map(|slice| slice.len()).sum()
            });
            viewer.send_by(sink);
        }
        self.phase = RtspPhase::Playing { viewer, framer };
        context.established();
        self.pump(context);
    }

    fn answer_play(
        &mut self,
        framer: &RefCell<Framer>,
        base: &str,
        number: &str,
        context: &mut Context<'_, Worker>,
    ) {
        let answer = self.response(200, number).field("Range", "npt=0.000-");
        let answer = answer.field("RTP-Info", framer.borrow().info(base));
        self.say(answer, context);
    }

    /// RFC 2326 section 10.6: "The PAUSE request causes the stream delivery to be interrupted (halted) temporarily."
    pub(super) fn pause(&mut self, number: &str, context: &mut Context<'_, Worker>) {
        self.phase = match std::mem::replace(&mut self.phase, RtspPhase::Asking) {
            RtspPhase::Playing { viewer, framer } | RtspPhase::Paused { viewer, framer } => {
                RtspPhase::Paused { viewer, framer }
            }
            other => {
                self.phase = other;
                return self.error(455, number, context);
            }
        };
        self.error(200, number, context);
    }

    /// Plays on, from the latest keyframe: of a live stream, what was sent meanwhile is over. Numbers and times of packets go on.
    fn resume(&mut self, base: &str, number: &str, context: &mut Context<'_, Worker>) {
        let RtspPhase::Paused { mut viewer, framer } = std::mem::replace(&mut self.phase, RtspPhase::Asking)
        else {
            return;
        };
        viewer.resume(context.world);
        self.phase = RtspPhase::Playing { viewer, framer: Rc::clone(&framer) };
        self.answer_play(&framer, base, number, context);
        self.pump(context);
    }

    pub(super) fn record(&mut self, _: &Request, number: &str, context: &mut Context<'_, Worker>) {
        let phase = std::mem::replace(&mut self.phase, RtspPhase::Asking);
        let RtspPhase::Announcing { name, tracks } = phase else {
            self.phase = phase;
            return self.error(455, number, context);
        };
        let now = context.now;
        let Some(mut publisher) = Publisher::claim(&name, self.viewer, retime, context.world, now) else {
            return self.error(403, number, context);
        };
        context.world.count(|counts: &mut RtspCounts| counts.publishers += 1);
        let wakes = publisher.flush(context.world);
        context.wake_all(wakes);
        if publisher.read_rate().is_some() {
            context.limit_reads(SLOW_READ);
        }
        let publishing =
            Publishing { publisher, tracks, resume: None, used: now, report_at: now + REPORT / 2 };
        self.phase = RtspPhase::Publishing(Box::new(publishing));
        context.established();
        let answer = self.response(200, number);
        self.say(answer, context);
    }
}

/// What the settings in front of the stream's last keyframe describe; `None` before there is one.
fn presentation(key: StreamKey, worker: &Worker) -> Option<Presentation> {
    let stream = worker.stream(key);
    let keyframe = stream.log.last_keyframe().filter(|_| stream.live)?;
    let opening = stream.log.get(keyframe)?.opening.as_ref()?;
    Some(Presentation::of(opening))
}
