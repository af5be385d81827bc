//! An RTSP player.

mod datagram;

use super::RtspTransport;
use super::connection::Connection;
use super::figures::{AUDIO_FRAMES, CONFIGURATIONS, EXTENDED, MALFORMED, STRAYS};
use super::receiver::{Role, TrackReceiver};
use super::refusal::refusal;
use super::request::Request;
use crate::client_session::{ClientSession, End, Stop, said};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::decoding::DecodedWitness;
use crate::flv_viewer::{FlvFigures, FlvViewer};
use crate::host_clock::HostClock;
use crate::playback_model::Reading;
use crate::playout::Playout;
use crate::redirect::Redirects;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::common::{READS, RECEIVED, SENT, SOCKET_DROPS};
use weir_metrics::{Failure, Moment};
use weir_rtsp::{Description, Item, LONGEST_BODY, Lower, MediaKind, Method, Reader, Response, Transport};
use weir_shard::{Context, Datagrams, Edge, Incoming};

/// How often a receiver reports (RFC 3550 section 6.2: five seconds at the least).
const REPORT: Duration = Duration::from_secs(5);

/// What is counted.
pub(super) const FIGURES: FlvFigures = FlvFigures {
    audio_frames: AUDIO_FRAMES,
    sequence_headers: CONFIGURATIONS,
    // Nothing of RTSP becomes script data.
    data: MALFORMED,
    enhanced: EXTENDED,
    unreadable: MALFORMED,
    numbers_frames: false,
};

/// What all viewers of a workload share.
pub(super) struct SharedOptions {
    pub(super) timeouts: Timeouts,
    pub(super) playout: Playout,
    /// How long a stream may be over before that is a failure.
    pub(super) end_grace: Duration,
    pub(super) transport: RtspTransport,
    pub(super) clock: Arc<HostClock>,
    pub(super) redirects: Redirects,
}

/// One virtual viewer.
pub(super) struct Player {
    reader: Reader,
    viewer: Viewer,
}

/// All of it but what reads the connection.
struct Viewer {
    flv: FlvViewer,
    connection: Connection,
    common: Arc<SharedOptions>,
    is_witness: bool,
    /// The response to DESCRIBE, until the read that brought it has ended.
    described: Option<Box<Response>>,
    /// The URL of the whole, and those of tracks that are to be set up.
    aggregate: String,
    /// Whether there is a beginning to play from.
    is_recorded: bool,
    urls: Vec<String>,
    /// Tracks in their order; those that are set up have a route.
    tracks: Vec<TrackReceiver>,
    /// Tracks that were answered.
    answered: usize,
    /// When the first packet of the stream came.
    began: Option<Moment>,
    report_at: Option<Moment>,
    /// Where datagrams come, if they do: the port for packets and reports of all tracks, which are told apart by what sends them.
    port: Option<u16>,
    /// Where they come from.
    source: Option<IpAddr>,
    /// The server has said goodbye in all tracks: when that becomes a failure.
    ended: Option<Moment>,
    /// The connection has ended, and datagrams may still come: how, and when that becomes a failure unless one does.
    hung_up: Option<(End, Moment)>,
}

impl Player {
    pub(super) fn new(
        planned: PlannedStart,
        request: Arc<Request>,
        common: Arc<SharedOptions>,
        (reading, decoded): (Reading, Option<DecodedWitness>),
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let playing = (common.timeouts, common.playout, Arc::clone(&common.clock));
        // Of each datagram it is known when it came.
        let reading = if common.transport == RtspTransport::Udp { Reading::Witness } else { reading };
        let flv = FlvViewer::new(planned, playing, &FIGURES, reading, now, shard).decoded(decoded);
        let redirects = common.redirects.clone();
        let viewer = Viewer {
            flv,
            connection: Connection::new(planned, request, redirects, reading == Reading::Witness, now),
            common,
            is_witness: reading == Reading::Witness,
            described: None,
            aggregate: String::new(),
            is_recorded: false,
            urls: Vec::new(),
            tracks: Vec::new(),
            answered: 0,
            began: None,
            report_at: None,
            port: None,
            source: None,
            ended: None,
            hung_up: None,
        };
        Self { reader: Reader::new(), viewer }
    }

    /// Takes what a read brought.
    fn take(&mut self, mut bytes: &[u8], now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        loop {
            let item = self.reader.take(&mut bytes);
            let item = item.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
            match item {
                None => return self.viewer.set_up_described(now),
                Some(Item::Frame { channel, bytes }) => self.viewer.packet(channel, bytes, now, shard),
                Some(Item::Response(response)) => {
                    self.viewer.on_response(response, now, shard)?;
                    if self.viewer.connection.is_next() {
                        return Ok(());
                    }
                }
                Some(Item::Request(request)) => self.viewer.connection.on_request(&request),
                Some(Item::Rest(line)) => {
                    if let Some(described) = &mut self.viewer.described
                        && described.body.len() + line.len() <= LONGEST_BODY
                    {
                        described.body.extend_from_slice(&line);
                    }
                }
            }
        }
    }
}

impl Viewer {
    fn planned(&self) -> PlannedStart {
        self.flv.state.planned()
    }

    fn on_response(&mut self, response: Response, now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        let Some((method, response)) = self.connection.on_response(response, now, shard)? else {
            return Ok(());
        };
        // What a server cannot do it says to the request itself: some know no OPTIONS. Of a track beside pictures and sound a
        // viewer can do without.
        let is_needed = match method {
            Method::Options => false,
            Method::Setup => self.tracks.get(self.answered).is_some_and(|track| track.role() != Role::Beside),
            _ => true,
        };
        let refused = refusal(method, &response);
        if let Some(end) = refused.clone().filter(|_| is_needed) {
            return Err(end);
        }
        match method {
            Method::Options => {
                // It speaks RTSP; how long a description takes is up to its source.
                self.flv.state.reach(ClientPhase::Requesting, now, shard);
                let uri = self.connection.uri().to_owned();
                let accept = vec![("Accept", "application/sdp".to_owned())];
                self.connection.ask(Method::Describe, &uri, accept, now);
            }
            Method::Describe => self.described = Some(Box::new(response)),
            Method::Setup => {
                if refused.is_none()
                    && let Err(end) = self.route(&response)
                    && is_needed
                {
                    return Err(end);
                }
                self.answered += 1;
                self.set_up(now);
            }
            Method::Play => {
                self.flv.state.reach(ClientPhase::Waiting, now, shard);
                self.connection.begin_session(now);
                // Each client at its own phase.
                let phase = Duration::from_nanos(u64::from(self.ssrc()) % 1_000_000_000);
                self.report_at = Some(now + REPORT / 2 + phase);
            }
            Method::Announce | Method::Record | Method::Pause | Method::GetParameter | Method::Teardown => {}
        }
        Ok(())
    }

    /// The read that brought the description has ended: chooses tracks and asks for the first.
    fn set_up_described(&mut self, now: Moment) -> Result<(), End> {
        let Some(response) = self.described.take() else { return Ok(()) };
        let description = Description::parse(&response.body);
        // RFC 2326 section C.1.1: "The RTSP Content-Base field", "The RTSP Content-Location field", "The RTSP request URL", in this
        // order.
        let fields =
            ["content-base", "content-location"].into_iter().find_map(|name| response.fields.get(name));
        let base = fields.filter(|it| !it.is_empty()).unwrap_or(self.connection.uri()).to_owned();
        (self.aggregate, self.answered) = (description.aggregate(&base), 0);
        self.is_recorded = description.is_recorded();
        (self.tracks, self.urls) = (Vec::new(), Vec::new());
        let mut secure = Vec::new();
        for media in &description.media {
            if media.formats.is_empty() || media.is_back_channel {
                continue;
            }
            if media.is_secure {
                secure.push(media.kind);
                continue;
            }
            let has = |role: Role| self.tracks.iter().any(|track: &TrackReceiver| track.role() == role);
            let role = match media.kind {
                MediaKind::Video if !has(Role::Pictures) => Role::Pictures,
                MediaKind::Audio if !has(Role::Sound) => Role::Sound,
                _ => Role::Beside,
            };
            self.tracks.push(TrackReceiver::new(role, &media.formats, self.flv.is_decoded()));
            self.urls.push(description.track(&base, media));
        }
        let has = |role: Role| self.tracks.iter().any(|track| track.role() == role);
        for (kind, role, name) in
            [(MediaKind::Video, Role::Pictures, "pictures"), (MediaKind::Audio, Role::Sound, "sound")]
        {
            if secure.contains(&kind) && !has(role) {
                let words =
                    format!("the description has {name} as encrypted (RTP/SAVP), which weir does not read");
                return Err((Failure::Rejected, words));
            }
        }
        if !has(Role::Pictures) && !has(Role::Sound) {
            let words = "the description has no track of pictures or sound";
            return Err((Failure::Rejected, words.to_owned()));
        }
        if has(Role::Pictures) {
            self.flv.expect_pictures();
        } else {
            self.flv.expect_sound_alone();
        }
        self.set_up(now);
        Ok(())
    }

    /// Asks for the next track, or to play all of them.
    fn set_up(&mut self, now: Moment) {
        match self.urls.get(self.answered).cloned() {
            Some(url) => {
                let channel = 2 * self.answered as u8;
                let transport = match self.port {
                    Some(port) => Transport::udp((port, port)),
                    None => Transport::tcp((channel, channel + 1)),
                };
                let transport = transport.to_string();
                self.connection.ask(Method::Setup, &url, vec![("Transport", transport)], now);
            }
            None => {
                let uri = self.aggregate.clone();
                // RFC 2326 section 10.5: "A PLAY request without a Range header is legal." With one, GStreamer's server seeks in what all
                // viewers of a live stream share, and they lose a packet each.
                let range = self.is_recorded.then(|| ("Range", "npt=0.000-".to_owned()));
                self.connection.ask(Method::Play, &uri, range.into_iter().collect(), now);
            }
        }
    }

    /// A track is set up: where its packets come.
    fn route(&mut self, response: &Response) -> Result<(), End> {
        let at = self.answered;
        let transport = response.fields.get("transport").and_then(|value| Transport::parse(value).next());
        let channel = 2 * at as u8;
        let source = transport.as_ref().and_then(|it| it.ssrc);
        let route = match transport {
            Some(Transport { lower: Lower::Tcp, is_secure: false, interleaved, .. })
                if self.port.is_none() =>
            {
                let (rtp, rtcp) = interleaved.unwrap_or((channel, channel + 1));
                (rtp.into(), rtcp.into())
            }
            Some(Transport {
                lower: Lower::Udp, is_secure: false, is_multicast: false, server_port, ..
            }) if self.port.is_some() => server_port.unwrap_or_default(),
            // Some cameras leave the field out. By UDP it is not known then where reports are to go.
            None if self.port.is_none() => (channel.into(), u16::from(channel) + 1),
            None => (0, 0),
            Some(_) => {
                let words = "SETUP is answered with another transport than was asked for".to_owned();
                return Err((Failure::Rejected, words));
            }
        };
        if let Some(track) = self.tracks.get_mut(at) {
            (track.route, track.announced) = (Some(route), source);
            if self.port.is_some() {
                track.expect_datagrams();
            }
        }
        Ok(())
    }

    /// An interleaved packet came. Some servers send before they answer PLAY.
    #[inline]
    fn packet(&mut self, channel: u8, bytes: &[u8], now: Moment, shard: &mut ShardRecorder) {
        let channel = u16::from(channel);
        for track in &mut self.tracks {
            match track.route {
                Some((rtp, _)) if rtp == channel => {
                    let began = *self.began.get_or_insert(now);
                    self.ended = None;
                    return track.rtp(bytes, now.since(began), &mut self.flv, now, shard);
                }
                Some((_, rtcp)) if rtcp == channel => {
                    track.rtcp(now, bytes, shard.of(self.flv.state.planned()));
                    return self.note_end(now);
                }
                _ => {}
            }
        }
        shard.of(self.planned()).count(STRAYS, 1);
    }

    /// The server has said goodbye in each track that is played.
    fn note_end(&mut self, now: Moment) {
        let mut played =
            self.tracks.iter().filter(|track| track.role() != Role::Beside && track.route.is_some());
        if self.ended.is_none() && played.all(|track| track.has_ended) {
            self.ended = Some(now + self.common.end_grace);
        }
    }

    /// The source of its reports.
    fn ssrc(&self) -> u32 {
        self.planned().number().wrapping_mul(0x9E37_79B9)
    }

    /// Reports on what came, where it is time to.
    fn report(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        if self.report_at.is_none_or(|at| at > now) {
            return;
        }
        self.report_at = Some(now + REPORT);
        let (ssrc, planned) = (self.ssrc(), self.planned());
        let (mut out, is_framed, source) = (Vec::new(), self.port.is_none(), self.source);
        let mut sent = 0;
        for track in &mut self.tracks {
            if track.report(now, ssrc, is_framed, &mut out) {
                TrackReceiver::count_report(context.world.of(planned));
            }
            if let (false, Some(source), Some((_, port @ 1..))) = (is_framed, source, track.route) {
                context.send_datagram(SocketAddr::new(source, port), &out);
                sent += out.len();
                out.clear();
            }
        }
        if self.is_witness
            && let Some(track) = self.tracks.iter().min_by_key(|track| track.role() as u8)
        {
            track.record_jitter(context.world.of(planned));
        }
        if is_framed {
            context.send(&out);
            sent += out.len();
        }
        context.world.of(planned).count(SENT, sent as u64);
    }

    fn book(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let planned = self.planned();
        self.tracks.iter_mut().for_each(|track| track.book(now, shard.of(planned)));
        self.flv.book(now, shard);
    }

    /// Packets that have waited long enough for others are read.
    fn release(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let is_due = |track: &TrackReceiver| track.poll_timeout().is_some_and(|at| at <= now);
        if !self.tracks.iter().any(is_due) {
            return;
        }
        let since = self.began.map_or(Duration::ZERO, |began| now.since(began));
        self.tracks.iter_mut().for_each(|track| track.handle_timeout(since, &mut self.flv, now, shard));
        self.book(now, shard);
        self.flv.end_of_read(false, now, shard);
    }

    /// What is missing does not come any more.
    fn settle(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let since = self.began.map_or(Duration::ZERO, |began| now.since(began));
        for track in &mut self.tracks {
            track.release_all(since, &mut self.flv, now, shard);
            track.settle_all();
        }
        self.book(now, shard);
    }

    /// Forgets what belongs to a link: what was missing on it does not come any more.
    fn restart(&mut self, now: Moment, shard: &mut ShardRecorder) {
        self.settle(now, shard);
        (self.tracks, self.urls, self.answered) = (Vec::new(), Vec::new(), 0);
        (self.described, self.began, self.report_at, self.ended) = (None, None, None, None);
        (self.port, self.source, self.hung_up) = (None, None, None);
    }

    /// Counts what its socket has dropped.
    fn count_drops(&self, context: &mut Context<'_, ShardRecorder>) {
        if self.port.is_some() {
            let dropped = context.dropped_datagrams();
            context.world.of(self.planned()).count(SOCKET_DROPS, dropped);
        }
    }

    /// How it ends that the connection has ended.
    fn closed(&self, (failure, words): End) -> End {
        match self.ended {
            // A server that has ended the stream before has not broken off.
            Some(_) => (Failure::StreamEnded, "the server said goodbye and closed the link".to_owned()),
            None => (failure, words),
        }
    }
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
        if self.viewer.common.transport == RtspTransport::Udp && self.viewer.port.is_none() {
            let opened = context.open_datagrams().map_err(|error| (error.failure, error.words));
            let address = opened?;
            self.viewer.port = Some(address.port());
        }
        self.viewer.connection.connected(context.now);
        Ok(())
    }

    fn handle_datagrams(
        &mut self,
        mut datagrams: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let (now, shard, viewer) = (context.now, &mut *context.world, &mut self.viewer);
        let mut received = 0;
        while let Some(Incoming { arrived, source, bytes }) = datagrams.take_next() {
            received += bytes.len() as u64;
            viewer.datagram(source, bytes, arrived, shard);
        }
        let recorder = shard.of(viewer.planned());
        recorder.count(READS, 1);
        recorder.count(RECEIVED, received);
        viewer.book(now, shard);
        viewer.flv.end_of_read(false, now, shard);
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        if self.viewer.connection.is_next() {
            return Ok(());
        }
        let mut outcome = Ok(());
        if !bytes.is_empty() {
            let recorder = shard.of(self.viewer.planned());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            outcome = self.take(bytes, now, shard);
            self.viewer.book(now, shard);
        }
        self.viewer.flv.end_of_read(bytes.is_empty(), now, shard);
        outcome
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let viewer = &mut self.viewer;
        if viewer.ended.is_some_and(|at| at <= context.now) {
            return Err((
                Failure::StreamEnded,
                "the server said goodbye to every track (RTCP BYE)".to_owned(),
            ));
        }
        if let Some((end, _)) = viewer.hung_up.take_if(|(_, until)| *until <= context.now) {
            return Err(viewer.closed(end));
        }
        viewer.release(context.now, context.world);
        viewer.flv.handle_timeout(context);
        viewer.connection.handle_timeout(&viewer.aggregate, context.now, context.world);
        viewer.report(context);
        Ok(())
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.flv.edge(edge, context.world);
    }

    /// Parameter sets that the description does not have come with a keyframe.
    fn lacks_only_a_keyframe(&self) -> bool {
        true
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
        Err(self.viewer.closed((failure, said(words))))
    }

    /// RFC 2326 section 1.1: "An RTSP session is in no way tied to a transport-level connection such as a TCP connection." What a
    /// server sends without one is played, as long as it comes.
    fn handle_hung_up(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let viewer = &mut self.viewer;
        // No response to PLAY comes any more, or no media.
        if viewer.report_at.is_none() || viewer.ended.is_some() {
            return Err(viewer.closed((failure, said(words))));
        }
        viewer.connection.hung_up();
        viewer.hung_up = Some(((failure, said(words)), context.now + viewer.common.end_grace));
        Ok(())
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, viewer) = (context.now, &mut self.viewer);
        if viewer.connection.go_on(context)? {
            self.reader = Reader::new();
            viewer.restart(now, context.world);
        }
        if let Some(response) = viewer.connection.overdue_body(&mut self.reader, now) {
            viewer.on_response(response, now, context.world)?;
            viewer.set_up_described(now)?;
        }
        viewer.connection.flush(context);
        // When the response to PLAY came is to be known, although media may have come before it.
        let is_awaited = viewer.ended.is_some() || viewer.connection.awaits_play();
        context.set_low_water(if is_awaited { 1 } else { viewer.flv.batch() });
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let viewer = &self.viewer;
        let connection = viewer.connection.poll_timeout(context.now);
        let own = [viewer.report_at, viewer.ended, viewer.hung_up.as_ref().map(|(_, until)| *until)];
        let waiting = viewer.tracks.iter().filter_map(TrackReceiver::poll_timeout);
        own.into_iter().chain([viewer.flv.poll_timeout(), connection]).flatten().chain(waiting).min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.reader = Reader::new();
        self.viewer.count_drops(context);
        self.viewer.connection.begin_again(context.now);
        self.viewer.restart(context.now, context.world);
        self.viewer.flv.begin_again(context.world);
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        let viewer = &mut self.viewer;
        viewer.settle(context.now, context.world);
        viewer.count_drops(context);
        viewer.flv.leave(context.now, context.world);
        if failure.is_none() {
            let uri = std::mem::take(&mut viewer.aggregate);
            viewer.connection.tear_down(&uri, context);
        }
    }
}
