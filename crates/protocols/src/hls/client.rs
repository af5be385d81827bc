//! A viewer of HLS: one connection on which playlists and segments are asked for one after the other.

use super::SCHEMES;
use super::figures::{
    ANNOUNCED, AUDIO_APART, BLOCK_TIME, CONNECTIONS, DELTAS, EARLY, FIGURES, GAPS, LOADED, LOW_LATENCY,
    MULTIVARIANT, MULTIVARIANT_TIME, NOT_FOUND, PART_TIME, PARTS, PLAYLIST_AGE, PLAYLIST_BYTES,
    PLAYLIST_TIME, REFUSED, RELOADS, REQUESTS, SEGMENT_TIME, SEGMENTS, SKIPPED, STALE, TARGET_EXCEEDED,
    WENT_BACK,
};
use super::playback::Playback;
use super::playlist::{LONGEST_PLAYLIST, MediaPlaylist, Playlist, Resource, Segment};
use super::schedule::{Directives, Schedule};
use super::variant::{HlsFields, Variant, VariantChoice};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{
    Answer, ClientPhase, ClientSession, ClientState, End, EndpointFinder, Endpoints, HttpConnection,
    HttpOptions, LinkEnd, NewClient, PlayOptions, Redirects, Request, Scheme, ShardRecorder, Target,
    TargetError, Timeouts, Workload, WorkloadError, refusal, ts,
};
use weir_metrics::common::{MEDIA, READS, RECEIVED, UNITS};
use weir_metrics::{Failure, Moment, Recorder, Schema};
use weir_shard::Context;

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
        let mut target = Target::parse(url, "play", ALL_SCHEMES)?;
        if !target.scheme.ends_with("+hls") {
            target.scheme.push_str("+hls");
        }
        Ok(target)
    });
    let targets = targets.collect::<Result<Vec<_>, TargetError>>()?;
    let mut finder = EndpointFinder::new(ALL_SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = Endpoints::of(targets, &mut finder, |target| request(&target, http))?;
    let redirects = Redirects::new(finder);
    let timeouts = options.timeouts;
    let (choice, low_latency) = (fields.variant, fields.low_latency);
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, endpoint, now, .. } = client;
        Viewer {
            connection: HttpConnection::new(planned.number(), &request, endpoint.clone(), redirects.clone()),
            state: ClientState::begin(planned, timeouts, now, shard),
            timeouts,
            playlist: request,
            choice,
            is_variant: false,
            is_media: false,
            base: None,
            schedule: Schedule::new(now, low_latency),
            directives: Directives::default(),
            playback: None,
            loading: None,
            map: None,
            asked: now,
            pulling: false,
        }
    };
    let mut workload = Workload::new(Schema::new(FIGURES), endpoints, new);
    workload.sends_secret |= http.sends_secret();
    Ok(workload)
}

/// What is asked for at a target: the same by HTTP, on a connection that is kept.
fn request(target: &Target, options: &HttpOptions) -> Result<Request, TargetError> {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let scheme = target.scheme.trim_end_matches("+hls");
    let url = format!("{scheme}://{host}:{}{}", target.port, target.path);
    let mut http = Target::parse(&url, "play", ts::SCHEMES)?;
    http.credentials.clone_from(&target.credentials);
    Ok(Request::new(http, options).kept())
}

/// One virtual viewer.
struct Viewer {
    state: ClientState,
    timeouts: Timeouts,
    connection: HttpConnection,
    /// The playlist to load: the one of the URL, then the Media Playlist of the variant that it chose.
    playlist: Arc<Request>,
    choice: VariantChoice,
    /// Whether a Multivariant Playlist has led to it.
    is_variant: bool,
    /// Whether it was loaded, and is a Media Playlist.
    is_media: bool,
    /// Where redirects led for the playlist: its URIs are relative to that (RFC 3986, section 5.1.3).
    base: Option<Arc<Request>>,
    schedule: Schedule,
    /// What the playlist under way was asked for with.
    directives: Directives,
    /// Since the first segments were named.
    playback: Option<Playback>,
    loading: Option<Loading>,
    /// The last Media Initialization Section that was loaded.
    map: Option<Arc<Resource>>,
    /// When what is under way was asked for.
    asked: Moment,
    /// The player would run dry, and what waits unread is asked for first.
    pulling: bool,
}

/// What is known of a segment or a part that is under way.
#[derive(Clone, Copy, Debug)]
struct Media {
    duration: Duration,
    is_part: bool,
}

/// What is under way.
#[derive(Debug)]
enum Loading {
    /// A playlist, and what of it has come.
    Playlist(Vec<u8>),
    /// A Media Initialization Section, and the segment behind it.
    Map(Arc<Resource>, Segment),
    /// A segment or a part, and how much of it has come.
    Segment(Media, u64),
    /// An answer without any of them, to its end.
    Refusal,
}

impl Viewer {
    fn recorder<'a>(&self, shard: &'a mut ShardRecorder) -> &'a mut Recorder {
        shard.of(self.state.planned())
    }

    /// Takes what a read brought.
    fn take(&mut self, mut bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        loop {
            let effective = self.connection.request().cloned();
            match self.connection.take(&mut bytes, context) {
                Answer::Head(response) => self.head(refusal(response.status), &response.said(), context)?,
                Answer::Piece(piece) => self.piece(piece, context)?,
                Answer::End => {
                    self.base = match self.loading {
                        Some(Loading::Playlist(_)) => effective,
                        _ => self.base.take(),
                    };
                    self.end(context)?;
                }
                Answer::More => return Ok(()),
                Answer::Failed(failure, words) => return Err((failure, words)),
            }
        }
    }

    /// A head came, of what was asked for or of a refusal.
    fn head(
        &mut self,
        refusal: Option<Failure>,
        said: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let Some(failure) = refusal else { return Ok(()) };
        let recorder = context.world.of(self.state.planned());
        match self.loading.replace(Loading::Refusal) {
            // Without a playlist there is nothing to play; one that was there may come back.
            Some(Loading::Playlist(_)) if !self.is_media => return Err((failure, said.to_owned())),
            Some(Loading::Playlist(_)) => self.schedule.refused(self.asked),
            _ => recorder.count(NOT_FOUND, u64::from(failure == Failure::StreamNotFound)),
        }
        recorder.count(REFUSED, 1);
        Ok(())
    }

    fn piece(&mut self, piece: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        match &mut self.loading {
            Some(Loading::Playlist(text)) => {
                if text.len() + piece.len() > LONGEST_PLAYLIST {
                    let words = format!("the playlist is longer than {LONGEST_PLAYLIST} bytes");
                    return Err((Failure::MalformedInput, words));
                }
                text.extend_from_slice(piece);
                shard.of(self.state.planned()).count(PLAYLIST_BYTES, piece.len() as u64);
            }
            Some(Loading::Segment(_, came)) if *came == 0 && is_page(piece) => {
                self.loading = Some(Loading::Refusal);
                shard.of(self.state.planned()).count(REFUSED, 1);
            }
            Some(Loading::Segment(..) | Loading::Map(..)) => {
                if let Some(Loading::Segment(_, came)) = &mut self.loading {
                    *came += piece.len() as u64;
                }
                self.state.reach(ClientPhase::Opening, now, shard);
                self.state.fed(now, shard);
                shard.of(self.state.planned()).count(MEDIA, piece.len() as u64);
            }
            Some(Loading::Refusal) | None => {}
        }
        Ok(())
    }

    /// What was asked for is whole.
    fn end(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let took = now.since(self.asked).as_micros() as u64;
        match self.loading.take() {
            Some(Loading::Playlist(text)) => {
                let playlist = Playlist::parse(&text);
                match playlist.map_err(|error| (Failure::MalformedInput, error.to_string()))? {
                    Playlist::Media(playlist) => {
                        let time = if self.directives.until.is_some() { BLOCK_TIME } else { PLAYLIST_TIME };
                        self.recorder(context.world).record(time, took);
                        self.media_playlist(playlist, context);
                    }
                    Playlist::Multivariant(variants) => {
                        let recorder = self.recorder(context.world);
                        recorder.record(MULTIVARIANT_TIME, took);
                        self.variant(&variants, recorder)?;
                    }
                }
            }
            Some(Loading::Map(map, segment)) => {
                self.map = Some(map);
                self.segment(&segment, context)?;
            }
            // Nothing plays what is empty.
            Some(Loading::Segment(_, 0)) => self.recorder(context.world).count(REFUSED, 1),
            Some(Loading::Segment(Media { duration, is_part }, _)) => {
                let recorder = self.recorder(context.world);
                let (counter, time) = if is_part { (PARTS, PART_TIME) } else { (SEGMENTS, SEGMENT_TIME) };
                recorder.count(counter, 1);
                recorder.count(UNITS, 1);
                recorder.count(LOADED, duration.as_micros() as u64);
                recorder.record(time, took);
                self.state.reach(ClientPhase::Playing, now, context.world);
                self.state.fed(now, context.world);
                if let Some(playback) = &mut self.playback {
                    playback.receive(now, duration, context.world.of(self.state.planned()));
                }
            }
            Some(Loading::Refusal) | None => {}
        }
        Ok(())
    }

    /// A Multivariant Playlist: a viewer keeps to the variant that it chooses here.
    fn variant(&mut self, variants: &[Variant], recorder: &mut Recorder) -> Result<(), End> {
        let (false, Some(variant)) = (self.is_variant, self.choice.choose(variants)) else {
            let words = "a variant is a Multivariant Playlist itself".to_owned();
            return Err((Failure::MalformedInput, words));
        };
        recorder.count(MULTIVARIANT, 1);
        recorder.count(AUDIO_APART, u64::from(variant.has_audio_apart));
        self.playlist = Arc::new(self.named(&Resource { uri: variant.uri.clone(), range: None })?);
        (self.is_variant, self.base) = (true, None);
        Ok(())
    }

    /// The request for what the playlist names.
    fn named(&self, resource: &Resource) -> Result<Request, End> {
        let base = self.base.as_ref().unwrap_or(&self.playlist);
        base.named(&resource.uri, resource.range).map_err(|cause| {
            (Failure::MalformedInput, format!("the playlist names what is no URL of HTTP: {cause}"))
        })
    }

    /// The request for the playlist, with what it is to be answered with (draft-pantos-hls-rfc8216bis-22, section 6.2.5): behind the query
    /// that its URL has.
    fn with_directives(&self) -> Result<Arc<Request>, End> {
        let mut asked = Vec::new();
        if let Some((segment, part)) = self.directives.until {
            asked.push(format!("_HLS_msn={segment}"));
            asked.extend(part.map(|part| format!("_HLS_part={part}")));
        }
        if self.directives.skips {
            asked.push("_HLS_skip=YES".to_owned());
        }
        if asked.is_empty() {
            return Ok(Arc::clone(&self.playlist));
        }
        let path = &self.playlist.target().path;
        let query = path.split_once('?').map(|(_, query)| query).filter(|query| !query.is_empty());
        let query: Vec<_> = query.into_iter().chain(asked.iter().map(String::as_str)).collect();
        let uri = format!("?{}", query.join("&"));
        let request = self.playlist.named(&uri, None);
        request.map(Arc::new).map_err(|cause| (Failure::MalformedInput, cause))
    }

    fn media_playlist(&mut self, playlist: MediaPlaylist, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        let is_reload = self.playback.is_some();
        self.is_media = true;
        self.state.reach(ClientPhase::Waiting, now, context.world);
        let update = self.schedule.take(playlist, self.directives, self.asked, now);
        if let Some(start) = update.starts_with
            && self.playback.is_none()
        {
            self.playback = Some(Playback::new(start));
        }
        let recorder = self.recorder(context.world);
        recorder.count(ANNOUNCED, update.announced.as_micros() as u64);
        recorder.count(SKIPPED, update.skipped);
        recorder.count(LOW_LATENCY, u64::from(update.starts_with_parts && !is_reload));
        recorder.count(DELTAS, u64::from(update.is_delta));
        recorder.count(EARLY, u64::from(update.is_early));
        recorder.count(TARGET_EXCEEDED, update.exceeded);
        if is_reload {
            recorder.count(RELOADS, 1);
            recorder.count(STALE, u64::from(update.is_stale));
            recorder.count(WENT_BACK, u64::from(update.went_back));
            recorder.record(PLAYLIST_AGE, update.age.as_micros() as u64);
        }
    }

    /// Asks for what is next, if nothing is under way.
    fn ask(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if !self.connection.is_idle() || self.state.phase() < ClientPhase::Requesting {
            return Ok(());
        }
        let now = context.now;
        if !self.is_media || self.schedule.reload_at(now).is_some_and(|at| at <= now) {
            self.directives = self.schedule.directives(now);
            let playlist = self.with_directives()?;
            self.get(playlist, Loading::Playlist(Vec::new()), context);
            return Ok(());
        }
        while self.may_load(now) {
            let Some(segment) = self.schedule.pop() else { return Ok(()) };
            if segment.is_gap {
                self.recorder(context.world).count(GAPS, 1);
                continue;
            }
            return match segment.map.clone().filter(|map| self.map.as_ref() != Some(map)) {
                Some(map) => {
                    let request = Arc::new(self.named(&map)?);
                    self.get(request, Loading::Map(map, segment), context);
                    Ok(())
                }
                None => self.segment(&segment, context),
            };
        }
        Ok(())
    }

    fn segment(&mut self, segment: &Segment, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let request = Arc::new(self.named(&segment.resource)?);
        let media = Media { duration: segment.duration, is_part: segment.is_part };
        self.get(request, Loading::Segment(media, 0), context);
        Ok(())
    }

    fn get(&mut self, request: Arc<Request>, loading: Loading, context: &mut Context<'_, ShardRecorder>) {
        self.recorder(context.world).count(REQUESTS, 1);
        self.loading = Some(loading);
        self.asked = context.now;
        self.connection.get(request);
    }

    /// Whether there is room for another segment.
    fn may_load(&self, now: Moment) -> bool {
        self.room_at().is_none_or(|at| at <= now)
    }

    /// When there is room for another segment, if the player plays.
    fn room_at(&self) -> Option<Moment> {
        let dry = self.playback.as_ref()?.runs_dry()?;
        Some(dry - self.schedule.most_ahead().min(dry.since(Moment::from_nanos(0))))
    }

    /// Whether everything there is has been shown.
    fn has_shown_all(&self, now: Moment) -> bool {
        let is_dry = |playback: &Playback| playback.runs_dry().is_none_or(|dry| dry <= now);
        self.connection.is_idle() && self.schedule.is_over() && self.playback.as_ref().is_some_and(is_dry)
    }

    /// The player has run dry, unless something waits unread.
    fn run_dry(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        if !self.connection.is_idle() && self.connection.is_up() {
            self.pulling = true;
            context.pull();
        } else if let Some(playback) = &mut self.playback {
            playback.stall(now, context.world.of(self.state.planned()));
        }
    }

    /// Until when the request under way may go without a byte of its answer.
    fn answer_due(&self) -> Option<Moment> {
        let waits = self.state.phase() == ClientPhase::Playing
            && !self.connection.is_idle()
            && !self.connection.is_answered();
        // A server that holds a request answers when there is something new, or says after three target durations that there is not.
        let is_held = self.directives.until.is_some() && matches!(self.loading, Some(Loading::Playlist(_)));
        let hold = if is_held { self.schedule.longest_hold() } else { Duration::ZERO };
        waits.then(|| self.asked + self.timeouts.request + hold)
    }
}

/// Whether these first bytes are those of a page for people, which some servers send with 200 in the place of what is not there.
fn is_page(bytes: &[u8]) -> bool {
    let begins = |with: &[u8]| bytes.get(..with.len()).is_some_and(|it| it.eq_ignore_ascii_case(with));
    begins(b"<!doctype") || begins(b"<html")
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
        self.connection.on_connected();
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        if !bytes.is_empty() {
            let recorder = self.recorder(context.world);
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            self.take(bytes, context)?;
        } else if std::mem::take(&mut self.pulling)
            && let Some(playback) = &mut self.playback
        {
            playback.stall(now, context.world.of(self.state.planned()));
        }
        self.state.end_of_read(bytes.is_empty(), now, context.world);
        Ok(())
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        self.connection.handle_timeout();
        if self.answer_due().is_some_and(|at| at <= now) {
            return Err((
                Failure::RequestTimeout,
                "the server did not answer the request in time".to_owned(),
            ));
        }
        if self.has_shown_all(now) {
            if !self.schedule.is_recording() {
                return Err((Failure::StreamEnded, "the playlist has ended (EXT-X-ENDLIST)".to_owned()));
            }
            self.leave(None, context);
            self.state.finish(now, context.world);
            return Ok(());
        }
        let dry = self.playback.as_ref().and_then(Playback::runs_dry);
        if dry.is_some_and(|dry| dry <= now) {
            self.run_dry(context);
        }
        if let Some(playback) = &mut self.playback {
            playback.handle_timeout(now, context.world.of(self.state.planned()));
        }
        Ok(())
    }

    /// Between two segments a viewer gets nothing: it starves when nothing has come for its timeout after its player has run dry.
    fn handle_hunger(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if self.playback.as_ref().is_some_and(|playback| !playback.is_stalled()) {
            self.state.fed(context.now, context.world);
        } else if !self.connection.is_idle() && self.connection.is_up() {
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
        let effective = self.connection.request().cloned();
        match self.connection.on_closed(failure, words) {
            LinkEnd::Failed(failure, words) => return Err((failure, words)),
            LinkEnd::Whole => {
                if matches!(self.loading, Some(Loading::Playlist(_))) {
                    self.base = effective;
                }
                self.end(context)?;
            }
            LinkEnd::Idle => {}
        }
        context.stand_by();
        Ok(())
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.ask(context)?;
        self.connection.go_on(self.state.planned(), context)?;
        let opened = self.connection.take_opened();
        self.recorder(context.world).count(CONNECTIONS, opened);
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let playback = self.playback.as_ref().and_then(Playback::poll_timeout);
        let over = self.has_shown_all(context.now).then_some(context.now);
        let next = [self.connection.poll_timeout(context.now), playback, self.answer_due(), over];
        let is_idle = self.connection.is_idle() && self.state.phase() >= ClientPhase::Requesting;
        let reload = self.schedule.reload_at(context.now).filter(|_| is_idle);
        let room = self.room_at().filter(|_| is_idle && self.schedule.has_segment());
        next.into_iter().chain([reload, room]).flatten().min()
    }

    fn leave(&mut self, _: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        if let Some(playback) = &mut self.playback {
            playback.leave(context.now, context.world.of(self.state.planned()));
        }
    }
}

#[cfg(test)]
mod tests;
