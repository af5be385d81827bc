//! What requests for a stream do: DESCRIBE, ANNOUNCE, SETUP, PLAY and RECORD (RFC 2326, section 10).

use super::{Handler, Publishing, RtspPhase, name_of, number, offered};
use crate::fault::{LinkPhase, Subject};
use crate::policy::MissingStream;
use crate::publisher::Publisher;
use crate::rtmp::retime;
use crate::rtsp::framer::{Framer, ssrc};
use crate::rtsp::intake::PublishedTracks;
use crate::rtsp::presentation::Presentation;
use crate::stream::View;
use crate::viewer::{Rewrite, Viewer, Watcher};
use crate::worker::{StreamKey, Worker};
use std::cell::RefCell;
use std::rc::Rc;
use weir_rtsp::{Description, Lower, Request, Transport};
use weir_shard::Context;

/// The most tracks of one session.
const MOST_TRACKS: usize = 16;
/// Bytes that are read at a time from a publisher that is read slowly.
const SLOW_READ: usize = 4 * 1024;

impl Handler {
    pub(super) fn describe(&mut self, request: Request, context: &mut Context<'_, Worker>) {
        let cseq = number(&request).to_owned();
        if matches!(self.phase, RtspPhase::Playing { .. } | RtspPhase::Publishing(_)) {
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
        if matches!(self.phase, RtspPhase::Playing { .. } | RtspPhase::Publishing(_)) {
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
                self.phase = RtspPhase::Announcing { name, tracks: Box::new(tracks) };
                let answer = self.response(200, number);
                self.say(answer, context);
            }
            None => self.error(415, number, context),
        }
    }

    pub(super) fn set_up(&mut self, request: &Request, number: &str, context: &mut Context<'_, Worker>) {
        let wanted = request.fields.get("transport").unwrap_or_default();
        let transport =
            Transport::parse(wanted).find(|it| it.lower == Lower::Tcp && !it.is_secure && !it.is_multicast);
        // RFC 2326 section 11.3.11: "461 Unsupported Transport: The Transport field did not contain a supported transport."
        let Some(transport) = transport else { return self.error(461, number, context) };
        let answer = match &mut self.phase {
            RtspPhase::Choosing { channels, .. } => {
                let track = request.uri.trim_end_matches('/').rsplit("trackID=").next();
                let track = track
                    .and_then(|track| track.parse::<usize>().ok())
                    .filter(|track| *track < channels.len());
                let Some(track) = track else { return self.error(404, number, context) };
                let own = (2 * track.min(MOST_TRACKS) as u8, 2 * track.min(MOST_TRACKS) as u8 + 1);
                let pair = transport.interleaved.unwrap_or(own);
                channels[track] = Some(pair);
                Transport { ssrc: Some(ssrc(self.number, track)), ..Transport::tcp(pair) }
            }
            RtspPhase::Announcing { tracks, .. } => {
                let pair = transport.interleaved.unwrap_or((0, 1));
                if !tracks.set_up(&request.uri, pair.0) {
                    return self.error(404, number, context);
                }
                Transport::tcp(pair).recording()
            }
            _ => return self.error(455, number, context),
        };
        self.has_session = true;
        let answer = self.response(200, number).field("Transport", answer);
        self.say(answer, context);
    }

    pub(super) fn play(&mut self, request: &Request, number: &str, context: &mut Context<'_, Worker>) {
        let RtspPhase::Choosing { name, presentation, channels } = &self.phase else {
            // A viewer that plays may ask again, as some do to keep their session alive.
            let status = if matches!(self.phase, RtspPhase::Playing { .. }) { 200 } else { 455 };
            return self.error(status, number, context);
        };
        if channels.iter().all(Option::is_none) {
            return self.error(455, number, context);
        }
        let (name, base) = (name.clone(), request.uri.trim_end_matches('/').to_owned());
        let framer = Rc::new(RefCell::new(Framer::new(presentation, channels, self.number)));
        let tracks = channels.iter().enumerate().filter(|(_, channels)| channels.is_some());
        let info: Vec<String> = tracks
            .map(|(at, _)| format!("url={base}/trackID={at};seq={}", (ssrc(self.number, at) >> 9) as u16))
            .collect();
        let answer =
            self.response(200, number).field("Range", "npt=0.000-").field("RTP-Info", info.join(","));
        self.say(answer, context);
        let viewer = self.viewer.unwrap_or_default();
        let watcher =
            Watcher::Viewer { number: viewer, peer: self.peer, said: self.said, view: View::Framed };
        let rewrite = || -> Rewrite {
            let framer = Rc::clone(&framer);
            Box::new(move |packet, by| framer.borrow_mut().frame(packet, by))
        };
        let viewer = Box::new(Viewer::join(&watcher, &name, Some(rewrite()), rewrite, context));
        self.phase = RtspPhase::Playing { viewer, framer };
        context.established();
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
        let wakes = publisher.flush(context.world);
        context.wake_all(wakes);
        if publisher.read_rate().is_some() {
            context.limit_reads(SLOW_READ);
        }
        self.phase =
            RtspPhase::Publishing(Box::new(Publishing { publisher, tracks, resume: None, used: now }));
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
