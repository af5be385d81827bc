//! What answers an HTTP connection to a tuner server: its API, and the streams of its services.

use super::answer::{error, stream_head};
use super::api::{self, Resource};
use crate::fault::{LinkEnd, LinkPhase, ScriptedAnswer, Subject};
use crate::http::{BASIC, FOUND, HttpLink, HttpRefusal, Responder, UNSENT_LIMIT};
use crate::stream::View;
use crate::tuner;
use crate::viewer::{Standing, Viewer, Watcher};
use crate::worker::Worker;
use weir_metrics::Moment;
use weir_shard::Context;
use weir_web::{LAST_CHUNK, Message, Request};

/// What answers a client that makes requests, or a reader of a stream.
pub(crate) struct TunerResponder {
    link: HttpLink,
    playing: Option<Box<Playing>>,
    /// Bytes sent before the peer became a reader.
    said: u64,
}

struct Playing {
    viewer: Viewer,
    station: usize,
    chunked: bool,
}

impl TunerResponder {
    fn play(&mut self, station: usize, request: &Request, context: &mut Context<'_, Worker>) {
        let settings = context.world.settings().clone();
        let Some(tuners) = &settings.tuners else { return };
        let chunked = request.modern && request.asks("chunked").map_or(tuners.chunked, |said| said != "0");
        let head = stream_head(&self.link.peer().to_string(), chunked);
        if request.method == "HEAD" {
            self.said += head.len() as u64;
            context.send(&head);
            return self.after_answer(request.keep_alive && chunked, context);
        }
        let number = settings.next_viewer();
        let (who, offered) = (Some(Subject::Viewer(number)), request.basic());
        if let Some(answer) = self.link.fault(LinkPhase::Play, who, offered.as_deref(), context) {
            return self.refuse(answer, request, context);
        }
        self.said += head.len() as u64;
        context.send(&head);
        tuner::attend(station, context.world, context.now);
        let view = if chunked { View::Framed } else { View::Bare };
        let watcher = Watcher::Viewer { number, peer: self.link.peer(), said: self.said, view };
        let name = &tuners.stations[station].name;
        let viewer = Viewer::join(
            &watcher,
            name,
            None,
            || Box::new(|packet, by| Some(tuner::remake(packet, by))),
            context,
        );
        self.playing = Some(Box::new(Playing { viewer, station, chunked }));
        self.link.take_over();
        context.established();
        self.pump(context);
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, answer: ScriptedAnswer, request: &Request, context: &mut Context<'_, Worker>) {
        let Some(refusal) = HttpRefusal::of(answer, BASIC, FOUND) else {
            return self.link.fall_silent(context);
        };
        let answer = error(refusal.status, refusal.words.as_deref());
        self.reply(refusal.complete(answer), request, context);
    }

    fn reply(&mut self, answer: Message, request: &Request, context: &mut Context<'_, Worker>) {
        self.respond(answer, request.method == "HEAD", request.keep_alive, context);
    }

    fn respond(
        &mut self,
        answer: Message,
        head_only: bool,
        keep_alive: bool,
        context: &mut Context<'_, Worker>,
    ) {
        let answer = answer.keep_alive(keep_alive);
        let bytes = if head_only { answer.end_of_head() } else { answer.end() };
        self.said += bytes.len() as u64;
        context.send(&bytes);
        self.after_answer(keep_alive, context);
    }

    fn after_answer(&mut self, keep_alive: bool, context: &mut Context<'_, Worker>) {
        context.answered();
        self.link.after_answer(keep_alive, context.now);
        if context.unsent() > UNSENT_LIMIT {
            self.link.end(LinkEnd::Close);
        }
    }

    /// Sends a reader what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let Some(playing) = &mut self.playing else { return };
        match playing.viewer.pump(context) {
            Standing::Same | Standing::Begun => {}
            Standing::Ended if playing.chunked => {
                playing.viewer.send(LAST_CHUNK, context);
                context.answered();
                self.leave(context);
                self.link.after_answer(false, context.now);
            }
            Standing::Ended => self.link.end(LinkEnd::Close),
            Standing::LinkEnd(cut) => self.link.end(cut),
            Standing::Stuck => self.link.end(LinkEnd::Reset),
        }
    }
}

impl Responder for TunerResponder {
    // Nothing here takes a body.
    const MOST_BODY: usize = 0;
    const ANSWERS_A_TURN: usize = 16;

    fn new(link: HttpLink) -> Self {
        Self { link, playing: None, said: 0 }
    }

    fn link(&mut self) -> &mut HttpLink {
        &mut self.link
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        if let Some(answer) = self.link.fault(LinkPhase::Connect, None, request.basic().as_deref(), context) {
            return self.refuse(answer, request, context);
        }
        let settings = context.world.settings().clone();
        let found = match &settings.tuners {
            _ if !matches!(&*request.method, "GET" | "HEAD") => {
                Resource::Answer(error(405, None).field("Allow", "GET, HEAD"))
            }
            Some(tuners) => api::find(tuners, request),
            None => Resource::Answer(error(404, None)),
        };
        match found {
            Resource::Answer(answer) => self.reply(answer, request, context),
            Resource::Stream(station) => self.play(station, request, context),
        }
    }

    fn answer_bad_request(&mut self, status: u16, context: &mut Context<'_, Worker>) {
        self.respond(error(status, None), false, false, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(playing) = &mut self.playing {
            playing.viewer.woken();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn deadline(&mut self, context: &mut Context<'_, Worker>) -> Option<Moment> {
        let now = context.now;
        self.playing.as_mut()?.viewer.deadline(context.world, now)
    }

    /// Takes the peer off its stream.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(playing) = self.playing.take() {
            playing.viewer.leave(context);
            tuner::leave(playing.station, context.world);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::harness::settings;
    use crate::mirakurun::TunerSession;
    use crate::worker::Worker;
    use std::net::SocketAddr;
    use std::time::Duration;
    use weir_shard::{Event, Rig};

    /// Longer than a peer may take to go when all of the last answer was sent.
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn who_takes_its_last_answer_slowly_is_sent_all_of_it() {
        let mut rig = Rig::new(Worker::new(settings()));
        let mut session = TunerSession::new(&mut rig.world, SocketAddr::from(([127, 0, 0, 1], 50_000)));
        rig.dispatch(&mut session, Event::Connected);
        rig.room = 10;
        rig.dispatch(&mut session, Event::Bytes(b"GET /api/version HTTP/1.1\r\nConnection: close\r\n\r\n"));
        rig.advance(&mut session, LONG);
        assert!(!rig.closed, "{} bytes wait", rig.unsent.len());
        rig.make_room(&mut session, 1 << 20);
        assert!(rig.sent.ends_with(b"}"));
        rig.advance(&mut session, LONG);
        assert!(rig.closed);
    }
}
