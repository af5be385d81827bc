//! An RTSP publisher.

use super::RtspTransport;
use super::connection::Connection;
use super::datagrams::DatagramRoutes;
use super::refusal::refusal;
use super::request::Request;
use super::sending::{Content, Sending, control};
use crate::client_session::{ClientSession, End, said};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::redirect::Redirects;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::common::{READS, RECEIVED, SENT, SOCKET_DROPS};
use weir_metrics::{Failure, Moment};
use weir_rtc::Datagram;
use weir_rtsp::{Item, Lower, Method, Reader, Response, Transport};
use weir_shard::{Context, Datagrams, Incoming};

/// Bytes that may wait for a server before the publisher waits as well. The kernel's buffer comes on top.
const UNSENT_LIMIT: usize = 256 * 1024;

/// How often a server that holds a publisher up is looked at before its time is over.
const LOOKS: u32 = 10;

/// What all publishers of a workload share.
pub(super) struct SharedOptions {
    pub(super) timeouts: Timeouts,
    /// How long a server may take nothing.
    pub(super) send_timeout: Duration,
    pub(super) content: Content,
    pub(super) transport: RtspTransport,
    pub(super) redirects: Redirects,
}

/// One virtual publisher. Frame n is due at the moment when the server consented plus the frame's decode
/// time, and is never skipped: what is late is sent as soon as it can be, and its lag recorded.
pub(super) struct Publisher {
    state: ClientState,
    common: Arc<SharedOptions>,
    connection: Connection,
    reader: Reader,
    sending: Sending,
    /// Where packets go, if they go as datagrams.
    routes: Option<DatagramRoutes>,
    /// Tracks that are set up.
    tracks: usize,
    /// Set while something waits for the server.
    blocked: Option<Blockage>,
}

/// A server that holds a publisher up.
#[derive(Clone, Copy)]
struct Blockage {
    /// What its machine had acknowledged when that last grew.
    acknowledged: u64,
    /// When that was.
    since: Moment,
    /// When to look again.
    look: Moment,
}

impl Publisher {
    pub(super) fn new(
        planned: PlannedStart,
        request: Arc<Request>,
        common: Arc<SharedOptions>,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let redirects = common.redirects.clone();
        Self {
            state: ClientState::begin(planned, common.timeouts, now, shard),
            connection: Connection::new(planned, request, redirects, true, now),
            reader: Reader::new(),
            sending: sending(&common, planned, now),
            routes: None,
            tracks: 0,
            blocked: None,
            common,
        }
    }

    fn on_response(
        &mut self,
        method: Method,
        response: &Response,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Result<(), End> {
        // What a server cannot do it says to the request itself: some know no OPTIONS.
        if method != Method::Options
            && let Some(end) = refusal(method, response)
        {
            return Err(end);
        }
        match method {
            Method::Options => {
                self.state.reach(ClientPhase::Requesting, now, shard);
                self.connection.announce(self.sending.description().to_string(), now);
            }
            Method::Announce => self.set_up(now),
            Method::Setup => {
                let transport = response.fields.get("transport").and_then(|it| Transport::parse(it).next());
                self.route(transport)?;
                self.tracks += 1;
                self.set_up(now);
            }
            Method::Record => {
                self.state.reach(ClientPhase::Playing, now, shard);
                self.connection.begin_session(now);
                self.sending.begin(now)?;
            }
            Method::Describe | Method::Play | Method::Pause | Method::GetParameter | Method::Teardown => {}
        }
        Ok(())
    }

    /// A track is set up: where its packets go.
    fn route(&mut self, transport: Option<Transport>) -> Result<(), End> {
        let is_route = match (transport, &mut self.routes) {
            (Some(Transport { lower: Lower::Tcp, is_secure: false, interleaved, .. }), None) => {
                if let Some(channels) = interleaved {
                    self.sending.set_channels(self.tracks, channels);
                }
                true
            }
            (Some(transport @ Transport { lower: Lower::Udp, is_secure: false, .. }), Some(routes)) => {
                routes.add(&transport)
            }
            _ => false,
        };
        if is_route {
            return Ok(());
        }
        let words = match self.routes {
            None => "SETUP is answered with another transport than RTP in the connection",
            Some(_) => "SETUP is answered with another transport than UDP, or without the server's ports",
        };
        Err((Failure::Rejected, words.to_owned()))
    }

    /// Asks for the next track, or to record all of them.
    fn set_up(&mut self, now: Moment) {
        let uri = self.connection.uri().to_owned();
        match self.sending.channels(self.tracks) {
            Some(channels) => {
                let track = format!("{}/{}", uri.trim_end_matches('/'), control(self.tracks));
                let transport = match &self.routes {
                    Some(routes) => routes.wanted(),
                    None => Transport::tcp(channels),
                };
                let transport = transport.recording().to_string();
                self.connection.ask(Method::Setup, &track, vec![("Transport", transport)], now);
            }
            None => {
                self.connection.ask(Method::Record, &uri, vec![("Range", "npt=0.000-".to_owned())], now);
            }
        }
    }

    /// Takes what a read brought.
    fn take(&mut self, mut bytes: &[u8], now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        loop {
            let item = self.reader.take(&mut bytes);
            let item = item.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
            match item {
                None => return Ok(()),
                Some(Item::Response(response)) => {
                    if let Some((method, response)) = self.connection.on_response(response, now, shard)? {
                        self.on_response(method, &response, now, shard)?;
                    }
                    if self.connection.is_next() {
                        return Ok(());
                    }
                }
                Some(Item::Request(request)) => self.connection.on_request(&request),
                Some(Item::Frame { bytes, .. }) => {
                    self.sending.on_report(bytes, shard.of(self.state.planned()));
                }
                Some(Item::Rest(_)) => {}
            }
        }
    }

    /// Sends all frames that are due.
    fn send_due(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        if self.state.phase() != ClientPhase::Playing {
            return Ok(());
        }
        self.sending.report(now, context.world.of(self.state.planned()));
        while self.sending.due() <= now {
            if self.sending.output().len() + context.unsent() > UNSENT_LIMIT {
                // A pause after which everything that is due goes out, with its lag.
                self.flush(context);
                if context.unsent() > UNSENT_LIMIT {
                    break;
                }
            }
            let recorder = context.world.of(self.state.planned());
            self.sending.send_frame(now, &self.common.content, recorder);
            self.sending.fetch()?;
        }
        Ok(())
    }

    fn flush(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.connection.flush(context);
        let output = self.sending.output();
        if !output.is_empty() {
            let sent = match &mut self.routes {
                Some(routes) => routes.send(output, context),
                None => {
                    context.send(output);
                    output.len()
                }
            };
            context.world.of(self.state.planned()).count(SENT, sent as u64);
            output.clear();
        }
    }

    /// Notes whether the server takes anything: what waits here says little, since it grows while frames come due,
    /// and the kernel takes more only in lumps.
    fn watch_server(&mut self, context: &Context<'_, ShardRecorder>) {
        let now = context.now;
        self.blocked = match self.blocked {
            _ if context.unsent() == 0 => None,
            Some(blocked) if now < blocked.look => Some(blocked),
            before => {
                let acknowledged = context.acknowledged();
                let idle = before.filter(|before| before.acknowledged == acknowledged);
                let since = idle.map_or(now, |before| before.since);
                Some(Blockage { acknowledged, since, look: now + self.common.send_timeout / LOOKS })
            }
        };
    }

    /// Books what is known at the end of a link only.
    fn book_end(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let dropped = if self.routes.is_some() { context.dropped_datagrams() } else { 0 };
        let recorder = context.world.of(self.state.planned());
        recorder.count(SOCKET_DROPS, dropped);
        self.sending.book_reports(recorder);
    }

    /// Forgets what belongs to a link.
    fn restart(&mut self, now: Moment) {
        self.reader = Reader::new();
        self.sending = sending(&self.common, self.state.planned(), now);
        (self.tracks, self.blocked, self.routes) = (0, None, None);
    }
}

fn sending(common: &SharedOptions, planned: PlannedStart, now: Moment) -> Sending {
    let random = planned.client.wrapping_mul(0x9E37_79B9) ^ now.as_nanos() as u32;
    Sending::new(common.content.material.source(), random, now)
}

impl ClientSession for Publisher {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.state.reach(ClientPhase::Handshaking, context.now, context.world);
        if self.common.transport == RtspTransport::Udp
            && let Some(server) = context.peer_address()
        {
            let opened = context.open_datagram_pairs(self.sending.tracks());
            let ports = opened.map_err(|error| (error.failure, error.words))?;
            self.routes = Some(DatagramRoutes::new(ports, server.ip()));
        }
        self.connection.connected(context.now);
        Ok(())
    }

    fn handle_datagrams(
        &mut self,
        mut datagrams: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let recorder = context.world.of(self.state.planned());
        let mut received = 0;
        while let Some(Incoming { bytes, .. }) = datagrams.take_next() {
            received += bytes.len() as u64;
            if Datagram::of(bytes) == Datagram::Rtcp {
                self.sending.on_report(bytes, recorder);
            }
        }
        recorder.count(READS, 1);
        recorder.count(RECEIVED, received);
        Ok(())
    }

    /// The server has ended the connection, although datagrams would still go: whether it takes them is not known any more.
    fn handle_hung_up(
        &mut self,
        failure: Failure,
        words: &str,
        _: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        Err((failure, said(words)))
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let recorder = shard.of(self.state.planned());
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        if self.connection.is_next() { Ok(()) } else { self.take(bytes, now, shard) }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let uri = self.connection.uri().to_owned();
        self.connection.handle_timeout(&uri, context.now, context.world);
        Ok(())
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if self.connection.go_on(context)? {
            self.restart(context.now);
        }
        if !self.connection.is_up() {
            return Ok(());
        }
        self.send_due(context)?;
        self.flush(context);
        self.watch_server(context);
        match self.blocked.map(|blocked| blocked.since + self.common.send_timeout) {
            Some(until) if until <= context.now => {
                Err((Failure::SendTimeout, "the server took nothing more of the stream in time".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let sends = self.state.phase() == ClientPhase::Playing && context.unsent() <= UNSENT_LIMIT;
        let due = sends.then(|| self.sending.poll_timeout());
        let look = self.blocked.map(|blocked| blocked.look);
        [look, due, self.connection.poll_timeout(context.now)].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.book_end(context);
        self.connection.begin_again(context.now);
        self.restart(context.now);
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.book_end(context);
        if failure.is_none() {
            let uri = self.connection.uri().to_owned();
            self.connection.tear_down(&uri, context);
        }
    }
}
