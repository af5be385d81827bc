//! An RTMP player.

use super::attempts::{Attempts, Request, nonce, seed};
use super::figures::{
    AUDIO_FRAMES, DATA_MESSAGES, DIGEST_HANDSHAKES, ENHANCED, SEQUENCE_HEADERS, SERVER_ACKS, STATUSES,
    STREAM_ENDS, UNREADABLE_TAGS,
};
use super::refusal::{StatusMeaning, verdict};
use super::trace;
use crate::client_session::{ClientSession, End, Stop, said};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::decoding::DecodedWitness;
use crate::flv_viewer::{FlvBody, FlvFigures, FlvViewer};
use crate::host_clock::HostClock;
use crate::playback_model::Reading;
use crate::playout::Playout;
use crate::redirect::Redirects;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::common::{READS, RECEIVED, SENT};
use weir_metrics::{Failure, Moment};
use weir_rtmp::handshake::Scheme;
use weir_rtmp::message::Status;
use weir_rtmp::{Client, ClientEvent};
use weir_shard::{Context, Edge};

/// The longest frame that is put together for a decoder: larger than any picture of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_FRAME: u32 = 8 * 1024 * 1024;

/// What the bodies of messages are counted as.
const FIGURES: FlvFigures = FlvFigures {
    audio_frames: AUDIO_FRAMES,
    sequence_headers: SEQUENCE_HEADERS,
    data: DATA_MESSAGES,
    enhanced: ENHANCED,
    unreadable: UNREADABLE_TAGS,
    numbers_frames: true,
};

/// What all players of a workload share.
pub(super) struct SharedOptions {
    pub(super) timeouts: Timeouts,
    pub(super) playout: Playout,
    pub(super) end_grace: Duration,
    pub(super) clock: Arc<HostClock>,
    pub(super) redirects: Redirects,
}

/// One virtual viewer.
pub(super) struct Player {
    client: Client,
    viewer: Viewer,
}

/// All of a player but the protocol's machine.
struct Viewer {
    flv: FlvViewer,
    /// What it asks for first.
    request: Arc<Request>,
    /// Until the server consents.
    attempts: Option<Box<Attempts>>,
    options: Arc<SharedOptions>,
    /// The server said that the stream has ended: when that becomes a failure, and its words.
    ended: Option<Box<(Moment, String)>>,
}

impl Player {
    pub(super) fn new(
        planned: PlannedStart,
        request: Arc<Request>,
        options: Arc<SharedOptions>,
        (reading, decoded): (Reading, Option<DecodedWitness>),
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let playing = (options.timeouts, options.playout, Arc::clone(&options.clock));
        let flv = FlvViewer::new(planned, playing, &FIGURES, reading, now, shard).decoded(decoded);
        let attempts = Attempts::new(Arc::clone(&request), options.redirects.clone());
        let client = client(&attempts, &flv, now);
        let attempts = Some(Box::new(attempts));
        Self { client, viewer: Viewer { flv, request, attempts, options, ended: None } }
    }

    fn send(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let output = self.client.output();
        if output.is_empty() {
            return;
        }
        context.send(output);
        context.world.of(self.viewer.planned()).count(SENT, output.len() as u64);
        // The handshake made it large; what a player says later is a few bytes a minute.
        *output = Vec::new();
    }
}

/// A protocol machine that keeps as much of each message as the viewer looks at.
fn client(attempts: &Attempts, flv: &FlvViewer, now: Moment) -> Client {
    let mut client = Client::new(attempts.options(), seed(flv.state.planned(), now));
    if flv.is_decoded() {
        client.keep(LONGEST_FRAME);
    }
    client
}

impl ClientSession for Player {
    fn state(&self) -> &ClientState {
        &self.viewer.flv.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.viewer.flv.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.viewer.flv.state.reach(ClientPhase::Handshaking, context.now, context.world);
        self.send(context);
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let viewer = &mut self.viewer;
        let mut outcome = Ok(());
        if viewer.attempts.as_ref().is_some_and(|attempts| attempts.is_next()) {
            return outcome;
        }
        if !bytes.is_empty() {
            let recorder = shard.of(viewer.planned());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            // A refusal met while reading is booked when the read is over.
            let mut refused = None;
            let mut on_event = |event: ClientEvent<'_>| viewer.on_event(event, &mut refused, now, shard);
            let read = self.client.input(bytes, &mut on_event);
            viewer.flv.book(now, shard);
            outcome = read.map_err(|error| (Failure::MalformedInput, error.to_string()));
            outcome = outcome.and(refused.map_or(Ok(()), Err));
        }
        viewer.flv.end_of_read(bytes.is_empty(), now, shard);
        if !bytes.is_empty() {
            self.send(context);
        }
        outcome
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if let Some(ended) = self.viewer.ended.take_if(|ended| ended.0 <= context.now) {
            return Err((Failure::StreamEnded, ended.1));
        }
        self.viewer.flv.handle_timeout(context);
        Ok(())
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.flv.edge(edge, context.world);
    }

    fn lacks_only_a_keyframe(&self) -> bool {
        self.viewer.flv.lacks_only_a_keyframe()
    }

    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        self.viewer.flv.overdue()
    }

    fn handle_stop(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        Ok(Stop::WhenRead)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        _: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        Err(match self.viewer.ended.take() {
            // A server that has ended the stream before has not broken off.
            Some(ended) => (Failure::StreamEnded, ended.1),
            None => (failure, said(words)),
        })
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if let Some(attempts) = &mut self.viewer.attempts
            && attempts.go_on(context)?
        {
            self.client = client(attempts, &self.viewer.flv, context.now);
        }
        context.set_low_water(if self.viewer.ended.is_none() { self.viewer.flv.batch() } else { 1 });
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let ended = self.viewer.ended.as_ref().map(|ended| ended.0);
        let next = self.viewer.attempts.as_ref().and_then(|attempts| attempts.poll_timeout(context.now));
        [self.viewer.flv.poll_timeout(), next, ended].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let viewer = &mut self.viewer;
        let attempts = Attempts::new(Arc::clone(&viewer.request), viewer.options.redirects.clone());
        self.client = client(&attempts, &viewer.flv, context.now);
        viewer.attempts = Some(Box::new(attempts));
        viewer.flv.begin_again(context.world);
        viewer.ended = None;
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.flv.leave(context.now, context.world);
        if failure.is_none() && self.state().phase() > ClientPhase::Connecting {
            self.client.close();
            self.send(context);
        }
    }
}

impl Viewer {
    /// Something came. A refusal is booked when the read is over.
    #[inline]
    fn on_event(
        &mut self,
        event: ClientEvent<'_>,
        refused: &mut Option<End>,
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        trace::heard(self.planned().number(), &event);
        match event {
            ClientEvent::Media(media) => {
                let before = self.flv.came();
                let (kind, timestamp, length, head) = (media.kind, media.timestamp, media.length, media.head);
                self.flv.take(&FlvBody { kind, timestamp, length, head }, now, shard);
                if self.flv.came() > before {
                    self.ended = None;
                }
            }
            ClientEvent::HandshakeDone { scheme } => {
                self.flv.state.reach(ClientPhase::Requesting, now, shard);
                shard
                    .of(self.flv.state.planned())
                    .count(DIGEST_HANDSHAKES, u64::from(scheme == Scheme::Digest));
            }
            ClientEvent::Playing => {
                self.attempts = None;
                self.flv.state.reach(ClientPhase::Waiting, now, shard);
            }
            ClientEvent::Status(status) => self.status(&status, refused, now, shard),
            ClientEvent::StreamEof { .. } => self.ended("the server said: stream EOF", now, shard),
            ClientEvent::Acknowledged { .. } => shard.of(self.flv.state.planned()).count(SERVER_ACKS, 1),
            ClientEvent::Connected
            | ClientEvent::StreamCreated { .. }
            | ClientEvent::Publishing
            | ClientEvent::StreamBegin { .. }
            | ClientEvent::StreamDry { .. } => {}
        }
    }

    fn status(
        &mut self,
        status: &Status<'_>,
        refused: &mut Option<End>,
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        shard.of(self.flv.state.planned()).count(STATUSES, 1);
        if refused.is_none()
            && let Some(attempts) = &mut self.attempts
            && let Some(next) = attempts.refused(status, nonce(now))
        {
            *refused = next.err();
            return;
        }
        match verdict(status) {
            StatusMeaning::Fine => {}
            StatusMeaning::Ended => {
                self.ended("", now, shard);
                // Its words say more than the event that may have come before.
                if let Some(ended) = &mut self.ended {
                    ended.1 = status.to_string();
                }
            }
            StatusMeaning::Failed(failure) => {
                refused.get_or_insert_with(|| (failure, status.to_string()));
            }
        }
    }

    /// The stream has ended, unless media comes again within the grace.
    fn ended(&mut self, words: &str, now: Moment, shard: &mut ShardRecorder) {
        if self.ended.is_none() {
            shard.of(self.flv.state.planned()).count(STREAM_ENDS, 1);
            self.ended = Some(Box::new((now + self.options.end_grace, words.to_owned())));
        }
    }

    fn planned(&self) -> PlannedStart {
        self.flv.state.planned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_players_fit_into_memory() {
        // Beside this a player keeps its reader's chunk streams and the head of a frame, some 2 kB.
        assert!(size_of::<Player>() <= 1_024, "{} bytes", size_of::<Player>());
    }
}
