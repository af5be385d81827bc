//! A viewer of HLS: what it plays, the connections on which it loads that, and its modelled player.

mod answers;
mod ladder;
mod link;
mod reading;
mod requests;
mod seeks;
mod track;

use self::ladder::Ladder;
use self::link::{Link, LinkName};
use self::reading::Reading;
use self::track::Track;
use super::SCHEMES;
use super::bandwidth::Throttle;
use super::cmcd::Cmcd;
use super::figures::{
    CLOCK_AHEAD, CLOCK_ERROR, CLOCKS_APART, CONNECTIONS, FIGURES, HTTP2_REQUESTS, HTTP2_WAITS,
};
use super::inspector::Inspector;
use super::playback::Playback;
use super::schedule::Schedule;
use super::seeking::Seeking;
use super::server_clock::ServerClock;
use super::variables::Variables;
use super::variant::{HlsFields, VariantChoice};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{
    ClientPhase, ClientSession, ClientState, End, EndpointFinder, Endpoints, HostClock, HttpConnection,
    HttpOptions, LinkEnd, NewClient, PlayOptions, Redirects, Request, Scheme, ShardRecorder, StampScanner,
    Target, TargetError, Timeouts, Workload, WorkloadError, ts,
};
use weir_metrics::common::{READS, RECEIVED};
use weir_metrics::{Failure, Moment, Recorder, Schema};
use weir_shard::{Context, Side};

/// Clocks that are farther apart are worth a warning: it is about a part, the least that dates of low latency tell apart. Microseconds.
const CLOCK_TOLERANCE: u64 = 250_000;

/// Its own schemes, and those of URLs whose path ends in `.m3u8` and of what playlists and redirects name.
const ALL_SCHEMES: &[Scheme] = &[SCHEMES[0], SCHEMES[1], ts::SCHEMES[0], ts::SCHEMES[1]];

/// Viewers of these URLs.
pub(super) fn play(
    urls: &[String],
    options: &PlayOptions,
    http: &HttpOptions,
    fields: &HlsFields,
) -> Result<Workload, WorkloadError> {
    let targets = urls.iter().map(|url| {
        let target = Target::parse(url, "play", ALL_SCHEMES)?;
        // Its own scheme, if the end of the path says the protocol.
        let own = SCHEMES.into_iter().find(|own| own.link == target.scheme.link);
        let scheme = own.unwrap_or(target.scheme);
        Ok(Target { scheme, ..target })
    });
    let targets = targets.collect::<Result<Vec<_>, TargetError>>()?;
    let mut finder = EndpointFinder::new(ALL_SCHEMES, &options.tls)
        .resolving(options.resolve)
        .offering(fields.http_version.offered());
    let endpoints = Endpoints::of(targets, &mut finder, |target| request(&target, http))?;
    let redirects = Redirects::new(finder);
    let timeouts = options.timeouts;
    let (choice, low_latency, bandwidth) = (fields.variant, fields.low_latency, fields.bandwidth);
    let witnesses = options.clone();
    let (cmcd, start_at, seek, version) = (fields.cmcd, fields.start_at, fields.seek, fields.http_version);
    let (clock, variables) = (HostClock::read(), Arc::new(Variables::default()));
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, endpoint, now, .. } = client;
        let (endpoint, redirects) = (endpoint.clone(), redirects.clone());
        let connection = HttpConnection::new(planned.number(), &request, endpoint, redirects, version);
        Viewer {
            first: Link::new(connection, now),
            second: None,
            state: ClientState::begin(planned, timeouts, now, shard),
            timeouts,
            choice,
            low_latency,
            is_variant: false,
            variables: Arc::clone(&variables),
            main: Track::new(request, Schedule::new(now, low_latency).starting_at(start_at)),
            sound: None,
            playback: None,
            start_at,
            seeking: seek.map(|interval| Seeking::new(interval, planned.number().into())),
            throttle: bandwidth.map(|rate| Throttle::new(rate, now)),
            is_paused: false,
            ladder: None,
            scanner: witnesses.is_witness(planned.client).then(Box::default),
            inspector: witnesses.is_witness(planned.client).then(Box::default),
            reading: Reading::default(),
            cmcd: cmcd.then(|| Box::new(Cmcd::new(planned.number(), now))),
            clock,
            server_clock: ServerClock::default(),
            pulling: false,
            looked_at: None,
        }
    };
    let mut workload = Workload::new(Schema::new(FIGURES), endpoints, new);
    workload.sends_secret |= http.sends_secret();
    Ok(workload)
}

/// What is asked for at a target: the same by HTTP, on a connection that is kept.
fn request(target: &Target, options: &HttpOptions) -> Result<Request, TargetError> {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let scheme = ts::http_scheme(target.scheme.link).name;
    let url = format!("{scheme}://{host}:{}{}", target.port, target.path);
    let mut http = Target::parse(&url, "play", ts::SCHEMES)?;
    http.credentials.clone_from(&target.credentials);
    Ok(Request::new(http, options).kept())
}

/// One virtual viewer.
struct Viewer {
    state: ClientState,
    timeouts: Timeouts,
    first: Link,
    second: Option<Box<Link>>,
    choice: VariantChoice,
    low_latency: bool,
    /// Whether a Multivariant Playlist has led to what is played.
    is_variant: bool,
    /// What that has defined.
    variables: Arc<Variables>,
    main: Track,
    /// Sound, if it has a playlist of its own.
    sound: Option<Box<Track>>,
    /// Since the first segments of all that is played were named.
    playback: Option<Playback>,
    /// Where it begins, of a recording.
    start_at: Option<Duration>,
    /// When it goes to other places of a recording, if that is asked for.
    seeking: Option<Seeking>,
    /// How fast it reads, if it is no faster than it can.
    throttle: Option<Throttle>,
    /// It has read faster than that, and waits.
    is_paused: bool,
    /// The variants that it changes between.
    ladder: Option<Box<Ladder>>,
    /// Of a witness: what looks for clock stamps in segments of pictures.
    scanner: Option<Box<StampScanner>>,
    /// Of a witness: what counts frames in them, and what is missing.
    inspector: Option<Box<Inspector>>,
    /// How it reads what is under way of the main track.
    reading: Reading,
    /// What it tells the server of itself with each request, if that is asked for.
    cmcd: Option<Box<Cmcd>>,
    clock: HostClock,
    server_clock: ServerClock,
    /// The player would run dry, and what waits unread is asked for first.
    pulling: bool,
    /// The moment at which the player would have run dry, for which links were read once more.
    looked_at: Option<Moment>,
}

impl Viewer {
    fn recorder<'a>(&self, shard: &'a mut ShardRecorder) -> &'a mut Recorder {
        shard.of(self.state.planned())
    }

    /// Whether everything there is has been shown.
    fn has_shown_all(&self, now: Moment) -> bool {
        let is_dry = |playback: &Playback| playback.runs_dry().is_none_or(|dry| dry <= now);
        self.links().all(Link::is_idle)
            && self.tracks().all(|track| track.schedule.is_over())
            && self.playback.as_ref().is_some_and(is_dry)
    }

    /// Whether something that is asked for comes on the session's own link.
    fn loads_on_own_link(&self) -> bool {
        self.links().any(|link| link.is_loading() && link.connection.is_on_own_link())
    }

    /// The player has run dry, unless something waits unread.
    fn run_dry(&mut self, dry: Moment, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        let is_beside = |link: &Link| link.is_loading() && !link.connection.is_on_own_link();
        if self.links().any(is_beside) && self.looked_at.replace(dry) != Some(dry) {
            // Before the next deadline, links are read.
            return;
        }
        if self.loads_on_own_link() && self.throttle.is_none() {
            self.pulling = true;
            context.pull();
        } else if let Some(playback) = &mut self.playback {
            playback.stall(now, context.world.of(self.state.planned()));
        }
    }

    /// A read of one of its links has brought this.
    fn read(
        &mut self,
        link: LinkName,
        bytes: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let recorder = self.recorder(context.world);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        if let Some(throttle) = &mut self.throttle {
            self.is_paused = throttle.take(bytes.len(), context.now).is_some();
            context.pause_reading(self.is_paused);
        }
        self.take(link, bytes, context)
    }

    /// One of its links has ended.
    fn ended(
        &mut self,
        name: LinkName,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let Some(ended) = self.link_mut(name).map(|link| link.connection.end_link()) else { return Ok(()) };
        for name in [LinkName::First, LinkName::Second] {
            let Some(link) = self.link_mut(name) else { continue };
            let effective = link.connection.request().cloned();
            match link.connection.on_closed(ended, failure, words) {
                LinkEnd::Failed(..) if link.is_hinting() => {
                    self.give_up_hint(name, context);
                }
                LinkEnd::Failed(failure, words) => return Err((failure, words)),
                LinkEnd::Whole => {
                    self.rebase(name, effective);
                    self.end(name, context)?;
                }
                LinkEnd::Idle => {}
            }
        }
        Ok(())
    }
}

impl ClientSession for Viewer {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        // HTTP has no handshake of its own.
        self.state.reach(ClientPhase::Requesting, context.now, context.world);
        self.first.connection.on_connected(context.alpn())?;
        if let Some(throttle) = &self.throttle {
            context.limit_reads(throttle.most_read());
        }
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        if !bytes.is_empty() {
            self.read(LinkName::First, bytes, context)?;
        } else if std::mem::take(&mut self.pulling)
            && let Some(playback) = &mut self.playback
        {
            playback.stall(now, context.world.of(self.state.planned()));
        }
        self.state.end_of_read(bytes.is_empty(), now, context.world);
        Ok(())
    }

    fn handle_side(&mut self, event: Side<'_>, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        match event {
            Side::Connected => match &mut self.second {
                Some(link) => link.connection.on_connected(context.alpn_side()),
                None => Ok(()),
            },
            Side::Bytes(bytes) => self.read(LinkName::Second, bytes, context),
            Side::Closed { failure, words } => self.ended(LinkName::Second, failure, words, context),
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        if self.is_paused && self.throttle.is_none_or(|throttle| throttle.due(now).is_none()) {
            self.is_paused = false;
            context.pause_reading(false);
        }
        for name in [LinkName::First, LinkName::Second] {
            if let Some(link) = self.link_mut(name) {
                link.connection.handle_timeout();
            }
            self.overdue_answer(name, context)?;
        }
        if self.has_shown_all(now) {
            if !self.main.schedule.is_recording() {
                return Err((Failure::StreamEnded, "the playlist has ended (EXT-X-ENDLIST)".to_owned()));
            }
            self.leave(None, context);
            self.state.finish(now, context.world);
            return Ok(());
        }
        self.seek(context);
        if let Some(dry) = self.playback.as_ref().and_then(Playback::runs_dry).filter(|dry| *dry <= now) {
            self.run_dry(dry, context);
        }
        if let Some(playback) = &mut self.playback {
            playback.handle_timeout(now, context.world.of(self.state.planned()));
        }
        Ok(())
    }

    /// Between two segments a viewer gets nothing: it starves when nothing has come for its timeout after its player has run dry.
    fn handle_hunger(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if self.loads_on_own_link() {
            context.pull();
        } else {
            self.state.starve(context.now, context.world);
        }
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        self.ended(LinkName::First, failure, words, context)?;
        context.stand_by();
        Ok(())
    }

    fn handle_hung_up(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        self.ended(LinkName::First, failure, words, context)
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.ask(context)?;
        let planned = self.state.planned();
        for name in [LinkName::First, LinkName::Second] {
            if let Some(link) = self.link_mut(name) {
                let waited = link.connection.waits_for_stream();
                link.connection.go_on(planned, context)?;
                if waited && !link.connection.waits_for_stream() {
                    // That the server takes few requests at a time is a rule of its own: the wait is counted, and not in its times.
                    link.asked = context.now;
                }
                let recorder = context.world.of(planned);
                recorder.count(CONNECTIONS, link.connection.take_opened());
                recorder.count(HTTP2_REQUESTS, link.connection.take_sent_by_http2());
                recorder.count(HTTP2_WAITS, link.connection.take_stream_waits());
            }
        }
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let now = context.now;
        let playback = self.playback.as_ref().and_then(Playback::poll_timeout);
        let over = self.has_shown_all(now).then_some(now);
        let links = self.links().filter_map(|link| link.connection.poll_timeout(now));
        let due = [LinkName::First, LinkName::Second].into_iter().filter_map(|name| self.answer_due(name));
        let room = self.throttle.filter(|_| self.is_paused).map(|it| it.due(now).unwrap_or(now));
        let next = [playback, over, room, self.seek_at(), self.ask_at(now)].into_iter().flatten();
        next.chain(links).chain(due).min()
    }

    fn leave(&mut self, _: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        if let Some(playback) = &mut self.playback {
            playback.leave(context.now, context.world.of(self.state.planned()));
        }
        if let Some((ahead, error)) = self.server_clock.ahead() {
            let recorder = self.recorder(context.world);
            recorder.record_signed(CLOCK_AHEAD, ahead);
            recorder.record(CLOCK_ERROR, error);
            recorder.count(CLOCKS_APART, u64::from(ahead.unsigned_abs() > error + CLOCK_TOLERANCE));
        }
    }
}

#[cfg(test)]
mod tests;
